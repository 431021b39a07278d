package journal

import (
	"cmp"
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// mostLevels bounds how deep escapes in escapes are looked into.
const mostLevels = 3

// Line cleans one line of a protocol that speaks JSON. What isn't JSON, since it was cut
// off, say, or has something before it, is cleaned of secrets too, however it spells them.
// What is told in it may be told again once there is more of it: see Unended.
func (c *Cleaner) Line(line []byte, shape *Shape) []byte {
	if json.Valid(line) {
		if clean, err := c.walked(line, shape, true); err == nil {
			return clean
		}
	}
	return []byte(c.Words(string(line)))
}

// Words is Text for what a program wrote, which may have pieces of JSON in it, and may be
// cut off, or break off, on either side. Secrets are masked also where they stand in
// escapes, or in escapes of escapes, and so is what begins one at the text's end, and what
// ends one at its beginning: as little of one stays as with Unended.
func (c *Cleaner) Words(s string) string {
	s = c.Text(s)
	known := c.now()
	found := known.brokenOff(s)
	text, at := s, func(n int) int { return n }
	for level := 0; level < mostLevels && len(known.secrets) > 0; level++ {
		plain, steps := unescaped(text)
		if len(steps) == 0 {
			break
		}
		before := at
		text, at = plain, func(n int) int { return before(steps.place(n)) }
		for _, f := range append(Occurrences(text, known.secrets, nil), known.brokenOff(text)...) {
			found = append(found, Span{at(f.Start), at(f.End)})
		}
	}
	return without(s, found)
}

// without puts a mask over each of some spans of a text, and one over those that overlap.
func without(s string, spans []Span) string {
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	var out strings.Builder
	pos := 0
	for _, f := range spans {
		if f.Start >= pos {
			out.WriteString(s[pos:f.Start])
			out.WriteString(Hidden)
		}
		pos = max(pos, f.End)
	}
	out.WriteString(s[pos:])
	return out.String()
}

// steps are where a text goes on behind the escapes of the one that it was made of.
type steps []struct{ plain, raw int }

// place gives where in the text with escapes a place of the one without them lies.
func (st steps) place(n int) int {
	i := sort.Search(len(st), func(i int) bool { return st[i].plain > n })
	if i == 0 {
		return n
	}
	return st[i-1].raw + n - st[i-1].plain
}

// unescaped is a text with each of its escapes as what it stands for.
func unescaped(s string) (string, steps) {
	var out strings.Builder
	var st steps
	for {
		at := strings.IndexByte(s, '\\')
		if at < 0 {
			break
		}
		out.WriteString(s[:at])
		s = s[at:]
		raw := out.Len()
		if n := len(st); n > 0 {
			raw += st[n-1].raw - st[n-1].plain
		}
		length, plain := escape(s)
		out.WriteString(plain)
		s = s[length:]
		if plain != "\\" || length != 1 {
			st = append(st, struct{ plain, raw int }{out.Len(), raw + length})
		}
	}
	if len(st) == 0 {
		return "", nil
	}
	out.WriteString(s)
	return out.String(), st
}

// escape reads the escape that a text begins with; what is none is a backslash.
func escape(s string) (length int, plain string) {
	if len(s) < 2 {
		return 1, "\\"
	}
	if i := strings.IndexByte(letters, s[1]); i >= 0 {
		return 2, meant[i : i+1]
	}
	r, ok := escaped(s)
	if !ok {
		return 1, "\\"
	}
	if low, ok := escaped(s[6:]); ok { // two halves of a character
		if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
			return 12, string(both)
		}
	}
	return 6, string(r) // of half a character what stands for none
}

// longestEscape is how many bytes an escape has at most: that of two halves of a character.
const longestEscape = 12

// letters are those that stand for something behind a backslash, and meant what they
// stand for.
const letters, meant = `"\/bfnrt`, "\"\\/\b\f\n\r\t"

// escaped reads the four digits of the character that a text begins with.
func escaped(s string) (r rune, ok bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	for _, c := range []byte(s[2:6]) {
		digit := strings.IndexByte("0123456789abcdef", c|0x20)
		if digit < 0 || c < '0' {
			return 0, false
		}
		r = r<<4 | rune(digit)
	}
	return r, true
}
