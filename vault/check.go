package vault

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"holdfast/journal"
)

// Bounds of what is stored.
const (
	maxName  = 100
	MaxValue = 8 << 10 // bytes
)

// kept are variables by which an agent, or what it starts, is run or found again.
var kept = []string{
	// where things are, and how they look
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "OLDPWD", "TMPDIR", "TMP", "TEMP", "TERM", "LANG", "LANGUAGE", "TZ", "GCONV_PATH",
	// what shells run or read by themselves
	"IFS", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "ZDOTDIR",
	// what the runtimes of languages load by themselves
	"NODE_OPTIONS", "NODE_PATH", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONBREAKPOINT", "PYTHONWARNINGS", "PERLLIB", "RUBYOPT", "RUBYLIB",
	"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "DOTNET_STARTUP_HOOKS",
	// what other programs start
	"GIT_EXEC_PATH", "GIT_ASKPASS", "GIT_EXTERNAL_DIFF", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "GIT_PROXY_COMMAND", "GIT_TEMPLATE_DIR", "GIT_DIR",
	"SSH_ASKPASS", "EDITOR", "VISUAL", "PAGER",
}

// keptPrefixes are those of whole families of them.
var keptPrefixes = []string{"HOLDFAST_", "LD_", "DYLD_", "LC_", "XDG_", "BASH_FUNC_", "PERL5", "GIT_CONFIG", "GIT_SSH"}

// Check says what can't be stored, and why. Its message holds nothing of the value.
// Code: unprocessable, with the slug bad-credential-name or bad-credential-value.
func (n New) Check() error {
	if why := checkName(n.Name); why != "" {
		return journal.Errorf(journal.Unprocessable, "%s Nothing was stored.", why).Typed("bad-credential-name")
	}
	if why := checkValue(n.Value); why != "" {
		return journal.Errorf(journal.Unprocessable, "%s Nothing was stored.", why).Typed("bad-credential-value")
	}
	return nil
}

func checkName(name string) string {
	switch {
	case name == "":
		return "Name the variable that the agent reads, such as ANTHROPIC_API_KEY."
	case !journal.VariableName(name) || len(name) > maxName:
		return "A variable's name has letters without accents, digits and _, begins with no digit, and has at most 100 characters."
	case slices.Contains(kept, name):
		return name + " decides how an agent and what it starts are run, so a credential can't take its place."
	}
	for _, p := range keptPrefixes {
		if strings.HasPrefix(name, p) {
			return "Variables that begin with " + p + " decide how agents and this server are run, so a credential can't take their place."
		}
	}
	return ""
}

func checkValue(value string) string {
	switch {
	case strings.TrimSpace(value) == "":
		return "A credential needs a value."
	case strings.TrimSpace(value) != value:
		return "The value begins or ends with a blank, as values do that were copied with one too many. Type it without."
	case len(value) > MaxValue:
		return "The value is longer than 8 KiB."
	case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
		return "The value must be one line of text: it has a line's end or another control character in it."
	case strings.ContainsFunc(value, turns):
		return "The value has a character in it that can't be seen, which ends a line or turns its direction, as texts do that were copied from a page. Type it without."
	case strings.TrimFunc(value, unseen) != value:
		return "The value begins or ends with a character that can't be seen, such as a byte order mark or a space without width, as values do that were copied with one too many. Type it without."
	case utf8.RuneCountInString(value) < journal.ShortestSecret:
		return "A value of fewer than 8 characters can't be stored: hiding it would hide ordinary words, too."
	case strings.Trim(value, "0123456789+-.eE") == "":
		return "A value that may be a number can't be stored: hiding it would break what programs tell each other in numbers, such as a size or a time. If you can choose it, choose one with letters."
	}
	return ""
}

// turns reports a character that ends a line or changes the direction of a text.
func turns(r rune) bool { return unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control) }

// unseen reports a character that has no width of its own.
func unseen(r rune) bool { return unicode.Is(unicode.Cf, r) }
