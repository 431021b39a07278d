package acp

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/journal/policy"
)

// judged tells what rules say of a call in a workspace that has a.txt, .env and docs/.
func judged(t *testing.T, preset policy.Preset, call string) (policy.Action, string) {
	t.Helper()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.txt", ".env", "docs/b.txt"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(ws, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(ws, name), []byte("the"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var c told
	if err := json.Unmarshal([]byte(strings.ReplaceAll(call, "WS", ws)), &c); err != nil {
		t.Fatalf("%s: %v", call, err)
	}
	w := c.wish(ws)
	v := policy.Evaluate(preset, nil, w.Resources)
	return v.Action, fmt.Sprintf("%+v", w.Resources)
}

// Every file that a call names is judged, under whatever name and however deep it stands:
// one that lies in the workspace lets none run that lies outside.
//
// proves PER-1 CAL-2
func TestWish_JudgesEveryFile(t *testing.T) {
	t.Parallel()
	const in = `"file_path":"WS/a.txt"`
	const change = `"diffs":[{"path":"WS/a.txt","old":"the","new":"x"}]`
	read := []string{
		in + `,"url":"file:///etc/passwd"`, `"paths":["a.txt","~/.ssh/id_rsa"]`, in + `,"include":"/etc/**"`, in + `,"pattern":"/etc/*.conf"`, in + `,"glob":"docs/*/../../../x"`,
		`"path":["a.txt","/etc/passwd"]`, `"path":{"from":"/etc/passwd"},` + in, in + `,"files":{"/etc/passwd":true}`, in + `,"files":{".env":true}`, in + `,"options":{"command":"rm -rf data"}`, in + `,"":{"command":"rm -rf data"}`, in + `,"x":[[{"y":[{"command":"rm -rf data"}]}]]`,
		in + `,"x":["../up"]`, in + `,"x":".env"`, in + `,"file":"` + strings.Repeat("/x", 3000) + `"`, in + `,"uri":"ssh://host/x"`, in + `,"uri":"FILE:///etc/passwd"`, in + `,"x":"~root"`,
	}
	for _, name := range []string{"files", "file", "directory", "dir", "dir_path", "folder", "uri", "target_file", "absolute_path", "notebook_path", "FilePath", "filepath", "include", "anything", "cwd"} {
		read = append(read, in+`,"`+name+`":"/etc/passwd"`, in+`,"`+name+`":["/etc/passwd"]`, in+`,"deep":[{"`+name+`":"file:///etc/passwd"}]`)
	}
	for _, input := range read {
		for _, kind := range []string{"read", "search"} {
			if got, why := judged(t, policy.AskWrites, `{"title":"x","kind":"`+kind+`","paths":["WS/a.txt"],"input":{`+input+`}}`); got != policy.Ask {
				t.Errorf("%s of %s: %s %s", kind, input, got, why)
			}
		}
	}
	for _, input := range []string{`"query":"x","limit":3`, `"uri":"mcp://x/y"`, `"profile":"x"`} {
		if got, why := judged(t, policy.AskWrites, `{"title":"x","kind":"read","input":{`+input+`}}`); got != policy.Ask {
			t.Errorf("a read of %s: %s %s", input, got, why)
		}
	}
	for _, input := range []string{
		`"edits":[{"file_path":"/etc/cron.d/evil"}]`, in + `,"edits":[{"file_path":"/etc/cron.d/evil"}]`, `"path":["/etc/passwd","WS/a.txt"]`, `"patch":"*** Begin Patch\n*** Update File: /etc/passwd\n+x"`,
		`"patch":"--- /etc/passwd\n+++ /dev/null\n"`, `"diff":"--- a/a.txt\n+++ ../../x\n"`, `"diff":["Index: /etc/passwd\n"]`, `"patchText":"*** Begin Patch\n*** Update File: a.txt\n*** Move to: /etc/passwd\n"`, `"patchText":"*** Begin Patch\n*** Delete File: ../x\n"`, `"patch":{"x":"/etc/passwd"}`, `"diff":"diff --git a/a.txt b/a.txt\nrename to /etc/passwd\n"`,
		`"edits":[{"old_string":"a","new_string":"b","run":"x"}]`, `"edits":{"command":"rm"}`, `"path":{"x":"y"}`, `"filepath":"/etc/passwd"`, in + `,"content":{"y":1}`, `"file_path":"file:///etc/passwd"`,
	} {
		for _, more := range []string{change, `"paths":["a.txt"]`} {
			if got, why := judged(t, policy.Workspace, `{"title":"x","kind":"edit",`+more+`,"input":{`+input+`}}`); got != policy.Ask {
				t.Errorf("an edit of %s beside %s: %s %s", input, more, got, why)
			}
		}
	}
	if got, why := judged(t, policy.Workspace, `{"title":"x","kind":"other",`+change+`,"input":{"file_path":".git/config"}}`); got != policy.Ask || !strings.Contains(why, ".git/config") {
		t.Errorf("what is changed besides isn't judged: %s %s", got, why)
	}
}

