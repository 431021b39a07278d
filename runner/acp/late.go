package acp

import (
	"context"
	"encoding/json"
	"strings"

	"holdfast/journal"
	"holdfast/runner/acp/wire"
)

// late tells what had become of a call before what its agent says of it now, and whether
// that is something else than what was asked or let run: an agent may tell less of it, or
// the same in another form.
func (s *session) late(ctx context.Context, c *toolCall) (late journal.Late, differs bool, err error) {
	was, err := s.t.WholeCall(ctx, c.id)
	switch {
	case was == nil:
		return "", false, err
	case was.Began() && was.AllowedBy != nil && was.AllowedBy.Type != journal.AllowedByAgent: // also if it is asked for once more
		late = journal.LateDispatched
	case was.State == journal.CallIsWaiting:
		late = journal.LateAsked
	default:
		return "", false, nil
	}
	var before told
	if !journal.ReadInput(was.Input, &before) || before.Kind == "" && before.Title == "" { // nobody knew what it was
		return late, true, nil
	}
	if before.covers(&c.told, s.t.State().Workspace) {
		return late, false, nil
	}
	beside, err := s.coveredBeside(ctx, c)
	return late, !beside, err
}

// mostSearched bounds what is searched, in bytes, for what is told of a call in what was:
// both may be long, and nothing of the one stand in the other. What isn't found by then
// counts as told newly.
const mostSearched = 256 << 20

// sayings are the texts that a description has, to be searched.
type sayings struct {
	all  string // each ends in a NUL
	at   int    // behind what was found last: what is told again mostly comes in the same order
	left int    // how much may still be searched
}

// sayingsOf are some texts.
func sayingsOf(texts []string) *sayings {
	var b strings.Builder
	for _, text := range texts {
		b.WriteString(strings.TrimSpace(text))
		b.WriteByte(0)
	}
	return &sayings{all: b.String(), left: mostSearched}
}

// has reports whether a text is, or is a part of, one of the texts, but for blanks around it.
func (w *sayings) has(text string) bool {
	text = strings.TrimSpace(text)
	if w.left < 0 || strings.IndexByte(text, 0) >= 0 {
		return false
	}
	at := strings.Index(w.all[w.at:], text)
	if at >= 0 {
		w.left -= at + len(text)
		w.at += at
		return true
	}
	w.left -= len(w.all) - w.at
	if w.left < 0 {
		return false
	}
	if at = strings.Index(w.all[:min(len(w.all), w.at+len(text))], text); at < 0 {
		w.left -= w.at
		return false
	}
	w.left -= at + len(text)
	w.at = at
	return true
}

// is reports whether a text is one of the texts, but for blanks around it.
func (w *sayings) is(text string) bool {
	text = strings.TrimSpace(text)
	if w.left -= len(w.all); w.left < 0 || strings.IndexByte(text, 0) >= 0 {
		return false
	}
	return strings.HasPrefix(w.all, text+"\x00") || strings.Contains(w.all, "\x00"+text+"\x00")
}

// holds reports whether a line of one of some texts is a part of a line.
func (w *sayings) holds(line string, texts []string) bool {
	for _, text := range texts {
		for part := range strings.SplitSeq(text, "\n") {
			if w.left -= min(len(line), len(part)) + 1; w.left < 0 {
				return false
			}
			if part = strings.TrimSpace(part); part != "" && strings.Contains(line, part) {
				return true
			}
		}
	}
	return false
}

// textOf is the text of a leaf: of a number, or true, as it is written.
func textOf(leaf json.RawMessage) string {
	if leaf[0] != '"' {
		return string(leaf)
	}
	return wire.Text(leaf)
}
