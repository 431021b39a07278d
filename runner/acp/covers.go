package acp

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/runner/acp/wire"
)

// covers reports whether a description says nothing that t doesn't: it tells less of it,
// or the same in another form. The same words for something else are something else: of
// another file, or a folder around it, of more effect, or with the values the other way
// around.
func (t *told) covers(now *told, ws string) bool {
	if now.doesMore(t) || t.namedAnew(now) {
		return false
	}
	was, runs := t.running(), now.running()
	for key, v := range runs {
		if says(v) && string(v) != string(was[key]) && !t.sameCommand(now, key, was[key], v) {
			return false // a part of a command is another one
		}
	}
	k := t.known(ws)
	if only := len(t.Input) == 0 && len(t.Diffs) == 0; now.Text != "" && (only || t.Text != "") && !k.all.said().has(now.Text) {
		return false // what it shows is what was asked; else it is a remark
	}
	if !k.input(now.Input, runs) || slices.ContainsFunc(now.Paths, func(p string) bool { return !k.file(p) }) {
		return false
	}
	return !slices.ContainsFunc(now.Diffs, func(d diff) bool { return !k.file(d.Path) || !k.change(d) })
}

// sameCommand reports whether what runs under a member is the command that was told, in
// another form: what was judged is the line, whatever it is given as.
func (t *told) sameCommand(now *told, key string, was, is json.RawMessage) bool {
	line := commandOf(is)
	if key == "command" || key == "" {
		return line != "" && line == t.command() && line == now.command()
	}
	return line != "" && line == commandOf(was)
}

// What a call may do at most by its kind, from what changes nothing on.
const (
	looks = iota
	fetches
	unsaid // it may be any that its input doesn't show
	edits
	deletes // or moves: what was there is gone
	executes
)

var kinds = map[string]int{"think": looks, "search": looks, "read": looks, "fetch": fetches, "edit": edits, "delete": deletes, "move": deletes, "execute": executes}

func mostOf(kind string) int {
	if most, known := kinds[kind]; known {
		return most
	}
	return unsaid
}

// doesMore reports whether a call is now said to be of a kind that does more than what was
// judged of it, or something else that can't be undone.
func (t *told) doesMore(was *told) bool {
	before, now := mostOf(was.Kind), mostOf(t.Kind)
	if len(was.Diffs) > 0 {
		before = max(before, edits)
	}
	for _, v := range was.running() {
		if says(v) {
			before = executes
		}
	}
	return t.Kind != was.Kind && (now > before || now == before && now == deletes)
}

// namedAnew reports whether a call has another title now whose title said what it would do.
func (t *told) namedAnew(now *told) bool {
	only := !says(t.Input) && len(t.Diffs) == 0 && len(t.Paths) == 0 && t.Text == ""
	if !only && (t.Kind != "execute" || t.runsSomething()) {
		return false
	}
	plainly := func(title string) string { return strings.Trim(title, "` \t\r\n") }
	return plainly(now.Title) != plainly(t.Title)
}

// What members mean the same by their names, but for their case and dashes. Values that
// change places between them say something else.
const (
	rolePath        = "path"
	roleSource      = "source"
	roleDestination = "destination"
	roleDirectory   = "directory"
	roleOld         = "old"
	roleNew         = "new"
	roleContent     = "content"
)

var roles = map[string]string{}

func init() {
	for role, names := range map[string]string{
		rolePath:        "path paths file files filename filepath absolutepath targetfile notebookpath uri",
		roleSource:      "source src from sourcepath srcpath frompath oldpath oldname",
		roleDestination: "destination dest dst to target destinationpath destpath targetpath topath newpath newname",
		roleDirectory:   "workdir cwd workingdirectory directory dir",
		roleOld:         "oldstring oldstr oldtext",
		roleNew:         "newstring newstr newtext",
		roleContent:     "content contents filecontent filecontents filetext inserttext newsource",
	} {
		for _, name := range strings.Fields(names) {
			roles[name] = role
		}
	}
}

// longestName is more bytes than the name of a member takes that means anything here.
const longestName = 100

// roleOf is what a member is for: its name, if it has no other.
func roleOf(name string) string {
	if len(name) > longestName {
		return name
	}
	is := plain(name)
	if role := roles[is]; role != "" {
		return role
	}
	return is
}

// ofFile reports whether what stands under a role names a file.
func ofFile(role string) bool {
	switch role {
	case rolePath, roleSource, roleDestination, roleDirectory:
		return true
	}
	return len(role) <= longestName && speaksOf(role, ofFiles)
}

// ofText reports whether a part of what stands under a role says no more than the whole.
func ofText(role string) bool {
	switch role {
	case roleOld, roleNew, roleContent:
		return true
	}
	return slices.Contains(contents, role)
}

