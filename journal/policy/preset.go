package policy

import "slices"

// Preset is a named set of rules that a session starts from.
type Preset string

// The presets, from the strictest to the loosest.
const (
	AskAll    Preset = "ask_all"
	AskWrites Preset = "ask_writes"
	Workspace Preset = "workspace"
)

// ParsePreset returns the preset of that name, or false.
func ParsePreset(s string) (Preset, bool) {
	switch p := Preset(s); p {
	case AskAll, AskWrites, Workspace:
		return p, true
	default:
		return "", false
	}
}

// Wider reports whether a preset allows more than another one. An unknown one allows
// what AskAll does.
func (p Preset) Wider(than Preset) bool { return p.width() > than.width() }

func (p Preset) width() int {
	return slices.Index([]Preset{AskWrites, Workspace}, p) // -1: AskAll, and what isn't known
}

// Title is the preset's name for people.
func (p Preset) Title() string {
	switch p {
	case AskAll:
		return "Ask before everything"
	case AskWrites:
		return "Ask before writes"
	case Workspace:
		return "Work freely inside the workspace"
	default:
		return string(p)
	}
}

// Rules returns the preset's rules in order; the session's own rules follow
// them. The caller owns the slice. An unknown preset is as strict as AskAll.
func (p Preset) Rules() []Rule {
	switch p {
	case AskWrites:
		return readRules()
	case Workspace:
		return append(append(readRules(), editRules()...), shellRules()...)
	default:
		var rules []Rule
		for _, permission := range permissions {
			rules = append(rules, Rule{permission, "*", Ask})
		}
		return rules
	}
}

// readRules lets files be read, but for those that hold secrets.
func readRules() []Rule {
	rules := []Rule{{PermissionRead, "*", Allow}}
	rules = each(rules, PermissionRead, Ask, secretFiles...)
	rules = each(rules, PermissionRead, Allow, ".env.example", "*/.env.example", "*.env.example")
	// What is asked for its folder stays asked whatever the file is called.
	return each(rules, PermissionRead, Ask, secretFolders...)
}

// editRules lets files be written, but for those that hold secrets and those
// that make other programs run something.
func editRules() []Rule {
	rules := []Rule{{PermissionEdit, "*", Allow}}
	rules = each(rules, PermissionEdit, Ask, secretFiles...)
	rules = each(rules, PermissionEdit, Allow, ".env.example", "*/.env.example", "*.env.example")
	rules = each(rules, PermissionEdit, Ask, secretFolders...)
	return each(rules, PermissionEdit, Ask, activeFiles...)
}

// shellRules lets the commands of the workspace preset run. The analysis marks
// what they must not be used for as Unproven; the asks at the end say the best
// known of it in the open.
func shellRules() []Rule {
	var rules []Rule
	for _, name := range presetCommands {
		rules = append(rules, Rule{PermissionShell, name + " *", Allow})
	}
	for _, target := range []string{"test", "lint", "build", "check"} {
		rules = append(rules, Rule{PermissionShell, "make " + target, Allow})
	}
	return each(rules, PermissionShell, Ask,
		"find * -exec*", "find * -ok*", "find * -delete*", "find * -fprint*", "find * -fls*",
		"rg --pre*", "rg * --pre*", "sort -o*", "sort * -o*", "sort *--compress-program*", "printf -v*",
		"git *--output=*", "git *--output *", "git *--ext-diff*",
		"git branch -d *", "git branch -D *", "git branch -m *", "git branch -M *", "git branch -f *",
		"go * -exec*", "go *-toolexec*", "go *-vettool*", "go env -w *", "go env -u *", "go build -o *")
}

func each(rules []Rule, permission string, action Action, patterns ...string) []Rule {
	for _, pattern := range patterns {
		rules = append(rules, Rule{permission, pattern, action})
	}
	return rules
}

// presetCommands are the commands that the workspace preset lets run with
// arguments; each has an entry in options.go that says which.
var presetCommands = []string{
	"ls", "cat", "head", "tail", "wc", "grep", "rg", "find", "pwd", "echo", "printf", "test", "[",
	"diff", "sort", "uniq", "cut", "tr", "date", "true", "false", "sleep",
	"git status", "git diff", "git log", "git show", "git branch",
	"go build", "go vet", "go test", "go list", "go env",
	"npm test", "npm run test", "npm run lint", "npm run build", "pytest",
}

// secretFiles are the names that are asked before they are read or written.
var secretFiles = []string{
	"*.env", "*.env.*", "*.envrc",
	"*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.ppk", "*.kdbx",
	"*id_rsa", "*id_dsa", "*id_ecdsa", "*id_ed25519", "*id_ecdsa_sk", "*id_ed25519_sk",
	"*.netrc", "*.npmrc", "*.pypirc", "*.pgpass", "*.git-credentials", "*.htpasswd",
}

// secretFolders are asked with all that is in them.
var secretFolders = []string{
	".git/config*", "*/.git/config*", ".git/modules/*", "*/.git/modules/*", ".git/worktrees/*", "*/.git/worktrees/*",
	".ssh/*", "*/.ssh/*", ".gnupg/*", "*/.gnupg/*", ".aws/*", "*/.aws/*", ".kube/*", "*/.kube/*",
	".docker/config.json", "*/.docker/config.json",
}

// activeFiles are not secret, but who writes them decides what others run.
var activeFiles = []string{
	".git", "*/.git", ".git/*", "*/.git/*", ".gitmodules", "*/.gitmodules",
	".githooks/*", "*/.githooks/*", ".husky/*", "*/.husky/*", ".pre-commit-config.yaml",
	".github/*", "*/.github/*", ".gitlab-ci.yml", ".gitlab/*", ".circleci/*", ".buildkite/*", ".drone.yml",
	".travis.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", "Jenkinsfile", ".forgejo/*", ".gitea/*", ".woodpecker*",
	".holdfast-workspace", "*/.holdfast-workspace",
	".vscode/*", "*/.vscode/*", ".idea/*", "*/.idea/*", ".devcontainer/*",
	// What the agents themselves may run, and which programs they start.
	".claude/*", "*/.claude/*", ".mcp.json", "*/.mcp.json", "opencode.json", "*/opencode.json", "opencode.jsonc", "*/opencode.jsonc",
	".opencode/*", "*/.opencode/*", ".gemini/*", "*/.gemini/*", ".codex/*", "*/.codex/*", ".cursor/*", "*/.cursor/*",
}
