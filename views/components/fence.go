package components

import "strings"

// fenced is a run of whole lines of a person's text: code between fences, with these,
// or not.
type fenced struct {
	Text string
	Code bool
}

// fences splits a text at its blocks of code, as Markdown marks them. Nothing is taken
// out of it: what somebody wrote is shown as it is.
func fences(s string) []fenced {
	var out []fenced
	open := "" // the fence of the block that a line stands in
	add := func(line string, code bool) {
		if n := len(out); n > 0 && out[n-1].Code == code {
			out[n-1].Text += line
			return
		}
		out = append(out, fenced{line, code})
	}
	for line := range strings.Lines(s) {
		fence, rest := fenceOf(line)
		switch {
		case open != "" && strings.HasPrefix(fence, open) && rest == "":
			add(line, true)
			open = ""
		case open != "":
			add(line, true)
		case fence != "":
			add(line, true)
			open = fence
		default:
			add(line, false)
		}
	}
	return out
}

// fenceOf is the run of three or more marks that a line begins with, and what follows it.
func fenceOf(line string) (fence, rest string) {
	text := strings.TrimRight(line, " \t\r\n")
	if text = strings.TrimLeft(text, " "); text == "" || text[0] != '`' && text[0] != '~' {
		return "", ""
	}
	rest = strings.TrimLeft(text, text[:1])
	if n := len(text) - len(rest); n >= 3 {
		return text[:n], rest
	}
	return "", ""
}
