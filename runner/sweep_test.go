package runner_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/shim"
	"holdfast/runner/tool"
	"holdfast/store"
	"holdfast/store/storetest"
)

// lines is a log that a test reads while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), s)
}

// proves REC-8 REC-1
func TestRunner_OneFailingRecoveryDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.OpenUnchecked(t) // one session is damaged on purpose
		var logged lines
		b := setup(t, s, func(o *runner.Options) { o.Logger = slog.New(slog.NewTextHandler(&logged, nil)) })
		var ids []string
		for range 3 {
			id := b.session(steps("echo a >> log"))
			if c, err := s.Claim(t.Context(), store.ClaimRequest{SessionID: id, WorkerID: "wrk_dead", StateFolderID: b.opts.StateFolderID, Lease: time.Hour}); err != nil || c == nil {
				t.Fatalf("claim: %v %v", c, err)
			}
			ids = append(ids, id)
		}
		raw := db.SQL(t)
		db.MustExec(t, raw, "UPDATE session SET state = 'broken' WHERE id = ?", ids[0])
		r := b.start()
		for _, id := range ids[1:] {
			b.untilState(id, journal.StateReady)
		}
		r.Sweep(t.Context())
		if n := logged.count("recover an execution"); n < 2 {
			t.Errorf("the failed recovery was logged %d times in two sweeps, want it met again", n)
		}
	})
}

// A drain that failed is logged once, with session and cause; one that a person stopped isn't.
//
// proves COO-9
func TestRunner_LogsAFailedDrainOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		var logged lines
		var once sync.Once
		b := setup(t, s, func(o *runner.Options) {
			o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
			o.Agents = append(o.Agents, failing{name: "fails once", run: func(context.Context, *runner.Turn) (runner.Result, error) {
				var err error
				once.Do(func() { err = context.DeadlineExceeded })
				return runner.Result{}, err
			}})
		})
		b.fifo("gate")
		r := b.start()
		r.Wake("ses_gone")
		failed := b.session("go", func(n *store.NewSession) { n.Agent = "fails once" })
		b.untilState(failed, journal.StateReady)
		stopped := b.session(steps("read x < gate"))
		b.untilKind(stopped, journal.KindCallDispatched, 1)
		if err := s.RequestInterrupt(t.Context(), b.owner, stopped, journal.InterruptNow); err != nil {
			t.Fatal(err)
		}
		b.untilState(stopped, journal.StateStopped)
		r.Stop()
		if n := logged.count("drain failed"); n != 2 || logged.count("session not found: ses_gone") != 1 || logged.count(failed) == 0 {
			t.Errorf("%d failed drains in the log, want the missing session and the failed agent, once each:\n%s", n, logged.buf.String())
		}
	})
}

// Sessions that only another server can run wait at the head of the list, more
// than a page of them. They keep no place, and nothing behind them waits for them.
//
// proves REC-9 ADM-7 WSP-1
func TestRunner_SweepReachesItsOwnBehindOthers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s, func(o *runner.Options) { o.MaxRunning = 1 })
		// It may be able to run all of them, so none is blocked.
		if err := s.SeeWorker(t.Context(), store.Worker{ID: "wrk_other", StateFolderID: "fld_other", Agents: []store.Agent{{Name: "runbook", Available: true}}}); err != nil {
			t.Fatal(err)
		}
		for range runner.SweepBatch + 1 {
			b.session("x", func(n *store.NewSession) { n.Workspace = "/srv/elsewhere" })
		}
		var own []string
		for i := range 3 {
			own = append(own, b.session(steps(fmt.Sprintf("echo %d >> log", i))))
		}
		b.start() // the wakes are gone: there is only its sweep
		for _, id := range own {
			b.untilState(id, journal.StateReady)
		}
	})
}

