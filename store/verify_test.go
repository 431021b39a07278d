package store_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// rich makes a session that has something of everything, and leaves an outcome unknown.
func rich(t *testing.T, s *store.Store) *storetest.Run {
	t.Helper()
	r := storetest.MustRun(t, s, "w")
	storetest.MustAppend(t, s, r.Claim, "", &journal.StepStarted{TurnID: r.Turn, MessageID: journal.OrNil("msg_1")},
		&journal.MessageDelta{MessageID: "msg_1", Role: "agent", Part: journal.PartReasoning, Text: journal.T("hm")},
		&journal.MessageDelta{MessageID: "msg_1", Role: "agent", Part: journal.PartText, Text: journal.T("I ")},
		&journal.MessageDelta{MessageID: "msg_1", Role: "agent", Part: journal.PartText, Text: journal.T("will")},
		&journal.MessageCompleted{MessageID: "msg_1", Role: "agent", Part: journal.PartText, Text: journal.T("I will " + string(make40k()))},
		&journal.PlanUpdated{Plan: []journal.PlanItem{{Key: "a", Title: "b", State: journal.PlanDone}}})
	done := r.MustDispatched(t, s, journal.EffectEffect)
	code := 0
	storetest.MustAppend(t, s, r.Claim, journal.PhaseSafe, &journal.CallOutput{CallID: done, Stream: "stdout", Text: journal.T("out")},
		&journal.CallSettled{CallID: done, State: journal.CallSucceeded, ExitCode: &code, OutputBytes: 3})
	att := store.NewID("att")
	storetest.MustAppend(t, s, r.Claim, "", &journal.AttemptPrepared{AttemptID: att, TurnID: r.Turn, Model: "m"}, &journal.AttemptDispatched{AttemptID: att},
		&journal.AttemptSettled{AttemptID: att, Outcome: "stop", Usage: journal.Usage{InputTokens: 1, CostUSD: 0.1}})
	call, ask := r.MustAsk(t, s)
	_, err := s.Decide(t.Context(), r.Owner, ask, store.Decision{Reply: journal.ReplyOnce, Key: "k-" + ask})
	must(t, err)
	r.Claim = storetest.MustClaim(t, s, r.Session, "w")
	big := r.Propose(store.NewID("call"), journal.EffectRead)
	big.Input = []byte(`{"text":"` + string(make40k()) + `"}`)
	storetest.MustAppend(t, s, r.Claim, journal.PhaseUncertain, storetest.Dispatch(call, 1), big)
	storetest.MustLose(t, s, r.Claim)
	storetest.MustPrompt(t, s, r.Owner, r.Session, "wait", journal.Queue)
	gone := storetest.MustPrompt(t, s, r.Owner, r.Session, string(make40k()), journal.Steer)
	_, err = s.WithdrawPrompt(t.Context(), r.Owner, gone.ID)
	must(t, err)
	return r
}

// proves JRN-4
func TestVerify_WholeJournal(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		r, other := rich(t, s), rich(t, s)
		raw := db.SQL(t)
		sub := s.SubscribeWork()
		defer sub.Close()
		sub.Take()
		before := db.RowCounts(t, raw)
		report, err := s.Verify(t.Context(), store.VerifyOptions{})
		must(t, err)
		if !report.OK() || report.Sessions != 2 || report.Events != len(storetest.Events(t, s, r.Session))+len(storetest.Events(t, s, other.Session)) {
			t.Errorf("got %+v", report)
		}
		for _, c := range report.Checks { // a check that looks at nothing finds nothing
			if c.Checked == 0 {
				t.Errorf("%s looked at nothing", c.Name)
			}
		}
		wantSame(t, before, db.RowCounts(t, raw))
		if ids, resync := sub.Take(); len(ids) > 0 || resync {
			t.Errorf("it woke %v", ids)
		}
		one, err := s.Verify(t.Context(), store.VerifyOptions{Session: r.Session})
		must(t, err)
		if one.Sessions != 1 || !one.OK() {
			t.Errorf("got %+v", one)
		}
		_, err = s.Verify(t.Context(), store.VerifyOptions{Session: "ses_none"})
		storetest.WantCode(t, err, journal.NotFound)
	})
}

