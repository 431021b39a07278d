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
	Sign string // "+", "-", " ", "…": lines that are the same are left out here, or "\\": of the line before
	Text string
}

// FileDiff is what changes in one file.
type FileDiff struct {
	Path           string
	Whole          bool      // the agent writes all of it, and doesn't say what was there
	Seen           *seenFile // what was found there when it was asked
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
	Boxed bool   // what stands open scrolls in one box, however many files there are
}

// seenFile is what lay where a whole file would be written, when that was asked.
type seenFile struct {
	Path  string  `json:"path"`
	State string  `json:"state"` // new, exists or unknown
	Bytes int64   `json:"bytes"`
	Text  *string `json:"text"` // nil: it isn't at hand
}

// fileDiff finds what changes in a file. old nil: the agent doesn't say what was there;
// seen does, unless it is nil.
func fileDiff(path string, old *string, text string, seen *seenFile) FileDiff {
	f := FileDiff{Path: path, Whole: old == nil}
	if f.Whole && seen != nil {
		f.Seen, old = seen, seen.Text
	}
	before, after := []string(nil), textLines(text)
	if old != nil {
		before = textLines(*old)
		markEnd(*old, before, text, after)
	}
	f.Lines = endings(hunks(lineDiff(before, after)))
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

// noEnd marks a last line that has no newline behind it, where the other one has: no
// text of the journal has it.
const noEnd = "\x00"

// markEnd marks the last line of the one of two texts that has no newline at its end, if
// the other has.
func markEnd(old string, before []string, text string, after []string) {
	ends := func(s string) bool { return strings.HasSuffix(s, "\n") }
	switch {
	case len(before) == 0 || len(after) == 0 || ends(old) == ends(text):
	case ends(old):
		after[len(after)-1] += noEnd
	default:
		before[len(before)-1] += noEnd
	}
}

// endings says of marked lines, in a line of its own, that they have no newline.
func endings(lines []DiffLine) []DiffLine {
	var out []DiffLine
	for _, l := range lines {
		text, marked := strings.CutSuffix(l.Text, noEnd)
		out = append(out, DiffLine{l.Sign, text})
		if marked {
			out = append(out, DiffLine{"\\", noNewline})
		}
	}
	return out
}

const noNewline = "No newline at end of file"

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
			out = append(out, FileDiff{Whole: line == "--- /dev/null"})
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

// see takes over what was seen of a file that is named from the workspace on.
func (f *FileDiff) see(seen []seenFile) {
	for i := range seen {
		if path := seen[i].Path; path == f.Path || strings.HasSuffix(path, "/"+f.Path) {
			f.Whole, f.Seen = true, &seen[i]
			return
		}
	}
	if f.Whole {
		f.Seen = &seenFile{State: "unknown"}
	}
}

func (f *FileDiff) add(line string) {
	l := DiffLine{" ", strings.TrimPrefix(line, "  ")}
	switch {
	case strings.HasPrefix(line, "+ "):
		l, f.Added = DiffLine{"+", line[2:]}, f.Added+1
	case strings.HasPrefix(line, "- "):
		l, f.Removed = DiffLine{"-", line[2:]}, f.Removed+1
	case strings.HasPrefix(line, "\\ "):
		l = DiffLine{"\\", line[2:]}
	}
	f.Lines = append(f.Lines, l)
}

// diffText is the change as plain text, for what counts and copies it.
func diffText(files []FileDiff) string {
	var b strings.Builder
	for _, f := range files {
		old := f.Path
		if f.Seen != nil && f.Seen.State == "new" {
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

// boxLabel names the box of several files for who hears it.
func (d *Diff) boxLabel() string {
	return fmt.Sprintf("%sChanges of %s%s", d.beginning(), Plural(len(d.Files), "file"), d.Of)
}

// label names a file's part for who hears it.
func (d *Diff) label(f FileDiff, part string) string {
	return fmt.Sprintf("%sChange of %s, %s%s", part, QuotedName(f.Path), f.Counts(), d.Of)
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
	switch {
	case !f.Whole:
		return fmt.Sprintf("+%d −%d", f.Added, f.Removed)
	case f.Seen == nil:
		return fmt.Sprintf("whole file, +%d", f.Added)
	case f.Seen.State == "new":
		return fmt.Sprintf("new file, +%d", f.Added)
	case f.Seen.State != "exists":
		return fmt.Sprintf("not known whether the file exists, +%d", f.Added)
	case f.Seen.Text == nil:
		return fmt.Sprintf("replaces a file of %s, which isn’t shown, +%d", Bytes(f.Seen.Bytes), f.Added)
	}
	return fmt.Sprintf("replaces a file of %s, +%d −%d", Bytes(f.Seen.Bytes), f.Added, f.Removed)
}

func (l DiffLine) class() string {
	return map[string]string{"+": "a", "-": "d", "…": "h", "\\": "h"}[l.Sign]
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

// cutsLines reports whether a line or a name is too long to stand whole but on a page of
// its own.
func (d *Diff) cutsLines() bool {
	return d != nil && slices.ContainsFunc(d.Files, func(f FileDiff) bool {
		return f.name(false) != f.name(true) || slices.ContainsFunc(f.Lines, func(l DiffLine) bool { return l.shown(false) != l.shown(true) })
	})
}

// name is a file's, bounded if it isn't whole.
func (f FileDiff) name(whole bool) string {
	if whole {
		return f.Path
	}
	return Line(f.Path, 400)
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
