package components

import (
	"fmt"
	"strings"

	"holdfast/journal"
)

// callEntry draws what happened to a call, from intent to outcome.
func (d *drawer) callEntry(ev *journal.Event, body journal.Body) (Entry, bool) {
	name := d.callName(journal.CallOf(body))
	switch b := body.(type) {
	case *journal.CallProposed:
		what := &journal.Call{Input: b.Input, AttemptID: deref(b.AttemptID), Effect: b.Effect}
		if before, ok := d.Before[b.CallID]; ok { // what it says since then is an entry of its own
			what.Input = before
		} else if c := d.Calls[b.CallID]; c != nil { // it has the whole of a long input
			what = c
		}
		e := Entry{Class: "tool", Icon: "term", Title: proposedTitle(b.Tool, CallPayload(what)), Note: Say(effectText(b.Effect, false))}
		if b.AttemptID != nil {
			e.What, e.Note = newCallWhat(b.CallID, b.Tool, ev.Seq, what.Effect, CallPayload(what)), nil
			switch b.Tool {
			case "edit", "delete", "move":
				e.Icon = "edit"
			case "read", "search":
				e.Icon = "file"
			}
		}
		return e, true
	case *journal.CallDescribed: // the row of its intent says it, or its own page
		return Entry{Piece: true}, true
	case *journal.CallContradicted:
		return contradicted(b, d.Calls[b.CallID], name, d.Texts), true
	case *journal.CallOutput: // its call's box shows it
		return Entry{Piece: true}, true
	case *journal.CallDispatched:
		e := Entry{Class: "minor", Icon: "run", Title: Say("Started ", name), Note: Say(d.allowedText(b.AllowedBy))}
		if b.Since > 0 {
			e.Note = Say(e.Note, ", at ", AtSecond(b.Since))
		}
		if b.AllowedBy.Unseen {
			e.Title = Say("May have begun: ", name)
		}
		if b.N > 1 {
			e.Note = Say("for the "+Ordinal(b.N)+" time, ", e.Note)
		}
		if c := d.Calls[b.CallID]; c != nil && c.State == journal.CallIsDispatched && c.N == b.N {
			live := NewLiveOutput(c, d.Outputs[b.CallID])
			e.Live = &live
		}
		return e, true
	case *journal.CallAdopted:
		return adoptedEntry(b, d.Calls[b.CallID], name), true
	case *journal.CallSettled:
		e := d.settled(b, name, ev.ExecutionID == "")
		e.Output = d.output(b.CallID, b.State == journal.CallFailed)
		return e, true
	case *journal.CallUnknown:
		e := Entry{Class: "unk", Icon: "unk", Title: Say("The outcome of ", name, " was lost"), Lines: []Phrase{lostLine(b, d.Calls[b.CallID])}}
		e.Output = d.output(b.CallID, true)
		return e, true
	case *journal.CallEvidence:
		title := Say("Late evidence about ", name)
		if b.Evidence.Type == journal.EvidenceExitRecord {
			title = Say("The record of how ", name, " ended came late")
		}
		return Entry{Icon: "server", Title: title, Lines: []Phrase{Say(Line(b.Evidence.Text, 1000))}}, true
	case *journal.CallResolved:
		e := Entry{Icon: "person", Of: b.CallID, Title: Say(d.whoDid(b.By)+" reconciled ", name, ": "+b.Outcome.Words()), Note: Say(thenText(b.Then))}
		e.prose(b.Evidence)
		return e, true
	}
	return Entry{}, false
}

