package acp

import (
	"bytes"
	"encoding/json"
	"slices"

	"holdfast/runner/acp/wire"
)

// told is what a call is, for rules and people: the input of the call in the journal.
type told struct {
	Title string          `json:"title"`
	Kind  string          `json:"kind"`
	Name  string          `json:"name,omitempty"`
	Paths []string        `json:"paths,omitempty"`
	Diffs []diff          `json:"diffs,omitempty"`
	Text  string          `json:"text,omitempty"` // what it shows before it runs, a plan say
	Input json.RawMessage `json:"input,omitempty"`
}

type diff struct {
	Path string  `json:"path"`
	Old  *string `json:"old"` // nil: the file is new
	New  string  `json:"new"`
}

// with is t and what is new.
func (t told) with(u *wire.ToolCall) told {
	for from, to := range map[*string]*string{u.Title: &t.Title, u.ToolKind: &t.Kind, u.Name: &t.Name} {
		if from != nil {
			*to = *from
		}
	}
	if len(u.RawInput) > 0 && string(u.RawInput) != "{}" {
		t.Input = u.RawInput
	}
	if u.Locations != nil {
		t.Paths = nil
		for _, l := range u.Locations {
			t.Paths = append(t.Paths, l.Path)
		}
	}
	var diffs []diff
	for _, c := range u.Content {
		if d, ok := c.(wire.Diff); ok {
			diffs = append(diffs, diff{Path: d.Path, Old: d.OldText, New: d.NewText})
		}
	}
	if diffs != nil {
		t.Diffs = diffs
	}
	return t
}

// fuller is what a call was told with before it is asked for, if its request only leaves
// some of it out, as opencode's does: what is asked is all of it, and what the agent says
// of it afterwards is nothing new.
func fuller(was, now json.RawMessage) json.RawMessage {
	var before, asked map[string]json.RawMessage
	if json.Unmarshal(was, &before) != nil || json.Unmarshal(now, &asked) != nil || asked == nil {
		return now
	}
	for key, v := range asked {
		if had, ok := before[key]; !ok || !bytes.Equal(had, v) {
			return now
		}
	}
	return was
}

// tells reports whether an update says anything of what its call is.
func tells(u *wire.ToolCall) bool {
	isDiff := func(c wire.ToolContent) bool { _, ok := c.(wire.Diff); return ok }
	return u.Title != nil || u.ToolKind != nil || u.Name != nil || len(u.RawInput) > 0 || u.Locations != nil || slices.ContainsFunc(u.Content, isDiff)
}