// mostCompared bounds the inputs, in bytes, that are compared member by member. One that
// is longer is the same byte by byte, or something else.
const mostCompared = 8 << 20

// known is what was told of a call, to be compared with.
type known struct {
	ws      string
	is      *told
	members map[string][]json.RawMessage // of its input, by their roles
	all     side
	files   map[string]bool
	side    sides             // of its input, and of what it shows
	diffs   map[string]*sides // of its changes, by their files
	left    int               // how much may still be compared
}

// sides are what a call said that it takes, and that it brings.
type sides struct{ old, new side }

// side is some texts, to be searched if that is needed: they may be long.
type side struct {
	texts  []string
	sought *sayings
}

func (s *side) add(text string) { s.texts = append(s.texts, text) }

func (s *side) said() *sayings {
	if s.sought == nil {
		s.sought = sayingsOf(s.texts)
	}
	return s.sought
}

func (t *told) known(ws string) *known {
	k := &known{ws: ws, is: t, members: map[string][]json.RawMessage{}, files: map[string]bool{}, diffs: map[string]*sides{}, left: mostSearched}
	k.words(t.Title)
	k.words(t.Text)
	for _, v := range t.running() {
		k.words(wire.Text(v))
	}
	for _, p := range t.Paths {
		k.all.add(p)
		k.files[k.absolute(p)] = true
	}
	for _, s := range []*side{&k.all, &k.side.old, &k.side.new} {
		s.texts = append(s.texts, t.Title, t.Text)
	}
	eachNamed(t.Input, func(role string, leaf json.RawMessage) {
		if says(leaf) {
			k.leaf(role, textOf(leaf))
		}
	})
	for _, d := range t.Diffs {
		k.diff(d)
	}
	if dirs, _ := t.directories(ws, true); t.command() != "" && len(dirs) == 0 { // it was judged to run there
		k.files[k.absolute(ws)] = true
	}
	wire.EachMember(t.Input, func(name string, v json.RawMessage) { k.members[roleOf(name)] = append(k.members[roleOf(name)], v) })
	return k
}

// leaf takes what the input held.
func (k *known) leaf(role, text string) {
	k.all.add(text)
	if ofFile(role) && len(k.files) < mostFiles && len(text) <= mostPath {
		k.files[k.absolute(text)] = true
	}
	if role != roleNew && role != roleContent {
		k.side.old.add(text)
	}
	if role != roleOld {
		k.side.new.add(text)
	}
}

// diff takes a change that was told.
func (k *known) diff(d diff) {
	file := k.absolute(d.Path)
	s := k.diffs[file]
	if s == nil {
		s = &sides{}
		k.diffs[file], k.files[file] = s, true
	}
	k.all.add(d.Path)
	k.all.add(d.New)
	s.new.add(d.New)
	if d.Old != nil {
		k.all.add(*d.Old)
		s.old.add(*d.Old)
	}
}

// words are the files that a text may name, but for folders that hold the workspace.
func (k *known) words(text string) {
	for word := range strings.FieldsSeq(text[:min(len(text), mostDiff)]) {
		word = strings.Trim(word, "`'\"(),;:")
		if file := k.absolute(word); word != "" && len(k.files) < mostFiles && len(word) <= mostPath && !within(k.ws, file) {
			k.files[file] = true
		}
	}
}

