package acp

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"holdfast/journal"
	"holdfast/runner/tool"
)

// Program is the file that the agent runs as. It starts nothing, so it may be asked
// often. The error is a sentence for people: there is none, or it may not be executed.
func (a *Agent) Program() (string, error) {
	name := a.o.Command[0]
	if a.InWorkspace() {
		return name, nil
	}
	file, err := tool.FindProgram(name, a.o.Env)
	where := " on PATH"
	if strings.Contains(name, "/") {
		where = ""
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "", forbiddenError(fmt.Sprintf("its program %s was found%s, but this server may not execute it", excerpt(name), where))
	case err != nil:
		return "", fmt.Errorf("its program %s was not found%s", excerpt(name), where)
	}
	return file, nil
}

// forbiddenError says that a program is there, and may not be executed.
type forbiddenError string

func (e forbiddenError) Error() string { return string(e) }

func (forbiddenError) Unwrap() error { return fs.ErrPermission }

// DoExecutable says what can be done about a program that may not be executed.
const DoExecutable = "make it executable for the user that the server runs as"

// InWorkspace reports whether the program is a relative path: it is looked for in the
// workspace of each session, and nobody knows before whether it is there.
func (a *Agent) InWorkspace() bool {
	name := a.o.Command[0]
	return strings.Contains(name, "/") && !filepath.IsAbs(name)
}

// FoundInWorkspace says what is known of such a program.
func FoundInWorkspace(name string) string {
	return "its program " + excerpt(name) + " is a relative path: it is looked for in the workspace of each session, and whether it is there is known only then"
}

// DoInWorkspace says what can be done about it.
const DoInWorkspace = "name its file by its whole path, or put its folder on PATH, unless every workspace has it"

// Unavailable says why the agent can't be started just now, or "".
func (a *Agent) Unavailable() string {
	if _, err := a.Program(); err != nil {
		return err.Error()
	}
	return ""
}

// CommandLine is its program and arguments for people. What looks like a secret in it
// is hidden.
func (a *Agent) CommandLine() string {
	words := make([]string, 0, len(a.o.Command))
	for _, w := range a.o.Command {
		if w == "" || strings.ContainsAny(w, " \t\n'\"$&|;<>()*?\\`#~") {
			w = quoted(w)
		}
		words = append(words, w)
	}
	return hideSecrets(a.cleaner(nil).Text(strings.Join(words, " ")))
}

// Words in which something secret stands: VARIABLE=value, --flag value, a password in
// an address, and keys that say by their beginning what they are.
var (
	secretValue   = regexp.MustCompile(`(?i)([\w-]*(?:key|token|secret|passw|credential|auth)[\w-]*[=:])(?:'[^']*'|"[^"]*"|[^\s'"]+)`)
	secretFlag    = regexp.MustCompile(`(?i)((?:^|\s)--?[\w-]*(?:key|token|secret|passw|credential|auth)[\w-]*\s+)(?:'[^']*'|"[^"]*"|[^\s'"-][^\s'"]*)`)
	secretAddress = regexp.MustCompile(`(://[^/\s:@]*:)[^/\s@]+@`)
	secretKey     = regexp.MustCompile(`\b(?:sk|pk|rk|ghp|gho|ghs|glpat|xox[a-z]|AKIA|AIza)[-_A-Za-z0-9]{12,}`)
	bearer        = regexp.MustCompile(`(?i)(bearer\s+)[^\s'"]+`)
)

func hideSecrets(line string) string {
	for _, re := range []*regexp.Regexp{secretValue, secretFlag} {
		line = re.ReplaceAllString(line, "${1}"+journal.Hidden)
	}
	return hideKeys(line)
}

// hideKeys hides what is secret by its look, in any text.
func hideKeys(text string) string {
	text = bearer.ReplaceAllString(text, "${1}"+journal.Hidden)
	text = secretAddress.ReplaceAllString(text, "${1}"+journal.Hidden+"@")
	return secretKey.ReplaceAllString(text, journal.Hidden)
}

// cleaner hides the secrets of the agent's environment, and all that it gets besides.
func (a *Agent) cleaner(extra []string) *journal.Cleaner { return journal.NewCleaner(a.secrets(extra)) }

func (a *Agent) secrets(extra []string) []string {
	out := tool.SecretsFromEnv(a.o.Env, nil)
	for _, e := range extra {
		_, value, _ := strings.Cut(e, "=")
		out = append(out, journal.Forms(value)...)
	}
	return out
}

// saidBytes bounds one word of an agent where it is shown.
const saidBytes = 300

// excerpt is what an agent, or who wrote its command line, says: in one line, bounded.
// Characters that act are still in it: they are escaped where it is shown.
func excerpt(s string) string {
	return journal.Cut(strings.Join(strings.Fields(journal.Cut(s, 4*saidBytes)), " "), saidBytes)
}
