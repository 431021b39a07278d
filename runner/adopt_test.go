package runner_test

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/tool"
	"holdfast/store"
	"holdfast/store/storetest"
)

// brief lets a graceful stop wait for no boundary.
func brief(o *runner.Options) { o.Grace = time.Millisecond }

// next starts another worker on the same state folder.
func (b *bench) next() *runner.Runner {
	b.opts.WorkerID = "wrk_" + rand.Text()
	return b.start()
}

// left has a worker stop while a command runs that waits at the pipe gate, and
// gives the session.
func (b *bench) left(script string) (session string) {
	b.t.Helper()
	b.fifo("gate")
	up := b.fifo("up")
	r := b.start()
	session = b.session(steps(strings.ReplaceAll(script, "WAIT", "echo up > up; read x < gate")))
	awaitLine(b.t, up)
	r.Stop()
	return session
}

// A command that goes on under its shim is followed by the next worker of the
// state folder: its output is journalled once, and its turn goes on.
//
// proves REC-10 CAL-5 COO-6 LEA-11 JRN-5
func TestRunner_FollowsWhatAnEarlierWorkerLeft(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s, brief)
		id := b.left("echo same; echo same; WAIT; echo same; echo done >> log")
		if v, err := s.Session(t.Context(), b.owner, id); err != nil || v.Claim == nil || v.Claim.Phase != journal.PhaseUncertain {
			t.Fatalf("after the stop the claim is %+v, %v; want it as it was", v.Claim, err)
		}
		b.next()
		b.untilKind(id, journal.KindCallAdopted, 1)
		open(t, filepath.Join(b.dir, "gate"))
		b.untilState(id, journal.StateReady)
		if got := b.output(id, 0); got != "same\nsame\nsame\n" || b.file("log") != "done\n" {
			t.Errorf("output %q, log %q", got, b.file("log"))
		}
		events := storetest.Events(t, s, id)
		for kind, want := range map[journal.Kind]int{journal.KindCallDispatched: 1, journal.KindCallUnknown: 0, journal.KindTurnStarted: 1, journal.KindStepRecovered: 1} {
			if n := storetest.CountKind(events, kind); n != want {
				t.Errorf("%d %s, want %d", n, kind, want)
			}
		}
	})
}

// A command that ended while no worker was there is settled by its record, with
// all that its spool still held.
//
// proves CAL-5 REC-4 JRN-5
func TestRunner_SettlesByTheRecord(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s, brief)
		id := b.left("echo before; WAIT; echo after; echo ended > end; exit 3")
		end := b.fifo("end")
		open(t, filepath.Join(b.dir, "gate"))
		awaitLine(t, end)
		b.untilShimsEnd()
		b.next()
		b.untilState(id, journal.StateFailed)
		calls, err := s.Calls(t.Context(), b.owner, id, 0)
		if err != nil || calls[0].State != journal.CallFailed || calls[0].ExitCode == nil || *calls[0].ExitCode != 3 {
			t.Errorf("the call is %+v, %v; want failed with 3", calls[0], err)
		}
		if got := b.output(id, 0); got != "before\nafter\n" {
			t.Errorf("output %q", got)
		}
		if n := storetest.CountKind(storetest.Events(t, s, id), journal.KindCallAdopted); n != 0 {
			t.Error("what had ended was adopted")
		}
	})
}

// untilShimsEnd waits until no command of this worker's folder runs.
func (b *bench) untilShimsEnd() {
	b.t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	late := time.After(patience)
	for {
		ids, err := b.opts.Shims.List()
		if err != nil {
			b.t.Fatal(err)
		}
		running := false
		for _, id := range ids {
			found, err := b.opts.Shims.Find(id)
			if err != nil {
				b.t.Fatal(err)
			}
			running = running || found.Running
		}
		if !running {
			return
		}
		select {
		case <-look.C:
		case <-late:
			b.t.Fatal("its commands don't end")
		}
	}
}

// An interrupt that is committed while no worker is there reaches the command:
// it is ended, and its turn.
//
// proves COO-4 REC-6 COO-2
func TestRunner_CarriesOutAnInterruptOfALostWorker(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s, brief)
		id := b.left("WAIT; echo never >> log")
		if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow); err != nil {
			t.Fatal(err)
		}
		b.next()
		b.untilState(id, journal.StateStopped)
		calls, err := s.Calls(t.Context(), b.owner, id, 0)
		if err != nil || calls[0].State != journal.CallCancelled || b.file("log") != "" {
			t.Errorf("the call is %s, %v, the log %q; want cancelled", calls[0].State, err, b.file("log"))
		}
		if n := storetest.CountKind(storetest.Events(t, s, id), journal.KindCallUnknown); n != 0 {
			t.Error("it became unknown, although its end was seen")
		}
	})
}

