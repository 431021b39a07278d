package store

import (
	"context"

	"holdfast/journal"
)

// Mutants are the ways to do it wrong that the state machine must find. They are
// put together of the store's own parts, so that the product has no switch for them.

// HoldsNow looks whether an execution holds its session, in a read of its own:
// what a check before the write would see.
func (s *Store) HoldsNow(ctx context.Context, c *journal.Claim) (bool, error) {
	var n int
	err := s.read(ctx, func(q querier) error {
		return q.get(ctx, &n, "SELECT count(*) FROM session WHERE id = ? AND execution_id = ?", c.SessionID, c.ExecutionID)
	})
	return n == 1, err
}

// AppendUnfenced is Append without the fence: the session's lock, and no question whose it is.
func (s *Store) AppendUnfenced(ctx context.Context, c *journal.Claim, a Append) error {
	return s.write(ctx, c.SessionID, func(ctx context.Context, t *tx) error {
		l, err := t.lockSelect(ctx, c.SessionID, t.dialect().lock())
		if err != nil {
			return err
		}
		l.exec = c.ExecutionID
		if err := l.mayDispatch(a); err != nil {
			return err
		}
		for _, d := range a.Drafts {
			if err := l.appendDraft(ctx, d); err != nil {
				return err
			}
		}
		if a.Phase != "" { // of whoever holds the claim now
			if _, err := t.exec(ctx, "UPDATE claim SET phase = ? WHERE session_id = ?", string(a.Phase), c.SessionID); err != nil {
				return err
			}
		}
		return l.flush(ctx)
	})
}

// RecoverForReplay deletes an expired claim and takes what it had dispatched for
// never dispatched, so that the next drain does it again.
func (s *Store) RecoverForReplay(ctx context.Context, c journal.Claim) error {
	return s.write(ctx, c.SessionID, func(ctx context.Context, t *tx) error {
		l, err := t.lockSelect(ctx, c.SessionID, t.dialect().lock())
		if err != nil {
			return err
		}
		if err := l.deleteExpired(ctx, &c); err != nil {
			return err
		}
		body := &journal.StepRecovered{ExecutionID: c.ExecutionID, Phase: c.Phase, RecoveryMessageID: NewID("msg"), ContinuationMessageID: NewID("msg")}
		if err := l.append(ctx, journal.Server(), body); err != nil {
			return err
		}
		if _, err := t.exec(ctx, "UPDATE call SET state = 'proposed', n = 0 WHERE session_id = ? AND state = 'dispatched'", c.SessionID); err != nil {
			return err
		}
		for i := range l.st.Calls {
			l.st.Calls[i].State = journal.CallIsProposed
		}
		l.wakeWork()
		return l.flush(ctx)
	})
}

// LeaveFenceOpen gives a session back to an execution that was recovered.
func (s *Store) LeaveFenceOpen(ctx context.Context, c journal.Claim) error {
	return s.write(ctx, c.SessionID, func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, "UPDATE session SET execution_id = ? WHERE id = ? AND execution_id IS NULL", c.ExecutionID, c.SessionID)
		return err
	})
}
