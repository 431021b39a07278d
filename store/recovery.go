package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"holdfast/journal"
)

// Recovery is what a sweeper brings: the claim as it saw it, and what it found
// out about the calls in flight.
type Recovery struct {
	Claim    journal.Claim
	Evidence map[string][]journal.Evidence // by call
	Found    map[string]Found              // by call: what its shim says, beside the evidence
	// Agent says that the process of the session's agent runs, or has left something to
	// be read: its attempt, and the calls that are the agent's own, are adopted with it.
	Agent bool
	// AgentEnded says that it runs no more.
	AgentEnded bool
	// Failed says that the execution wasn't lost with its server: it could not go on.
	// That counts for REC-11 although its agent would be adopted.
	Failed bool
	// By is the state folder of who recovers. What still may run under the shims of
	// another folder is left to that folder's workers while one of them lives: they
	// alone can ask. "": whoever it is has asked, of commands; an agent's process may run.
	By string

	unbegun map[string]bool // by call: it was not let run, or its agent waits for the answer whether it may

	givenUp string // why the process of its agent is: whoever keeps it ends it
}

// Found is what became of a dispatched call, as its shim says. Neither: nobody
// knows. The outcome of an effect is then unknown.
type Found struct {
	Adopted bool                 // it still runs, kept by the state folder of the claim (REC-10)
	Settled *journal.CallSettled // it has ended, and this is how (CAL-5)
}

// became is what the call of a lost execution becomes; "" if it stays as it is,
// to be run again (CAL-4).
func (r *Recovery) became(st *journal.State, c journal.OpenCall) journal.CallState {
	if c.State != journal.CallIsDispatched {
		return ""
	}
	if st.OfAttempt(c) {
		switch {
		case r.Agent:
			return ""
		case c.Effect == journal.EffectRead, r.unbegun[c.ID]:
			return journal.CallCancelled
		}
		return journal.CallIsUnknown
	}
	switch f := r.Found[c.ID]; {
	case f.Adopted:
		return journal.CallIsAdopted
	case f.Settled != nil:
		return f.Settled.State
	case c.Effect == journal.EffectEffect:
		return journal.CallIsUnknown
	}
	return ""
}

// Recover concludes an execution whose lease has expired (REC-2 to REC-6): the
// sweeper's door. It is guarded by the claim being the same, still expired and in
// the same phase, and this folder's to recover (Recovery.By); else nothing is
// written and the answer is conflict. Recovering one twice is done once. recovered tells whether this call did it; then the
// session is woken.
func (s *Store) Recover(ctx context.Context, r Recovery) (recovered bool, err error) {
	c := r.Claim
	err = s.write(ctx, c.SessionID, func(ctx context.Context, t *tx) error {
		recovered = false
		l, now, err := t.lockExpired(ctx, c)
		if err != nil {
			return err
		}
		if now == nil {
			return l.alreadyRecovered(ctx, c.ExecutionID)
		}
		Crash("sweep.locked")
		if err := l.recover(ctx, now, r); err != nil {
			return err
		}
		Crash("sweep.updated")
		recovered = true
		l.wakeWork()
		return l.flush(ctx)
	})
	return recovered, err
}

// lockExpired takes the session's lock for who concludes an expired claim, if it
// is as it was seen and still expired; else the answer is conflict. No claim:
// the session has another one now, or none.
func (t *tx) lockExpired(ctx context.Context, c journal.Claim) (*locked, *journal.Claim, error) {
	// A row that somebody has locked belongs to somebody who writes: it is alive.
	l, err := t.lockSelect(ctx, c.SessionID, t.dialect().lockOrSkip())
	if journal.Is(err, journal.NotFound) {
		return nil, nil, claimChanged(c.ExecutionID)
	}
	if err != nil {
		return nil, nil, err
	}
	now, err := loadClaim(ctx, t, c.SessionID)
	if err != nil {
		return nil, nil, err
	}
	if now == nil || now.ExecutionID != c.ExecutionID {
		return l, nil, nil
	}
	if now.ExpiresAt > l.now || now.Phase != c.Phase || now.AssistantMessageID != c.AssistantMessageID {
		return nil, nil, claimChanged(c.ExecutionID)
	}
	return l, now, nil
}

