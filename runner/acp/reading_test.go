package acp

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"holdfast/journal"
	"holdfast/journal/policy"
)

// An agent's word that a call only reads holds as far as all that it tells is of reading;
// what says something else, or nothing, is an effect.
//
// proves CAL-2
func TestEffect(t *testing.T) {
	t.Parallel()
	for want, calls := range map[journal.Effect][]string{
		journal.EffectRead: {
			`"kind":"read","paths":["a.txt"]`,
			`"kind":"read","input":{"file_path":"/w/a.txt","offset":1,"limit":20}`,
			`"kind":"read","input":{"filePath":"/w/a.txt"}`,
			`"kind":"read","input":{"path":"/w","ignore":["node_modules/"]}`,
			`"kind":"read","input":{"notebook_path":"a.ipynb","cell_id":"x"}`,
			`"kind":"search","input":{"pattern":"rm -rf","path":"/w","glob":"*.ts","output_mode":"content","-n":true,"-A":3,"type":"go","head_limit":5,"multiline":false}`,
			`"kind":"search","input":{"pattern":"**/*.go"}`,
			`"kind":"search","input":{"pattern":"x","include":"*.{ts,tsx}"}`,
			`"kind":"search","input":{"query":"where is it","path":"docs"}`,
			`"kind":"think","input":{"thought":"what now"}`,
			`"kind":"read","input":{"path":"a.txt","command":"","content":null}`,
			`"kind":"read","input":{"path":"a.txt","encoding":"utf-8","format":"markdown","range":"1-20","lines":["3","7:9"],"view_range":[1,-1],"limit":"100","description":"look at it"}`,
			`"kind":"search","input":{"pattern":"x","path":".","type":"go","output_mode":"files_with_matches","sort":"modified","-C":"3","multiline":"true","exclude":["*.{a,b}","x y/**"]}`,
		},
		journal.EffectEffect: {
			`"kind":"read","input":{"path":"a","format":"; rm -rf x"}`, `"kind":"read","input":{"path":"a","context":"rm -rf x"}`, `"kind":"read","input":{"path":"a","type":"delete"}`, `"kind":"read","input":{"path":"a","lines":["new line 1","new line 2"]}`,
			`"kind":"read","input":{"path":"a","limit":"drop"}`, `"kind":"read","input":{"path":"a","sort":"json json"}`, `"kind":"read","input":{"path":"a","order":["asc","truncate"]}`, `"kind":"read","input":{"path":"a","cell_id":"rm x"}`, `"kind":"search","input":{"pattern":"x","exclude":"a; rm b"}`,
			`"kind":"read"`, `"kind":"read","input":{}`, `"kind":"search","text":"x"`, `"kind":"think"`, `"kind":"read","paths":[""]`,
			`"kind":"read","input":{"limit":3}`,
			`"kind":"read","input":{"command":"rm x"}`, `"kind":"read","paths":["a"],"input":{"command":["rm","x"]}`,
			`"kind":"read","input":{"path":"a.txt","content":"x"}`, `"kind":"read","input":{"file_path":"a","new_string":"x"}`, `"kind":"search","input":{"path":"a","replace":"x"}`,
			`"kind":"read","input":{"path":"a.txt","mode":"overwrite"}`, `"kind":"read","input":{"path":"a.txt","options":{"x":1}}`, `"kind":"read","input":{"path":["a.txt",{"x":1}]}`,
			`"kind":"read","input":{"query":"DROP TABLE users"}`, `"kind":"read","input":{"sql":"SELECT 1"}`, `"kind":"read","input":{"url":"http://x"}`, `"kind":"read","input":{"path":"http://x/y"}`,
			`"kind":"read","name":"mcp__fs__read","input":{"path":"a"}`, `"kind":"read","title":"mcp__db__query","input":{"pattern":"a"}`,
			`"kind":"read","input":"a.txt"`, `"kind":"read","input":["a.txt"]`,
			`"kind":"read","diffs":[{"path":"a","old":"a","new":"b"}]`, `"kind":"think","input":{"prompt":"do it","subagent_type":"x"}`, `"kind":"think","input":{"fact":"x"}`,
			`"kind":"execute","input":{"path":"a.txt"}`, `"kind":"other","input":{"path":"a.txt"}`, `"kind":"fetch","input":{"url":"http://x"}`, `"input":{"path":"a.txt"}`,
		},
	} {
		for _, call := range calls {
			c := told{Title: "look"}
			if err := json.Unmarshal([]byte("{"+call+"}"), &c); err != nil {
				t.Fatal(call, err)
			}
			if got := effect(c); got != want {
				t.Errorf("%s: %s", call, got)
			}
		}
	}
}

