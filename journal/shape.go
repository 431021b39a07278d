package journal

import (
	"slices"
	"strings"
)

// Shape is what of a foreign protocol's JSON is the protocol itself, and is never
// masked: else a secret that is one of its words would break what is said in it.
type Shape struct {
	Names map[string]bool     // of members
	Words map[string][]string // by the member whose whole value they may be
	Free  map[string]bool     // members in which nothing is the protocol's
}

// Shaped is JSON for a message of a protocol: it leaves alone what is the protocol's,
// and numbers too, except where all is somebody's own.
func (c *Cleaner) Shaped(b []byte, shape *Shape) ([]byte, error) {
	if shape == nil {
		return c.JSON(b)
	}
	return c.parsed(b, func(v any) (any, bool) { return c.shaped("", v, shape) })
}

// shaped cleans the value of a member.
func (c *Cleaner) shaped(member string, v any, shape *Shape) (clean any, changed bool) {
	switch v := v.(type) {
	case string:
		if slices.Contains(shape.Words[member], v) {
			return v, false
		}
		return c.value(v)
	case []any:
		return v, each(v, func(w any) (any, bool) { return c.shaped("", w, shape) })
	case map[string]any:
		return c.members(v, func(name string) bool { return shape.Names[name] }, func(name string, w any) (any, bool) {
			if shape.Free[name] {
				return c.value(w)
			}
			return c.shaped(name, w, shape)
		})
	}
	return v, false
}

// Holds reports whether a text is a part of a word or a name of the protocol.
func (s *Shape) Holds(text string) bool {
	if s == nil {
		return false
	}
	for name := range s.Names {
		if strings.Contains(name, text) {
			return true
		}
	}
	for _, words := range s.Words {
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, text) }) {
			return true
		}
	}
	return false
}
