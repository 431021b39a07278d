package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/lib/pq"

	"holdfast/journal"
)

type claimRow struct {
	SessionID     string         `db:"session_id"`
	ExecutionID   string         `db:"execution_id"`
	WorkerID      string         `db:"worker_id"`
	StateFolderID string         `db:"state_folder_id"`
	Phase         string         `db:"phase"`
	Assistant     sql.NullString `db:"assistant_message_id"`
	ClaimedAt     int64          `db:"claimed_at"`
	ExpiresAt     int64          `db:"expires_at"`
	LeaseMS       int64          `db:"lease_ms"`
	AliveAt       int64          `db:"alive_at"`
}

const claimColumns = "session_id, execution_id, worker_id, state_folder_id, phase, assistant_message_id, claimed_at, expires_at, lease_ms, alive_at"

func (r *claimRow) claim() journal.Claim {
	return journal.Claim{
		SessionID: r.SessionID, ExecutionID: r.ExecutionID, WorkerID: r.WorkerID, StateFolderID: r.StateFolderID, Phase: journal.Phase(r.Phase),
		AssistantMessageID: r.Assistant.String, ClaimedAt: r.ClaimedAt, ExpiresAt: r.ExpiresAt, LeaseMS: r.LeaseMS, AliveAt: r.AliveAt,
	}
}

// loadClaim gives the claim on a session, or nil.
func loadClaim(ctx context.Context, q querier, sessionID string) (*journal.Claim, error) {
	var row claimRow
	err := q.get(ctx, &row, "SELECT "+claimColumns+" FROM claim WHERE session_id = ?", sessionID)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // no claim is a state of a session, not a missing thing
	}
	if err != nil {
		return nil, err
	}
	c := row.claim()
	return &c, nil
}

// ClaimRequest names the session and the worker that wants to run it.
type ClaimRequest struct {
	SessionID, WorkerID, StateFolderID string
	Lease                              time.Duration
	LeaveExpired                       bool // an expired claim is for who first ends what it left running (COO-7)
}

// Claim takes the lease on a session for a worker, if there is work and nobody
// holds it (LEA-1, LEA-2, COO-2). nil means: don't run. A claim of this worker's
// own in phase ready or safe is replaced; an expired one is first recovered
// (REC-2 to REC-4) in the same transaction, and that recovery stays even if no
// claim is taken then; nobody has asked a shim there, so with LeaveExpired it
// stays as it is, and there is no claim. A session with something adopted is for
// workers of the state folder that adopted it, and their claim begins uncertain
// (REC-10); once none of them lives, what they adopted is concluded without them.
// Without work nothing is written.
func (s *Store) Claim(ctx context.Context, r ClaimRequest) (*journal.Claim, error) {
	var out *journal.Claim
	err := s.write(ctx, r.SessionID, func(ctx context.Context, t *tx) error {
		out = nil
		l, err := t.lockSelect(ctx, r.SessionID, t.dialect().lock())
		if err != nil {
			return err
		}
		was, err := loadClaim(ctx, t, r.SessionID)
		if err != nil {
			return err
		}
		if was != nil && was.ExpiresAt <= l.now && r.LeaveExpired {
			return nil
		}
		if was != nil {
			free, err := l.free(ctx, was, r)
			if isSlug(err, "claim-changed") { // renewed just now, or for others to ask about, before anything was written
				return nil
			}
			if err != nil || !free {
				return err
			}
		}
		may, err := l.maySucceed(ctx, r.StateFolderID)
		if err != nil {
			return err
		}
		if may && l.st.HasWork(l.now) {
			if out, err = l.take(ctx, r); err != nil {
				return err
			}
		}
		if len(l.events) == 0 {
			return nil
		}
		return l.flush(ctx)
	})
	return out, err
}

func isSlug(err error, slug string) bool {
	var e *journal.Error
	return errors.As(err, &e) && e.Slug() == slug
}

// free makes room for a new claim, or says that there is none.
func (l *locked) free(ctx context.Context, was *journal.Claim, r ClaimRequest) (bool, error) {
	switch {
	case was.WorkerID == r.WorkerID && was.Phase != journal.PhaseUncertain && was.ExpiresAt > l.now:
		return true, l.removeClaim(ctx, was, false)
	case was.ExpiresAt <= l.now:
		return true, l.recover(ctx, was, Recovery{By: r.StateFolderID})
	}
	return false, nil
}

