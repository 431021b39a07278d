package acp

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// patch is a look through a patch for the files that it changes. It takes for a name what
// any tool that applies patches may take for one, in whatever dialect and however it is
// padded, and keeps the first line that may name more. What only stands in a hunk is
// content, as far as all tools agree on where that ends.
type patch struct {
	file     func(name string) (changed bool) // takes a name; changed: the call says that it changes that
	untold   string                           // the first line that can't be told
	marks    bool                             // files are named by markers, whose hunks don't say how long they are
	counts   bool                             // hunks say how long they are, and hold to it for all who read it
	old, now int                              // lines of a hunk that are to come
	marked   bool                             // in what a marker begins
	context  bool                             // it has hunks of a context diff
	before   []string                         // names behind "--- " that wait for their hunk
	likely   string                           // one in a hunk, if the next line has another, or begins a hunk
	star     string                           // the name behind "*** " in the line before
	starred  string                           // that line, if it can be nothing but a name
	tab      string                           // what ends a name in this line, if it does
}

// mostBefore bounds the names that wait for their hunk.
const mostBefore = 20

// readPatch looks at all lines of a patch. whole: nothing goes on with it in another text.
// It gives the first line of which nobody can tell what it names, "" if there is none.
func readPatch(text string, whole bool, file func(name string) bool) (untold string) {
	p := patch{file: file}
	numbered := false
	eachLine(text, func(line string) {
		p.marks = p.marks || markerOf(trimmed(line)) != notMarker
		_, _, is := lengths(trimmed(line))
		numbered = numbered || is
	})
	p.counts = !p.marks && !strings.ContainsFunc(text, breaks) && strings.Count(text, "\r") == strings.Count(text, "\r\n")
	p.marks = p.marks && !numbered // else it may be read as either
	eachLine(text, p.line)
	p.settle("")
	if !whole {
		p.named()
	}
	return p.untold
}

// breaks reports whether some languages end a line with a character that others don't.
func breaks(r rune) bool {
	switch r {
	case '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}

// eachLine gives the lines of a text, whatever ends them, and copies none: it may be long.
func eachLine(text string, give func(line string)) {
	for text != "" {
		at := strings.IndexFunc(text, func(r rune) bool { return r == '\n' || r == '\r' || breaks(r) })
		if at < 0 {
			give(text)
			return
		}
		give(text[:at])
		if strings.HasPrefix(text[at:], "\r\n") {
			at++
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		text = text[at+size:]
	}
}

// blank reports whether a character is seen as nothing.
func blank(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}

func trimmed(text string) string { return strings.TrimFunc(text, blank) }

// line looks at the next line.
func (p *patch) line(line string) {
	text := trimmed(line)
	if text == "" {
		p.counted(" ")
		return
	}
	p.settle(text)
	if p.counted(line) {
		return
	}
	p.tab = ""
	if strings.Contains(line[len(strings.TrimRightFunc(line, blank)):], "\t") {
		p.tab = "\t"
	}
	first, content := line[0], false
	switch {
	case strings.IndexByte("+-", first) >= 0:
		text, content = strings.TrimRightFunc(line, blank), true
	case strings.IndexByte(" \t", first) >= 0:
		content = true
	}
	switch {
	case p.hunk(line, text), p.stars(text, content), p.sides(text), p.gits(text):
	case content || first == '\\' || first == '!' && p.context || p.untold != "" || noName.MatchString(text):
	default:
		p.cantTell(line)
	}
}

// settle takes what the line before has left open, once it is known what stands behind it.
func (p *patch) settle(text string) {
	side := sideOf(text, "--- ")
	switch {
	case p.star == "":
	case side: // the other's name waits, and has its hunk
		p.name(p.star)
		p.name(text[4:])
	case p.starred != "":
		p.name(p.star)
		p.cantTell(p.starred)
	}
	if p.likely != "" && (sideOf(text, "+++ ") || strings.HasPrefix(text, "@@ -")) {
		p.name(p.likely)
	}
	p.star, p.starred, p.likely = "", "", ""
}

// counted takes a line of a hunk that says how many it has; false: it is none. What reads
// like a name there is one for those who don't count, if the lines beside do too.
func (p *patch) counted(line string) bool {
	old, now := p.old, p.now
	switch line[0] {
	case ' ', '\t':
		old, now = old-1, now-1
	case '-':
		old--
	case '+':
		now--
	case '\\':
	default:
		old = -1
	}
	if old < 0 || now < 0 || p.old+p.now == 0 {
		p.old, p.now = 0, 0
		return false
	}
	p.old, p.now = old, now
	switch {
	case sideOf(line, "--- "):
		p.likely = line[4:]
	case sideOf(line, "+++ "):
		p.name(line[4:])
	}
	return true
}

// hunk takes a line with which a hunk begins. All names before it may be of its file.
func (p *patch) hunk(line, text string) bool {
	switch {
	case isContextHunk(text):
		p.context = true
	case !strings.HasPrefix(text, "@@"):
		return false
	}
	p.named()
	if old, now, ok := lengths(line); ok && p.counts {
		p.old, p.now = old, now
	}
	return true
}

// stars takes a line that begins with stars: a marker, or the first name of a context diff.
func (p *patch) stars(text string, content bool) bool {
	switch markerOf(text) {
	case markerOfFile:
		p.marked = p.marks
		p.markedFile(text)
		return true
	case markerOfNone:
		return true
	}
	if !strings.HasPrefix(text, "*** ") && !strings.HasPrefix(text, "***\t") {
		return false
	}
	p.star = text[4:] + p.tab
	switch {
	case !content:
		p.starred = text
	case !p.marked:
		p.waits(p.star)
	}
	return true
}

// sides takes the names of the two sides of a change. The first counts once there is a
// second, or a hunk.
func (p *patch) sides(text string) bool {
	escaped := text
	for strings.HasPrefix(escaped, "- ") { // as in a signed letter
		escaped = strings.TrimLeft(escaped[2:], " ")
	}
	switch {
	case sideOf(escaped, "--- ") && p.marked:
		p.likely = escaped[4:] + p.tab
	case sideOf(escaped, "--- "):
		p.waits(escaped[4:] + p.tab)
	case sideOf(text, "+++ "):
		p.named()
		p.name(text[4:] + p.tab)
	default:
		return false
	}
	return true
}

// sideOf reports whether a line has a name behind such a word.
func sideOf(text, word string) bool {
	return len(text) > len(word) && strings.HasPrefix(text, word[:3]) && (text[3] == ' ' || text[3] == '\t')
}

// waits has a name wait for its hunk.
func (p *patch) waits(name string) {
	if len(p.before) == mostBefore {
		p.cantTell(name)
		return
	}
	p.before = append(p.before, name)
}

// named takes the names that have waited for their hunk.
func (p *patch) named() {
	for _, name := range p.before {
		p.name(name)
	}
	p.before = nil
}

// cantTell keeps the first line of which nobody can tell what it names.
func (p *patch) cantTell(line string) {
	if p.untold == "" {
		p.untold = line
	}
}
