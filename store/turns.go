package store

import (
	"context"
	"fmt"
	"slices"

	"holdfast/journal"
)

// RequestInterrupt asks for the end of the open turn of the owner's session
// (COO-4). Without a claim and with nothing adopted it is carried out here; else
// the claim, which what is adopted waits for, does it, at once or at the next boundary. Asking again is the same answer,
// but what prompts were to be delivered after the stop is held from now on: the last word counts.
// Codes: not_found, conflict if no turn is open.
func (s *Store) RequestInterrupt(ctx context.Context, owner, sessionID string, mode journal.InterruptMode) error {
	return s.InterruptTurn(ctx, owner, sessionID, "", mode)
}

// InterruptTurn is RequestInterrupt for the turn that who asks has read of, and for none
// that has begun since; turn "": for whichever is open. Codes: as RequestInterrupt, and
// conflict if another turn is open.
func (s *Store) InterruptTurn(ctx context.Context, owner, sessionID, turn string, mode journal.InterruptMode) error {
	err := s.write(ctx, sessionID, func(ctx context.Context, t *tx) error {
		l, err := t.lockOwned(ctx, sessionID, owner)
		if err != nil {
			return err
		}
		if !l.st.TurnOpen() {
			return journal.Errorf(journal.Conflict, "No turn is open, so there is nothing to stop. Messages that wait can be withdrawn.").Typed("no-open-turn").With("state", l.st.Base)
		}
		if err := l.isOpen(turn); err != nil {
			return err
		}
		asked := &journal.InterruptRequested{By: owner, Mode: mode}
		if was := l.st.Interrupt; was != nil && was.Mode == journal.InterruptNow {
			asked.Mode = was.Mode // it doesn't wait for a boundary any more
		}
		if was := l.st.Interrupt; was != nil && was.Mode == asked.Mode && !l.st.Sends() {
			asked = nil
		}
		if err := l.interrupt(ctx, owner, asked); err != nil {
			return err
		}
		l.wakeWork()
		err = l.flush(ctx)
		Crash("interrupt.before_commit")
		return err
	})
	Crash("interrupt.after_commit")
	return err
}

// isOpen refuses to stop another turn than the one that was meant: what that one does and
// asks, nobody who stops it has seen. turn "": any is meant. A turn is open.
func (l *locked) isOpen(turn string) error {
	if turn == "" || turn == l.st.Turn.ID {
		return nil
	}
	return journal.Errorf(journal.Conflict, "The turn that this was to stop has ended, and another one is open now. Nothing was stopped or recorded: that one goes on, and what it asks still waits. Look at what it does, and stop it there if you want to.").
		Typed("other-turn").With("state", l.st.Base).With("turn_id", l.st.Turn.ID)
}

// interrupt records that the open turn is to end (nil: that is recorded), and ends it
// where nobody else can (COO-4).
func (l *locked) interrupt(ctx context.Context, owner string, asked *journal.InterruptRequested) error {
	if asked != nil {
		if err := l.append(ctx, journal.User(owner), asked); err != nil {
			return err
		}
	}
	if l.row.ExecutionID.Valid || l.st.Adopts() {
		return l.stopAsking(ctx)
	}
	return l.endTurn(ctx, journal.User(owner), l.st.Stopped())
}

// stopAsking cancels what people are asked in a turn that somebody else is to stop: what
// was asked isn't let run any more, so an answer would be none (PER-6). A stop at the next
// safe point has come to one where the agent does nothing but wait for a person.
func (l *locked) stopAsking(ctx context.Context) error {
	stops := !l.st.Interrupt.AtOnce()
	if l.st.Interrupt == nil || stops && !l.st.OnlyWaits() {
		return nil
	}
	why := l.st.Stopped().Reason
	for _, id := range l.st.Pending {
		if err := l.append(ctx, journal.Server(), &journal.PermissionCancelled{ID: id, Reason: why, Stops: stops}); err != nil {
			return err
		}
	}
	return nil
}

