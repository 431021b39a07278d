package components_test

import (
	"encoding/json"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/views/components"
)

// Where what an agent says of its call later is called as what was let run is, the entry
// names what differs.
//
// proves PER-4 CAL-9
func TestEntry_ContradictionThatReadsAlike(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a/", 60)
	for name, c := range map[string]struct{ was, now, want string }{
		"another folder": {`{"title":"ls","kind":"execute","input":{"command":"ls"}}`, `{"title":"ls","kind":"execute","input":{"command":"ls","cwd":"/etc"}}`, "It differs in cwd: /etc now, nothing when it was let run."},
		"another place":  {`{"title":"ls","kind":"execute","input":{"command":"ls"}}`, `{"title":"ls","kind":"execute","paths":["/home"],"input":{"command":"ls"}}`, "It differs in locations: /home now, nothing when it was let run."},
		"another file":   {`{"title":"Read","kind":"read","input":{"path":"` + long + `x"}}`, `{"title":"Read","kind":"read","input":{"path":"` + long + `y"}}`, "a/y now, …"},
		"another kind":   {`{"title":"Look","kind":"read","input":{"path":"a"}}`, `{"title":"Look","kind":"delete","input":{"path":"a"}}`, "It differs in kind: delete now, read when it was let run."},
		"swapped":        {`{"title":"Move","kind":"move","input":{"source":"a","destination":"b"}}`, `{"title":"Move","kind":"move","input":{"source":"b","destination":"a"}}`, "It differs in destination: a now, b when it was let run.It differs in source: b now, a when it was let run."},
		"another change": {`{"title":"E","kind":"edit","diffs":[{"path":"a","old":"1","new":"2"}]}`, `{"title":"E","kind":"edit","diffs":[{"path":"a","old":"1","new":"3"}]}`, "It differs in its change: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := contradiction(t, c.was, c.now); !strings.Contains(got, c.want) {
				t.Errorf("the entry says %q, not %q", got, c.want)
			}
		})
	}
	if got := contradiction(t, `{"title":"a","kind":"execute","input":{"command":"a"}}`, `{"title":"b","kind":"execute","input":{"command":"b"}}`); strings.Contains(got, "differs in") {
		t.Errorf("what is called otherwise says %q", got)
	}
}

// contradiction is the text of the entry of a call that was let run as one thing, and that is
// said to be another later.
func contradiction(t *testing.T, was, says string) string {
	t.Helper()
	c := &journal.Call{ID: "call_1", AttemptID: "att_1", Input: json.RawMessage(was), Later: json.RawMessage(says), State: journal.CallIsDispatched, N: 1}
	w := window(t, &journal.CallContradicted{CallID: c.ID, Input: json.RawMessage(says), Late: journal.LateDispatched})
	w.Events[0].Actor = journal.Agent()
	w.Calls[c.ID] = c
	return text(render(t, components.JournalRow(components.Entries(w)[0], now)).Find("li .body"))
}
