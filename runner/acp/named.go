package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/journal"
	"holdfast/journal/policy"
	"holdfast/runner"
	"holdfast/runner/acp/wire"
)

// Bounds of what is looked for in an input: past them a call is asked as a whole.
const (
	mostPath  = 4096 // bytes; no file has a longer name
	mostFiles = 1000 // texts that may be files
	mostInner = 100  // members that are asked about one by one
)

// What a member's text is, by the member's name without its case, dashes and
// underscores.
var (
	// contents are what is written somewhere, or searched for, and words about it.
	contents = []string{
		"content", "contents", "filecontent", "filecontents", "filetext", "inserttext", "newsource", "oldstring", "newstring", "oldstr", "newstr", "oldtext", "newtext",
		"query", "regex", "prompt", "description",
	}
	patches = []string{"diff", "patch", "patchtext", "unifieddiff"}
	// where are the names that say where a call acts.
	where = []string{"filepath", "path", "paths", "files", "absolutepath", "notebookpath", "targetfile", "dirpath", "directory", "dir", "cwd"}
	// inEdits are the members of one of several changes.
	inEdits = []string{"oldText", "newText"}
)

// parts of names that speak of files, and of patterns of their names.
var (
	ofFiles    = []string{"path", "file", "dir", "folder", "uri", "cwd"}
	ofPatterns = []string{"pattern", "glob", "include", "exclude", "ignore"}
)

// input is one look through what a call was given: each text that may be a file is
// judged as one, and what can't be explained is asked.
type input struct {
	ws          string
	permission  string // of files
	asks        string // the permission for what can't be explained
	strange     bool   // of this call a text under any name may be a file
	shell       bool   // it has a command, which is judged for itself
	changes     bool
	changed     map[string]bool // the files of its changes
	files       []policy.Resource
	untold      []policy.Resource
	places      bool // it was said where the call acts
	expanded    int  // patterns that were looked up
	n           int  // what was looked up
	untoldPatch bool // a patch has members
	untoldIn    int  // members inside of others that can't be explained
	globs       []glob
	bases       []string // where patterns may begin besides
}

// look goes through the input once.
func (t *told) look(ws, permission, asks string) *input {
	in := &input{ws: ws, permission: permission, asks: asks, shell: t.command() != "", changes: t.changesFiles(), changed: map[string]bool{}}
	for _, d := range t.Diffs {
		in.changed[relative(d.Path, ws)] = true
	}
	in.strange = in.changes || t.Kind == "read" || t.Kind == "search"
	for _, p := range t.Paths {
		in.place(p)
		in.places = in.places || p != ""
		in.base(p)
	}
	if len(t.Input) == 0 || !says(t.Input) {
		return in
	}
	in.all(t.Input)
	in.judgeGlobs()
	return in
}

// changesFiles reports whether a call is one that changes files, by its kind, its changes or
// what it gives its tool.
func (t *told) changesFiles() bool {
	return len(t.Diffs) > 0 || slices.Contains([]string{"edit", "delete", "move"}, t.Kind) || t.writes()
}

// memberName is a member's name, and what it says of the texts under it: it may be long, and
// they may be many.
type memberName struct {
	is                                             string
	runs, content, patch, patterns, files, isWhere bool
}

func memberNamed(name string) memberName {
	is := plain(name)
	return memberName{
		is: name, runs: policy.SaysWhatRuns(name), content: slices.Contains(contents, is), patch: slices.Contains(patches, is),
		patterns: speaksOf(is, ofPatterns), files: speaksOf(is, ofFiles), isWhere: slices.Contains(where, is),
	}
}

// under is where a value stands: the name that it is under, and whether it is asked about
// with what it stands in. Those of a list are under the list's.
type under struct {
	name  memberName
	asked bool
}

// all looks at each text of a value, and at each name, however deep they stand. It goes
// over the value once, and copies nothing: it may be long.
func (in *input) all(raw json.RawMessage) {
	var open []under // the objects and lists that the value is in
	here, whole := under{}, false
	wire.EachToken(raw, func(is wire.Token, token, rest json.RawMessage) bool {
		switch is {
		case wire.TokenOpen:
			open = append(open, here)
		case wire.TokenClose:
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		case wire.TokenName:
			if len(open) > 0 {
				here, whole = in.member(open, wire.Text(token), rest), true
				return true
			}
		case wire.TokenLeaf:
			if token[0] == '"' {
				in.text(here.name, wire.Text(token), whole)
			}
		}
		whole = false
		if len(open) > 0 {
			here = open[len(open)-1] // of what comes next in a list
		}
		return true
	})
}

