package acp

import (
	"context"
	"errors"
	"slices"
	"time"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp/wire"
)

// leave makes of an error what the run ends with. A process that is to go on does.
func (s *session) leave(ctx, heeding context.Context, err error) (runner.Result, error) {
	cause := context.Cause(heeding)
	var unfit *unfitError
	switch {
	case errors.Is(err, errEnded):
		return s.died(ctx)
	case errors.Is(err, errStays):
		return s.outlived(context.WithoutCancel(ctx))
	case errors.As(err, &unfit):
		return s.broken(ctx, err)
	case cause == nil && errors.Is(err, runner.ErrInterrupted):
		cause = err
	case cause == nil:
		return s.broken(ctx, err)
	}
	if out := s.t.Detached(cause); out != nil {
		return runner.Result{}, out
	}
	if errors.Is(cause, runner.ErrLeaseLost) {
		s.conn.p.End("its server lost the session")
		return runner.Result{}, cause
	}
	return s.cancel(ctx, cause)
}

// errShut says that the agent has closed its stdin although there was something to tell it.
var errShut = errors.New("the agent has closed its standard input")

// errMute says that the agent has closed its stdout although it lives.
var errMute = errors.New("the agent has closed its standard output")

// reasonMute is why a process is ended that nobody hears any more.
const reasonMute = "it has closed its standard output, so that nobody can hear any more what it does"

// broken ends a process with which nothing can be done any more. What went wrong
// with the journal itself is the drain's.
func (s *session) broken(ctx context.Context, err error) (runner.Result, error) {
	var refused *refusedError
	var unset *unsetError
	var unfit *unfitError
	reason := "it can't be worked with"
	switch {
	case errors.As(err, &unfit):
		reason = "what it said can't be recorded"
	case errors.As(err, &unset): // the process waits for the next prompt
		return runner.Result{Failed: unset.words}, nil
	case errors.Is(err, runner.ErrNoRoom) && s.t.Attempt() == "": // the process waits to be told more
		return noRoom(ctx, s.t)
	case errors.Is(err, runner.ErrFrame) && s.t.Attempt() == "": // it waits for something shorter
		return runner.Result{Failed: runner.ErrFrame.Message + nothingSent}, nil
	case errors.Is(err, runner.ErrFrame):
		reason = "what it would have to be told is too long"
	case errors.As(err, &refused):
	case errors.Is(err, errLate):
		reason = "it did not open a session in time"
	case errors.Is(err, errUnanswered):
		reason = "it did not answer in time whether it takes a setting"
	case errors.Is(err, errRestless):
		reason = reasonRestless
	case errors.Is(err, errCantAnswer):
		reason = err.Error()
	case errors.Is(err, errShut):
		reason = "it has closed its standard input, so that it can't be told anything any more"
	case errors.Is(err, errMute):
		reason = reasonMute
	case errors.Is(err, errSilent):
		reason = "it sent something that can't be read, which may have been its answer, and then said nothing more"
	case errors.Is(err, errTooMuch):
		reason = "it began a line, did not end it, and wrote too much elsewhere"
	case errors.Is(err, wire.ErrLineTooLong):
		reason = "it sent a line that is too long"
	default:
		return runner.Result{}, err
	}
	if err := s.end(context.WithoutCancel(ctx), reason); err != nil {
		return s.stays()
	}
	if refused == nil {
		return s.died(ctx)
	}
	if refused.signIn {
		return runner.Result{Parked: true}, s.t.Record(ctx, runner.Seen(s.conn.end()), needsSignIn(refused.words))
	}
	facts := []journal.Draft{runner.Seen(s.conn.end())}
	if refused.forgot != nil {
		facts = append([]journal.Draft{runner.Seen(refused.forgot)}, facts...)
	}
	return runner.Result{Failed: refused.words}, s.t.Record(ctx, facts...)
}

// reasonRestless is why a process is ended that doesn't stop talking.
const reasonRestless = "it did not stop talking, although it had nothing to do"

