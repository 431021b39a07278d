package pages

import (
	"cmp"
	"strings"

	"holdfast/journal"
	"holdfast/views/components"
)

// Request is one request on its own page.
type Request struct {
	Frame
	S       components.Session
	Card    components.DecisionCard
	Call    *journal.Call
	Anew    bool               // its agent has described the call anew since, and the card shows what was asked
	Entries []components.Entry // the last ones
}

// changedSince is said of a request whose call isn't what it was.
const changedSince = "The agent has described its call anew since it was asked. So what stands here is what the request itself holds: the command or the name of the call, and the beginning of a long one or of its change. All that the agent had told then is in the journal, as it stands in the export of the session."

// describedAnew is said where all of that is at hand.
const describedAnew = "The agent has described its call anew since. What stands here is all that was asked then."

// Names is what the page is called: that it is a decision, unless its prefix says
// so, which of its call's, and the session.
func (p Request) Names() string {
	apart := p.Card.Apart()
	if p.Prefix != "" && p.S.State.Needs() == journal.NeedsDecision {
		return cmp.Or(strings.TrimPrefix(apart, ": "), p.Card.Asks()) + ": " + p.S.State.Title
	}
	return "Decision" + apart + ": " + p.S.State.Title
}

// Answered says what became of a request that isn't pending any more.
func (p Request) Answered() components.Phrase {
	r := p.Card.Request
	switch {
	case r.State == journal.RequestPending:
		return nil
	case r.Ended():
		return components.Say("This request ended without an answer: " + cmp.Or(journal.WhyEnded(r.Reason), string(r.State)) + ". Nothing was run because of it.")
	}
	did := "denied this"
	if r.Reply != journal.ReplyReject {
		did = "allowed this once"
	}
	who := p.Viewer.Who(r.By)
	return components.Say(components.UpperFirst(who)+" "+did+" at ", components.AtSecond(r.At), ".")
}
