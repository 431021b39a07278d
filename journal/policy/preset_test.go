package policy

import (
	"encoding/json"
	"strings"
	"testing"
)

// A preset that allows more is known as such, and one that isn't known allows the least.
func TestPreset_Wider(t *testing.T) {
	t.Parallel()
	for i, order := 0, []Preset{AskAll, AskWrites, Workspace}; i < len(order); i++ {
		for j := range order {
			if got := order[i].Wider(order[j]); got != (i > j) {
				t.Errorf("%s is wider than %s: %v", order[i], order[j], got)
			}
		}
	}
	if Preset("free").Wider(AskAll) || !AskWrites.Wider("free") {
		t.Error("an unknown preset allows more than the strictest")
	}
}

func TestRule_Validate(t *testing.T) {
	t.Parallel()
	for _, r := range []Rule{
		{"shell", "git push *", Allow},
		{"external_directory", "/tmp/*", Deny},
		{"mcp", "server/tool", Ask},
	} {
		if err := r.Validate(); err != nil {
			t.Errorf("%v: %v", r, err)
		}
	}
	for _, r := range []Rule{
		{"", "*", Allow},
		{"bash", "*", Allow},
		{"*", "*", Allow},
		{"shell", "", Allow},
		{"shell", "a\x00b", Allow},
		{"shell", "\xff", Allow},
		{"shell", strings.Repeat("a", MaxPattern+1), Allow},
		{"shell", "*", ""},
		{"shell", "*", "Allow"},
	} {
		if r.Validate() == nil {
			t.Errorf("%.60v was taken", r)
		}
	}
}

