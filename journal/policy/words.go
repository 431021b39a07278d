package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Words gives the text of each word of a command as a path pattern: quotes and
// escapes are resolved, and what only the shell can know (an expansion) stands as
// *. For who must look at the files that a command may name. ok is false if the
// command can't be parsed, or isn't, since it is too long or too deep; ShellResources
// then calls it opaque.
func Words(command string) (words []string, ok bool) {
	if unreadable(command) != "" {
		return nil, false
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		return nil, false
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		if w, isWord := n.(*syntax.Word); isWord {
			words = append(words, pattern(w.Parts))
		}
		return true
	})
	return words, true
}

func pattern(parts []syntax.WordPart) string {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(unescaped(p.Value))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			b.WriteString(pattern(p.Parts))
		default:
			b.WriteByte('*')
		}
	}
	return b.String()
}

func unescaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
