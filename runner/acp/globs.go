package acp

import (
	"path/filepath"
	"slices"
	"strings"

	"holdfast/journal/policy"
)

// Bounds of what patterns may mean: past them they are asked as a whole.
const (
	mostGlobs = 100 // alternatives of one
	mostBases = 8   // folders that they may begin in
)

// glob is a pattern under a member's name.
type glob struct {
	name string // plain
	text string
	path bool // it stands for a path, and there is no such file
}

// ofFiles reports whether it is one of files' names; others may be of what stands in them.
func (g glob) ofFiles() bool {
	return g.path || speaksOf(g.name, []string{"glob", "include"}) || speaksOf(g.name, ofFiles)
}

// judgeGlobs judges what the patterns of an input name, once all of it is known: where
// they begin, and what is guarded of it.
func (in *input) judgeGlobs() {
	if len(in.globs) == 0 {
		return
	}
	if in.bases = append(in.bases, in.ws); len(in.bases) > mostBases {
		in.untold = append(in.untold, alwaysAsked(in.asks, "patterns in many folders"))
		in.bases = []string{in.ws}
	}
	for i, base := range in.bases {
		if file, known := local(base); known {
			in.bases[i] = file
		}
	}
	// Who chooses files by a pattern besides looks for the other in them.
	chosen := slices.ContainsFunc(in.globs, func(g glob) bool { return !g.path && g.ofFiles() })
	for _, g := range in.globs {
		switch {
		case speaksOf(g.name, []string{"exclude", "ignore"}):
			in.pattern(g.text)
		case g.ofFiles():
			in.glob(g.text, true)
		case chosen, regular(g.text):
			in.pattern(g.text)
		default:
			in.glob(g.text, false)
		}
	}
}

// regular reports whether a pattern reads like one of what stands in files.
func regular(text string) bool {
	return strings.HasPrefix(text, "//") || strings.ContainsAny(text, `\^$()|+`) || strings.Contains(text, ".*")
}

// glob judges a pattern that may name files; sure: it does.
func (in *input) glob(text string, sure bool) {
	all := []string{text}
	if sure {
		all = apart(text)
	}
	alternatives, ok := braces(all)
	if !ok || len(text) > mostPath {
		in.untold = append(in.untold, alwaysAsked(in.asks, text))
		return
	}
	for _, one := range alternatives {
		if sure {
			one = trimmed(strings.ReplaceAll(one, `\`, ""))
			if setOutside.MatchString(one) {
				in.untold = append(in.untold, alwaysAsked(in.asks, text))
				continue
			}
		}
		if leftOut := sure && strings.HasPrefix(one, "!"); strings.Trim(one, " ") != "" && !leftOut {
			in.one(one, sure)
		}
	}
}

// one judges one alternative of a pattern, in each folder that it may begin in.
func (in *input) one(text string, sure bool) {
	at := strings.IndexAny(text, "*?[")
	begins := text
	if at >= 0 {
		begins = text[:strings.LastIndex(text[:at], "/")+1]
		if slices.Contains(strings.Split(text[at:], "/"), "..") { // up from where nobody knows
			in.untold = append(in.untold, alwaysAsked(in.asks, text))
			return
		}
	}
	for _, base := range in.bases {
		path := text
		if !filepath.IsAbs(text) && !strings.HasPrefix(text, "~") && !hasScheme(text) && base != in.ws {
			path = filepath.Join(base, text)
		}
		if at < 0 && !sure && !in.isThere(path) {
			continue
		}
		in.only(path)
		if path == text {
			break
		}
	}
	switch {
	case strings.Contains(text, "(") && sure && !in.isThere(begins):
		in.untold = append(in.untold, alwaysAsked(in.asks, text))
	case at >= 0 && policy.NamesGuarded(text):
		in.files = append(in.files, policy.Resource{Permission: in.permission, Value: text, Unproven: true, Why: "it may name a file that is guarded"})
	}
}

func hasScheme(text string) bool {
	_, rest, has := strings.Cut(text, ":")
	return has && strings.HasPrefix(rest, "/")
}

// apart are the patterns of a text that may hold several, between commas or blanks.
func apart(text string) []string {
	depth := 0
	return strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		}
		return depth <= 0 && (r == ',' || r == ' ')
	})
}

// braces gives the alternatives of patterns, {a,b} each; false: they are too many, or
// can't be told.
func braces(all []string) ([]string, bool) {
	var out []string
	for len(all) > 0 {
		if len(all)+len(out) > mostGlobs {
			return nil, false
		}
		one := all[0]
		all = all[1:]
		start, end, parts := brace(one)
		if end < 0 {
			out = append(out, one)
			continue
		}
		for _, part := range parts {
			if strings.Contains(part, "..") && len(parts) == 1 { // a range
				return nil, false
			}
			all = append(all, one[:start]+part+one[end+1:])
		}
	}
	return out, true
}

// brace finds the first alternatives of a pattern, and where they stand; end is negative
// if it has none.
func brace(text string) (start, end int, parts []string) {
	start = strings.IndexByte(text, '{')
	if start < 0 {
		return 0, -1, nil
	}
	depth, from := 0, start+1
	for i := start; i < len(text); i++ {
		switch {
		case text[i] == '{':
			depth++
		case text[i] == ',' && depth == 1:
			parts = append(parts, text[from:i])
			from = i + 1
		case text[i] == '}':
			if depth--; depth == 0 {
				return start, i, append(parts, text[from:i])
			}
		}
	}
	return start, -1, nil
}