// callName names a call in a sentence, by what it runs.
func (d *drawer) callName(id string) Word {
	c := d.Calls[id]
	if c == nil {
		return Word{Text: "a call"}
	}
	return Code(NewCallTitle(c.Tool, CallPayload(c)))
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func proposedTitle(tool string, p Payload) Phrase {
	return Say("The agent proposed ", Code(NewCallTitle(tool, p)))
}

// CallWhat is what an agent says of a call of its own, in the row of its intent:
// it may say more of it later.
type CallWhat struct {
	CallID string
	Title  Phrase
	Effect Phrase
	Diff   *Diff
}

func newCallWhat(id, tool string, seq int64, e journal.Effect, p Payload) *CallWhat {
	return &CallWhat{CallID: id, Title: proposedTitle(tool, p), Effect: Say(effectText(e, true)), Diff: p.Diff.bounded(rowDiffLines, "change-"+id, ", entry "+Number(seq), CallPath(id))}
}

// NewCallWhat is what the agent has said so far of a call.
func NewCallWhat(c *journal.Call) CallWhat {
	return *newCallWhat(c.ID, c.Tool, c.ProposedSeq, c.Effect, CallPayload(c))
}

// NewCallTitle names a call in one line: its command, or its tool.
func NewCallTitle(tool string, p Payload) string {
	if tool == "shell" || tool == "" || p.Agents {
		return p.Title()
	}
	return Line(tool, 60) + " " + p.Title()
}

// effectText says a call's class in words. That one only reads is an agent's word, as far
// as the server can see nothing else; of its own calls the server knows.
func effectText(e journal.Effect, agents bool) string {
	switch e {
	case journal.EffectRead:
		if agents {
			return "the agent says that it only reads"
		}
		return "it only reads"
	case journal.EffectIdempotent:
		return "it may be run again"
	case journal.EffectEffect:
	}
	return "it may change something, so it is never repeated by itself"
}

func (d *drawer) allowedText(a journal.AllowedBy) string {
	switch a.Type {
	case journal.AllowedByPerson:
		if a.ID == "" {
			return "allowed by a person"
		}
		return "allowed by " + d.Viewer.Who(a.ID)
	case journal.AllowedByPreset:
		return "allowed by the preset " + Line(a.Text, 120)
	case journal.AllowedByGrant:
		return "allowed by a remembered answer " + Line(a.Text, 120)
	case journal.AllowedByAgent:
		if a.Unseen {
			return "the agent asked nobody, and didn’t say when it began"
		}
		return "the agent did it without asking"
	case journal.AllowedByRule:
	}
	return "allowed by the rule " + Line(a.Text, 120)
}

// lostLine says what is certain of a call whose outcome was lost.
func lostLine(b *journal.CallUnknown, c *journal.Call) Phrase {
	if c != nil && c.Unseen() {
		return Say("Nobody saw whether it began; no result was recorded. It was not repeated.")
	}
	if b.Since == 0 {
		return Say("It was started; no result was recorded. It was not repeated.")
	}
	return Say("It was started ", AtSecond(b.Since), "; no result was recorded. It was not repeated.")
}

// settled draws how a call ended. One that no execution has settled ended while
// nobody followed it, and its own record was found.
func (d *drawer) settled(b *journal.CallSettled, name Word, byRecord bool) Entry {
	c := d.Calls[b.CallID]
	byRecord = byRecord && (b.State == journal.CallSucceeded || b.State == journal.CallFailed)
	var note []string
	if b.ExitCode != nil {
		note = append(note, fmt.Sprintf("exit %d", *b.ExitCode))
	}
	if b.Signal != "" {
		note = append(note, "ended by "+Line(b.Signal, 20))
	}
	if c != nil && c.RanMS != nil {
		note = append(note, Took(*c.RanMS))
	}
	if c != nil && c.AllowedBy != nil && b.State != journal.CallIsRefused {
		note = append(note, d.allowedText(*c.AllowedBy))
	}
	e := Entry{Class: "tool", Icon: "term", Note: Say(strings.Join(note, ", "))}
	switch b.State {
	case journal.CallSucceeded:
		e.Title = Say("Ran ", name)
	case journal.CallFailed:
		e.Icon, e.Class = "fail", "bad"
		e.Title = Say("Failed: ", name)
	case journal.CallIsRefused:
		e.Icon = "stop"
		e.Title = Say("Not run: ", name)
	default:
		e.Icon = "stop"
		e.Title = Say("Cancelled: ", name)
	}
	if byRecord {
		e.Lines = []Phrase{Say("It ended while no server followed it; its own record says how.")}
	}
	if b.State == journal.CallCancelled && c != nil && c.DispatchedAt == 0 && b.Reason != journal.ReasonNotStarted && b.Reason != journal.ReasonNotTold {
		e.Lines = []Phrase{Say("It was not started.")}
	} else if why := settleReason(b.Reason); why != "" {
		e.Lines = append(e.Lines, Say(why))
	}
	return e
}

func settleReason(reason string) string {
	switch reason {
	case "":
		return ""
	case "rejected":
		return "The request for it was denied."
	case "timeout":
		return "It ran longer than it may, and was ended."
	case "interrupted":
		return "It was ended, because a stop was asked for."
	case "output_failed":
		return "It was ended, because its output could not be recorded."
	case "start_failed":
		return "It could not be started."
	case "orphaned":
		return "It was ended, because no server followed it for too long."
	case journal.ReasonNotStarted:
		return neverBegan
	case journal.ReasonNotTold:
		return "It never began: the agent had closed its input, so the answer did not reach it. Nothing of it ran."
	}
	return Line(reason, 500)
}

// output is what the row of a call's end shows of its output; nil if there is none.
func (d *drawer) output(call string, failed bool) *Output {
	c := d.Calls[call]
	if c == nil || (c.OutputBytes == 0 && d.Outputs[call].Total == 0) {
		return nil
	}
	o := outputOf(c, "out-"+call, d.Outputs[call], failed)
	return &o
}
