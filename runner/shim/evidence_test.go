package shim

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// proves COO-7: a folder that others can enter is refused, and so is nobody's name.
func TestOpen_ChecksItsFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "shims")
	if _, err := Open(dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("got %v, %v, want mode 0700", info.Mode(), err)
	}
	if err := os.Chmod(dir, 0o710); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "make it 0700") {
		t.Errorf("got %v, want what to do", err)
	}
}

func TestID_IsAFoldersName(t *testing.T) {
	t.Parallel()
	for _, id := range []ID{{"call_1", 1}, {"a.b", 0}, {"A-b_c", 12}} {
		if got, ok := parseID(id.String()); !ok || got != id || id.check() != nil {
			t.Errorf("%v: got %v, %v, %v", id, got, ok, id.check())
		}
	}
	for _, id := range []ID{{"", 1}, {"a/b", 1}, {"..", 1}, {".hidden", 1}, {"a b", 1}, {"a", -1}, {"ü", 1}, {strings.Repeat("x", 201), 1}} {
		if id.check() == nil {
			t.Errorf("%q: got no error", id.String())
		}
	}
	for _, name := range []string{"a", "a.", "a.01", "a.+1", ".1", "a.-1"} {
		if id, ok := parseID(name); ok {
			t.Errorf("%q: got %v", name, id)
		}
	}
}

// proves COO-7: folders 0700, files 0600.
func TestPrepare_ModesOfItsFiles(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	s := specOf(t, "umask; echo x")
	s.Stdin = true
	c := mustStart(t, r, s)
	exit, _ := mustFollow(t, c)
	wantExit(t, exit, 0)
	seen := map[string]bool{}
	err := filepath.WalkDir(r.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		seen[d.Name()] = true
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s: got mode %04o, want %04o", name, got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{lockName, spoolName, stdinName, sockName, recordName} {
		if !seen[name] {
			t.Errorf("%s isn't there", name)
		}
	}
}

// proves COO-7: what was never prepared is neither running nor recorded, nor is it
// there to be removed.
func TestRoot_KnowsNothing(t *testing.T) {
	t.Parallel()
	r, id := mustRoot(t), ID{"call_none", 1}
	if found, err := r.Find(id); err != nil || found.Running || found.Exit != nil {
		t.Errorf("find: got %+v, %v", found, err)
	}
	if err := r.Remove(id); err != nil {
		t.Errorf("remove: %v", err)
	}
	if err := r.Read(t.Context(), id, 0, nowhere); err != nil {
		t.Errorf("read: %v", err)
	}
	if _, err := r.Attach(t.Context(), id); !errors.Is(err, ErrLost) {
		t.Errorf("attach: got %v, want ErrLost", err)
	}
	if ids, err := r.List(); err != nil || len(ids) > 0 {
		t.Errorf("list: got %v, %v", ids, err)
	}
}

// proves COO-7: while it runs, a child can be neither buried nor removed.
func TestRoot_LeavesTheRunningAlone(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	second := specOf(t, "sleep 1000")
	second.N = 2
	c, c2 := mustStart(t, r, specOf(t, "sleep 1000")), mustPrepare(t, r, second)
	for _, id := range []ID{c.ID(), c2.ID()} {
		if found, err := r.Bury(id); err != nil || !found.Running || found.Exit != nil {
			t.Errorf("bury: got %+v, %v", found, err)
		}
		if err := r.Remove(id); err == nil || !strings.Contains(err.Error(), "running") {
			t.Errorf("remove: got %v", err)
		}
	}
	if ids, err := r.List(); err != nil || !slices.Equal(ids, []ID{c.ID(), c2.ID()}) {
		t.Errorf("list: got %v, %v", ids, err)
	}
	if _, err := os.Stat(r.path(c.ID(), tombstoneName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a tombstone was left: %v", err)
	}
	if _, err := r.Prepare(t.Context(), specOf(t, "true")); err == nil || !strings.Contains(err.Error(), openedName) {
		t.Errorf("the same number was prepared twice: %v", err)
	}
}

// proves COO-7: whose outcome was called unknown, never begins.
func TestBury_NothingBeginsAfterIt(t *testing.T) {
	t.Parallel()
	r, s := mustRoot(t), specOf(t, "touch ran")
	for range 2 {
		if found, err := r.Bury(ID{s.CallID, s.N}); err != nil || found.Running || found.Exit != nil {
			t.Fatalf("bury: got %+v, %v", found, err)
		}
	}
	if c, err := r.Prepare(t.Context(), s); err == nil {
		c.Abandon()
		t.Error("it was prepared again")
	}
	s.N++
	c := mustPrepare(t, r, s)
	// As if it had been buried between the making of its folder and of its lock.
	if err := os.WriteFile(r.path(c.ID(), tombstoneName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Go(); err == nil || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("go: got %v", err)
	}
	exit, _ := mustFollow(t, c)
	if exit.Started || exit.ExitCode != nil || exit.Signal != "" || exit.Error == "" {
		t.Errorf("got %+v, want one that never began", exit)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "ran")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it ran: %v", err)
	}
	if found, err := r.Bury(c.ID()); err != nil || found.Exit == nil {
		t.Errorf("bury: got %+v, %v, want the record", found, err)
	}
}

// proves COO-7: those who only look don't take each other for a shim, nor does who
// buries.
func TestFind_LooksAtOnce(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	id := ID{"call_looked_at", 1}
	if _, err := r.Bury(id); err != nil {
		t.Fatal(err)
	}
	look := func(each func(Found)) (ended <-chan struct{}) {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				other := &Root{dir: r.dir, exe: r.exe} // of another process
				for range 200 {
					found, err := other.Find(id)
					if err != nil {
						t.Error(err)
						return
					}
					each(found)
				}
			})
		}
		done := make(chan struct{})
		go func() { all.Wait(); close(done) }()
		return done
	}
	await(t, look(func(f Found) {
		if f.Running {
			t.Error("found it running")
		}
	}), "who looks")
	done := look(func(Found) {}) // these may see who buries
	for range 20 {
		if found, err := r.Bury(id); err != nil || found.Running {
			t.Errorf("bury: got %+v, %v", found, err)
		}
	}
	await(t, done, "who looks")
}

