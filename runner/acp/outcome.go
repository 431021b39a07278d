package acp

import (
	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp/wire"
)

// answeredError is the outcome of an attempt that was answered with an error.
const answeredError = "error"

// resultOf is what the turn ends with whose attempt was answered so.
func resultOf(a *journal.AttemptSettled) *runner.Result {
	if a.Outcome == answeredError {
		if a.Error == journal.UnreadAnswer {
			return &runner.Result{Failed: "The agent answered its message, and the answer can't be read."}
		}
		return &runner.Result{Failed: "The agent answered with an error: " + journal.Quote(a.Error, mostError) + "."}
	}
	return &runner.Result{Failed: failed(a.Outcome)}
}

// concluded gives the result of a turn whose attempt is answered and which was not
// ended: a server was lost in between. So is one that continues a turn of which nothing
// was left. nil: there is something to send.
func concluded(t *runner.Turn) *runner.Result {
	sent := t.Sent()
	if t.Untold() || sent.Settled == nil || (sent.TurnID != t.ID() && !t.State().Turn.Done) || t.Rejected() {
		return nil
	}
	return resultOf(sent.Settled)
}

// mostTokens bounds what one answer may claim to have used: what claims more, or less
// than nothing, is no measure.
const mostTokens = 1 << 40

func usage(u *wire.Usage) journal.Usage {
	var out journal.Usage
	if u != nil {
		out.InputTokens, out.OutputTokens = tokens(u.InputTokens), tokens(u.OutputTokens)
	}
	return out
}

func tokens(n *int64) int64 {
	if n == nil {
		return 0
	}
	return min(max(*n, 0), mostTokens)
}

// failed says why a turn that ended so did not do what was asked; "": it may have.
func failed(reason string) string {
	switch reason {
	case wire.StopEndTurn:
		return ""
	case wire.StopMaxTokens:
		return "The agent's model has reached the most that it may say. What it did before stands."
	case wire.StopMaxTurnRequests:
		return "The agent has reached the most requests that it makes in one turn. What it did before stands."
	case wire.StopRefusal:
		return "The agent refuses to go on."
	case wire.StopCancelled:
		return "The agent says that its turn was cancelled. Nobody here asked for that."
	}
	return "The agent ended its turn for a reason that isn't known here: " + journal.Quote(reason, mostName) + "."
}
