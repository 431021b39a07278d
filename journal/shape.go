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
	Whole map[string]bool     // members whose ends are left alone: ids, which are told whole, and texts that are put together
}

// Shaped is JSON for a message of a protocol: it leaves alone what is the protocol's,
// and numbers too, except where all is somebody's own.
func (c *Cleaner) Shaped(b []byte, shape *Shape) ([]byte, error) {
	return c.walked(b, shape, false)
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
