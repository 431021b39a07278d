package pages

import "holdfast/views/components"

// Stop is the form that confirms a stop.
type Stop struct {
	Frame
	S   components.Session
	Key string
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
