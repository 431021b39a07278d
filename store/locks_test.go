package store_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/store"
)

// proves LEA-8 LEA-11
func TestLocks_AnotherProcessHoldsThem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "journal.db")
	must(t, os.WriteFile(path, nil, 0o600))
	link := filepath.Join(dir, "link.db")
	must(t, os.Symlink(path, link))

	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), lockHelper+"="+path)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "locked\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	host, err := os.Hostname()
	must(t, err)
	for name, try := range map[string]func() error{
		"the journal":      func() error { _, err := store.LockJournal(path); return err },
		"by another name":  func() error { _, err := store.LockJournal(link); return err },
		"the state folder": func() error { _, _, err := store.LockState(path + ".state"); return err },
	} {
		var held *store.HeldError
		if err := try(); !errors.As(err, &held) {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		if held.Holder.PID != cmd.Process.Pid || held.Holder.Host != host || held.Holder.Since.IsZero() {
			t.Errorf("%s: held by %+v, want pid %d", name, held.Holder, cmd.Process.Pid)
		}
		if !strings.Contains(held.Error(), "pid ") {
			t.Errorf("it says %q", held.Error())
		}
	}
	// The kernel releases them at any death.
	must(t, cmd.Process.Kill())
	if err := cmd.Wait(); err == nil {
		t.Error("the other process left by itself")
	}
	l, err := store.LockJournal(link)
	must(t, err)
	if _, err := store.LockJournal(path); err == nil {
		t.Error("locked twice")
	}
	must(t, l.Close())
	l, id, err := store.LockState(path + ".state")
	must(t, err)
	must(t, l.Close())
	l, again, err := store.LockState(path + ".state")
	must(t, err)
	must(t, l.Close())
	_, other, err := store.LockState(filepath.Join(dir, "other"))
	must(t, err)
	if id.ID == "" || id.Was != "" || id != again || id.ID == other.ID {
		t.Errorf("the folders are %q, %q and %q", id, again, other)
	}
}

// The lock of a killed server may live on for a moment in a child that it was just
// starting: a new server waits for that, and for nobody who is alive.
//
// proves LEA-8 LEA-11
func TestLockState_WaitsForTheLastBreathOfTheDead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, _, err := store.LockState(dir)
	must(t, err)
	gone := exec.CommandContext(t.Context(), "true")
	must(t, gone.Run())
	host, err := os.Hostname()
	must(t, err)
	// The holder as it stands in the file is dead; the descriptor is ours.
	must(t, os.WriteFile(filepath.Join(dir, "lock.holder"), fmt.Appendf(nil, `{"pid":%d,"host":%q}`, gone.ProcessState.Pid(), host), 0o600))
	released := make(chan error, 1)
	timer := time.AfterFunc(50*time.Millisecond, func() { released <- first.Close() })
	defer timer.Stop()
	second, _, err := store.LockState(dir)
	must(t, err)
	must(t, <-released)
	must(t, second.Close())
}

// The id of a state folder is its own: a copy, or what was restored, has another
// one, and one that was moved has the same.
//
// proves LEA-11
func TestLockState_CopyHasAnotherID(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir, moved := filepath.Join(root, "a"), filepath.Join(root, "moved")
	lock := func(dir string) store.StateFolder {
		t.Helper()
		l, folder, err := store.LockState(dir)
		must(t, err)
		must(t, l.Close())
		return folder
	}
	first := lock(dir)
	copied := filepath.Join(root, "b")
	must(t, exec.CommandContext(t.Context(), "cp", "-a", dir, copied).Run())
	second := lock(copied)
	if second.ID == first.ID || second.Was != first.ID {
		t.Errorf("the copy of %+v is %+v", first, second)
	}
	if again := lock(copied); again.ID != second.ID || again.Was != "" {
		t.Errorf("the copy was %+v, and is %+v", second, again)
	}
	if again := lock(dir); again != first {
		t.Errorf("the original was %+v, and is %+v", first, again)
	}
	must(t, os.Rename(dir, moved))
	if again := lock(moved); again != first {
		t.Errorf("it was %+v, and is %+v where it was moved to", first, again)
	}
	// An id of which nobody knows whose it is, from a build that bound none.
	must(t, os.WriteFile(filepath.Join(moved, "id"), []byte(first.ID+"\n"), 0o600))
	if again := lock(moved); again.ID == first.ID || again.Was != first.ID {
		t.Errorf("unbound it is %+v", again)
	}
}
