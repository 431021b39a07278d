package components

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"holdfast/journal"
)

// Segment is a run of text, or one character that must be seen, not obeyed.
type Segment struct {
	Text   string
	Escape bool
}

// Segments splits a text at the characters that act instead of being read:
// control characters but for newline and tab, and what changes the direction of
// text or is invisible. CRLF counts as a newline.
func Segments(s string) []Segment { return segments(s, acts) }

func segments(s string, escaped func(rune) bool) []Segment {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var out []Segment
	start := 0
	for i, r := range s {
		if !escaped(r) {
			continue
		}
		if i > start {
			out = append(out, Segment{Text: s[start:i]})
		}
		out = append(out, Segment{Text: escapeOf(r), Escape: true})
		start = i + utf8.RuneLen(r)
	}
	if start < len(s) {
		out = append(out, Segment{Text: s[start:]})
	}
	return out
}

// acts tells the characters that are not read. Joiners stay: scripts and emoji need them.
func acts(r rune) bool {
	switch r {
	case '\n', '\t', 0x200c, 0x200d:
		return false
	case 0x2028, 0x2029, 0x115f, 0x1160, 0x3164, 0xffa0: // separators of lines; fillers without ink
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}

func escapeOf(r rune) string {
	switch {
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// Hides reports whether a text holds a character that is not read as it stands.
func Hides(s string) bool {
	return strings.ContainsFunc(strings.ReplaceAll(s, "\r\n", "\n"), acts)
}

// Plain is a text with its acting characters as escapes, for attributes and titles.
func Plain(s string) string { return joined(Segments(s)) }

func joined(list []Segment) string {
	var b strings.Builder
	for _, seg := range list {
		b.WriteString(seg.Text)
	}
	return b.String()
}

// Line is a text on one line of at most n bytes, for a title or a row. Blanks that only
// look like the usual one stay what they are.
func Line(s string, n int) string {
	return journal.Cut(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\n\v\f\r", r) }), " "), n)
}

// briefMax bounds what stands of a reason where there is little room, in bytes.
const briefMax = 120

// Brief is the first sentence of a reason, without the data of a machine that may be
// in it. What is left out of the sentence is seen to be; all of it stands elsewhere.
func Brief(s string) string {
	s = firstSentence(strings.Join(strings.Fields(s), " "))
	cut := strings.IndexByte(s, '{')
	if cut < 0 && len(s) > briefMax {
		cut = strings.LastIndexByte(s[:briefMax], ' ')
		if colon := strings.LastIndex(s[:briefMax], ": "); colon > briefMax/3 {
			cut = colon
		}
		if cut < briefMax/3 {
			return endQuote(journal.Cut(s, briefMax))
		}
	}
	if cut >= 0 {
		return endQuote(journal.Cut(strings.TrimRight(s[:cut], " :,;({[.“"), briefMax) + "…")
	}
	if s != "" && !strings.HasSuffix(s, "!") && !strings.HasSuffix(s, "?") {
		s = strings.TrimRight(s, ".") + "."
	}
	return s
}

// Told is a sentence on one line of at most n bytes. Words of somebody else that are cut
// in it still end where they do.
func Told(s string, n int) string { return endQuote(Line(s, n)) }

// firstSentence is what stands before the first end of a sentence that isn't in quotes.
func firstSentence(s string) string {
	quotes := 0
	for i, r := range s {
		switch {
		case r == '“':
			quotes++
		case r == '”':
			quotes--
		case quotes <= 0 && strings.ContainsRune(".!?", r) && (i+1 == len(s) || s[i+1] == ' '):
			return s[:i+1]
		}
	}
	return s
}

// endQuote ends the quotes that a cut has left open, so that none of what follows is
// taken for what somebody else wrote, or the other way round.
func endQuote(s string) string {
	if strings.LastIndex(s, "“") > strings.LastIndex(s, "”") {
		return s + "”"
	}
	return s
}

var colours = regexp.MustCompile(`\x1b\[[0-9;:]*m`)

// Uncoloured takes the colours out of a command's output.
func Uncoloured(s string) string { return colours.ReplaceAllString(s, "") }

// Lines counts the lines of a text.
func Lines(s string) int {
	if s == "" {
		return 0
	}
	return strings.Count(strings.TrimSuffix(s, "\n"), "\n") + 1
}

// maxLine is where a line of output is cut (ux: 2,000 characters).
const maxLine = 2000

// cutLine bounds a line, and says how much of it is left out. A sequence of
// colour isn't cut in its midst, and what it colours ends with the line.
func cutLine(line string) string {
	if len(line) <= maxLine {
		return line
	}
	end, n := len(line), 0
	for i := range line {
		if n == maxLine {
			end = i
			break
		}
		n++
	}
	if end == len(line) {
		return line
	}
	if esc := strings.LastIndexByte(line[:end], '\x1b'); esc >= 0 && end-esc < 80 {
		if m := selectGraphic.FindString(line[esc:]); esc+len(m) > end {
			end = esc
		}
	}
	more := "… " + Bytes(int64(len(line)-end)) + " more on this line"
	if strings.IndexByte(line[:end], '\x1b') >= 0 {
		more = "\x1b[0m" + more
	}
	return line[:end] + more
}

// headLines gives the first lines of a text, at most n and size bytes of them,
// each cut to what a line may have.
func headLines(s string, n, size int) (lines []string) {
	for s != "" && len(lines) < n {
		line, rest, _ := strings.Cut(s, "\n")
		if line = cutLine(line); len(line) >= size {
			return lines
		}
		size -= len(line) + 1
		lines = append(lines, line)
		s = rest
	}
	return lines
}

// tailLines gives the last lines of a text likewise. What stands before them is
// not looked at.
func tailLines(s string, n, size int) (lines []string) {
	s = strings.TrimSuffix(s, "\n")
	for more := s != ""; more && len(lines) < n; {
		i := strings.LastIndexByte(s, '\n')
		line := cutLine(s[i+1:])
		if len(line) >= size {
			break
		}
		size -= len(line) + 1
		lines = append(lines, line)
		more = i >= 0
		s = s[:max(i, 0)]
	}
	slices.Reverse(lines)
	return lines
}

// HeadTail bounds a text to its first and last lines; left counts the lines
// between. A text that fits is all head.
func HeadTail(s string, head, tail int) (first, last string, left int) {
	total := Lines(s)
	if total <= head+tail {
		return strings.Join(headLines(s, total, len(s)+total+1), "\n"), "", 0
	}
	return strings.Join(headLines(s, head, boxBytes), "\n"), strings.Join(tailLines(s, tail, boxBytes), "\n"), total - head - tail
}

// Bytes is a size for people.
func Bytes(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 1024:
		return fmt.Sprintf("%d bytes", n)
	case n < 1024*1024:
		return fmt.Sprintf("%d KB", (n+512)/1024)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1024*1024))
}

// Plural is a count with its noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "ry") {
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Curly gives the server's own words the apostrophes that pages have; logs, programs and
// the journal have plain ones. What stands in quotes isn't the server's.
func Curly(s string) string {
	var out strings.Builder
	for s != "" {
		ours, said, rest := nextQuote(s)
		parts := strings.Split(ours, `"`)
		for i := 0; i < len(parts); i += 2 {
			parts[i] = contraction.ReplaceAllString(parts[i], "$1’$2")
		}
		out.WriteString(strings.Join(parts, `"`) + said)
		s = rest
	}
	return out.String()
}

var contraction = regexp.MustCompile(`([A-Za-z])'(t|s|re|ll|ve|d|m)\b`)

// UpperFirst begins a sentence of ours with words that stand in its middle elsewhere.
func UpperFirst(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}

// Ordinal is a place in an order: 1st, 2nd, 11th.
func Ordinal(n int) string {
	end := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			end = "st"
		case 2:
			end = "nd"
		case 3:
			end = "rd"
		}
	}
	return strconv.Itoa(n) + end
}

// Number is how an entry is named: #0094.
func Number(seq int64) string { return fmt.Sprintf("#%04d", seq) }
