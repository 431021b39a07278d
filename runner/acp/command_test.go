package acp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/journal/policy"
)

// wished is what a call would do in /w.
func wished(t *testing.T, call string) (told, string, string, []policy.Resource) {
	t.Helper()
	var c told
	if err := json.Unmarshal([]byte(call), &c); err != nil {
		t.Fatalf("%s: %v", call, err)
	}
	w := c.wish("/w")
	return c, w.Shown, w.Directory, w.Resources
}

// In whatever form an agent gives its tool a command, that is what is judged and shown:
// never what the agent calls it.
//
// proves PER-1 PER-2
func TestWish_TheCommand(t *testing.T) {
	t.Parallel()
	rules := []policy.Rule{{Permission: "shell", Pattern: "*", Action: policy.Allow}, {Permission: "shell", Pattern: "rm *", Action: policy.Deny}}
	for _, c := range []struct{ kind, input, shown string }{
		{"execute", `{"command":"rm -rf x"}`, "rm -rf x"},
		{"execute", `{"command":["bash","-lc","rm -rf x"]}`, "bash -lc 'rm -rf x'"},
		{"execute", `{"command":["rm","-rf","x"]}`, "rm -rf x"},
		{"other", `{"command":["rm","-rf","x"]}`, "rm -rf x"},
		{"read", `{"command":["rm","-rf","x"],"path":"a"}`, "rm -rf x"},
		{"execute", `"rm x"`, "rm x"},
		{"execute", `["rm","x"]`, "rm x"},
		{"execute", `{"command":["rm","x"],"cwd":"build"}`, "rm x"},
		{"execute", `{"cmd":"rm x"}`, `{"cmd":"rm x"}`},
		{"execute", `{"commands":["ls","rm x"]}`, `{"commands":["ls","rm x"]}`},
		{"other", `{"script":"true\nrm x"}`, `{"script":"true\nrm x"}`},
	} {
		_, shown, _, resources := wished(t, `{"title":"ls -la","kind":"`+c.kind+`","input":`+c.input+`}`)
		if shown != c.shown {
			t.Errorf("%s is shown as %q", c.input, shown)
		}
		if v := policy.Evaluate(policy.Workspace, rules, resources); v.Action != policy.Deny {
			t.Errorf("%s: %+v", c.input, v)
		}
	}
	for _, input := range []string{`{"command":["rm",{"a":1}]}`, `{"command":{"a":"ls"}}`, `7`, `{"x":"y"}`, `[["ls"]]`} {
		_, shown, _, resources := wished(t, `{"title":"ls -la","kind":"execute","input":`+input+`}`)
		if v := policy.Evaluate(policy.Workspace, rules[:1], resources); v.Action != policy.Ask || shown != input || strings.Contains(strings.Join(v.Asks[0].Resources, " "), "ls -la") {
			t.Errorf("%s, shown as %q: %+v", input, shown, v)
		}
	}
}

// The folder that is shown is the one that a command is judged in.
//
// proves PER-1 PER-2
func TestWish_TheDirectory(t *testing.T) {
	t.Parallel()
	allow := []policy.Rule{{Permission: "shell", Pattern: "*", Action: policy.Allow}}
	for _, c := range []struct {
		input, dir string
		want       policy.Action
	}{
		{`{"command":"rm -rf *"}`, "", policy.Allow},
		{`{"command":"rm -rf *","cwd":"/w"}`, "/w", policy.Allow},
		{`{"command":"rm -rf *","cwd":"/home"}`, "/home", policy.Ask},
		{`{"command":["rm","-rf","x"],"workdir":"../up"}`, "/up", policy.Ask},
		{`{"command":"rm -rf *","cwd":"build"}`, "/w/build", policy.Allow},
		{`{"command":"rm -rf *","directory":"build/../.."}`, "/", policy.Ask},
		{`{"command":"rm -rf *","working_directory":"file:///home"}`, "/home", policy.Ask},
		{`{"command":"rm -rf *","cwd":"/w","workdir":"/w/x"}`, "/w or /w/x", policy.Ask},
		{`{"command":"rm -rf *","cwd":["/home"]}`, `["/home"]`, policy.Ask},
		{`{"command":"rm -rf *","cwd":"~root"}`, `"~root"`, policy.Ask},
		{`{"command":"rm -rf *","cwd":""}`, "", policy.Allow},
	} {
		_, shown, dir, resources := wished(t, `{"title":"x","kind":"execute","input":`+c.input+`}`)
		if v := policy.Evaluate(policy.Workspace, allow, resources); v.Action != c.want || dir != c.dir || !strings.HasPrefix(shown, "rm -rf ") {
			t.Errorf("%s: in %q, %q: %+v of %+v", c.input, dir, shown, v, resources)
		}
	}
}

