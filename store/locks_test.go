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
	if id == "" || id != again || id == other {
		t.Errorf("the folders' ids are %q, %q and %q", id, again, other)
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