// needsSignIn parks the session until a person says that the agent is signed in.
func needsSignIn(words string) journal.Draft {
	return runner.Seen(&journal.SessionBlocked{Cause: journal.BlockSignIn, Detail: journal.Cut(words, 2000), UnblockedBy: "continue, once the agent is signed in"})
}

// cancel ends the turn as acp.md has it: the agent is told, and must answer; else
// its process is ended, and what it did is unknown.
func (s *session) cancel(ctx context.Context, cause error) (runner.Result, error) {
	ctx = context.WithoutCancel(ctx)
	if s.t.Attempt() == "" { // it is idle, or hasn't been told anything
		return runner.Result{}, errors.Join(s.cleanUp(ctx, cause), cause)
	}
	frame, err := wire.Notify(wire.MethodSessionCancel, wire.CancelParams{SessionID: s.t.State().AgentSession})
	if err != nil {
		return runner.Result{}, err
	}
	s.cancels = s.whyStopped(cause)
	reason := "it did not stop when it was asked to"
	telling, told := context.WithTimeoutCause(ctx, tellWithin, errLate) // a shim that was stopped takes nothing
	defer told()
	if err = s.conn.say(telling, s.refuseAll(runner.Commit{Frames: [][]byte{frame}})); err == nil {
		err = s.until(ctx, s.a.o.CancelWithin)
	}
	leaves := (s.ran() && s.resumes()) || errors.Is(cause, runner.ErrShutdown)
	switch {
	case err == nil && !leaves:
		return runner.Result{}, errors.Join(s.cleanUp(ctx, cause), cause)
	case err == nil:
		reason = "it was stopped"
	case s.deaf:
		reason = "what it said can't be recorded"
	case errors.Is(err, errMute):
		reason = reasonMute
	case !errors.Is(err, errEnded) && !errors.Is(err, errLate) && !errors.Is(err, wire.ErrLineTooLong) && !errors.Is(err, errCantAnswer):
		return runner.Result{}, err
	}
	if err := s.end(ctx, reason); err != nil {
		return s.stays()
	}
	conclude := s.gone
	if s.result == nil {
		conclude = s.lose
	}
	if err := conclude(ctx); err != nil {
		return runner.Result{}, err
	}
	return runner.Result{}, cause
}

// whyStopped is why what people are asked is given up when the turn is stopped.
func (s *session) whyStopped(cause error) string {
	if errors.Is(cause, runner.ErrInterrupted) {
		return s.t.State().Stopped().Reason
	}
	return cause.Error()
}

// cleanUp ends what commands of a turn that a person stops have left behind, of an agent
// with which nothing is in flight. Its process ends with it if it can go on in another.
func (s *session) cleanUp(ctx context.Context, cause error) error {
	switch {
	case !errors.Is(cause, runner.ErrInterrupted) || !s.ran():
	case s.resumes():
		return s.retire(ctx, "it was stopped")
	default:
		s.conn.p.EndStrays(ctx, s.t.Sent().First)
	}
	return nil
}

// ran reports whether anything ran in this turn that could have left something behind,
// whatever the agent calls it, and although it says that it has ended. The end of the
// agent's process ends that, too; of one that could not go on in another only what was
// left to its shim is ended.
func (s *session) ran() bool {
	return slices.ContainsFunc(s.t.AllCalls(), func(c journal.Call) bool { return c.TurnID == s.t.ID() && c.N > 0 })
}

// resumes reports whether the agent can go on with its session in another process.
func (s *session) resumes() bool {
	p := s.t.State().Process
	return p != nil && p.Resumes
}

// end ends the process: its stdin first, which agents take as the sign to leave in
// order, then all of it. It takes no longer for an agent that doesn't stop talking; a
// reason to leave it no time at all is the end of ctx.
// errStays: it may still run, and nothing is to be concluded of it.
func (s *session) end(ctx context.Context, reason string) error {
	return s.endIn(ctx, s.a.o.ExitWithin, reason)
}

// errStays says that a process could not be ended, neither by its shim nor by the server.
var errStays = errors.New("its process can't be ended, and may still run on this host: end it there")