func TestRule_JSON(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(Rule{"shell", "ls *", Allow})
	if want := `{"permission":"shell","pattern":"ls *","action":"allow"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestPreset(t *testing.T) {
	t.Parallel()
	for name, title := range map[string]string{
		"ask_all":    "Ask before everything",
		"ask_writes": "Ask before writes",
		"workspace":  "Work freely inside the workspace",
	} {
		p, ok := ParsePreset(name)
		if !ok || p.Title() != title {
			t.Errorf("%s: got %q, %v", name, p.Title(), ok)
		}
		for _, r := range p.Rules() {
			if err := r.Validate(); err != nil {
				t.Errorf("%s: %v: %v", name, r, err)
			}
		}
	}
	if _, ok := ParsePreset("yolo"); ok {
		t.Error("an unknown preset was taken")
	}
}

func TestPreset_EveryCommandHasAUsage(t *testing.T) {
	t.Parallel()
	for _, name := range presetCommands {
		if _, ok := usages[name]; !ok {
			t.Errorf("%s is allowed without a usage", name)
		}
	}
	if len(usages) != len(presetCommands) {
		t.Errorf("got %d usages for %d commands", len(usages), len(presetCommands))
	}
}

func TestPreset_Files(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		permission, value          string
		askAll, askWrites, workspc Action
	}{
		{"read", "src/a.go", Ask, Allow, Allow},
		{"read", ".env", Ask, Ask, Ask},
		{"read", "src/.env", Ask, Ask, Ask},
		{"read", ".ENV", Ask, Ask, Ask},
		{"read", ".env.local", Ask, Ask, Ask},
		{"read", ".env.example", Ask, Allow, Allow},
		{"read", "a/.env.example", Ask, Allow, Allow},
		{"read", "deploy/id_rsa", Ask, Ask, Ask},
		{"read", "cert/server.pem", Ask, Ask, Ask},
		{"read", ".git/config", Ask, Ask, Ask},
		{"read", "sub/.git/config", Ask, Ask, Ask},
		{"read", ".git/HEAD", Ask, Allow, Allow},
		{"edit", "src/a.go", Ask, Ask, Allow},
		{"edit", ".git/hooks/pre-commit", Ask, Ask, Ask},
		{"edit", ".GIT/hooks/pre-commit", Ask, Ask, Ask},
		{"edit", "sub/.git/config", Ask, Ask, Ask},
		{"edit", ".git", Ask, Ask, Ask},
		{"edit", ".git/x.env.example", Ask, Ask, Ask},
		{"edit", ".gitignore", Ask, Ask, Allow},
		{"edit", ".github/workflows/ci.yml", Ask, Ask, Ask},
		{"edit", ".claude/settings.json", Ask, Ask, Ask},
		{"edit", "sub/.mcp.json", Ask, Ask, Ask},
		{"edit", "opencode.json", Ask, Ask, Ask},
		{"edit", ".opencode/plugin/x.js", Ask, Ask, Ask},
		{"edit", ".gemini/settings.json", Ask, Ask, Ask},
		{"edit", ".codex/config.toml", Ask, Ask, Ask},
		{"read", ".claude/settings.json", Ask, Allow, Allow},
		{"edit", ".env", Ask, Ask, Ask},
		{"edit", ".env.example", Ask, Ask, Allow},
		{"web", "example.org", Ask, Ask, Ask},
		{"mcp", "server/tool", Ask, Ask, Ask},
		{"external_directory", "/tmp", Ask, Ask, Ask},
		{"loop", "x", Ask, Ask, Ask},
		{"sql", "x", Ask, Ask, Ask},
	} {
		for preset, want := range map[Preset]Action{AskAll: c.askAll, AskWrites: c.askWrites, Workspace: c.workspc, "unknown": c.askAll} {
			got := Evaluate(preset, nil, []Resource{{Permission: c.permission, Value: c.value}})
			if got.Action != want {
				t.Errorf("%s %s under %s: got %s, want %s", c.permission, c.value, preset, got.Action, want)
			}
		}
	}
}

func TestFileResources(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
	}{
		{"src/a.go", "edit src/a.go"},
		{"./src//a.go", "edit src/a.go"},
		{"/ws/src/a.go", "edit src/a.go"},
		{"/ws", "edit ."},
		{"/wsx/a", "external_directory /wsx; edit /wsx/a neutral"},
		{"../a", "external_directory / always; edit /a neutral"},
		{"src/../a", "edit src/../a opaque"},
		{"", "edit  opaque"},
		{"/etc/ssh/x", "external_directory /etc/ssh always; edit /etc/ssh/x neutral"},
		{"~/a", "external_directory /home/u always; edit /home/u/a neutral"},
		{"~root/a", "external_directory ~root always; edit ~root/a neutral"},
		{"/home/v/a", "external_directory /home/v; edit /home/v/a neutral"},
		{"/home/a", "external_directory /home always; edit /home/a neutral"},
		{"//dev/sda", "external_directory /dev always; edit /dev/sda neutral"},
	} {
		if got := show(FileResources(PermissionEdit, c.name, "/ws/", "/home/u")); got != c.want {
			t.Errorf("%q: got %q, want %q", c.name, got, c.want)
		}
	}
	if got := show(FileResources(PermissionRead, "a", "", "")); got != "read a opaque" {
		t.Errorf("without a workspace: got %q", got)
	}
}

// show writes resources for comparison.
func show(list []Resource) string {
	var out []string
	for _, r := range list {
		s := r.Permission + " " + r.Value
		for _, m := range []struct {
			is   bool
			mark string
		}{{r.Opaque, "opaque"}, {r.AlwaysAsk, "always"}, {r.Unproven, "unproven"}, {r.Neutral, "neutral"}} {
			if m.is {
				s += " " + m.mark
			}
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

// A pattern that is of a guarded file by its name is told from one that is of any.
func TestNamesGuarded(t *testing.T) {
	t.Parallel()
	for _, glob := range []string{".e*", "**/.e*", "conf/.en?", "[.]env", "?env", "*.e*", "**/*.en?", "*.p*", ".s*/config", ".*", ".git/c*", "keys/id_*"} {
		if !NamesGuarded(glob) {
			t.Errorf("%q may be of a guarded file", glob)
		}
	}
	for _, glob := range []string{"*", "**", "**/*", "src/**", "*.go", "**/*.ts*", "*.test.*", "README*", "test_*", ".github/workflows/*.yml", ".github/**", "*.*", "app/[id]/*.tsx", "[a-z]*.go", "Makefile"} {
		if NamesGuarded(glob) {
			t.Errorf("%q is of no guarded file", glob)
		}
	}
}
