package acp

import (
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"holdfast/journal/policy"
	"holdfast/runner"
)

// Bounds of what one path may mean.
const (
	mostMeanings = 50
	mostExpanded = 20 // patterns of a call that are looked up
)

// place takes a text for a file that the call reads or changes, with all that a tool may
// make of it: one that is padded, in quotes or a pattern isn't judged as that name alone.
func (in *input) place(path string) {
	if path == "" {
		return
	}
	in.only(path)
	if len(path) > mostPath || !strings.ContainsFunc(path, odd) {
		return
	}
	all, plainly := meanings(path)
	if !plainly {
		in.mayName(path)
	}
	for i, one := range all {
		if i > 0 {
			in.only(one)
		}
		if strings.ContainsAny(one, "*?[") || oneGroup.MatchString(one) {
			in.expand(one)
		}
	}
}

// only takes a path for the file of that name.
func (in *input) only(path string) {
	if path == "" || !in.spend() {
		return
	}
	r := fileOf(in.permission, path, in.ws)
	if r.Why == cantTellWhat {
		in.untold = append(in.untold, alwaysAsked(in.asks, path))
		return
	}
	in.files = append(in.files, r)
	if file, _ := local(path); r.Permission == policy.PermissionExternal { // a folder is entered, and not only what it lies in
		if folder, is := runner.FolderOutside(file, in.ws); is && folder != r.Value {
			r.Value = folder
			in.files = append(in.files, r)
		}
	}
}

// mayName asks for a path of which nobody can tell what a tool makes of it.
func (in *input) mayName(path string) {
	r := alwaysAsked(in.permission, path)
	r.Why = "a tool may take it for another file than it reads"
	in.untold = append(in.untold, r)
}

// expand takes a path for a pattern: the files that fit it are judged, and rules for those
// that it may name.
func (in *input) expand(pattern string) {
	wild := wildcard(pattern)
	if at := max(0, strings.IndexAny(pattern, "*?[")); slices.Contains(strings.Split(pattern[at:], "/"), "..") {
		in.mayName(pattern)
		return
	}
	in.could(pattern, wild)
	if in.expanded++; in.expanded > mostExpanded {
		in.mayName(pattern)
		return
	}
	found, all := runner.Matches(strings.ReplaceAll(oneGroup.ReplaceAllString(pattern, "*"), "[!", "[^"), in.ws)
	if !all {
		in.mayName(pattern)
		return
	}
	for _, path := range found {
		if r := fileOf(in.permission, path, in.ws); in.changes || r.Permission == policy.PermissionExternal {
			in.only(path)
		}
	}
}

// could has a file that reads like a pattern judged by rules for what it may name as well. Of
// what is only read, patterns that may be of any file are judged elsewhere.
func (in *input) could(pattern, wild string) {
	r, names := fileOf(in.permission, pattern, in.ws), fileOf(in.permission, wild, in.ws)
	if r.Permission != in.permission || r.AlwaysAsk || names.Permission != in.permission || !in.changes && strings.Contains(wild, "*") {
		return
	}
	plain := r
	r.Could, r.Why = names.Value, "it may name several files"
	if i := slices.Index(in.files, plain); i >= 0 {
		in.files[i] = r
	} else {
		in.files = append(in.files, r)
	}
}

// wildcard is a pattern as rules are compared with it: * and ? are all that it has.
func wildcard(pattern string) string {
	return oneOf.ReplaceAllString(oneGroup.ReplaceAllString(pattern, "*"), "?")
}

// odd reports whether a character in a path may stand for something else for some tool.
func odd(r rune) bool {
	return strings.ContainsRune("*?[({$%`'\"\\<>@:#", r) || blank(r)
}

var (
	oneGroup = regexp.MustCompile(`[@!+*?]\([^/]*\)`)
	oneOf    = regexp.MustCompile(`\[[^/]*?\]`)
	atLine   = regexp.MustCompile(`(:\d+(-\d+)?|#L?\d+(-L?\d+)?)$`)
	variable = regexp.MustCompile(`\$\w*`)
	// setOutside are what shells take for a variable that is most likely set, or more.
	setOutside = regexp.MustCompile("^\\$|\\$[A-Z_{(]|`|%[A-Z_]+%|^%")
)

// meanings are all that a path may mean, itself first; plainly: there is no more.
func meanings(path string) (all []string, plainly bool) {
	all, plainly = []string{path}, true
	for i := 0; i < len(all); i++ {
		one := all[i]
		others, known := readings(one)
		plainly = plainly && known
		for _, other := range others {
			if other != "" && !slices.Contains(all, other) {
				all = append(all, other)
			}
		}
		if len(all) > mostMeanings {
			return all[:mostMeanings], false
		}
	}
	return all, plainly
}

// readings are what a tool may make of a path in one step; known: these are all.
func readings(path string) (others []string, known bool) {
	bare := trimmed(path)
	known = bare != "" && !strings.ContainsFunc(bare, unicode.IsControl) && !setOutside.MatchString(bare) && !hasVariable(bare)
	others = append(others, bare, strings.Trim(bare, "\"'`<>"), strings.TrimPrefix(bare, "@"), atLine.ReplaceAllString(bare, ""), variable.ReplaceAllString(bare, ""))
	if strings.Contains(bare, `\`) {
		others = append(others, strings.ReplaceAll(bare, `\`, ""), strings.ReplaceAll(bare, `\`, "/"))
	}
	if decoded, err := url.PathUnescape(bare); err == nil {
		others = append(others, decoded)
	}
	if len(bare) > len("file:") && strings.EqualFold(bare[:len("file:")], "file:") {
		if rest := strings.TrimPrefix(bare[len("file:"):], "//"); strings.ContainsAny(rest, "?#%") {
			others = append(others, rest)
		}
	}
	if strings.Contains(bare, "{") {
		alternatives, told := braces([]string{bare})
		known = known && told
		others = append(others, alternatives...)
	}
	return others, known
}

// hasVariable reports whether a path has a variable that is set here, so most likely for
// the agent too.
func hasVariable(path string) bool {
	return slices.ContainsFunc(variable.FindAllString(path, mostMeanings), func(name string) bool { return os.Getenv(name[1:]) != "" })
}
