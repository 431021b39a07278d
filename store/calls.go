package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
		if !c.Began() {
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
		if out, err = loadCall(ctx, t, callID); err != nil {
			return err
		}
		if err := l.foundOfPlan(ctx, out); err != nil {
			return err
		}
		if err := l.afterResolution(ctx, owner, r.Then); err != nil {
			return err
		}
		err = l.flush(ctx)
		Crash("resolve.before_commit")
		return err
	})
	Crash("resolve.after_commit")
	return out, err
}

// foundOfPlan says in the plan what a person found of the step that a call is of. Who
// made the plan can't, unless its turn goes on.
func (l *locked) foundOfPlan(ctx context.Context, c *journal.Call) error {
	i := slices.IndexFunc(l.st.Plan, func(p journal.PlanItem) bool {
		return c.AttemptID == "" && (c.Key == p.Key || strings.HasPrefix(c.Key, p.Key+"#")) // the step's key, for the nth time
	})
	if i < 0 {
		return nil
	}
	plan := slices.Clone(l.st.Plan)
	if plan[i].State, plan[i].Found = journal.PlanUnknown, c.Resolution.Outcome; c.Resolution.Outcome == journal.Happened {
		plan[i].State, plan[i].Found = journal.PlanDone, ""
	}
	if plan[i] == l.st.Plan[i] {
		return nil
	}
	return l.append(ctx, journal.Server(), &journal.PlanUpdated{Plan: plan})
}

// afterResolution lets the last resolution decide: stay ends the open turn,
// continue goes on with it, or with a new turn if it has ended (PRO-6): of one that
// was stopped for a prompt, with that prompt, unless its own message is to be sent again.
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
		return l.interrupt(ctx, owner, &journal.InterruptRequested{By: owner, Mode: journal.InterruptNow})
	case then == journal.ThenStay && l.st.TurnOpen():
		return l.endTurn(ctx, journal.User(owner), journal.TurnEnded{Outcome: journal.Stopped, Reason: "stay"})
	case then == journal.ThenContinue && !l.st.TurnOpen() && l.st.Turn.Outcome != journal.Completed && !l.st.Archived:
		if again, err := l.sentAgain(ctx); err != nil || (!again && !l.st.Held && l.st.Sends()) {
			return err
		}
		return l.continueTurn(ctx, owner, &journal.ContinuationRequested{})
	}
	return nil
}

