package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
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

	msgs    map[string]*message  // by what they are about: of each the newest that was heard of here
	last    *message             // to which the next piece is added
	tools   map[string]*toolCall // by the agent's id: of each the newest
	ours    map[string]*toolCall // by our id: those and the earlier ones
	drafts  []journal.Draft      // of the lines that are read and not committed
	frames  [][]byte
	asks    []runner.Ask
	besides outside        // what is kept of what it did outside of turns
	line    *wire.Line     // that is made facts just now
	held    []wire.Line    // that are read and not yet made facts: see undecided
	reread  int            // what of those was read more than once, in bytes
	result  *runner.Result // the prompt was answered

	told     []wire.Block           // of the last prompt that was sent here
	asking   bool                   // the call that the line is about asks for permission in the lines that are being read
	proposed int                    // calls that the drafts propose
	counted  counted                // the calls that the journal has
	received bool                   // the drafts say that something came back
	cancels  string                 // why the agent was told to stop; "": it wasn't
	waiting  bool                   // a person is asked
	stood    map[string]string      // by call: how what waits for a person stood when it was judged
	given    map[string]bool        // requests that the drafts cancel
	allowed  map[string]int64       // by call: the frame that began to say here that it may run
	answers  []int64                // asks that the frames answer
	askedAs  map[wire.ID]runner.Ask // by the id of its request, as it reads: the newest that was asked under it
	offers   offers                 // what the agent offers, and what of it isn't committed
	settled  int64                  // the last request for a setting that was answered here
	unset    *unsetError            // the agent has refused a setting
	ending   bool                   // it is told nothing any more
	begins   bool                   // its process is started, or opened, in this run
	absent   bool                   // its program was not there when it was to be executed, and is now
	saidAt   time.Time              // when it last said what can be read
	cant     string                 // why what it has asked can't be answered; "": it has asked nothing such
	deaf     bool                   // nothing it says is made a fact any more: see unfit
}

func newSession(a *Agent, t *runner.Turn, p *runner.Process) *session {
	return &session{
		a: a, t: t, conn: newConn(p, a.o.MaxLine, t.Cleaner), msgs: map[string]*message{}, tools: map[string]*toolCall{}, ours: map[string]*toolCall{},
		given: map[string]bool{}, allowed: map[string]int64{}, besides: outside{last: map[string]saidOf{}},
	}
}

