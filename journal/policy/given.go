package policy

import (
	"slices"
	"strings"
)

// CommandOf is the command that an agent gives a tool, as a line that a shell would run
// just so: a text as it is, or a list of words, each quoted where it must be. A list of
// one is that text: its tool may well hand it to a shell. "": it is no command.
func CommandOf(given any) string {
	switch v := given.(type) {
	case string:
		return v
	case []string:
		return commandLine(v)
	case []any:
		words := make([]string, 0, len(v))
		for _, one := range v {
			word, ok := one.(string)
			if !ok {
				return ""
			}
			words = append(words, word)
		}
		return commandLine(words)
	}
	return ""
}

func commandLine(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = quote(word)
		expands := strings.ContainsAny(word, "{}[]~^")
		if i == 0 { // the name of a program, whatever a shell would take it for
			expands = expands || reserved[word] || strings.Contains(word, "=")
		}
		if out[i] == word && expands {
			out[i] = "'" + word + "'"
		}
	}
	return strings.Join(out, " ")
}

// reserved are the words that a shell takes for its own where a command's name stands.
var reserved = set("! { } [[ ]] case coproc do done elif else esac fi for function if in select then time until while")

// Members of an agent's input that say where a call of its works; the second only of one
// that runs a command: of others they may be what it is about.
var (
	worksIn = []string{"workdir", "cwd", "working_directory", "workingDirectory", "working_dir", "workingDir"}
	runsIn  = []string{"dir_path", "directory", "dir"}
)

// SaysWhere reports whether a member of an agent's input says where its call works.
func SaysWhere(member string, runs bool) bool {
	return slices.Contains(worksIn, member) || runs && slices.Contains(runsIn, member)
}

// running are members of an agent's input of which one can't tell but that they run
// something, whatever kind it says that its call is.
var running = set("command commands cmd script scripts statement statements sql code program shell bash exec run eval args argv stdin body")

// SaysWhatRuns reports whether a member of an agent's input says that it runs something.
func SaysWhatRuns(member string) bool {
	const longest = 100 // more than any of them takes
	return len(member) <= longest && running[strings.ToLower(member)]
}