// A folder that is reached by way of a link and up again is another one than it reads: what
// runs there is asked.
//
// proves PER-1 PER-2
func TestWish_TheDirectoryUpFromALink(t *testing.T) {
	t.Parallel()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(ws, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(ws, "out")); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]policy.Action{
		"out/../etc": policy.Ask, ws + "/out/..": policy.Ask, "out/..": policy.Ask, "file://" + ws + "/out/..": policy.Ask, "sub/..": policy.Allow, "sub/../sub": policy.Allow,
	} {
		for _, name := range []string{"cwd", "directory"} {
			for _, command := range []string{"cat passwd", "ls", "git status", "make test"} {
				c := told{Title: "x", Kind: "execute", Input: json.RawMessage(`{"command":"` + command + `","` + name + `":"` + dir + `"}`)}
				w := c.wish(ws)
				if v := policy.Evaluate(policy.Workspace, nil, w.Resources); v.Action != want || want == policy.Ask && !strings.Contains(w.Directory, "/out/..") {
					t.Errorf("%s in %s, shown as %s: %+v", command, dir, w.Directory, v)
				}
			}
		}
	}
}

// The same command in another form is no other: what is judged of both is one line.
//
// proves CAL-9
func TestTold_CoversACommandInAnotherForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		was, now string
		want     bool
	}{
		{`{"command":"ls -la"}`, `{"command":["ls","-la"]}`, true},
		{`{"command":["ls","-la"]}`, `{"command":"ls -la"}`, true},
		{`{"command":"ls -la"}`, `{"command":"ls\u0020-la"}`, true},
		{`{"command":["bash","-lc","ls -la"]}`, `{"command":"bash -lc 'ls -la'"}`, true},
		{`"ls -la"`, `["ls","-la"]`, true},
		{`"ls -la"`, `{"command":["ls","-la"]}`, true},
		{`{"command":"ls -la"}`, `["ls","-la"]`, true},
		{`{"cmd":"ls -la"}`, `{"cmd":["ls","-la"]}`, true},
		{`{"command":"ls -la"}`, `{"command":["ls","-l"]}`, false},
		{`{"command":"ls -la"}`, `{"command":["ls -la","x"]}`, false},
		{`{"command":"ls -la"}`, `{"command":["bash","-lc","ls -la"]}`, false},
		{`{"command":["ls","-la; rm x"]}`, `{"command":"ls -la; rm x"}`, false},
		{`{"command":"ls *"}`, `{"command":["ls","*"]}`, false},
		{`{"command":"ls"}`, `{"command":"ls","cmd":["ls"]}`, false},
		{`{"command":"ls"}`, `["rm"]`, false},
		{`"ls"`, `{"command":"l"}`, false},
		{`{"x":"y"}`, `{"command":[{"a":1}]}`, false},
	} {
		was, now := told{Title: "x", Kind: "execute", Input: json.RawMessage(c.was)}, told{Title: "x", Kind: "execute", Input: json.RawMessage(c.now)}
		if got := was.covers(&now, "/w"); got != c.want {
			t.Errorf("%s, then %s: %v", c.was, c.now, got)
		}
	}
}

// What a call has twice is asked, since its tool may take the other one, and is answered on
// its page, where both stand.
//
// proves PER-1 PER-4
func TestWish_AMemberTwice(t *testing.T) {
	t.Parallel()
	for input, asked := range map[string]bool{
		`{"command":"ls"}`: false, `{"command":"rm -rf x","command":"ls"}`: true, `{"command":"ls","env":{"A":"1","A":"2"}}`: true,
	} {
		w := told{Title: "ls", Kind: "execute", Input: json.RawMessage(input)}.wish("/w")
		got := slices.ContainsFunc(w.Resources, func(r policy.Resource) bool { return r.AlwaysAsk && strings.Contains(r.Why, "two values") })
		if got != asked || w.Whole == asked {
			t.Errorf("%s: asked %t, whole %t, %+v", input, got, w.Whole, w.Resources)
		}
	}
}
