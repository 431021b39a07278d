package components

import (
	"fmt"
	"strings"

	"holdfast/journal"
)

// CallState says in words what became of a call.
func CallState(c *journal.Call) Reading {
	r := Reading{Key: string(c.State)}
	switch c.State {
	case journal.CallIsProposed:
		r.Words, r.Icon, r.Tone = "Proposed, not started", "todo", ToneOff
	case journal.CallIsWaiting:
		r.Words, r.Icon, r.Tone = "Waits for a decision", "hold", ToneAsk
		if c.Began() && !c.LetItself() {
			r.Words = "Started, and asked for once more"
		}
	case journal.CallIsRefused:
		r.Words, r.Icon, r.Tone = "Not run, because it was refused", "stop", ToneOff
	case journal.CallIsDispatched, journal.CallIsAdopted: // which no call is in for itself
		r.Words, r.Icon, r.Tone = "Started, no result yet", "run", ToneRun
		if c.AdoptedAt > 0 {
			r.Words = "Still running, no result yet"
		}
	case journal.CallSucceeded:
		r.Words, r.Icon, r.Tone = "Succeeded", "done", ToneRun
	case journal.CallFailed:
		r.Words, r.Icon, r.Tone = "Failed", "fail", ToneBad
	case journal.CallCancelled:
		r.Words, r.Icon, r.Tone = "Cancelled", "stop", ToneOff
		if c.Reason == journal.ReasonNotStarted || c.Reason == journal.ReasonNotTold {
			r.Words = "Never began"
		}
	case journal.CallIsUnknown:
		r.Words, r.Icon, r.Tone = "Outcome unknown", "unk", ToneUnk
		if c.Resolution != nil {
			r.Words = "Outcome unknown; reconciled: " + c.Resolution.Outcome.Words()
		}
	}
	return r
}

// CallFact is a name with a sentence.
type CallFact struct {
	Name string
	Say  Phrase
}

// CallFacts are what is recorded of a call, without its payload and output.
func CallFacts(c *journal.Call, v Viewer) []CallFact {
	d := drawer{Window: Window{Viewer: v}}
	neverBegan := c.N > 0 && c.NeverRan() || c.State == journal.CallIsUnknown && UnknownCard{Call: c}.fate() == neverBorn
	var out []CallFact
	add := func(name string, parts ...any) { out = append(out, CallFact{name, Say(parts...)}) }
	add("Tool", Code(c.Tool))
	add("Effect", effectText(c.Effect, c.AttemptID != ""))
	add("Proposed", "As ", EntryOf(c.SessionID, c.ProposedSeq))
	switch {
	case c.AllowedBy == nil:
	case c.Unseen():
		add("Allowed", "By nobody. The agent didn’t ask, and didn’t say whether or when it began.")
	case c.AllowedBy.Type == journal.AllowedByAgent:
		add("Allowed", "By nobody. The agent did it without asking.")
	default:
		add("Allowed", strings.TrimPrefix(d.allowedText(*c.AllowedBy), "allowed "))
	}
	if c.DispatchedAt > 0 && !c.Unseen() {
		started := Say(AtSecond(c.DispatchedAt))
		if c.N > 1 {
			started = Say(started, ", for the "+Ordinal(c.N)+" time")
		}
		name := "Started"
		if neverBegan {
			name = "Dispatched"
		}
		add(name, started)
	}
	if c.AdoptedAt > 0 {
		add("Found still running", AtSecond(c.AdoptedAt), ", after the server was restarted")
	}
	if by := c.EndsBy(); c.State == journal.CallIsDispatched && by > 0 {
		add("Ended at the latest", AtSecond(by))
	}
	if c.EndedAt > 0 {
		name := "Ended"
		switch {
		case c.State == journal.CallIsUnknown:
			name = "Lost"
		case c.N > 0 && c.RanMS == nil: // when it ended isn't known, or it never began
			name = "Recorded"
		}
		ended := Say(AtSecond(c.EndedAt))
		if c.RanMS != nil {
			ended = Say(ended, ", after "+Took(*c.RanMS))
		}
		add(name, ended)
	}
	if c.ExitCode != nil {
		add("Exit", fmt.Sprintf("%d", *c.ExitCode))
	}
	if c.Signal != "" {
		add("Ended by", Line(c.Signal, 40))
	}
	if why := settleReason(c.Reason); why != "" {
		add("Why", why)
	}
	if c.Feedback != "" {
		add("Note with the denial", Line(c.Feedback, 2000))
	}
	if p := c.Process; p != nil && p.Host != "" {
		add("Where it ran", UnknownCard{Call: c}.where())
	}
	if r := c.Resolution; r != nil {
		add("Reconciled", d.whoDid(r.By)+" recorded “"+r.Outcome.Words()+"” at ", AtSecond(r.At), ".")
	}
	return out
}
