package journal

import (
	"strings"
	"unicode/utf8"
)

// brokenOff gives what of a text is a piece of a secret that goes on outside of it.
func (k *known) brokenOff(text string) []Span {
	var out []Span
	if n := k.longEnd(text); n > 0 {
		out = append(out, Span{0, n})
	}
	for end, n := text, 0; end != "" && n <= mostClosers; n++ {
		end = end[:len(end)-partEscape(end)]
		if at := k.longStart(end); at < len(end) {
			return append(out, Span{at, len(end)})
		}
		r, size := utf8.DecodeLastRuneInString(end)
		if size == 0 || !strings.ContainsRune(closers, r) {
			break
		}
		end = end[:len(end)-size]
	}
	return out
}

// longEnd is how many bytes at the start of a text end a secret, if they are enough to be
// masked.
func (k *known) longEnd(text string) int {
	longest := 0
	if text == "" || !utf8.RuneStart(text[0]) {
		return 0
	}
	for _, s := range k.secrets {
		for n := min(len(s)-1, len(text)); n > longest; n-- {
			if s[len(s)-n] == text[0] && strings.HasPrefix(text, s[len(s)-n:]) {
				if utf8.RuneCountInString(text[:n]) >= tooLong(s) {
					longest = n
				}
				break
			}
		}
	}
	return longest
}

// partEscape is how many bytes at the end of a text begin an escape.
func partEscape(text string) int {
	at := strings.LastIndexByte(text[max(0, len(text)-len(`\u000`)):], '\\')
	if at < 0 {
		return 0
	}
	at += max(0, len(text)-len(`\u000`))
	rest := text[at+1:]
	if rest != "" && rest[0] != 'u' || strings.Trim(strings.TrimPrefix(rest, "u"), "0123456789abcdefABCDEF") != "" {
		return 0
	}
	return len(text) - at
}

// LastWords keeps the end of what a program writes, piece by piece, for people. The zero
// value keeps nothing.
type LastWords struct {
	Most int // bytes that are given
	raw  string
}

// Add adds a piece. What it holds is not masked: a secret may come in several.
func (l *LastWords) Add(c *Cleaner, text string) {
	l.raw += text
	keep := l.Most + 2*longestEscape*c.Longest() // with room for a secret, however it is spelt
	if len(l.raw) <= 2*keep {
		return
	}
	at := len(l.raw) - keep
	if n := strings.LastIndexByte(l.raw[max(0, at-longestEscape):at], '\\'); n >= 0 { // not in the middle of an escape
		at = max(0, at-longestEscape) + n
		for at > 0 && l.raw[at-1] == '\\' {
			at--
		}
	}
	for at < len(l.raw) && !utf8.RuneStart(l.raw[at]) {
		at++
	}
	l.raw = strings.Clone(l.raw[at:])
}

// Set has them be another text.
func (l *LastWords) Set(text string) { l.raw = text }

// Text gives them without secrets, and without any piece of one that matters, plain made
// of them by plain.
func (l *LastWords) Text(c *Cleaner, plain func(string) string) string {
	return Tail(strings.TrimSpace(c.Words(plain(l.raw))), l.Most)
}
