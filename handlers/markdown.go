package handlers

import (
	"bufio"
	"fmt"
	"strings"
	"unicode/utf8"

	"holdfast/journal"
	"holdfast/views/components"
)

// markdown writes a document of our own words and of data. Words are ours:
// constants, numbers and times. Data is what people, agents and commands wrote;
// it goes through code, data and fence, which leave nothing in it that could act:
// not as Markdown, not as HTML, not on a terminal. The first error stays.
type markdown struct {
	w     *bufio.Writer
	clean func() *journal.Cleaner // hides what several entries put together, too
	err   error
}

// say writes our words. %s takes what is ours, or what code has made.
func (m *markdown) say(format string, args ...any) {
	if m.err == nil {
		_, m.err = fmt.Fprintf(m.w, format, args...)
	}
}

// Bounds of data that stands inside a line, and of what is a line at all, in bytes.
const (
	codeMax = 400
	lineMax = 160
)

// code is data inside a line: a code span of one line, cut if it is long.
func code(s string) string {
	s = strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(components.PlainExact(visible(journal.Cut(s, codeMax))))
	if s == "" {
		return "(empty)"
	}
	ticks := strings.Repeat("`", run(s, '`')+1)
	if s[0] == '`' || s[len(s)-1] == '`' || s[0] == ' ' && s[len(s)-1] == ' ' {
		s = " " + s + " " // Markdown takes one away on each side
	}
	return ticks + s + ticks
}

// fence is data as a block, whose lines begin at an indent of blanks. No run in
// it is as long as the fence, so nothing in it ends the block.
func (m *markdown) fence(indent int, s string) {
	s = strings.TrimSuffix(visible(m.masked(s)), "\n")
	pad, ticks := strings.Repeat(" ", indent), strings.Repeat("`", max(3, run(s, '`')+1, run(s, '~')+1))
	m.say("%s%stext\n", pad, ticks)
	for line := range strings.SplitSeq(s, "\n") {
		if line == "" {
			m.say("\n")
			continue
		}
		m.say("%s%s\n", pad, line)
	}
	m.say("%s%s\n", pad, ticks)
}

// exactly is a fence of what is acted on: a command, a diff or an input.
func (m *markdown) exactly(s string) { m.fence(0, components.PlainExact(m.masked(s))) }

// exactData is data of what is acted on.
func (m *markdown) exactData(name, s string) { m.data(name, components.PlainExact(m.masked(s))) }

func (m *markdown) masked(s string) string {
	if m.clean == nil {
		return s
	}
	return m.clean().Bytes(s)
}

// data is a named piece of data: in the line if it is short, else as a block.
func (m *markdown) data(name, s string) {
	s = m.masked(s)
	if len(s) <= lineMax && !strings.Contains(s, "\n") {
		m.say("%s: %s\n\n", name, code(s))
		return
	}
	m.say("%s:\n\n", name)
	m.fence(0, s)
	m.say("\n")
}

// quoted is data as a double-quoted scalar of YAML, which has the same escapes.
func quoted(s string) string {
	return `"` + visible(strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s)) + `"`
}

// visible is a text in which nothing acts: control characters, what changes the
// direction of text or has no ink, and bytes that are no text, are escapes.
func visible(s string) string {
	if !utf8.ValidString(s) {
		var b strings.Builder
		for len(s) > 0 {
			r, n := utf8.DecodeRuneInString(s)
			if r == utf8.RuneError && n == 1 {
				fmt.Fprintf(&b, `\x%02x`, s[0])
			} else {
				b.WriteString(s[:n])
			}
			s = s[n:]
		}
		s = b.String()
	}
	return components.Plain(s)
}

// run is the length of the longest run of a byte.
func run(s string, of byte) int {
	longest, n := 0, 0
	for i := range len(s) {
		if s[i] != of {
			n = 0
			continue
		}
		n++
		longest = max(longest, n)
	}
	return longest
}
