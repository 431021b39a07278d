package journal

// Group is where a list puts a session: by what it needs, then by what it does.
type Group string

// The groups; GroupAny is no group.
const (
	GroupAny     Group = ""
	GroupNeeds   Group = "needs"
	GroupRunning Group = "running"
	GroupReview  Group = "review"
	GroupEarlier Group = "earlier"
)

// Groups are all of them, in the order of a list that has those first that need
// their owner.
func Groups() []Group { return []Group{GroupNeeds, GroupRunning, GroupReview, GroupEarlier} }

// Urgent reports whether nothing goes on until the owner has answered.
func (n Needs) Urgent() bool {
	return n == NeedsReconcile || n == NeedsDecision || n == NeedsBlocked
}

// Group decides it from the other two readings (semantics §11), so that a list
// never says of a session what its page doesn't.
func (s *State) Group(c *Claim, now int64) Group {
	needs := s.Needs()
	if needs.Urgent() {
		return GroupNeeds
	}
	switch is, _ := s.Execution(c, now); is {
	case StateStopping, StateUnconfirmed, StateRunning, StateRetrying, StateQueued:
		return GroupRunning
	default:
	}
	if needs == NeedsReview {
		return GroupReview
	}
	return GroupEarlier
}
