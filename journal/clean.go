package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// Hidden stands where a secret stood.
const Hidden = "[hidden]"

// Cleaner is the one function through which everything enters the journal
// (JRN-8): valid UTF-8, no NUL, no known secret (OWN-3). It is safe for use by
// several goroutines.
type Cleaner struct {
	secrets []string
	encoded [][]byte // the same as they stand in JSON
}

// NewCleaner knows the secrets that must not be journalled.
func NewCleaner(secrets []string) *Cleaner {
	c := &Cleaner{secrets: slices.Clone(secrets)}
	c.secrets = slices.DeleteFunc(c.secrets, func(s string) bool { return s == "" })
	slices.SortFunc(c.secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, s := range c.secrets {
		if b, err := Encode(s); err == nil {
			c.encoded = append(c.encoded, b[1:len(b)-1])
		}
	}
	return c
}

// Text cleans one text.
func (c *Cleaner) Text(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.ReplaceAll(s, "\x00", "")
	for _, secret := range c.secrets {
		s = strings.ReplaceAll(s, secret, Hidden)
	}
	return s
}

// Bytes masks what isn't text and leaves its other bytes alone.
func (c *Cleaner) Bytes(s string) string {
	for _, secret := range c.secrets {
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
	dirty := bytes.Contains(b, []byte(`\u0000`))
	for _, s := range c.encoded {
		dirty = dirty || bytes.Contains(b, s)
	}
	// What somebody else encoded (a tool's input) may spell a secret in other escapes.
	if len(c.secrets) > 0 {
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
