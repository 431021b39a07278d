package acp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp/wire"
)

// pieceBytes bounds one piece of a message, or of output, in the journal (JRN-5).
const pieceBytes = 16 << 10

// message is one text of the agent: what it says between two calls.
type message struct {
	id    string
	of    string // what it is about: see messageOf
	n     int    // of those about that, from 1
	part  journal.Part
	text  strings.Builder // whole, as far as it is known; committed up to sent
	sent  int
	whole bool // it was said whole: nothing is added
}

// unsent is what of its text isn't committed.
func (m *message) unsent() string { return m.text.String()[m.sent:] }

// replaceUnsent has it be another text, as the journal has it.
func (m *message) replaceUnsent(text string) {
	if text == m.unsent() {
		return
	}
	sent := m.text.String()[:m.sent]
	m.text.Reset()
	m.text.WriteString(sent + text)
}

// update makes facts of what the agent reports.
func (s *session) update(ctx context.Context, u wire.Update) error {
	switch u := u.(type) {
	case wire.Chunk:
		return s.chunk(ctx, u)
	case wire.ToolCall:
		return s.tool(ctx, u)
	case wire.Plan:
		s.t.SetPlan(plan(u))
	case wire.ConfigOptions:
		return s.heardOptions(ctx, config(u.ConfigOptions))
	case wire.CurrentMode:
		return s.heardOptions(ctx, currently(isMode, keptOr(u.CurrentModeID)))
	case wire.Commands:
		s.offers.commands = &u
	case wire.UsageUpdate:
		s.heardUsage(u)
	case wire.Notice:
		s.notice(u)
	case wire.Compaction:
		s.compaction(u)
	case wire.CompactionChunk:
		return s.piece(ctx, journal.PartNote, "compaction "+u.CompactionID, u.Content)
	case wire.SessionInfo: // its title is the agent's; the session has its own
	case wire.UnknownUpdate:
		s.opaque(u.Raw)
	default:
		raw, err := journal.Encode(u)
		if err != nil {
			return fmt.Errorf("encode what the agent reports: %w", err)
		}
		s.opaque(raw)
	}
	return nil
}

// chunk adds a piece to the message that the agent is in.
func (s *session) chunk(ctx context.Context, c wire.Chunk) error {
	part := journal.PartText
	switch c.Kind {
	case wire.UserMessage:
		return s.echoed(c)
	case wire.AgentThought:
		part = journal.PartReasoning
	}
	return s.piece(ctx, part, c.MessageID, c.Content)
}

// echoed takes what the agent tells as a person's: the journal has what people said, and
// what else it is nobody here knows. Without a prompt at work it is told again.
func (s *session) echoed(c wire.Chunk) error {
	text, ok := c.Content.(wire.TextBlock)
	said := func(p journal.Promoted) bool {
		return strings.Contains(s.t.Masked(p.Text), strings.TrimSpace(text.Text))
	}
	if s.t.Attempt() == "" || ok && (slices.ContainsFunc(s.t.Prompts(), said) || s.toldOf(text.Text)) {
		return nil
	}
	raw, err := journal.Encode(c)
	if err != nil {
		return fmt.Errorf("encode a piece of content: %w", err)
	}
	s.opaque(raw)
	return nil
}

// toldOf reports whether a text is in what this process of work told the agent besides.
func (s *session) toldOf(text string) bool {
	return slices.ContainsFunc(s.told, func(b wire.Block) bool {
		told, ok := b.(wire.TextBlock)
		return ok && strings.Contains(told.Text, strings.TrimSpace(text))
	})
}

func (s *session) piece(ctx context.Context, part journal.Part, agentID string, content wire.Block) error {
	text, ok := content.(wire.TextBlock)
	if !ok {
		raw, err := journal.Encode(content)
		if err != nil {
			return fmt.Errorf("encode a piece of content: %w", err)
		}
		s.opaque(raw)
		return nil
	}
	m, err := s.messageOf(ctx, part, agentID)
	if err == nil {
		m.text.WriteString(text.Text)
	}
	return err
}

// messageOf finds the message that a piece belongs to. Of an agent that names none
// it is the one between two calls; so a piece that comes after a restart finds it.
// One that was said whole stays as it is: what comes after it, since the agent had
// thought in between, is another.
func (s *session) messageOf(ctx context.Context, part journal.Part, agentID string) (*message, error) {
	subject := agentID
	if subject == "" {
		subject = fmt.Sprintf("after %d calls", s.calls())
	}
	of := fmt.Sprintf("%s\x00%s\x00%s", s.t.Attempt(), part, subject)
	if s.last != nil && s.last.of == of {
		return s.last, nil
	}
	m := s.msgs[of]
	switch {
	case m == nil:
		var err error
		if m, err = s.streamed(ctx, part, of); err != nil {
			return nil, err
		}
	case m.whole:
		m = newMessage(part, of, m.n+1)
	}
	s.complete()
	s.last, s.msgs[of] = m, m
	return m, nil
}

func newMessage(part journal.Part, of string, n int) *message {
	return &message{id: "msg_" + journal.Hash(fmt.Sprintf("%s\x00%d", of, n))[:32], of: of, n: n, part: part}
}

