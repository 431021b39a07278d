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
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "OLDPWD", "TMPDIR", "TERM", "LANG", "LANGUAGE", "TZ", "IFS", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS",
	"PS4", "PROMPT_COMMAND", "NODE_OPTIONS", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PERL5OPT", "PERL5LIB", "RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS",
	"GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "EDITOR", "VISUAL", "PAGER",
}

// keptPrefixes are those of whole families of them.
var keptPrefixes = []string{"HOLDFAST_", "LD_", "DYLD_", "LC_", "XDG_", "BASH_FUNC_"}

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
	case utf8.RuneCountInString(value) < journal.ShortestSecret:
		return "A value of fewer than 8 characters can't be stored: hiding it would hide ordinary words, too."
	case strings.Trim(value, "0123456789+-.eE") == "":
		return "A value that may be a number can't be stored: hiding it would break what programs tell each other in numbers, such as a size or a time. If you can choose it, choose one with letters."
	}
	return ""
}
