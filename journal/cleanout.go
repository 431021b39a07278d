package journal

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

// What is in the journal stays as it was written. A secret that became known since is
// taken out of what leaves the server.

// Event cleans the body of an event that is in the journal, by the rules of its kind;
// of a kind that this build doesn't know all is cleaned.
func (c *Cleaner) Event(e *Event) (json.RawMessage, error) {
	if !c.mayHold(e.Data, false) {
		return e.Data, nil
	}
	mk, known := bodies[e.Kind]
	if !known || e.Version != 1 {
		return c.JSON(e.Data)
	}
	body := mk()
	var made []string
	if in, ok := body.(Inputter); ok && json.Unmarshal(e.Data, body) == nil {
		if _, elsewhere := InputBlob(in.CallInput()); elsewhere { // it is no text of anybody's
			made = append(made, "input")
		}
	}
	return c.Typed(mk(), e.Data, made...)
}

// Holds reports whether a text has a secret in it that is spelt there as spelt says.
func (c *Cleaner) Holds(text []byte, spelt func(string) string) bool {
	for _, s := range c.now().secrets {
		if bytes.Contains(text, []byte(spelt(s))) {
			return true
		}
	}
	return false
}

// Longest is how many bytes the longest secret has; 0: none is known.
func (c *Cleaner) Longest() int {
	if s := c.now().secrets; len(s) > 0 {
		return len(s[0])
	}
	return 0
}

// Piece cleans a piece of a longer text, with what stands right before and after it:
// a secret that reaches over an edge is hidden, too.
func (c *Cleaner) Piece(before, piece, after string) string {
	all, from, to := before+piece+after, len(before), len(before)+len(piece)
	var out strings.Builder
	at := from
	for _, f := range c.Find(all) {
		if f.End <= from || f.Start >= to {
			continue
		}
		out.WriteString(all[at:max(at, f.Start)])
		out.WriteString(Hidden)
		at = min(f.End, to)
	}
	out.WriteString(all[at:to])
	return out.String()
}

// Writer cleans what is written to it, however it is cut. Close writes the end of it.
func (c *Cleaner) Writer(w io.Writer) io.WriteCloser { return &cleanWriter{c: c, w: w} }

type cleanWriter struct {
	c    *Cleaner
	w    io.Writer
	held string // it may be the start of a secret
}

func (w *cleanWriter) Write(b []byte) (int, error) {
	text := w.held + string(b)
	n := w.c.Undecided(text)
	w.held = text[n:]
	_, err := io.WriteString(w.w, w.c.Bytes(text[:n]))
	return len(b), err
}

func (w *cleanWriter) Close() error {
	_, err := io.WriteString(w.w, w.c.Bytes(w.held))
	w.held = ""
	return err
}
