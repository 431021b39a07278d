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
	_, err = s.Append(t.Context(), r.Claim, store.Append{
		Drafts: storetest.Drafts(storetest.Dispatch(call, 1), big), Phase: journal.PhaseUncertain, Spool: &store.Spool{CallID: call, N: 1, StateFolderID: "fld_w"},
	})
	must(t, err)
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
		{"a prompt without its receipt", store.CheckReceipts, "its receipt is missing", exec("DELETE FROM receipt WHERE session_id = ? AND operation = 'prompts.create' AND seq = 2")},
		{"a session without its receipt", store.CheckReceipts, "#1 (session.created) was accepted", exec("DELETE FROM receipt WHERE session_id = ? AND operation = 'sessions.create'")},
		{"a prompt's hash", store.CheckReceipts, "isn't that of #2", exec("UPDATE receipt SET payload_sha256 = '" + journal.Hash("x") + "' WHERE session_id = ? AND operation = 'prompts.create' AND seq = 2")},
		{"a long prompt's hash", store.CheckReceipts, "which isn't that of #", exec("UPDATE receipt SET payload_sha256 = '" + journal.Hash("x") + "' WHERE session_id = ? AND subject_id IN (SELECT id FROM input WHERE state = 'withdrawn')")},
		{"a decision's hash", store.CheckReceipts, "isn't that of", exec("UPDATE receipt SET payload_sha256 = '" + journal.Hash("x") + "' WHERE session_id = ? AND operation = 'permissions.decide'")},
		{"no hash at all", store.CheckReceipts, "has the hash x", exec("UPDATE receipt SET payload_sha256 = 'x' WHERE session_id = ? AND operation = 'sessions.create'")},
		{"a receipt's time", store.CheckReceipts, "is of 7", exec("UPDATE receipt SET created_at = 7 WHERE session_id = ? AND operation = 'sessions.create'")},
		{"another preset", store.CheckState, "preset is workspace", exec("UPDATE session SET preset = 'workspace' WHERE id = ?")},
		{"other rules", store.CheckState, "rules is", exec(`UPDATE session SET rules = '[{"permission":"shell","pattern":"*","action":"allow"}]' WHERE id = ?`)},
		{"another policy", store.CheckState, "policy is", exec("UPDATE session SET policy = replace(policy, 'false', 'true') WHERE id = ?")},
		{"another version of the rules", store.CheckState, "rules_version is 7", exec("UPDATE session SET rules_version = 7 WHERE id = ?")},
		{"another workspace's mark", store.CheckState, "workspace_id is wsp_2", exec("UPDATE session SET workspace_id = 'wsp_2' WHERE id = ?")},
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
		{"a spool of no dispatch", store.CheckSpools, "is of dispatch 7", exec("UPDATE spool SET n = 7 WHERE session_id = ?")},
		{"a spool of another call", store.CheckSpools, "isn't one of the session", exec("UPDATE spool SET call_id = call_id || 'x' WHERE session_id = ?")},
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

// What can't be told of a receipt is no fault: a text that was masked isn't what
// was sent. What can be is told, however it was sent.
//
// proves ADM-1 ADM-3 ADM-6
func TestVerify_ReceiptsOfWhatWasMasked(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.OpenUnchecked(t, func(o *store.Options) { o.Secrets = []string{"hunter2!"} })
		r := storetest.MustRun(t, s, "w")
		for _, text := range []string{"say hunter2!", "say " + journal.Hidden, "two\r\nlines", "e\u0301", string(make40k()) + "hunter2!"} {
			storetest.MustPrompt(t, s, r.Owner, r.Session, text, journal.Queue)
		}
		_, ask := r.MustAsk(t, s)
		_, err := s.Decide(t.Context(), r.Owner, ask, store.Decision{Reply: journal.ReplyReject, Message: "no", Digest: "d1", NeedDigest: true, Key: "k-" + ask})
		must(t, err)
		made := storetest.MustSession(t, s, r.Owner, func(n *store.NewSession) {
			n.Given = "work"
			n.Prompt = &store.PromptInput{Text: "go", Delivery: journal.Queue}
		})
		report, err := s.Verify(t.Context(), store.VerifyOptions{})
		must(t, err)
		if !report.OK() {
			t.Fatalf("got %+v", report)
		}
		// The first prompt of that session has the session's receipt; a later one has its own.
		if n := db.MustExec(t, db.SQL(t), "DELETE FROM receipt WHERE session_id = ?", made.ID); n != 1 {
			t.Fatalf("it had %d receipts", n)
		}
		report, err = s.Verify(t.Context(), store.VerifyOptions{})
		must(t, err)
		if c := report.Check(store.CheckReceipts); c.Found != 1 || !strings.Contains(c.Faults[0], made.ID+": #1") {
			t.Errorf("got %+v", c)
		}
	})
}

// What is left of a session whose row is gone is found, although nothing leads to it.
//
// proves JRN-4 JRN-6
func TestVerify_NamesWhatHasNoSession(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.OpenUnchecked(t)
		gone, live := rich(t, s), storetest.MustRun(t, s, "w")
		live.MustDispatched(t, s, journal.EffectRead)
		raw := db.SQL(t)
		withoutKeys(t, db, raw, "DELETE FROM session WHERE id = '"+gone.Session+"'")
		withoutKeys(t, db, raw, "UPDATE claim SET session_id = 'ses_claimed' WHERE session_id = '"+live.Session+"'")
		withoutKeys(t, db, raw, "UPDATE session SET execution_id = NULL WHERE id = '"+live.Session+"'")
		for _, o := range []store.VerifyOptions{{MaxFaults: 100}, {MaxFaults: 100, Session: gone.Session}} {
			report, err := s.Verify(t.Context(), o)
			must(t, err)
			for check, tables := range map[string][]string{
				store.CheckState: {"event"}, store.CheckBlobs: {"blob"}, store.CheckReceipts: {"receipt"}, store.CheckCalls: {"call"}, store.CheckSpools: {"spool"}, store.CheckRecoveries: {"recovery"},
				store.CheckProjections: {"input", "message", "call_output", "request", "attempt"},
			} {
				text := strings.Join(report.Check(check).Faults, "\n")
				for _, table := range tables {
					if strings.Count(text, gone.Session+": there are rows of it in "+table+",") != 1 {
						t.Errorf("%s: %s says %q", table, check, text)
					}
				}
			}
			if text := strings.Join(report.Check(store.CheckClaims).Faults, "\n"); (o.Session == "") != strings.Contains(text, "ses_claimed") {
				t.Errorf("claims: %q", text)
			}
		}
		_, err := s.Verify(t.Context(), store.VerifyOptions{Session: "ses_none"})
		storetest.WantCode(t, err, journal.NotFound)
	})
}

// withoutKeys changes a database from outside, past its foreign keys.
func withoutKeys(t *testing.T, db *storetest.DB, raw *sql.DB, query string) {
	t.Helper()
	if db.Name == "postgres" { // SQLite has them for who asks for them
		query = "SET session_replication_role = replica; " + query + "; SET session_replication_role = DEFAULT"
	}
	_, err := raw.ExecContext(t.Context(), query)
	must(t, err)
}
