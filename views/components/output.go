package components

import (
	"fmt"
	"strings"

	"holdfast/journal"
)

// Bounds of what a row shows of an output (ux §13). All of it has pages of its own.
const (
	boxLines  = 200
	boxBytes  = 32 << 10
	lastLines = 6
	headCount = 20 // of one that failed
	tailCount = 40
)

// Ends are the beginning and the end of an output as far as a page has them.
type Ends struct {
	Head, Tail string // Tail "": Head is all of it
	Total      int64  // bytes
}

// Output is the bounded output of a call, with where all of it is.
type Output struct {
	ID      string // of its place in the page
	CallID  string
	Label   string
	Bytes   int64  // of all of it
	Dropped int64  // of its middle, which was not kept
	Lines   int    // of all of it; -1: they aren't known
	Failed  bool   // First is how it began; else what stands before Last, folded
	More    string // where more of it is shown

	First, Last       SafeHTML
	FirstLen, LastLen int // lines
	shown             int64
}

// NewOutput bounds a text before anything of it is drawn. One that failed shows
// how it began and how it ended; else the last lines stand open, and those before
// them are folded.
func NewOutput(id, call, label string, ends Ends, failed bool) Output {
	head, tail := outputLines(ends.Head), outputLines(ends.Tail)
	o := Output{ID: id, CallID: call, Label: label, Bytes: ends.Total, Lines: Lines(head), Failed: failed}
	if ends.Tail == "" {
		tail = head
	} else {
		o.Lines = -1
		if _, rest, ok := strings.Cut(tail, "\n"); ok && rest != "" { // its first line is the rest of one
			tail = rest
		}
	}
	var first, last []string
	switch {
	case failed && (o.Lines < 0 || o.Lines > headCount+tailCount):
		first, last = headLines(head, headCount, boxBytes), tailLines(tail, tailCount, boxBytes)
	case failed:
		last = tailLines(tail, headCount+tailCount, boxBytes)
	default:
		last = tailLines(tail, boxLines, boxBytes)
		fold := max(len(last)-lastLines, 0)
		first, last = last[:fold], last[fold:]
	}
	o.FirstLen, o.LastLen = len(first), len(last)
	before, after := strings.Join(first, "\n"), strings.Join(last, "\n")
	o.shown = int64(len(before) + len(after))
	o.First, o.Last = Terminal(before), Terminal(after)
	if o.Left() != "" {
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
func NewLongOutput(id, call, label, text string, total int64, lines int) Output {
	o := Output{ID: id, CallID: call, Label: label, Bytes: total, Lines: -1}
	whole := total <= int64(len(text))
	text = outputLines(text)
	if whole {
		o.Lines = Lines(text)
	}
	last := tailLines(text, lines, LongBytes-(1<<10))
	after := strings.Join(last, "\n")
	o.LastLen, o.Last, o.shown = len(last), Terminal(after), int64(len(after))
	if o.LastLen == lines && lines < MostLines && o.Left() != "" {
		o.More = moreLines(call, lines)
	}
	return o
}

func moreLines(call string, shown int) string {
	return fmt.Sprintf("%s?lines=%d#output", CallPath(call), min(shown+boxLines, MostLines))
}

// Left says what is not shown; "" if all of it is.
func (o Output) Left() string {
	if o.Lines < 0 {
		return Bytes(max(o.Bytes-o.shown, 0)) + " left out here"
	}
	if left := o.Lines - o.FirstLen - o.LastLen; left > 0 {
		return Plural(left, "line") + " left out here"
	}
	return ""
}

// Summary says how much there is, and how much of it stands open.
func (o Output) Summary() string {
	of := ""
	if o.Lines >= 0 {
		of = " of " + Plural(o.Lines, "line")
	}
	var text string
	switch {
	case o.Lines == 0:
	case o.Failed && o.FirstLen > 0:
		text = fmt.Sprintf("First %d and last %d%s, ", o.FirstLen, o.LastLen, of)
	case o.LastLen < o.Lines || o.Lines < 0:
		text = fmt.Sprintf("Last %d%s, ", o.LastLen, of)
	default:
		text = Plural(o.Lines, "line") + ", "
	}
	text += Bytes(o.Bytes)
	if o.Dropped > 0 {
		text += ", " + Bytes(o.Dropped) + " in its middle were not kept"
	}
	return text
}

// LiveOutput is the box of a call that runs, in the row of its start; Output nil
// empties it, since the row of the call's end shows it from then on.
type LiveOutput struct {
	CallID string
	Output *Output
}

// NewLiveOutput is the box of a call as it stands now.
func NewLiveOutput(c *journal.Call, ends Ends) LiveOutput {
	l := LiveOutput{CallID: c.ID}
	if c.State == journal.CallIsDispatched && ends.Total > 0 {
		o := outputOf(c, "live-"+c.ID, ends, false)
		l.Output = &o
	}
	return l
}

func outputOf(c *journal.Call, id string, ends Ends, failed bool) Output {
	o := NewOutput(id, c.ID, OutputLabel(NewCallTitle(c.Tool, CallPayload(c))), ends, failed)
	o.Bytes, o.Dropped = max(c.OutputBytes, o.Bytes), c.DroppedBytes
	return o
}

// OutputLabel names the output of a call for who hears it.
func OutputLabel(call string) string { return "Output of " + QuotedName(call) }