// What rules allow to be read allows no more than that: a call that its agent calls a read,
// and that says anything else, is judged as what it may do.
//
// proves PER-1 CAL-2
func TestWish_AReadOnlyReads(t *testing.T) {
	t.Parallel()
	ws := t.TempDir()
	rules := []policy.Rule{{Permission: "read", Pattern: "*", Action: policy.Allow}}
	for call, asks := range map[string]string{
		`"kind":"read","input":{"path":"ok.txt"}`:                            "",
		`"kind":"read","paths":["ok.txt"],"input":{}`:                        "",
		`"kind":"search","input":{"pattern":"x","path":".","head_limit":5}`:  "",
		`"kind":"read","input":{"path":"ok.txt","content":"overwrite!"}`:     "edit",
		`"kind":"read","paths":["ok.txt"],"input":{"text":"overwrite!"}`:     "edit",
		`"kind":"search","input":{"file":"ok.txt","new_string":"x"}`:         "edit",
		`"kind":"read","input":{"path":"ok.txt","mode":"truncate"}`:          "mcp",
		`"kind":"read","input":{"query":"DROP TABLE users","path":"ok.txt"}`: "mcp",
		`"kind":"read","input":{}`:                                           "mcp",
		`"kind":"search"`:                                                    "mcp",
		`"kind":"read","input":{"path":"ok.txt","cmd":"rm x"}`:               "shell",
		`"kind":"read","input":{"path":"ok.txt","deep":{"content":"x"}}`:     "mcp",
		`"kind":"read","diffs":[{"path":"ok.txt","new":"x"}]`:                "edit",
	} {
		c := told{Title: "rm -rf /data"}
		if err := json.Unmarshal([]byte("{"+call+"}"), &c); err != nil {
			t.Fatal(call, err)
		}
		v := policy.Evaluate(policy.AskWrites, rules, c.wish(ws).Resources)
		asked := ""
		for _, g := range v.Asks {
			asked = g.Permission
		}
		if asked != asks {
			t.Errorf("%s: %+v", call, v)
		}
	}
}

// Of a file that a call would write whole it is seen whether it is there, also if the call
// says that without a change.
//
// proves PER-2
func TestWish_SeesWhatItWrites(t *testing.T) {
	t.Parallel()
	ws := t.TempDir()
	if err := os.WriteFile(filepath.Join(ws, "a.txt"), []byte("the"), 0o600); err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]string{
		`"kind":"edit","input":{"path":"a.txt","content":"x"}`:                                  "a.txt exists 3",
		`"kind":"edit","input":{"file_path":"new.txt","file_text":"x"}`:                         "new.txt new 0",
		`"kind":"read","input":{"path":"a.txt","content":"x"}`:                                  "a.txt exists 3",
		`"kind":"edit","paths":["a.txt"],"input":{"path":"a.txt","content":"x"}`:                "a.txt exists 3",
		`"kind":"edit","input":{"path":"/etc/hostname","content":"x"}`:                          "/etc/hostname unknown 0",
		`"kind":"edit","input":{"path":"a.txt","old_string":"a","new_string":"b"}`:              "",
		`"kind":"read","input":{"path":"a.txt"}`:                                                "",
		`"kind":"other","input":{"path":"a.txt","content":"x"}`:                                 "",
		`"kind":"edit","input":{"path":"a.txt","content":"x"},"diffs":[{"path":"b","new":"x"}]`: "b new 0",
	} {
		var c told
		if err := json.Unmarshal([]byte("{"+call+"}"), &c); err != nil {
			t.Fatal(call, err)
		}
		got := ""
		for _, f := range c.wish(ws).Seen {
			got += fmt.Sprint(f.Path, " ", f.State, " ", f.Bytes)
		}
		if got != want {
			t.Errorf("%s: %q", call, got)
		}
	}
}

// A search that says what it looks for, and not where, is one of the workspace.
//
// proves PER-1 CAL-2
func TestWish_ASearchWithoutAPlace(t *testing.T) {
	t.Parallel()
	for call, want := range map[string]policy.Action{
		`"kind":"search","input":{"pattern":"TODO"}`: policy.Allow, `"kind":"search","input":{"pattern":"**/*.go"}`: policy.Allow, `"kind":"search","input":{"pattern":"TODO","include":"*.go"}`: policy.Allow,
		`"kind":"search","input":{"regex":"a|b"}`: policy.Allow, `"kind":"search","input":{"pattern":"x","path":""}`: policy.Allow,
		`"kind":"search","input":{"pattern":"/etc/*"}`: policy.Ask, `"kind":"search","input":{"pattern":"**/.env"}`: policy.Ask, `"kind":"search","input":{"pattern":"x","include":"../*"}`: policy.Ask, `"kind":"search","input":{"pattern":"x","path":"/etc"}`: policy.Ask,
		`"kind":"search","input":{"query":"DROP TABLE users"}`: policy.Ask, `"kind":"search","input":{"pattern":"x","do":"y"}`: policy.Ask, `"kind":"search","input":{}`: policy.Ask, `"kind":"read","input":{"pattern":"x"}`: policy.Ask, `"kind":"search","input":{"pattern":"x","query":"y","replace":"z"}`: policy.Ask,
		`"kind":"search","name":"mcp__db__find","input":{"pattern":"x"}`: policy.Ask, `"kind":"other","input":{"pattern":"x"}`: policy.Ask,
	} {
		for _, preset := range []policy.Preset{policy.Workspace, policy.AskWrites} {
			if got, why := judged(t, preset, `{"title":"x",`+call+`}`); got != want {
				t.Errorf("%s: %s %s", call, got, why)
			}
		}
	}
	ws := t.TempDir()
	deny := []policy.Rule{{Permission: "read", Pattern: ".", Action: policy.Deny}}
	c := told{Title: "x", Kind: "search", Input: json.RawMessage(`{"pattern":"TODO"}`)}
	if v := policy.Evaluate(policy.Workspace, deny, c.wish(ws).Resources); v.Action != policy.Deny {
		t.Errorf("a search of the workspace, denied: %+v", v)
	}
}
