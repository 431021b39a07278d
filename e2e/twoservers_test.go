package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/e2e/rig"
	"holdfast/store/storetest"
)

// onPostgres runs body if this run has Postgres, as a subtest of that name.
func onPostgres(t *testing.T, body func(t *testing.T, w *world)) {
	t.Helper()
	for _, name := range storetest.Databases() {
		if name == "postgres" {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				body(t, newWorld(t, name))
			})
		}
	}
}

// proves LEA-1 LEA-2 LEA-9 COO-3
func TestE2E_ThirtyMissionsOverTwoServers(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, w *world) {
		// Few places, so that neither server can take all.
		one, two := w.serve(flags("--max-running", "3", "--sweep", "1s")), w.serve(as("2"), flags("--max-running", "3", "--sweep", "1s"))
		one.env, two.env = nil, nil
		var ids []string
		for i := range 30 {
			s := []*server{one, two}[i%2]
			name := fmt.Sprintf("m%d", i)
			// The parent of the command is its shim, whose parent is the server.
			ids = append(ids, s.mission(steps(effect(name), "cut -d ' ' -f 4 /proc/$PPID/stat >> ran")))
		}
		for _, id := range ids {
			one.untilQuiet(id, "ready")
		}
		for i := range ids {
			w.wantEffect(fmt.Sprintf("m%d", i), 1)
		}
		by := map[string]int{}
		for line := range strings.Lines(w.file("ran")) {
			by[strings.TrimSpace(line)]++
		}
		first, second := by[strconv.Itoa(one.pid())], by[strconv.Itoa(two.pid())]
		if first+second != 30 || first < 5 || second < 5 {
			t.Errorf("%d missions by one server and %d by the other (%v), want 30 in all and at least 5 by each", first, second, by)
		}
	})
}

// wantHeld fails unless a server that is configured so leaves at once with exit 3, naming the holder.
func wantHeld(t *testing.T, w *world, pid int, args ...string) {
	t.Helper()
	began := time.Now()
	o := execute(t, w.dir, "", nil, append([]string{"serve", "--addr", rig.FreeAddr(t), "--workspaces", w.work}, args...)...)
	if o.code != 3 || !strings.Contains(o.err, fmt.Sprintf("pid %d ", pid)) {
		t.Errorf("exit %d, want 3 and the holder's pid %d named: %s", o.code, pid, o.err)
	}
	// A second on a machine that does nothing else; its bound is that it doesn't wait for the holder.
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s to leave", took)
	}
}

// proves LEA-8 LEA-11
func TestE2E_ASecondServerOnTheSameJournalLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	s := w.serve()
	link := filepath.Join(w.dir, "link")
	if err := os.Symlink(filepath.Dir(w.db.URL), link); err != nil {
		t.Fatal(err)
	}
	through := filepath.Join(link, filepath.Base(w.db.URL))
	file := filepath.Join(w.dir, "journal-link.db")
	if err := os.Symlink(w.db.URL, file); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"the same path": w.db.URL, "through a linked folder": through, "through a linked file": file} {
		t.Run(name, func(t *testing.T) {
			wantHeld(t, w, s.pid(), "--database", path, "--state", w.state("2"))
		})
	}
	t.Run("while it is frozen", func(t *testing.T) {
		s.sigstop()
		wantHeld(t, w, s.pid(), "--database", through, "--state", w.state("2"))
		s.sigcont()
	})
	id := s.mission(steps(effect("once")))
	s.untilQuiet(id, "ready")
	s.kill9()
	other := w.serve(as("2")) // the kernel has released what the dead one held
	other.untilQuiet(id, "ready")
	w.wantEffect("once", 1)
}

