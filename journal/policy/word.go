package policy

import (
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// word is one word of a command, as far as its text tells what it will be.
type word struct {
	text   string // what patterns are matched against
	value  string // what the command receives, if static; a glob as it's written
	could  string // wildcard of what it may become
	static bool   // nothing in it is computed when it runs
	glob   bool   // unquoted * ? [: may become file names, several or none
	brace  bool   // unquoted {a,b} or {1..9}: becomes several words
	tilde  bool   // begins with an unquoted ~
}

// exact reports whether the command receives precisely value.
func (w word) exact() bool { return w.static && !w.glob && !w.brace && !w.tilde }

// literal returns the word of a known value.
func literal(value string) word {
	return word{text: quote(value), value: value, could: quote(value), static: true}
}

// reader collects the parts of one word.
type reader struct {
	value    strings.Builder
	could    strings.Builder
	computed bool
	glob     bool
	open     bool // an unquoted { was seen
	brace    bool
	problem  string
}

// readWord resolves the quoting of a word. problem says why the word can't be
// read at all; the caller then takes the whole text as opaque.
func readWord(src string, w *syntax.Word) (out word, problem string) {
	var r reader
	for i, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			r.bare(p.Value)
			if i == 0 && strings.HasPrefix(p.Value, "~") {
				out.tilde = true
			}
		case *syntax.SglQuoted:
			r.single(p)
		case *syntax.DblQuoted:
			r.double(p)
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ProcSubst:
			r.computed = true
		default:
			r.computed = true
			r.problem = "it uses a pattern that bash and sh read differently"
		}
	}
	out.value, out.static, out.glob, out.brace = r.value.String(), !r.computed, r.glob, r.brace
	raw := source(src, w)
	if bracket[raw] {
		return literal(raw), r.problem // alone it is a name, no pattern
	}
	switch {
	case r.computed || r.brace:
		out.text, out.could = raw, "*"
	case r.glob:
		out.text, out.could = raw, r.could.String()
	case out.tilde && quote(out.value[1:]) == out.value[1:]:
		out.text, out.could = out.value, out.value
	case out.tilde:
		out.text, out.could = raw, "*"
	default:
		out.text = quote(out.value)
		out.could = out.text
	}
	return out, r.problem
}

func source(src string, n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from > to || to > len(src) {
		return src
	}
	return src[from:to]
}

// bare reads unquoted text: backslashes quote, globs and braces are noted.
func (r *reader) bare(s string) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			i++
			if i < len(s) && s[i] != '\n' {
				r.put(s[i])
			}
			continue
		case '*', '?', '[':
			r.glob = true
			r.value.WriteByte(c)
			r.could.WriteByte('*')
			continue
		case '{':
			r.open = true
		case ',':
			r.brace = r.brace || r.open
		case '.':
			r.brace = r.brace || r.open && strings.HasPrefix(s[i:], "..")
		}
		r.put(s[i])
	}
}

// put adds a literal byte. Behind a glob the rest is left to the star.
func (r *reader) put(c byte) {
	r.value.WriteByte(c)
	if !r.glob {
		r.could.WriteByte(c)
	}
}

func (r *reader) puts(s string) {
	for i := range len(s) {
		r.put(s[i])
	}
}

func (r *reader) single(q *syntax.SglQuoted) {
	if !q.Dollar {
		r.puts(q.Value)
		return
	}
	// sh reads $'…' as a dollar sign and a quoted text; only the two plainest
	// escapes are taken, which end at the same place in both.
	plain := strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(q.Value)
	if strings.Contains(plain, `\`) {
		r.problem = "it uses escapes that bash and sh read differently"
	}
	r.puts(plain)
}

func (r *reader) double(q *syntax.DblQuoted) {
	if q.Dollar {
		r.problem = "it uses a translated text ($\"…\")"
	}
	for _, part := range q.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			r.computed = true
			continue
		}
		s := lit.Value
		for i := 0; i < len(s); i++ {
			if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
				i++
				if s[i] == '\n' {
					continue
				}
			}
			r.put(s[i])
		}
	}
}

var bracket = set("[ ] [[ ]] !")

// quote returns the word as it stands in a resource: bare if it can't be read
// as anything but one word, else in single quotes.
func quote(value string) string {
	if bracket[value] {
		return value
	}
	bare := value != "" && value[0] != '~'
	for _, c := range value {
		switch {
		case c < 0x80 && (unicode.IsLetter(c) || unicode.IsDigit(c)):
		case c < 0x80 && strings.ContainsRune("_./:@%+=,-^{}~", c):
		case c >= 0x80 && unicode.IsGraphic(c) && !unicode.IsSpace(c):
		default:
			bare = false
		}
	}
	if bare {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

// join is the text of a command: its words with single spaces between.
func join(words []word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.text
	}
	return strings.Join(texts, " ")
}

// couldBe is the wildcard of what the words may become, "" if they are exact.
// A computed word may be none or several, so it swallows the spaces around it.
func couldBe(words []word) string {
	exact := true
	var b strings.Builder
	space := ""
	for _, w := range words {
		exact = exact && w.exact()
		if w.could == "*" {
			b.WriteString("*")
			space = ""
			continue
		}
		b.WriteString(space + w.could)
		space = " "
	}
	if exact {
		return ""
	}
	return b.String()
}