// A worker of another state folder concludes that it doesn't know, after the
// lease; the one that comes back ends the command and testifies.
//
// proves LEA-12 CAL-5 REC-4
func TestRunner_TestifiesOfWhatAnotherRecovered(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s, brief)
		id := b.left("WAIT; echo never >> log")
		v, err := s.Session(t.Context(), b.owner, id)
		if err != nil || v.Claim == nil {
			t.Fatalf("claim %+v, %v", v.Claim, err)
		}
		if err := s.ExpireClaim(t.Context(), v.Claim); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recover(t.Context(), store.Recovery{Claim: *v.Claim}); err != nil { // on a host that can't see the command
			t.Fatal(err)
		}
		b.next()
		b.untilKind(id, journal.KindCallEvidence, 1)
		calls, err := s.Calls(t.Context(), b.owner, id, 0)
		if err != nil || calls[0].State != journal.CallIsUnknown || b.file("log") != "" {
			t.Errorf("the call is %s, %v, the log %q; want unknown", calls[0].State, err, b.file("log"))
		}
		last := calls[0].Evidence[len(calls[0].Evidence)-1]
		if last.Type != journal.EvidenceExitRecord || !strings.Contains(last.Text, "ended") {
			t.Errorf("it says %+v", last)
		}
	})
}

// A command that still runs is followed, and ended if a person wants it, although
// its session's folder is gone: nothing new begins there.
//
// proves COO-2 REC-10 WSP-1
func TestRunner_FollowsWithoutTheWorkspace(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s, brief)
		id := b.left("WAIT; echo done")
		if err := os.Rename(b.dir, b.dir+".away"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Rename(b.dir+".away", b.dir) })
		b.next()
		b.until(id, "it is followed", func(v store.Session) bool {
			return v.Claim != nil && v.Claim.Phase == journal.PhaseUncertain && v.State.Adopts()
		})
		if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow); err != nil {
			t.Fatal(err)
		}
		b.untilState(id, journal.StateStopped)
	})
}

// A process that has got the number of a command that is gone isn't taken for it:
// it is neither adopted nor ended.
//
// proves REC-10 COO-7 CAL-7
func TestRunner_AdoptsNoReusedPID(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		other := exec.CommandContext(t.Context(), "sleep", "1000")
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- other.Wait() }()
		id := b.session(steps("true"))
		c, err := s.Claim(t.Context(), store.ClaimRequest{SessionID: id, WorkerID: "wrk_dead", StateFolderID: b.opts.StateFolderID, Lease: time.Hour})
		if err != nil || c == nil {
			t.Fatalf("claim: %v %v", c, err)
		}
		host, err := os.Hostname()
		if err != nil {
			t.Fatal(err)
		}
		boot, err := tool.BootID()
		if err != nil {
			t.Fatal(err)
		}
		turn, call := storetest.MustPromote(t, s, c), store.NewID("call")
		was := &journal.Process{Host: host, BootID: boot, PID: other.Process.Pid, PGID: other.Process.Pid, StartedTicks: 1}
		if _, err := s.Append(t.Context(), c, store.Append{Phase: journal.PhaseUncertain, Spool: &store.Spool{CallID: call, N: 1, StateFolderID: b.opts.StateFolderID}, Drafts: []journal.Draft{
			{ID: store.NewID("evt"), Actor: journal.Agent(), Body: &journal.CallProposed{CallID: call, TurnID: turn, Key: "k", Tool: "shell", Input: []byte(`{}`), InputSHA256: journal.Hash("{}"), Effect: journal.EffectEffect}},
			{ID: store.NewID("evt"), Actor: journal.Server(), Body: &journal.CallDispatched{CallID: call, N: 1, AllowedBy: journal.AllowedBy{Type: journal.AllowedByRule}, Process: was}},
		}}); err != nil {
			t.Fatal(err)
		}
		b.next() // the folder is its own: it expires the claim, and asks for a shim
		b.untilState(id, journal.StateUncertain)
		if n := storetest.CountKind(storetest.Events(t, s, id), journal.KindCallAdopted); n != 0 {
			t.Error("the stranger was adopted")
		}
		select {
		case err := <-ended:
			t.Errorf("the stranger was ended: %v", err)
		default:
		}
		_ = other.Process.Kill()
		<-ended
	})
}
