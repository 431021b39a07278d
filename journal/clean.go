package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
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
	known    atomic.Pointer[known] // never changed, but replaced
}

// known are the secrets of a cleaner at one time, the longest first.
type known struct {
	secrets []string
	encoded [][]byte // the same as they stand in JSON
}

// NewCleaner knows the secrets that must not be journalled.
func NewCleaner(secrets []string) *Cleaner {
	c := &Cleaner{}
	c.known.Store(&known{})
	c.Learn(secrets...)
	return c
}

// Learn adds secrets. What is cleaned from now on, by whomever, lacks them; nothing
// is ever unlearnt.
func (c *Cleaner) Learn(secrets ...string) {
	c.learning.Lock()
	defer c.learning.Unlock()
	was := c.known.Load()
	next := &known{secrets: slices.Clone(was.secrets)}
	for _, s := range secrets {
		if s != "" && !slices.Contains(next.secrets, s) {
			next.secrets = append(next.secrets, s)
		}
	}
	if len(next.secrets) == len(was.secrets) {
		return
	}
	slices.SortStableFunc(next.secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, s := range next.secrets {
		if b, err := Encode(s); err == nil {
			next.encoded = append(next.encoded, b[1:len(b)-1])
		}
	}
	c.known.Store(next)
}

// Undecided tells from where on the end of a text may be the start of a secret whose
// rest is to come; the text's length if it can't. No secret that the text holds whole
// begins before that place and ends behind it.
func (c *Cleaner) Undecided(text string) int {
	secrets := c.known.Load().secrets
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
	for _, secret := range c.known.Load().secrets {
		s = strings.ReplaceAll(s, secret, Hidden)
	}
	return s
}

// Find gives where secrets stand in a text, as pairs of start and end, in order; none
// touches the next.
func (c *Cleaner) Find(s string) [][2]int {
	var found [][2]int
	for _, secret := range c.known.Load().secrets {
		for from := 0; ; {
			at := strings.Index(s[from:], secret)
			if at < 0 {
				break
			}
			found = append(found, [2]int{from + at, from + at + len(secret)})
			from += at + 1
		}
	}
	slices.SortFunc(found, func(a, b [2]int) int { return cmp.Compare(a[0], b[0]) })
	var out [][2]int
	for _, f := range found {
		if n := len(out); n > 0 && f[0] <= out[n-1][1] {
			out[n-1][1] = max(out[n-1][1], f[1])
			continue
		}
		out = append(out, f)
	}
	return out
}

// Bytes masks what isn't text and leaves its other bytes alone.
func (c *Cleaner) Bytes(s string) string {
	for _, secret := range c.known.Load().secrets {
		s = strings.ReplaceAll(s, secret, Hidden)
	}
	return s
}

// JSON cleans every text of an encoded value. What is clean already is
// returned as it is; most is, without being parsed.
func (c *Cleaner) JSON(b []byte) ([]byte, error) {
	if !utf8.Valid(b) {
		b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	}
	known := c.known.Load()
	dirty := bytes.Contains(b, []byte(`\u0000`))
	for _, s := range known.encoded {
		dirty = dirty || bytes.Contains(b, s)
	}
	// What somebody else encoded (a tool's input) may spell a secret in other escapes.
	if len(known.secrets) > 0 {
		dirty = dirty || bytes.Contains(b, []byte(`\u`)) || bytes.Contains(b, []byte(`\/`))
	}
	if !dirty {
		return b, nil
	}
	var v any
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	v, changed := c.value(v)
	if !changed {
		return b, nil
	}
	return Encode(v)
}

func (c *Cleaner) value(v any) (clean any, changed bool) {
	switch v := v.(type) {
	case string:
		s := c.Text(v)
		return s, s != v
	case []any:
		for i := range v {
			w, ch := c.value(v[i])
			v[i], changed = w, changed || ch
		}
		return v, changed
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, w := range v {
			key := c.Text(k)
			w, ch := c.value(w)
			out[key], changed = w, changed || ch || key != k
		}
		return out, changed
	}
	return v, false
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
