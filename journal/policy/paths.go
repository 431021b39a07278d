package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// place is where a path of a command leads, as far as its text tells.
type place struct {
	inside bool
	rel    string // inside: relative to the workspace
	abs    string // outside: absolute, or "~name" for another person's home
	unsure string // why it can't be told; then nothing else is set
}

// cleanRoot returns the workspace in the form that locate compares with, or ""
// if it is none that anything could be inside of.
func cleanRoot(workspace string) string {
	if !strings.HasPrefix(workspace, "/") {
		return ""
	}
	if root := path.Clean(workspace); root != "/" {
		return root
	}
	return ""
}

// locate resolves a path lexically from dir, an absolute folder ("" if it is
// not known), against the workspace root.
func locate(name, dir, root, home string) place {
	if strings.HasPrefix(name, "~") {
		return locateHome(name, root, home)
	}
	if name == "" {
		return place{unsure: "the path is empty"}
	}
	if climbs(name) {
		return place{unsure: "the path goes up again from a folder that may be a link"}
	}
	if strings.HasPrefix(name, "/") {
		return settle(path.Clean(name), root)
	}
	switch {
	case dir == "":
		return place{unsure: "the folder that it starts from isn't known"}
	case dir != root && slices.Contains(strings.Split(name, "/"), ".."):
		return place{unsure: "the path goes up from a folder that may be a link"}
	}
	return settle(path.Join(dir, name), root)
}

// locateHome resolves ~, ~/x and ~name as a shell does.
func locateHome(name, root, home string) place {
	user, rest, _ := strings.Cut(name, "/")
	if user == "~+" || user == "~-" {
		return place{unsure: "the folder that it starts from isn't known"}
	}
	if user != "~" || !strings.HasPrefix(home, "/") {
		return place{abs: name}
	}
	return locate(home+"/"+rest, "", root, home)
}

func settle(abs, root string) place {
	switch {
	case root != "" && abs == root:
		return place{inside: true, rel: "."}
	case root != "" && strings.HasPrefix(abs, root+"/"):
		return place{inside: true, rel: abs[len(root)+1:]}
	default:
		return place{abs: abs}
	}
}

// climbs reports a ".." behind a named folder: if that is a link, the path
// leads somewhere else than its text says.
func climbs(name string) bool {
	named := false
	for part := range strings.SplitSeq(name, "/") {
		switch part {
		case "", ".":
		case "..":
			if named {
				return true
			}
		default:
			named = true
		}
	}
	return false
}

// resources returns what touching the file means for the rules.
func (p place) resources(permission, home string) []Resource {
	if p.inside {
		return []Resource{{Permission: permission, Value: p.rel}}
	}
	return []Resource{
		external(p.folder(), home),
		{Permission: permission, Value: p.abs, Neutral: true},
	}
}

// folder is the directory that an outside file is in.
func (p place) folder() string {
	if strings.HasPrefix(p.abs, "~") {
		user, _, _ := strings.Cut(p.abs, "/")
		return user
	}
	return path.Dir(p.abs)
}

// external is the resource of entering a folder outside the workspace.
func external(dir, home string) Resource {
	r := Resource{Permission: PermissionExternal, Value: dir}
	if onFloor(dir, home) {
		r.AlwaysAsk = true
		r.Why = onTheFloor
	}
	return r
}

// onTheFloor is why a folder that no rule opens is asked for.
const onTheFloor = "this folder belongs to the system, or it is a home folder or holds one"

// onFloor reports the folders that no rule opens: the root, the person's home
// and what is above it, homes that can't be told, and the system's folders
// with all that is in them.
func onFloor(dir, home string) bool {
	if strings.HasPrefix(dir, "~") {
		return true
	}
	dir = strings.ToLower(path.Clean("/" + dir))
	home = strings.ToLower(path.Clean("/" + home))
	if dir == "/" || dir == home || strings.HasPrefix(home, dir+"/") {
		return true
	}
	dir = strings.TrimPrefix(dir, "/private")
	for _, top := range []string{"/etc", "/proc", "/sys", "/dev"} {
		if dir == top || strings.HasPrefix(dir, top+"/") {
			return true
		}
	}
	return false
}

var secretRules = readRules()

// secret reports whether the presets ask before this file is read. Names are
// also compared in lower case: some file systems don't tell the difference.
func secret(rel string) bool {
	for _, name := range []string{rel, strings.ToLower(rel)} {
		if d := lastMatch(secretRules, 0, PermissionRead, name); d >= 0 && secretRules[d].Action != Allow {
			return true
		}
	}
	return false
}

// globSecret reports whether a glob, a workspace-relative pattern with * and ?,
// could take in a secret or lead up. A leading * or ? never matches a dot.
func globSecret(glob string) bool {
	glob = strings.ToLower(glob)
	hidden := false
	if from, to := strings.Index(glob, "["), strings.LastIndex(glob, "]"); from >= 0 && from < to {
		hidden = from == 0 || glob[from-1] == '/'
		glob = glob[:from] + "*" + glob[to+1:]
	}
	for part := range strings.SplitSeq(glob, "/") {
		if strings.HasPrefix(part, ".") {
			hidden = true
			if part != "." && overlaps(part, "..") {
				return true
			}
		}
	}
	for _, pattern := range secretFiles {
		if (hidden || pattern != "*.env.*") && overlaps(glob, pattern) {
			return true
		}
	}
	return hidden && slices.ContainsFunc(secretFolders, func(pattern string) bool { return overlaps(glob, pattern) })
}

// NamesGuarded reports whether a pattern of files' names, with * and ?, says that it is of
// a file that the presets ask for: by a hidden name or by the end of one, and not only
// because it may be of any file. It is for patterns that don't match such a rule as text.
func NamesGuarded(glob string) bool {
	parts := strings.Split(classes.ReplaceAllString(plainly.ReplaceAllString(strings.ToLower(glob), "${1}x"), "?"), "/")
	for i, part := range parts {
		if rest := strings.Join(parts[i:], "/"); part != "" && strings.IndexByte(".?", part[0]) >= 0 && strings.ContainsAny(rest, "*?") {
			if slices.ContainsFunc(secretFolders, func(pattern string) bool { return pattern[0] != '*' && overlaps(rest, pattern) }) {
				return true
			}
		}
	}
	last := parts[len(parts)-1]
	begins := last != "" && strings.IndexByte(".?", last[0]) >= 0 || strings.HasPrefix(last, "id_")
	end := last[max(0, strings.LastIndexByte(last, '.')):]
	ends := end != last && strings.Trim(end, ".*?") != ""
	return strings.ContainsAny(last, "*?") && slices.ContainsFunc(secretFiles, func(pattern string) bool {
		name := strings.TrimPrefix(pattern, "*")
		return begins && overlaps(last, name) || ends && overlaps(end, name)
	})
}

// classes are sets of characters in a pattern, each of which is one; plainly a name begins
// with one that has no dot.
var (
	classes = regexp.MustCompile(`\[[^/]*?\]`)
	plainly = regexp.MustCompile(`(^|/)\[[a-z0-9_][a-z0-9_-]*\]`)
)

// absolute resolves a folder as cd does, by its text; "~…" if the home isn't
// known.
func (w *walker) absolute(to word, dir string) string {
	name := to.value
	if to.tilde {
		user, rest, _ := strings.Cut(name, "/")
		if user != "~" || !strings.HasPrefix(w.home, "/") {
			return user
		}
		return path.Join(w.home, rest)
	}
	if strings.HasPrefix(name, "/") {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}
