package acp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/journal/policy"
)

// A pattern that leads out of the workspace, or names what is guarded, is asked as a file
// is; one that stays inside is not, nor is what is looked for in files.
//
// proves PER-1
func TestWish_JudgesPatterns(t *testing.T) {
	t.Parallel()
	ws, out := placed(t, "a.txt", ".env", "sub/x", "conf/.env", "migrations/1.sql", "app/[id]/page.tsx", "app/(auth)/page.tsx"), placed(t, "o.txt")
	for _, link := range []string{"out", "sub/out"} {
		if err := os.Symlink(out, filepath.Join(ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	search := func(input string) string { return `"kind":"search","input":{` + input + `}` }
	const in = `"path":".","pattern":"x",`
	asked := []string{
		in + `"include":".env"`, in + `"glob":"**/.env"`, in + `"glob":"*.env"`, in + `"include":".e*"`, in + `"include":"[.]env"`, in + `"include":"*.en?"`, in + `"file_pattern":".env"`, in + `"glob":"{*.go,.env}"`, in + `"glob":"*.go .env"`, in + `"glob":"*.go,.env"`, in + `"glob":"{.env}"`, in + `"glob":"\\.env"`,
		in + `"include":["*.go",".env"]`, in + `"includePattern":"conf/.env"`, `"path":"conf","pattern":"x","glob":".env"`,
		in + `"include":"/etc/**"`, in + `"include":"/nonexistent/../etc/**"`, in + `"include":"~/.ssh/**"`, in + `"include":"{/etc,/root}/**"`, in + `"include":"/{etc,x}/passwd"`, in + `"include":"/e*/passwd"`, in + `"include":"/[e]tc/passwd"`, in + `"include":"/?tc/+(passwd)"`, in + `"include":"/nowhere/x"`, in + `"include":"@(/etc)/x"`,
		in + `"include":"out/**"`, in + `"include":"out/o.txt"`, `"path":"sub","pattern":"x","include":"out/**"`, in + `"include":"../**"`, in + `"include":"**/../../x"`, in + `"include":"sub/../../x/**"`, in + `"include":"{..,x}/y"`, in + `"include":"{-..0}{-..0}/x"`, in + `"include":"file:///etc/*"`,
		`"pattern":"out/**"`, `"path":".","pattern":"out/*"`, `"path":".","pattern":"out/o.txt"`, `"path":".","pattern":"/et*/passwd"`, `"path":".","pattern":"/{etc,x}/passwd"`, `"path":".","pattern":"/etc/*"`, `"path":".","pattern":"/etc/.*"`, `"path":".","pattern":"~/x/*"`, `"path":".","pattern":"**/.env"`, `"path":".","pattern":".env*"`, `"path":".","pattern":".env"`,
		in + `"glob":"` + strings.Repeat("{a,b}", 20) + `"`, `"path":".e*"`, `"path":"{a.txt,.env}"`, `"path":"o*/o.txt","include":"/etc/*"`,
	}
	for _, input := range asked {
		for _, preset := range []policy.Preset{policy.AskWrites, policy.Workspace} {
			if v := judge(t, ws, preset, nil, search(input)); v.Action != policy.Ask {
				t.Errorf("%s under %s: %s by %+v", input, preset, v.Action, v.AllowedBy)
			}
		}
	}
	for _, input := range []string{
		in + `"include":"*.{ts,tsx}"`, in + `"glob":"src/**/*.go"`, in + `"glob":"**/*"`, in + `"glob":"!.env"`, in + `"glob":"!**/node_modules/**"`, in + `"include":["*.go","*.md"]`, in + `"include":"*.go, *.md"`, in + `"include":".github/**"`, in + `"include":"WS/sub/*"`, in + `"include":".env.example"`, in + `"glob":"README*"`,
		in + `"include":"app/(auth)/*"`, in + `"include":"app/[id]/page.tsx"`, in + `"exclude":".env"`, in + `"ignore":["/nowhere/","dist/"]`, in + `"include_hidden":true`,
		`"path":".","pattern":"**/*.go"`, `"path":".","pattern":"**/*.{js,ts}"`, `"path":".","pattern":"process.env"`, `"path":".","pattern":"process\\.env\\.[A-Z]+"`, `"path":".","pattern":"/api/v1/users"`, `"path":".","pattern":"//.*TODO"`, `"path":".","pattern":"api/.*id"`, `"path":".","pattern":"func (a|b)"`, `"path":".","pattern":"a{2,3}"`, `"path":".","pattern":".env","glob":"*.go"`, `"path":"app/[id]/page.tsx","pattern":"x"`,
	} {
		for _, preset := range []policy.Preset{policy.AskWrites, policy.Workspace} {
			if v := judge(t, ws, preset, nil, search(input)); v.Action != policy.Allow {
				t.Errorf("%s under %s: %s: %+v", input, preset, v.Action, v.Asks)
			}
		}
	}
	rules := []policy.Rule{{Permission: "read", Pattern: "migrations/*", Action: policy.Deny}}
	for _, input := range []string{in + `"include":"migrations/**"`, `"path":"migrations","pattern":"x","include":"*.sql"`, `"pattern":"migrations/*.sql"`, in + `"glob":"{a,migrations}/*"`} {
		if v := judge(t, ws, policy.Workspace, rules, search(input)); v.Action != policy.Deny {
			t.Errorf("%s: %s", input, v.Action)
		}
	}
	for _, call := range []string{`"kind":"delete","input":{"path":"*"}`, `"kind":"delete","input":{"path":"sub/*.go"}`} {
		if v := judge(t, ws, policy.Workspace, nil, call); v.Action != policy.Ask {
			t.Errorf("%s: %s", call, v.Action)
		}
	}
	if v := judge(t, ws, policy.Workspace, nil, `"kind":"edit","input":{"path":"app/[slug]/page.tsx","content":"x"}`); v.Action != policy.Allow {
		t.Errorf("a new file: %+v", v.Asks)
	}
}
