package components

import (
	"strings"

	"holdfast/journal"
)

// Group is where a list puts a session (ux §5.2).
type Group string

// The groups of the list, in their order.
const (
	GroupNeeds   Group = "Needs you"
	GroupRunning Group = "Running"
	GroupReview  Group = "To look at" // complete, or ended before that
	GroupEarlier Group = "Earlier"
)

// groupNames are the groups as people read them.
var groupNames = map[journal.Group]Group{
	journal.GroupNeeds: GroupNeeds, journal.GroupRunning: GroupRunning, journal.GroupReview: GroupReview, journal.GroupEarlier: GroupEarlier,
}

// Group is where the list shows it.
func (s Session) Group() Group { return groupNames[s.State.Group(s.Claim, s.Now)] }

// RowDetail is the line below a session's title in a list.
func (s Session) RowDetail() Phrase {
	p := Say("Agent ", Code(s.State.Agent), ", ", Plural(int(s.LastSeq), "entry"))
	if r := s.NeedsYou(); r.Key != string(journal.NeedsNone) && r.Key != string(journal.NeedsReview) {
		return Say(p, ", ", Word{Text: r.Words, Strong: true})
	}
	switch {
	case s.agentAdopted() && s.Claim == nil:
		p = Say(p, ", no server follows the agent just now")
	case s.State.Adopts() && s.Claim == nil:
		p = Say(p, ", no server follows its command just now")
	}
	switch {
	case s.unfinished():
		p = Say(p, ", "+lowerFirst(s.howUnfinished()))
	case s.State.Needs() == journal.NeedsReview: // the words of its own page
		p = Say(p, ", ", strings.ToLower(s.NeedsYou().Words))
	}
	if n := len(s.State.Admitted); n > 0 {
		return Say(p, ", "+Plural(n, "message")+" not delivered yet")
	}
	return p
}
