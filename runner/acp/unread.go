package acp

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"time"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp/wire"
)

// A line that can't be read may be rubbish, which some programs print, or the answer to
// the prompt, spoilt. It is shown at once, and the turn goes on: what the agent does
// next tells which it was. If it does nothing, the answer is taken for lost.

// errSilent says that the agent said nothing more after what can't be read.
var errSilent = errors.New("the agent sent something that can't be read, and then nothing")

// patienceWithCalls is how many times longer an agent may be silent while a call runs.
const patienceWithCalls = 3

// stray reports whether a message answers nothing that the process was asked, as an
// error without an id does: it may be meant for what is asked just now.
func (s *session) stray(m wire.Message) bool {
	if m.Kind != wire.KindResponse || s.t.Attempt() == "" || s.result != nil {
		return false
	}
	n, err := strconv.ParseInt(m.ID.String(), 10, 64)
	return err != nil || n < 1 || n > s.conn.p.Told()
}

// unread journals what can't be read. It is taken for the answer to the prompt only if
// that stands in it whole: behind words that ended in no line feed.
func (s *session) unread(m wire.Message) {
	s.spill() // what was said before it stands before it
	s.drafts = append(s.drafts, runner.Said(&journal.AgentEvent{ProcessID: s.conn.p.ID(), Raw: journal.T(s.whole(m.Raw)), Unread: true}))
	if answer, ok := s.glued(s.line.Bytes); ok {
		s.answered(answer)
	}
}

// glued finds the answer to the prompt at the end of a line that isn't JSON. Nothing
// before it may have a brace, or it could be a part of something else; and it must say
// why the turn has ended, since an error could have the prompt sent again.
func (s *session) glued(line []byte) (wire.Message, bool) {
	sent, at := s.t.Sent(), bytes.IndexByte(line, '{')
	if at <= 0 {
		return wire.Message{}, false
	}
	m, err := wire.Parse(s.t.MaskedLine(line[at:], shape))
	if err != nil || m.Kind != wire.KindResponse || m.Err != nil || m.ID != wire.NumberID(sent.Request) {
		return wire.Message{}, false
	}
	r, err := wire.Decode[wire.PromptResult](m.Result)
	return m, err == nil && slices.Contains(shape.Words["stopReason"], r.StopReason)
}

// speaks notes that the agent is in the middle of a line.
func (s *session) speaks() {
	if s.conn.lines.Pending() > 0 {
		s.saidAt = time.Now()
	}
}

// silence tells when the agent has been silent for too long, if its answer may have
// been lost and nobody is asked anything.
func (s *session) silence() <-chan time.Time {
	if s.waiting || s.t.Attempt() == "" || !s.t.Sent().Unread && s.conn.lines.Pending() == 0 {
		return nil
	}
	most := s.a.o.SilentWithin
	if slices.ContainsFunc(s.t.Calls(s.t.Attempt()), func(c journal.Call) bool { return c.State == journal.CallIsDispatched }) {
		most *= patienceWithCalls
	}
	return time.After(time.Until(s.saidAt.Add(most)))
}