func (l *locked) take(ctx context.Context, r ClaimRequest) (*journal.Claim, error) {
	c := &journal.Claim{
		SessionID: r.SessionID, ExecutionID: NewID("exe"), WorkerID: r.WorkerID, StateFolderID: r.StateFolderID, Phase: journal.PhaseReady,
		ClaimedAt: l.now, ExpiresAt: l.now + r.Lease.Milliseconds(), LeaseMS: r.Lease.Milliseconds(), AliveAt: l.now,
	}
	if l.st.Adopts() {
		c.Phase = journal.PhaseUncertain
	}
	Crash("claim.locked")
	_, err := l.t.exec(ctx, "INSERT INTO claim ("+claimColumns+") VALUES (?, ?, ?, ?, ?, NULL, ?, ?, ?, ?)",
		c.SessionID, c.ExecutionID, c.WorkerID, c.StateFolderID, string(c.Phase), c.ClaimedAt, c.ExpiresAt, c.LeaseMS, c.AliveAt)
	if err != nil {
		return nil, err
	}
	if err = l.t.get(ctx, &c.Epoch, "UPDATE session SET execution_id = ?, epoch = epoch + 1 WHERE id = ? RETURNING epoch", c.ExecutionID, c.SessionID); err != nil {
		return nil, err
	}
	l.row.ExecutionID = sql.NullString{String: c.ExecutionID, Valid: true}
	l.t.wake(l.row.ID, l.seq, false) // readers show who runs it
	return c, nil
}

// removeClaim deletes a claim's row and the session's execution id, which are one fact (LEA-10).
func (l *locked) removeClaim(ctx context.Context, c *journal.Claim, raiseEpoch bool) error {
	n, err := l.t.exec(ctx, "DELETE FROM claim WHERE session_id = ? AND execution_id = ?", c.SessionID, c.ExecutionID)
	if err != nil {
		return err
	}
	if n != 1 {
		return staleClaim(c.ExecutionID)
	}
	_, err = l.t.exec(ctx, "UPDATE session SET execution_id = NULL, epoch = epoch + ? WHERE id = ?", boolInt(raiseEpoch), c.SessionID)
	l.row.ExecutionID = sql.NullString{}
	l.t.wake(l.row.ID, l.seq, false)
	return err
}

// RenewClaims prolongs the executions that run in this worker, in one
// statement, and gives those that it still holds (LEA-3). One that is missing
// from the answer is lost: its run must end at once.
func (s *Store) RenewClaims(ctx context.Context, workerID string, executions []string, lease time.Duration) (map[string]bool, error) {
	held := map[string]bool{}
	err := s.write(ctx, "", func(ctx context.Context, t *tx) error {
		clear(held)
		d := t.dialect()
		list, q := any(pq.Array(executions)), "execution_id = ANY(?)"
		if d.sqlite() {
			b, err := json.Marshal(executions)
			if err != nil {
				return err
			}
			list, q = string(b), "execution_id IN (SELECT value FROM json_each(?))"
		} else {
			// In one order, so that a renewal and a takeover can't wait for each other.
			var locked []string
			if err := t.all(ctx, &locked, "SELECT session_id FROM claim WHERE worker_id = ? AND "+q+" ORDER BY session_id FOR UPDATE", workerID, list); err != nil {
				return err
			}
		}
		var got []string
		if err := t.all(ctx, &got, "UPDATE claim SET expires_at = "+d.now()+" + ?, alive_at = "+d.now()+" WHERE worker_id = ? AND "+q+" RETURNING execution_id", d.nowArg(), lease.Milliseconds(), d.nowArg(), workerID, list); err != nil {
			return err
		}
		for _, id := range got {
			held[id] = true
		}
		return nil
	})
	return held, err
}

// ExpireClaim lets a failed drain's claim expire at once, so that nobody waits a
// lease long for a death that is known (LEA-6). It is recovered by the sweeper.
func (s *Store) ExpireClaim(ctx context.Context, c *journal.Claim) error {
	return s.write(ctx, c.SessionID, func(ctx context.Context, t *tx) error {
		d := t.dialect()
		// The session's row first, as everywhere: the batch may go on to it, and a takeover waits for the claim with it in hand.
		if _, err := t.lockSelect(ctx, c.SessionID, d.lock()); err != nil {
			return err
		}
		_, err := t.exec(ctx, "UPDATE claim SET expires_at = "+d.now()+" - 1, alive_at = "+d.now()+" WHERE execution_id = ? AND worker_id = ?", d.nowArg(), d.nowArg(), c.ExecutionID, c.WorkerID)
		return err
	})
}

