package components

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	terminal "github.com/buildkite/terminal-to-html/v3"
	"github.com/microcosm-cc/bluemonday"

	"holdfast/journal"
)

// Bounds of what is drawn of an output. The terminal is one row that is used
// again for each piece of a line, so its memory doesn't follow its input.
const (
	terminalBytes = 256 << 10
	terminalPiece = 1024 // characters drawn at once
	terminalWidth = terminalPiece + 64
)

// sentinel ends each piece, so that blanks before it are kept. No text holds it:
// NUL is drawn as an escape.
const sentinel = "\x00"

// marker is the style of escapes. No output has it: blinking is taken out.
const marker, unmarker = "\x1b[5m", "\x1b[25m"

// Terminal draws the output of a command: its colours, reduced to those of the
// page, and all else as text. Nothing moves a cursor, erases, links or names a
// window: such a sequence stands as an escape that can be read, so that a command
// can't hide what it wrote. Colours of the background are left out, since text
// could vanish in them. A lone carriage return starts a line. At most 256 KiB
// are drawn.
func Terminal(s string) SafeHTML {
	// Both sizes are constants above 0: there is nothing to refuse.
	screen, err := terminal.NewScreen(terminal.WithMaxSize(terminalWidth, 1), terminal.WithSize(terminalWidth, 1))
	if err != nil {
		panic(fmt.Sprintf("a terminal of one row: %v", err))
	}
	d := terminalRow{screen: screen}
	for i, line := range strings.Split(outputLines(journal.Cut(s, terminalBytes)), "\n") {
		if i > 0 {
			d.out.WriteByte('\n')
		}
		d.line(line)
	}
	return clean(terminalPolicy(), spanTag.ReplaceAllStringFunc(d.out.String(), tokenClasses))
}

// outputLines makes every end of a line a newline, and the text valid UTF-8.
func outputLines(s string) string {
	if strings.IndexByte(s, '\r') < 0 {
		return strings.ToValidUTF8(s, "\ufffd")
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\r' {
			b = append(b, s[i])
			continue
		}
		for i+1 < len(s) && s[i+1] == '\r' {
			i++
		}
		if i+1 == len(s) || s[i+1] != '\n' {
			b = append(b, '\n')
		}
	}
	return strings.ToValidUTF8(string(b), "\ufffd")
}

// terminalRow feeds one row of a terminal, piece by piece.
type terminalRow struct {
	screen *terminal.Screen
	out    strings.Builder
	piece  strings.Builder
	width  int
	marked bool // what was written last is an escape
}

func (d *terminalRow) line(s string) {
	for s != "" {
		if s[0] == '\x1b' {
			if m := selectGraphic.FindStringSubmatch(s[:min(len(s), 80)]); m != nil {
				d.piece.WriteString(reduceColours(m[1]))
				s = s[len(m[0]):]
				continue
			}
		}
		r, size := utf8.DecodeRuneInString(s)
		d.mark(acts(r))
		if d.marked {
			d.put(escapeOf(r), len(escapeOf(r)))
		} else {
			d.put(s[:size], 1)
		}
		s = s[size:]
	}
	d.flush()
}

// mark begins or ends a run of escapes.
func (d *terminalRow) mark(escape bool) {
	switch {
	case escape && !d.marked:
		d.piece.WriteString(marker)
	case !escape && d.marked:
		d.piece.WriteString(unmarker)
	}
	d.marked = escape
}

func (d *terminalRow) put(s string, width int) {
	d.piece.WriteString(s)
	if d.width += width; d.width >= terminalPiece {
		d.flush()
	}
}

// flush draws the piece over what the row held. Writing to a screen never fails.
func (d *terminalRow) flush() {
	if d.width > 0 || d.piece.Len() > 0 {
		_, _ = d.screen.Write([]byte("\x1b[2K\r" + d.piece.String() + sentinel))
		d.out.WriteString(strings.Replace(d.screen.AsHTML(), sentinel, "", 1))
	}
	d.piece.Reset()
	d.width = 0
}

// selectGraphic is the one sequence that is obeyed; a longer one is no colour.
var selectGraphic = regexp.MustCompile(`^\x1b\[([0-9;:]{0,64})m`)

