package components

import (
	"context"
	"io"
	"strings"
	"unicode"

	"github.com/a-h/templ"

	"holdfast/journal"
)

// Commands, paths, diffs and digests are drawn exactly: every character that has no ink
// of its own is an escape, and what stands first in the text stands first in the line,
// whatever script it is of. Prose is not: its emoji need their selectors, and its
// sentences their own direction.

// Exact draws a command, a path, a piece of a diff, or another text that is acted on.
func Exact(s string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		return writeExact(w, maskText(ctx, s))
	})
}

// HidesExact reports whether such a text holds a character that is not read as it stands.
func HidesExact(s string) bool {
	return strings.ContainsFunc(strings.ReplaceAll(s, "\r\n", "\n"), inkless)
}

// PlainExact is such a text with these characters as escapes.
func PlainExact(s string) string { return joined(segments(s, inkless)) }

// QuotedName is such a text where it can't be drawn as code: in a title, or in the name of
// a control.
func QuotedName(s string) string { return journal.Quote(PlainExact(s), 200) }

// inkless tells the characters that are drawn as nothing, or as a blank that isn't the
// usual one, beside those that act.
func inkless(r rune) bool {
	switch r {
	case '\n', '\t', ' ':
		return false
	case 0x2800, 0x16fe4, 0x1d159: // a cell of Braille without dots, a filler, a note without a head
		return true
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zs, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

func writeExact(w io.Writer, s string) error {
	for _, seg := range segments(s, inkless) {
		if seg.Escape {
			if _, err := io.WriteString(w, `<span class="esc">`+templ.EscapeString(seg.Text)+`</span>`); err != nil {
				return err
			}
			continue
		}
		if err := writeInOrder(w, seg.Text); err != nil {
			return err
		}
	}
	return nil
}

// writeInOrder isolates each run of letters that run from right to left, so that it
// stands where it stands in the text: without that, blanks, signs and digits between two
// of them change places with them.
func writeInOrder(w io.Writer, s string) error {
	for s != "" {
		from := strings.IndexFunc(s, rightToLeft)
		if from < 0 {
			from = len(s)
		}
		run := s[from:]
		if end := strings.IndexFunc(run, func(r rune) bool { return !rightToLeft(r) && !unicode.Is(unicode.Mn, r) }); end >= 0 {
			run = run[:end]
		}
		out := templ.EscapeString(s[:from])
		if run != "" {
			out += "<bdi>" + templ.EscapeString(run) + "</bdi>"
		}
		if _, err := io.WriteString(w, out); err != nil {
			return err
		}
		s = s[from+len(run):]
	}
	return nil
}

// rightToLeft tells the characters of the blocks that Unicode keeps for scripts that run
// from right to left, their digits among them.
func rightToLeft(r rune) bool {
	switch {
	case r < 0x590:
		return false
	case r <= 0x8ff, 0xfb1d <= r && r <= 0xfdff, 0xfe70 <= r && r <= 0xfeff, 0x10800 <= r && r <= 0x10fff, 0x1e800 <= r && r <= 0x1efff:
		return true
	}
	return false
}
