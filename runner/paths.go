package runner

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/journal/policy"
)

// Bounds of the search for links: past them the command is asked as a whole.
const (
	maxWords   = 2000
	maxFolders = 32
	maxMatches = 1000
	maxLooked  = 100_000 // files, and names in folders that patterns are compared with
)

// realPaths resolves the symlinks of the files that a command names: rules are
// about where a file lies, not about what it is called. A link that leads out of
// the workspace makes it another folder's business.
func realPaths(resources []policy.Resource, workspace string) []policy.Resource {
	out := make([]policy.Resource, 0, len(resources))
	for _, r := range resources {
		if (r.Permission == policy.PermissionEdit || r.Permission == policy.PermissionRead) && !r.Opaque && !r.Neutral && !filepath.IsAbs(r.Value) {
			resolved := realPath(filepath.Join(workspace, r.Value), 0)
			rel, err := filepath.Rel(workspace, resolved)
			if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
				out = append(out, policy.Resource{Permission: policy.PermissionExternal, Value: filepath.Dir(resolved), AlwaysAsk: true, Why: "a link leads out of the workspace"})
				continue
			}
			r.Value = rel
		}
		out = append(out, r)
	}
	return out
}

// linksNamed finds the links that a command may follow: each of its words is
// looked up in the workspace, and in each folder that some of its words lead to
// one after the other, as cd may. A link that leads out reaches outside; one
// that leads elsewhere inside reads that file, under its real name. It may name
// more than the command follows, never less but for what the command computes.
// all is false if there is too much to look at.
func linksNamed(command, workspace string) (found []policy.Resource, all bool) {
	words, ok := policy.Words(command)
	if !ok {
		return nil, true // opaque already
	}
	var names []string
	for _, w := range words {
		names = append(names, append(strings.FieldsFunc(w, func(r rune) bool { return r == '=' || r == ':' || r == ',' }), w)...)
	}
	if len(names) > maxWords {
		return nil, false
	}
	l := links{workspace: workspace, folders: []string{workspace}, seen: map[string]bool{}, room: maxLooked}
	for i := 0; i < len(l.folders); i++ {
		for _, name := range names {
			l.up(l.folders[i], name)
			matches, ok := l.matching(l.folders[i], name)
			if l.room -= len(matches); !ok || l.room < 0 {
				return nil, false
			}
			for _, path := range matches {
				l.look(path)
			}
		}
		if len(l.folders) > maxFolders {
			return nil, false
		}
	}
	return l.found, true
}

// links is a search for links, from the workspace on.
type links struct {
	workspace string
	folders   []string // where a word may be looked up
	found     []policy.Resource
	seen      map[string]bool
	room      int // how much may still be looked at
}

func (l *links) look(path string) {
	if r := throughLink(path, l.workspace); r != nil && !l.seen[r.Permission+r.Value] {
		l.seen[r.Permission+r.Value] = true
		l.found = append(l.found, *r)
	}
	inside := strings.HasPrefix(path, l.workspace+"/")
	if info, err := os.Stat(path); err == nil && info.IsDir() && inside && !slices.Contains(l.folders, path) {
		l.folders = append(l.folders, path)
	}
}

// up looks whether a word goes up again from a folder that is a link: the paths that are
// looked at otherwise read as if it weren't one.
func (l *links) up(dir, name string) {
	parts := strings.Split(name, "/")
	at := slices.Index(parts, "..")
	if at < 0 {
		return
	}
	begins, rest := strings.Join(parts[:at], "/"), "/"+strings.Join(parts[at:], "/")
	if !filepath.IsAbs(name) {
		begins = dir + "/" + begins
	}
	froms := []string{begins}
	if strings.ContainsAny(begins, "*?[") {
		froms = l.expand("/", strings.Split(strings.TrimPrefix(filepath.Clean(begins), "/"), "/"))
	}
	for _, from := range froms {
		if r, is := UpFromLink(from + rest); is && !l.seen[r.Permission+r.Value] {
			l.seen[r.Permission+r.Value] = true
			l.found = append(l.found, r)
		}
	}
}

// matching gives the paths that a word may mean in a folder.
func (l *links) matching(dir, name string) ([]string, bool) {
	path := name
	if !filepath.IsAbs(name) {
		path = filepath.Join(dir, name)
	}
	if !strings.ContainsAny(name, "*?[") {
		return []string{path}, true
	}
	if _, err := filepath.Match(path, ""); err != nil { // no pattern of ours: it matches nothing
		return []string{path}, true
	}
	matches := l.expand("/", strings.Split(strings.TrimPrefix(path, "/"), "/"))
	return append(matches, path), l.room >= 0 && len(matches) <= maxMatches
}