// ExpireFolder expires the claims of earlier workers of a state folder. Only
// the holder of that folder's lock may call it: the lock proves them dead (LEA-11).
func (s *Store) ExpireFolder(ctx context.Context, folderID, workerID string) (int64, error) {
	var n int64
	err := s.write(ctx, "", func(ctx context.Context, t *tx) error {
		d := t.dialect()
		if !d.sqlite() { // in one order, as RenewClaims
			var locked []string
			if err := t.all(ctx, &locked, "SELECT session_id FROM claim WHERE state_folder_id = ? AND worker_id <> ? ORDER BY session_id FOR UPDATE", folderID, workerID); err != nil {
				return err
			}
		}
		var err error
		n, err = t.exec(ctx, "UPDATE claim SET expires_at = "+d.now()+" - 1 WHERE state_folder_id = ? AND worker_id <> ?", d.nowArg(), folderID, workerID)
		return err
	})
	return n, err
}

// ExpiredClaims lists claims whose lease has ended, by the database's clock
// (REC-1), the longest ended first. after is the last one of the page before:
// those that can't be recovered now stand in nobody's way.
func (s *Store) ExpiredClaims(ctx context.Context, after journal.Claim, limit int) ([]journal.Claim, error) {
	var out []journal.Claim
	err := s.read(ctx, func(q querier) error {
		var rows []claimRow
		d := q.dialect()
		out = nil
		if err := q.all(ctx, &rows, "SELECT "+claimColumns+" FROM claim WHERE expires_at <= "+d.now()+" AND (expires_at, session_id) > (?, ?) ORDER BY expires_at, session_id LIMIT ?",
			d.nowArg(), after.ExpiresAt, after.SessionID, limit); err != nil {
			return err
		}
		for _, r := range rows {
			out = append(out, r.claim())
		}
		return nil
	})
	return out, err
}

// ExpiredClaim gives the claim on a session if its lease has ended, else nil.
func (s *Store) ExpiredClaim(ctx context.Context, sessionID string) (*journal.Claim, error) {
	var out *journal.Claim
	err := s.read(ctx, func(q querier) error {
		out = nil
		var row claimRow
		d := q.dialect()
		err := q.get(ctx, &row, "SELECT "+claimColumns+" FROM claim WHERE session_id = ? AND expires_at <= "+d.now(), sessionID, d.nowArg())
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			c := row.claim()
			out = &c
		}
		return err
	})
	return out, err
}

// Runnable lists sessions without a claim that have work (REC-9), the longest
// waiting first. after is the last one of the page before: those that a worker
// can't run, or can't claim, stand in nobody's way.
func (s *Store) Runnable(ctx context.Context, after SessionBrief, limit int) ([]SessionBrief, error) {
	var out []SessionBrief
	err := s.read(ctx, func(q querier) error {
		d := q.dialect()
		return q.all(ctx, &out, "SELECT "+briefColumns+" FROM session WHERE runnable_at IS NOT NULL AND (base <> 'retrying' OR runnable_at <= "+d.now()+") AND execution_id IS NULL AND (runnable_at, id) > (?, ?) ORDER BY runnable_at, id LIMIT ?",
			d.nowArg(), after.RunnableAt, after.ID, limit)
	})
	return out, err
}

// Interrupted tells which of the sessions have an interrupt that takes effect now and isn't carried out.
func (s *Store) Interrupted(ctx context.Context, sessions []string) ([]string, error) {
	var out []string
	err := s.read(ctx, func(q querier) error {
		if !q.dialect().sqlite() {
			return q.all(ctx, &out, "SELECT id FROM session WHERE interrupted = 2 AND id = ANY(?)", pq.Array(sessions))
		}
		b, err := json.Marshal(sessions)
		if err != nil {
			return err
		}
		return q.all(ctx, &out, "SELECT id FROM session WHERE interrupted = 2 AND id IN (SELECT value FROM json_each(?))", string(b))
	})
	return out, err
}