// member looks at a name of a member of the last of what is open, and tells where its
// value stands, with which rest begins.
func (in *input) member(open []under, key string, rest json.RawMessage) under {
	of := open[len(open)-1]
	in.key(of.name, key)
	if of.name.patch && !in.untoldPatch { // it has a form of its own
		in.untoldPatch = true
		in.cantTellPatch(key)
	}
	asked := of.asked || len(open) > 1 && in.inner(of.name.is, key, rest)
	return under{memberNamed(key), asked}
}

// inner asks for what is said inside of a member, and says more than what is judged;
// false: it doesn't.
func (in *input) inner(name, key string, rest json.RawMessage) bool {
	told := !policy.SaysWhatRuns(key)
	if in.changes && slices.Contains(ofEdit, name) {
		told = slices.Contains(ofEdit, key) || slices.Contains(inEdits, key)
	}
	if told || saysNothing(rest) {
		return false
	}
	if in.untoldIn++; in.untoldIn > mostInner {
		if in.untoldIn == mostInner+1 {
			in.untold = append(in.untold, alwaysAsked(in.asks, fmt.Sprintf("more than %d members inside of others", mostInner)))
		}
		return true
	}
	text := wire.First(rest)
	in.untold = append(in.untold, alwaysAsked(in.asksFor(key), journal.Cut(name, 200)+": "+journal.Cut(key, 200)+": "+string(text[:min(len(text), 2*mostShown)])))
	return true
}

// saysNothing reports whether a text begins with a value that says nothing.
func saysNothing(rest json.RawMessage) bool {
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return slices.ContainsFunc([]string{"null", "false", `""`}, func(word string) bool { return bytes.HasPrefix(rest, []byte(word)) })
}

// asksFor is the permission to ask for a member that can't be explained.
func (in *input) asksFor(key string) string {
	if policy.SaysWhatRuns(key) && in.asks != policy.PermissionWeb {
		return policy.PermissionShell
	}
	return in.asks
}

// key looks at a member's name: some tools take files by name.
func (in *input) key(name memberName, key string) {
	if in.strange && leads(key) || name.files && in.isThere(key) {
		in.place(key)
	}
}

// text looks at one text. whole: it is all of what stands under the name.
func (in *input) text(name memberName, text string, whole bool) {
	switch {
	case text == "" || name.runs, in.shell && policy.SaysWhere(name.is, true):
	case name.content:
	case name.patch:
		in.patch(text, whole)
	case name.patterns:
		if in.strange && in.spend() {
			in.globs = append(in.globs, glob{name: plain(name.is), text: text})
		}
	case name.files:
		in.places = in.places || name.isWhere
		in.base(text)
		in.place(text)
		in.several(text)
	case strings.HasPrefix(strings.ToLower(text[:min(len(text), len("file:/"))]), "file:/"), in.strange && leads(text), in.strange && in.isThere(text):
		in.place(text)
	}
}

// spend counts what is looked up; false: it is too much, and asked as that.
func (in *input) spend() bool {
	if in.n++; in.n == mostFiles+1 {
		in.untold = append(in.untold, alwaysAsked(in.asks, fmt.Sprintf("more than %d files", mostFiles)))
	}
	return in.n <= mostFiles
}

// patch judges the files that a patch names. If it may name more that nobody can tell, it
// is asked, whatever rules allow: they are about files.
func (in *input) patch(text string, whole bool) {
	if line := readPatch(text, whole, in.header); line != "" {
		in.cantTellPatch(line)
	}
}

func (in *input) cantTellPatch(part string) {
	r := alwaysAsked(in.asks, "a part of its patch: "+startOf(part))
	r.Why = "the files that its patch changes can't all be told"
	in.untold = append(in.untold, r)
}

