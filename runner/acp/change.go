package acp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"holdfast/runner"
	"holdfast/runner/acp/wire"
)

// see looks at the files that the call would write whole: agents say of none whether
// there was one before.
func (t told) see(ws string) []runner.SeenFile {
	var paths []string
	seen := map[string]bool{}
	for _, d := range t.Diffs {
		if path, known := local(d.Path); d.whole() && known && path == d.Path && !seen[path] {
			seen[path] = true
			paths = append(paths, path)
		}
	}
	if len(t.Diffs) == 0 {
		paths = t.givenFiles()
	}
	return runner.SeeFiles(paths, ws)
}

// whole reports whether a change writes all of its file: that nothing stands there now is
// what its agent says, and tools that are given no old text take it for that.
func (d diff) whole() bool { return d.Old == nil || *d.Old == "" }

// wholes are the members, by their plain names, of which one is what a file would hold.
var wholes = []string{"content", "contents", "filecontent", "filecontents", "filetext", "text", "newtext", "newcontent", "newcontents", "data"}

// givenFiles are the files that a call names beside what one of them would hold, without
// saying what changes.
func (t told) givenFiles() (paths []string) {
	writes := false
	add := func(path string) {
		if path, known := local(path); known && path != "" && len(path) <= mostPath && len(paths) < mostWritten && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	t.each(func(key string, v json.RawMessage) {
		const longest = 100
		if len(key) > longest || !says(v) {
			return
		}
		name := plain(key)
		writes = writes || slices.Contains(wholes, name)
		if speaksOf(name, ofFiles) && !slices.Contains(wholes, name) && flat(v) {
			wire.EachLeaf(v, func(leaf json.RawMessage) bool {
				add(wire.Text(leaf))
				return true
			})
		}
	})
	for _, path := range t.Paths {
		add(path)
	}
	if !writes || !t.changesFiles() {
		return nil
	}
	return paths
}

// mostWritten bounds how many of them are looked at.
const mostWritten = 10

// changesOver shows the changes that a call makes, as many as people are shown.
func (t told) changesOver(seen []runner.SeenFile, ws string) string {
	found := make(map[string]runner.SeenFile, len(seen))
	for _, f := range seen {
		found[f.Path] = f
	}
	var b strings.Builder
	for _, d := range t.Diffs {
		if b.Len() >= mostDiff {
			break
		}
		f := found[d.Path]
		d.overSeen(&b, f, ws)
	}
	return b.String()
}

// overSeen shows a change of a whole file as one of the text that is there, if that was
// seen. Only what isn't there is shown as new.
func (d diff) overSeen(b *strings.Builder, f runner.SeenFile, ws string) {
	name := relative(d.Path, ws)
	old := name
	switch {
	case !d.whole():
	case f.Text != nil:
		d.Old = f.Text
	case f.State == runner.SeenNew:
		old = noFile
	}
	d.write(b, old, name)
}

const noFile = "/dev/null"

// write shows a change for people; nothing applies it.
func (d diff) write(b *strings.Builder, old, name string) {
	fmt.Fprintf(b, "--- %s\n+++ %s\n", old, name)
	c := d.change()
	const around = 3
	from := len(c.before)
	for range around {
		if from > 0 {
			from = strings.LastIndexByte(c.before[:from-1], '\n') + 1
		}
	}
	writeLines(b, "  ", c.before[from:], around)
	writeLines(b, "- ", c.taken, -1)
	if c.takenOpen {
		b.WriteString(noNewline)
	}
	writeLines(b, "+ ", c.brought, -1)
	if c.broughtOpen {
		b.WriteString(noNewline)
	}
	writeLines(b, "  ", c.after, around)
}

// noNewline stands behind a last line without an end, where the other side has one.
const noNewline = "\\ No newline at end of file\n"

// writeLines writes the first n lines of a text, all if n is negative, each behind a mark.
func writeLines(b *strings.Builder, mark, text string, n int) {
	for line := range strings.Lines(text) {
		if n == 0 {
			return
		}
		b.WriteString(mark)
		b.WriteString(line)
		n--
	}
}

// change is what a diff changes, in whole lines, each with a line feed.
type change struct {
	before, taken, brought, after string
	// Whether the last line of one side has no end, and that of the other has one: it is changed.
	takenOpen, broughtOpen bool
}

// change leaves out what is the same at the beginning and at the end. It goes over both
// texts once, and splits nothing: they may be long.
func (d diff) change() change {
	old := ""
	if d.Old != nil {
		old = *d.Old
	}
	var c change
	if old != "" && d.New != "" {
		ends, ended := strings.HasSuffix(d.New, "\n"), strings.HasSuffix(old, "\n")
		c.takenOpen, c.broughtOpen = ends && !ended, ended && !ends
	}
	old, now := whole(old), whole(d.New)
	head := 0
	for head < len(old) && head < len(now) && old[head] == now[head] {
		head++
	}
	head = strings.LastIndexByte(old[:head], '\n') + 1
	switch {
	case c.takenOpen:
		head = min(head, lastLine(old))
	case c.broughtOpen:
		head = min(head, lastLine(now))
	}
	c.before, c.taken, c.brought = old[:head], old[head:], now[head:]
	if c.takenOpen || c.broughtOpen {
		return c
	}
	tail := sameTail(c.taken, c.brought)
	from := len(c.taken) - tail
	c.taken, c.brought, c.after = c.taken[:from], c.brought[:len(c.brought)-tail], c.taken[from:]
	return c
}

// sameTail is how many bytes the last lines have that two texts share.
func sameTail(taken, brought string) int {
	tail := 0
	for tail < len(taken) && tail < len(brought) && taken[len(taken)-1-tail] == brought[len(brought)-1-tail] {
		tail++
	}
	from := len(taken) - tail
	if !beginsLine(taken, from) || !beginsLine(brought, len(brought)-tail) {
		from += strings.IndexByte(taken[from:], '\n') + 1 // there is one: all lines end so
	}
	return len(taken) - from
}

// lastLine is where the last line of a text begins that ends in a line feed.
func lastLine(text string) int { return strings.LastIndexByte(text[:len(text)-1], '\n') + 1 }

func beginsLine(text string, at int) bool { return at == 0 || text[at-1] == '\n' }

// whole is a text in which all lines end in a line feed.
func whole(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