// streamed gives the first message about something that wasn't said whole, as the journal
// has it. They are begun one after the other, and there may be very many: it looks at few.
func (s *session) streamed(ctx context.Context, part journal.Part, of string) (*message, error) {
	look := func(n int) (*message, error) {
		m := newMessage(part, of, n)
		before, whole, err := s.t.Streamed(ctx, m.id)
		m.text.WriteString(before)
		m.sent, m.whole = len(before), whole
		return m, err
	}
	said := 0 // that many were said whole
	first, err := look(1)
	for err == nil && first.whole {
		said = first.n
		first, err = look(2 * said)
	}
	for err == nil && first.n > said+1 {
		var m *message
		if m, err = look((said + first.n) / 2); err == nil && m.whole {
			said = m.n
		} else {
			first = m
		}
	}
	return first, err
}

// calls counts the calls of the attempt, those that the drafts propose too.
func (s *session) calls() int {
	if c := &s.counted; c.seq != s.t.Seq() || c.attempt != s.t.Attempt() {
		*c = counted{s.t.Attempt(), s.t.Seq(), s.t.CountCalls(s.t.Attempt())}
	}
	return s.counted.calls + s.proposed
}

// counted is how many calls an attempt had when something was the last that was journalled.
type counted struct {
	attempt string
	seq     int64
	calls   int
}

// spill makes facts of the text that came since the last.
func (s *session) spill() {
	m := s.last
	if m == nil {
		return
	}
	// Masked before it is cut: a secret could lie across two pieces. What waited and is
	// told now has no rest.
	rest := s.t.Unended(m.unsent())
	m.replaceUnsent(rest)
	for _, piece := range pieces(rest) {
		s.add(&journal.MessageDelta{MessageID: m.id, Role: "agent", Part: m.part, Text: journal.T(piece), Outside: s.saidOutside()})
	}
	m.sent = m.text.Len()
}

// pieces cuts text where a character begins; together they are the text.
func pieces(text string) []string {
	var out []string
	for len(text) > pieceBytes {
		n := pieceBytes
		for back := range utf8.UTFMax {
			if utf8.RuneStart(text[n-back]) {
				n -= back
				break
			}
		}
		out, text = append(out, text[:n]), text[n:]
	}
	if text != "" {
		out = append(out, text)
	}
	return out
}

// complete says the message whole that the agent was in, as nothing comes of it any more.
func (s *session) complete() {
	m := s.last
	if m == nil {
		return
	}
	s.spill()
	s.last, m.whole = nil, true
	s.add(&journal.MessageCompleted{MessageID: m.id, Role: "agent", Part: m.part, Text: journal.T(m.text.String()), Outside: s.saidOutside()})
	m.text.Reset() // it may be long, and is in the journal
}

func plan(p wire.Plan) []journal.PlanItem {
	states := map[string]journal.PlanState{"in_progress": journal.PlanRunning, "completed": journal.PlanDone}
	out := make([]journal.PlanItem, 0, len(p.Entries))
	for i, e := range p.Entries {
		state, ok := states[e.Status]
		if !ok {
			state = journal.PlanPending
		}
		out = append(out, journal.PlanItem{Key: fmt.Sprint(i + 1), Title: e.Content, State: state})
	}
	return out
}

// asked takes a request of the agent.
func (s *session) asked(ctx context.Context, m wire.Message) error {
	if m.Method != wire.MethodRequestPermission {
		return s.refuse(m.ID, wire.CodeMethodNotFound, "Holdfast offers no "+m.Method)
	}
	p, err := wire.Decode[wire.PermissionParams](m.Params)
	if err != nil {
		s.malformed(m.Raw, err)
		return s.refuse(m.ID, wire.CodeInvalidParams, "this request can't be read: "+whyUnread(err))
	}
	if p.SessionID != "" && !s.own(p.SessionID) || s.resting() {
		s.refusedOutside(p.SessionID, m.Raw)
		return s.refuse(m.ID, wire.CodeInvalidParams, "no turn of that session is open")
	}
	if p.ToolCall.Misread() {
		s.opaque(p.ToolCall.Raw)
	}
	c, err := s.known(ctx, &p.ToolCall, true)
	if err != nil {
		return err
	}
	c.asked = true
	s.showsHeld(c)
	options, why := tellable(p.Options)
	if s.giveUpTwin(m.ID) {
		options, why = nil, isTwin
	}
	if why != "" {
		return s.cantAllow(m, c, options, why)
	}
	request, err := journal.Encode(askedOf{ID: m.ID, Options: options, Tool: c.told})
	if err != nil {
		return fmt.Errorf("encode what the agent asks: %w", err)
	}
	n := s.nextAsk()
	s.asks = append(s.asks, runner.Ask{N: n, CallID: c.id, Request: string(request), Shape: shape})
	s.askedAs[m.ID.Read()] = runner.Ask{N: n, CallID: c.id}
	return nil
}

func (s *session) refuse(id wire.ID, code int, why string) error {
	if s.ending {
		return nil
	}
	frame, err := wire.ErrorAnswer(id, code, why)
	s.frames = append(s.frames, frame)
	return err
}