// stays is what the run of a process ends with that could not be ended. No other process
// takes up its conversation while it may run.
func (s *session) stays() (runner.Result, error) {
	if s.t.Attempt() == "" {
		return runner.Result{Failed: "The agent can't be worked with: " + errStays.Error() + "." + nothingSent}, nil
	}
	return runner.Result{}, s.t.Stays()
}

// outlived deals with a process that has no shim any more, and that is still there.
func (s *session) outlived(ctx context.Context) (runner.Result, error) {
	how, gone := s.conn.p.Kill(ctx)
	if !gone {
		return s.stays()
	}
	s.conn.ended = &how
	return s.died(ctx)
}

// endIn is end of a process that has another time to leave in order.
func (s *session) endIn(ctx context.Context, d time.Duration, reason string) error {
	if s.conn.ended != nil {
		return nil
	}
	s.ending, s.conn.why = true, reason
	leaving, cancel := context.WithTimeoutCause(ctx, d, errLate)
	defer cancel()
	s.conn.p.CloseStdin(leaving)
	if !s.untilEnd(leaving) {
		s.kill(context.WithoutCancel(ctx), reason)
	}
	if s.conn.ended == nil {
		return errStays
	}
	return nil
}

// kill ends the process and all that it has started. That it has ended is not learnt
// behind all that it has written: one that floods has written more than can be made
// facts while anybody waits for its end. What isn't read in a while is left out, and the
// fact of its end says so. What its shim doesn't end, since somebody has stopped that, the
// server does.
func (s *session) kill(ctx context.Context, reason string) {
	s.conn.p.End(reason)
	dying, cancel := context.WithTimeoutCause(ctx, killWithin, errLate)
	how, gone := s.conn.p.Await(dying)
	cancel()
	if !gone {
		how, gone = s.conn.p.Kill(ctx)
	}
	reading, cancel := context.WithTimeoutCause(ctx, s.a.o.LastWords, errLate)
	defer cancel()
	if !s.untilEnd(reading) && s.conn.ended == nil && gone {
		s.conn.ended, s.conn.cut = &how, true
	}
}

// retire ends a process with which nothing is in flight, and takes what it said since
// its last turn. It has ExitWithin for both, so that one that goes on talking doesn't hold
// that up: a person, or the server, may wait for its end. One that is to stop talking
// when ctx ends goes on.
func (s *session) retire(ctx context.Context, reason string) error {
	by := time.Now().Add(s.a.o.ExitWithin)
	if err := s.catchUp(ctx, s.a.o.ExitWithin/2); err != nil && !errors.Is(err, errEnded) && !errors.Is(err, errRestless) && !errors.Is(err, errMute) && !s.deaf {
		return err
	}
	if err := s.endIn(ctx, time.Until(by), reason); err != nil {
		return err
	}
	return s.gone(ctx)
}

// tellWithin bounds how long a process is tried to be told that it is to stop.
const tellWithin = 10 * time.Second

// killWithin bounds the wait for a process that was killed, which can't be told that
// it takes too long.
const killWithin = 15 * time.Second

// untilEnd journals what the process still says until it has ended; false: it took
// too long, or what it says can't be journalled any more.
func (s *session) untilEnd(ctx context.Context) bool {
	for {
		lines, err := s.hear(ctx)
		if rerr := s.rest(ctx, lines); rerr != nil && !errors.Is(rerr, errCantAnswer) {
			s.deaf = s.deaf || !errors.Is(rerr, context.Cause(ctx)) // what comes behind what could not be committed isn't, either
			return false
		}
		if errors.Is(err, errEnded) && s.restAll(ctx) != nil {
			return false
		}
		if err != nil && !errors.Is(err, wire.ErrLineTooLong) { // what comes behind such a line is passed over
			return errors.Is(err, errEnded)
		}
	}
}

const nothingSent = " Nothing was sent."

