package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"holdfast/journal"
)

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
		n := len(a.Drafts)
		if onlyGivesUp(a.Drafts) { // and maybe no event is written
			n = 0
		}
		l, err := t.lockFenced(ctx, c, n)
		if err != nil {
			return err
		}
		if err := l.mayDispatch(a); err != nil {
			return err
		}
		for _, d := range a.Drafts {
			if l.isOver(d) {
				continue
			}
			if err := l.appendDraft(ctx, d); err != nil {
				return err
			}
		}
		if err := l.stopAsking(ctx); err != nil {
			return err
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

// isOver reports whether a draft gives up a request that waits for nobody any more: a
// person has answered it, or it was cancelled with a stop. Who is late writes no event
// (CAL-8); all else that it says stands.
func (l *locked) isOver(d journal.Draft) bool {
	b, ok := d.Body.(*journal.PermissionCancelled)
	return ok && !slices.Contains(l.st.Pending, b.ID)
}

// givesUp reports whether a draft may have been left out of an append that has committed.
func givesUp(d journal.Draft) bool {
	_, ok := d.Body.(*journal.PermissionCancelled)
	return ok
}

func onlyGivesUp(drafts []journal.Draft) bool {
	return !slices.ContainsFunc(drafts, func(d journal.Draft) bool { return !givesUp(d) })
}

// appended finds the events of an append that had committed although its answer was
// lost, but for what was over then.
func appended(ctx context.Context, q querier, sessionID string, drafts []journal.Draft) ([]journal.Event, error) {
	for i, d := range drafts {
		var seq int64
		err := q.get(ctx, &seq, "SELECT seq FROM event WHERE id = ?", d.ID)
		switch {
		case err == nil:
			return eventsAfter(ctx, q, sessionID, seq-1, len(drafts)-i)
		case !errors.Is(err, sql.ErrNoRows):
			return nil, err
		case !givesUp(d):
			return nil, nil
		}
	}
	return nil, nil
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
