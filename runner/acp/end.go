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
	case errors.As(err, &refused):
	case errors.Is(err, errLate):
		reason = "it did not open a session in time"
	case errors.Is(err, errUnanswered):
		reason = "it did not answer in time whether it takes a setting"
	case errors.Is(err, wire.ErrLineTooLong):
		reason = "it sent a line that is too long"
	default:
		return runner.Result{}, err
	}
	s.end(ctx, reason)
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
	s.cancels = true
	if err := s.conn.say(ctx, s.refuseAll(runner.Commit{Frames: [][]byte{frame}})); err != nil {
		return runner.Result{}, err
	}
	reason := "it did not stop when it was asked to"
	err = s.until(ctx, s.a.o.CancelWithin)
	leaves := (s.ran() && s.resumes()) || errors.Is(cause, runner.ErrShutdown)
	switch {
	case err == nil && !leaves:
		return runner.Result{}, errors.Join(s.cleanUp(ctx, cause), cause)
	case err == nil:
		reason = "it was stopped"
	case s.deaf:
		reason = "what it said can't be recorded"
	case !errors.Is(err, errEnded) && !errors.Is(err, errLate) && !errors.Is(err, wire.ErrLineTooLong):
		return runner.Result{}, err
	}
	s.end(ctx, reason)
	conclude := s.gone
	if s.result == nil {
		conclude = s.lose
	}
	if err := conclude(ctx); err != nil {
		return runner.Result{}, err
	}
	return runner.Result{}, cause
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
// order, then all of it.
func (s *session) end(ctx context.Context, reason string) {
	ctx = context.WithoutCancel(ctx)
	if s.conn.ended != nil {
		return
	}
	s.ending, s.conn.why = true, reason
	s.conn.p.CloseStdin(ctx)
	if s.untilEnd(ctx, s.a.o.ExitWithin) {
		return
	}
	s.conn.p.End(reason)
	s.untilEnd(ctx, killWithin)
}

// retire ends a process with which nothing is in flight, and takes what it said since
// its last turn.
func (s *session) retire(ctx context.Context, reason string) error {
	if err := s.catchUp(ctx); err != nil && !errors.Is(err, errEnded) && !s.deaf {
		return err
	}
	s.end(ctx, reason)
	return s.gone(ctx)
}

// killWithin bounds the wait for a process that was killed, which can't be told that
// it takes too long.
const killWithin = 15 * time.Second

// untilEnd journals what the process still says until it has ended; false: it took
// too long, or what it says can't be journalled any more.
func (s *session) untilEnd(ctx context.Context, d time.Duration) bool {
	ctx, cancel := context.WithTimeoutCause(ctx, d, errLate)
	defer cancel()
	for {
		lines, err := s.hear(ctx)
		if s.rest(ctx, lines) != nil {
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
	drafts := s.drafts
	s.drafts = nil
	attempt := s.t.Attempt()
	for _, c := range s.t.Calls(attempt) {
		drafts = append(drafts, s.loseCall(&c)...)
	}
	drafts = append(drafts,
		runner.Seen(&journal.AttemptUnknown{AttemptID: attempt}),
		runner.Seen(s.conn.end()))
	return s.t.RecordIn(ctx, journal.PhaseSafe, drafts...)
}

// loseCall concludes a call of an agent that is gone: what waited for an answer did
// not run.
func (s *session) loseCall(c *journal.Call) []journal.Draft {
	const why = "the agent is gone"
	var out []journal.Draft
	for _, r := range s.t.Requests(c.ID) {
		out = append(out, runner.Seen(&journal.PermissionCancelled{ID: r, Reason: why}))
	}
	switch {
	case !c.Open():
	case c.State == journal.CallIsDispatched && c.Effect == journal.EffectEffect:
		out = append(out, runner.Seen(&journal.CallUnknown{CallID: c.ID, Since: c.DispatchedAt, Evidence: []journal.Evidence{{Type: "process", Text: s.conn.words(s.conn.survivors())}}}))
	default:
		out = append(out, runner.Seen(&journal.CallSettled{CallID: c.ID, State: journal.CallCancelled, Reason: why, OutputBytes: c.OutputBytes}))
	}
	return out
}

// gone records the end of a process with which nothing was in flight.
func (s *session) gone(ctx context.Context) error {
	return s.t.Record(ctx, runner.Seen(s.conn.end()))
}
