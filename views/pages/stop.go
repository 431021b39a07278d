package pages

import "holdfast/views/components"

// Stop is the form that confirms a stop.
type Stop struct {
	Frame
	S   components.Session
	Key string
}

// AtSafePoint says when a stop at the next safe point comes, and what it does.
func (p Stop) AtSafePoint() string {
	switch {
	case len(p.S.State.Pending) > 0:
		return "What runs now is finished first. Until then you can decide what is asked; then it is cancelled, and the agent is told to stop."
	case p.S.AnswersWhole():
		return "This agent has no safe point before the end of its answer, unless it asks you while nothing else of it runs: then what it asks is cancelled, and it is told to stop. Until then it finishes what it is at, and may begin more."
	case p.S.State.Unknowns() > 0:
		return "What runs now is finished first."
	}
	return "What runs now is finished first. Nothing is left uncertain."
}

// Unknown says what a stop does not settle; "" if there is nothing.
func (p Stop) Unknown() string {
	switch n := p.S.State.Unknowns(); n {
	case 0:
		return ""
	case 1:
		return "One outcome is not known. Stopping doesn’t settle it, and runs nothing again: it waits for your word, and the session goes on only after that."
	default:
		return components.UpperFirst(count(n)) + " outcomes are not known. Stopping doesn’t settle them, and runs nothing again: they wait for your word, and the session goes on only after that."
	}
}

// Cancels says what becomes of what people are asked.
func (p Stop) Cancels() string { return components.CancelledDecisions(len(p.S.State.Pending)) }