// proves LEA-11
func TestE2E_ASecondServerOnTheSameStateFolderLeaves(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve()
		elsewhere := w.db.URL // on Postgres many servers share a journal, but no state folder
		if w.db.Name == "sqlite" {
			elsewhere = filepath.Join(w.dir, "other.db")
		}
		link := filepath.Join(w.dir, "state-link")
		if err := os.Symlink(s.state, link); err != nil {
			t.Fatal(err)
		}
		wantHeld(t, w, s.pid(), "--database", elsewhere, "--state", s.state)
		wantHeld(t, w, s.pid(), "--database", elsewhere, "--state", link)
		s.get("/readyz").want(t, http.StatusOK)
		pid := s.pid()
		s.kill9()
		s.restart()
		if s.pid() == pid {
			t.Error("the pid is the old one")
		}
	})
}

// The owner is frozen past its lease, the other takes over, and the owner wakes.
// proves LEA-4 LEA-5 LEA-9 LEA-12 REC-4
func TestE2E_AFrozenOwnerWakesAfterTheTakeover(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, w *world) {
		owner := w.serve(flags(append([]string{"--max-running", "1"}, quick...)...))
		gate, up, more := w.gate("gate"), w.gate("up"), w.gate("more")
		id := owner.mission(steps(effect("begun")+"; "+up.Tell("$$")+"; "+more.Read()+"; echo late; "+up.Tell("said")+"; "+gate.Read()+"; "+effect("ended"), effect("next")))
		pid := atoi(t, up.Wait())
		owner.sigstop()
		more.Open() // so that the owner finds something to write when it wakes
		up.Wait()

		other := w.serve(as("2"), flags(quick...))
		other.untilQuiet(id, "uncertain")
		// The new owner works on the session while the old one is still frozen.
		other.resolve(other.calls(id)[0].ID, "cannot_tell", "continue").want(t, http.StatusOK)
		other.untilQuiet(id, "ready")
		w.wantEffect("next", 1)
		before := other.events(id)
		other.kill9()

		owner.sigcont()
		waitGone(t, pid) // LEA-12: it ends its child
		gate.Open()
		// It works on, with sessions that are its own to run; its one place is free,
		// so the run that was taken over has ended.
		bystander := owner.mission(steps("true"))
		owner.untilQuiet(bystander, "ready")
		after := owner.events(id)
		for _, e := range after[len(before):] {
			if e.ExecutionID != nil {
				t.Errorf("after the takeover: event %d (%s) of %s", e.Seq, e.Kind, *e.ExecutionID)
			}
		}
		for name, n := range map[string]int{"begun": 1, "ended": 0, "next": 1} {
			w.wantEffect(name, n)
		}
		wantCounts(t, after, map[string]int{"step.recovered": 1, "call.unknown": 1, "turn.started": 1, "call.output": 0})
	})
}

// A live lease is nobody else's, however long its command takes.
// proves LEA-2 LEA-3 REC-1
func TestE2E_TwoServersAndALiveLease(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, w *world) {
		owner := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		id := owner.mission(steps(up.Tell("up") + "; " + gate.Read() + "; " + effect("once")))
		up.Wait()
		execution := owner.session(id).Execution.ID
		other := w.serve(as("2"), flags(quick...))
		t.Run("never starts a second owner while the lease is live", func(t *testing.T) {
			// Past a whole lease, and several sweeps of both: renewals are what keeps it.
			w.untilLeaseAged(id, 4*time.Second)
			if got := other.session(id).Execution; got == nil || got.ID != execution {
				t.Errorf("the execution is %+v, was %s", got, execution)
			}
		})
		t.Run("never recovers a live execution lease", func(t *testing.T) {
			wantCounts(t, other.events(id), map[string]int{"step.recovered": 0, "call.dispatched": 1})
		})
		gate.Open()
		other.untilQuiet(id, "ready")
		w.wantEffect("once", 1)
	})
}

// untilLeaseAged waits until the claim of a session has lived so long, by the
// clock that grants leases, and is still there.
func (w *world) untilLeaseAged(id string, age time.Duration) {
	w.t.Helper()
	db := w.sql()
	eventually(w.t, "the claim is "+age.String()+" old", func() bool {
		return w.db.Count(w.t, db, "SELECT coalesce(max(expires_at - lease_ms - claimed_at), 0) FROM claim WHERE session_id = ?", id) > age.Milliseconds()
	})
}