// endTurn closes all that the open turn has open, then the turn (COO-4):
// requests are cancelled, calls that did not run or may be run again are
// cancelled, and an effect that is in the air becomes unknown. So does what is
// adopted: it surely runs, and nobody has ended it.
func (l *locked) endTurn(ctx context.Context, actor journal.Actor, end journal.TurnEnded) error {
	why := end.Reason
	if why == "" {
		why = string(end.Outcome)
	}
	for _, id := range l.st.Pending {
		if err := l.append(ctx, journal.Server(), &journal.PermissionCancelled{ID: id, Reason: why}); err != nil {
			return err
		}
	}
	for _, c := range l.st.Calls {
		if err := l.endCall(ctx, c, why, nil); err != nil {
			return err
		}
	}
	keeper := ""
	if len(l.st.Attempts) > 0 {
		claim, err := loadClaim(ctx, l.t, l.row.ID)
		if err != nil {
			return err
		}
		if claim != nil {
			keeper = claim.StateFolderID
		}
	}
	if err := l.endAttempts(ctx, keeper, ""); err != nil {
		return err
	}
	end.TurnID = l.st.Turn.ID
	return l.append(ctx, actor, &end)
}

func (l *locked) endCall(ctx context.Context, c journal.OpenCall, why string, evidence []journal.Evidence) error {
	began, err := l.began(ctx, c)
	if err != nil {
		return err
	}
	if began && (c.Effect != journal.EffectRead || c.Adopted != "") {
		return l.unknown(ctx, c.ID, evidence)
	}
	unasked, err := l.unasked(ctx, c)
	if err != nil {
		return err
	}
	if unasked {
		if err := l.append(ctx, journal.Server(), &journal.CallDispatched{CallID: c.ID, N: 1, AllowedBy: journal.Unseen()}); err != nil {
			return err
		}
		return l.unknown(ctx, c.ID, evidence)
	}
	out, dropped, err := countOutput(ctx, l.t, c.ID)
	if err != nil {
		return err
	}
	return l.append(ctx, journal.Server(), &journal.CallSettled{CallID: c.ID, State: journal.CallCancelled, Reason: why, OutputBytes: out, DroppedBytes: dropped})
}

// began reports whether an open call was let run, whatever its agent asks of it since
// (journal.Call.Began).
func (l *locked) began(ctx context.Context, c journal.OpenCall) (bool, error) {
	if c.Attempt == "" || c.State != journal.CallIsWaiting && c.State != journal.CallIsDispatched {
		return c.State == journal.CallIsDispatched, nil
	}
	whole, err := loadCall(ctx, l.t, c.ID)
	if err != nil || !whole.Began() {
		return false, err
	}
	waits, err := l.onlyAnnounced(ctx, whole)
	return !waits, err
}

// onlyAnnounced reports that an agent which said that a call of its own runs has asked
// whether it may, and has no answer: it has not begun (journal.Call.LetItself).
func (l *locked) onlyAnnounced(ctx context.Context, c *journal.Call) (bool, error) {
	counted := *c
	var err error
	if counted.OutputBytes, counted.DroppedBytes, err = countOutput(ctx, l.t, c.ID); err != nil || !counted.LetItself() {
		return false, err
	}
	if c.State == journal.CallIsWaiting {
		return true, nil
	}
	var asks int
	err = l.t.get(ctx, &asks, "SELECT count(*) FROM agent_ask WHERE call_id = ?", c.ID)
	return asks > 0, err
}

// unasked reports that a call is an agent's own, which may have an effect and for which
// it has asked nobody: it may have run all the same (journal.Call.Unasked).
func (l *locked) unasked(ctx context.Context, c journal.OpenCall) (bool, error) {
	if c.State != journal.CallIsProposed || c.Attempt == "" || c.Effect == journal.EffectRead {
		return false, nil
	}
	var asks int
	err := l.t.get(ctx, &asks, "SELECT count(*) FROM agent_ask WHERE call_id = ?", c.ID)
	return asks == 0, err
}

// unknown says of a dispatched call that nobody recorded its outcome, with the evidence that there is.
func (l *locked) unknown(ctx context.Context, callID string, evidence []journal.Evidence) error {
	c, err := loadCall(ctx, l.t, callID)
	if err != nil {
		return err
	}
	captured, err := capturedOutput(ctx, l.t, l.row.ID, callID)
	if err != nil {
		return err
	}
	return l.append(ctx, journal.Server(), &journal.CallUnknown{CallID: callID, Since: c.DispatchedAt, Evidence: append(captured, evidence...)})
}

