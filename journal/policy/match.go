package policy

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Match reports whether the whole value fits the pattern: * is any run of
// characters, also / and newline; ? is exactly one character; every other
// character is itself, in its case. A trailing " *" is optional. Both are
// compared in Unicode form NFC. A pattern or value that holds NUL or isn't
// UTF-8 never matches.
//
// The work is bounded by the product of the two lengths.
func Match(pattern, value string) bool {
	p, ok := runes(pattern)
	if !ok {
		return false
	}
	v, ok := runes(value)
	if !ok {
		return false
	}
	if m, _ := wildcard(p, v); m {
		return true
	}
	short, optional := withoutTail(p)
	if !optional {
		return false
	}
	m, _ := wildcard(short, v)
	return m
}

func runes(s string) ([]rune, bool) {
	if strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
		return nil, false
	}
	return []rune(norm.NFC.String(s)), true
}

// withoutTail returns the pattern without its optional trailing " *".
func withoutTail(p []rune) ([]rune, bool) {
	n := len(p)
	if n < 2 || p[n-1] != '*' || p[n-2] != ' ' {
		return p, false
	}
	return p[:n-2], true
}

// wildcard matches with one point of return, the last star: what an earlier
// star took never needs to be taken back, so there is no exponential case. It
// returns the number of steps for the test that holds it to that.
func wildcard(p, v []rune) (matched bool, steps int) {
	pi, vi := 0, 0
	star, mark := -1, 0
	for vi < len(v) {
		steps++
		switch {
		case pi < len(p) && p[pi] == '*':
			star, mark = pi, vi
			pi++
		case pi < len(p) && (p[pi] == '?' || p[pi] == v[vi]):
			pi++
			vi++
		case star >= 0:
			mark++
			pi, vi = star+1, mark
		default:
			return false, steps
		}
	}
	for pi < len(p) && p[pi] == '*' {
		steps++
		pi++
	}
	return pi == len(p), steps
}

// overlaps reports whether some text matches both patterns. It answers whether
// a rule could match a command once the shell has expanded it. Text that can't
// be compared (NUL, not UTF-8) is taken to overlap.
func overlaps(a, b string) bool {
	ra, okA := runes(a)
	rb, okB := runes(b)
	if !okA || !okB {
		return true
	}
	return overlap(ra, rb) || overlapShort(ra, rb)
}

// overlapShort tries again without the optional tails.
func overlapShort(a, b []rune) bool {
	sa, okA := withoutTail(a)
	sb, okB := withoutTail(b)
	return okA && overlap(sa, b) || okB && overlap(a, sb) || okA && okB && overlap(sa, sb)
}

// overlap fills, row by row, "is there a text that matches a[i:] and b[j:]".
func overlap(a, b []rune) bool {
	next := make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		row := make([]bool, len(b)+1)
		for j := len(b); j >= 0; j-- {
			switch {
			case i == len(a) && j == len(b):
				row[j] = true
			case i < len(a) && a[i] == '*':
				row[j] = next[j] || j < len(b) && row[j+1]
			case j < len(b) && b[j] == '*':
				row[j] = row[j+1] || i < len(a) && next[j]
			case i < len(a) && j < len(b):
				row[j] = next[j+1] && (a[i] == b[j] || a[i] == '?' || b[j] == '?')
			}
		}
		next = row
	}
	return next[0]
}