// Several servers live, and none has the session's workspace: it is blocked, with
// the cause, as with one server, and goes on by itself once one has it.
//
// proves WSP-1 REC-9
func TestRunner_BlocksWhatNoLiveServerCanRun(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		first := b.start()
		b.opts.WorkerID, b.opts.StateFolderID = "wrk_second", "fld_second"
		second := b.start()
		lost := filepath.Join(b.dir, "lost")
		// On both hosts there may be a folder of that name: it isn't the one.
		if err := os.Mkdir(lost, 0o700); err != nil {
			t.Fatal(err)
		}
		id := b.session(steps("echo a > log"), func(n *store.NewSession) { n.Workspace, n.WorkspaceID = lost, "wsp_elsewhere" })
		here := b.session(steps("echo b > log"))
		first.Sweep(t.Context())
		second.Sweep(t.Context())
		v := b.untilState(id, journal.StateBlocked)
		if why := v.State.Blocked; why.Cause != journal.BlockWorkspace || !strings.Contains(why.Detail, lost) {
			t.Errorf("it is blocked by %+v, want by its workspace", why)
		}
		b.untilState(here, journal.StateReady)
		if err := os.WriteFile(filepath.Join(lost, ".holdfast-workspace"), []byte("wsp_elsewhere\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		second.Sweep(t.Context()) // the first still says that it lacks it
		b.untilState(id, journal.StateReady)
		if n := storetest.CountKind(storetest.Events(t, s, id), journal.KindSessionBlocked); n != 1 {
			t.Errorf("it was blocked %d times", n)
		}
	})
}

// A second server on a copy of the first one's state folder is not its successor:
// what the first one runs goes on.
//
// proves LEA-11
func TestRunner_CopiedStateFolderExpiresNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		dir := filepath.Join(t.TempDir(), "state")
		lock := func(dir string) string {
			t.Helper()
			l, folder, err := store.LockState(dir)
			must(t, err)
			t.Cleanup(func() { must(t, l.Close()) })
			return folder.ID
		}
		b.opts.StateFolderID, b.opts.Shims = lock(dir), shims(t, dir)
		b.fifo("gate")
		b.start()
		id := b.session(steps("read x < gate; echo done >> log"))
		b.untilKind(id, journal.KindCallDispatched, 1)

		must(t, exec.CommandContext(t.Context(), "cp", "-a", dir, dir+".copy").Run())
		b.opts.WorkerID, b.opts.StateFolderID = "wrk_copy", lock(dir+".copy")
		b.opts.Shims = shims(t, dir+".copy") // with all that the running shim had there
		second := b.start()
		second.Sweep(t.Context())
		open(t, filepath.Join(b.dir, "gate"))
		b.untilState(id, journal.StateReady)
		if n := storetest.CountKind(storetest.Events(t, s, id), journal.KindStepRecovered); n != 0 || b.file("log") != "done\n" {
			t.Errorf("recovered %d times, the log says %q", n, b.file("log"))
		}
	})
}

// A command that is born under the name of what a dead server had prepared is not
// taken for that by a sweep that has seen it.
//
// proves CAL-5 CAL-8 COO-7
func TestRunner_SweepLeavesTheNewbornAlone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s, func(o *runner.Options) { o.Sweep, o.MaxRunning = time.Hour, 6 })
		r := b.start()
		var ids []string
		for i := range 6 {
			ids = append(ids, b.session(steps(fmt.Sprintf("echo x >> log-%d", i)), asking))
		}
		for _, id := range ids {
			b.prepareAsTheDead(b.untilState(id, journal.StateWaiting).ID)
		}
		clearAll, err := r.Strays(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			for _, req := range b.pending(id) {
				b.decide(req.ID, store.Decision{Reply: journal.ReplyOnce})
			}
		}
		for _, id := range ids {
			b.until(id, "it is worked on", func(v store.Session) bool { return v.Claim != nil || v.State.Base == journal.StateReady })
		}
		clearAll()
		for i, id := range ids {
			b.untilState(id, journal.StateReady)
			if got := b.file(fmt.Sprintf("log-%d", i)); got != "x\n" {
				t.Errorf("the effect of %s is %q, journal:\n%s", id, got, b.dump(id))
			}
			if n := storetest.CountKind(storetest.Events(t, s, id), journal.KindCallDispatched); n != 1 {
				t.Errorf("%s was dispatched %d times", id, n)
			}
		}
		if b.file("wrong") != "" {
			t.Error("what the dead server had prepared has run")
		}
	})
}

