package components

// ForgottenCard offers what can be done about a session that its agent has forgotten.
type ForgottenCard struct {
	Session    Session
	Key, Again string // idempotency keys: to start anew, and to try the same again
	Summary    string // which the agent would be told
	Locked     bool
}

func (c ForgottenCard) bare() ForgottenCard {
	c.Key, c.Again = "", ""
	return c
}

// tryAgain reports whether the old conversation may be tried once more.
func (c ForgottenCard) tryAgain() bool { return c.Session.State.MayContinue(false) == nil }

// delivers says what comes behind the summary.
func (c ForgottenCard) delivers() string {
	if n := len(c.Session.State.Admitted); n > 0 {
		return "Then what it was not told yet is delivered, and " + Plural(n, "held message") + " after that."
	}
	return "Then what it was not told yet is delivered."
}
