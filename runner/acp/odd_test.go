package acp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/journal/policy"
)

// A path that is padded, in quotes, encoded, or a pattern is judged as all that a tool may
// make of it, and what nobody can tell is asked.
//
// proves PER-1
func TestOdd_PathsAreNotOnlyNames(t *testing.T) {
	t.Parallel()
	ws, out := placed(t, "a.txt", ".env", "[.]git/x", "app/[id]/page.tsx"), placed(t, "o.txt")
	if err := os.Symlink(out, filepath.Join(ws, "out")); err != nil {
		t.Fatal(err)
	}
	deny := []policy.Rule{{Permission: "edit", Pattern: "*", Action: policy.Allow}, {Permission: "edit", Pattern: "db/*", Action: policy.Deny}}
	call := func(kind, path string) string {
		text, err := json.Marshal(strings.ReplaceAll(path, "WS", ws))
		if err != nil {
			t.Fatal(err)
		}
		content := ""
		if kind == "edit" {
			content = `,"content":"x"`
		}
		return `"kind":"` + kind + `","input":{"path":` + string(text) + content + `}`
	}
	change := func(path string) string {
		text, err := json.Marshal(strings.ReplaceAll(path, "WS", ws))
		if err != nil {
			t.Fatal(err)
		}
		return `"kind":"edit","diffs":[{"path":` + string(text) + `,"old":null,"new":"x"}]`
	}
	for _, path := range []string{
		" .git/hooks/x", "\t.git/hooks/x", ".git ", "\u00a0.git/x", "\u200b.git/x", "\ufeff.git/x", "\n.git/x", "\t/etc/passwd", " /etc/passwd", " ~/.ssh/x", " ../x", "a.txt\n.git/x", "a\x01b", "  ",
		"$HOME/x", "${HOME}/x", "$x/y", "sub/$HOME/x", "sub/${x}", "$(x)", "`x`", "a`x`", "%HOME%/x", "~", "~/x", ".git$x/y", ".git${x}/y",
		"[.]git", "[.]git/hooks/x", "?git/x", ".gi[t]/x", ".gi[!x]/x", "{a.txt,.git/hooks/x}", "{.git,b}/x", "x{/../.git,}/y", "{a..z}", "*", ".g*/x", "@(.git)/x", "+(.git)/x", "WS/[.]git/x",
		"[o]ut/o.txt", "?ut/o.txt", "{out,a}/o.txt", "app/*/../../../x", "[a]pp/../x",
		`".git/x"`, "'.git/x'", "`.git/x`", "<.git/x>", `\.git/x`, `.git\x`, "%2Egit/x", "@.git/x", "@/etc/passwd", `" .git/x"`, ".git:1", ".git/x#L3", "file:///etc/x", " file:///etc/x", "file://WS/a.txt#/../../../../x",
	} {
		for _, c := range []string{call("edit", path), call("delete", path), change(path)} {
			if v := judge(t, ws, policy.Workspace, nil, c); v.Action != policy.Ask {
				t.Errorf("%s: %s by %+v", c, v.Action, v.AllowedBy)
			}
		}
	}
	for _, path := range []string{" .env", ".env ", "[.]env", "?env", ".en[v]", "{.env,a}", `\.env`, "'.env'", ".env:3", "%2eenv", "@.env", "\t/etc/passwd", "$HOME/x", "~/x", "[o]ut/o.txt", "o*/o.txt", "{/etc/passwd,a.txt}", "a.txt\n.env"} {
		if v := judge(t, ws, policy.AskWrites, nil, call("read", path)); v.Action != policy.Ask {
			t.Errorf("a read of %q: %s by %+v", path, v.Action, v.AllowedBy)
		}
	}
	for _, path := range []string{" db/x", "\tdb/x", "'db/x'", "{db,a}/x", `db\x`, "%64b/x", "WS/db/x ", "db/x:3", "d$x/../db/x"} {
		if v := judge(t, ws, policy.Workspace, deny, call("edit", path)); v.Action == policy.Allow || !strings.Contains(path, "$") && v.Action != policy.Deny {
			t.Errorf("%q, denied: %s %+v", path, v.Action, v.Asks)
		}
	}
	for _, path := range []string{"[d]b/x", "?b/x", "d*/x"} {
		if v := judge(t, ws, policy.Workspace, deny, call("delete", path)); v.Action != policy.Ask || len(v.Asks[0].Why) == 0 {
			t.Errorf("%q, which may be denied: %s %+v", path, v.Action, v.Asks)
		}
	}
	for _, path := range []string{"a.txt", "app/[id]/page.tsx", "WS/app/[slug]/new.tsx", "app/[[...all]]/x.tsx", "app/$id.tsx", "app/(auth)/x", "app/@modal/(.)photo/x", "my file.txt", "a b/c d", "C#/x.cs", "ä/ö", "{{slug}}/x", "a@b", "100%", "it's.txt", "a:b"} {
		for _, c := range []string{call("edit", path), change(path)} {
			if v := judge(t, ws, policy.Workspace, nil, c); v.Action != policy.Allow {
				t.Errorf("%s: %s %+v", c, v.Action, v.Asks)
			}
		}
	}
	for _, where := range []string{`"cwd":" /etc"`, `"cwd":"\t/etc"`, `"cwd":"$HOME"`, `"cwd":"'/etc'"`, `"cwd":"%2fetc"`} {
		if v := judge(t, ws, policy.Workspace, nil, `"kind":"execute","input":{"command":"make test",`+where+`}`); v.Action != policy.Ask {
			t.Errorf("%s: %s", where, v.Action)
		}
	}
	for _, input := range []string{`"root":" /etc","pattern":"x"`, `"root":"$HOME","pattern":"x"`, `"path":".","pattern":"x","include":"\t/etc/**"`, `"path":".","pattern":"x","include":"$HOME/**"`} {
		if v := judge(t, ws, policy.AskWrites, nil, `"kind":"search","input":{`+input+`}`); v.Action != policy.Ask {
			t.Errorf("%s: %s", input, v.Action)
		}
	}
}

// A folder outside of the workspace is judged by its own name as well as by that of the
// folder that it lies in.
//
// proves PER-1
func TestOdd_AFolderOutside(t *testing.T) {
	t.Parallel()
	ws, out := placed(t, "a.txt"), placed(t, "o.txt")
	for _, pattern := range []string{out, filepath.Dir(out)} {
		deny := []policy.Rule{{Permission: "external_directory", Pattern: pattern, Action: policy.Deny}}
		for _, call := range []string{`"kind":"search","input":{"path":"OUT","pattern":"x"}`, `"kind":"delete","input":{"path":"OUT"}`, `"kind":"read","paths":["OUT"],"input":{"path":"OUT"}`} {
			if v := judge(t, ws, policy.Workspace, deny, strings.ReplaceAll(call, "OUT", out)); v.Action != policy.Deny {
				t.Errorf("%s with %s denied: %s %+v", call, pattern, v.Action, v.Asks)
			}
		}
	}
}
