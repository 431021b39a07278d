package shim

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// limitFiles bounds how long a file a shim may write.
func limitFiles(t *testing.T, pid int, bytes uint64) {
	t.Helper()
	var now unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &now); err != nil {
		t.Fatal(err)
	}
	now.Cur = min(bytes, now.Max)
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &now, nil); err != nil {
		t.Fatal(err)
	}
}

// awaitFile waits until a file of a child has a length.
func awaitFile(t *testing.T, path string, length int64) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for deadline := time.After(patience); ; {
		if info, err := os.Stat(path); err == nil && info.Size() >= length {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", path)
		}
	}
}

// proves COO-10: while there is no room the output waits, and the record does; nothing
// is lost, and an end can be asked for.
func TestShim_FullDisk(t *testing.T) {
	t.Parallel()
	for name, endsFirst := range map[string]bool{"and ends by itself": false, "and is ended": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := mustRoot(t)
			d := newDeaths(t)
			c := mustPrepare(t, r, specOf(t, d.script("echo up >&5; head -c 500000 /dev/zero | tr '\\0' x; echo end; sleep 1000")))
			const room = 100000
			limitFiles(t, c.shim.Pid, room)
			if err := c.Go(); err != nil {
				t.Fatal(err)
			}
			d.awaitSaid(t)
			awaitFile(t, r.path(c.ID(), spoolName), room)
			k := newKept()
			done := follow(t.Context(), c, 0, k)
			if endsFirst {
				if err := c.End("enough", 50*time.Millisecond); err != nil {
					t.Fatal(err)
				}
				await(t, d.end, "the command's death, though the disk is full")
				if found, err := r.Find(c.ID()); err != nil || !found.Running {
					t.Errorf("got %+v, %v, want a shim that waits", found, err)
				}
			}
			if _, err := c.Status(t.Context()); err != nil {
				t.Errorf("status: %v", err)
			}
			up := k.until("end\n")
			limitFiles(t, c.shim.Pid, unix.RLIM_INFINITY)
			if !endsFirst {
				await(t, up, "all of the output")
				if err := c.End("enough", 50*time.Millisecond); err != nil {
					t.Fatal(err)
				}
			}
			exit := awaitExit(t, done)
			text := checkContiguous(t, k.pieces)
			if exit.Reason != "enough" || exit.OutputBytes != int64(len(text)) || !endsFirst && len(text) != 500004 {
				t.Errorf("got %+v, %d bytes", exit, len(text))
			}
		})
	}
}

// proves COO-10: a record for which there is no room isn't given up.
func TestShim_FullDiskAtItsRecord(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	d := newDeaths(t)
	c := mustPrepare(t, r, specOf(t, d.script("echo up >&5; exit 3")))
	limitFiles(t, c.shim.Pid, 0)
	if err := c.Go(); err != nil {
		t.Fatal(err)
	}
	d.awaitSaid(t)
	await(t, d.end, "the command's end")
	awaitFile(t, r.path(c.ID(), recordDraft), 0)
	if found, err := r.Find(c.ID()); err != nil || !found.Running {
		t.Errorf("got %+v, %v, want a shim that waits", found, err)
	}
	limitFiles(t, c.shim.Pid, unix.RLIM_INFINITY)
	exit, _ := mustFollow(t, c)
	wantExit(t, exit, 3)
}

// proves COO-10: whoever writes to a command that has ended is told so also while its
// shim still waits for room to record that.
func TestWrite_TellsThatTheCommandHasEnded(t *testing.T) {
	t.Parallel()
	r, s := mustRoot(t), specOf(t, "exit 0")
	s.Stdin = true
	c := mustPrepare(t, r, s)
	limitFiles(t, c.shim.Pid, 0)
	if err := c.Go(); err != nil {
		t.Fatal(err)
	}
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	deadline := time.After(patience)
	for err := error(nil); !errors.Is(err, ErrEnded); { // before, the frame finds no room
		select {
		case <-again.C:
			err = c.Write(t.Context(), 1, []byte("x\n"))
		case <-deadline:
			t.Fatalf("waited in vain: %v", err)
		}
	}
	if found, err := r.Find(c.ID()); err != nil || !found.Running {
		t.Errorf("got %+v, %v, want a shim that waits", found, err)
	}
	limitFiles(t, c.shim.Pid, unix.RLIM_INFINITY)
	wantExit(t, awaitExit(t, follow(t.Context(), c, 0, newKept())), 0)
}
