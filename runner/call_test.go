package runner

import (
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner/shim"
	"holdfast/runner/tool"
	"holdfast/store"
	"holdfast/store/storetest"
)

// mustPropose has a run of which a command is proposed, and what keeps commands.
func mustPropose(t *testing.T, s *store.Store, in Shell, effect journal.Effect) (turn *Turn, c *journal.Call, owner, dir string) {
	t.Helper()
	dir = t.TempDir()
	spaces, err := NewWorkspaces([]string{dir})
	must(t, err)
	shims, err := shim.Open(filepath.Join(t.TempDir(), "shims"))
	must(t, err)
	t.Cleanup(shims.Close)
	r, err := New(Options{
		Store: s, Logger: slog.New(slog.DiscardHandler), WorkerID: "wrk_" + rand.Text(), StateFolderID: "fld_" + rand.Text(), Workspaces: spaces, Shims: shims,
		MaxRunning: 1, Lease: 30 * time.Second, Renew: 10 * time.Second, Sweep: time.Hour, Env: tool.BaseEnv(os.Environ()),
	})
	must(t, err)
	session := storetest.MustRun(t, s, r.o.WorkerID)
	run := newRun(t.Context(), session.Session)
	run.hold(session.Claim, time.Now(), r.o.Lease)
	folder, marker, err := spaces.Prepare(t.Context(), dir)
	must(t, err)
	run.brief = store.SessionBrief{Workspace: folder, WorkspaceID: marker}
	turn, err = r.newTurn(t.Context(), run, session.Claim)
	must(t, err)
	c, err = turn.propose(t.Context(), CallIntent{Key: "k", Input: in, Effect: effect})
	must(t, err)
	return turn, c, session.Owner, dir
}

// mustDispatch has a command dispatched that waits at its gate.
func mustDispatch(t *testing.T, s *store.Store, effect journal.Effect) (x *execution, child *shim.Child, owner, file string) {
	t.Helper()
	in := Shell{Command: "echo never > file", Shell: "sh"}
	turn, c, owner, dir := mustPropose(t, s, in, effect)
	x, child = mustPrepare(t, turn, c, in, dir)
	must(t, turn.dispatch(t.Context(), c, journal.AllowedBy{Type: journal.AllowedByRule}, child))
	return x, child, owner, filepath.Join(dir, "file")
}

func mustPrepare(t *testing.T, turn *Turn, c *journal.Call, in Shell, dir string) (*execution, *shim.Child) {
	t.Helper()
	x := turn.newExecution(turn.run.ctx, shim.ID{CallID: c.ID, N: 1})
	t.Cleanup(func() { x.cancel(nil) })
	spec := x.spec(in)
	spec.Dir = dir
	child, err := turn.r.o.Shims.Prepare(t.Context(), spec)
	must(t, err)
	t.Cleanup(child.Abandon)
	return x, child
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A stop that comes between the commit of a dispatch and its start settles the
// call: nothing of it has run, and that is known.
//
// proves COO-6 CAL-7
func TestExecution_StoppedBeforeItsStart(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		x, child, owner, file := mustDispatch(t, s, journal.EffectEffect)
		x.t.run.cancel(ErrShutdown)
		if _, err := x.t.conclude(t.Context(), Result{}, x.run(child)); err != nil {
			t.Fatal(err)
		}
		calls, err := s.Calls(t.Context(), owner, x.t.run.session, 0)
		if err != nil || calls[0].State != journal.CallCancelled {
			t.Errorf("the call is %s, %v; want cancelled", calls[0].State, err)
		}
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("it has run: %v", err)
		}
	})
}

// A stop while a shim is waited for cuts nothing off, as nothing runs: the turn is
// released as it is.
//
// proves COO-6
func TestExecution_StoppedBeforeItsDispatch(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		in := Shell{Command: "echo never > file", Shell: "sh"}
		turn, c, owner, dir := mustPropose(t, s, in, journal.EffectEffect)
		mustPrepare(t, turn, c, in, dir) // as an earlier server, which is waited for to go away
		stopped := make(chan error, 1)
		go func() { stopped <- turn.execute(turn.run.ctx, c, in, journal.AllowedBy{Type: journal.AllowedByRule}) }()
		for { // until it has the name
			letGo, ok := turn.r.occupied.try(shim.ID{CallID: c.ID, N: 1}.String())
			if !ok {
				break
			}
			letGo()
			runtime.Gosched()
		}
		turn.run.cancel(ErrShutdown)
		err := <-stopped
		released, err := turn.conclude(t.Context(), Result{}, err)
		if err != nil || !released {
			t.Fatalf("released %v, %v", released, err)
		}
		v, err := s.Session(t.Context(), owner, turn.run.session)
		if err != nil || !v.State.TurnOpen() || v.Claim != nil {
			t.Errorf("claim %v, state %+v, %v; want the open turn", v.Claim, v.State, err)
		}
	})
}

// A command that was to be ended and of which something could not be (another
// user's, say) isn't known to have ended.
//
// proves COO-4 CAL-7
func TestExecution_WhoseProcessesCannotBeEnded(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		code := 0
		for _, tt := range []struct {
			effect journal.Effect
			exit   shim.Exit
			want   journal.CallState
			reason string
		}{
			{journal.EffectEffect, shim.Exit{Started: true, Reason: tool.ReasonTimeout, Signal: "SIGTERM", Survivors: []int{7}}, journal.CallIsUnknown, ""},
			{journal.EffectEffect, shim.Exit{Started: true, Reason: tool.ReasonInterrupted, Survivors: []int{7}}, journal.CallIsUnknown, ""},
			{journal.EffectRead, shim.Exit{Started: true, Reason: tool.ReasonTimeout, Signal: "SIGTERM", Survivors: []int{7}}, journal.CallFailed, "timeout; processes that could not be ended: [7]"},
			{journal.EffectEffect, shim.Exit{Started: true, ExitCode: &code, Survivors: []int{7}}, journal.CallSucceeded, "processes that could not be ended: [7]"},
		} {
			x, _, owner, _ := mustDispatch(t, s, tt.effect)
			if err := x.settle(tt.exit); err != nil && !errors.Is(err, errLimit) {
				t.Fatal(err)
			}
			calls, err := s.Calls(t.Context(), owner, x.t.run.session, 0)
			if err != nil || calls[0].State != tt.want || calls[0].Reason != tt.reason {
				t.Errorf("%s call, %+v: it is %s (%q), %v; want %s (%q)", tt.effect, tt.exit, calls[0].State, calls[0].Reason, err, tt.want, tt.reason)
			}
			if tt.want == journal.CallIsUnknown && (len(calls[0].Evidence) == 0 || calls[0].Since != calls[0].DispatchedAt) {
				t.Errorf("it says nothing of what is left: %+v", calls[0])
			}
		}
	})
}