// proves JRN-4
func TestVerify_WhileItIsServed(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		admin := db.OpenUnchecked(t, func(o *store.Options) { o.Admin = true })
		r := storetest.MustRun(t, s, "w")
		done := make(chan error, 1)
		go func() {
			for i := range 40 {
				if _, err := s.SubmitPrompt(t.Context(), r.Owner, r.Session, fmt.Sprint(i), queue("x")); err != nil {
					done <- err
					return
				}
				if _, err := s.Append(t.Context(), r.Claim, store.Append{Drafts: storetest.Drafts(&journal.PlanUpdated{}), Phase: journal.PhaseSafe}); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		for running := true; running; {
			select {
			case err := <-done:
				must(t, err)
				running = false
			default:
			}
			report, err := admin.Verify(t.Context(), store.VerifyOptions{})
			must(t, err)
			if !report.OK() {
				t.Fatalf("got %+v", report)
			}
		}
	})
}

// proves JRN-1 JRN-2 JRN-4 JRN-6 LEA-10 REC-4 CAL-1 ADM-1
func TestVerify_NamesEachDamage(t *testing.T) {
	t.Parallel()
	type damage struct {
		name  string
		check string
		says  string
		plant func(t *testing.T, db *storetest.DB, raw *sql.DB, r *storetest.Run)
	}
	exec := func(query string) func(*testing.T, *storetest.DB, *sql.DB, *storetest.Run) {
		return func(t *testing.T, db *storetest.DB, raw *sql.DB, r *storetest.Run) {
			t.Helper()
			if n := db.MustExec(t, raw, query, r.Session); n == 0 {
				t.Fatal("nothing was damaged")
			}
		}
	}
	damages := []damage{
		{"a gap", store.CheckSequence, "follows #", exec("DELETE FROM event WHERE session_id = ? AND kind = 'plan.updated'")},
		{"a lost end", store.CheckSequence, "ends at", exec("UPDATE session SET next_seq = next_seq + 1 WHERE id = ?")},
		{"a changed body that a table repeats", store.CheckProjections, "text is", exec("UPDATE event SET data = replace(data, 'do it', 'do not') WHERE session_id = ? AND kind = 'prompt.admitted'")},
		{"a changed body that nothing repeats", store.CheckEvents, "isn't what was written", exec("UPDATE event SET data = replace(data, 'out', 'tuo') WHERE session_id = ? AND kind = 'call.output'")},
		{"a changed time", store.CheckEvents, "isn't what was written", exec("UPDATE event SET time = time + 1 WHERE session_id = ? AND kind = 'call.output'")},
		{"a body that can't be read", store.CheckEvents, "can't be read", exec("UPDATE event SET data = '[' WHERE session_id = ? AND kind = 'call.output'")},
		{"an event that can't follow", store.CheckEvents, "can't follow", exec("UPDATE event SET kind = 'turn.started' WHERE session_id = ? AND kind = 'plan.updated'")},
		{"an orphaned receipt", store.CheckReceipts, "names #999", exec("UPDATE receipt SET seq = 999 WHERE session_id = ? AND operation = 'prompts.create' AND seq = 2")},
		{"a receipt of something else", store.CheckReceipts, "says something else", exec("UPDATE receipt SET subject_id = 'inp_other' WHERE session_id = ? AND operation = 'prompts.create' AND seq = 2")},
		{"a decision's receipt of something else", store.CheckReceipts, "permissions.decide", exec("UPDATE receipt SET seq = seq + 1 WHERE session_id = ? AND operation = 'permissions.decide'")},
		{"a receipt of somebody else", store.CheckReceipts, "is of", exec("UPDATE receipt SET owner_id = 'usr_other' WHERE session_id = ? AND operation = 'sessions.create'")},
		{"a call's state", store.CheckCalls, "state is succeeded", exec("UPDATE call SET state = 'succeeded' WHERE session_id = ? AND state = 'unknown'")},
		{"a call from nowhere", store.CheckCalls, "isn't in the journal", exec("UPDATE call SET id = 'call_other' WHERE session_id = ? AND state = 'unknown'")},
		{"a missing blob", store.CheckBlobs, "is missing", exec("DELETE FROM blob WHERE session_id = ?")},
		{"a changed blob", store.CheckBlobs, "holds something else", exec("UPDATE blob SET data = 'x' WHERE session_id = ?")},
		{"a blob left over", store.CheckBlobs, "no event names", exec("INSERT INTO blob (session_id, sha256, data) VALUES (?, '" + journal.Hash("x") + "', 'x')")},
		{"a wrong projection", store.CheckProjections, "text is", exec("UPDATE message SET text = text || '!' WHERE session_id = ? AND part = 'reasoning'")},
		{"a missing projection", store.CheckProjections, "is missing", exec("DELETE FROM call_output WHERE session_id = ?")},
		{"a request's state", store.CheckProjections, "state is pending", exec("UPDATE request SET state = 'pending' WHERE session_id = ?")},
		{"an attempt's state", store.CheckProjections, "state is failed", exec("UPDATE attempt SET state = 'failed' WHERE session_id = ?")},
		{"a prompt's state", store.CheckProjections, "state is promoted", exec("UPDATE input SET state = 'promoted' WHERE session_id = ? AND state = 'admitted'")},
		{"dispatched without an intent", store.CheckIntents, "which nobody proposed", exec("UPDATE event SET kind = 'call.planned' WHERE session_id = ? AND kind = 'call.proposed'")},
		{"a stale state", store.CheckState, "state is", exec("UPDATE session SET state = replace(state, 'uncertain', 'queued') WHERE id = ?")},
		{"a stale column", store.CheckState, "base is queued", exec("UPDATE session SET base = 'queued' WHERE id = ?")},
		{"a stale deadline", store.CheckState, "runnable_at is 7", exec("UPDATE session SET runnable_at = 7 WHERE id = ?")},
		{"a lost recovery", store.CheckRecoveries, "is missing", exec("DELETE FROM recovery WHERE session_id = ?")},
		{"a recovery from nowhere", store.CheckRecoveries, "isn't in the journal", exec("INSERT INTO recovery (session_id, execution_id, seq, phase) VALUES (?, 'exe_x', 1, 'ready')")},
		{"an execution without a claim", store.CheckClaims, "its claim's none", exec("UPDATE session SET execution_id = 'exe_x' WHERE id = ?")},
		{"a claim without its execution", store.CheckClaims, "its execution is none", exec("INSERT INTO claim (session_id, execution_id, worker_id, state_folder_id, phase, claimed_at, expires_at, lease_ms) VALUES (?, 'exe_x', 'w', 'f', 'ready', 1, 2, 3)")},
	}
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.OpenUnchecked(t)
		raw := db.SQL(t)
		whole := rich(t, s)
		for _, d := range damages {
			r := rich(t, s)
			d.plant(t, db, raw, r)
			report, err := s.Verify(t.Context(), store.VerifyOptions{Session: r.Session, MaxFaults: 100})
			if err != nil {
				t.Errorf("%s: %v", d.name, err)
				continue
			}
			c := report.Check(d.check)
			text := strings.Join(c.Faults, "\n")
			if report.OK() || c.Found == 0 || !strings.Contains(text, d.says) || !strings.Contains(text, r.Session) {
				t.Errorf("%s: the check %q says %q, want %q; report %+v", d.name, d.check, text, d.says, report)
			}
		}
		report, err := s.Verify(t.Context(), store.VerifyOptions{Session: whole.Session})
		must(t, err)
		if !report.OK() {
			t.Errorf("the whole one: %+v", report)
		}
		report, err = s.Verify(t.Context(), store.VerifyOptions{MaxFaults: 1})
		must(t, err)
		if c := report.Check(store.CheckCalls); report.OK() || len(c.Faults) != 1 || c.Found < 2 {
			t.Errorf("%d faults are spelled out of %d", len(c.Faults), c.Found)
		}
	})
}

// A call that was lost without a trace is found: dispatched, and nobody holds it.
// proves LEA-6
func TestVerify_NamesWhatIsInTheAirWithoutAClaim(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.OpenUnchecked(t)
		r := storetest.MustRun(t, s, "w")
		r.MustDispatched(t, s, journal.EffectEffect)
		raw := db.SQL(t)
		db.MustExec(t, raw, "DELETE FROM claim WHERE session_id = ?", r.Session)
		db.MustExec(t, raw, "UPDATE session SET execution_id = NULL WHERE id = ?", r.Session)
		report, err := s.Verify(t.Context(), store.VerifyOptions{})
		must(t, err)
		if c := report.Check(store.CheckClaims); c.Found != 1 || !strings.Contains(c.Faults[0], "nobody holds a claim") {
			t.Errorf("got %+v", report)
		}
	})
}
