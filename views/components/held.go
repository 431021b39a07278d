package components

import (
	"net/url"
	"strconv"

	"holdfast/journal"
)

// needsSignIn reports whether the session waits for its agent to be signed in.
func needsSignIn(s Session) bool {
	return s.State.Blocked != nil && s.State.Blocked.Cause == journal.BlockSignIn
}

// blockedBy reports whether that is what the session waits for.
func (s Session) blockedBy(cause journal.BlockCause) bool {
	return s.State.Blocked != nil && s.State.Blocked.Cause == cause
}

// staysUp reports whether the agent's process was to be ended, and may still run (LEA-12).
func (s Session) staysUp() bool { return s.blockedBy(journal.BlockProcess) }

// silent reports whether what keeps a command doesn't answer (REC-10).
func (s Session) silent() bool { return s.blockedBy(journal.BlockShim) }

// OnceGone says when a session that waits goes on by itself.
func (s Session) OnceGone() string {
	switch {
	case s.staysUp():
		return "Nothing is lost. It goes on by itself once that process has ended."
	case s.silent():
		return "Nothing is lost. It goes on by itself once there is an answer."
	}
	return "Nothing is lost. It goes on by itself once this is there again."
}

// storeKey is where a key for the session's agent is stored.
func storeKey(s Session) string {
	return "/settings/credentials?" + url.Values{"agent": {s.State.Agent}}.Encode() + "#store"
}

func heldTitle(s Session) string {
	switch limit := raise(s); {
	case needsSignIn(s):
		return "Sign the agent in, then continue"
	case s.State.Blocked != nil:
		return "This session waits for your word"
	case limit.Name != "":
		return "Reached the " + limitNoun(s.State.Turn.Limit) + " limit at a safe point"
	case len(s.State.Admitted) > 0:
		return "The queue is held"
	}
	return s.howUnfinished()
}

// AboutAgent leads to what the session's agent is and can.
func (s Session) AboutAgent() Phrase {
	return Say(Link(s.AgentHref, "Look at the agent "+Line(s.State.Agent, 60)))
}

// agentTroubled reports whether something about the agent may be what keeps the
// session from going on, so that a look at it helps.
func agentTroubled(s Session) bool {
	t := s.State.Turn
	failed := t != nil && !t.Open && t.Outcome == journal.Failed
	signIn := s.State.Blocked != nil && s.State.Blocked.Cause == journal.BlockSignIn
	return s.AgentHref != "" && (failed || signIn)
}

func continueLabel(s Session) string {
	if raise(s).Name != "" {
		return "Raise the limit and continue"
	}
	return "Continue"
}

func heldText(s Session) string {
	n := len(s.State.Admitted)
	if needsSignIn(s) {
		return "What was asked is kept. Continue tries again, once the agent is signed in."
	}
	if s.State.Blocked != nil {
		return "It was not tried again by itself, so that it can’t take the server down for ever. Continue tries once more."
	}
	if s.wasDone() {
		return "Nothing of it is left. Continue ends the hold" + heldNext(n)
	}
	text := "Continue takes the unfinished turn up where it ended"
	if t := s.State.Turn; t != nil && t.Reason == journal.ReasonRejected {
		text = "Continue goes on with the turn, without what was denied"
	}
	if n > 0 {
		text += ", then delivers " + Plural(n, "held message")
	}
	text += ". A new message starts a new turn instead"
	if n > 0 {
		text += ", after the held ones"
	}
	return text + "."
}

// heldNext says what *continue*, and a new message, do to what waits.
func heldNext(n int) string {
	if n == 0 {
		return ". So does a new message, which starts the next turn."
	}
	return ", and delivers " + Plural(n, "held message") + ". So does a new message, which comes after " + map[bool]string{true: "it", false: "them"}[n == 1] + "."
}

// LimitField is a field for one bound of a turn or a session.
type LimitField struct{ Name, Label, Hint, Value string }

// RaiseTyped is what was typed into the field of a limit, and why it was refused.
type RaiseTyped struct{ Value, Problem string }

// Raises names the field of the limit that *continue* raises here; "": it raises none.
func (s Session) Raises() string { return raise(s).Name }

// raise is the field of the limit that ended the turn, with twice its value as an
// offer; without a name if no limit did.
func raise(s Session) LimitField {
	t := s.State.Turn
	if t == nil || t.Open || t.Outcome != journal.LimitReach || s.State.Blocked != nil {
		return LimitField{}
	}
	l := s.State.TurnLimits()
	was := "It was " + limitValue(t.Limit, l) + "."
	switch t.Limit {
	case "steps":
		return LimitField{"steps", "Steps that the turn may take", was, strconv.Itoa(2 * l.Steps)}
	case "wall_s":
		return LimitField{"wall_h", "Hours that the turn may run", was, Hours(2 * l.WallS)}
	case "tokens":
		return LimitField{"tokens", "Tokens that the session may use", was, strconv.FormatInt(2*l.Tokens, 10)}
	case "cost_usd":
		return LimitField{"cost_usd", "US dollars that the session may cost", was, strconv.FormatFloat(2*l.CostUSD, 'f', 2, 64)}
	}
	return LimitField{}
}

// Hours are seconds as a form shows them.
func Hours(seconds int64) string {
	return strconv.FormatFloat(float64(seconds)/3600, 'f', -1, 64)
}

// LimitFields are the bounds that mean something, empty; those of a model only
// where one is called.
func LimitFields(model bool) []LimitField {
	d := journal.DefaultLimits()
	out := []LimitField{
		{Name: "steps", Label: "Steps of a turn", Hint: "Empty: " + strconv.Itoa(d.Steps) + "."},
		{Name: "wall_h", Label: "Hours that a turn may run", Hint: "Empty: " + Hours(d.WallS) + ". Waiting for you doesn’t count."},
	}
	if model {
		out = append(out,
			LimitField{Name: "tokens", Label: "Tokens of the session", Hint: "Empty: no limit. For agents that call a model."},
			LimitField{Name: "cost_usd", Label: "Cost of the session in US dollars", Hint: "Empty: no limit. For agents that call a model."})
	}
	return out
}