// proves COO-7: a shim that nobody ordered is nothing.
func TestMain_NobodyOrderedIt(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	cmd := selfCommand(t, r)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != exitUsage || !strings.Contains(string(out), "internal") {
		t.Errorf("got %s, %v", out, err)
	}
}

// proves COO-7: paths longer than a socket's name may be.
func TestPrepare_LongPath(t *testing.T) {
	t.Parallel()
	r, err := Open(filepath.Join(t.TempDir(), strings.Repeat("long/", 30), "shims"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endAll(t, r) })
	c := mustStart(t, r, specOf(t, "echo up; sleep 1000"))
	k := newKept()
	up := k.until("up\n")
	done := follow(t.Context(), mustAttach(t, r, c.ID()), 0, k)
	await(t, up, "up")
	if err := c.End("enough", 0); err != nil {
		t.Error(err)
	}
	if exit := awaitExit(t, done); exit.Reason != "enough" || exit.Signal != "SIGTERM" {
		t.Errorf("got %+v", exit)
	}
}

// proves COO-7: what can't start is an error before the dispatch, in the words of
// package tool, and leaves nothing.
func TestPrepare_Refuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*Spec)
		says   string
	}{
		"no interpreter": {func(s *Spec) { s.Interp = []string{"no-such-shell"} }, "prepare command: interpreter no-such-shell"},
		"missing folder": {func(s *Spec) { s.Dir = "/no/such/folder" }, "prepare command: fork/exec"},
		"odd call":       {func(s *Spec) { s.CallID = "a/b" }, `child "a/b.1": letters`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := mustRoot(t), specOf(t, "true")
			tt.change(&s)
			if _, err := r.Prepare(t.Context(), s); err == nil || !strings.HasPrefix(err.Error(), tt.says) {
				t.Errorf("got %v", err)
			}
			if left, err := os.ReadDir(r.dir); err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

// proves COO-7: nothing of an abandoned command runs, and nothing is left of it.
func TestChild_AbandonedRunsNothing(t *testing.T) {
	t.Parallel()
	r, s := mustRoot(t), specOf(t, "touch ran")
	c := mustPrepare(t, r, s)
	if c.Process().PID == 0 || c.Process().PGID != c.Process().PID {
		t.Errorf("got process %+v", c.Process())
	}
	c.Abandon()
	c.Abandon()
	if left, err := os.ReadDir(r.dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "ran")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it ran: %v", err)
	}
	if err := c.Go(); err == nil {
		t.Error("its gate was opened")
	}
	if err := unix.Kill(c.Process().PID, 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("its launcher is there: %v", err)
	}
}

// proves COO-7: a gate opens once, and after that nothing is abandoned.
func TestChild_GateOpensOnce(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	c := mustStart(t, r, specOf(t, "echo once"))
	if err := c.Go(); err == nil {
		t.Error("the gate opened twice")
	}
	c.Abandon()
	exit, k := mustFollow(t, c)
	wantExit(t, exit, 0)
	if k.text["stdout"] != "once\n" {
		t.Errorf("got %q", k.text["stdout"])
	}
	if err := mustAttach(t, r, c.ID()).Go(); err == nil {
		t.Error("one that was attached to has a gate")
	}
}

// proves COO-7: a server that goes away before it has said what to run leaves a
// record that nothing ran.
func TestShim_ServerGoneBeforeItsOrder(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	id := ID{"call_no_order", 1}
	lock, err := r.claim(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	c := &Child{r: r, id: id}
	if _, err := c.start(lock); err != nil {
		t.Fatal(err)
	}
	if found, err := r.Find(id); err != nil || !found.Running {
		t.Errorf("got %+v, %v, want it running from its birth on", found, err)
	}
	c.detach()
	if exit := mustFind(t, r, id); exit.Started || exit.Error == "" || exit.ExitCode != nil {
		t.Errorf("got %+v", exit)
	}
	// The call wasn't dispatched: its number is free for the next server.
	s := specOf(t, "exit 4")
	s.CallID, s.N = id.CallID, id.N
	exit, _ := mustFollow(t, mustStart(t, r, s))
	wantExit(t, exit, 4)
	if _, err := r.Prepare(t.Context(), s); err == nil {
		t.Error("one that ran was prepared again")
	}
}
