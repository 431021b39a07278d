package components

import "holdfast/journal"

// Runbook is the agent that is built in: Holdfast runs its steps itself, so it can't do
// anything that isn't asked.
const Runbook = "runbook"

// PermissionsHold says what the permissions of the session hold for; "": for all that its agent does.
func (s Session) PermissionsHold() string {
	if s.State.Agent == Runbook || s.State.Agent == "" {
		return ""
	}
	return "for what the agent asks; what it doesn’t ask for it does, and the journal says so"
}

// deniedWords say what a denial does: a runbook has no one to tell why, so its step fails.
func (c DecisionCard) deniedWords() string {
	const plain = "Denied without a note, the turn ends. "
	switch c.Agent {
	case "":
		return plain + "Denied with one, only this call is refused."
	case Runbook:
		return plain + "Denied with one, this step counts as failed: the turn ends, unless the mission says that it goes on after this step."
	}
	return plain + "Denied with one, only this call is refused, and the agent is told why."
}

// answersAs says what the agent calls the answers that the buttons give, in its own words,
// where those aren't the buttons'; "": they are.
func (c DecisionCard) answersAs() string {
	const as = " reaches the agent as its answer "
	once, reject := journal.Quote(c.Payload.Names[0], 200), journal.Quote(c.Payload.Names[1], 200)
	switch names := c.Payload.Names; {
	case names[0] != "" && names[1] != "":
		return "Allow once" + as + once + ", Deny as " + reject + "."
	case names[0] != "":
		return "Allow once" + as + once + "."
	case names[1] != "":
		return "Deny" + as + reject + "."
	}
	return ""
}

// notAgain says that nothing is repeated, and who might.
func (c UnknownCard) notAgain() string {
	if c.agentsOwn() {
		return "The server has nothing run again. The agent goes on when you have answered, and is told what you found."
	}
	return "It was not run again, and will not be unless you say so."
}

// DeniedHere says what a denial does where no note can be written.
const DeniedHere = "What you deny here, without a note, ends its turn; behind Details there is room for one."

// noteWords say what becomes of a note.
func (c DecisionCard) noteWords() string {
	const plain = "It is kept in the journal with either answer."
	if c.Agent == Runbook {
		return plain + " A runbook doesn’t read it."
	}
	return plain + " If you deny with it, the agent is told why."
}
