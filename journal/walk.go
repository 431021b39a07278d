package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// What somebody else encoded may be long, and of any form. It is cleaned where it stands:
// what is clean is copied as it is spelt, and no values are built, which would take many
// times its bytes.

// walk cleans the texts of an encoded value, in one pass over it.
type walk struct {
	c       *Cleaner
	unended bool   // also their ends: see Unended
	b       []byte // valid JSON
	at      int
	out     []byte
	copied  int // of b, into out
}

// walked cleans an encoded value of a protocol, or one in which nothing is a protocol's.
// What is clean already is given back as it is.
func (c *Cleaner) walked(b []byte, shape *Shape, unended bool) ([]byte, error) {
	if !utf8.Valid(b) {
		b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	}
	if !c.mayHold(b, unended) {
		return b, nil
	}
	if !json.Valid(b) {
		return nil, errors.New("it isn't one value of JSON")
	}
	w := walk{c: c, unended: unended, b: b}
	w.value("", shape)
	if w.copied == 0 {
		return b, nil
	}
	return append(w.out, b[w.copied:]...), nil
}

// mayHold reports whether an encoded value may hold what has to be cleaned: each of its
// texts stands as a whole in what its escapes stand for.
func (c *Cleaner) mayHold(b []byte, begins bool) bool {
	known := c.now()
	sought := make([][]byte, 0, len(known.secrets)+1)
	sought = append(sought, []byte{0})
	for i, s := range known.secrets {
		if begins {
			s = s[:known.least[i]]
		}
		sought = append(sought, []byte(s))
	}
	overlap := 0
	if len(known.secrets) > 0 {
		overlap = len(known.secrets[0])
	}
	var last []byte // the end of what was looked at, as what its escapes stand for
	for len(b) > 0 {
		n := uncut(b, lookedBytes)
		last = append(last, plain(b[:n])...)
		if slices.ContainsFunc(sought, func(s []byte) bool { return bytes.Contains(last, s) }) {
			return true
		}
		last = last[:copy(last, last[max(0, len(last)-overlap):])]
		b = b[n:]
	}
	return false
}

// lookedBytes is how much of an encoded value is looked at at once: it may be long, and no
// copy of it is made.
const lookedBytes = 256 << 10

// uncut is how many bytes of what comes next are looked at: about n, and no escape is cut.
func uncut(b []byte, n int) int {
	if n >= len(b) {
		return len(b)
	}
	from := max(0, n-longestEscape)
	for from > 0 && b[from-1] == '\\' {
		from--
	}
	for at := from; at < len(b); { // from there on escapes are read one by one
		if at >= n {
			return at
		}
		if b[at] != '\\' {
			at++
			continue
		}
		length, _ := escape(string(b[at:min(len(b), at+longestEscape)]))
		at += length
	}
	return len(b)
}

// plain is a text with each of its escapes as what it stands for.
func plain(b []byte) []byte {
	at := bytes.IndexByte(b, '\\')
	if at < 0 {
		return b
	}
	out := make([]byte, 0, len(b))
	for ; at >= 0; at = bytes.IndexByte(b, '\\') {
		out = append(out, b[:at]...)
		length, stands := escape(string(b[at:min(len(b), at+longestEscape)]))
		out = append(out, stands...)
		b = b[at+length:]
	}
	return append(out, b...)
}

// value goes over the value of a member.
func (w *walk) value(member string, shape *Shape) {
	switch w.next() {
	case '"':
		from := w.at
		is := w.text()
		if s := w.cleaned(member, is, shape); s != is {
			w.replace(from, s)
		}
	case '[':
		for w.at++; w.more(']'); {
			w.value("", shape)
		}
	case '{':
		for w.at++; w.more('}'); {
			w.member(shape)
		}
	default:
		from := w.at
		for w.at < len(w.b) && !strings.ContainsRune(" \t\r\n,]}", rune(w.b[w.at])) {
			w.at++
		}
		if is := string(w.b[from:w.at]); shape == nil && (is[0] == '-' || is[0] <= '9') { // in a protocol numbers are its own
			if s := w.c.Bytes(is); s != is {
				w.replace(from, s)
			}
		}
	}
}

// member goes over a member, its name first.
func (w *walk) member(shape *Shape) {
	from := w.at
	name := w.text()
	if shape == nil || !shape.Names[name] {
		if s := w.c.Text(name); s != name {
			w.replace(from, s)
		}
	}
	w.next()
	w.at++ // the colon
	if shape != nil && shape.Free[name] {
		shape = nil
	}
	w.value(name, shape)
}

// cleaned is a text of a member without what is to be hidden.
func (w *walk) cleaned(member, s string, shape *Shape) string {
	if shape != nil && slices.Contains(shape.Words[member], s) {
		return s
	}
	s = w.c.Text(s)
	if !w.unended || shape != nil && (shape.Whole[member] || slices.Contains(shape.Words[member], s)) {
		return s
	}
	return w.c.Unended(s)
}

// more goes to the next element of a list or an object, if there is one.
func (w *walk) more(end byte) bool {
	c := w.next()
	if c == ',' {
		w.at++
		c = w.next()
	}
	if c == end {
		w.at++
		return false
	}
	return true
}

// next goes to what comes next, behind blanks.
func (w *walk) next() byte {
	for w.b[w.at] == ' ' || w.b[w.at] == '\t' || w.b[w.at] == '\r' || w.b[w.at] == '\n' {
		w.at++
	}
	return w.b[w.at]
}

// text goes over a text, and gives what it stands for.
func (w *walk) text() string {
	from := w.at + 1
	for w.at = from; w.b[w.at] != '"'; w.at++ {
		if w.b[w.at] == '\\' {
			w.at++
		}
	}
	w.at++
	return string(plain(w.b[from : w.at-1]))
}

// replace has a text stand where something else stood, from there on to where the walk is.
func (w *walk) replace(from int, s string) {
	b, err := Encode(s)
	if err != nil {
		b = []byte(`"` + Hidden + `"`) // no text can't be encoded
	}
	w.out = append(append(w.out, w.b[w.copied:from]...), b...)
	w.copied = w.at
}
