package shim

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ready returns the shim that a root keeps ready once a command has begun.
func ready(t *testing.T, r *Root) *os.Process {
	t.Helper()
	r.sparing.Lock()
	defer r.sparing.Unlock()
	if r.spare == nil {
		t.Fatal("none is kept ready")
	}
	return r.spare.process
}

// proves COO-7: the next command is run by the shim that was kept ready, under its
// own lock, and another is kept ready then.
func TestSpare_RunsTheNextCommand(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	exit, _ := mustFollow(t, mustStart(t, r, specOf(t, "exit 3")))
	wantExit(t, exit, 3)
	kept := ready(t, r)
	c := mustStart(t, r, specOf2(t, "echo second; exit 4"))
	if c.shim.Pid != kept.Pid {
		t.Errorf("got shim %d, want %d", c.shim.Pid, kept.Pid)
	}
	if next := ready(t, r); next.Pid == kept.Pid {
		t.Error("the same one is kept for another command")
	}
	exit, k := mustFollow(t, c)
	wantExit(t, exit, 4)
	if k.text["stdout"] != "second\n" {
		t.Errorf("got %q", k.text["stdout"])
	}
	if exit.StartedAt < time.Now().Add(-patience).UnixMilli() {
		t.Errorf("it began at %d", exit.StartedAt)
	}
}

// proves COO-7: one that was kept ready and has ended costs the next command nothing.
func TestSpare_EndedMeanwhile(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	_, _ = mustFollow(t, mustStart(t, r, specOf(t, "true")))
	kept := ready(t, r)
	kill(t, kept.Pid, unix.SIGKILL)
	for !hasEnded(kept) {
		<-time.After(time.Millisecond)
	}
	s := specOf2(t, "echo ran >>ran")
	exit, _ := mustFollow(t, mustStart(t, r, s))
	wantExit(t, exit, 0)
	if data, err := os.ReadFile(filepath.Join(s.Dir, "ran")); err != nil || string(data) != "ran\n" {
		t.Errorf("it ran %q, %v", data, err)
	}
}

// proves CAL-5: a shim that has been handed its lock and hasn't looked yet holds it;
// if it is killed then, nothing has run.
func TestSpare_HoldsWhatItWasHanded(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	_, _ = mustFollow(t, mustStart(t, r, specOf(t, "true")))
	kept := ready(t, r)
	kill(t, kept.Pid, unix.SIGSTOP)
	id := ID{"call_handed", 1}
	lock, err := r.claim(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	c := &Child{r: r, id: id}
	if ahead, err := c.start(lock); err != nil || !ahead {
		t.Fatalf("got %v, %v", ahead, err)
	}
	if found, err := r.Find(id); err != nil || !found.Running {
		t.Errorf("got %+v, %v, want it running", found, err)
	}
	kill(t, kept.Pid, unix.SIGKILL)
	if _, err := c.say(order{Spec: specOf(t, "true").wire()}); !errors.Is(err, errSilent) {
		t.Errorf("got %v, want %v", err, errSilent)
	}
	c.discard()
	if found, err := r.Find(id); err != nil || found.Running || found.Exit != nil {
		t.Errorf("got %+v, %v, want nothing", found, err)
	}
}

// proves COO-7: one that is kept ready ends with its server, at a TERM, and when the
// root is closed, and leaves no record anywhere.
func TestSpare_Ends(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *Root){
		"its server is gone": func(_ *testing.T, r *Root) { _ = r.spare.line.Close() },
		"TERM":               func(t *testing.T, r *Root) { kill(t, r.spare.process.Pid, unix.SIGTERM) },
		"closed":             func(_ *testing.T, r *Root) { r.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := mustRoot(t)
			c := mustStart(t, r, specOf(t, "true"))
			_, _ = mustFollow(t, c)
			if err := r.Remove(c.ID()); err != nil {
				t.Fatal(err)
			}
			kept := ready(t, r)
			end(t, r)
			deadline := time.Now().Add(patience)
			for !hasEnded(kept) {
				if time.Now().After(deadline) {
					t.Fatal("it doesn't end")
				}
				<-time.After(time.Millisecond)
			}
			if left, err := os.ReadDir(r.dir); err != nil || len(left) > 0 {
				t.Errorf("it left %v, %v", left, err)
			}
		})
	}
}

// proves COO-7: one that was kept ready and is stopped holds up the next command only
// for a while, and nothing runs twice.
func TestSpare_Stopped(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	_, _ = mustFollow(t, mustStart(t, r, specOf(t, "true")))
	kept := ready(t, r)
	kill(t, kept.Pid, unix.SIGSTOP)
	s := specOf2(t, "echo ran >>ran")
	exit, _ := mustFollow(t, mustStart(t, r, s))
	wantExit(t, exit, 0)
	if data, err := os.ReadFile(filepath.Join(s.Dir, "ran")); err != nil || string(data) != "ran\n" {
		t.Errorf("it ran %q, %v", data, err)
	}
}
