package journal

import (
	"time"
)

// Limits are the bounds of one turn, counted from the journal over all its
// executions (COO-5). Zero means: off, or, in a continuation, as before.
type Limits struct {
	Steps   int     `json:"steps,omitempty"`
	WallS   int64   `json:"wall_s,omitempty"`
	Tokens  int64   `json:"tokens,omitempty"`
	CostUSD float64 `json:"cost_usd,omitempty"`
}

// The bounds that hold unless a continuation raises them.
const (
	DefaultSteps      = 100
	DefaultWall       = 4 * time.Hour
	DefaultCallTime   = 30 * time.Minute
	DefaultAttempts   = 3
	DefaultOutput     = 10 << 20 // bytes of a call's output
	MaxRecoveries     = 3        // REC-11
	maxLimit          = 1 << 40
	maxCostUSD        = 1e9
	maxContinuedSteps = 1_000_000
)

// DefaultLimits are the bounds of a turn.
func DefaultLimits() Limits {
	return Limits{Steps: DefaultSteps, WallS: int64(DefaultWall / time.Second)}
}

// Raise gives l with what r names put in its place.
func (l Limits) Raise(r *Limits) Limits {
	if r == nil {
		return l
	}
	if r.Steps > 0 {
		l.Steps = r.Steps
	}
	if r.WallS > 0 {
		l.WallS = r.WallS
	}
	if r.Tokens > 0 {
		l.Tokens = r.Tokens
	}
	if r.CostUSD > 0 {
		l.CostUSD = r.CostUSD
	}
	return l
}

// Check refuses limits that make no sense; whether one that is zero was given at
// all, who asks must know. Code: unprocessable.
func (l Limits) Check() error {
	if l.Steps < 0 || l.Steps > maxContinuedSteps || l.WallS < 0 || l.WallS > maxLimit || l.Tokens < 0 || l.Tokens > maxLimit || l.CostUSD < 0 || l.CostUSD > maxCostUSD {
		return Errorf(Unprocessable, "A limit must be a positive number.").Typed("bad-limit")
	}
	return nil
}

// CallTime is how long a call may run that asks for a time in seconds; 0: it asks
// for none. bounded reports that this is the bound of every call, at which its
// turn ends (COO-5), and not the call's own limit, at which it fails.
func CallTime(timeoutS int64) (limit time.Duration, bounded bool) {
	if timeoutS <= 0 || timeoutS > int64(DefaultCallTime/time.Second) {
		return DefaultCallTime, true
	}
	return time.Duration(timeoutS) * time.Second, false
}

// EndsBy is when a call that was dispatched is ended unless it ends before; 0: it
// wasn't. The input must be whole: a reference to it names no limit.
func (c *Call) EndsBy() int64 {
	if c.DispatchedAt == 0 {
		return 0
	}
	var asks struct {
		TimeoutS int64 `json:"timeout_s"`
	}
	if !ReadInput(c.Input, &asks) {
		asks.TimeoutS = 0 // a tool's input may be anything
	}
	limit, _ := CallTime(asks.TimeoutS)
	return c.DispatchedAt + limit.Milliseconds()
}
