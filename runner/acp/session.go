package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp/wire"
)

// session is the work on one turn.
type session struct {
	a    *Agent
	t    *runner.Turn
	conn *conn

	msgs   map[string]*message  // by id: those that were heard of here
	last   *message             // to which the next piece is added
	tools  map[string]*toolCall // by the agent's id
	drafts []journal.Draft      // of the lines that are read and not committed
	frames [][]byte
	asks   []runner.Ask
	line   *wire.Line     // that is made facts just now
	held   []wire.Line    // that are read and not yet made facts: see undecided
	result *runner.Result // the prompt was answered

	asking   map[string]bool // tool calls that ask for permission in the lines that are being read
	proposed int             // calls that the drafts propose
	received bool            // the drafts say that something came back
	cancels  bool            // the agent was told to stop
	waiting  bool            // a person is asked
	given    map[string]bool // requests that the drafts cancel
	answers  []int64         // asks that the frames answer
	offers   offers          // what the agent offers, and what of it isn't committed
	settled  int64           // the last request for a setting that was answered here
	unset    *unsetError     // the agent has refused a setting
	ending   bool            // it is told nothing any more
	absent   bool            // its program was not there when it was to be executed, and is now
	deaf     bool            // nothing it says is made a fact any more: see unfit
}

func newSession(a *Agent, t *runner.Turn, p *runner.Process) *session {
	return &session{a: a, t: t, conn: newConn(p, a.o.MaxLine), msgs: map[string]*message{}, tools: map[string]*toolCall{}, asking: map[string]bool{}, given: map[string]bool{}}
}

