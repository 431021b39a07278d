package components

import (
	"fmt"
	"slices"
	"strings"

	"holdfast/journal"
)

// Bounds of what is shown of a change.
const (
	rowDiffLines  = 12  // open in a row of the journal; the rest is folded
	cardDiffLines = 60  // open in a card
	mostDiffLines = 400 // in a row or a card at all; a call's own page has more
	diffContext   = 3
	diffCells     = 1 << 20 // past these, what lies between the first and the last difference counts as changed
)

// DiffLine is one line of a change.
type DiffLine struct {
	Sign string // "+", "-", " ", or "…": lines that are the same are left out here
	Text string
}

// FileDiff is what changes in one file.
type FileDiff struct {
	Path           string
	New            bool
	Added, Removed int
	Lines          []DiffLine
}

// Diff is what a call would change, or has changed.
type Diff struct {
	ID    string // of its place in the page
	Of    string // which change of all in the page it is
	Files []FileDiff
	Open  int    // lines that stand open; the whole is folded where there are more
	Most  int    // lines that stand here at all
	More  string // where the rest stands; "": nowhere
	Part  bool   // this is the beginning only
	Whole bool   // nothing of it is cut
}

// fileDiff finds what changes in a file. old nil: there was none.
func fileDiff(path string, old *string, text string) FileDiff {
	f := FileDiff{Path: path, New: old == nil}
	var before []string
	if old != nil {
		before = textLines(*old)
	}
	f.Lines = hunks(lineDiff(before, textLines(text)))
	for _, l := range f.Lines {
		switch l.Sign {
		case "+":
			f.Added++
		case "-":
			f.Removed++
		}
	}
	return f
}

func textLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// lineDiff tells for each line whether it stays, goes or comes.
func lineDiff(before, after []string) []DiffLine {
	head := 0
	for head < len(before) && head < len(after) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < len(before)-head && tail < len(after)-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	out := make([]DiffLine, 0, len(before)+len(after))
	for _, l := range before[:head] {
		out = append(out, DiffLine{" ", l})
	}
	out = append(out, middleDiff(before[head:len(before)-tail], after[head:len(after)-tail])...)
	for _, l := range before[len(before)-tail:] {
		out = append(out, DiffLine{" ", l})
	}
	return out
}

// middleDiff keeps the longest common sequence of lines.
func middleDiff(before, after []string) (out []DiffLine) {
	keep := common(before, after)
	i, j := 0, 0
	upTo := func(bi, aj int) {
		for ; i < bi; i++ {
			out = append(out, DiffLine{"-", before[i]})
		}
		for ; j < aj; j++ {
			out = append(out, DiffLine{"+", after[j]})
		}
	}
	for _, pair := range keep {
		upTo(pair[0], pair[1])
		out = append(out, DiffLine{" ", before[i]})
		i, j = i+1, j+1
	}
	upTo(len(before), len(after))
	return out
}

// common gives the places of the lines that both have in one order; none if there
// are too many to look for them.
func common(before, after []string) (pairs [][2]int) {
	n, m := len(before), len(after)
	if n == 0 || m == 0 || n*m > diffCells {
		return nil
	}
	length := make([]int32, (n+1)*(m+1)) // of what is common from i and j on
	at := func(i, j int) *int32 { return &length[i*(m+1)+j] }
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if before[i] == after[j] {
				*at(i, j) = *at(i+1, j+1) + 1
			} else {
				*at(i, j) = max(*at(i+1, j), *at(i, j+1))
			}
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case before[i] == after[j]:
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case *at(i+1, j) >= *at(i, j+1):
			i++
		default:
			j++
		}
	}
	return pairs
}

// hunks leaves lines out that are far from any change.
func hunks(all []DiffLine) (out []DiffLine) {
	near := make([]bool, len(all))
	for i, l := range all {
		if l.Sign == " " {
			continue
		}
		for k := max(0, i-diffContext); k < min(len(all), i+diffContext+1); k++ {
			near[k] = true
		}
	}
	for i := 0; i < len(all); i++ {
		if near[i] {
			out = append(out, all[i])
			continue
		}
		from := i
		for i+1 < len(all) && !near[i+1] {
			i++
		}
		out = append(out, DiffLine{"…", Plural(i-from+1, "unchanged line")})
	}
	return out
}

