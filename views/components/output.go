package components

import (
	"fmt"
	"strings"
)

// Bounds of what a row shows of an output (ux §13). All of it has pages of its own.
const (
	boxLines  = 200
	boxBytes  = 32 << 10
	lastLines = 6
	headCount = 20 // of one that failed
	tailCount = 40
)

// Output is the bounded output of a call, with where all of it is.
type Output struct {
	CallID  string
	Label   string
	Bytes   int64  // of all of it
	Dropped int64  // of its middle, which was not kept
	Pieces  bool   // there is more of it than stands in this window
	Lines   int    // in this window
	Failed  bool   // First is how it began; else what stands before Last, folded
	Tail    bool   // nothing is at hand of what stands before
	More    string // where more of it is shown

	First, Last       SafeHTML
	FirstLen, LastLen int // lines
}

// NewOutput bounds a text before anything of it is drawn. One that failed shows
// how it began and how it ended; else the last lines stand open, and those before
// them are folded.
func NewOutput(call, label, text string, failed bool) Output {
	text = outputLines(text)
	o := Output{CallID: call, Label: label, Bytes: int64(len(text)), Lines: Lines(text), Failed: failed}
	var first, last []string
	switch {
	case failed && o.Lines > headCount+tailCount:
		first, last = headLines(text, headCount, boxBytes), tailLines(text, tailCount, boxBytes)
	case failed:
		last = tailLines(text, headCount+tailCount, boxBytes)
	default:
		last = tailLines(text, boxLines, boxBytes)
		fold := max(len(last)-lastLines, 0)
		first, last = last[:fold], last[fold:]
	}
	o.FirstLen, o.LastLen = len(first), len(last)
	o.First, o.Last = Terminal(strings.Join(first, "\n")), Terminal(strings.Join(last, "\n"))
	if o.Left() > 0 {
		o.More = moreLines(call, boxLines)
	}
	return o
}

// MostLines and LongBytes bound the box of a call's own page.
const (
	MostLines = 2000
	LongBytes = 256 << 10
)

// NewLongOutput shows the last lines of an output open. text is its end, of total bytes.
func NewLongOutput(call, label, text string, total int64, lines int) Output {
	o := Output{CallID: call, Label: label, Bytes: total, Tail: total > int64(len(text))}
	text = outputLines(text)
	o.Lines = Lines(text)
	last := tailLines(text, lines, LongBytes-(1<<10))
	o.LastLen, o.Last = len(last), Terminal(strings.Join(last, "\n"))
	if o.LastLen == lines && lines < MostLines && (o.Tail || o.Left() > 0) {
		o.More = moreLines(call, lines)
	}
	return o
}

func moreLines(call string, shown int) string {
	return fmt.Sprintf("%s?lines=%d#output", CallPath(call), min(shown+boxLines, MostLines))
}

// Left counts the lines of the window that are not shown.
func (o Output) Left() int { return o.Lines - o.FirstLen - o.LastLen }

// Summary says how much there is, and how much of it stands open.
func (o Output) Summary() string {
	lines := Plural(o.Lines, "line")
	text := lines + ", "
	switch {
	case o.Lines == 0:
		text = ""
	case o.Tail:
		text = "Last " + Plural(o.LastLen, "line") + ", "
	case o.Failed && o.FirstLen > 0:
		text = fmt.Sprintf("First %d and last %d of %s, ", o.FirstLen, o.LastLen, lines)
	case o.LastLen < o.Lines:
		text = fmt.Sprintf("Last %d of %s, ", o.LastLen, lines)
	}
	text += Bytes(o.Bytes)
	if o.Pieces || o.Tail {
		text += " in all"
	}
	if o.Dropped > 0 {
		text += ", " + Bytes(o.Dropped) + " in its middle were not kept"
	}
	return text
}
