package runner_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/store"
	"holdfast/store/storetest"
)

// Places are given first come first served; a session that waits for a person holds none.
//
// proves COO-1 COO-3 PER-5
func TestRunner_GivesPlacesInOrder(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s, func(o *runner.Options) { o.MaxRunning = 1 })
		gate := b.fifo("gate")
		r := b.start()
		waits := b.session(steps("echo hello"), asking)
		b.untilState(waits, journal.StateWaiting)
		first := b.session(steps("read x < gate; echo first >> log"))
		b.untilKind(first, journal.KindCallDispatched, 1)
		var rest []string
		for i := range 3 {
			rest = append(rest, b.session(steps(fmt.Sprintf("echo %d >> log", i))))
		}
		for range 5 { // wakes are merged: nothing runs twice
			r.Wake(first)
			r.Wake(rest[0])
		}
		v, err := s.Session(t.Context(), b.owner, rest[1])
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := v.Execution(); got != journal.StateQueued || v.Position != 2 {
			t.Errorf("the third in line is %s at position %d, want queued at 2", got, v.Position)
		}
		if len(r.Active()) != 1 {
			t.Errorf("active %v, want one", r.Active())
		}
		open(t, gate)
		for _, id := range append(rest, first) {
			b.untilState(id, journal.StateReady)
		}
		if got := strings.Fields(b.file("log")); strings.Join(got, " ") != "first 0 1 2" {
			t.Errorf("order %v", got)
		}
	})
}

// A prompt whose wake was lost is found by the sweep.
//
// proves ADM-7 REC-9 COO-2
func TestRunner_SweepFindsForgottenWork(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		id := b.session(steps("echo a >> log")) // committed while nobody listens
		b.start()
		b.untilState(id, journal.StateReady)
		if got := b.file("log"); got != "a\n" {
			t.Errorf("log %q", got)
		}
	})
}

// proves COO-5
func TestRunner_StepLimitEndsTheTurnAndContinueRaisesIt(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		b.start()
		scripts := make([]string, 8)
		for i := range scripts {
			scripts[i] = ":"
		}
		id := b.session(steps(scripts...), func(n *store.NewSession) {
			n.Rules = append(n.Rules, journal.Rule{Permission: "shell", Pattern: ":", Action: "allow"})
			n.Limits = &journal.Limits{Steps: 5}
		})
		v := b.untilState(id, journal.StateLimitReached)
		if v.State.Turn.Limit != "steps" {
			t.Errorf("limit %q", v.State.Turn.Limit)
		}
		if err := s.Continue(t.Context(), b.owner, id, &journal.Limits{Steps: 2}); err != nil {
			t.Fatal(err)
		}
		b.until(id, "the raised limit is reached", func(v store.Session) bool { return v.State.Turn.Number == 2 && !v.State.TurnOpen() })
		if err := s.Continue(t.Context(), b.owner, id, &journal.Limits{Steps: 50}); err != nil {
			t.Fatal(err)
		}
		b.untilState(id, journal.StateReady)
		calls, err := s.Calls(t.Context(), b.owner, id, 0)
		if err != nil || len(calls) != len(scripts) {
			t.Errorf("%d calls, %v; want each step once", len(calls), err)
		}
	})
}

// A graceful stop at a boundary leaves the turn open: nothing of it is uncertain, and it goes on by itself.
//
// proves COO-6
func TestRunner_GracefulStopAtABoundary(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		gate := b.fifo("gate")
		r := b.start()
		id := b.session(steps("read x < gate; echo a >> log", "echo b >> log"))
		b.untilKind(id, journal.KindCallDispatched, 1)
		stopped := make(chan struct{})
		go func() { r.Stop(); close(stopped) }()
		b.until(id, "the worker takes no more", func(store.Session) bool {
			ws, err := s.Workers(t.Context())
			return err == nil && len(ws) == 1 && ws[0].Draining
		})
		open(t, gate)
		<-stopped
		v, err := s.Session(t.Context(), b.owner, id)
		if err != nil || v.Claim != nil || !v.State.TurnOpen() || len(v.State.UnknownCalls) != 0 {
			t.Fatalf("after the stop: claim %v, state %+v, %v; want the open turn released", v.Claim, v.State, err)
		}
		b.opts.WorkerID += "2"
		b.start()
		b.untilState(id, journal.StateReady)
		if got := b.file("log"); got != "a\nb\n" {
			t.Errorf("log %q", got)
		}
		if n := storetest.CountKind(storetest.Events(t, s, id), journal.KindTurnStarted); n != 1 {
			t.Errorf("%d turns, want the one to go on", n)
		}
	})
}

