package tool

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"holdfast/journal"
)

// inherited are the variables that a command gets from the server, besides
// LC_*.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM",
	"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
	"http_proxy", "https_proxy", "all_proxy", "no_proxy",
}

// BaseEnv returns what of environ a command gets: an allow-list, since the
// server's environment holds its credentials. A name that looks like a
// secret's is never in it, nor a proxy's address that carries a password.
func BaseEnv(environ []string) []string {
	var kept []string
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || secretName(name) {
			continue
		}
		if !slices.Contains(inherited, name) && !strings.HasPrefix(name, "LC_") {
			continue
		}
		if strings.HasSuffix(strings.ToUpper(name), "_PROXY") && strings.Contains(value, "@") {
			continue
		}
		kept = append(kept, entry)
	}
	return kept
}

// WithEnv adds variables to an environment, in which they win over those of the same name.
func WithEnv(env, more []string) []string {
	named := map[string]bool{}
	for _, entry := range more {
		name, _, _ := strings.Cut(entry, "=")
		named[name] = true
	}
	out := make([]string, 0, len(env)+len(more))
	for _, entry := range env {
		if name, _, _ := strings.Cut(entry, "="); !named[name] {
			out = append(out, entry)
		}
	}
	return append(out, more...)
}

// SecretsFromEnv returns the values to mask: of variables that match *_TOKEN,
// *_KEY, *_SECRET or *PASSWORD* in any case, or that extra names, of 8
// characters or more without the blanks at their ends; longest first, each
// once.
func SecretsFromEnv(environ []string, extra []string) []string {
	var found []string
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || !secretName(name) && !slices.Contains(extra, name) {
			continue
		}
		value = strings.TrimSpace(value)
		if utf8.RuneCountInString(value) >= journal.ShortestSecret && !slices.Contains(found, value) {
			found = append(found, value)
		}
	}
	slices.SortFunc(found, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	return found
}

// secretName reports whether a variable's name says that it is secret.
func secretName(name string) bool {
	name = strings.ToUpper(name)
	for _, end := range []string{"_TOKEN", "_KEY", "_SECRET"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return strings.Contains(name, "PASSWORD")
}

// commandEnv returns env with the markers of a call's dispatch, without what a shell can't
// hold as a variable: the launcher is one, and would lose some of it on some
// systems and none on others.
func commandEnv(env []string, callID string, n int) []string {
	kept := make([]string, 0, len(env)+2)
	for _, entry := range env {
		name, _, ok := strings.Cut(entry, "=")
		if ok && journal.VariableName(name) && name != callVariable && name != dispatchVariable && name != gateVariable {
			kept = append(kept, entry)
		}
	}
	return append(kept, callVariable+"="+callID, dispatchVariable+"="+strconv.Itoa(n))
}