// hear waits for what the process writes next.
func (s *session) hear(ctx context.Context) ([]wire.Line, error) {
	select {
	case h, ok := <-s.conn.p.Heard():
		if !ok {
			return nil, errEnded
		}
		return s.conn.take(h)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Told to an agent whose turn goes on without a new message.
const goOn = "Go on with what was asked."

// prompt sends what the agent hasn't been told, as an attempt (ATT-1).
func (s *session) prompt(ctx context.Context) error {
	if err := s.t.Begin(ctx, journal.Step{Key: fmt.Sprint(s.conn.next())}); err != nil {
		return err
	}
	if err := s.configure(ctx); err != nil { // somebody may just have chosen something else
		return err
	}
	blocks, facts, err := s.news(ctx)
	if err != nil {
		return err
	}
	id := s.conn.next()
	frame, err := wire.Request(id, wire.MethodSessionPrompt, wire.PromptParams{SessionID: s.t.State().AgentSession, Prompt: blocks})
	if err != nil {
		return err
	}
	attempt := runner.NewID("att")
	return s.conn.say(ctx, runner.Commit{Phase: journal.PhaseUncertain, Frames: [][]byte{frame}, Drafts: append(facts,
		runner.Seen(&journal.AttemptPrepared{AttemptID: attempt, TurnID: s.t.ID(), Model: s.a.o.Name, RequestSHA256: journal.Hash(string(frame)), CutoffSeq: s.t.Seq()}),
		runner.Seen(&journal.AttemptDispatched{AttemptID: attempt, ProcessID: s.conn.p.ID(), Request: id}),
	)})
}

// news is what the agent hasn't been told, and what the journal has of that beside
// the attempt: what people found out about what was unknown (CAL-6), and their prompts.
// One that starts anew is told a summary first, which has all but the prompts.
func (s *session) news(ctx context.Context) (blocks []wire.Block, facts []journal.Draft, err error) {
	said := ""
	if s.t.State().AnewSeq > 0 {
		blocks, facts, err = s.summary(ctx)
	} else {
		said = feedback(s.t)
		blocks, err = s.verdicts(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	if said != "" {
		blocks = append(blocks, wire.TextBlock{Text: said})
	}
	prompted := said != ""
	for _, p := range s.t.Prompts() {
		if p.Seq > s.t.Told() {
			prompted = true
			blocks = append(blocks, wire.TextBlock{Text: p.Text})
		}
	}
	if !prompted {
		blocks = append(blocks, wire.TextBlock{Text: goOn})
	}
	return blocks, facts, nil
}

// verdicts tell the agent what people found out about what was unknown.
func (s *session) verdicts(ctx context.Context) ([]wire.Block, error) {
	calls, err := s.t.Verdicts(ctx)
	if err != nil {
		return nil, err
	}
	var blocks []wire.Block
	for _, c := range calls {
		blocks = append(blocks, wire.TextBlock{Text: fmt.Sprintf("The outcome of %q was unknown; a person says: %s. %s\n", c.Title(), c.Resolution.Outcome, c.Resolution.Evidence)})
	}
	return blocks, nil
}

// summary tells an agent that starts anew what was before, and people that it was told.
func (s *session) summary(ctx context.Context) ([]wire.Block, []journal.Draft, error) {
	text, err := s.t.Summary(ctx)
	if err != nil {
		return nil, nil, err
	}
	return []wire.Block{wire.TextBlock{Text: text}}, []journal.Draft{runner.Seen(&journal.MessageCompleted{
		MessageID: runner.NewID("msg"), Role: journal.RoleServer, Part: journal.PartNote, Text: journal.T(text),
	})}, nil
}

// feedback tells the agent what a person said about what they rejected in the last
// attempt (PER-2): the answer to its request has no place for that.
func feedback(t *runner.Turn) string {
	text := ""
	for _, c := range t.Calls(t.Sent().AttemptID) {
		if c.State == journal.CallIsRefused && c.Feedback != "" {
			text += fmt.Sprintf("I rejected %q: %s\n", c.Title(), c.Feedback)
		}
	}
	return text
}

// again sends what came since the last prompt was answered: a boundary.
func (s *session) again(ctx context.Context) error {
	if err := s.t.Boundary(ctx); err != nil {
		return err
	}
	s.result = nil
	if err := s.configure(ctx); err != nil {
		return err
	}
	return s.prompt(ctx)
}

// announcement is how long it is left open whether an agent that says of a call that
// it runs asks next whether it may, as some do: opencode at once or, for the first
// command of its process, after half a second.
const announcement = 3 * time.Second

// undecided reports whether the lines that are held say of a call that it runs, and
// nothing else of it. They aren't committed: after a restart they are read again.
func (s *session) undecided() bool {
	var messages []wire.Message
	running := ""
	for _, l := range s.held {
		m, err := wire.Parse(l.Bytes)
		if err != nil || m.Kind == wire.KindResponse {
			return false
		}
		messages = append(messages, m)
		if m.Method != wire.MethodSessionUpdate {
			continue
		}
		_, u := wire.ParseUpdate(m.Params)
		if t, ok := u.(wire.ToolCall); ok && t.Status != nil {
			running = ""
			if *t.Status == "in_progress" && !s.runs(t.ToolCallID) {
				running = t.ToolCallID
			}
		}
	}
	s.note(messages)
	return running != "" && !s.asking[running]
}

// runs reports whether a call is known to run, or was asked about.
func (s *session) runs(toolCallID string) bool {
	c := s.tools[toolCallID]
	return c != nil && (c.runs || c.ended || s.waits(c.id))
}

// follow reads what the agent does until its prompt is answered.
func (s *session) follow(ctx context.Context) (runner.Result, error) {
	if err := s.woken(ctx); err != nil { // an interrupt, or an answer, may have come before anybody followed
		return runner.Result{}, err
	}
	var decide, calm <-chan time.Time // when what is undecided, or flips, is taken as it is
	for s.result == nil {
		select {
		case h, ok := <-s.conn.p.Heard():
			if !ok {
				return runner.Result{}, errEnded
			}
			lines, err := s.conn.take(h)
			s.held = append(s.held, lines...)
			if err == nil && s.undecided() {
				if calm = nil; decide == nil {
					decide = time.After(announcement)
				}
				continue
			}
			decide = nil
			if err == nil && s.flips() {
				if calm == nil {
					calm = time.After(time.Until(s.offers.at.Add(flipPause)))
				}
				continue
			}
			calm = nil
			if rerr := s.rest(ctx, nil); rerr != nil {
				return runner.Result{}, rerr
			}
			if err != nil {
				return runner.Result{}, err
			}
		case <-calm:
			calm = nil
			if err := s.rest(ctx, nil); err != nil {
				return runner.Result{}, err
			}
		case <-decide:
			decide = nil
			if err := s.rest(ctx, nil); err != nil {
				return runner.Result{}, err
			}
		case <-s.t.Woken():
			if err := s.woken(ctx); err != nil {
				return runner.Result{}, err
			}
		case <-s.unlessBusy():
			if out := s.t.Detached(runner.ErrShutdown); out != nil { // a person may take days
				return runner.Result{}, out
			}
			<-ctx.Done()
			return runner.Result{}, context.Cause(ctx)
		case <-ctx.Done():
			return runner.Result{}, context.Cause(ctx)
		}
	}
	return *s.result, nil
}

// unlessBusy tells that the server stops, if the agent waits for a person: there is
// no boundary to wait for.
func (s *session) unlessBusy() <-chan struct{} {
	if !s.waiting {
		return nil
	}
	return s.t.Stopping()
}

func (s *session) woken(ctx context.Context) error {
	if err := s.t.Refresh(ctx); err != nil {
		return err
	}
	if i := s.t.State().Interrupt; i != nil && i.Mode == journal.InterruptNow {
		return runner.ErrInterrupted
	}
	return s.answer(ctx)
}

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
	lines, s.held = append(s.held, lines...), nil
	messages := make([]wire.Message, 0, len(lines))
	for _, l := range lines {
		// Masked first: what is compared later, also after a restart, is what the journal has.
		m, err := wire.Parse(s.t.MaskedJSON(l.Bytes, shape))
		if err != nil {
			m = wire.Message{Raw: l.Bytes}
		}
		messages = append(messages, m)
	}
	n := ripe(messages)
	lines, messages, s.held = lines[:n], messages[:n], lines[n:]
	if n == 0 {
		return nil
	}
	s.note(messages)
	if err := s.record(ctx, lines, messages); err != nil {
		return s.unfit(ctx, lines, err)
	}
	return s.answer(ctx)
}

// record makes facts of lines and commits them. What comes behind the answer to the
// prompt is what a resting agent says: it is made of it only when the answer is in the
// journal, so that nothing of it becomes a part of what has ended.
func (s *session) record(ctx context.Context, lines []wire.Line, messages []wire.Message) error {
	answered := s.result != nil
	for i, m := range messages {
		s.line = &lines[i]
		s.cut(m)
		if err := s.message(ctx, m); err != nil {
			return err
		}
		if s.result == nil || answered || i == len(lines)-1 {
			continue
		}
		answered = true
		if err := s.flush(ctx, &lines[i]); err != nil {
			return err
		}
		clear(s.tools) // their names may come again
	}
	return s.flush(ctx, &lines[len(lines)-1])
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

// message makes facts of one line.
func (s *session) message(ctx context.Context, m wire.Message) error {
	switch {
	case m.Kind == wire.KindResponse:
		if set, err := s.setAnswered(ctx, m); set || err != nil {
			return err
		}
		s.answered(m)
		return nil
	case m.Kind == wire.KindRequest:
		return s.asked(ctx, m)
	case m.Method == wire.MethodSessionUpdate:
		id, u := wire.ParseUpdate(m.Params)
		if id != s.t.State().AgentSession && id != "" {
			return nil // of another session, which is none of ours
		}
		s.receiving()
		return s.update(ctx, u)
	case m.Method == wire.MethodCancelRequest:
		return nil // the answer comes all the same
	}
	s.opaque(m.Raw)
	return nil
}

// opaque journals what this build doesn't know, as it came.
func (s *session) opaque(raw []byte) {
	s.fact(&journal.AgentEvent{ProcessID: s.conn.p.ID(), Raw: journal.T(string(raw))})
}

func (s *session) fact(b journal.Body) { s.drafts = append(s.drafts, runner.Said(b)) }

// receiving notes the first that comes back of an attempt.
func (s *session) receiving() {
	if sent := s.t.Sent(); sent.AttemptID != "" && sent.AttemptID == s.t.Attempt() && !sent.Receiving && !s.received {
		s.received = true
		s.fact(&journal.AttemptReceiving{AttemptID: sent.AttemptID})
	}
}

// answered takes the answer to the prompt, with which its attempt has settled.
func (s *session) answered(m wire.Message) {
	sent := s.t.Sent()
	if sent.AttemptID == "" || sent.AttemptID != s.t.Attempt() || m.ID != wire.NumberID(sent.Request) {
		return
	}
	s.endAsks()
	if s.offers.known { // what it changed at its work stands before the end of that
		s.optionsFact()
	}
	untouched := !sent.Receiving && !s.received // nothing came of it: surely it wasn't worked on
	if m.Err != nil && m.Err.Code == wire.CodeAuthRequired && untouched {
		s.complete()
		s.endCalls(true)
		s.drafts = append(s.drafts, runner.Seen(&journal.AttemptFailed{AttemptID: sent.AttemptID, Error: words(m.Err)}),
			needsSignIn("The agent needs a sign-in: "+words(m.Err)+". What was asked is sent again afterwards."))
		s.result = &runner.Result{Parked: true}
		return
	}
	settled := &journal.AttemptSettled{AttemptID: sent.AttemptID, Outcome: answeredError}
	if m.Err != nil {
		settled.Error = words(m.Err)
	} else if r, err := wire.Decode[wire.PromptResult](m.Result); err != nil {
		settled.Error = "its answer can't be read"
	} else {
		settled.Outcome, settled.Usage = r.StopReason, usage(r.Usage)
	}
	s.complete()
	s.endCalls(settled.Outcome == wire.StopCancelled && s.cancels)
	s.fact(settled)
	s.result = resultOf(settled)
}

// endAsks answers what the agent asked and, having ended its turn, waits for no more.
func (s *session) endAsks() {
	for _, a := range append(s.conn.p.Asks(), s.asks...) {
		var asked askedOf
		if json.Unmarshal([]byte(a.Request), &asked) != nil {
			continue
		}
		if frame, err := wire.Result(asked.ID, wire.Cancelled()); err == nil {
			s.frames = append(s.frames, frame)
		}
	}
	for _, a := range s.conn.p.Asks() {
		s.answers = append(s.answers, a.N)
	}
	s.asks = nil
}

// quiet is how long an agent that rests says nothing, so that all it said is heard.
const quiet = 100 * time.Millisecond

// catchUp takes what the agent said since its last turn: none of it is an answer to
// what it is told next.
func (s *session) catchUp(ctx context.Context) error {
	for {
		select {
		case h, ok := <-s.conn.p.Heard():
			if !ok {
				return errEnded
			}
			lines, err := s.conn.take(h)
			s.held = append(s.held, lines...)
			if err == nil && s.onlyOptions() {
				continue
			}
			if rerr := s.rest(ctx, nil); rerr != nil {
				return rerr
			}
			if err != nil {
				return err
			}
		case <-time.After(quiet):
			if err := s.restAll(ctx); err != nil {
				return err
			}
			s.complete()
			if len(s.drafts) == 0 && !s.offers.pending() {
				return nil
			}
			return s.unfit(ctx, nil, s.flush(ctx, nil))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// until waits for an answer until a time, whatever ends the run.
func (s *session) until(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), d, errLate)
	defer cancel()
	for s.result == nil {
		lines, err := s.hear(ctx)
		if rerr := s.rest(ctx, lines); rerr != nil {
			return rerr
		}
		if err != nil {
			return err
		}
	}
	return nil
}