// within reports whether a path is that of a folder, or lies in it.
func within(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// eachNamed gives what a value of a message holds, with the role of the member that it is
// under: those of a list are under the list's.
func eachNamed(raw json.RawMessage, give func(role string, leaf json.RawMessage)) {
	var open []string
	here := ""
	wire.EachToken(raw, func(is wire.Token, token, _ json.RawMessage) bool {
		switch is {
		case wire.TokenOpen:
			open = append(open, here)
		case wire.TokenClose:
			open = open[:max(0, len(open)-1)]
		case wire.TokenName:
			here = roleOf(wire.Text(token))
			return true
		case wire.TokenLeaf:
			give(here, token)
		}
		if len(open) > 0 {
			here = open[len(open)-1]
		}
		return true
	})
}

// absolute is a path in its plain form, from the workspace on.
func (k *known) absolute(path string) string {
	if file, ok := local(path); ok {
		path = file
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(k.ws, path)
	}
	return filepath.Clean(path)
}

// file reports whether a path is one of the files that were told: a folder around one, or
// a part of its name, is another.
func (k *known) file(path string) bool { return path == "" || k.files[k.absolute(path)] }

// input reports whether an input says nothing that wasn't told, but for what it runs.
func (k *known) input(now json.RawMessage, runs map[string]json.RawMessage) bool {
	was := k.is.Input
	switch {
	case !says(now), bytes.Equal(was, now), same(told{Input: was}, told{Input: now}):
		return true
	case len(was)+len(now) > mostCompared:
		return false
	}
	all := true
	isObject := wire.EachMember(now, func(name string, v json.RawMessage) {
		_, compared := runs[name]
		all = all && (compared || !says(v) || k.member(name, v))
	})
	_, compared := runs[""] // all of it
	return all && (isObject || compared || k.leaves(now, k.all.said().is))
}

// member reports whether a member says nothing that wasn't told: what it was before, if it
// was there, or else what stood elsewhere for the same.
func (k *known) member(name string, v json.RawMessage) bool {
	role := roleOf(name)
	if was := k.members[role]; len(was) > 0 {
		return slices.ContainsFunc(was, func(w json.RawMessage) bool { return k.value(role, w, v) })
	}
	switch {
	case slices.Contains(ofAnyCall, name): // words about it
		return true
	case k.is.Kind == "move" && len(k.members) > 0: // from where to where is said by the names
		return false
	case ofFile(role):
		return k.leaves(v, k.file)
	case role == roleOld:
		return k.leaves(v, k.taken)
	case role == roleNew, role == roleContent:
		return k.leaves(v, k.brought)
	}
	return k.leaves(v, k.all.said().is)
}

// leaves reports whether all that a value holds was told.
func (k *known) leaves(v json.RawMessage, told func(text string) bool) bool {
	all := true
	wire.EachLeaf(v, func(leaf json.RawMessage) bool {
		all = !says(leaf) || told(textOf(leaf))
		return all
	})
	return all
}

func (k *known) taken(text string) bool {
	return k.onSide(text, func(s *sides) *side { return &s.old })
}

func (k *known) brought(text string) bool {
	return k.onSide(text, func(s *sides) *side { return &s.new })
}

func (k *known) onSide(text string, of func(*sides) *side) bool {
	if of(&k.side).said().has(text) {
		return true
	}
	for _, s := range k.diffs {
		if of(s).said().has(text) {
			return true
		}
	}
	return false
}

// value reports whether a value says nothing that was doesn't, which stood for the same.
func (k *known) value(role string, was, now json.RawMessage) bool {
	if k.left -= len(was) + len(now); k.left < 0 {
		return false
	}
	if !says(now) || same(told{Input: was}, told{Input: now}) {
		return true
	}
	isList := func(v json.RawMessage) bool { return len(v) > 0 && v[0] == '[' }
	switch {
	case now[0] == '{':
		return k.object(was, now)
	case isList(now):
		return isList(was) && k.list(role, was, now)
	case isList(was):
		return k.list(role, was, json.RawMessage("["+string(now)+"]"))
	case now[0] != '"' || len(was) == 0 || was[0] != '"':
		return false
	}
	before, after := wire.Text(was), wire.Text(now)
	switch {
	case ofFile(role):
		return k.absolute(before) == k.absolute(after)
	case ofText(role):
		return strings.Contains(before, strings.TrimSpace(after))
	}
	return strings.TrimSpace(before) == strings.TrimSpace(after)
}

func (k *known) object(was, now json.RawMessage) bool {
	before := map[string]json.RawMessage{}
	if !wire.EachMember(was, func(name string, v json.RawMessage) { before[roleOf(name)] = v }) {
		return false
	}
	all := true
	wire.EachMember(now, func(name string, v json.RawMessage) {
		w, had := before[roleOf(name)]
		all = all && (!says(v) || had && k.value(roleOf(name), w, v))
	})
	return all
}

// list reports whether what a list has was told, in that order.
func (k *known) list(role string, was, now json.RawMessage) bool {
	var before, after []json.RawMessage
	if json.Unmarshal(was, &before) != nil || json.Unmarshal(now, &after) != nil {
		return false
	}
	for _, v := range after {
		for len(before) > 0 && !k.value(role, before[0], v) {
			before = before[1:]
		}
		if len(before) == 0 {
			return false
		}
		before = before[1:]
	}
	return true
}

// change reports whether each line that a change takes was said to be taken, and each that
// it brings to be brought, in that file: whole, or the part of it that changes.
func (k *known) change(d diff) bool {
	c, s := d.change(), k.diffs[k.absolute(d.Path)]
	if s == nil {
		s = &sides{}
	}
	return k.side.old.lines(c.taken, &s.old) && k.side.new.lines(c.brought, &s.new)
}

// lines reports whether each line of a text is said on one of two sides.
func (s *side) lines(text string, more *side) bool {
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if line = strings.TrimSpace(line); line != "" && !s.has(line) && !more.has(line) {
			return false
		}
	}
	return true
}

func (s *side) has(line string) bool {
	return s.said().has(line) || s.said().holds(line, s.texts)
}
