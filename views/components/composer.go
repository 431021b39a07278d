package components

import "holdfast/journal"

// Composer is the form for the next message.
type Composer struct {
	Session  Session
	Text     string // what was typed before and not sent
	KeptAt   int64  // when it was kept; 0: it wasn't
	Replaced string // another form's text, which the kept one took the place of just now
	Key      string
	Problem  string
	Waiting  int  // messages that were not delivered yet
	Steers   bool // the agent takes text in mid-turn (PRO-4)
	Locked   bool
}

// QueueLabel and QueueHint say what the first button does.
func (c Composer) QueueLabel() string {
	if st := &c.Session.State; st.TurnOpen() || (st.Held && st.Forgotten != nil) {
		return "Queue for the next turn"
	}
	return "Start the next turn"
}

// QueueHint says what will happen to a queued message.
func (c Composer) QueueHint() string {
	st := &c.Session.State
	switch {
	case st.Unknowns() > 0:
		return "It is kept, and delivered once the unknown outcome has been reconciled."
	case st.Blocked != nil:
		return "It is kept, and delivered once the session can go on."
	case c.stopsAlone():
		return stopHolds
	case st.TurnOpen() && c.Waiting > 0:
		return "It is delivered when this turn has ended, after " + Plural(c.Waiting, "message") + " that already " + waits(c.Waiting) + "."
	case st.TurnOpen():
		return "It is delivered when this turn has ended."
	case st.Held && st.Forgotten != nil:
		return "It is kept, and delivered once a new conversation is started."
	case st.Held && c.Waiting > 0:
		return "This ends the hold: " + Plural(c.Waiting, "held message") + " will be delivered first, then this one."
	case c.Waiting > 0:
		return "It is delivered after " + Plural(c.Waiting, "message") + " that already " + waits(c.Waiting) + "."
	}
	return "It is delivered as soon as a worker is free."
}

func waits(n int) string {
	if n == 1 {
		return "waits"
	}
	return "wait"
}

// SteerLabel says what the second button does.
func (c Composer) SteerLabel() string {
	if !c.Steers {
		return "Send before the queue"
	}
	return "Steer this turn"
}

// afterTurn is said of an agent that takes no text while it works (PRO-4).
const afterTurn = "This agent takes no text while it works: it is delivered when the agent has done what it is at, before the queue."

// stopHolds is said of a message while the turn is being stopped, and for none (PRO-5).
const stopHolds = "The turn is being stopped: it is held then, until you continue."

func (c Composer) stopsAlone() bool {
	st := &c.Session.State
	return st.TurnOpen() && st.Interrupt != nil && !st.Sends()
}

// SteerHint says what will happen to a steer.
func (c Composer) SteerHint() string {
	st := &c.Session.State
	switch {
	case st.Unknowns() > 0:
		return "It is kept until the unknown outcome has been reconciled, then delivered before the queue."
	case c.stopsAlone():
		return stopHolds
	case st.Interrupt != nil:
		return "The turn is being stopped for a message: it is delivered after that, before the queue."
	case !c.Steers && len(st.Pending) > 0:
		return "It answers no request. " + afterTurn
	case !c.Steers:
		return afterTurn
	case len(st.Pending) > 0:
		return "It answers no request: it is delivered at the next safe point after you have decided."
	}
	return "It is delivered at the next safe point of this turn, between two steps."
}

// OffersStop reports whether a message can be sent with a stop of the turn here. An
// agent that takes text in mid-turn is steered, and stopped on a page of its own.
func (c Composer) OffersStop() bool { return c.Session.State.TurnOpen() && !c.Steers }

// StopAndSend is the button that stops the turn for a message.
const StopAndSend = "Stop the turn and send"

// StopLabel is what that button says.
func (c Composer) StopLabel() string {
	if c.Session.Ends() {
		return "End the turn and send"
	}
	return StopAndSend
}

// steers counts the messages that wait before the queue.
func steers(st *journal.State) (n int) {
	for _, w := range st.Admitted {
		if w.Steers() {
			n++
		}
	}
	return n
}

// StopHint says what will happen to the turn, and to a message that it is stopped for.
func (c Composer) StopHint() string {
	next := " Then your message begins the next turn, before the queue."
	st := &c.Session.State
	if n := steers(st); n > 0 {
		next = " Then the next turn begins with " + Plural(n, "message") + " sent before the queue already, and yours is the next."
	}
	switch {
	case st.Unknowns() > 0:
		return "The turn is ended. Your message is kept until the unknown outcome has been reconciled, then delivered before the queue."
	case st.Blocked != nil:
		return "The turn is ended. Your message is kept, and delivered once the session can go on."
	case st.Interrupt != nil:
		return "The turn is being stopped already." + next
	case len(st.Pending) > 0:
		return CancelledDecisions(len(st.Pending)) + next
	}
	return "What runs now is ended; what it did until then stays done." + next + " If it can’t be seen how something ended, you are asked first."
}

// CancelledDecisions says what a stop does to the n decisions that are open now, and to
// one that opens until then.
func CancelledDecisions(n int) string {
	if n > 1 {
		return Plural(n, "open decision") + " are cancelled, and nothing is run because of them."
	}
	return "An open decision is cancelled, and nothing is run because of it."
}
