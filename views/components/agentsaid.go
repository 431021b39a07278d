package components

import (
	"slices"
	"strings"
)

// said is what the changes of a call say, by file: a member says no more only if it is
// of the same file, and whole.
type said struct {
	paths []string // each once
	files map[string]*saidFile
	size  int // of all texts
}

// saidFile is what is said of one file.
type saidFile struct {
	changes     []saidChange
	were, lines map[string]bool // before and after
}

type saidChange struct {
	old *string
	now string
}

func newSaid(told *agentCall) *said {
	s := &said{files: map[string]*saidFile{}}
	for _, d := range told.Diffs {
		f := s.files[d.Path]
		if f == nil {
			f = &saidFile{were: map[string]bool{}, lines: map[string]bool{}}
			s.files[d.Path], s.paths = f, append(s.paths, d.Path)
		}
		f.changes = append(f.changes, saidChange{d.Old, d.New})
		s.size += len(d.New) + 1
		if d.Old != nil {
			s.size += len(*d.Old)
			for _, line := range textLines(*d.Old) {
				f.were[strings.TrimSuffix(line, "\r")] = true
			}
		}
		for _, line := range textLines(d.New) {
			f.lines[strings.TrimSuffix(line, "\r")] = true
		}
	}
	return s
}

// only is the one file that changes, or nil.
func (s *said) only() *saidFile {
	if len(s.paths) == 1 {
		return s.files[s.paths[0]]
	}
	return nil
}

// Names of members that the changes may say too.
var (
	saidPaths = []string{"filePath", "file_path", "path"}
	saidOlds  = []string{"oldString", "old_string", "old_str", "oldText"}
	saidNews  = []string{"newString", "new_string", "new_str", "newText"}
)

// take gives the names of the members, of those at the top of an input, that say no more
// than the changes.
func (s *said) take(members map[string]any) (names []string) {
	file, path := s.of(members, s.only())
	if path != "" && file != nil {
		names = append(names, path)
	}
	if file == nil && path != "" { // what stands beside it is about another file
		return nil
	}
	if file != nil {
		names = append(names, file.replaces(members)...)
		if text, ok := members["content"].(string); ok && file.is(text) {
			names = append(names, "content")
		}
	}
	if list, ok := members["edits"].([]any); ok && s.edits(list, file) {
		names = append(names, "edits")
	}
	for _, key := range []string{"diff", "patch"} {
		if text, ok := members[key].(string); ok && s.patch(text, file) {
			names = append(names, key)
		}
	}
	return names
}

// of is the file that members name, and under which name; else the one around them. Nil:
// they name one that doesn't change, or several.
func (s *said) of(members map[string]any, around *saidFile) (file *saidFile, under string) {
	for _, key := range saidPaths {
		v, has := members[key]
		if !has {
			continue
		}
		path, ok := v.(string)
		if !ok || under != "" || s.files[path] == nil {
			return nil, key
		}
		file, under = s.files[path], key
	}
	if under == "" {
		return around, ""
	}
	return file, under
}

// replaces gives the names of the two members that say what is replaced by what, if that
// is just what changes.
func (f *saidFile) replaces(members map[string]any) []string {
	old, oldName, ok1 := textUnder(members, saidOlds)
	now, newName, ok2 := textUnder(members, saidNews)
	if !ok1 || !ok2 {
		return nil
	}
	for _, c := range f.changes {
		if c.old == nil {
			if old == "" && now == c.now {
				return []string{oldName, newName}
			}
			continue
		}
		if *c.old == old && c.now == now || old != "" && (strings.Replace(*c.old, old, now, 1) == c.now || strings.ReplaceAll(*c.old, old, now) == c.now) {
			return []string{oldName, newName}
		}
	}
	return nil
}

// textUnder is the text of the one member of these names that there is.
func textUnder(members map[string]any, names []string) (text, name string, ok bool) {
	for _, key := range names {
		v, has := members[key]
		if !has {
			continue
		}
		if name != "" {
			return "", "", false
		}
		if text, ok = v.(string); !ok {
			return "", "", false
		}
		name = key
	}
	return text, name, ok
}

// is reports whether a text is all that the file would hold.
func (f *saidFile) is(text string) bool {
	return len(f.changes) == 1 && f.changes[0].now == text
}

// mostCompared bounds what is compared to find whether a list of changes is what is shown.
const mostCompared = 1 << 24

// edits reports whether each of a list of changes is one of those that are shown, or all
// of them in their order are.
func (s *said) edits(list []any, around *saidFile) bool {
	if len(list) > mostCompared/(s.size+1) {
		return false
	}
	each := true
	var whole *saidFile // all are of this one, which has one change
	text := ""
	for i, one := range list {
		members, ok := one.(map[string]any)
		if !ok {
			return false
		}
		file, under := s.of(members, around)
		if file == nil {
			return false
		}
		two := file.replaces(members)
		for name := range members {
			if name != under && !slices.Contains(saidOlds, name) && !slices.Contains(saidNews, name) {
				return false
			}
		}
		each = each && len(two) == 2
		if i == 0 && len(file.changes) == 1 && file.changes[0].old != nil {
			whole, text = file, *file.changes[0].old
		}
		if file != whole {
			whole = nil
			continue
		}
		old, _, ok1 := textUnder(members, saidOlds)
		now, _, ok2 := textUnder(members, saidNews)
		if !ok1 || !ok2 || old == "" {
			whole = nil
			continue
		}
		text = strings.Replace(text, old, now, 1)
	}
	return each || whole != nil && text == whole.changes[0].now
}

// patch reports whether a text is a patch of lines that come and go in the files that it
// names.
func (s *said) patch(v string, file *saidFile) bool {
	for line := range strings.Lines(v) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case line == "" || strings.Trim(line, "=") == "" || strings.HasPrefix(line, "\\ No newline"):
		case strings.HasPrefix(line, "@@ "):
			if strings.Trim(line, "@+-, 0123456789") != "" {
				return false
			}
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "Index: "):
			next, ok := s.header(line, file)
			if !ok {
				return false
			}
			file = next
		case file == nil || !file.has(line[:1], line[1:]):
			return false
		}
	}
	return true
}

// header is the file that a line before the hunks of a patch names; false: none of the
// changes.
func (s *said) header(line string, file *saidFile) (*saidFile, bool) {
	_, rest, _ := strings.Cut(line, " ")
	name, _, _ := strings.Cut(rest, "\t")
	if name == "/dev/null" {
		return file, true
	}
	for _, name := range []string{name, strings.TrimPrefix(strings.TrimPrefix(name, "a/"), "b/")} {
		if f := s.files[name]; f != nil {
			return f, true
		}
	}
	return nil, false
}

// has reports whether a line of a patch is one of the file's.
func (f *saidFile) has(sign, line string) bool {
	in := func(all map[string]bool) bool { return all[line] || all[strings.TrimPrefix(line, " ")] }
	switch sign {
	case "+":
		return in(f.lines)
	case "-":
		return in(f.were)
	case " ":
		return in(f.lines) && in(f.were)
	}
	return false
}