// endAttempts concludes the attempts in flight, which nobody follows any more, and
// with them the process that they were sent to. keeper is the state folder of whoever
// concludes them; "": no server that could ask does. why is the reason for the end of a
// process that its keeper ends; "": it is none's.
func (l *locked) endAttempts(ctx context.Context, keeper, why string) error {
	process, lost := l.st.Process, l.st.Attempts
	if len(lost) == 0 {
		return nil
	}
	for _, id := range lost {
		a, err := loadAttempt(ctx, l.t, id)
		if err != nil {
			return err
		}
		var body journal.Body = &journal.AttemptUnknown{AttemptID: id}
		if a.State == journal.AttemptIsPrepared { // nothing left this machine
			body = &journal.AttemptFailed{AttemptID: id, Error: "not sent"}
		}
		if err := l.append(ctx, journal.Server(), body); err != nil {
			return err
		}
	}
	if process == nil {
		return nil
	}
	if process.Folder == keeper { // whose server ends it, as one that isn't the session's any more
		return l.append(ctx, journal.Server(), &journal.AgentEnded{ProcessID: process.ID, Reason: why})
	}
	body, err := lostAgent(ctx, l.t, l.row.ID, process.ID)
	if err != nil {
		return err
	}
	body.Attempts = lost
	return l.append(ctx, journal.Server(), &body)
}

// Continue is a person's *continue* (PRO-6): the unfinished turn goes on first,
// then the inputs. limits may raise bounds. Codes: not_found, conflict if
// nothing is held or blocked in a way that it lifts, something is unknown, or the
// agent has forgotten its session for good; unprocessable.
func (s *Store) Continue(ctx context.Context, owner, sessionID string, limits *journal.Limits) error {
	return s.goOn(ctx, owner, sessionID, &journal.ContinuationRequested{Limits: limits})
}

// StartAnew is Continue for a session that its agent has forgotten: in a new one of
// the agent's, which is told a summary first. Codes: as Continue, and conflict if the
// agent hasn't forgotten it.
func (s *Store) StartAnew(ctx context.Context, owner, sessionID string, limits *journal.Limits) error {
	return s.goOn(ctx, owner, sessionID, &journal.ContinuationRequested{Limits: limits, Anew: true})
}

func (s *Store) goOn(ctx context.Context, owner, sessionID string, how *journal.ContinuationRequested) error {
	if limits := how.Limits; limits != nil {
		if err := limits.Check(); err != nil {
			return err
		}
	}
	return s.write(ctx, sessionID, func(ctx context.Context, t *tx) error {
		l, err := t.lockOwned(ctx, sessionID, owner)
		if err != nil {
			return err
		}
		if err := l.st.MayContinue(how.Anew); err != nil {
			return err
		}
		if err := l.continueTurn(ctx, owner, how); err != nil {
			return err
		}
		l.wakeWork()
		return l.flush(ctx)
	})
}

func (l *locked) continueTurn(ctx context.Context, owner string, how *journal.ContinuationRequested) error {
	if err := l.append(ctx, journal.User(owner), how); err != nil {
		return err
	}
	if l.st.TurnOpen() || l.st.Turn == nil || l.st.Turn.Outcome == journal.Completed {
		return nil // blocked: the same turn goes on, or the inputs do
	}
	last := l.st.Turn.ID
	return l.append(ctx, journal.User(owner), &journal.TurnStarted{TurnID: NewID("trn"), Cause: journal.CauseContinuation, Continues: &last})
}

// Archive closes the owner's session. A repeat is the same answer.
// Codes: not_found, conflict while a turn is open, a prompt waits or an outcome is unknown.
func (s *Store) Archive(ctx context.Context, owner, sessionID string) error {
	return s.write(ctx, sessionID, func(ctx context.Context, t *tx) error {
		l, err := t.lockOwned(ctx, sessionID, owner)
		switch {
		case err != nil:
			return err
		case l.st.Archived:
			return nil
		case l.st.TurnOpen() || l.row.ExecutionID.Valid:
			return journal.Errorf(journal.Conflict, "A turn is open. Stop it first; then the session can be archived.").Typed("turn-open").With("state", l.st.Base)
		case len(l.st.Admitted) > 0:
			return promptsWait(&l.st)
		case l.st.Unknowns() > 0:
			return journal.Errorf(journal.Conflict, "An outcome is unknown. Say first what became of it; then the session can be archived.").Typed("outcome-unknown").With("state", l.st.Base)
		}
		if err := l.append(ctx, journal.User(owner), &journal.SessionArchived{}); err != nil {
			return err
		}
		return l.flush(ctx)
	})
}