// RecoverOutput appends what the spool of a finished call still held when its
// execution was lost, with the offset up to which it was read, before Recover
// concludes it. It is guarded as Recover is, and conflict means as there that
// nothing was written. The drafts are call.output of that call alone, each
// behind what is there already. Whoever doesn't know whether it was written asks
// SpoolOffset and goes on from there. Codes: conflict, unavailable.
func (s *Store) RecoverOutput(ctx context.Context, c journal.Claim, drafts []journal.Draft, sp Spool) error {
	return s.write(ctx, c.SessionID, func(ctx context.Context, t *tx) error {
		l, now, err := t.lockExpired(ctx, c)
		if err != nil {
			return err
		}
		if now == nil {
			return claimChanged(c.ExecutionID)
		}
		end, _, err := countOutput(ctx, t, sp.CallID)
		if err != nil {
			return err
		}
		for _, d := range drafts {
			piece, ok := d.Body.(*journal.CallOutput)
			if !ok || piece.CallID != sp.CallID || piece.Offset < end {
				return journal.Errorf(journal.Conflict, "This is not output of the call %s behind byte %d.", sp.CallID, end).Typed("output-order")
			}
			end = piece.Offset + int64(len(piece.Text.S))
			if err := l.appendDraft(ctx, d); err != nil {
				return err
			}
		}
		if err := l.readTo(ctx, sp); err != nil {
			return err
		}
		return l.flush(ctx)
	})
}

func claimChanged(executionID string) error {
	return journal.Errorf(journal.Conflict, "recovery execution claim changed: %s", executionID).Typed("claim-changed")
}

// alreadyRecovered is REC-5: a duplicate is done if its row exists.
func (l *locked) alreadyRecovered(ctx context.Context, executionID string) error {
	var seq int64
	err := l.t.get(ctx, &seq, "SELECT seq FROM recovery WHERE session_id = ? AND execution_id = ?", l.row.ID, executionID)
	if errors.Is(err, sql.ErrNoRows) {
		return claimChanged(executionID)
	}
	return err
}

// recover concludes one expired claim inside the caller's transaction.
func (l *locked) recover(ctx context.Context, c *journal.Claim, r Recovery) error {
	if others, err := l.othersMayAsk(ctx, c, r.By); err != nil || others {
		return cmp.Or(err, claimChanged(c.ExecutionID))
	}
	if err := l.deleteExpired(ctx, c); err != nil {
		return err
	}
	r.Agent = r.Agent && l.st.Process != nil && l.st.Process.Folder == c.StateFolderID
	var given *journal.AgentProcess
	if r.Agent && r.Failed && l.st.Recoveries+1 >= journal.MaxRecoveries {
		given, r.Agent, r.givenUp = l.st.Process, false, "what it said could not be dealt with"
	}
	r.unbegun = map[string]bool{}
	for _, call := range l.st.Calls {
		began, err := l.began(ctx, call)
		if err != nil {
			return err
		}
		r.unbegun[call.ID] = !began
	}
	superseded := c.AssistantMessageID != "" && c.AssistantMessageID != l.st.LatestAssistant
	if c.Phase != journal.PhaseSafe && !superseded {
		if err := l.stepRecovered(ctx, c, r); err != nil {
			return err
		}
	} else if err := l.lose(ctx, c, r); err != nil {
		return err
	}
	if p := l.st.Process; given != nil && p != nil && p.ID == given.ID { // nothing of it was in flight
		if err := l.append(ctx, journal.Server(), &journal.AgentEnded{ProcessID: given.ID, Reason: r.givenUp}); err != nil {
			return err
		}
	}
	if err := l.carryOut(ctx); err != nil {
		return err
	}
	return l.blockIfRepeated(ctx)
}

