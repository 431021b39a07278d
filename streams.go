package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"
)

// streams are what a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// say prints to standard output. Nobody can be told that it is closed.
func (s streams) say(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format, args...) }

// complain prints to standard error.
func (s streams) complain(format string, args ...any) { _, _ = fmt.Fprintf(s.err, format, args...) }

const (
	lineWidth = 80 // of what is for people to read
	markWidth = 9  // of what stands before it
)

// item prints a text under a mark, in lines that fit; a word that is too long has one for itself.
func (s streams) item(mark, text string) {
	line := fmt.Sprintf("%-*s", markWidth-1, mark)
	empty := true
	for word := range strings.FieldsSeq(legible(text)) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > lineWidth {
			s.say("%s\n", line)
			line = strings.Repeat(" ", markWidth-1)
		}
		line += " " + word
		empty = false
	}
	s.say("%s\n", line)
}

// legible shows what a terminal would obey, or hide, as an escape: what is stored
// may be from before it was checked, or from a stray hand.
func legible(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, illegible) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if illegible(r) {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func illegible(r rune) bool { return !unicode.IsPrint(r) }

// table prints aligned columns.
type table struct{ w *tabwriter.Writer }

func (s streams) table(head ...string) table {
	t := table{tabwriter.NewWriter(s.out, 0, 4, 2, ' ', 0)}
	t.row(head...)
	return t
}

// row adds one, each cell on one line; what can't be written is told by flush.
func (t table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = legible(c)
	}
	_, _ = fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

func (t table) flush() error { return t.w.Flush() }
