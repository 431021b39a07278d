package acp

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp/wire"
)

// toolCall is what the agent has told of one tool call.
type toolCall struct {
	id    string // of the call in the journal
	told  told
	sum   string // of told, as the journal has it
	shown string // the text of its output that is in the journal, as far as it was heard here
	rests string // the end of it that may be the start of a secret, and waits for its rest
	bytes int64  // of its output in the journal
	runs  bool   // it was dispatched
	ended bool
	reads bool // it is of class read
}

// told is what a call is, for rules and people: the input of the call in the journal.
type told struct {
	Title string          `json:"title"`
	Kind  string          `json:"kind"`
	Name  string          `json:"name,omitempty"`
	Paths []string        `json:"paths,omitempty"`
	Diffs []diff          `json:"diffs,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
}

type diff struct {
	Path string  `json:"path"`
	Old  *string `json:"old"` // nil: the file is new
	New  string  `json:"new"`
}

// effect is the class of a call by its kind: what may change nothing is a read (CAL-2).
func effect(t told) journal.Effect {
	switch t.Kind {
	case "read", "search", "think":
		if t.member("command") == "" && len(t.Diffs) == 0 {
			return journal.EffectRead
		}
	}
	return journal.EffectEffect
}

// key names a call of an attempt. The agent's id is unique in a turn at most.
func (s *session) key(toolCallID string) string { return s.t.Attempt() + "/" + toolCallID }

// note looks ahead: what asks whether it may run doesn't run before, whatever else
// the agent says of it.
func (s *session) note(messages []wire.Message) {
	for id := range s.asking {
		delete(s.asking, id)
	}
	for _, m := range messages {
		if m.Method != wire.MethodRequestPermission {
			continue
		}
		if p, err := wire.Decode[wire.PermissionParams](m.Params); err == nil {
			s.asking[p.ToolCall.ToolCallID] = true
		}
	}
}

// known finds the call of an update, and proposes it if it is new. What the update
// says of it is taken over.
func (s *session) known(ctx context.Context, u *wire.ToolCall) (*toolCall, error) {
	c := s.tools[u.ToolCallID]
	if c == nil {
		c = &toolCall{}
		if was := s.t.CallByKey(s.key(u.ToolCallID)); was != nil { // of before a restart
			if err := s.recall(ctx, c, was); err != nil {
				return nil, err
			}
		}
		s.tools[u.ToolCallID] = c
	}
	c.told.take(u)
	input, err := journal.Encode(c.told)
	if err != nil {
		return nil, err
	}
	sum := journal.Hash(string(input))
	switch {
	case c.id == "":
		s.complete()
		c.id = runner.NewID("call")
		attempt := s.t.Attempt()
		s.proposed++
		s.fact(&journal.CallProposed{
			CallID: c.id, TurnID: s.t.ID(), Key: s.key(u.ToolCallID), Tool: toolName(c.told), Input: input, InputSHA256: sum,
			Effect: effect(c.told), AttemptID: &attempt,
		})
		c.reads = effect(c.told) == journal.EffectRead
	case sum != c.sum && !c.ended:
		d := &journal.CallDescribed{CallID: c.id, Input: input, InputSHA256: sum}
		if c.reads && effect(c.told) != journal.EffectRead {
			c.reads, d.Effect = false, journal.EffectEffect
		}
		s.fact(d)
	}
	c.sum = sum
	return c, nil
}

// recall takes over what the journal has of a call of before a restart.
func (s *session) recall(ctx context.Context, c *toolCall, was *journal.Call) error {
	text, total, err := s.t.Output(ctx, was.ID)
	if err != nil {
		return err
	}
	c.bytes = total
	if c.shown = text; int64(len(text)) < total { // too long to compare: what comes is told anew
		c.shown = text + "…"
	}
	c.id, c.sum, c.reads = was.ID, was.InputSHA256, was.Effect == journal.EffectRead
	c.runs, c.ended = was.State == journal.CallIsDispatched, !was.Open()
	_ = json.Unmarshal(was.Input, &c.told) // a long one stands elsewhere: it is told again
	return nil
}

func toolName(t told) string {
	if t.Kind == "" {
		return "other"
	}
	return journal.Cut(t.Kind, 60)
}

// take adds what is new.
func (t *told) take(u *wire.ToolCall) {
	for from, to := range map[*string]*string{u.Title: &t.Title, u.ToolKind: &t.Kind, u.Name: &t.Name} {
		if from != nil {
			*to = *from
		}
	}
	if len(u.RawInput) > 0 && string(u.RawInput) != "{}" {
		t.Input = u.RawInput
	}
	if u.Locations != nil {
		t.Paths = nil
		for _, l := range u.Locations {
			t.Paths = append(t.Paths, l.Path)
		}
	}
	var diffs []diff
	for _, c := range u.Content {
		if d, ok := c.(wire.Diff); ok {
			diffs = append(diffs, diff{Path: d.Path, Old: d.OldText, New: d.NewText})
		}
	}
	if diffs != nil {
		t.Diffs = diffs
	}
}

// tool makes facts of news about a tool call.
func (s *session) tool(ctx context.Context, u wire.ToolCall) error {
	if s.t.Attempt() == "" {
		return nil // no turn of ours
	}
	c, err := s.known(ctx, &u)
	if err != nil {
		return err
	}
	if was := s.t.CallByID(c.id); was != nil && !was.Open() && !c.ended { // refused, say: that is settled
		c.ended = true
	}
	status := ""
	if u.Status != nil {
		status = *u.Status
	}
	if c.ended {
		if status == "completed" { // although it wasn't to run, or had ended: its word stands in the journal
			s.opaque(u.Raw)
		}
		return nil
	}
	ends := status == "completed" || status == "failed"
	switch waits := s.waits(c.id); {
	case c.runs || s.asking[u.ToolCallID]:
	case waits && status == "completed": // it didn't wait for the answer
		s.giveUpRequests(c.id, unheeded)
		s.dispatch(c, journal.AllowedBy{Type: journal.AllowedByAgent, Text: unheeded})
	case !waits && (status == "completed" || status == "in_progress"):
		s.dispatch(c, journal.AllowedBy{Type: journal.AllowedByAgent, Text: "the agent asked nobody"})
	case !waits && status == "failed" && s.t.CallByID(c.id) == nil: // it is first heard of now
		s.dispatch(c, journal.AllowedBy{Type: journal.AllowedByAgent, Text: "the agent asked nobody"})
	}
	if c.runs {
		s.output(c, text(u.Content), ends)
	}
	if ends {
		s.settle(c, status)
	}
	return nil
}

// unheeded is why a request is given up, and who let the call run.
const unheeded = "the agent didn't wait for the answer"

// giveUpRequests cancels what people are asked about a call, once.
func (s *session) giveUpRequests(callID, why string) {
	for _, r := range s.t.Requests(callID) {
		if !s.given[r] {
			s.given[r] = true
			s.drafts = append(s.drafts, runner.Seen(&journal.PermissionCancelled{ID: r, Reason: why}))
		}
	}
}

// waits reports whether somebody is asked about a call, or it is about to be asked.
func (s *session) waits(callID string) bool {
	if len(s.t.Requests(callID)) > 0 {
		return true
	}
	for _, a := range append(s.conn.p.Asks(), s.asks...) {
		if a.CallID == callID {
			return true
		}
	}
	return false
}

func (s *session) dispatch(c *toolCall, by journal.AllowedBy) {
	n := 1
	if was := s.t.CallByID(c.id); was != nil {
		n = was.N + 1
	}
	c.runs = true
	s.fact(&journal.CallDispatched{CallID: c.id, N: n, AllowedBy: by})
}

// output adds what is new of a tool's output: agents tell the whole of it each time.
// What may be the start of a secret at its end waits for its rest, or for the call's
// end (JRN-8).
func (s *session) output(c *toolCall, now string, ends bool) {
	if now == "" && ends {
		now = c.shown + s.t.Masked(c.rests)
	} else if now != "" {
		n := len(now)
		if !ends {
			n = s.t.Undecided(now)
		}
		now, c.rests = s.t.Masked(now[:n]), now[n:]
	}
	piece := ""
	switch {
	case now == "" || now == c.shown:
	case c.shown != "" && strings.HasPrefix(now, c.shown):
		piece = now[len(c.shown):]
	case c.shown == "":
		piece = now
	default:
		piece = "\n" + now
	}
	if now != "" {
		c.shown = now
	}
	for _, p := range pieces(piece) {
		s.fact(&journal.CallOutput{CallID: c.id, Stream: "stdout", Offset: c.bytes, Text: journal.T(p)})
		c.bytes += int64(len(p))
	}
}

// settle takes the agent's word on how a call ended. One that was cancelled is
// cancelled, whatever the agent calls it; its word stands beside.
func (s *session) settle(c *toolCall, status string) {
	state, reason := journal.CallSucceeded, ""
	if status == "failed" {
		state = journal.CallFailed
	}
	switch {
	case s.cancels:
		state, reason = journal.CallCancelled, "stopped; the agent says "+status
	case !c.runs: // it asked, and was refused
		state, reason = journal.CallCancelled, "it did not run"
	}
	c.ended = true
	s.giveUpRequests(c.id, unheeded)
	s.fact(&journal.CallSettled{CallID: c.id, State: state, Reason: reason, OutputBytes: c.bytes})
}

// endCalls concludes what the agent says nothing more of, when its turn has ended.
func (s *session) endCalls(cancelled bool) {
	for _, c := range s.t.Calls(s.t.Attempt()) {
		if !c.Open() || s.endedHere(c.ID) {
			continue
		}
		if c.State == journal.CallIsDispatched && c.Effect == journal.EffectEffect && !cancelled {
			s.drafts = append(s.drafts, runner.Seen(&journal.CallUnknown{CallID: c.ID, Since: c.DispatchedAt, Evidence: []journal.Evidence{{Type: "agent", Text: "The agent ended its turn without saying how this ended."}}}))
			continue
		}
		const why = "the agent's turn has ended"
		s.giveUpRequests(c.ID, why)
		s.drafts = append(s.drafts, runner.Seen(&journal.CallSettled{CallID: c.ID, State: journal.CallCancelled, Reason: why, OutputBytes: c.OutputBytes}))
	}
}

func (s *session) endedHere(callID string) bool {
	for _, c := range s.tools {
		if c.id == callID {
			return c.ended
		}
	}
	return false
}

// text is what a tool shows.
func text(content []wire.ToolContent) string {
	var b strings.Builder
	for _, c := range content {
		block, ok := c.(wire.ToolBlock)
		if !ok {
			continue
		}
		if t, ok := block.Content.(wire.TextBlock); ok {
			b.WriteString(unfenced(t.Text))
		}
	}
	return b.String()
}

// unfenced is a command's output without the Markdown in which some agents send it.
func unfenced(text string) string {
	inner, fenced := strings.CutPrefix(text, "```console\n")
	inner, closed := strings.CutSuffix(inner, "\n```")
	if !fenced || !closed {
		return text
	}
	return inner + "\n"
}

// relative is a path as rules have it: below the workspace without it.
func relative(path, workspace string) string {
	if rel, err := filepath.Rel(workspace, path); err == nil && filepath.IsAbs(path) {
		return rel
	}
	return path
}