// parseDiff reads a unified diff as requests carry it.
func parseDiff(s string) []FileDiff {
	var out []FileDiff
	for _, line := range textLines(s) {
		switch {
		case strings.HasPrefix(line, "--- "):
			out = append(out, FileDiff{New: line == "--- /dev/null"})
		case len(out) == 0:
			return nil // it is no diff of ours
		case strings.HasPrefix(line, "+++ ") && len(out[len(out)-1].Lines) == 0:
			out[len(out)-1].Path = line[len("+++ "):]
		default:
			out[len(out)-1].add(line)
		}
	}
	return out
}

func (f *FileDiff) add(line string) {
	l := DiffLine{" ", strings.TrimPrefix(line, "  ")}
	switch {
	case strings.HasPrefix(line, "+ "):
		l, f.Added = DiffLine{"+", line[2:]}, f.Added+1
	case strings.HasPrefix(line, "- "):
		l, f.Removed = DiffLine{"-", line[2:]}, f.Removed+1
	}
	f.Lines = append(f.Lines, l)
}

// diffText is the change as plain text, for what counts and copies it.
func diffText(files []FileDiff) string {
	var b strings.Builder
	for _, f := range files {
		old := f.Path
		if f.New {
			old = "/dev/null"
		}
		b.WriteString("--- " + old + "\n+++ " + f.Path + "\n")
		for _, l := range f.Lines {
			b.WriteString(l.Sign + " " + l.Text + "\n")
		}
	}
	return b.String()
}

// bounded is a diff for a place of the page.
func (d *Diff) bounded(open int, id, of, more string) *Diff {
	if d == nil {
		return nil
	}
	return &Diff{ID: id, Of: of, Files: d.Files, Open: open, Most: mostDiffLines, More: more, Part: d.Part}
}

// whole is a diff for a page of its own.
func (d *Diff) whole(id, of string) *Diff {
	if d == nil {
		return nil
	}
	return &Diff{ID: id, Of: of, Files: d.Files, Open: d.Len(), Most: d.Len(), Part: d.Part, Whole: true}
}

// WholeDiff is the change that a payload is, for a page of its own; nil: it is text.
func (p Payload) WholeDiff(id string) *Diff { return p.Diff.whole(id, "") }

// Len counts its lines.
func (d *Diff) Len() int {
	n := 0
	for _, f := range d.Files {
		n += len(f.Lines)
	}
	return n
}

// cut gives the files with the first n lines.
func (d *Diff) cut(n int) []FileDiff {
	var out []FileDiff
	for _, f := range d.Files {
		if n <= 0 && len(out) > 0 {
			break
		}
		f.Lines = f.Lines[:min(len(f.Lines), max(n, 0))]
		n -= len(f.Lines)
		out = append(out, f)
	}
	return out
}

// folds reports whether the whole of it is folded below its beginning.
func (d *Diff) folds() bool { return d.Len() > d.Open }

// left says what doesn't stand here at all; "": nothing.
func (d *Diff) left() string {
	switch left := d.Len() - d.Most; {
	case left > 0:
		return Plural(left, "more line") + " of the change"
	case d.Part:
		return "The request holds the beginning of the change"
	}
	return ""
}

// label names a file's part for who hears it.
func (d *Diff) label(f FileDiff, part string) string {
	return fmt.Sprintf("%sChange of %s, %s%s", part, Plain(Line(f.Path, 200)), f.Counts(), d.Of)
}

// beginning is said of what stands open where the whole is folded below.
func (d *Diff) beginning() string {
	if d.folds() {
		return "Beginning: "
	}
	return ""
}

// Counts says how many lines come and go.
func (f FileDiff) Counts() string {
	if f.New {
		return fmt.Sprintf("new file, +%d", f.Added)
	}
	return fmt.Sprintf("+%d −%d", f.Added, f.Removed)
}

func (l DiffLine) class() string {
	return map[string]string{"+": "a", "-": "d", "…": "h"}[l.Sign]
}

func (l DiffLine) words() string {
	return map[string]string{"+": "added: ", "-": "removed: "}[l.Sign]
}

// shown is a line as it is drawn, bounded like a line of output if it isn't whole.
func (l DiffLine) shown(whole bool) string {
	if whole {
		return l.Text
	}
	return journal.Cut(l.Text, maxLine)
}

// diffPaths are the files of a diff, each once.
func diffPaths(files []FileDiff) []string {
	var out []string
	for _, f := range files {
		if !slices.Contains(out, f.Path) {
			out = append(out, f.Path)
		}
	}
	return out
}