// Matches are the files that a pattern names, from a workspace on; all: there are no more.
func Matches(pattern, workspace string) (found []string, all bool) {
	l := links{workspace: workspace, room: maxLooked}
	found, all = l.matching(workspace, pattern)
	return found[:len(found)-1], all // the last is the pattern itself
}

// expand gives the paths below a folder that fit a pattern, given by its parts, as long as
// there is room: a pattern may mean all files of the machine.
func (l *links) expand(dir string, parts []string) (found []string) {
	if len(parts) == 0 {
		if _, err := os.Lstat(dir); err != nil {
			return nil
		}
		return []string{dir}
	}
	if !strings.ContainsAny(parts[0], `*?[\`) {
		return l.expand(filepath.Join(dir, parts[0]), parts[1:])
	}
	for _, name := range l.names(dir) {
		if l.room < 0 || len(found) > maxMatches {
			return found
		}
		if fits, err := filepath.Match(parts[0], name); err == nil && fits {
			found = append(found, l.expand(filepath.Join(dir, name), parts[1:])...)
		}
	}
	return found
}

// names gives those of the files in a folder.
func (l *links) names(dir string) []string {
	l.room--
	if l.room < 0 {
		return nil
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() { // a pipe would be waited for
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = d.Close() }()
	names, _ := d.Readdirnames(l.room + 1) // what can't be read has none
	l.room -= len(names)
	slices.Sort(names)
	return names
}

// throughLink says what a path inside of the workspace really reaches, or nil if no link is on its way.
func throughLink(path, workspace string) *policy.Resource {
	if path != workspace && !strings.HasPrefix(path, workspace+"/") {
		return nil
	}
	resolved := realPath(path, 0)
	if resolved == filepath.Clean(path) {
		return nil
	}
	if rel, err := filepath.Rel(workspace, resolved); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
		return &policy.Resource{Permission: policy.PermissionRead, Value: rel, Why: "a link leads there"}
	}
	return &policy.Resource{Permission: policy.PermissionExternal, Value: resolved, AlwaysAsk: true, Why: "a link leads out of the workspace"}
}

// UpFromLink is what an absolute path is asked as that goes up again from a folder that is a
// link; false: it doesn't.
func UpFromLink(path string) (policy.Resource, bool) {
	reads := realPath(filepath.Clean(path), 0)
	if !upFromLink(path, reads) {
		return policy.Resource{}, false
	}
	return policy.Resource{Permission: policy.PermissionExternal, Value: filepath.Dir(reads), AlwaysAsk: true, Why: "it goes up again from a folder that is a link"}, true
}

// upFromLink reports whether an absolute path leads somewhere else than it reads, since a
// ".." in it stands behind a link: whoever opens it goes up from where the link leads.
func upFromLink(path, reads string) bool {
	if !slices.Contains(strings.Split(path, "/"), "..") {
		return false
	}
	at, up := "/", 0
	for part := range strings.SplitSeq(path, "/") {
		switch {
		case part != "..":
			at = filepath.Join(at, part)
		case up > maxFolders: // nobody names a file so
			return true
		default:
			up++
			at = filepath.Dir(realPath(at, 0))
		}
	}
	return realPath(at, 0) != reads
}

// maxLinks ends a walk through links that lead in a circle: such a path lies nowhere that may be allowed.
const maxLinks = 40

// realPath resolves the part of a path that exists; what doesn't stays as it is named.
func realPath(path string, links int) string {
	if len(path) > 2*maxPath { // no link leads there; to look for each of its folders would take long
		return "/"
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	dir := filepath.Dir(path)
	if dir == path || links > maxLinks {
		return "/"
	}
	if there := existing(path); there != path { // at once: what isn't there may be thousands of folders deep
		return filepath.Join(realPath(there, links), path[len(there):])
	}
	// A link whose target isn't there yet leads there all the same.
	if target, err := os.Readlink(path); err == nil {
		if !filepath.IsAbs(target) {
			target = filepath.Join(realPath(dir, links+1), target)
		}
		return realPath(filepath.Clean(target), links+1)
	}
	return filepath.Join(realPath(dir, links), filepath.Base(path))
}

// existing is so much of an absolute path as there is a file or folder of, or a link.
func existing(path string) string {
	if !filepath.IsAbs(path) {
		return path
	}
	end := 1
	for end < len(path) {
		next := len(path)
		if i := strings.IndexByte(path[end+1:], '/'); i >= 0 {
			next = end + 1 + i
		}
		if _, err := os.Lstat(path[:next]); err != nil {
			return path[:end]
		}
		end = next
	}
	return path
}