// deleteExpired removes the claim on condition that it is still what was seen and still expired.
func (l *locked) deleteExpired(ctx context.Context, c *journal.Claim) error {
	d := l.t.dialect()
	n, err := l.t.exec(ctx, "DELETE FROM claim WHERE session_id = ? AND execution_id = ? AND phase = ? AND coalesce(assistant_message_id, '') = ? AND expires_at <= "+d.now(),
		c.SessionID, c.ExecutionID, string(c.Phase), c.AssistantMessageID, d.nowArg())
	if err != nil {
		return err
	}
	if n != 1 {
		return claimChanged(c.ExecutionID)
	}
	_, err = l.t.exec(ctx, "UPDATE session SET execution_id = NULL, epoch = epoch + 1 WHERE id = ? AND execution_id = ?", c.SessionID, c.ExecutionID)
	l.row.ExecutionID = sql.NullString{}
	return err
}

// stepRecovered writes the one event of REC-3 and REC-4 and what follows from it.
func (l *locked) stepRecovered(ctx context.Context, c *journal.Claim, r Recovery) error {
	body := &journal.StepRecovered{
		ExecutionID: c.ExecutionID, Phase: c.Phase, AssistantMessageID: journal.OrNil(c.AssistantMessageID),
		RecoveryMessageID: c.AssistantMessageID, ContinuationMessageID: NewID("msg"),
		Calls: []journal.RecoveredCall{}, Attempts: []journal.RecoveredAttempt{}, Failed: r.Failed, AliveAt: c.AliveAt,
	}
	if body.RecoveryMessageID == "" {
		body.RecoveryMessageID = NewID("msg")
	}
	for _, call := range l.st.Calls {
		if !r.unbegun[call.ID] { // also of one that its agent asks for once more
			call.State = journal.CallIsDispatched
		}
		if became := r.became(&l.st, call); became != "" {
			body.Calls = append(body.Calls, journal.RecoveredCall{CallID: call.ID, Became: became})
		}
	}
	for _, id := range l.st.Attempts {
		a, err := loadAttempt(ctx, l.t, id)
		if err != nil {
			return err
		}
		became, ended := journal.AttemptIsUnknown, false
		switch {
		case a.State == journal.AttemptIsPrepared:
			became = journal.AttemptHasFailed
		case r.Agent:
			became, ended = journal.AttemptIsAdopted, r.AgentEnded
		}
		body.Attempts = append(body.Attempts, journal.RecoveredAttempt{AttemptID: id, Became: became, Ended: ended})
	}
	if err := l.append(ctx, journal.Server(), body); err != nil {
		return err
	}
	return l.lose(ctx, c, r)
}

// lose marks what a lost execution had in the air. What still runs is adopted,
// what has ended is settled by its exit record. Else effects and attempts become
// unknown; what may be run again stays dispatched (CAL-4, CAL-5, REC-10).
func (l *locked) lose(ctx context.Context, c *journal.Claim, r Recovery) error {
	for _, call := range l.st.Calls {
		if l.st.OfAttempt(call) {
			continue
		}
		if err := l.loseCall(ctx, c, r, call); err != nil {
			return err
		}
	}
	if l.st.Process != nil && l.st.Process.AdoptedAt > 0 && r.Agent {
		return nil
	}
	return l.loseAgent(ctx, r.By, r.givenUp)
}

// loseAgent concludes what the session's agent had in flight, which nobody follows
// any more. keeper and why are as of endAttempts.
func (l *locked) loseAgent(ctx context.Context, keeper, why string) error {
	var evidence []journal.Evidence
	if p := l.st.Process; p != nil && p.Folder != keeper && len(l.st.Attempts) > 0 {
		lost, err := lostAgent(ctx, l.t, l.row.ID, p.ID)
		if err != nil {
			return err
		}
		evidence = append(evidence, lost.Evidence())
	}
	if err := l.loseAgentCalls(ctx, evidence); err != nil {
		return err
	}
	return l.endAttempts(ctx, keeper, why)
}

