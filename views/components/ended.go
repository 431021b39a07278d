package components

import (
	"fmt"
	"time"

	"holdfast/journal"
)

// endedDetail says how the last turn ended, and what is held because of it (PRO-5).
func (s Session) endedDetail(state journal.ExecutionState) Phrase {
	t := s.State.Turn
	p := Say("Ended ", At(t.EndedAt))
	switch state {
	case journal.StateLimitReached:
		p = Say(limitValue(t.Limit, s.State.TurnLimits())+" at ", At(t.EndedAt), ". Work up to ", EntryLink(t.EndedSeq), " is kept.")
	case journal.StateFailed:
		p = Say(Brief(orElse(t.Reason, "The turn failed.")), " See ", EntryLink(t.EndedSeq), ".")
	default:
		p = Say(p, stopReason(t), ".")
	}
	if n := len(s.State.Admitted); n > 0 && s.State.Held {
		return Say(p, " ", Plural(n, "message"), areHeld(n))
	}
	return p
}

func areHeld(n int) string {
	if n == 1 {
		return " is held."
	}
	return " are held."
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func (s Session) stoppedWords() string {
	t := s.State.Turn
	if t.Outcome == journal.Interrupted {
		return "Stopped by the server"
	}
	return "Stopped by " + s.Viewer.Who(t.EndedBy)
}

func stopReason(t *journal.Turn) string {
	switch {
	case t.Outcome == journal.Interrupted:
		return ", because the server was stopped"
	case t.Reason == "rejected":
		return ", because a request was rejected"
	case t.Reason == "stay":
		return ", after an outcome was reconciled"
	}
	return ""
}

func blockedWords(b *journal.BlockInfo) string {
	switch b.Cause {
	case journal.BlockAgent:
		return "Waiting for an agent"
	case journal.BlockWorkspace:
		return "Waiting for a workspace"
	case journal.BlockRecovery:
		return "Waiting for your word"
	case journal.BlockDisk:
		return "Waiting for room on the disk"
	case journal.BlockSignIn:
		return "Waiting for the agent to be signed in"
	case journal.BlockProcess:
		return "Waiting for the agent’s process to end"
	case journal.BlockShim:
		return "Waiting for an answer about a command"
	}
	return "Waiting for " + Line(string(b.Cause), 40)
}

func limitNoun(limit string) string {
	switch limit {
	case "steps":
		return "step"
	case "wall_s":
		return "time"
	case "tokens":
		return "token"
	case "cost_usd":
		return "cost"
	}
	return Line(limit, 40)
}

func limitValue(limit string, l journal.Limits) string {
	switch limit {
	case "steps":
		return Plural(l.Steps, "step")
	case "wall_s":
		return Took((time.Duration(l.WallS) * time.Second).Milliseconds())
	case "tokens":
		return fmt.Sprintf("%d tokens", l.Tokens)
	case "cost_usd":
		return fmt.Sprintf("%.2f USD", l.CostUSD)
	}
	return "The limit"
}
