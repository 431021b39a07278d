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
	Entries []components.Entry // the last ones
}

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
		return components.Say("This request ended without an answer: " + cmp.Or(r.Reason, string(r.State)) + ". Nothing was run because of it.")
	}
	did := "denied this"
	if r.Reply != journal.ReplyReject {
		did = "allowed this once"
	}
	who := p.Viewer.Who(r.By)
	return components.Say(components.UpperFirst(who)+" "+did+" at ", components.AtSecond(r.At), ".")
}