// promptsWait refuses to archive a session in which messages wait. Only what is held
// can be continued; the rest is delivered by itself.
func promptsWait(st *journal.State) error {
	waits, or := "A message waits here and would never be delivered. Withdraw it first", "wait until it is delivered"
	if n := len(st.Admitted); n > 1 {
		waits, or = fmt.Sprintf("%d messages wait here and would never be delivered. Withdraw them first", n), "wait until they are delivered"
	}
	if st.MayContinue(false) == nil || st.MayContinue(true) == nil {
		or = "continue"
	}
	return journal.Errorf(journal.Conflict, "%s, or %s; then the session can be archived.", waits, or).Typed("prompts-waiting").With("state", st.Base)
}

// Block parks a session without a claim because no live worker can run it: the
// sweeper's door. It writes nothing if the session has no work, is claimed, or
// another worker that was seen lately may be able to (MayRun). What a folder
// adopted none of whose workers lives is concluded first, as Claim does. Unblock
// is its reverse.
func (s *Store) Block(ctx context.Context, sessionID, workerID string, b journal.SessionBlocked) error {
	return s.write(ctx, sessionID, func(ctx context.Context, t *tx) error {
		l, err := t.lockSelect(ctx, sessionID, t.dialect().lock())
		if err != nil {
			return err
		}
		if _, err := l.maySucceed(ctx, ""); err != nil {
			return err
		}
		able, err := l.mayRun(ctx, workerID)
		if err != nil {
			return err
		}
		if !able {
			if err := l.append(ctx, journal.Server(), &b); err != nil {
				return err
			}
		}
		if len(l.events) == 0 {
			return nil
		}
		return l.flush(ctx)
	})
}

// mayRun reports whether nothing here waits for a worker that can run the
// session, or another one than workerID may be able to.
func (l *locked) mayRun(ctx context.Context, workerID string) (bool, error) {
	if l.row.ExecutionID.Valid || !l.st.HasWork(l.now) || l.st.Blocked != nil || l.st.Interrupt != nil || l.st.Adopts() {
		return true, nil
	}
	workers, err := liveWorkers(ctx, l.t)
	session := SessionBrief{Agent: l.st.Agent, Workspace: l.st.Workspace, WorkspaceID: l.row.WorkspaceID}
	return slices.ContainsFunc(workers, func(w Worker) bool { return w.ID != workerID && w.MayRun(session) }), err
}

// Unblock says that the cause of a block is gone; the session goes on by itself.
func (s *Store) Unblock(ctx context.Context, sessionID string, cause journal.BlockCause) error {
	return s.write(ctx, sessionID, func(ctx context.Context, t *tx) error {
		l, err := t.lockSelect(ctx, sessionID, t.dialect().lock())
		if err != nil || l.st.Blocked == nil || l.st.Blocked.Cause != cause {
			return err
		}
		if err := l.append(ctx, journal.Server(), &journal.SessionUnblocked{Cause: cause}); err != nil {
			return err
		}
		l.wakeWork()
		return l.flush(ctx)
	})
}

// Blocked lists sessions that are blocked, whatever the cause, and have no
// claim. after is the last one of the page before.
func (s *Store) Blocked(ctx context.Context, after SessionBrief, limit int) ([]SessionBrief, error) {
	var out []SessionBrief
	err := s.read(ctx, func(q querier) error {
		return q.all(ctx, &out, "SELECT "+briefColumns+" FROM session WHERE base = 'blocked' AND execution_id IS NULL AND id > ? ORDER BY id LIMIT ?", after.ID, limit)
	})
	return out, err
}

// SessionBrief is what a worker must know before it claims.
type SessionBrief struct {
	ID          string `db:"id"`
	Agent       string `db:"agent"`
	Workspace   string `db:"workspace"`
	WorkspaceID string `db:"workspace_id"`
	RunnableAt  int64  `db:"runnable_at"` // since when it has had work; 0: it has none
	Follow      bool   `db:"follow"`      // a command that still runs may have to be followed or ended, whatever its worker lacks (COO-2 c, d)
}

const briefColumns = "id, agent, workspace, workspace_id, coalesce(runnable_at, 0) AS runnable_at, base IN ('running', 'stopping') AS follow"

// Brief reads what a worker must know before it claims. Code: not_found.
func (s *Store) Brief(ctx context.Context, sessionID string) (SessionBrief, error) {
	var out []SessionBrief
	err := s.read(ctx, func(q querier) error {
		return q.all(ctx, &out, "SELECT "+briefColumns+" FROM session WHERE id = ?", sessionID)
	})
	if err == nil && len(out) == 0 {
		err = journal.Errorf(journal.NotFound, "session not found: %s", sessionID)
	}
	if err != nil {
		return SessionBrief{}, err
	}
	return out[0], nil
}