// What agents ordinarily do inside of the workspace asks no more than it did.
//
// proves PER-1
func TestWish_AsksNoMoreInside(t *testing.T) {
	t.Parallel()
	const change = `,"paths":["WS/a.txt"],"diffs":[{"path":"WS/a.txt","old":"the","new":"/etc/passwd"}]`
	for _, call := range []string{
		`"kind":"read","paths":["WS/a.txt"],"input":{"file_path":"WS/a.txt","offset":1,"limit":20}`,
		`"kind":"read","input":{"filePath":"WS/a.txt"}`,
		`"kind":"read","input":{"absolute_path":"WS/a.txt"}`,
		`"kind":"search","paths":["WS"],"input":{"pattern":"/api/v1|//.*TODO","path":"WS","glob":"*.ts","output_mode":"content","-n":true,"-A":3,"type":"go","head_limit":5}`,
		`"kind":"search","input":{"pattern":"/api/v1/users","path":"WS/docs","include":"*.{ts,tsx}"}`,
		`"kind":"search","input":{"pattern":"/etc/passwd|x","path":".","include":"src/**"}`,
		`"kind":"search","input":{"pattern":"**/*.go","path":"."}`,
		`"kind":"search","input":{"pattern":"WS/docs/*.txt","path":"WS"}`,
		`"kind":"read","input":{"path":"WS","ignore":["node_modules/","dist/"]}`,
		`"kind":"search","input":{"query":"where is /etc/passwd read","path":"docs","description":"/etc"}`,
		`"kind":"read","input":{"paths":["a.txt","docs/../docs/b.txt"],"uri":"file://WS/a.txt"}`,
		`"kind":"edit","input":{"file_path":"WS/a.txt","old_string":"/etc/hosts","new_string":"~/x","replace_all":true}` + change,
		`"kind":"edit","input":{"file_path":"WS/a.txt","content":"/etc/passwd"}` + change,
		`"kind":"edit","input":{"file_path":"WS/a.txt","edits":[{"old_string":"../x","new_string":"file:///etc"},{"old_string":"a","new_string":"b","replace_all":false}]}` + change,
		`"kind":"edit","input":{"filePath":"WS/a.txt","oldString":"the","newString":"/etc/passwd","diff":"Index: WS/a.txt\n===\n--- WS/a.txt\t\n+++ WS/a.txt\t\n@@ -1 +1 @@\n-the\n+/etc/passwd\n--- /etc/passwd\n"}` + change,
		`"kind":"edit","input":{"filepath":"a.txt","diff":"--- a/a.txt\n+++ b/a.txt\n-the\n+x"}` + change,
		`"kind":"edit","input":{"filepath":"docs/new.txt","diff":"--- /dev/null\n+++ b/docs/new.txt\n+x"}` + change,
		`"kind":"edit","input":{"patchText":"*** Begin Patch\n*** Update File: a.txt\n@@\n-the\n+/etc/passwd\n*** End Patch"}` + change,
		`"kind":"edit","input":{"unified_diff":"--- a/a.txt\n+++ b/a.txt\n-the\n+x"}` + change,
		`"kind":"delete","input":{"path":"WS/a.txt"}`,
		`"kind":"execute","input":{"command":"ls WS/docs","description":"/etc","workdir":"WS","timeout":5}`,
	} {
		if got, why := judged(t, policy.Workspace, `{"title":"x",`+call+`}`); got != policy.Allow {
			t.Errorf("%s: %s %s", call, got, why)
		}
	}
}