// What was stopped while its process was born doesn't begin.
//
// proves COO-4 CAL-1
func TestRunner_StoppedAtItsBirth(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s, func(o *runner.Options) { o.Sweep = time.Hour })
		r := b.start()
		id := b.session(steps("echo x >> log"), asking)
		b.untilState(id, journal.StateWaiting)
		b.prepareAsTheDead(id)
		clearAll, err := r.Strays(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, req := range b.pending(id) {
			b.decide(req.ID, store.Decision{Reply: journal.ReplyOnce})
		}
		b.until(id, "it is worked on", func(v store.Session) bool { return v.Claim != nil })
		if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow); err != nil {
			t.Fatal(err)
		}
		clearAll()
		b.untilState(id, journal.StateStopped)
		if n := storetest.CountKind(storetest.Events(t, s, id), journal.KindCallDispatched); n != 0 || b.file("log") != "" {
			t.Errorf("dispatched %d times, the effect is %q", n, b.file("log"))
		}
	})
}

// prepareAsTheDead leaves what a server leaves that dies between the birth of a
// session's call and the commit of its dispatch.
func (b *bench) prepareAsTheDead(session string) {
	b.t.Helper()
	calls, err := b.s.Calls(b.t.Context(), b.owner, session, 0)
	if err != nil || len(calls) != 1 {
		b.t.Fatalf("%d calls, %v", len(calls), err)
	}
	child, err := b.opts.Shims.Prepare(b.t.Context(), shim.Spec{Spec: tool.Spec{
		CallID: calls[0].ID, N: 1, Interp: []string{"sh"}, Script: "echo x > wrong", Dir: b.dir, Env: b.opts.Env,
	}})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := child.Close(); err != nil {
		b.t.Fatal(err)
	}
}

// An agent's process whose shim has left nothing is forgotten once it is certain that it
// runs no more, and only then: what of it is found here is ended first, and of what ran on
// another host nobody knows.
//
// proves LEA-12 LEA-11
func TestSweep_AnAgentWhoseFolderIsGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lives, elsewhere bool
	}{
		"it has ended":           {},
		"it runs on":             {lives: true},
		"it was on another host": {elsewhere: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
				s := db.OpenUnchecked(t)
				state := t.TempDir()
				_, with := scripted(t, `hear; stop 3; read -r l; exec sleep 1000`)
				b := setup(t, s, with, func(o *runner.Options) { o.Shims, o.AgentIdle = shims(t, state), time.Hour })
				r := b.start()
				id := b.session("One", byFake)
				b.untilState(id, journal.StateReady)
				raw := db.SQL(t)
				rows := func() int64 { return db.Count(t, raw, "SELECT count(*) FROM agent_process WHERE session_id = ?", id) }
				started := storetest.Body[*journal.AgentStarted](t, storetest.Events(t, s, id))
				if !c.lives {
					must(t, syscall.Kill(-started.Process.PGID, syscall.SIGKILL))
					b.untilExit(started.ProcessID)
				}
				if c.elsewhere {
					db.MustExec(t, raw, "UPDATE event SET data = replace(data, ?, ?) WHERE session_id = ? AND kind = 'agent.started'", `"host":"`+started.Process.Host+`"`, `"host":"elsewhere"`, id)
				}
				must(t, os.RemoveAll(filepath.Join(state, "shims", started.ProcessID+".1")))
				db.MustExec(t, raw, "UPDATE agent_process SET used_at = 0 WHERE session_id = ?", id)
				r.Sweep(t.Context())
				want := int64(0)
				if c.elsewhere {
					want = 1
				}
				if n := rows(); n != want {
					t.Errorf("%d rows, want %d", n, want)
				}
				if !c.elsewhere && syscall.Kill(started.Process.PID, 0) == nil {
					t.Errorf("process %d lives", started.Process.PID)
				}
				if n := storetest.CountKind(storetest.Events(t, s, id), journal.KindAgentEnded); n > 1 {
					t.Errorf("its end is told %d times", n)
				}
			})
		})
	}
}

// untilExit waits until a process of an agent has ended, and its shim has kept how.
func (b *bench) untilExit(processID string) {
	b.t.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for by := time.Now().Add(patience); ; <-poll.C {
		found, err := b.opts.Shims.Find(shim.ID{CallID: processID, N: 1})
		if err == nil && found.Exit != nil {
			return
		}
		if time.Now().After(by) {
			b.t.Fatalf("%s hasn't ended: %+v, %v", processID, found, err)
		}
	}
}
