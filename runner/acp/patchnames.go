package acp

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// What begins a line of a patch that says something of files.
var (
	// marker is one of the patches that say in words what becomes of a file.
	marker     = regexp.MustCompile(`(?i)^\*{3,}\s*(add|update|delete|move|rename|copy|create|new|modify|edit|change|remove|replace|write|overwrite|append|patch)\b[\s\w-]*:(.*)$`)
	markerNone = regexp.MustCompile(`(?i)^\*\*\*\s*(begin patch|end patch|end of file)(\s*\*+)?$`)
	// contextHunk are the lines with which a hunk of a context diff begins, and its second half.
	contextHunk = regexp.MustCompile(`^(\*{8,}.*|\*\*\* \d+(,\d+)? \*+|--- \d+(,\d+)? -+)$`)
	lengthsOf   = regexp.MustCompile(`^@@ -\d+(?:,(\d{1,7}))? \+\d+(?:,(\d{1,7}))? @@`)
	// noName are lines beside the names that say none.
	noName = regexp.MustCompile(`^(=+|index [0-9a-f]+\.\.[0-9a-f]+( 100(644|755))?|(old|new|new file|deleted file) mode 100(644|755)|(dis)?similarity index \d+%|` + "```" + `\w*)$`)
	// dated is what may stand behind a name and a tab.
	dated = regexp.MustCompile(`^\s*(\d{4}-\d\d-\d\d([ T][\d:.]+)?( ?([+-]\d{4}|Z))?|[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ [\d:]+ ([A-Z]+ )?\d{4}|\([a-z]+ ?\w*\)|[A-Za-z]+)?\s*$`)
)

// ofHeaders are words before a name.
var ofHeaders = []string{"Index:", "rename from ", "rename to ", "rename old ", "rename new ", "copy from ", "copy to ", "diff --cc ", "diff --combined ", "Property changes on:"}

// kinds of markers.
const (
	notMarker = iota
	markerOfFile
	markerOfNone
)

func markerOf(text string) int {
	switch {
	case !strings.HasPrefix(text, "***"):
		return notMarker
	case markerNone.MatchString(text):
		return markerOfNone
	case marker.MatchString(text):
		return markerOfFile
	}
	return notMarker
}

// markedFile takes the name behind a marker: all of the line's rest, or what is in quotes.
func (p *patch) markedFile(text string) {
	found := marker.FindStringSubmatch(text)
	name := trimmed(found[2])
	bare := strings.Trim(name, "\"'`<>")
	if name == "" || bare == "" {
		p.cantTell(text)
		return
	}
	p.file(name)
	two := slices.Contains([]string{"move", "rename", "copy"}, strings.ToLower(found[1])) && strings.ContainsAny(name, " \t")
	if bare != name {
		p.file(bare)
		p.cantTell(text)
	} else if two {
		p.cantTell(text)
	}
}

// name takes a name as diffs write it: up to a tab or all of the line, or in quotes.
func (p *patch) name(text string) {
	text = strings.TrimLeftFunc(text, blank)
	if strings.HasPrefix(text, `"`) {
		quoted, err := strconv.QuotedPrefix(text)
		name, err2 := strconv.Unquote(quoted)
		if err != nil || err2 != nil || !dated.MatchString(text[len(quoted):]) {
			p.cantTell(text)
			return
		}
		p.file(name)
		return
	}
	name, behind, tab := strings.Cut(text, "\t")
	if name = trimmed(name); name == "" || strings.IndexByte("'`<", name[0]) >= 0 || behind != "" && !dated.MatchString(behind) {
		p.cantTell(text)
	}
	first := strings.Fields(name + " .")[0]
	if first == "/dev/null" || name == "" {
		return
	}
	if changed := p.file(name); !changed && !tab && first != name { // some take it up to a blank
		p.file(first)
	}
}

// gits takes a line that begins with words before a name.
func (p *patch) gits(text string) bool {
	if rest, ok := strings.CutPrefix(text, "diff --git "); ok {
		p.both(trimmed(rest))
		return true
	}
	for _, word := range ofHeaders {
		if rest, ok := strings.CutPrefix(text, word); ok {
			p.name(rest)
			return true
		}
	}
	if rest, ok := strings.CutPrefix(text, "diff -"); ok { // as who was called is written: it may be read for names
		for _, word := range strings.Fields(rest)[min(1, len(strings.Fields(rest))):] {
			if !strings.HasPrefix(word, "-") {
				p.name(word)
			}
		}
		return true
	}
	return false
}

// both takes the two names behind "diff --git": each in quotes, without blanks, or the same
// but for what stands before it.
func (p *patch) both(text string) {
	half := len(text) / 2
	_, a, _ := strings.Cut(text[:half], "/")
	_, b, _ := strings.Cut(text[min(half+1, len(text)):], "/")
	quotes := strings.Contains(text, `"`)
	switch words := strings.Fields(text); {
	case !quotes && len(text)%2 == 1 && text[half] == ' ' && a == b && a != "":
		p.name(text[:half] + "\t")
		p.name(text[half+1:] + "\t")
	case !quotes && len(words) == 2:
		p.name(words[0])
		p.name(words[1])
	case quotes:
		p.quotedBoth(text)
	default:
		p.cantTell("diff --git " + text)
	}
}

func (p *patch) quotedBoth(text string) {
	all := text
	for n := 0; text != ""; n++ {
		word := text
		if quoted, err := strconv.QuotedPrefix(text); err == nil && text[0] == '"' {
			word = quoted
		} else if at := strings.Index(text, ` "`); at > 0 {
			word = text[:at]
		}
		if text = trimmed(text[len(word):]); n > 1 || n == 1 && text != "" || n == 0 && text == "" {
			p.cantTell("diff --git " + all)
			return
		}
		p.name(word)
	}
}

// isContextHunk reports whether a line begins a hunk of a context diff, or a side of one. The
// pattern is for the few that may: a patch may have very many lines.
func isContextHunk(text string) bool {
	side := strings.HasPrefix(text, "--- ") && len(text) > 4 && text[4] >= '0' && text[4] <= '9'
	return (side || strings.HasPrefix(text, "***")) && contextHunk.MatchString(text)
}

// lengths are how many lines a hunk has of both sides.
func lengths(line string) (old, now int, ok bool) {
	if !strings.HasPrefix(line, "@@") {
		return 0, 0, false
	}
	found := lengthsOf.FindStringSubmatch(line)
	if found == nil {
		return 0, 0, false
	}
	old, now = 1, 1
	if found[1] != "" {
		old, _ = strconv.Atoi(found[1])
	}
	if found[2] != "" {
		now, _ = strconv.Atoi(found[2])
	}
	return old, now, true
}
