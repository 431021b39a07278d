package components

import (
	"strconv"

	"holdfast/journal"
)

func heldTitle(s Session) string {
	switch {
	case s.State.Blocked != nil:
		return "This session waits for your word"
	case len(s.State.Admitted) > 0:
		return "The queue is held"
	}
	return "The turn is not finished"
}

func heldText(s Session) string {
	n := len(s.State.Admitted)
	if s.State.Blocked != nil {
		return "It was not tried again by itself, so that it can’t take the server down for ever. Continue tries once more."
	}
	text := "Continue takes the unfinished turn up where it ended"
	if n > 0 {
		text += ", then delivers " + Plural(n, "held message")
	}
	text += ". A new message starts a new turn instead"
	if n > 0 {
		text += ", after the held ones"
	}
	return text + "."
}

// raiseField is the limit that ended the turn, with twice its value as an offer.
func raiseField(s Session) (field, label, value string) {
	t := s.State.Turn
	if t == nil || t.Open || t.Outcome != journal.LimitReach || s.State.Blocked != nil {
		return "", "", ""
	}
	l := s.State.TurnLimits()
	switch t.Limit {
	case "steps":
		return "steps", "Steps that the turn may take", strconv.Itoa(2 * l.Steps)
	case "wall_s":
		return "wall_s", "Seconds that the turn may run", strconv.FormatInt(2*l.WallS, 10)
	case "tokens":
		return "tokens", "Tokens that the session may use", strconv.FormatInt(2*l.Tokens, 10)
	case "cost_usd":
		return "cost_usd", "US dollars that the session may cost", strconv.FormatFloat(2*l.CostUSD, 'f', 2, 64)
	}
	return "", "", ""
}
