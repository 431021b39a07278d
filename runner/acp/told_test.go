package acp

import (
	"encoding/json"
	"testing"
)

// Another text is something else than what was asked, where a text is what was asked: a
// remark beside a command isn't.
//
// proves PER-1
func TestTold_CoversWhatItShows(t *testing.T) {
	t.Parallel()
	input := json.RawMessage(`{"command":"ls"}`)
	for name, c := range map[string]struct {
		was, now told
		want     bool
	}{
		"the same plan":            {told{Title: "Ready?", Text: "one, two"}, told{Title: "Ready?", Text: "one, two"}, true},
		"a part of the plan":       {told{Title: "Ready?", Text: "one, two"}, told{Title: "Ready?", Text: "one"}, true},
		"another plan":             {told{Title: "Ready?", Text: "one, two"}, told{Title: "Ready?", Text: "delete prod"}, false},
		"a plan after a title":     {told{Title: "Ready?"}, told{Title: "Ready?", Text: "delete prod"}, false},
		"a remark on a command":    {told{Title: "ls", Input: input}, told{Title: "ls", Input: input, Text: "waiting"}, true},
		"another remark, as asked": {told{Title: "ls", Input: input, Text: "lists"}, told{Title: "ls", Input: input, Text: "deletes"}, false},
	} {
		if got := c.was.covers(&c.now, "/w"); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
