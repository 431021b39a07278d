package policy

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"mvdan.cc/sh/v3/syntax"
)

const (
	// maxCommand is the longest text that is analysed, in bytes.
	maxCommand = 64 << 10
	// maxDepth is the deepest nesting that is analysed.
	maxDepth = 100
)

// ShellResources analyses the text of one shell command: what it would run,
// write, read and where it would go. workspace is the absolute real path of
// the workspace, where the command starts; home the user's home directory, ""
// if unknown. Both are used as text only.
//
// It never panics and never returns an empty list. If any part is opaque, the
// first resource is the whole text, opaque; the parts that could be read follow
// it, so that a rule that denies one of them still does.
func ShellResources(command, workspace, home string) (resources []Resource) {
	defer func() {
		if recover() != nil {
			resources = []Resource{opaque(command, "it can't be analysed")}
		}
	}()
	if why := unreadable(command); why != "" {
		return []Resource{opaque(command, why)}
	}
	bash, err := parse(command, syntax.LangBash)
	if err != nil {
		return []Resource{opaque(command, "it isn't valid shell: "+err.Error())}
	}
	w := newWalker(command, workspace, home)
	w.stmts(bash.Stmts)
	if posix, err := parse(command, syntax.LangPOSIX); err == nil {
		p := newWalker(command, workspace, home)
		p.stmts(posix.Stmts)
		w.join(p)
	} else if w.differs != "" {
		w.opaque(w.differs)
	}
	return w.result()
}

func opaque(command, why string) Resource {
	return Resource{Permission: PermissionShell, Value: command, Opaque: true, Why: why}
}

func parse(command string, lang syntax.LangVariant) (*syntax.File, error) {
	return syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(command), "")
}

// unreadable says why a text isn't even parsed: what a parser, a shell and a
// person could each take for something else.
func unreadable(command string) string {
	if strings.TrimSpace(command) == "" {
		return "it is empty"
	}
	if len(command) > maxCommand {
		return "it is too long to be analysed"
	}
	if !utf8.ValidString(command) || !norm.NFC.IsNormalString(command) {
		return "it isn't UTF-8 in normal form"
	}
	if strings.Contains(command, "\\\n") && strings.Contains(command, "#") {
		// The parser joins a comment that ends in a backslash with the next
		// line; no shell does.
		return "it mixes comments and joined lines"
	}
	depth := 0
	for _, c := range command {
		switch {
		case c == '(' || c == '{' || c == '[':
			depth++
		case (c == ')' || c == '}' || c == ']') && depth > 0:
			depth--
		case c != '\n' && c != '\t' && unicode.IsControl(c), unicode.Is(unicode.Bidi_Control, c):
			return "it holds control characters"
		}
		if depth > maxDepth {
			return "it is nested too deeply"
		}
	}
	return ""
}

// walker collects the resources of one parsed text.
type walker struct {
	src, root, home string

	out     []Resource
	seen    map[Resource]bool
	why     string // the first reason why the whole text is opaque
	differs string // why sh would read the text otherwise than bash

	dirs  dirs // where the command may be by now
	depth int

	counts  bool // some arithmetic reads a variable
	tainted bool // some variable has a value that arithmetic might run
}

func newWalker(src, workspace, home string) *walker {
	root := cleanRoot(workspace)
	w := &walker{src: src, root: root, home: home, seen: map[Resource]bool{}}
	w.dirs = dirs{lost: root == ""}
	if root != "" {
		w.dirs.list = []string{root}
	}
	return w
}

func (w *walker) add(r Resource) {
	if !w.seen[r] {
		w.seen[r] = true
		w.out = append(w.out, r)
	}
}

func (w *walker) opaque(why string) {
	if w.why == "" {
		w.why = why
	}
}

// neutral notes a part that runs nothing and changes nothing outside.
func (w *walker) neutral(text string) {
	w.add(Resource{Permission: PermissionShell, Value: text, Neutral: true})
}

// join takes over what the other reading of the text found.
func (w *walker) join(other *walker) {
	for _, r := range other.out {
		w.add(r)
	}
	if other.why != "" {
		w.opaque(other.why)
	}
	w.counts = w.counts || other.counts
	w.tainted = w.tainted || other.tainted
}

func (w *walker) result() []Resource {
	if w.counts && w.tainted {
		w.opaque("it calculates with a value that isn't known, which may run a command")
	}
	if w.why == "" && len(w.out) == 0 {
		w.neutral(strings.TrimSpace(w.src)) // comments only
	}
	if w.why != "" {
		return append([]Resource{opaque(w.src, w.why)}, w.out...)
	}
	return w.out
}