// died records that the process has ended in the middle: what it did is unknown, and
// is never asked for again by itself.
func (s *session) died(ctx context.Context) (runner.Result, error) {
	if err := s.restAll(context.WithoutCancel(ctx)); err != nil {
		return runner.Result{}, err
	}
	if s.result != nil { // it had answered before
		return *s.result, s.gone(ctx)
	}
	if s.t.Attempt() == "" {
		s.conn.opened = s.t.State().Process != nil && s.t.State().Process.Opened
		if err := s.gone(ctx); err != nil {
			return runner.Result{}, err
		}
		if gone := s.missing(); gone != "" {
			return runner.Result{Parked: true}, s.t.Record(ctx, runner.Seen(runner.NotThere(s.a.o.Name, gone)))
		}
		return runner.Result{Failed: s.conn.words(nothingSent)}, nil
	}
	if s.conn.p.Missed(s.t.Sent().Request) {
		words := s.conn.words(nothingSent)
		err := s.t.RecordIn(ctx, journal.PhaseSafe, runner.Seen(&journal.AttemptFailed{AttemptID: s.t.Attempt(), Error: words}), runner.Seen(s.conn.end()))
		return runner.Result{Failed: words}, err
	}
	if err := s.lose(ctx); err != nil {
		return runner.Result{}, err
	}
	return runner.Result{Parked: true}, nil
}

// missing says why the program of an agent that ended before it had begun isn't there;
// "": that isn't so, or not any more.
func (s *session) missing() string {
	if s.conn.opened || s.conn.why != "" {
		return ""
	}
	gone := s.a.Unavailable()
	if e := s.conn.ended; gone == "" && e != nil && e.Exit != nil && e.Exit.ExitCode != nil && s.conn.read == 0 {
		s.absent = *e.Exit.ExitCode == 126 || *e.Exit.ExitCode == 127 // of sh: it may not be executed, it isn't there
	}
	return gone
}

// lose says of what is in flight that nobody knows how it ended.
func (s *session) lose(ctx context.Context) error {
	s.spill()
	s.addTails()
	attempt := s.t.Attempt()
	calls := s.t.Calls(attempt)
	output := s.amounts(calls)
	for _, c := range calls {
		s.loseCall(&c, output[c.ID])
	}
	drafts := append(s.drafts,
		runner.Seen(&journal.AttemptUnknown{AttemptID: attempt}),
		runner.Seen(s.conn.end()))
	s.drafts = nil
	return s.t.RecordIn(ctx, journal.PhaseSafe, drafts...)
}

// loseCall concludes a call of an agent that is gone: what waited for an answer did
// not run.
func (s *session) loseCall(c *journal.Call, output amount) {
	why := "the agent is gone"
	ran := c.Open() && s.mayHaveRun(c) // while it is known what it waits for
	if n := s.allowed[c.ID]; n > 0 && c.N == 1 && s.conn.p.Missed(n) && c.State == journal.CallIsDispatched && !s.saidToRun(c) {
		ran, why = false, journal.ReasonNotTold
	}
	s.giveUpRequests(c.ID, why)
	switch {
	case !c.Open():
	case ran:
		s.drafts = append(s.drafts, runner.Seen(&journal.CallUnknown{CallID: c.ID, Since: c.DispatchedAt, Evidence: []journal.Evidence{{Type: journal.EvidenceProcess, Text: s.conn.words(s.conn.survivors())}}}))
	default:
		s.drafts = append(s.drafts, runner.Seen(&journal.CallSettled{CallID: c.ID, State: journal.CallCancelled, Reason: why, OutputBytes: output.bytes, DroppedBytes: output.dropped}))
	}
}

// saidToRun reports whether its agent said of a call that it runs, or has put something out.
func (s *session) saidToRun(c *journal.Call) bool {
	was := s.ours[c.ID]
	return c.OutputBytes > 0 || was != nil && (was.begins || was.bytes > 0)
}

// gone records the end of a process with which nothing was in flight.
func (s *session) gone(ctx context.Context) error {
	return s.t.Record(ctx, runner.Seen(s.conn.end()))
}