// header is a file that a patch names, and whether the call says that it changes that. What
// stands before it, as git writes it, may be a folder or not: unless it is a file that is
// judged anyway, both are.
func (in *input) header(file string) (changed bool) {
	short := file
	if strings.HasPrefix(file, "a/") || strings.HasPrefix(file, "b/") {
		short = file[2:]
		in.place(short)
		if in.changed[short] {
			return true
		}
	}
	in.place(file)
	if in.changed[relative(file, in.ws)] {
		return true
	}
	// Beside a change of other files: how much of it is left out nobody can tell.
	for len(in.changed) > 0 && !filepath.IsAbs(short) {
		first, rest, cut := strings.Cut(short, "/")
		if !cut || in.isThere(first) {
			break
		}
		short = rest
		in.place(short)
	}
	return false
}

// base takes a path for a folder that patterns may begin in.
func (in *input) base(path string) {
	if path != "" && len(path) <= mostPath && len(in.bases) <= mostBases && !slices.Contains(in.bases, path) {
		in.bases = append(in.bases, path)
	}
}

// several takes a path that is a pattern, and no file, for one: tools may take it for that.
func (in *input) several(text string) {
	switch {
	case !strings.ContainsAny(text, "*?[{") || in.isThere(text):
	case in.strange && !in.changes:
		in.globs = append(in.globs, glob{text: text, path: true})
	case in.changes && strings.Contains(text, "*"):
		in.files = append(in.files, policy.Resource{Permission: in.permission, Value: journal.Cut(text, mostShown), Unproven: true, Why: "it may name several files"})
	}
}

// pattern looks at where a pattern begins that most likely is of what stands in files: one
// that leads to a place that is there is judged by it.
func (in *input) pattern(text string) {
	if !leads(text) || strings.HasPrefix(text, "//") || strings.ContainsAny(text, `\^$()|+`) {
		return
	}
	at := strings.IndexAny(text, "*?[{")
	if at < 0 {
		at = len(text)
	} else {
		at = strings.LastIndex(text[:at], "/") + 1
	}
	begins, rest := text[:at], text[at:]
	switch {
	case strings.HasPrefix(text, "~"), strings.Contains(text, ":"), slices.Contains(strings.Split(rest, "/"), ".."):
		in.place(text)
	case begins != "/" && in.isThere(begins):
		in.place(text)
	}
}

// isThere reports whether a text names a file that is there, from the workspace on.
func (in *input) isThere(text string) bool {
	if text == "" || len(text) > mostPath || strings.ContainsAny(text, "\n\x00") || !in.spend() {
		return false
	}
	if !filepath.IsAbs(text) {
		text = filepath.Join(in.ws, text)
	}
	_, err := os.Lstat(text)
	return err == nil
}

var noDashes = strings.NewReplacer("_", "", "-", "")

// plain is a member's name without what names are written differently in.
func plain(name string) string { return strings.ToLower(noDashes.Replace(name)) }

func speaksOf(name string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(name, part) })
}

// leads reports whether a text reads like a path that may lead out of the workspace,
// whatever it is called.
func leads(text string) bool {
	if len(text) > mostPath || strings.ContainsAny(text, "\n\x00") {
		return false
	}
	text = strings.Trim(trimmed(text), "\"'`<>")
	name, _, _ := strings.Cut(text, "/")
	return name == "" && text != "" || strings.HasPrefix(name, "$") && !strings.Contains(name, " ") || strings.HasPrefix(name, "~") && !strings.Contains(name, " ") || strings.HasPrefix(strings.ToLower(text), "file:") || slices.Contains(strings.Split(text, "/"), "..")
}

// local is the file that a path or an address names; false: it is none of this machine's.
func local(text string) (path string, known bool) {
	scheme, rest, has := strings.Cut(text, ":")
	if has && strings.EqualFold(scheme, "file") {
		u, err := url.Parse(text)
		if err != nil || u.Path == "" || u.Host != "" && u.Host != "localhost" {
			return "", false
		}
		return u.Path, true
	}
	return text, !has || !strings.HasPrefix(rest, "//")
}

// fileOf is a file that an agent names by a path or an address.
func fileOf(permission, path, ws string) policy.Resource {
	file, known := local(path)
	if !known || len(file) > mostPath {
		return alwaysAsked(permission, path)
	}
	return runner.FileResource(permission, file, ws)
}
