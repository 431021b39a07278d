package policy

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirects walks the redirects of a statement. A file that is written is an
// edit, one that is read a read; /dev/null and copies of open files are
// nothing.
func (w *walker) redirects(s *syntax.Stmt) {
	for _, r := range s.Redirs {
		if r.N != nil && strings.Trim(r.N.Value, "0123456789") != "" {
			w.opaque("it redirects in a way that sh reads differently")
		}
		switch r.Op {
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrInOut:
			w.target(PermissionEdit, r.Word)
		case syntax.RdrAll, syntax.AppAll:
			w.ampersand(s, r)
			w.target(PermissionEdit, r.Word)
		case syntax.RdrIn:
			w.target(PermissionRead, r.Word)
		case syntax.DplIn, syntax.DplOut:
			w.duplicate(r)
		case syntax.Hdoc, syntax.DashHdoc:
			w.hereDoc(r)
		case syntax.WordHdoc:
			w.word(r.Word)
		default:
			w.opaque("it redirects in a way that isn't analysed")
		}
	}
}

// ampersand guards &>: sh ends the command at the & and runs the words behind
// the file as the next one.
func (w *walker) ampersand(s *syntax.Stmt, r *syntax.Redirect) {
	if s.Cmd == nil || s.Cmd.End().After(r.OpPos) {
		w.opaque("sh would run the words behind &> as a command")
	}
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_./][A-Za-z0-9_./-]*$`)

var descriptor = regexp.MustCompile(`^([0-9]+-?|-)$`)

// duplicate walks >& and <&. Behind them a number copies an open file; for
// bash a name behind >& is a file to write.
func (w *walker) duplicate(r *syntax.Redirect) {
	read, _ := readWord(w.src, r.Word)
	switch {
	case read.exact() && descriptor.MatchString(read.value):
	case r.Op == syntax.DplOut && read.exact() && plainName.MatchString(read.value):
		w.target(PermissionEdit, r.Word)
	case r.Op == syntax.DplOut:
		// bash expands this name twice: what is quoted in it runs.
		w.word(r.Word)
		w.opaque("it redirects to a file whose name is computed")
	default:
		w.opaque("it copies an open file whose number is computed")
	}
}

var plainDelimiter = regexp.MustCompile(`^([A-Za-z0-9_.]+|'[A-Za-z0-9_.]+'|"[A-Za-z0-9_.]+"|\\[A-Za-z0-9_.]+)$`)

// hereDoc walks a here-document. Shells join lines that end in a backslash
// before they look for its end, the parser doesn't; odd delimiters are read
// differently too.
func (w *walker) hereDoc(r *syntax.Redirect) {
	delimiter := source(w.src, r.Word)
	if !plainDelimiter.MatchString(delimiter) {
		w.opaque("the end of its here-document is ambiguous")
	}
	if r.Hdoc == nil || strings.ContainsAny(delimiter, `'"\`) {
		return // quoted: the text is taken as it is
	}
	if strings.Contains(source(w.src, r.Hdoc), "\\\n") {
		w.opaque("the end of its here-document is ambiguous")
	}
	w.parts(r.Hdoc.Parts)
}

// neutralFiles are targets that nothing is kept in.
var neutralFiles = set("/dev/null /dev/stdout /dev/stderr")

func (w *walker) target(permission string, n *syntax.Word) {
	t := w.word(n)
	switch {
	case !t.static:
		w.opaque("it redirects to a file whose name is computed")
	case t.glob || t.brace:
		w.opaque("it redirects to a file whose name is a pattern")
	case t.exact() && neutralFiles[t.value]:
	default:
		w.file(permission, t)
	}
}

// file adds the resources of a file from every folder that the command may be
// in.
func (w *walker) file(permission string, t word) {
	for _, p := range w.places(t) {
		if p.unsure != "" {
			w.opaque("it redirects to a file that can't be told: " + p.unsure)
			continue
		}
		for _, r := range p.resources(permission, w.home) {
			w.add(r)
		}
	}
}

// places are where the path leads from every folder that the command may be
// in.
func (w *walker) places(t word) []place {
	name := t.value
	if strings.HasPrefix(name, "~") && !t.tilde {
		name = "./" + name
	}
	if strings.HasPrefix(name, "/") || t.tilde {
		return []place{locate(name, "", w.root, w.home)}
	}
	if w.dirs.lost {
		return []place{locate(name, "", w.root, w.home)}
	}
	var all []place
	for _, dir := range w.dirs.list {
		all = append(all, locate(name, dir, w.root, w.home))
	}
	return all
}
