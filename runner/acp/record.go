package acp

import (
	"context"
	"slices"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp/wire"
)

// mostReread bounds how much of the lines that are held is read once more with each that
// comes, in bytes: past that they are taken as they are. heldLine is what one takes at least.
const mostReread, heldLine = 64 << 20, 1 << 10

// hold adds lines to those that are held, which are read once more with them.
func (s *session) hold(lines []wire.Line) {
	if len(lines) == 0 {
		return
	}
	for _, l := range s.held {
		s.reread += len(l.Bytes) + heldLine
	}
	s.held = append(s.held, lines...)
}

// worn reports whether the lines that are held were read so often that they are no more.
func (s *session) worn() bool { return s.reread > mostReread }

// rest makes facts of lines, those that were held first, commits them with the
// place behind them, and answers what they ask.
func (s *session) rest(ctx context.Context, lines []wire.Line) error {
	return s.take(ctx, lines, s.ripe)
}

// restAll is rest for what was held, when nothing may follow.
func (s *session) restAll(ctx context.Context) error {
	return s.take(ctx, nil, func(messages []wire.Message) int { return len(messages) })
}

// take makes facts of as many of the lines as ripe says, and holds the others.
func (s *session) take(ctx context.Context, lines []wire.Line, ripe func([]wire.Message) int) error {
	if s.deaf {
		return nil
	}
	s.hold(lines)
	done, err := heavy(ctx, s.held)
	if err != nil {
		return err
	}
	defer done()
	lines, s.held = s.held, nil
	messages := make([]wire.Message, 0, len(lines))
	for _, l := range lines {
		// Masked first: what is compared later, also after a restart, is what the journal has.
		masked := s.t.MaskedLine(l.Bytes, shape)
		m, err := wire.Parse(masked)
		if err != nil {
			m = wire.Message{Raw: masked} // of no kind
		}
		messages = append(messages, m)
	}
	n := len(messages)
	if !s.worn() {
		n = ripe(messages)
	}
	if lines, messages, s.held = lines[:n], messages[:n], lines[n:]; len(s.held) == 0 {
		s.reread = 0
	}
	if n == 0 && len(s.held) == 0 { // it wrote elsewhere
		return s.conn.keepUp(ctx)
	}
	if n == 0 {
		return nil
	}
	if err := s.record(ctx, lines, messages); err != nil {
		return s.unfit(ctx, lines, err)
	}
	return s.answerAll(ctx)
}

// A long line takes many times its bytes while it is made facts: those of all sessions of
// this server take turns. heavyBytes is how many bytes are long.
const heavyBytes = 8 << 20

var heavyTurn = make(chan struct{}, 2)

// heavy waits for the turn of some lines, if they are long. They are held if ctx ends.
func heavy(ctx context.Context, lines []wire.Line) (done func(), err error) {
	n := 0
	for _, l := range lines {
		n += len(l.Bytes)
	}
	if n < heavyBytes {
		return func() {}, nil
	}
	select {
	case heavyTurn <- struct{}{}:
		return func() { <-heavyTurn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// mostLines is how many lines become facts in one commit: between two it is seen that ctx
// has ended. An agent that floods may write tens of thousands before they are read.
const mostLines = 200

// record makes facts of lines and commits them. What comes behind the answer to the
// prompt is what a resting agent says: it is made of it only when the answer is in the
// journal, so that nothing of it becomes a part of what has ended. What isn't recorded
// when ctx ends is held.
func (s *session) record(ctx context.Context, lines []wire.Line, messages []wire.Message) error {
	answered := s.result != nil
	asking := asksAhead(messages)
	from, due := 0, mostLines // what isn't committed begins there, and how many lines of it may be
	for i, m := range messages {
		s.line, s.asking = &lines[i], asking[i]
		s.cut(m)
		if err := s.message(ctx, m); err != nil {
			return err
		}
		over := s.result != nil && !answered
		part := messages[from : i+1]
		if i == len(lines)-1 || !over && len(part) < due {
			continue
		}
		if !over && s.ripe(part) < len(part) {
			due *= 2 // all of it is gone over again then
			continue
		}
		from, due = i+1, mostLines
		if err := s.flush(ctx, &lines[i]); err != nil {
			return err
		}
		if over {
			answered = true
			clear(s.tools) // their names may come again
			clear(s.ours)
		}
		if ctx.Err() != nil {
			s.held = slices.Concat(lines[i+1:], s.held)
			return context.Cause(ctx)
		}
	}
	if answered {
		s.complete() // nobody follows it now: what it goes on with is another message
	}
	if err := s.flush(ctx, &lines[len(lines)-1]); err != nil || s.cant == "" {
		return err
	}
	why := s.cant
	s.cant = ""
	return cantBeAnswered(why)
}

// flush commits what was made of the lines up to one.
func (s *session) flush(ctx context.Context, line *wire.Line) error {
	s.spill()
	if err := s.spillOffers(ctx); err != nil {
		return err
	}
	a := runner.Commit{Drafts: s.drafts, Frames: s.frames, Asks: s.asks, Answered: s.answers}
	if s.result != nil {
		a.Phase = journal.PhaseSafe
	}
	s.drafts, s.frames, s.asks, s.answers, s.proposed, s.received = nil, nil, nil, nil, 0, false
	clear(s.given)
	err := s.conn.commit(ctx, line, a)
	if err != nil && a.Phase != "" && s.t.Attempt() != "" {
		s.result = nil // the answer isn't in the journal
	}
	return err
}

// opaque journals what this build doesn't know, as it came.
func (s *session) opaque(raw []byte) {
	s.fact(&journal.AgentEvent{ProcessID: s.conn.p.ID(), Raw: journal.T(s.whole(raw))})
}

// whole is what is journalled of a line, or of a part of it: nothing of it is put together
// with others.
func (s *session) whole(raw []byte) string { return string(s.t.MaskedLine(raw, nil)) }

// fact adds a fact of what the agent said or did, behind the text that it said before:
// they stand in the journal as they came. Text that may end in the start of a secret
// goes on waiting for its rest.
func (s *session) fact(b journal.Body) {
	if m := s.last; m != nil && s.t.Undecided(m.unsent()) == len(m.unsent()) {
		s.spill()
	}
	s.add(b)
}

func (s *session) add(b journal.Body) { s.drafts = append(s.drafts, runner.Said(b)) }

// receiving notes the first that comes back of an attempt.
func (s *session) receiving() {
	if sent := s.t.Sent(); sent.AttemptID != "" && sent.AttemptID == s.t.Attempt() && !sent.Receiving && !s.received {
		s.received = true
		s.add(&journal.AttemptReceiving{AttemptID: sent.AttemptID})
	}
}
