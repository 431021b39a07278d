package runner_test

import (
	"crypto/rand"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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

// brief lets a graceful stop wait for no boundary.
func brief(o *runner.Options) { o.Grace = time.Millisecond }

// next starts another worker on the same state folder.
func (b *bench) next(with ...func(*runner.Runner)) *runner.Runner {
	b.opts.WorkerID = "wrk_" + rand.Text()
	return b.start(with...)
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
		evs := storetest.Events(t, s, id)
		says := storetest.Body[*journal.CallSettled](t, evs)
		if c := calls[0]; says.StartedAt == 0 || c.EndedAt != says.EndedAt || c.RanMS == nil || *c.RanMS != says.EndedAt-says.StartedAt {
			t.Errorf("it ended at %d and ran %v ms, the record says %+v", c.EndedAt, c.RanMS, says)
		}
		if got := b.output(id, 0); got != "before\nafter\n" {
			t.Errorf("output %q", got)
		}
		if n := storetest.CountKind(evs, journal.KindCallAdopted); n != 0 {
			t.Error("what had ended was adopted")
		}
	})
}

// untilShimsEnd waits until no command of this worker's folder runs.
func (b *bench) untilShimsEnd() {
	b.t.Helper()
	eventually(b.t, "its commands have ended", func() bool {
		ids, err := b.opts.Shims.List()
		if err != nil {
			b.t.Fatal(err)
		}
		return !slices.ContainsFunc(ids, func(id shim.ID) bool {
			found, err := b.opts.Shims.Find(id)
			if err != nil {
				b.t.Fatal(err)
			}
			return found.Running
		})
	})
}

// eventually looks at something that tells nobody of its changes, until it is so.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	late := time.After(patience)
	for !ok() {
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("waited in vain until %s", what)
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
		if err := <-ended; err == nil {
			t.Error("the stranger had ended by itself")
		}
	})
}

// To follow, and to end, takes no place: also what waits behind others is stopped.
//
// proves COO-2 COO-3 COO-4
func TestRunner_FollowsWithoutAPlace(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s, brief)
		up := b.fifo("up")
		b.fifo("gate")
		r := b.start()
		var ids []string
		for range 3 {
			ids = append(ids, b.session(steps("echo up > up; read x < gate", "echo done >> log")))
			awaitLine(t, up)
		}
		r.Stop()
		b.opts.MaxRunning = 1
		b.next()
		for _, id := range ids {
			b.until(id, "it is followed", func(v store.Session) bool { return v.Claim != nil && v.State.Adopts() })
		}
		if err := s.RequestInterrupt(t.Context(), b.owner, ids[2], journal.InterruptNow); err != nil {
			t.Fatal(err)
		}
		b.untilState(ids[2], journal.StateStopped)
		for range 2 {
			open(t, filepath.Join(b.dir, "gate"))
		}
		for _, id := range ids[:2] {
			b.untilState(id, journal.StateReady)
		}
		if got := b.file("log"); got != "done\ndone\n" {
			t.Errorf("the log says %q", got)
		}
	})
}

// What may be run again isn't, as long as its shim knows of it: a worker elsewhere
// could not ask.
//
// proves CAL-4 CAL-5 REC-10
func TestRunner_AsksTheShimOfARead(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s, brief)
		gate, up := b.fifo("gate"), b.fifo("up")
		r := b.start()
		id := b.session("```sh effect=read\necho once; echo up > up; read x < gate; echo twice\n```\n")
		awaitLine(t, up)
		b.untilKind(id, journal.KindCallOutput, 1)
		r.Stop()
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
		b.until(id, "it is followed", func(v store.Session) bool { return v.Claim != nil })
		open(t, gate)
		b.untilState(id, journal.StateReady)
		if n := storetest.CountKind(storetest.Events(t, s, id), journal.KindCallDispatched); n != 1 {
			t.Errorf("it was dispatched %d times", n)
		}
		if got := b.output(id, 0); got != "once\ntwice\n" {
			t.Errorf("output %q", got)
		}
	})
}

// A server that can't read a shim's folder for a while, for want of descriptors
// say, ends no command for it.
//
// proves CAL-5 COO-10
func TestRunner_LooksAgainForACommand(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		gate, up := b.fifo("gate"), b.fifo("up")
		var logged lines
		state := t.TempDir()
		b.opts.Logger, b.opts.Shims = slog.New(slog.NewTextHandler(&logged, nil)), shims(t, state)
		b.start()
		id := b.session(steps("echo up > up; read x < gate; echo more; echo up > up; read x < gate; echo done >> log"))
		awaitLine(t, up)
		ids, err := b.opts.Shims.List()
		if err != nil || len(ids) != 1 {
			t.Fatalf("shims %v, %v", ids, err)
		}
		record := filepath.Join(state, "shims", ids[0].String(), "exit.json")
		if err := os.Symlink("exit.json", record); err != nil { // it can't be opened: too many links
			t.Fatal(err)
		}
		open(t, gate)
		awaitLine(t, up)
		eventually(t, "it says that it can't look", func() bool { return logged.count("follow a command") > 0 })
		open(t, gate) // its record takes the place of the link
		b.untilState(id, journal.StateReady)
		if got := b.output(id, 0); got != "more\n" || b.file("log") != "done\n" {
			t.Errorf("output %q, log %q", got, b.file("log"))
		}
	})
}

// A stop that is to end commands doesn't wait for one whose shim is frozen: that
// goes on, and its claim stays.
//
// proves COO-6
func TestRunner_StopWaitsForNoFrozenShim(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s, brief, func(o *runner.Options) { o.StopCommands = true })
		b.fifo("gate")
		up := b.fifo("up")
		r := b.start()
		id := b.session(steps("echo $PPID > pid; echo up > up; read x < gate"))
		awaitLine(t, up)
		shimPID, err := strconv.Atoi(strings.TrimSpace(b.file("pid")))
		if err == nil {
			err = syscall.Kill(shimPID, syscall.SIGSTOP)
		}
		if err != nil {
			t.Fatal(err)
		}
		stopped := make(chan struct{})
		go func() { r.Stop(); close(stopped) }()
		select {
		case <-stopped:
		case <-time.After(patience):
			t.Error("the stop waits for the shim")
		}
		if v, err := s.Session(t.Context(), b.owner, id); err != nil || v.Claim == nil || v.State.Unknowns() != 0 {
			t.Errorf("after the stop: claim %+v, %d unknown, %v", v.Claim, v.State.Unknowns(), err)
		}
		if err := syscall.Kill(shimPID, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		<-stopped
		open(t, filepath.Join(b.dir, "gate")) // or it ends as it was told meanwhile
		b.untilShimsEnd()
	})
}
