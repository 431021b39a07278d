package acp

import (
	"context"
	"fmt"
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
	part  journal.Part
	text  string // whole, as far as it is known; committed up to sent
	sent  int
	whole bool // it was said whole: nothing is added
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
		return s.heardOptions(ctx, currently(isMode, u.CurrentModeID))
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
		return nil // the journal has what people said
	case wire.AgentThought:
		part = journal.PartReasoning
	}
	return s.piece(ctx, part, c.MessageID, c.Content)
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
		m.text += text.Text
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
		subject = fmt.Sprintf("after %d calls", len(s.t.Calls(s.t.Attempt()))+s.proposed)
	}
	for n := 1; ; n++ {
		id := "msg_" + journal.Hash(fmt.Sprintf("%s\x00%s\x00%s\x00%d", s.t.Attempt(), part, subject, n))[:32]
		if s.last != nil && s.last.id == id {
			return s.last, nil
		}
		m := s.msgs[id]
		if m == nil {
			before, whole, err := s.t.Streamed(ctx, id)
			if err != nil {
				return nil, err
			}
			m = &message{id: id, part: part, text: before, sent: len(before), whole: whole}
			s.msgs[id] = m
		}
		if m.whole {
			continue
		}
		s.complete()
		s.last = m
		return m, nil
	}
}

// spill makes facts of the text that came since the last.
func (s *session) spill() {
	m := s.last
	if m == nil {
		return
	}
	// Masked before it is cut: a secret could lie across two pieces.
	for _, piece := range pieces(s.t.Masked(m.text[m.sent:])) {
		s.fact(&journal.MessageDelta{MessageID: m.id, Role: "agent", Part: m.part, Text: journal.T(piece)})
	}
	m.sent = len(m.text)
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
	s.fact(&journal.MessageCompleted{MessageID: m.id, Role: "agent", Part: m.part, Text: journal.T(m.text)})
	m.text = "" // it may be long, and is in the journal
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
		return s.refuse(m.ID, wire.CodeInvalidParams, "this request can't be read")
	}
	if p.SessionID != s.t.State().AgentSession || s.t.Attempt() == "" || s.result != nil {
		return s.refuse(m.ID, wire.CodeInvalidParams, "no turn of that session is open")
	}
	s.receiving()
	c, err := s.known(ctx, &p.ToolCall)
	if err != nil {
		return err
	}
	request, err := journal.Encode(askedOf{ID: m.ID, Options: p.Options, Tool: c.told})
	if err != nil {
		return fmt.Errorf("encode what the agent asks: %w", err)
	}
	s.asks = append(s.asks, runner.Ask{N: s.nextAsk(), CallID: c.id, Request: string(request), Shape: shape})
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
