package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// scanner goes over JSON that is known to be valid, and hands out its values where
// they lie, uncopied: of a long line most is one string, deep inside. Of text that
// isn't valid it makes something, within its bounds; it never panics.
type scanner struct {
	b []byte
	i int
}

// eachMember gives the members of an object, in order. false: it isn't an object.
func eachMember(raw []byte, give func(name string, value json.RawMessage)) bool {
	s := scanner{b: raw}
	if !s.take('{') {
		return false
	}
	for !s.take('}') {
		name := s.value()
		if !s.take(':') {
			return false
		}
		give(unquote(name), s.value())
		if !s.take(',') {
			return s.take('}')
		}
	}
	return true
}

// eachElement gives the elements of an array, until give has seen enough. false: it
// isn't an array, or give has.
func eachElement(raw []byte, give func(value json.RawMessage) (more bool)) bool {
	s := scanner{b: raw}
	if !s.take('[') {
		return false
	}
	for !s.take(']') {
		if !give(s.value()) {
			return false
		}
		if !s.take(',') {
			return s.take(']')
		}
	}
	return true
}

// EachMember gives the members of an object of a message, in order and uncopied; of two
// with one name the last counts. false: it isn't an object.
func EachMember(raw json.RawMessage, give func(name string, value json.RawMessage)) bool {
	return eachMember(raw, give)
}

// Text is the text of a string; of anything else it is empty.
func Text(raw json.RawMessage) string { return unquote(raw) }

// First is the value that a text begins with, uncopied.
func First(raw json.RawMessage) json.RawMessage {
	s := scanner{b: raw}
	return s.value()
}

// Token says what a part of a value is.
type Token int

// What a value is made of.
const (
	TokenOpen  Token = iota // of an object or a list
	TokenClose              // of it
	TokenName               // of a member, whose value comes next
	TokenLeaf               // a text, a number or a word
)

// EachToken gives what a value of a message is made of, however deep, in order and
// uncopied, each with all that comes behind it, until give has seen enough. It goes over
// the value once.
func EachToken(raw json.RawMessage, give func(is Token, token, rest json.RawMessage) (more bool)) {
	s := scanner{b: raw}
	for s.i < len(s.b) {
		start, is := s.i, TokenLeaf
		end := start + 1
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
			s.i++
			continue
		case '{', '[':
			is = TokenOpen
			s.i++
		case '}', ']':
			is = TokenClose
			s.i++
		case '"':
			s.text()
			if end = s.i; s.take(':') {
				is = TokenName
			}
		default:
			s.literal()
			end = s.i
		}
		if !give(is, raw[start:end:end], raw[s.i:]) {
			return
		}
	}
}

// mostNames is how many members of a value are gone over to find one that is there twice.
const mostNames = 100_000

// Twice gives the name of a member that an object of a value has more than once, however
// deep: readers differ in which of the two they take. One that has too many members to tell
// has one, too.
func Twice(raw json.RawMessage) (name string, twice bool) {
	var objects []map[string]bool
	left := mostNames
	EachToken(raw, func(is Token, token, _ json.RawMessage) bool {
		switch is {
		case TokenOpen:
			objects = append(objects, map[string]bool{})
		case TokenClose:
			objects = objects[:max(0, len(objects)-1)]
		case TokenName:
			if len(objects) == 0 {
				return true
			}
			name = Text(token)
			names := objects[len(objects)-1]
			left--
			twice = left < 0 || names[name]
			names[name] = true
		case TokenLeaf:
		}
		return !twice
	})
	if !twice {
		name = ""
	}
	return name, twice
}

// EachLeaf gives what a value of a message holds, however deep: its texts, numbers and
// words as they are written, in order and uncopied, until give has seen enough. It goes
// over the value once. Names of members are none.
func EachLeaf(raw json.RawMessage, give func(leaf json.RawMessage) (more bool)) {
	EachToken(raw, func(is Token, token, _ json.RawMessage) bool { return is != TokenLeaf || give(token) })
}

// member is the value of one member; nil if there is none, or it is null.
func member(raw []byte, name string) json.RawMessage {
	var found json.RawMessage
	eachMember(raw, func(n string, value json.RawMessage) {
		if n == name {
			found = value
		}
	})
	if isNull(found) {
		return nil
	}
	return found
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// isObject looks at the first byte of a value.
func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// unquote is the text of a string; of anything else it is empty.
func unquote(raw []byte) string {
	if len(raw) >= 2 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s) // what isn't a string has no text
	return s
}

// take passes over one byte, and blanks before it, if that is what comes.
func (s *scanner) take(c byte) bool {
	for s.i < len(s.b) && isBlank(s.b[s.i]) {
		s.i++
	}
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// value passes over one value and returns its bytes.
func (s *scanner) value() []byte {
	for s.i < len(s.b) && isBlank(s.b[s.i]) {
		s.i++
	}
	start := s.i
	for depth := 0; s.i < len(s.b); {
		switch c := s.b[s.i]; {
		case c == '"':
			s.text()
		case c == '{' || c == '[':
			depth++
			s.i++
		case depth > 0 && (c == '}' || c == ']'):
			depth--
			s.i++
		case depth > 0:
			s.i++
			continue
		default:
			s.literal()
		}
		if depth == 0 {
			break
		}
	}
	return s.b[start:s.i:s.i]
}

// text passes over a string.
func (s *scanner) text() {
	for s.i++; s.i < len(s.b); s.i++ {
		switch s.b[s.i] {
		case '\\':
			s.i++
		case '"':
			s.i++
			return
		}
	}
	s.i = len(s.b)
}

// literal passes over a number, true, false or null.
func (s *scanner) literal() {
	for s.i < len(s.b) && !isBlank(s.b[s.i]) && bytes.IndexByte([]byte(`,:]}`), s.b[s.i]) < 0 {
		s.i++
	}
}
