package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
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
}

const claimColumns = "session_id, execution_id, worker_id, state_folder_id, phase, assistant_message_id, claimed_at, expires_at, lease_ms"

func (r *claimRow) claim() journal.Claim {
	return journal.Claim{
		SessionID: r.SessionID, ExecutionID: r.ExecutionID, WorkerID: r.WorkerID, StateFolderID: r.StateFolderID, Phase: journal.Phase(r.Phase),
		AssistantMessageID: r.Assistant.String, ClaimedAt: r.ClaimedAt, ExpiresAt: r.ExpiresAt, LeaseMS: r.LeaseMS,
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
		ClaimedAt: l.now, ExpiresAt: l.now + r.Lease.Milliseconds(), LeaseMS: r.Lease.Milliseconds(),
	}
	if l.st.Adopts() {
		c.Phase = journal.PhaseUncertain
	}
	Crash("claim.locked")
	_, err := l.t.exec(ctx, "INSERT INTO claim ("+claimColumns+") VALUES (?, ?, ?, ?, ?, NULL, ?, ?, ?)",
		c.SessionID, c.ExecutionID, c.WorkerID, c.StateFolderID, string(c.Phase), c.ClaimedAt, c.ExpiresAt, c.LeaseMS)
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
		if err := t.all(ctx, &got, "UPDATE claim SET expires_at = "+d.now()+" + ? WHERE worker_id = ? AND "+q+" RETURNING execution_id", d.nowArg(), lease.Milliseconds(), workerID, list); err != nil {
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
		_, err := t.exec(ctx, "UPDATE claim SET expires_at = "+d.now()+" - 1 WHERE execution_id = ? AND worker_id = ?", d.nowArg(), c.ExecutionID, c.WorkerID)
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

// Append is the run's door to the journal.
type Append struct {
	Drafts       []journal.Draft
	Phase        journal.Phase // "": as it is
	Assistant    string        // the claimed assistant message; "": as it is
	RulesVersion int64         // CAL-9: the rules that were evaluated; 0: none were
	Retried      bool          // an earlier try may have committed (COO-10)
	Spool        *Spool        // of a call that is dispatched, or whose output the drafts are
	Agent        *AgentIO      // what was read of the agent's process, and what it is told
}

// ErrRulesChanged says that the rules are no longer those that were evaluated (CAL-9).
var ErrRulesChanged = journal.Errorf(journal.Conflict, "The rules of the session have changed since they were evaluated.").Typed("rules-changed")

// ErrInterrupted says that a person has stopped the turn: nothing of it begins any
// more, if that was at once, and it doesn't complete (COO-4).
var ErrInterrupted = journal.Errorf(journal.Conflict, "The turn is being stopped.").Typed("interrupted")

// Append writes the events of a run, fenced by its execution id in the statement
// that locks the session and gives out the seqs (LEA-4), with the phase of the
// claim in the same transaction (LEA-7). It returns the events as committed.
// Codes: stale_claim (this execution is over: write nothing more, end what
// runs), conflict (a state has moved on, ErrRulesChanged, or ErrInterrupted of a
// dispatch), unavailable (try again with Retried and the same drafts).
func (s *Store) Append(ctx context.Context, c *journal.Claim, a Append) ([]journal.Event, error) {
	var out []journal.Event
	err := s.write(ctx, c.SessionID, func(ctx context.Context, t *tx) error {
		out = nil
		if a.Retried {
			// The lock first: the earlier try may be committing this moment.
			if _, err := t.lockSelect(ctx, c.SessionID, t.dialect().lock()); err != nil {
				return err
			}
			var err error
			if out, err = appended(ctx, t, c.SessionID, a.Drafts); err != nil || out != nil {
				return err
			}
			if done, err := told(ctx, t, a); err != nil || done {
				return err
			}
		}
		l, err := t.lockFenced(ctx, c, len(a.Drafts))
		if err != nil {
			return err
		}
		if err := l.mayDispatch(a); err != nil {
			return err
		}
		for _, d := range a.Drafts {
			if err := l.appendDraft(ctx, d); err != nil {
				return err
			}
		}
		if a.Spool != nil {
			if err := l.readTo(ctx, *a.Spool); err != nil {
				return err
			}
		}
		if a.Agent != nil {
			if err := l.agentIO(ctx, *a.Agent); err != nil {
				return err
			}
		}
		if err := l.setPhase(ctx, c, a.Phase, a.Assistant); err != nil {
			return err
		}
		out = l.events
		return l.flush(ctx)
	})
	return out, err
}

// mayDispatch refuses what nothing may begin upon any more. A stop at the boundary lets
// the open step come to its end, so it refuses nothing.
func (l *locked) mayDispatch(a Append) error {
	switch {
	case a.RulesVersion != 0 && a.RulesVersion != l.row.RulesVersion:
		return ErrRulesChanged
	case interrupted(&l.st) == interruptedNow && slices.ContainsFunc(a.Drafts, begins):
		return ErrInterrupted
	}
	return nil
}

// begins reports whether a fact is about to start something. What an agent did by
// itself has begun already, and is only told.
func begins(d journal.Draft) bool {
	switch b := d.Body.(type) {
	case *journal.CallDispatched:
		return b.AllowedBy.Type != journal.AllowedByAgent
	case *journal.AttemptDispatched:
		return true
	}
	return false
}

// appended finds the events of an append that had committed although its answer was lost.
func appended(ctx context.Context, q querier, sessionID string, drafts []journal.Draft) ([]journal.Event, error) {
	if len(drafts) == 0 {
		return nil, nil
	}
	var seq int64
	err := q.get(ctx, &seq, "SELECT seq FROM event WHERE id = ?", drafts[0].ID)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return eventsAfter(ctx, q, sessionID, seq-1, len(drafts))
}

func (l *locked) setPhase(ctx context.Context, c *journal.Claim, phase journal.Phase, assistant string) error {
	if phase == "" && assistant == "" {
		return nil
	}
	n, err := l.t.exec(ctx, "UPDATE claim SET phase = coalesce(?, phase), assistant_message_id = coalesce(?, assistant_message_id) WHERE session_id = ? AND execution_id = ?",
		journal.OrNil(string(phase)), journal.OrNil(assistant), c.SessionID, c.ExecutionID)
	if err == nil && n != 1 {
		return staleClaim(c.ExecutionID)
	}
	return err
}

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
