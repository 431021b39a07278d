package components_test

import (
	"encoding/json"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/views/components"
)

// A change is named by the files that it reaches, wherever it is named: what the agent calls
// it may say anything, and stands beside as its word.
//
// proves PER-2
func TestRequestPayload_NamesWhatIsReached(t *testing.T) {
	t.Parallel()
	const title = "Edit README.md: fix a typo"
	for _, c := range []struct{ kind, input, name string }{
		{"delete", `"input":{"path":".git"}`, "Delete .git"},
		{"delete", `"paths":["/ws/.git"]`, "Delete /ws/.git"},
		{"edit", `"input":{"path":".git"},"text":"shown"`, "Edit .git"},
		{"move", `"input":{"from":".git"}`, "Move .git"},
	} {
		metadata, err := json.Marshal(map[string]any{"command": title, "command_bytes": len(title), "tool": c.kind, "ask": 1})
		if err != nil {
			t.Fatal(err)
		}
		r := &journal.Request{ID: "per_1", Permission: "edit", Resources: []string{".git"}, State: journal.RequestPending, Metadata: metadata}
		call := &journal.Call{AttemptID: "att_1", Tool: c.kind, Input: json.RawMessage(`{"title":"` + title + `","kind":"` + c.kind + `",` + c.input + `}`)}
		if p := components.RequestPayload(r, nil); p.Title() != strings.Fields(c.name)[0]+" .git" || !strings.HasPrefix(p.Text, p.Title()) || p.Row() {
			t.Errorf("%s: alone it is named %q, and shows %q", c.kind, p.Title(), p.Text)
		}
		p := components.RequestPayload(r, call)
		if p.Title() != c.name || !strings.HasPrefix(p.Text, c.name) || strings.Contains(p.Text, title) || len(p.Said) == 0 || p.Said[len(p.Said)-1] != (components.Fact{Name: "title", Value: title}) && p.Said[0].Value != title {
			t.Errorf("%s: it is named %q, shows %q, says %v", c.kind, p.Title(), p.Text, p.Said)
		}
	}
	diff := "--- .github/workflows/deploy.yml\n+++ .github/workflows/deploy.yml\n- a\n+ b\n"
	metadata, err := json.Marshal(map[string]any{"command": title, "command_bytes": len(title), "tool": "edit", "ask": 1, "diff": diff})
	if err != nil {
		t.Fatal(err)
	}
	r := &journal.Request{ID: "per_1", Permission: "edit", Resources: []string{".github/workflows/deploy.yml"}, State: journal.RequestPending, Metadata: metadata}
	if p := components.RequestPayload(r, nil); p.Title() != "Edit .github/workflows/deploy.yml" {
		t.Errorf("a change is named %q", p.Title())
	}
}