// A graceful stop while a command waits for its process cuts nothing off, as nothing
// runs: the turn stays open, and goes on after the restart.
//
// proves COO-6
func TestRunner_GracefulStopBeforeTheBirth(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s, func(o *runner.Options) { o.Grace, o.StopCommands = time.Millisecond, true })
		r := b.start()
		id := b.session(steps("echo x >> log"), asking)
		b.untilState(id, journal.StateWaiting)
		b.prepareAsTheDead(id)
		clearAll, err := r.Strays(t.Context()) // has the name until the end
		if err != nil {
			t.Fatal(err)
		}
		for _, req := range b.pending(id) {
			b.decide(req.ID, store.Decision{Reply: journal.ReplyOnce})
		}
		b.until(id, "it is worked on", func(v store.Session) bool { return v.Claim != nil })
		r.Stop()
		clearAll()
		v, err := s.Session(t.Context(), b.owner, id)
		if err != nil || v.Claim != nil || !v.State.TurnOpen() || v.State.Unknowns() != 0 {
			t.Fatalf("after the stop: claim %v, state %+v, %v; want the open turn released", v.Claim, v.State, err)
		}
		b.opts.WorkerID += "2"
		b.start()
		b.untilState(id, journal.StateReady)
		evs := storetest.Events(t, s, id)
		if n, turns := storetest.CountKind(evs, journal.KindCallDispatched), storetest.CountKind(evs, journal.KindTurnStarted); n != 1 || turns != 1 || b.file("log") != "x\n" {
			t.Errorf("dispatched %d times in %d turns, the effect is %q", n, turns, b.file("log"))
		}
	})
}

// What doesn't reach a boundary in its grace is ended: cancelled, its turn
// interrupted, nothing unknown, no claim left.
//
// proves COO-6 COO-7
func TestRunner_GracefulStopEndsWhatRunsOn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s, func(o *runner.Options) { o.Grace, o.StopCommands = 100*time.Millisecond, true })
		b.fifo("gate")
		r := b.start()
		id := b.session(steps("echo $$ > pid; (setsid sh -c 'read y < gate; echo never >> log' &) ; read x < gate; echo never >> log"))
		b.untilState(id, journal.StateWaiting) // setsid hides what it runs, so it is asked
		b.decide(b.pending(id)[0].ID, store.Decision{Reply: journal.ReplyOnce})
		b.until(id, "it began", func(store.Session) bool { return b.file("pid") != "" })
		r.Stop()
		v := b.untilState(id, journal.StateStopped)
		if v.State.Turn.Outcome != journal.Interrupted || !v.State.Held || v.State.Unknowns() != 0 {
			t.Errorf("turn %+v", v.State.Turn)
		}
		calls, err := s.Calls(t.Context(), b.owner, id, 0)
		if err != nil || calls[0].State != journal.CallCancelled {
			t.Errorf("call %+v, %v", calls[0], err)
		}
		if b.file("log") != "" {
			t.Error("the command went on")
		}
	})
}

// While the journal can't be written, output waits in its pipe and nothing is
// lost or doubled.
//
// proves COO-10 JRN-5
func TestRunner_WaitsForAJournalThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		b := setup(t, s)
		gate := b.fifo("gate")
		b.start()
		id := b.session(steps("echo one; read x < gate; echo two; echo two; echo effect >> log", "echo three"))
		b.untilKind(id, journal.KindCallOutput, 1)
		raw := db.SQL(t)
		conn, err := raw.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		lock := map[string]string{"sqlite": "BEGIN IMMEDIATE", "postgres": "BEGIN; LOCK TABLE event IN EXCLUSIVE MODE"}[db.Name]
		if _, err := conn.ExecContext(t.Context(), lock); err != nil {
			t.Fatal(err)
		}
		open(t, gate)
		key := "refused-" + id
		// Postgres gives up after a second, so twice there: what the command prints stands
		// before the second try, and has failed by then.
		for range map[string]int{"sqlite": 1, "postgres": 2}[db.Name] {
			_, err = s.SubmitPrompt(t.Context(), b.owner, id, key, store.PromptInput{Text: steps("echo four"), Delivery: journal.Queue})
			if !journal.Is(err, journal.Unavailable) {
				t.Errorf("admission to a journal that can't be written: %v, want unavailable", err)
			}
		}
		if _, err := s.Session(t.Context(), b.owner, id); err != nil {
			t.Errorf("reading: %v", err)
		}
		if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		v := b.untilState(id, journal.StateReady)
		if got := b.output(id, 0) + b.file("log"); got != "one\ntwo\ntwo\neffect\n" || v.State.Unknowns() != 0 {
			t.Errorf("output and effect %q", got)
		}
		if r, err := s.SubmitPrompt(t.Context(), b.owner, id, key, store.PromptInput{Text: steps("echo four"), Delivery: journal.Queue}); err != nil || r.Replayed {
			t.Errorf("the same key afterwards: %+v, %v", r, err)
		}
		b.until(id, "the prompt that was sent again has run", func(v store.Session) bool {
			return v.State.Base == journal.StateReady && v.State.Turn.Number == 2 && v.Claim == nil
		})
	})
}

