package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// Hidden stands where a secret stood.
const Hidden = "[hidden]"

// ShortestSecret is the length, in characters, from which a value is masked: shorter
// ones would hide ordinary words.
const ShortestSecret = 8

// Cleaner is the one function through which everything enters the journal
// (JRN-8): valid UTF-8, no NUL, no known secret (OWN-3). It is safe for use by
// several goroutines, also while it learns.
type Cleaner struct {
	learning sync.Mutex
	learnt   map[string]bool
	known    atomic.Pointer[known] // never changed, but replaced; nil: something was learnt since
}

// known are the secrets of a cleaner at one time, the longest first.
type known struct {
	secrets []string
	least   []int // how many bytes of the beginning of each are masked: see Unended
}

// NewCleaner knows the secrets that must not be journalled.
func NewCleaner(secrets []string) *Cleaner {
	c := &Cleaner{learnt: map[string]bool{}}
	c.Learn(secrets...)
	return c
}

// Learn adds secrets. What is cleaned from now on, by whomever, lacks them; nothing
// is ever unlearnt. What it costs doesn't grow with what is known.
func (c *Cleaner) Learn(secrets ...string) {
	c.learning.Lock()
	defer c.learning.Unlock()
	for _, s := range secrets {
		if s != "" && !c.learnt[s] {
			c.learnt[s] = true
			c.known.Store(nil)
		}
	}
}

// now gives what is known, in order: it is put in order when it is first needed.
func (c *Cleaner) now() *known {
	if k := c.known.Load(); k != nil {
		return k
	}
	c.learning.Lock()
	defer c.learning.Unlock()
	if k := c.known.Load(); k != nil { // somebody was faster
		return k
	}
	k := &known{secrets: slices.SortedFunc(maps.Keys(c.learnt), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})}
	for _, s := range k.secrets {
		k.least = append(k.least, leastStart(s))
	}
	c.known.Store(k)
	return k
}

// Undecided tells from where on the end of a text may be the start of a secret whose
// rest is to come; the text's length if it can't. No secret that the text holds whole
// begins before that place and ends behind it.
func (c *Cleaner) Undecided(text string) int {
	secrets := c.now().secrets
	first := SecretStart(text, secrets)
	for moved := true; moved; { // one that ends behind that place is masked with what follows
		moved = false
		for _, s := range secrets {
			if at := across(text, s, first); at >= 0 {
				first, moved = at, true
			}
		}
	}
	return first
}

// SecretStart gives where the longest end of a text starts that begins a secret; the
// text's length if none does.
func SecretStart(text string, secrets []string) int {
	first := len(text)
	for _, s := range secrets {
		for n := min(len(s)-1, len(text)); n > len(text)-first; n-- {
			if s[n-1] == text[len(text)-1] && strings.HasSuffix(text, s[:n]) {
				first = len(text) - n
				break
			}
		}
	}
	return first
}

// across gives where the first occurrence of a secret begins that begins before a
// place in a text and ends behind it; -1: there is none.
func across(text, secret string, place int) int {
	from, to := max(0, place-len(secret)+1), min(len(text), place+len(secret)-1)
	if at := strings.Index(text[from:max(from, to)], secret); at >= 0 {
		return from + at
	}
	return -1
}

// Text cleans one text.
func (c *Cleaner) Text(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.ReplaceAll(s, "\x00", "")
	return c.Bytes(s)
}

// Find gives where secrets stand in a text, in order; none touches the next.
func (c *Cleaner) Find(s string) []Span {
	var out []Span
	for _, f := range Occurrences(s, c.now().secrets, nil) {
		if n := len(out); n > 0 && f.Start <= out[n-1].End {
			out[n-1].End = max(out[n-1].End, f.End)
			continue
		}
		out = append(out, f)
	}
	return out
}

// Bytes masks what isn't text and leaves its other bytes alone. Secrets that overlap
// become one mask.
func (c *Cleaner) Bytes(s string) string {
	found := Occurrences(s, c.now().secrets, nil)
	if len(found) == 0 {
		return s
	}
	return without(s, found)
}

// Span is where in a text something stands.
type Span struct{ Start, End int }

// Occurrences gives where secrets stand in a text, by their starts, of those that count:
// all if counts is nil. Those of one secret that overlap are one.
func Occurrences(text string, secrets []string, counts func(Span) bool) []Span {
	var all []Span
	for _, s := range secrets {
		first := len(all)
		for from := 0; s != ""; {
			at := strings.Index(text[from:], s)
			if at < 0 {
				break
			}
			found := Span{from + at, from + at + len(s)}
			from += at + 1
			if counts != nil && !counts(found) {
				continue
			}
			if n := len(all); n > first && found.Start < all[n-1].End {
				all[n-1].End = found.End
				continue
			}
			all = append(all, found)
		}
	}
	slices.SortStableFunc(all, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	return all
}

// JSON cleans every text of an encoded value, the names of its members and numbers
// too. What is clean already is returned as it is.
func (c *Cleaner) JSON(b []byte) ([]byte, error) { return c.walked(b, nil, false) }

// parsed cleans an encoded value in one of the ways, if there may be need to.
func (c *Cleaner) parsed(b []byte, clean func(v any) (any, bool)) ([]byte, error) {
	if !utf8.Valid(b) {
		b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	}
	if !c.mayHold(b, false) {
		return b, nil
	}
	var v any
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("more than one value")
	}
	v, changed := clean(v)
	if !changed {
		return b, nil
	}
	return Encode(v)
}

// value cleans all of a value.
func (c *Cleaner) value(v any) (clean any, changed bool) {
	switch v := v.(type) {
	case string:
		s := c.Text(v)
		return s, s != v
	case json.Number:
		if s := c.Bytes(v.String()); s != v.String() {
			return s, true
		}
	case []any:
		return v, each(v, c.value)
	case map[string]any:
		return c.members(v, func(string) bool { return false }, func(_ string, w any) (any, bool) { return c.value(w) })
	}
	return v, false
}

// each cleans the elements of a list, where they are.
func each(list []any, clean func(any) (any, bool)) (changed bool) {
	for i := range list {
		w, ch := clean(list[i])
		list[i], changed = w, changed || ch
	}
	return changed
}

// members cleans an object: the names, unless they are kept, and the values.
func (c *Cleaner) members(v map[string]any, kept func(name string) bool, clean func(name string, w any) (any, bool)) (out map[string]any, changed bool) {
	out = make(map[string]any, len(v))
	for name, w := range v {
		to := name
		if !kept(name) {
			to = c.Text(name)
		}
		w, ch := clean(name, w)
		out[to], changed = w, changed || ch || to != name
	}
	return out, changed
}

// Forms are the spellings of a secret that are masked in a stream of bytes: as it is,
// and as it stands in JSON, which agents speak.
func Forms(value string) []string {
	out := []string{value}
	encoded, err := Encode(value)
	if err != nil {
		return out
	}
	in := string(encoded[1 : len(encoded)-1])
	for _, form := range []string{in, strings.ReplaceAll(in, "/", `\/`)} {
		if form != out[len(out)-1] && form != value {
			out = append(out, form)
		}
	}
	return out
}