// hear waits for what the process writes next.
func (s *session) hear(ctx context.Context) ([]wire.Line, error) {
	if ctx.Err() != nil { // also of one that always has something to say
		return nil, context.Cause(ctx)
	}
	select {
	case h, ok := <-s.conn.p.Heard():
		if !ok {
			return nil, errEnded
		}
		return s.conn.take(h)
	case <-s.mute():
		return nil, errMute
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// mute tells that the agent has closed its stdout. One that is being ended may.
func (s *session) mute() <-chan struct{} {
	if s.ending {
		return nil
	}
	return s.conn.p.Mute()
}

// prompt sends what the agent hasn't been told, as an attempt (ATT-1).
func (s *session) prompt(ctx context.Context) error {
	if s.conn.p.IsMute() { // nobody would hear what it does
		return errMute
	}
	if err := s.t.Begin(ctx, journal.Step{Key: fmt.Sprint(s.conn.next())}); err != nil {
		return err
	}
	if err := s.configure(ctx); err != nil { // somebody may just have chosen something else
		return err
	}
	n, err := s.news(ctx)
	if err != nil {
		return err
	}
	id := s.conn.next()
	frame, err := wire.Request(id, wire.MethodSessionPrompt, wire.PromptParams{SessionID: s.t.State().AgentSession, Prompt: n.blocks})
	if err != nil {
		return err
	}
	s.told = n.blocks
	attempt := runner.NewID("att")
	return s.conn.say(ctx, runner.Commit{Phase: journal.PhaseUncertain, Frames: [][]byte{frame}, Drafts: append(n.notes,
		runner.Seen(&journal.AttemptPrepared{AttemptID: attempt, TurnID: s.t.ID(), Model: s.a.o.Name, RequestSHA256: journal.Hash(string(frame)), CutoffSeq: n.upTo}),
		runner.Seen(&journal.AttemptDispatched{AttemptID: attempt, ProcessID: s.conn.p.ID(), Request: id}),
	)})
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
// command of its process, after half a second, which on a busy machine is several. Who
// asks later is asked for all the same, and nothing runs before the answer; but until then
// the journal has the call as one that runs, and that nobody was asked.
const announcement, firstAnnouncement = 3 * time.Second, 6 * time.Second

// announces is the one that holds now: a process that was started in this run, and of
// which no call is known, is about its first.
func (s *session) announces() time.Duration {
	if s.a.o.Announces > 0 {
		return s.a.o.Announces
	}
	if s.begins && len(s.tools) == 0 {
		return firstAnnouncement
	}
	return announcement
}

// undecided finds among the lines that are held the one that says of a call that it runs,
// if nothing else is said of it, nor what it puts out; -1: there is none. It isn't
// committed, and what follows it: after a restart that is read again.
func (s *session) undecided() int {
	if s.worn() {
		return -1
	}
	var messages []wire.Message
	running, runs := -1, ""                             // the line, and the call that it is about
	over, begun := map[string]bool{}, map[string]bool{} // calls that end, and begin, in these lines
	for i, l := range s.held {
		m, err := wire.Parse(l.Bytes)
		if err != nil || m.Kind == wire.KindResponse {
			return -1
		}
		messages = append(messages, m)
		if m.Method != wire.MethodSessionUpdate {
			continue
		}
		_, u := wire.ParseUpdate(m.Params)
		t, ok := u.(wire.ToolCall)
		puts := ok && begun[t.ToolCallID] && puts(&t)
		if puts && t.Status == nil && runs == t.ToolCallID {
			running = -1
		}
		if ok && t.Status != nil {
			if running >= 0 && begun[t.ToolCallID] && *t.Status == "in_progress" && !puts {
				continue // it says so once more
			}
			running = -1
			if *t.Status == "in_progress" && !puts && (over[t.ToolCallID] || !s.runs(&t)) {
				running, runs, begun[t.ToolCallID] = i, t.ToolCallID, true
			}
			over[t.ToolCallID] = over[t.ToolCallID] || ends(&t)
		}
	}
	if running >= 0 && asksAhead(messages)[running] {
		return -1
	}
	return running
}

// before makes facts of the lines that are held before one that is undecided: what was
// said before it doesn't wait with it.
func (s *session) before(ctx context.Context, undecided int) error {
	return s.take(ctx, nil, func(messages []wire.Message) int { return s.ripe(messages[:undecided]) })
}

// runs reports whether the call of an update is known to run, or was asked about.
func (s *session) runs(u *wire.ToolCall) bool {
	c := s.tools[u.ToolCallID]
	if c != nil {
		c = s.meant(c, u)
	}
	return c != nil && !c.another(u, c.told.with(u)) && (c.runs || c.ended || s.waits(c.id))
}

// holding is when lines that are held, since they are undecided or flip, are taken as
// they are.
type holding struct{ decide, calm <-chan time.Time }

// heard takes what the process wrote, and makes facts of it, but for what is held.
func (s *session) heard(ctx context.Context, h runner.Heard, until *holding) error {
	before := s.conn.read
	lines, err := s.conn.take(h)
	s.hold(lines)
	if s.conn.read > before { // what it writes elsewhere may be a heartbeat
		s.speaks()
	}
	if at := s.undecided(); err == nil && at >= 0 {
		if until.calm = nil; until.decide == nil {
			until.decide = time.After(s.announces())
		}
		return s.before(ctx, at)
	}
	until.decide = nil
	if err == nil && s.flips() {
		if until.calm == nil {
			until.calm = time.After(time.Until(s.offers.at.Add(s.a.o.FlipPause)))
		}
		return nil
	}
	until.calm = nil
	return cmp.Or(s.rest(ctx, nil), err)
}

// follow reads what the agent does until its prompt is answered.
func (s *session) follow(ctx context.Context) (runner.Result, error) {
	if err := s.woken(ctx); err != nil { // an interrupt, or an answer, may have come before anybody followed
		return runner.Result{}, err
	}
	var until holding
	s.saidAt = time.Now()
	for s.result == nil {
		if ctx.Err() != nil { // also of one that always has something to say
			return runner.Result{}, context.Cause(ctx)
		}
		if s.stopped() { // by a person, or with what the agent has said it has come to where it was to stop
			return runner.Result{}, runner.ErrInterrupted
		}
		select {
		case h, ok := <-s.conn.p.Heard():
			if !ok {
				return runner.Result{}, errEnded
			}
			if err := s.heard(ctx, h, &until); err != nil {
				return runner.Result{}, err
			}
		case <-until.calm:
			until.calm = nil
			if err := s.rest(ctx, nil); err != nil {
				return runner.Result{}, err
			}
		case <-until.decide:
			until.decide = nil
			if err := s.rest(ctx, nil); err != nil {
				return runner.Result{}, err
			}
		case <-s.t.Woken():
			if err := s.woken(ctx); err != nil {
				return runner.Result{}, err
			}
		case <-s.conn.p.Stays():
			return runner.Result{}, errStays
		case n := <-s.conn.p.Shut():
			s.conn.p.Miss(n)
			return runner.Result{}, errShut
		case <-s.mute():
			return runner.Result{}, errMute
		case <-s.silence():
			return runner.Result{}, errSilent
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
	return s.answerAll(ctx) // nothing, if the turn is stopped
}

// stopped reports whether a person stops the turn at once: nothing of it begins any more.
func (s *session) stopped() bool { return s.t.Attempt() != "" && s.t.State().Interrupt.AtOnce() }

// answerAll answers what the agent asks. One that is told something, after a person was away
// for days maybe, may be silent for as long again.
func (s *session) answerAll(ctx context.Context) error {
	told := s.conn.p.Told()
	err := s.answer(ctx)
	if s.conn.p.Told() > told {
		s.saidAt = time.Now()
	}
	return err
}

// message makes facts of one line.
func (s *session) message(ctx context.Context, m wire.Message) error {
	if m.Kind != "" {
		s.saidAt = time.Now()
	}
	stray := m.Kind == "" || s.stray(m)
	if stray || m.Kind != wire.KindResponse && !s.isNoWork(m) {
		s.receiving()
	}
	switch {
	case stray:
		s.unread(m)
		return nil
	case m.Kind == wire.KindResponse:
		if set, err := s.setAnswered(ctx, m); set || err != nil {
			return err
		}
		if s.resting() { // it answers nothing
			s.keepOutside(&journal.AgentEvent{Outside: journal.OutsideTurn, Raw: journal.T(s.whole(m.Raw))})
			return nil
		}
		s.answered(m)
		return nil
	case m.Kind == wire.KindRequest && untold(m.ID.String()) != "":
		s.cantAnswer(m, untold(m.ID.String()))
		return nil
	case m.Kind == wire.KindRequest:
		return s.asked(ctx, m)
	case m.Method == wire.MethodSessionUpdate:
		id, u := wire.ParseUpdate(m.Params)
		if !s.own(id) && id != "" {
			s.outside(journal.OutsideSession, id, u, m.Params)
			return nil
		}
		return s.update(ctx, u)
	case m.Method == wire.MethodCancelRequest:
		return s.takenBack(m)
	}
	s.opaque(m.Raw)
	return nil
}

// isNoWork reports whether a message tells surely of no work on the prompt: of what the
// agent offers, say, which some tell whenever they like. All else may, whatever it is
// and whosesoever: what a subagent does is an effect, too.
func (s *session) isNoWork(m wire.Message) bool {
	if m.Method != wire.MethodSessionUpdate {
		return false
	}
	id, u := wire.ParseUpdate(m.Params)
	if !s.own(id) && id != "" {
		return false
	}
	switch u.(type) {
	case wire.Commands, wire.CurrentMode, wire.ConfigOptions, wire.SessionInfo:
		return true
	}
	return false
}

// answered takes the answer to the prompt, with which its attempt has settled.
func (s *session) answered(m wire.Message) {
	sent := s.t.Sent()
	if sent.AttemptID == "" || sent.AttemptID != s.t.Attempt() {
		return
	}
	if m.ID != wire.NumberID(sent.Request) { // nobody waits for it any more
		s.receiving()
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
		s.drafts = append(s.drafts, runner.Seen(&journal.AttemptFailed{AttemptID: sent.AttemptID, Error: "The agent answered with an error: " + quoteError(m.Err) + "."}))
		if s.cancels == "" { // else its turn ends, and nothing is sent again by itself
			s.drafts = append(s.drafts, needsSignIn("The agent needs a sign-in: "+quoteError(m.Err)+". What was asked is sent again afterwards."))
		}
		s.result = &runner.Result{Parked: true}
		return
	}
	settled := &journal.AttemptSettled{AttemptID: sent.AttemptID, Outcome: answeredError}
	if m.Err != nil {
		settled.Error = words(m.Err)
	} else if r, err := wire.Decode[wire.PromptResult](m.Result); err != nil {
		settled.Error = journal.UnreadAnswer
	} else {
		settled.Outcome, settled.Usage = journal.Cut(r.StopReason, mostName), usage(r.Usage)
	}
	s.complete()
	s.endCalls(settled.Outcome == wire.StopCancelled && s.cancels != "")
	s.fact(settled)
	s.result = resultOf(settled)
}

// endAsks answers what the agent asked and, having ended its turn, waits for no more.
func (s *session) endAsks() {
	for _, a := range append(s.conn.p.Asks(), s.asks...) {
		var asked askedOf
		if slices.Contains(s.answers, a.N) || json.Unmarshal([]byte(a.Request), &asked) != nil {
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