// reduceColours gives a sequence of colours and weights with what the page has of
// it: six colours and dim for what is written, and its weight.
func reduceColours(params string) string {
	var out []string
	codes := strings.Split(strings.ReplaceAll(params, ":", ";"), ";")
	for i := 0; i < len(codes); i++ {
		n, err := strconv.Atoi(codes[i])
		if codes[i] == "" {
			n, err = 0, nil
		}
		switch {
		case err != nil, n == 5, n == 6: // blinking is our marker
		case n == 38, n == 48:
			code, used := extended(codes[i+1:])
			i += used
			if n == 38 {
				out = append(out, code)
			}
		case n >= 90 && n <= 97:
			out = append(out, ink(n-90, n == 90))
		case n >= 30 && n <= 37:
			out = append(out, ink(n-30, false))
		case n >= 40 && n <= 49, n >= 100 && n <= 107:
		default:
			out = append(out, strconv.Itoa(n))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "\x1b[" + strings.Join(out, ";") + "m"
}

// ink is one of the six colours; black and white are the ink of the page.
func ink(n int, dim bool) string {
	switch {
	case dim:
		return "90"
	case n == 0 || n == 7:
		return "39"
	}
	return strconv.Itoa(30 + n)
}

// extended reads a colour of 256 or of 16 million, and says how many codes it took.
func extended(codes []string) (code string, used int) {
	var v [5]int
	for i := range min(len(codes), len(v)) {
		v[i], _ = strconv.Atoi(codes[i]) // what is no number is 0
	}
	switch {
	case len(codes) >= 2 && v[0] == 5:
		return indexed(v[1]), 2
	case len(codes) >= 5 && v[0] == 2 && codes[1] == "": // with an empty colour space
		return nearest(v[2], v[3], v[4]), 5
	case len(codes) >= 4 && v[0] == 2:
		return nearest(v[1], v[2], v[3]), 4
	}
	return "39", len(codes) // broken: nothing of the rest can be told apart
}

// indexed is a colour of the table of 256: 16 named ones, a cube, and greys.
func indexed(n int) string {
	switch {
	case n < 8:
		return ink(n, false)
	case n < 16:
		return ink(n-8, n == 8)
	case n < 232:
		n -= 16
		return nearest(n/36*51, n/6%6*51, n%6*51)
	}
	grey := 8 + (n-232)*10
	return nearest(grey, grey, grey)
}

// nearest is the named colour that is like it.
func nearest(r, g, b int) string {
	high, low := max(r, g, b), min(r, g, b)
	if high-low < 48 {
		return ink(0, high > 64 && high < 160)
	}
	n, middle := 0, (high+low)/2
	for i, c := range []int{r, g, b} {
		if c > middle {
			n |= 1 << i
		}
	}
	return ink(n, false)
}

var spanTag = regexp.MustCompile(`<span class="[^"]*">`)

// tokens are the classes of the terminal that are kept, with our names for them.
var tokens = map[string]string{
	"term-fg31": "ansi-red", "term-fg32": "ansi-green", "term-fg33": "ansi-yellow", "term-fg34": "ansi-blue",
	"term-fg35": "ansi-magenta", "term-fg36": "ansi-cyan", "term-fgi90": "ansi-dim",
	"term-fg1": "ansi-bold", "term-fg2": "ansi-dim", "term-fg3": "ansi-italic", "term-fg4": "ansi-underline", "term-fg9": "ansi-strike",
	"term-fg5": "esc",
}

func tokenClasses(tag string) string {
	var out []string
	for _, class := range strings.Fields(tag[len(`<span class="`) : len(tag)-len(`">`)]) {
		if ours := tokens[class]; ours == "esc" {
			return `<span class="esc">` // an escape is never coloured
		} else if ours != "" {
			out = append(out, ours)
		}
	}
	return `<span class="` + strings.Join(out, " ") + `">`
}

var terminalPolicy = sync.OnceValue(func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	one := "(?:esc|ansi-(?:red|green|yellow|blue|magenta|cyan|dim|bold|italic|underline|strike))"
	p.AllowAttrs("class").Matching(regexp.MustCompile("^" + one + "(?: " + one + ")*$")).OnElements("span")
	return p
})
