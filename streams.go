package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
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

// table prints aligned columns.
type table struct{ w *tabwriter.Writer }

func (s streams) table(head ...string) table {
	t := table{tabwriter.NewWriter(s.out, 0, 4, 2, ' ', 0)}
	t.row(head...)
	return t
}

// row adds one; what can't be written is told by flush.
func (t table) row(cells ...string) { _, _ = fmt.Fprintln(t.w, strings.Join(cells, "\t")) }

func (t table) flush() error { return t.w.Flush() }