// loseAgentCalls concludes the calls that are the agent's own when it is gone:
// what it asked for did not run, and what it did is unknown.
func (l *locked) loseAgentCalls(ctx context.Context, evidence []journal.Evidence) error {
	const why = "the agent is gone"
	for _, call := range l.st.Calls {
		if !l.st.OfAttempt(call) {
			continue
		}
		pending, err := requestsWhere(ctx, l.t, "call_id = ? AND state = 'pending'", call.ID)
		if err != nil {
			return err
		}
		for _, r := range pending {
			if err := l.append(ctx, journal.Server(), &journal.PermissionCancelled{ID: r.ID, Reason: why}); err != nil {
				return err
			}
		}
		if err := l.endCall(ctx, call, why, evidence); err != nil {
			return err
		}
	}
	return nil
}

func (l *locked) loseCall(ctx context.Context, c *journal.Claim, r Recovery, call journal.OpenCall) error {
	switch r.became(&l.st, call) {
	case "":
		if call.Adopted != "" {
			return l.letGo(ctx, call.ID)
		}
		return nil
	case journal.CallIsAdopted:
		return l.adopt(ctx, call.ID, c.StateFolderID)
	case journal.CallIsUnknown:
		return l.unknown(ctx, call.ID, r.Evidence[call.ID])
	default:
		settled := *r.Found[call.ID].Settled
		settled.CallID = call.ID
		return l.append(ctx, journal.Server(), &settled)
	}
}

// blockIfRepeated is REC-11: a session that kills its server can't do so for ever.
func (l *locked) blockIfRepeated(ctx context.Context) error {
	if l.st.Recoveries < journal.MaxRecoveries || l.st.Blocked != nil || l.st.Adopts() {
		return nil
	}
	return l.append(ctx, journal.Server(), &journal.SessionBlocked{
		Cause: journal.BlockRecovery, UnblockedBy: "continue",
		Detail: "The server was lost, or failed, three times here without a step being finished in between. It is not tried again by itself.",
	})
}

// Unsettled lists the calls of a session that are dispatched while an execution
// holds it, for who must end their processes before anything is concluded of it
// (COO-7). Once it is concluded the list is empty: what is dispatched then is
// another's.
func (s *Store) Unsettled(ctx context.Context, sessionID, executionID string) ([]*journal.Call, error) {
	var out []*journal.Call
	err := s.read(ctx, func(q querier) error {
		var err error
		out, err = callsWhere(ctx, q, "session_id = ? AND state = 'dispatched' AND EXISTS (SELECT 1 FROM claim WHERE claim.session_id = ? AND execution_id = ?) ORDER BY proposed_seq", sessionID, sessionID, executionID)
		return err
	})
	return out, err
}

// Unknowns counts the calls and attempts of a session whose outcome is unknown. Code: not_found.
func (s *Store) Unknowns(ctx context.Context, sessionID string) (int, error) {
	n := 0
	err := s.read(ctx, func(q querier) error {
		var row sessionRow
		err := q.get(ctx, &row, "SELECT "+sessionColumns+" FROM session WHERE id = ?", sessionID)
		if errors.Is(err, sql.ErrNoRows) {
			return journal.Errorf(journal.NotFound, "session not found: %s", sessionID)
		}
		if err != nil {
			return err
		}
		st, err := row.state()
		n = st.Unknowns()
		return err
	})
	return n, err
}

// Evidence adds late evidence to an unknown call, and can do nothing else: the
// fourth door. It is for a worker that comes back after its session was
// recovered. Codes: not_found, conflict if the call isn't unknown.
func (s *Store) Evidence(ctx context.Context, sessionID, callID string, e journal.Evidence) error {
	return s.write(ctx, sessionID, func(ctx context.Context, t *tx) error {
		l, err := t.lockSelect(ctx, sessionID, t.dialect().lock())
		if err != nil {
			return err
		}
		if err := l.append(ctx, journal.Server(), &journal.CallEvidence{CallID: callID, Evidence: e}); err != nil {
			return err
		}
		return l.flush(ctx)
	})
}
