package acp

import "holdfast/runner/acp/wire"

// A secret may come letter by letter, each in a line of its own. What stands at the end
// of the agent's text and may be the start of one waits for its rest (JRN-8), with the
// line that it came in: that is not committed as read, and after a restart it is read
// again. What the agent does next ends the wait, and the message.

// mostWaiting bounds the text that waits.
const mostWaiting = 64 << 10

// waiting is the end of a text that waits, and the lines that it came in.
type waiting struct {
	kind  string
	id    string
	text  string
	marks []mark
}

// mark is where in the text what a line brought begins.
type mark struct{ line, at int }

// ripe tells how many of some lines can be made facts now.
func (s *session) ripe(messages []wire.Message) int {
	var w waiting
	for i, m := range messages {
		c, text, ok := s.said(m)
		switch {
		case !ok && s.idle(m):
		case !ok:
			w = waiting{}
		default:
			if c.Kind != w.kind || c.MessageID != w.id {
				w = waiting{kind: c.Kind, id: c.MessageID}
			}
			w.add(i, text, s.t.Undecided)
		}
	}
	if len(w.marks) == 0 {
		return len(messages)
	}
	return w.marks[0].line
}

// add adds what a line brought, and drops what is decided.
func (w *waiting) add(line int, text string, undecided func(string) int) {
	w.marks = append(w.marks, mark{line, len(w.text)})
	w.text += text
	n := undecided(w.text)
	if n == len(w.text) || len(w.text) > mostWaiting {
		w.text, w.marks = "", nil
		return
	}
	for len(w.marks) > 1 && w.marks[1].at <= n {
		w.marks = w.marks[1:]
	}
	from := w.marks[0].at // the line is held whole
	w.text = w.text[from:]
	for i := range w.marks {
		w.marks[i].at -= from
	}
}

// said gives the piece of the agent's text that a message brings.
func (s *session) said(m wire.Message) (c wire.Chunk, text string, ok bool) {
	if m.Method != wire.MethodSessionUpdate {
		return c, "", false
	}
	id, u := wire.ParseUpdate(m.Params)
	if of, ok := u.(wire.CompactionChunk); ok {
		u = wire.Chunk{Kind: "compaction", MessageID: of.CompactionID, Content: of.Content}
	}
	c, ok = u.(wire.Chunk)
	if !ok || c.Kind == wire.UserMessage || !s.own(id) && id != "" {
		return c, "", false
	}
	block, ok := c.Content.(wire.TextBlock)
	return c, block.Text, ok
}

// idle reports whether a message may wait with the text before it: nobody waits for
// what follows from it.
func (s *session) idle(m wire.Message) bool {
	if m.Method != wire.MethodSessionUpdate {
		return false
	}
	switch _, u := wire.ParseUpdate(m.Params); u := u.(type) {
	case wire.Chunk:
		return u.Kind == wire.UserMessage
	case wire.Plan, wire.Commands, wire.CurrentMode, wire.ConfigOptions, wire.SessionInfo, wire.UsageUpdate:
		return true
	}
	return false
}

// cut ends the message that the agent is in before something else if its end could be
// the start of a secret: its rest would be added to what the journal has.
func (s *session) cut(m wire.Message) {
	if s.last == nil || s.idle(m) {
		return
	}
	if _, _, ok := s.said(m); ok {
		return
	}
	if text := s.last.unsent(); s.t.Undecided(text) < len(text) {
		s.complete()
	}
}
