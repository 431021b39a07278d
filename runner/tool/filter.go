package tool

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"holdfast/journal"
)

// isText reports whether a piece is text as the journal holds it: valid UTF-8
// without NUL. What isn't is kept byte for byte (JRN-6).
func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// Filter masks one stream, byte for byte otherwise. It gives out what is decided
// and holds back what may still become a character or a secret: never more than
// the longest secret. The result doesn't depend on how the stream was cut.
//
// Secrets are sought as they are, byte by byte: one that is printed with NULs
// between its characters isn't found. Occurrences that overlap become one mask.
// Not for concurrent use.
type Filter struct {
	secrets []string
	raw     []byte // the start of a character
	held    string // undecided
	// covered is how much of held's start belongs to an occurrence whose mask
	// is already out. So a stream of "aaaa…" can't make held grow.
	covered int
	escapes *escapes // where the stream stands at held's start; nil: it isn't JSON
}

// NewJSONFilter is NewFilter for a stream of lines of JSON: no mask begins or ends in the
// middle of an escape in them, which would make the line one that can't be read. What
// begins there is no occurrence in the text that is spelt. Lines that don't begin as an
// object of JSON does are masked as other text.
func NewJSONFilter(secrets []string) *Filter {
	f := NewFilter(secrets)
	f.escapes = &escapes{}
	return f
}

// NewFilter masks secrets, each without blanks at its ends; empty ones are left out.
func NewFilter(secrets []string) *Filter {
	f := &Filter{}
	for _, s := range secrets {
		s = strings.TrimSpace(s)
		if s != "" && !slices.Contains(f.secrets, s) {
			f.secrets = append(f.secrets, s)
		}
	}
	return f
}

// Write takes the next bytes and returns what is ready.
func (f *Filter) Write(p []byte) string {
	if len(f.raw) > 0 {
		p = append(f.raw, p...)
	}
	whole := len(p) - partialRune(p)
	text := string(p[:whole])
	f.raw = append([]byte(nil), p[whole:]...)
	return f.advance(text, false)
}

// Flush ends the stream and returns what was held back: what began a secret is masked as
// one, if it is long enough to matter. The filter is then as new.
func (f *Filter) Flush() string {
	text := string(f.raw)
	f.raw = nil
	out := f.advance(text, true)
	f.held, f.covered = "", 0
	if f.escapes != nil {
		f.escapes = &escapes{}
	}
	return out
}

// advance adds bytes and gives out all before the first place at which
// a secret may have begun.
func (f *Filter) advance(text string, end bool) string {
	if len(f.secrets) == 0 {
		return text
	}
	text = f.held + text
	until := len(text)
	if !end {
		until = journal.SecretStart(text, f.secrets)
	}
	var out strings.Builder
	pos := f.covered
	for _, found := range f.found(text, end) {
		if found.Start >= until {
			break
		}
		if found.Start >= pos {
			out.WriteString(text[pos:found.Start])
			out.WriteString(journal.Hidden)
		}
		pos = max(pos, found.End)
	}
	if pos < until {
		out.WriteString(text[pos:until])
	}
	f.covered = max(0, pos-until)
	f.escapes.pass(text[:until])
	f.held = strings.Clone(text[until:])
	return out.String()
}

// found gives what is masked of a text, by where it starts; end: nothing follows it.
func (f *Filter) found(text string, end bool) []journal.Span {
	counts := f.escapes.around(text)
	all := journal.Occurrences(text, f.secrets, counts)
	if !end || text == "" {
		return all
	}
	begun := journal.Span{Start: journal.LongStart(text, f.secrets), End: len(text)}
	if begun.Start == begun.End || counts != nil && !counts(begun) {
		return all
	}
	i, _ := slices.BinarySearchFunc(all, begun, func(a, b journal.Span) int { return cmp.Compare(a.Start, b.Start) })
	return slices.Insert(all, i, begun)
}

// partialRune returns how many bytes at the end of p begin a character whose
// rest is missing.
func partialRune(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if c := p[len(p)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(p[len(p)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// cutText returns the length of the longest start of text that has at most n
// bytes and ends between characters. Bytes that are no character are cut anywhere.
func cutText[T string | []byte](text T, n int) int {
	if n >= len(text) {
		return len(text)
	}
	n = max(n, 0)
	for back := 0; back < utf8.UTFMax && back <= n; back++ {
		if utf8.RuneStart(text[n-back]) {
			return n - back
		}
	}
	return n
}