// However much an input says, it is judged in one look, and past a bound as a whole.
//
// proves PER-1
func TestWish_IsBounded(t *testing.T) {
	t.Parallel()
	names := strings.Repeat(`"n",`, 200_000)
	if got, _ := judged(t, policy.AskWrites, `{"title":"x","kind":"read","paths":["WS/a.txt"],"input":{"x":[`+names+`"n"]}}`); got != policy.Ask {
		t.Errorf("many names: %s", got)
	}
	inner := strings.Repeat(`{"x":"/etc"},`, 100_000)
	if got, _ := judged(t, policy.Workspace, `{"title":"x","kind":"edit","paths":["WS/a.txt"],"input":{"edits":[`+inner+`{}]}}`); got != policy.Ask {
		t.Errorf("many members: %s", got)
	}
	runs := strings.Repeat(`{"command":`, 9000) + `"x"` + strings.Repeat(`}`, 9000)
	if got, _ := judged(t, policy.Workspace, `{"title":"x","kind":"read","paths":["WS/a.txt"],"input":{"x":`+runs+`}}`); got != policy.Ask {
		t.Errorf("deep members: %s", got)
	}
	deep := strings.Repeat(`[`, 9000) + `"/etc/passwd"` + strings.Repeat(`]`, 9000)
	if got, _ := judged(t, policy.AskWrites, `{"title":"x","kind":"read","paths":["WS/a.txt"],"input":{"x":`+deep+`}}`); got != policy.Ask {
		t.Errorf("deep: %s", got)
	}
}

// A last newline that comes or goes is a change, and stands in what people are shown.
//
// proves PER-2
func TestUnified_LastNewline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, now, want string }{
		{"a\nb", "a\nb\n", "  a\n- b\n\\ No newline at end of file\n+ b\n"},
		{"a\nb\n", "a\nb", "  a\n- b\n+ b\n\\ No newline at end of file\n"},
		{"a", "b", "- a\n+ b\n"},
	} {
		if got := unified(diff{"x", &c.old, c.now}, ""); got != "--- x\n+++ x\n"+c.want {
			t.Errorf("%q to %q: %s", c.old, c.now, got)
		}
	}
	old := "a\nb"
	now := told{Kind: "edit", Diffs: []diff{{"x", &old, "a\nb\n"}}}
	if !now.covers(&now, "/w") {
		t.Error("a change of the last newline contradicts itself")
	}
}

// A tool of the agent's, of which nobody can tell what it would do, is asked as that wherever
// it works, and a rule that denies such tools holds.
//
// proves PER-1 CAL-3
func TestWish_AToolIsAskedAsThat(t *testing.T) {
	t.Parallel()
	ws := t.TempDir()
	deny := []policy.Rule{{Permission: "mcp", Pattern: "*", Action: policy.Deny}}
	for _, call := range []string{
		`"kind":"other","input":{"path":"src"}`, `"kind":"other","paths":["src"]`, `"kind":"","input":{"file_path":"a.txt","cwd":"."}`, `"kind":"other","input":{"path":"/etc/hosts"}`, `"kind":"other","input":{"table":"t"}`,
		`"kind":"other","input":{}`, `"kind":"read","name":"mcp__fs__read","input":{"path":"a.txt"}`, `"kind":"think","input":{"path":"a","x":"y"}`, `"kind":"switch_mode","input":{"path":"src"}`,
	} {
		c := told{Title: "fs_delete"}
		if err := json.Unmarshal([]byte("{"+call+"}"), &c); err != nil {
			t.Fatal(call, err)
		}
		resources := c.wish(ws).Resources
		v := policy.Evaluate(policy.Workspace, nil, resources)
		asks := func(g policy.AskGroup) bool {
			return g.Permission == "mcp" && g.AlwaysAsk && len(g.Resources) > 0 && slices.Contains(g.Why, cantTellWhat)
		}
		if v.Action != policy.Ask || !slices.ContainsFunc(v.Asks, asks) {
			t.Errorf("%s: %+v", call, v)
		}
		if v := policy.Evaluate(policy.Workspace, deny, resources); v.Action != policy.Deny {
			t.Errorf("%s, denied: %+v", call, v)
		}
	}
	shell := told{Title: "sh", Kind: "other", Input: json.RawMessage(`{"cmd":"ls"}`)} // asked once, as what it most likely is
	if v := policy.Evaluate(policy.Workspace, nil, shell.wish(ws).Resources); len(v.Asks) != 1 || v.Asks[0].Permission != "shell" {
		t.Errorf("a shell of the agent's: %+v", v)
	}
	if v := policy.Evaluate(policy.Workspace, deny, shell.wish(ws).Resources); v.Action != policy.Deny {
		t.Errorf("a shell of the agent's, denied: %+v", v)
	}
	old := "a"
	change := told{Title: "fs_edit", Kind: "other", Diffs: []diff{{"a.txt", &old, "b"}}}
	for want, rules := range map[policy.Action][]policy.Rule{policy.Allow: nil, policy.Deny: deny} {
		if v := policy.Evaluate(policy.Workspace, rules, change.wish(ws).Resources); v.Action != want {
			t.Errorf("a change by a tool: %+v", v)
		}
	}
}