// sentAgain reports whether a person wants the last message of the last turn sent once
// more (ATT-6). One of an earlier message of it was carried out before.
func (l *locked) sentAgain(ctx context.Context) (bool, error) {
	var n int
	err := l.t.get(ctx, &n, "SELECT count(*) FROM attempt WHERE session_id = ? AND turn_id = ? AND resolution = ? AND seq = (SELECT max(seq) FROM attempt WHERE session_id = ? AND turn_id = ?)", l.row.ID, l.st.Turn.ID, string(journal.AttemptRetry), l.row.ID, l.st.Turn.ID)
	return n > 0, err
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

// saidBefore adds to the refusal of a second word on an attempt what the first was, whose,
// and when.
func (t *tx) saidBefore(ctx context.Context, attemptID string, refused error) error {
	var e *journal.Error
	if !errors.As(refused, &e) || e.Slug() != "already-resolved" {
		return refused
	}
	a, err := loadAttempt(ctx, t, attemptID)
	if err != nil {
		return err
	}
	var rows []eventRow
	if err := t.all(ctx, &rows, "SELECT "+eventColumns+" FROM event"+t.dialect().indexed("event_asked")+" WHERE session_id = ? AND seq > ? AND kind IN ("+askedKinds+") AND kind = 'attempt.resolved' ORDER BY seq", a.SessionID, a.Seq); err != nil {
		return err
	}
	for i := range rows {
		ev := rows[i].event()
		body, err := ev.Decode()
		if err != nil {
			return err
		}
		if was, ok := body.(*journal.AttemptResolved); ok && was.AttemptID == attemptID {
			return e.With("resolution", map[string]any{"outcome": was.Outcome, "by": was.By, "at": ev.Time, "evidence": was.Evidence})
		}
	}
	return refused
}

// ResolveAttempt records a person's word on an unknown attempt. Codes as ResolveCall.
func (s *Store) ResolveAttempt(ctx context.Context, owner, attemptID string, r AttemptResolution) (*journal.Attempt, error) {
	if r.Outcome != journal.AttemptRetry && r.Outcome != journal.AttemptAbandon {
		return nil, journal.Errorf(journal.Unprocessable, "outcome must be retry or abandon. Nothing was recorded.").Typed("unknown-outcome")
	}
	if err := checkThen(r.Then, r.Evidence); err != nil {
		return nil, err
	}
	r.Evidence = journal.LineEnds(r.Evidence)
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
		if err := l.append(ctx, journal.User(owner), &journal.AttemptResolved{AttemptID: attemptID, Outcome: r.Outcome, By: owner, Evidence: r.Evidence, Then: r.Then}); err != nil {
			return t.saidBefore(ctx, attemptID, err)
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

const sameAsUnknown = "SELECT count(*) FROM call WHERE session_id = ? AND tool = ? AND input_sha256 = ? AND state = 'unknown'"

// SameAsUnknown tells whether a call with this tool and input has had an unknown
// outcome in the session: another one always asks (CAL-6).
func (s *Store) SameAsUnknown(ctx context.Context, sessionID, tool, inputSHA256 string) (bool, error) {
	var n int
	err := s.read(ctx, func(q querier) error {
		return q.get(ctx, &n, sameAsUnknown, sessionID, tool, inputSHA256)
	})
	return n > 0, err
}

// lostBefore is the newest other call of a call's session with the same tool and input
// whose outcome was lost, as it stands now; nil: there is none.
func lostBefore(ctx context.Context, q querier, c *journal.Call) (*journal.Call, error) {
	if c == nil {
		return nil, nil //nolint:nilnil // none of what isn't at hand
	}
	list, err := callsWhere(ctx, q, "session_id = ? AND tool = ? AND input_sha256 = ? AND state = 'unknown' AND id <> ? ORDER BY proposed_seq DESC LIMIT 1", c.SessionID, c.Tool, c.InputSHA256, c.ID)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

// ErrNoInput says that the blob is missing that the input of a call lies in.
var ErrNoInput = errors.New("it is missing")

// WholeInput puts the text of a long input in the place of its reference, which the fold
// of a turn has; so for what its agent said of it later. ErrNoInput: the blob of one is
// missing, and what refers to it stays.
func (s *Store) WholeInput(ctx context.Context, c *journal.Call) error {
	return s.read(ctx, func(q querier) error {
		if err := wholeInput(ctx, q, c); err != nil {
			return err
		}
		if ref, elsewhere := c.Elsewhere(); elsewhere {
			return fmt.Errorf("the input of %s lies in the blob %s: %w", c.ID, ref.Blob, ErrNoInput)
		}
		return nil
	})
}

// wholeInput puts the text of a long input in the place of its reference: who is
// asked to allow a call reads all of it. So for what its agent said of it later.
func wholeInput(ctx context.Context, q querier, c *journal.Call) (err error) {
	if c == nil {
		return nil
	}
	if c.Input, err = whole(ctx, q, c.SessionID, c.Input, c.InputSHA256); err == nil && c.Later != nil {
		c.Later, err = whole(ctx, q, c.SessionID, c.Later, "")
	}
	return err
}

// wholeInputs is wholeInput of several.
func wholeInputs(ctx context.Context, q querier, calls []*journal.Call) error {
	for _, c := range calls {
		if err := wholeInput(ctx, q, c); err != nil {
			return err
		}
	}
	return nil
}

// whole gives an input as it was said. Where the blob is missing the reference stays.
func whole(ctx context.Context, q querier, session string, input json.RawMessage, sha256 string) (json.RawMessage, error) {
	ref, elsewhere := journal.InputBlob(input, sha256)
	if !elsewhere {
		return input, nil
	}
	var data []byte
	err := q.get(ctx, &data, "SELECT data FROM blob WHERE session_id = ? AND sha256 = ?", session, ref.Blob)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return input, nil
	case err == nil && json.Valid(data):
		return data, nil
	}
	return input, err
}