// A worker that can't reach the workspace doesn't claim its sessions; it goes on by itself once it can.
//
// proves WSP-1
func TestRunner_NeedsTheWorkspaceAsItWas(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		id := b.session(steps("echo a >> log"))
		marker := filepath.Join(b.dir, ".holdfast-workspace")
		kept, err := os.ReadFile(marker)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(marker, []byte("wsp_another\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		r := b.start()
		v := b.untilState(id, journal.StateBlocked)
		if v.State.Blocked.Cause != journal.BlockWorkspace || b.file("log") != "" {
			t.Errorf("blocked %+v, log %q", v.State.Blocked, b.file("log"))
		}
		if err := os.WriteFile(marker, kept, 0o600); err != nil {
			t.Fatal(err)
		}
		r.Sweep(t.Context())
		b.untilState(id, journal.StateReady)
		for _, path := range []string{"/etc", "..", "nowhere", "", strings.Repeat("x", 5000)} {
			if _, _, err := b.opts.Workspaces.Prepare(t.Context(), path); !journal.Is(err, journal.Unprocessable) {
				t.Errorf("workspace %.20q: %v, want unprocessable", path, err)
			}
		}
	})
}

// What stands at the marker's name may be anything; it never makes a worker wait.
//
// proves WSP-1 COO-3
func TestRunner_MarkerIsNoFile(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s, func(o *runner.Options) { o.MaxRunning = 1 })
		id := b.session(steps("echo a >> log"))
		marker := filepath.Join(b.dir, ".holdfast-workspace")
		kept, err := os.ReadFile(marker)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(marker); err != nil {
			t.Fatal(err)
		}
		mustMkfifo(t, marker)
		r := b.start()
		v := b.untilState(id, journal.StateBlocked)
		if strings.Contains(v.State.Blocked.Detail, "unprocessable") {
			t.Errorf("the detail is for programs: %s", v.State.Blocked.Detail)
		}
		if _, _, err := b.opts.Workspaces.Prepare(t.Context(), b.dir); !journal.Is(err, journal.Unprocessable) {
			t.Errorf("a new session there: %v, want unprocessable", err)
		}
		if err := errors.Join(os.Remove(marker), os.WriteFile(marker, kept, 0o600)); err != nil {
			t.Fatal(err)
		}
		r.Sweep(t.Context())
		b.untilState(id, journal.StateReady)
	})
}

// A mission with more steps than a plan can show runs all the same.
//
// proves JRN-6 COO-5
func TestRunner_PlanOfAThousandSteps(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		b.start()
		scripts := make([]string, 1000)
		for i := range scripts {
			scripts[i] = "exit 3"
		}
		id := b.session("# " + strings.Repeat("\"long name\" ", 20) + "\n\n" + steps(scripts...))
		v := b.untilState(id, journal.StateFailed)
		if n := len(v.State.Plan); n != 301 || v.State.Plan[0].State != journal.PlanFailed {
			t.Errorf("a plan of %d items, the first %s", n, v.State.Plan[0].State)
		}
	})
}

// proves REC-6 COO-2
func TestRunner_RecoversWhatADeadWorkerLeft(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		id := b.session(steps("echo a >> log"))
		dead, err := s.Claim(t.Context(), store.ClaimRequest{SessionID: id, WorkerID: "wrk_dead", StateFolderID: b.opts.StateFolderID, Lease: time.Hour})
		if err != nil || dead == nil {
			t.Fatalf("claim: %v %v", dead, err)
		}
		b.start() // LEA-11: the folder's lock proves that worker dead, so nobody waits an hour
		b.untilState(id, journal.StateReady)
		if got := b.file("log"); got != "a\n" {
			t.Errorf("log %q", got)
		}
	})
}
