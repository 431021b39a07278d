package tool

import "holdfast/journal"

// escapes tells of a stream of lines of JSON where in an escape it stands.
type escapes struct {
	line lineKind
	left int // characters of the escape that are to come; afterBackslash: that isn't known yet
}

// lineKind is what the line begins as that the stream is in.
type lineKind int

const (
	lineBlank  lineKind = iota
	lineObject          // of JSON: a backslash begins an escape
	lineOther
)

const afterBackslash = -1

// step takes the next byte.
func (e *escapes) step(b byte) {
	switch {
	case b == '\n':
		*e = escapes{}
	case e.line == lineBlank && (b == ' ' || b == '\t' || b == '\r'):
	case e.line == lineBlank:
		e.line = lineOther
		if b == '{' {
			e.line = lineObject
		}
	case e.line == lineOther:
	case e.left == afterBackslash:
		e.left = 0
		if b == 'u' {
			e.left = 4
		}
	case e.left > 0:
		e.left--
	case b == '\\':
		e.left = afterBackslash
	}
}

// pass takes some text.
func (e *escapes) pass(text string) {
	if e == nil {
		return
	}
	for i := range len(text) {
		e.step(text[i])
	}
}

// around reports of a place in the text that comes next whether neither of its ends is
// in an escape. nil: any place will do.
func (e *escapes) around(text string) func(journal.Span) bool {
	if e == nil {
		return nil
	}
	var inside []bool // at each place between two bytes; made when it is needed
	return func(s journal.Span) bool {
		if inside == nil {
			inside = make([]bool, 0, len(text)+1)
			at := *e
			for i := range len(text) {
				inside = append(inside, at.left != 0)
				at.step(text[i])
			}
			inside = append(inside, at.left != 0)
		}
		return !inside[s.Start] && !inside[s.End]
	}
}
