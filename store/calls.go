package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"

	"holdfast/journal"
)

func callsWhere(ctx context.Context, q querier, where string, args ...any) ([]*journal.Call, error) {
	var rows []callRow
	if err := q.all(ctx, &rows, "SELECT "+callColumns+" FROM call WHERE "+where, args...); err != nil {
		return nil, err
	}
	out := make([]*journal.Call, 0, len(rows))
	for i := range rows {
		c, err := rows[i].call()
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// MaxCalls bounds one page of calls: each may have an input of 32 KiB.
const MaxCalls = 100

// Calls lists the calls of the owner's session in the order of proposal, those
// proposed after a seq (0: from the first), at most MaxCalls. A page that isn't
// full is the last. Code: not_found.
func (s *Store) Calls(ctx context.Context, owner, sessionID string, after int64) ([]*journal.Call, error) {
	var out []*journal.Call
	err := s.read(ctx, func(q querier) error {
		if _, _, err := head(ctx, q, owner, sessionID); err != nil {
			return err
		}
		var err error
		if out, err = callsWhere(ctx, q, "session_id = ? AND proposed_seq > ? ORDER BY proposed_seq LIMIT ?", sessionID, after, MaxCalls); err != nil {
			return err
		}
		return liveOutput(ctx, q, out)
	})
	return out, err
}

// liveOutput counts what calls that still run have written so far.
func liveOutput(ctx context.Context, q querier, calls []*journal.Call) (err error) {
	for _, c := range calls {
		if c.State != journal.CallIsDispatched {
			continue
		}
		if c.OutputBytes, c.DroppedBytes, err = countOutput(ctx, q, c.ID); err != nil {
			return err
		}
	}
	return nil
}

// Call reads one call of the owner's. Code: not_found.
func (s *Store) Call(ctx context.Context, owner, callID string) (*journal.Call, error) {
	var out *journal.Call
	err := s.read(ctx, func(q querier) error {
		_, err := sessionOf(ctx, q, owner, "call", callID, "call")
		if err != nil {
			return err
		}
		if out, err = loadCall(ctx, q, callID); err != nil {
			return err
		}
		if err := wholeInput(ctx, q, out); err != nil {
			return err
		}
		return liveOutput(ctx, q, []*journal.Call{out})
	})
	return out, err
}

// CallResolution is a person's word on an unknown call.
type CallResolution struct {
	Outcome  journal.Verdict
	Evidence string
	Then     journal.Then
}

// Check refuses a resolution that says too little (CAL-3). Code: unprocessable.
func (r CallResolution) Check() error {
	switch r.Outcome {
	case journal.Happened, journal.DidNotHappen, journal.InPart:
		if strings.TrimSpace(r.Evidence) == "" {
			return journal.Errorf(journal.Unprocessable, "Say how you know: evidence is needed unless you cannot tell. Nothing was recorded.").Typed("evidence-missing")
		}
	case journal.CannotTell:
	default:
		return journal.Errorf(journal.Unprocessable, "outcome must be happened, did_not_happen, in_part or cannot_tell. Nothing was recorded.").Typed("unknown-outcome")
	}
	return checkThen(r.Then, r.Evidence)
}

func checkThen(then journal.Then, text string) error {
	if then != journal.ThenContinue && then != journal.ThenStay {
		return journal.Errorf(journal.Unprocessable, "then must be continue or stay. Nothing was recorded.").Typed("unknown-then")
	}
	if !fitsBeside(text) {
		return journal.Errorf(journal.Unprocessable, "The evidence must be at most 16 KiB of text without NUL; a control character counts as three bytes. Nothing was recorded.").Typed("bad-evidence")
	}
	return nil
}

// ResolveCall records what the owner found out about an unknown call; the last
// resolution decides whether the session goes on (CAL-6, PRO-6).
// Codes: not_found, unprocessable, conflict if it was resolved already or isn't unknown.
func (s *Store) ResolveCall(ctx context.Context, owner, callID string, r CallResolution) (*journal.Call, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	r.Evidence = journal.LineEnds(r.Evidence)
	session, err := s.sessionOf(ctx, owner, "call", callID, "call")
	if err != nil {
		return nil, err
	}
	var out *journal.Call
	err = s.write(ctx, session, func(ctx context.Context, t *tx) error {
		l, err := t.lockOwned(ctx, session, owner)
		if err != nil {
			return err
		}
		if err := l.append(ctx, journal.User(owner), &journal.CallResolved{CallID: callID, Outcome: r.Outcome, By: owner, Evidence: r.Evidence, Then: r.Then}); err != nil {
			return err
		}
		if err := l.afterResolution(ctx, owner, r.Then); err != nil {
			return err
		}
		if out, err = loadCall(ctx, t, callID); err != nil {
			return err
		}
		err = l.flush(ctx)
		Crash("resolve.before_commit")
		return err
	})
	Crash("resolve.after_commit")
	return out, err
}

// afterResolution lets the last resolution decide: stay ends the open turn,
// continue goes on with it, or with a new turn if it has ended (PRO-6).
func (l *locked) afterResolution(ctx context.Context, owner string, then journal.Then) error {
	defer l.wakeWork()
	if l.st.Unknowns() > 0 || l.st.Turn == nil {
		return nil
	}
	switch {
	case then == journal.ThenStay && l.st.TurnOpen() && l.st.Adopts(): // the claim ends it first (COO-4)
		if l.st.Interrupt != nil {
			return nil
		}
		return l.append(ctx, journal.User(owner), &journal.InterruptRequested{By: owner, Mode: journal.InterruptNow})
	case then == journal.ThenStay && l.st.TurnOpen():
		return l.endTurn(ctx, journal.User(owner), journal.TurnEnded{Outcome: journal.Stopped, Reason: "stay"})
	case then == journal.ThenContinue && !l.st.TurnOpen() && l.st.Turn.Outcome != journal.Completed && !l.st.Archived:
		return l.continueTurn(ctx, owner, &journal.ContinuationRequested{})
	}
	return nil
}

// Attempt reads one attempt of the owner's. Code: not_found.
func (s *Store) Attempt(ctx context.Context, owner, id string) (*journal.Attempt, error) {
	var out *journal.Attempt
	err := s.read(ctx, func(q querier) error {
		_, err := sessionOf(ctx, q, owner, "attempt", id, "attempt")
		if err != nil {
			return err
		}
		out, err = loadAttempt(ctx, q, id)
		return err
	})
	return out, err
}

// AttemptResolution is a person's word on an unknown attempt (ATT-6).
type AttemptResolution struct {
	Outcome  journal.AttemptVerdict
	Evidence string
	Then     journal.Then
}

// ResolveAttempt records a person's word on an unknown attempt. Codes as ResolveCall.
func (s *Store) ResolveAttempt(ctx context.Context, owner, attemptID string, r AttemptResolution) (*journal.Attempt, error) {
	if r.Outcome != journal.AttemptRetry && r.Outcome != journal.AttemptAbandon {
		return nil, journal.Errorf(journal.Unprocessable, "outcome must be retry or abandon. Nothing was recorded.").Typed("unknown-outcome")
	}
	if err := checkThen(r.Then, r.Evidence); err != nil {
		return nil, err
	}
	session, err := s.sessionOf(ctx, owner, "attempt", attemptID, "attempt")
	if err != nil {
		return nil, err
	}
	var out *journal.Attempt
	err = s.write(ctx, session, func(ctx context.Context, t *tx) error {
		l, err := t.lockOwned(ctx, session, owner)
		if err != nil {
			return err
		}
		if err := l.append(ctx, journal.User(owner), &journal.AttemptResolved{AttemptID: attemptID, Outcome: r.Outcome, By: owner, Then: r.Then}); err != nil {
			return err
		}
		if err := l.afterResolution(ctx, owner, r.Then); err != nil {
			return err
		}
		if out, err = loadAttempt(ctx, t, attemptID); err != nil {
			return err
		}
		return l.flush(ctx)
	})
	return out, err
}

// SameAsUnknown tells whether a call with this tool and input has had an unknown
// outcome in the session: another one always asks (CAL-6).
func (s *Store) SameAsUnknown(ctx context.Context, sessionID, tool, inputSHA256 string) (bool, error) {
	var n int
	err := s.read(ctx, func(q querier) error {
		return q.get(ctx, &n, "SELECT count(*) FROM call WHERE session_id = ? AND tool = ? AND input_sha256 = ? AND state = 'unknown'", sessionID, tool, inputSHA256)
	})
	return n > 0, err
}

// wholeInput puts the text of a long input in the place of its reference: who is
// asked to allow a call reads all of it.
func wholeInput(ctx context.Context, q querier, c *journal.Call) error {
	if c == nil || len(c.Input) > 200 {
		return nil
	}
	var ref struct {
		Blob  string `json:"blob"`
		Bytes int64  `json:"bytes"`
	}
	if err := json.Unmarshal(c.Input, &ref); err != nil || len(ref.Blob) != 64 || ref.Bytes == 0 {
		return nil //nolint:nilerr // an input of its own, which may have any form
	}
	var data []byte
	err := q.get(ctx, &data, "SELECT data FROM blob WHERE session_id = ? AND sha256 = ?", c.SessionID, ref.Blob)
	if errors.Is(err, sql.ErrNoRows) { // one that only looks like a reference
		return nil
	}
	if err == nil && json.Valid(data) {
		c.Input = data
	}
	return err
}
