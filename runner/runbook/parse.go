package runbook

import (
	"fmt"
	"strings"
	"time"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"holdfast/journal"
)

// block is one step of a mission.
type block struct {
	Key      string // prompt/block: its position
	PromptID string
	Seq      int64 // of the prompt's promotion
	Shell    string
	Script   string
	Name     string
	Effect   journal.Effect
	Timeout  time.Duration
	Continue bool // on-error=continue
}

// refusal is a sentence for people: why a message can't be run.
type refusal string

func (r refusal) Error() string { return string(r) }

// blocks finds fences and headings and reads nothing inside of a line: inline
// Markdown can take quadratic time, and says nothing about steps.
var blocks = parser.NewParser(parser.WithBlockParsers(parser.DefaultBlockParsers()...))

// Reading a line costs as much as the lists and quotes around it are deep, also
// where it is blank, and can't be stopped once begun: so the two are bounded
// together, to about a quarter of a second.
const (
	maxNesting = 50
	maxWork    = 200_000 // depth times lines
)

func tooDeep(markdown string) bool {
	deepest := 1
	for line := range strings.Lines(markdown) {
		if !rule(line) {
			deepest = max(deepest, depth(line))
		}
	}
	return deepest > maxNesting || deepest*strings.Count(markdown, "\n") > maxWork
}

// depth is how many lists and quotes a line may stand in, with those that it
// opens; 0 if it opens none. A list takes at least two columns.
func depth(line string) int {
	columns, markers := 0, 0
	for len(line) > 0 {
		switch line[0] {
		case ' ':
			columns++
			line = line[1:]
			continue
		case '\t':
			columns += 4
			line = line[1:]
			continue
		}
		n := marker(line)
		if n == 0 {
			break
		}
		markers++
		line = line[n:]
	}
	if markers == 0 {
		return 0
	}
	return min(columns, 2*maxNesting)/2 + markers
}

// marker is the length of the mark of a list item or a quote that a line begins with; 0: none.
func marker(line string) int {
	if line[0] == '>' {
		return 1
	}
	n := 0
	for n < len(line) && n < 9 && line[n] >= '0' && line[n] <= '9' {
		n++
	}
	switch {
	case n > 0 && n < len(line) && (line[n] == '.' || line[n] == ')'):
		n++
	case n == 0 && strings.IndexByte("-+*", line[0]) >= 0:
		n = 1
	default:
		return 0
	}
	if n < len(line) && strings.IndexByte(" \t\r\n", line[n]) < 0 {
		return 0
	}
	return n
}

// rule reports a line of one character: a thematic break or a heading's underline.
func rule(line string) bool {
	line = strings.Join(strings.Fields(line), "")
	return strings.Trim(line, line[:min(1, len(line))]) == "" && line != "" && line[0] != '>' && line[0] != '+'
}

// parse finds the steps of a mission. An error is a sentence for people.
func parse(markdown string) ([]block, error) {
	src := []byte(markdown)
	var out []block
	heading := ""
	if tooDeep(markdown) {
		return nil, refusal("This message nests lists or quotes too deeply, for its length, to be read as a mission.")
	}
	err := ast.Walk(blocks.Parse(text.NewReader(src)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			heading = strings.TrimSpace(strings.NewReplacer("*", "", "`", "").Replace(plain(n, src)))
		case *ast.FencedCodeBlock:
			b, err := blockOf(n, src, heading, len(out)+1)
			if err != nil {
				return ast.WalkStop, err
			}
			if b != nil {
				out = append(out, *b)
			}
		}
		return ast.WalkContinue, nil
	})
	return out, err
}

// plain is the text of a heading without its markup.
func plain(n ast.Node, src []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(c ast.Node, entering bool) (ast.WalkStatus, error) { // the walker has no errors of its own
		if t, ok := c.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(src))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// blockOf reads one fenced block; nil: it is of another language, shown and not run.
func blockOf(n *ast.FencedCodeBlock, src []byte, heading string, number int) (*block, error) {
	if n.Info == nil {
		return nil, nil //nolint:nilnil // a block that isn't a step is no fault
	}
	words, err := fields(string(n.Info.Segment.Value(src)))
	if err != nil {
		return nil, fmt.Errorf("Block %d: %w", number, err) //nolint:staticcheck // a sentence for people
	}
	if len(words) == 0 || (words[0] != "sh" && words[0] != "bash") {
		return nil, nil //nolint:nilnil // as above
	}
	b := &block{Shell: words[0], Name: heading, Effect: journal.EffectEffect}
	for _, w := range words[1:] {
		if err := b.option(w); err != nil {
			return nil, fmt.Errorf("Block %d: %w", number, err) //nolint:staticcheck // a sentence for people
		}
	}
	if b.Name == "" {
		b.Name = fmt.Sprintf("Step %d", number)
	}
	b.Name = journal.Cut(b.Name, 200)
	var script strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		script.Write(line.Value(src))
	}
	b.Script = script.String()
	if strings.Contains(b.Script, journal.Hidden) {
		// What was handed over isn't what would run: the value is not in the journal.
		return nil, refusal(fmt.Sprintf("Block %d holds the value of a secret variable of the server, which the journal keeps as %s, so it is not run. Let the step read it from a file instead.", number, journal.Hidden))
	}
	return b, nil
}

func (b *block) option(w string) error {
	name, value, _ := strings.Cut(w, "=")
	switch name {
	case "name":
		b.Name = value
	case "effect":
		if b.Effect = journal.ParseEffect(value); string(b.Effect) != value {
			return fmt.Errorf("effect=%s is not one of read, idempotent, effect", journal.Cut(value, 40))
		}
	case "timeout":
		d, err := time.ParseDuration(value)
		if err != nil || d < time.Second || d%time.Second != 0 {
			return fmt.Errorf("timeout=%s is not a duration of whole seconds, one or more, such as 90s or 10m", journal.Cut(value, 40))
		}
		b.Timeout = d
	case "on-error":
		if value != "stop" && value != "continue" {
			return fmt.Errorf("on-error=%s is not one of stop, continue", journal.Cut(value, 40))
		}
		b.Continue = value == "continue"
	default:
		return fmt.Errorf("there is no option %s; the options are name=, effect=, timeout=, on-error=", journal.Cut(name, 40))
	}
	return nil
}

// fields splits an info string at blanks; double quotes keep blanks together.
func fields(s string) ([]string, error) {
	var out []string
	var cur strings.Builder
	quoted, started := false, false
	for _, r := range s {
		switch {
		case r == '"':
			quoted, started = !quoted, true
		case !quoted && (r == ' ' || r == '\t'):
			if started {
				out = append(out, cur.String())
			}
			cur.Reset()
			started = false
		default:
			cur.WriteRune(r)
			started = true
		}
	}
	if quoted {
		return nil, fmt.Errorf("a quote in %q is not closed", journal.Cut(s, 80))
	}
	if started {
		out = append(out, cur.String())
	}
	return out, nil
}
