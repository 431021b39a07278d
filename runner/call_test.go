package runner

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner/tool"
	"holdfast/store"
	"holdfast/store/storetest"
)

// A stop that comes between the commit of a dispatch and its start settles the
// call: nothing of it has run, and that is known.
//
// proves COO-6 CAL-7
func TestExecution_StoppedBeforeItsStart(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		dir := t.TempDir()
		spaces, err := NewWorkspaces([]string{dir})
		if err != nil {
			t.Fatal(err)
		}
		r, err := New(Options{
			Store: s, Logger: slog.New(slog.DiscardHandler), WorkerID: "wrk_" + rand.Text(), StateFolderID: "fld_" + rand.Text(), Workspaces: spaces,
			MaxRunning: 1, Lease: 30 * time.Second, Renew: 10 * time.Second, Sweep: time.Hour, Env: tool.BaseEnv(os.Environ()),
		})
		if err != nil {
			t.Fatal(err)
		}
		session := storetest.MustRun(t, s, r.o.WorkerID)
		run := newRun(t.Context(), session.Session)
		run.hold(session.Claim, time.Now(), r.o.Lease)
		turn, err := r.newTurn(t.Context(), run, session.Claim)
		if err != nil {
			t.Fatal(err)
		}
		in := Shell{Command: "echo never > file", Shell: "sh"}
		c, err := turn.propose(t.Context(), CallIntent{Key: "k", Input: in, Effect: journal.EffectEffect})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(run.ctx)
		defer cancel(nil)
		x := &execution{t: turn, callID: c.ID, ctx: ctx, cancel: cancel}
		spec := x.spec(in, 1)
		spec.Dir = dir
		cmd, err := tool.Prepare(spec)
		if err != nil {
			t.Fatal(err)
		}
		defer cmd.Abandon()
		if err := turn.dispatch(ctx, c, journal.AllowedBy{Type: journal.AllowedByRule}, journal.Process(cmd.Process())); err != nil {
			t.Fatal(err)
		}
		run.cancel(ErrShutdown)
		if _, err := turn.conclude(t.Context(), Result{}, x.finish(cmd)); err != nil {
			t.Fatal(err)
		}
		calls, err := s.Calls(t.Context(), session.Owner, session.Session)
		if err != nil || calls[0].State != journal.CallCancelled {
			t.Errorf("the call is %s, %v; want cancelled", calls[0].State, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "file")); !os.IsNotExist(err) {
			t.Errorf("it has run: %v", err)
		}
	})
}
