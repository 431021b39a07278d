package acp

import (
	"slices"

	"holdfast/runner/acp/wire"
)

// asksAhead tells of each message whether the call that it is about asks later whether
// it may run, before it ends: then it doesn't run before, whatever else the agent says
// of it, unless it puts something out before it asks.
func asksAhead(messages []wire.Message) []bool {
	out := make([]bool, len(messages))
	if !slices.ContainsFunc(messages, func(m wire.Message) bool { return m.Method == wire.MethodRequestPermission }) {
		return out
	}
	asks, began := map[string]bool{}, putsOut(messages)
	for i, m := range slices.Backward(messages) {
		switch m.Method {
		case wire.MethodRequestPermission:
			if p, err := wire.Decode[wire.PermissionParams](m.Params); err == nil {
				asks[p.ToolCall.ToolCallID] = true
			}
		case wire.MethodSessionUpdate:
			_, u := wire.ParseUpdate(m.Params)
			if t, ok := u.(wire.ToolCall); ok {
				asks[t.ToolCallID] = asks[t.ToolCallID] && !ends(&t) && !began[i]
				out[i] = asks[t.ToolCallID]
			}
		}
	}
	return out
}

// putsOut tells of each message whether a call puts something out with it that was said to
// run in one before: it has begun.
func putsOut(messages []wire.Message) []bool {
	out, runs := make([]bool, len(messages)), map[string]bool{}
	for i, m := range messages {
		if m.Method != wire.MethodSessionUpdate {
			continue
		}
		_, u := wire.ParseUpdate(m.Params)
		t, ok := u.(wire.ToolCall)
		if !ok {
			continue
		}
		if t.Status != nil && *t.Status != "in_progress" {
			runs[t.ToolCallID] = false
			continue
		}
		out[i] = runs[t.ToolCallID] && puts(&t)
		runs[t.ToolCallID] = runs[t.ToolCallID] || t.Status != nil
	}
	return out
}

// puts reports whether an update shows what would be output of a call that runs.
func puts(u *wire.ToolCall) bool { return text(u.Content) != "" || len(u.RawOutput) > 0 }
