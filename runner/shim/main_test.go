package shim

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"holdfast/runner/tool"
)

// patience fails a test that waits in vain; nothing waits for it to pass.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "shim" {
		Crash = crash
		os.Exit(Main())
	}
	if dir, ok := os.LookupEnv(serverVariable); ok {
		serveTest(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// crash kills this process at the label that the test has set for its shims; where that
// has a folder of deaths, as long as there is one in it.
func crash(label string) {
	if os.Getenv("SHIM_TEST_CRASH") == label && !spared() {
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		select {}
	}
}

func spared() bool {
	deaths, counted := os.LookupEnv("SHIM_TEST_DEATHS")
	for i := 0; counted && i < 10; i++ {
		if os.Remove(filepath.Join(deaths, strconv.Itoa(i))) == nil {
			return false
		}
	}
	return counted
}

// mustRoot opens a root in a folder of the test. When the test is over, what runs
// in it is ended.
func mustRoot(t *testing.T) *Root {
	t.Helper()
	r, err := Open(filepath.Join(t.TempDir(), "shims"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endAll(t, r) })
	return r
}

// endAll ends what runs under a root, and waits.
func endAll(t *testing.T, r *Root) {
	t.Helper()
	r.Close()
	ids, err := r.List()
	if err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, id := range ids {
		c, err := r.Attach(ctx, id)
		if err != nil {
			continue // it isn't running
		}
		if err := c.End("the test is over", time.Millisecond); err != nil {
			t.Error(err)
		}
		if _, err := c.Follow(ctx, 0, nowhere); err != nil && ctx.Err() != nil {
			t.Errorf("end of %s: %v", id, err)
		}
		_ = c.Close()
	}
	for {
		r.reap()
		r.reaping.Lock()
		n := len(r.started)
		r.reaping.Unlock()
		if n == 0 || ctx.Err() != nil {
			return
		}
		<-time.After(time.Millisecond)
	}
}

func nowhere([]tool.Piece, int64) error { return nil }

func specOf(t *testing.T, script string) Spec {
	t.Helper()
	return Spec{Spec: tool.Spec{
		CallID: "call_" + strings.NewReplacer("/", "-", " ", "-", ",", "", "'", "").Replace(t.Name()), N: 1,
		Interp: []string{"sh", "-eu"}, Script: script, Dir: t.TempDir(), Env: tool.BaseEnv(os.Environ()),
		Timeout: time.Hour, Grace: 200 * time.Millisecond,
	}}
}

// specOf2 is specOf for a second child of a test.
func specOf2(t *testing.T, script string) Spec {
	t.Helper()
	s := specOf(t, script)
	s.N = 2
	return s
}

func mustPrepare(t *testing.T, r *Root, s Spec) *Child {
	t.Helper()
	c, err := r.Prepare(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Abandon(); _ = c.Close() })
	return c
}

// mustStart prepares a command and opens its gate.
func mustStart(t *testing.T, r *Root, s Spec) *Child {
	t.Helper()
	c := mustPrepare(t, r, s)
	if err := c.Go(); err != nil {
		t.Fatal(err)
	}
	return c
}

func mustAttach(t *testing.T, r *Root, id ID) *Child {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := r.Attach(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// kept collects what a Follow delivers.
type kept struct {
	mu     sync.Mutex
	pieces []tool.Piece
	ends   []int64 // of the deliveries
	text   map[string]string
	seen   map[string]chan struct{}
}

func newKept() *kept { return &kept{text: map[string]string{}, seen: map[string]chan struct{}{}} }

func (k *kept) take(pieces []tool.Piece, next int64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pieces = append(k.pieces, pieces...)
	k.ends = append(k.ends, next)
	for _, p := range pieces {
		k.text[p.Stream] += p.Text
	}
	for words, ch := range k.seen {
		if strings.Contains(k.text["stdout"], words) {
			close(ch)
			delete(k.seen, words)
		}
	}
	return nil
}

// until returns a channel that is closed once stdout holds words.
func (k *kept) until(words string) <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	ch := make(chan struct{})
	if strings.Contains(k.text["stdout"], words) {
		close(ch)
		return ch
	}
	k.seen[words] = ch
	return ch
}

// ended is what a Follow returned.
type ended struct {
	exit Exit
	err  error
}

func follow(ctx context.Context, c *Child, from int64, k *kept) <-chan ended {
	done := make(chan ended, 1)
	go func() {
		exit, err := c.Follow(ctx, from, k.take)
		done <- ended{exit, err}
	}()
	return done
}

// mustFollow follows a child to its end.
func mustFollow(t *testing.T, c *Child) (Exit, *kept) {
	t.Helper()
	k := newKept()
	return awaitExit(t, follow(t.Context(), c, 0, k)), k
}

func awaitExit(t *testing.T, done <-chan ended) Exit {
	t.Helper()
	select {
	case e := <-done:
		if e.err != nil {
			t.Fatal(e.err)
		}
		return e.exit
	case <-time.After(2 * patience):
		t.Fatal("Follow hangs")
		return Exit{}
	}
}

func await(t *testing.T, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(patience):
		t.Fatalf("waited in vain: %s", what)
	}
}

func wantExit(t *testing.T, e Exit, code int) {
	t.Helper()
	if !e.Started || e.ExitCode == nil || *e.ExitCode != code || e.Signal != "" || e.Reason != "" || e.Error != "" || len(e.Survivors) > 0 {
		t.Errorf("got %+v, want exit code %d", e, code)
	}
}

// awaitReleased waits until a child's lock is free.
func awaitReleased(t *testing.T, r *Root, id ID) {
	t.Helper()
	lock, err := os.Open(r.path(id, lockName))
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan struct{})
	go func() {
		defer close(released)
		_ = unix.Flock(int(lock.Fd()), unix.LOCK_SH)
		_ = unlock(lock)
		_ = lock.Close()
	}()
	await(t, released, "the shim's end")
}

