package acp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast/journal"
	"holdfast/journal/policy"
	"holdfast/runner/acp/wire"
)

// Members of a call's input that say no more than what is judged of it: where it acts,
// what it writes there, and words about it.
var (
	ofAnyCall = []string{"description", "timeout", "timeout_ms"}
	ofCommand = []string{"command", "run_in_background"}
	ofEdit    = []string{
		"file_path", "filePath", "filepath", "path", "content", "oldString", "newString", "old_string", "new_string", "old_str", "new_str",
		"replaceAll", "replace_all", "edits",
	}
	ofFetch = []string{"url", "prompt", "format"}
)

// mostUnexplained is how many members are asked about one by one.
const mostUnexplained = 100

// unexplained are the members of a call's input that say more of what it would do than
// what rules judge of it: nobody can tell what that is, so it is always asked. Of very
// many the last are one.
func (t told) unexplained(permission string) []policy.Resource {
	j := t.explainer()
	named, more := map[string]policy.Resource{}, map[string]int{}
	isObject := t.each(func(key string, v json.RawMessage) {
		if j.explains(key, v) {
			return
		}
		asks := permission
		if policy.SaysWhatRuns(key) && permission != policy.PermissionWeb {
			asks = policy.PermissionShell
		}
		_, twice := named[key]
		switch {
		case !says(v):
			delete(named, key) // the last of two counts
		case twice || len(named) < mostUnexplained:
			named[key] = alwaysAsked(asks, startOf(key)+": "+startOf(string(v[:min(len(v), 2*mostShown)])))
		default:
			more[asks]++
		}
	})
	if !isObject && j.command { // that is all of it
		return nil
	} else if !isObject {
		return []policy.Resource{alwaysAsked(permission, string(t.Input))}
	}
	var out []policy.Resource
	for _, key := range slices.Sorted(maps.Keys(named)) {
		out = append(out, named[key])
	}
	for _, asks := range slices.Sorted(maps.Keys(more)) {
		out = append(out, alwaysAsked(asks, fmt.Sprintf("and %d members more", more[asks])))
	}
	return out
}

// givenTwice is the member of a call's input that it has more than once: what is judged and
// shown is one of the two, and the tool may take the other.
func (t told) givenTwice(permission string) []policy.Resource {
	name, twice := wire.Twice(t.Input)
	if !twice {
		return nil
	}
	r := alwaysAsked(permission, startOf(name)+": given more than once")
	r.Why = "which of two values the tool would take can't be told"
	return []policy.Resource{r}
}

const cantTellWhat = "what it would do can't be told"

// mostShown is how much of what can't be told is shown, in bytes.
const mostShown = 1000

// startOf is so much of a text that it is seen that it is cut, if it is too long.
func startOf(text string) string { return text[:min(len(text), 2*mostShown)] }

func alwaysAsked(permission, value string) policy.Resource {
	return policy.Resource{Permission: permission, Value: journal.Cut(value, mostShown), AlwaysAsk: true, Why: cantTellWhat}
}

// explainer is what of a call tells which members of its input are explained.
type explainer struct {
	kind    string
	command bool // it runs one
	changes bool // it changes files
	looks   bool // its agent says that it only looks at something
	diffs   bool // it says how
}

func (t told) explainer() explainer {
	return explainer{
		kind: t.Kind, command: t.command() != "", diffs: len(t.Diffs) > 0,
		changes: t.changesFiles(), looks: t.Kind == "read" || t.Kind == "search",
	}
}

// explains reports whether a member says no more than what is judged of a call.
func (j explainer) explains(key string, v json.RawMessage) bool {
	switch {
	case slices.Contains(ofAnyCall, key):
		return true
	case j.command && (slices.Contains(ofCommand, key) || policy.SaysWhere(key, true)), j.changes && slices.Contains(ofEdit, key), j.diffs && isPatch(key): // of a change that is told besides
		return true
	case j.command, j.changes:
		return false
	case j.kind == "fetch":
		return slices.Contains(ofFetch, key)
	case j.looks:
		_, of := told{Kind: j.kind}.readsBy(key, v)
		return of
	}
	return !policy.SaysWhatRuns(key) // it looks at something: by its names alone
}

// isPatch reports whether a member is a patch by its name: the files that it names are judged.
func isPatch(key string) bool {
	const longest = 100 // more than any of them takes
	return len(key) <= longest && slices.Contains(patches, plain(key))
}

// runsSomething reports whether an input says that it runs something.
func (t told) runsSomething() bool {
	runs := false
	isObject := t.each(func(key string, v json.RawMessage) { runs = runs || says(v) && policy.SaysWhatRuns(key) })
	return runs || !isObject
}

// running are the members of which one can't tell but that they run something; all of what
// a call that executes something was given, if it is no object.
func (t told) running() map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	isObject := t.each(func(key string, v json.RawMessage) {
		if policy.SaysWhatRuns(key) {
			out[key] = v
		}
	})
	if !isObject && t.Kind == "execute" {
		out[""] = t.Input
	}
	return out
}

// each gives the members of the call's input; false: it has another form. It may be long:
// nothing of it is copied.
func (t told) each(give func(key string, v json.RawMessage)) bool {
	return len(t.Input) == 0 || string(t.Input) == "null" || wire.EachMember(t.Input, give)
}

// says reports whether a value says anything.
func says(v json.RawMessage) bool {
	return len(v) > longestNothing || !slices.Contains([]string{"", "null", "false", `""`, "{}", "[]"}, strings.TrimSpace(string(v)))
}

// longestNothing is more than what says nothing has bytes.
const longestNothing = 100

// onlyCommand reports whether a call's command is all that its agent has told of it,
// but for its name.
func (t told) onlyCommand() bool {
	more := false
	isObject := t.each(func(key string, v json.RawMessage) { more = more || key != "command" && says(v) })
	return (!isObject || !more) && t.command() != "" && t.Text == "" && len(t.Diffs) == 0 && len(t.Paths) == 0
}
