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

// placed makes a workspace with these files; a name that ends in / is a folder's.
func placed(t *testing.T, files ...string) string {
	t.Helper()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		path := filepath.Join(ws, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o700)
		} else if err == nil {
			err = os.WriteFile(path, []byte("x\n"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return ws
}

// judge tells what the rules say of a call in a workspace, which it may name WS.
func judge(t *testing.T, ws string, preset policy.Preset, rules []policy.Rule, call string) policy.Verdict {
	t.Helper()
	var c told
	if err := json.Unmarshal([]byte(strings.ReplaceAll(`{"title":"T",`+call+`}`, "WS", ws)), &c); err != nil {
		t.Fatalf("%s: %v", call, err)
	}
	return policy.Evaluate(preset, rules, each(unseen(c.wish(ws).Resources)))
}

// A folder that is deleted or moved is judged with all in it: what is denied, or guarded,
// there isn't let go with it. The workspace, and what it lies in, is asked always.
//
// proves PER-1
func TestWish_JudgesWhatLiesInAFolder(t *testing.T) {
	t.Parallel()
	ws := placed(t, "a.txt", "migrations/1.sql", "conf/.env", "db/deep/2.sql", "repo/.git/config", "build/x/y", "docs/b.txt", "new/")
	if err := os.Symlink("migrations", filepath.Join(ws, "link")); err != nil {
		t.Fatal(err)
	}
	for i := range 2100 {
		if err := os.WriteFile(filepath.Join(ws, "new", strings.Repeat("a", i%200)+string(rune('a'+i/200))), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rules := []policy.Rule{{Permission: "edit", Pattern: "migrations/*", Action: policy.Deny}, {Permission: "edit", Pattern: "db/deep/*", Action: policy.Deny}}
	freely := append(rules, policy.Rule{Permission: "edit", Pattern: "*", Action: policy.Allow})
	for _, c := range []struct {
		call  string
		rules []policy.Rule
		want  policy.Action
	}{
		{`"kind":"delete","input":{"path":"migrations/1.sql"}`, rules, policy.Deny},
		{`"kind":"delete","input":{"path":"migrations"}`, rules, policy.Deny},
		{`"kind":"delete","input":{"path":"migrations/"}`, rules, policy.Deny},
		{`"kind":"delete","input":{"path":"WS/migrations/."}`, rules, policy.Deny},
		{`"kind":"delete","input":{"path":"link"}`, rules, policy.Deny},
		{`"kind":"delete","paths":["WS/migrations"]`, rules, policy.Deny},
		{`"kind":"edit","input":{"path":"migrations"}`, rules, policy.Deny},
		{`"kind":"other","diffs":[{"path":"WS/db","old":null,"new":"x"}]`, rules, policy.Deny},
		{`"kind":"delete","input":{"path":"db"}`, rules, policy.Deny},
		{`"kind":"delete","input":{"path":"."}`, rules, policy.Deny},
		{`"kind":"delete","input":{"path":"conf"}`, rules, policy.Ask},
		{`"kind":"delete","input":{"path":"repo"}`, rules, policy.Ask},
		{`"kind":"delete","input":{"path":"new"}`, rules, policy.Ask},
		{`"kind":"delete","input":{"path":"new"}`, freely, policy.Allow},
		{`"kind":"delete","input":{"path":"."}`, nil, policy.Ask},
		{`"kind":"delete","input":{"path":"."}`, freely, policy.Ask},
		{`"kind":"delete","paths":["WS"]`, freely, policy.Ask},
		{`"kind":"delete","input":{"path":".."}`, freely, policy.Ask},
		{`"kind":"delete","input":{"path":"/"}`, freely, policy.Ask},
		{`"kind":"move","paths":["WS/migrations","WS/old"]`, rules, policy.Deny},
		{`"kind":"move","paths":["WS/docs","WS/migrations"]`, rules, policy.Deny},
		{`"kind":"move","paths":["WS/docs","WS/out"]`, []policy.Rule{{Permission: "edit", Pattern: "out/b.txt", Action: policy.Deny}}, policy.Deny},
		{`"kind":"move","paths":["WS/docs","WS/build"]`, []policy.Rule{{Permission: "edit", Pattern: "*/docs/b.*", Action: policy.Deny}}, policy.Deny},
		{`"kind":"move","paths":["WS/a.txt","WS/docs"]`, []policy.Rule{{Permission: "edit", Pattern: "docs/a.*", Action: policy.Deny}}, policy.Deny},
		{`"kind":"delete","input":{"path":"build"}`, rules, policy.Allow},
		{`"kind":"delete","input":{"path":"build/x"}`, rules, policy.Allow},
		{`"kind":"delete","input":{"path":"a.txt"}`, rules, policy.Allow},
		{`"kind":"move","paths":["WS/docs","WS/manual"]`, rules, policy.Allow},
		{`"kind":"move","paths":["WS/a.txt","WS/b.txt"]`, rules, policy.Allow},
	} {
		if v := judge(t, ws, policy.Workspace, c.rules, c.call); v.Action != c.want {
			t.Errorf("%s: %s, want %s: %+v %+v", c.call, v.Action, c.want, v.Denied, v.Asks)
		}
	}
	v := judge(t, ws, policy.Workspace, nil, `"kind":"delete","input":{"path":"conf"}`)
	if len(v.Asks) != 1 || strings.Join(v.Asks[0].Resources, " ") != "conf conf/.env" {
		t.Errorf("who is asked sees %+v", v.Asks)
	}
}

// Whichever directory an agent may run a command in, is judged.
//
// proves PER-1
func TestWish_JudgesEachDirectory(t *testing.T) {
	t.Parallel()
	ws := placed(t, "sub/")
	outside := []policy.Rule{{Permission: "external_directory", Pattern: "/opt/*", Action: policy.Deny}}
	for _, c := range []struct {
		input string
		want  policy.Action
	}{
		{`"workdir":"WS","cwd":"/tmp/evil"`, policy.Ask},
		{`"cwd":"WS","workdir":"/tmp/evil"`, policy.Ask},
		{`"workdir":"WS","cwd":"sub"`, policy.Ask},
		{`"workdir":"WS","cwd":"/opt/evil"`, policy.Deny},
		{`"workdir":"/opt/evil","cwd":"WS"`, policy.Deny},
		{`"workdir":"WS","directory":"/tmp/evil"`, policy.Ask},
		{`"dir":"/tmp/evil"`, policy.Ask},
		{`"working_directory":"/tmp/evil"`, policy.Ask},
		{`"work_dir":"/tmp/evil"`, policy.Ask},
		{`"CWD":"/tmp/evil"`, policy.Ask},
		{`"cwd":["/tmp/evil"]`, policy.Ask},
		{`"workdir":{"path":"/tmp/evil"}`, policy.Ask},
		{`"cwd":"~/evil"`, policy.Ask},
		{`"cwd":"~root"`, policy.Ask},
		{`"cwd":"file:///tmp/evil"`, policy.Ask},
		{`"env":{"PATH":"/tmp/evil"}`, policy.Ask},
		{`"environment":["LD_PRELOAD=/tmp/evil.so"]`, policy.Ask},
		{`"PATH":"/tmp/evil"`, policy.Ask},
		{`"workdir":"WS","cwd":"WS/"`, policy.Allow},
		{`"workdir":"WS/sub","cwd":"sub"`, policy.Allow},
		{`"workdir":"","cwd":"WS"`, policy.Allow},
		{`"cwd":"sub"`, policy.Allow},
		{`"workdir":null,"timeout":5`, policy.Allow},
	} {
		if v := judge(t, ws, policy.Workspace, outside, `"kind":"execute","input":{"command":"make test",`+c.input+`}`); v.Action != c.want {
			t.Errorf("%s: %s, want %s: %+v", c.input, v.Action, c.want, v)
		}
	}
	v := judge(t, ws, policy.Workspace, nil, `"kind":"execute","input":{"command":"make test","workdir":"WS","cwd":"/tmp/evil"}`)
	var why []string
	for _, g := range v.Asks {
		why = append(why, g.Why...)
	}
	if !slices.Contains(why, "the agent names several folders for it to run in") {
		t.Errorf("why it is asked: %q", why)
	}
}