// mustFind waits for a child's end and returns its record.
func mustFind(t *testing.T, r *Root, id ID) Exit {
	t.Helper()
	awaitReleased(t, r, id)
	found, err := r.Find(id)
	if err != nil || found.Running || found.Exit == nil {
		t.Fatalf("got %+v, %v, want a record", found, err)
	}
	return *found.Exit
}

// wantLost checks that a child neither runs nor has a record.
func wantLost(t *testing.T, r *Root, id ID) {
	t.Helper()
	awaitReleased(t, r, id)
	if found, err := r.Find(id); err != nil || found.Running || found.Exit != nil {
		t.Errorf("got %+v, %v, want neither", found, err)
	}
	if _, err := r.Attach(t.Context(), id); !errors.Is(err, ErrLost) {
		t.Errorf("attach: got %v, want ErrLost", err)
	}
}

// deaths is a named pipe that processes of a test hold open for writing: it ends
// when the last of them is dead.
type deaths struct {
	path string
	end  chan struct{}
	said chan string
}

func newDeaths(t *testing.T) *deaths {
	t.Helper()
	d := &deaths{path: filepath.Join(t.TempDir(), "fifo"), end: make(chan struct{}), said: make(chan string, 1000)}
	if err := unix.Mkfifo(d.path, 0o600); err != nil {
		t.Fatal(err)
	}
	// Opened for reading and writing it doesn't block; the writing end is closed when
	// the first line has come.
	keep, err := os.OpenFile(d.path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := os.OpenFile(d.path, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = keep.Close(), r.Close() })
	go func() {
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			_ = keep.Close()
			d.said <- lines.Text()
		}
		close(d.end)
	}()
	t.Cleanup(func() { _ = keep.Close(); await(t, d.end, "the death of all that hold the pipe") })
	return d
}

// script has the commands of body hold the pipe as descriptor 5.
func (d *deaths) script(body string) string { return "exec 5>'" + d.path + "'\n" + body }

func (d *deaths) awaitSaid(t *testing.T) string {
	t.Helper()
	select {
	case s := <-d.said:
		return s
	case <-time.After(patience):
		t.Fatal("nothing was said")
		return ""
	}
}

func kill(t *testing.T, pid int, sig unix.Signal) {
	t.Helper()
	if err := unix.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}
