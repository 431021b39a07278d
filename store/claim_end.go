package store

import (
	"context"

	"holdfast/journal"
)

// EndTurn says how the open turn ends.
type EndTurn struct {
	Drafts  []journal.Draft // what is known of it, before the end
	End     journal.TurnEnded
	Actor   journal.Actor
	Limit   *journal.LimitReached
	Release bool // release in any case (a graceful stop takes no more work)
}

// ErrSteers says that steers wait, so the turn can't end completed yet (PRO-1).
var ErrSteers = journal.Errorf(journal.Conflict, "Steers wait: the turn can't end yet.").Typed("steers-waiting")

// mayComplete refuses to complete a turn whose last boundary is still to come: there
// a stop that was accepted ends it, and steers join it.
func (l *locked) mayComplete(outcome journal.Outcome) error {
	switch {
	case outcome != journal.Completed:
		return nil
	case l.st.Interrupt != nil:
		return ErrInterrupted
	case l.st.Steers():
		return ErrSteers
	}
	return nil
}

// EndTurn ends the open turn and releases the claim unless there is more work,
// all in one transaction (COO-8, LEA-6). What the turn still has open is
// cancelled, or unknown if it was dispatched. released=false: the drain goes on.
// Codes: stale_claim, conflict (ErrSteers, or ErrInterrupted, of one that would complete; turn-state if no turn is open, also
// because an earlier try had committed), unavailable.
func (s *Store) EndTurn(ctx context.Context, c *journal.Claim, e EndTurn) (events []journal.Event, released bool, err error) {
	err = s.write(ctx, c.SessionID, func(ctx context.Context, t *tx) error {
		events, released = nil, false
		l, err := t.lockFenced(ctx, c, 0)
		if err != nil {
			return err
		}
		if !l.st.TurnOpen() { // before the drafts, whose ids an earlier try may have used
			return journal.Errorf(journal.Conflict, "No turn is open: it has ended already.").Typed("turn-state")
		}
		if err := l.mayComplete(e.End.Outcome); err != nil {
			return err
		}
		for _, d := range e.Drafts {
			if err := l.appendDraft(ctx, d); err != nil {
				return err
			}
		}
		if e.Limit != nil {
			if err := l.append(ctx, journal.Server(), e.Limit); err != nil {
				return err
			}
		}
		if err := l.endTurn(ctx, e.Actor, e.End); err != nil {
			return err
		}
		events = l.events
		if released, err = l.release(ctx, c, e.Release); err != nil {
			return err
		}
		err = l.flush(ctx)
		Crash("endturn.before_commit")
		return err
	})
	if err == nil {
		Crash("endturn.after_commit")
	}
	return events, released, err
}

// release gives the claim back unless there is work for the same drain.
func (l *locked) release(ctx context.Context, c *journal.Claim, anyway bool) (bool, error) {
	if l.st.HasWork(l.now) && !anyway {
		return false, l.setPhase(ctx, c, journal.PhaseSafe, "")
	}
	if err := l.removeClaim(ctx, c, false); err != nil {
		return false, err
	}
	l.wakeWork()
	return true, nil
}

// Release gives the claim back at the end of a drain, and parks a turn that
// waits for a person (LEA-6, PER-5). folded is the last seq that the drain knows:
// if the journal has more, nothing is released and the drain folds again. Nothing
// dispatched may be unsettled, nor anything adopted, whatever its class. Codes: stale_claim, conflict.
func (s *Store) Release(ctx context.Context, c *journal.Claim, folded int64) (released bool, err error) {
	err = s.write(ctx, c.SessionID, func(ctx context.Context, t *tx) error {
		released = false
		l, err := t.lockFenced(ctx, c, 0)
		if err != nil {
			return err
		}
		if l.row.NextSeq != folded {
			return nil
		}
		if l.st.Adopts() || (l.st.InFlight() && !goesOnAlone(&l.st)) {
			return journal.Errorf(journal.Conflict, "Something is dispatched and not settled: the claim can't be released.").Typed("in-flight")
		}
		if err := l.removeClaim(ctx, c, false); err != nil {
			return err
		}
		released = true
		l.wakeWork()
		return nil
	})
	return released, err
}

// goesOnAlone reports that all that is dispatched may be dispatched again (CAL-4),
// or runs on and was adopted (REC-10): nobody must hold the session for it.
func goesOnAlone(st *journal.State) bool {
	agent := st.Process != nil && st.Process.AdoptedAt > 0
	for _, c := range st.Calls {
		if c.State == journal.CallIsDispatched && c.Effect == journal.EffectEffect && c.Adopted == "" && (!agent || !st.OfAttempt(c)) {
			return false
		}
	}
	return len(st.Attempts) == 0 || agent
}
