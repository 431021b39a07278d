package components_test

import (
	"encoding/json"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/views/components"
)

// Where the whole of a long input isn't at hand, what stands in its place is never shown
// as what a call would do, and nothing can be answered by it.
//
// proves JRN-6 PER-2
func TestCallPayload_OfAnInputElsewhere(t *testing.T) {
	t.Parallel()
	ref := json.RawMessage(`{"blob":"` + journal.Hash("x") + `","bytes":50000}`)
	for _, c := range []*journal.Call{{Tool: "shell", Input: ref}, {Tool: "edit", AttemptID: "att_1", Input: ref, InputSHA256: "other"}} {
		p := components.CallPayload(c)
		if said := p.Title() + "\n" + p.Text; strings.Contains(said, "blob") || !strings.Contains(said, "not at hand here") || p.Known || p.Short() {
			t.Errorf("of %s: %+v", c.Tool, p)
		}
	}
}

// What would be run stands where it is read, in whatever form an agent gives it to its tool:
// never what the agent calls it.
//
// proves PER-2
func TestCallPayload_NeverTheTitle(t *testing.T) {
	t.Parallel()
	const title = "ls -la"
	for _, c := range []struct{ kind, input, text, name string }{
		{"execute", `{"command":"rm x"}`, "rm x", "rm x"},
		{"execute", `{"command":["bash","-lc","rm -rf x"]}`, "bash -lc 'rm -rf x'", "bash -lc 'rm -rf x'"},
		{"execute", `"rm x"`, "rm x", "rm x"},
		{"execute", `["rm","x"]`, "rm x", "rm x"},
		{"execute", `{"cmd":"rm x","a":1}`, "a: 1\ncmd: rm x", "a: 1 cmd: rm x"},
		{"execute", `{"command":["rm",{"a":1}]}`, "command: rm\n{\"a\":1}", `command: rm {"a":1}`},
		{"execute", `7`, "7", "7"},
		{"execute", `[["rm"]]`, `[["rm"]]`, `[["rm"]]`},
		{"other", `{"sql":"DROP TABLE x"}`, "sql: DROP TABLE x", "ls -la sql: DROP TABLE x"},
		{"read", `{"cmd":"rm x"}`, "cmd: rm x", "ls -la cmd: rm x"},
	} {
		p := components.CallPayload(&journal.Call{AttemptID: "att_1", Tool: c.kind, Input: json.RawMessage(`{"title":"` + title + `","kind":"` + c.kind + `","input":` + c.input + `}`)})
		if p.Text != c.text || strings.ReplaceAll(p.Title(), "⏎", "") != c.name || len(p.Said) != 1 || p.Said[0] != (components.Fact{Name: "title", Value: title}) || p.Row() {
			t.Errorf("%s: %q, named %q, says %v", c.input, p.Text, p.Title(), p.Said)
		}
	}
	for _, input := range []string{`{}`, `null`, `""`} { // nothing else is known
		p := components.CallPayload(&journal.Call{AttemptID: "att_1", Tool: "execute", Input: json.RawMessage(`{"title":"` + title + `","kind":"execute","input":` + input + `}`)})
		if p.Text != title || p.Row() {
			t.Errorf("%s: %q", input, p.Text)
		}
	}
}

// That a call only reads is said as its agent's word, wherever it is said; and what is asked
// is called by what is judged: a file is guarded only if it is.
//
// proves CAL-2 PER-2
func TestWords_OfAReadingCall(t *testing.T) {
	t.Parallel()
	const word = "the agent says that it only reads"
	c := &journal.Call{ID: "call_1", AttemptID: "att_1", Tool: "read", Effect: journal.EffectRead, Input: json.RawMessage(`{"title":"Read a.txt","kind":"read","input":{"path":"a.txt"}}`)}
	if got := text(render(t, components.CallWhats([]components.CallWhat{components.NewCallWhat(c)}, now)).Selection); !strings.Contains(got, word) {
		t.Errorf("the row says %q", got)
	}
	for _, f := range components.CallFacts(c, components.Viewer{}) {
		if f.Name == "Effect" && f.Say.String() != word {
			t.Errorf("the call's page says %q", f.Say.String())
		}
	}
	for permission, resources := range map[string][]string{
		"read a file": {"notes.txt"}, "read a file that is guarded": {"notes.txt", "sub/.env"},
	} {
		r := request(t, "Read it", map[string]any{"ask": 1, "effect": "read"})
		r.Permission, r.Resources = "read", resources
		card := components.NewDecisionCard(r, nil, now, "k")
		card.Own = true
		doc := render(t, components.AskCard(card))
		if got := text(doc.Find("h3")); !strings.HasPrefix(got, "Decision: "+permission) || !strings.HasSuffix(strings.TrimSpace(text(doc.Find("h3 > span").First())), permission) || !strings.Contains(text(doc.Selection), word) {
			t.Errorf("%q is asked as %q", resources, got)
		}
	}
}
