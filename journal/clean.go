package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
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

// JSON cleans every text of an encoded value. What is clean already is
// returned as it is, without being parsed.
func (c *Cleaner) JSON(b []byte) ([]byte, error) {
	dirty := bytes.Contains(b, []byte(`\u0000`))
	for _, s := range c.encoded {
		dirty = dirty || bytes.Contains(b, s)
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
	return Encode(c.value(v))
}

func (c *Cleaner) value(v any) any {
	switch v := v.(type) {
	case string:
		return c.Text(v)
	case []any:
		for i := range v {
			v[i] = c.value(v[i])
		}
	case map[string]any:
		for k, w := range v {
			v[k] = c.value(w)
		}
	}
	return v
}
