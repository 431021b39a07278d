package tool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// deaths is a named pipe that processes of a test hold open for writing: it
// ends when the last of them is dead.
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
	// Opened for reading and writing it doesn't block; the writing end is
	// closed when the first line has come.
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

// awaitDeath waits for the end of any process, also one that isn't ours.
func awaitDeath(t *testing.T, fd int) {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n != 1 || err != nil {
			t.Fatalf("process lives: %v", err)
		}
		return
	}
}

func mustPidfd(t *testing.T, pid int) int {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// proves COO-7: a command sees its three descriptors and nothing of ours.
func TestCommand_Descriptors(t *testing.T) {
	t.Parallel()
	for _, shell := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			// 3 is the folder that ls itself has open.
			spec, k := specOf(t, "ls /proc/self/fd; readlink /proc/self/fd/0; sh -c 'ls /proc/self/fd'; stat -c %F /proc/self/fd/1 -L")
			spec.Interp = []string{shell, "-eu"}
			wantExit(t, run(t, spec), 0)
			if got, want := k.text["stdout"], "0\n1\n2\n3\n/dev/null\n0\n1\n2\n3\nfifo\n"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// proves COO-7: a session and group of its own, the journalled facts those of
// the command itself, the marker in its environment.
func TestCommand_FactsAreTheCommands(t *testing.T) {
	t.Parallel()
	spec, k := specOf(t, `read -r stat </proc/$$/stat; echo "$$ $stat"`)
	c := mustPrepare(t, spec)
	if ok, err := bears(c.Process().PID, spec.CallID, spec.N); !ok || err != nil {
		t.Errorf("launcher has no marker: %v", err)
	}
	if ok, err := bears(c.Process().PID, spec.CallID, spec.N+1); ok || err != nil {
		t.Errorf("launcher bears the marker of another dispatch: %v", err)
	}
	wantExit(t, await1(t, start(t.Context(), t, c)), 0)
	pid, stat, _ := strings.Cut(k.text["stdout"], " ")
	p, err := parseStat([]byte(stat))
	if err != nil {
		t.Fatal(err)
	}
	want := c.Process()
	if fmt.Sprint(want.PID) != pid || p.pid != want.PID || p.pgid != want.PGID || p.session != want.PID || p.ticks != want.StartedTicks {
		t.Errorf("got %s %+v, want %+v", pid, p, want)
	}
	boot, err := BootID()
	if err != nil || want.BootID != boot || want.Host == "" {
		t.Errorf("got %+v, boot %s, %v", want, boot, err)
	}
}

// hiding are the ways to leave a shell's process group.
var hiding = map[string]string{
	"in the background":   `sleep 1000 & echo up >&5; wait`,
	"nohup":               `nohup sleep 1000 >/dev/null 2>&1 & echo up >&5; wait`,
	"setsid":              `setsid sleep 1000 & echo up >&5; wait`,
	"double fork":         `(sh -c 'sleep 1000 & echo up >&5' &); wait; sleep 1000`,
	"double fork, setsid": `(setsid sh -c 'trap "" HUP TERM; sleep 1000 & echo up >&5; wait; sleep 1000' &); sleep 1000`,
	"no environment":      `env -i sh -c 'sleep 1000 & echo up >&5; wait'`,
	"stopped":             `sh -c 'echo up >&5; kill -STOP $$'`,
}

// proves COO-4, COO-7: an interruption ends every descendant.
func TestCommand_InterruptionEndsAllDescendants(t *testing.T) {
	t.Parallel()
	scripts := maps.Clone(hiding)
	// Nothing but its living parent tells whose this is.
	scripts["no environment, setsid"] = `env -i setsid sh -c 'sleep 1000 & echo up >&5; wait' & wait`
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDeaths(t)
			spec, _ := specOf(t, "exec 5>'"+d.path+"'\n"+script)
			spec.Grace = time.Second
			ctx, cancel := context.WithCancel(t.Context())
			done := start(ctx, t, mustPrepare(t, spec))
			d.awaitSaid(t)
			cancel()
			r := await1(t, done)
			if r.Reason != ReasonInterrupted || len(r.Survivors) > 0 || r.ExitCode == nil && r.Signal == "" {
				t.Errorf("got %s", show(r))
			}
			await(t, d.end, "the death of every descendant")
		})
	}
}

// proves COO-4: a stopped command gets its TERM too, before its grace is over.
func TestCommand_InterruptionWakesTheStopped(t *testing.T) {
	t.Parallel()
	spec, k := specOf(t, "echo up; kill -STOP $$; sleep 1000")
	spec.Grace = patience
	up := k.until("up\n")
	ctx, cancel := context.WithCancel(t.Context())
	done := start(ctx, t, mustPrepare(t, spec))
	await(t, up, "up")
	cancel()
	if r := await1(t, done); r.Signal != "SIGTERM" || r.Reason != ReasonInterrupted {
		t.Errorf("got %s", show(r))
	}
}

// proves COO-7: a call's processes end with their call, though they hold its
// output; what ends by itself in a moment may.
func TestCommand_EndOfTheShellEndsTheRest(t *testing.T) {
	t.Parallel()
	for name, script := range hiding {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDeaths(t)
			script = strings.TrimSuffix(strings.TrimSuffix(script, "wait"), "sleep 1000")
			script += "\nread -r _ <&6 || true\nexit 3"
			if name == "stopped" || name == "no environment" {
				script = strings.Replace(script, "\nread", " &\nread", 1)
			}
			gate := filepath.Join(t.TempDir(), "gate")
			if err := unix.Mkfifo(gate, 0o600); err != nil {
				t.Fatal(err)
			}
			spec, _ := specOf(t, "exec 5>'"+d.path+"' 6<>'"+gate+"'\n"+script)
			spec.Grace = 300 * time.Millisecond
			done := start(t.Context(), t, mustPrepare(t, spec))
			d.awaitSaid(t)
			if err := os.WriteFile(gate, []byte("end\n"), 0); err != nil {
				t.Fatal(err)
			}
			wantExit(t, await1(t, done), 3)
			await(t, d.end, "the death of every descendant")
		})
	}
}

// proves COO-7: the tee of a bash script says its last words.
func TestCommand_LetsTheRestSettle(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Fatal("bash is needed: the product runs bash blocks")
	}
	spec, k := specOf(t, "exec > >(cat; echo last)\necho first")
	spec.Interp = []string{"bash", "-eu"}
	wantExit(t, run(t, spec), 0)
	if got, want := k.text["stdout"], "first\nlast\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// proves COO-7 ATT-4: what a vital command leaves when it is killed does nothing more,
// not even what it would do when it is asked to end.
func TestCommand_VitalTakesAllWithIt(t *testing.T) {
	t.Parallel()
	for _, vital := range []bool{true, false} {
		spec, k := specOf(t, "setsid sh -c 'trap \"echo told; exit\" TERM; touch up; while :; do sleep 0.01; done' & until [ -e up ]; do sleep 0.01; done; kill -KILL $$")
		spec.Vital = vital
		if r := run(t, spec); r.Signal != "SIGKILL" || len(r.Survivors) > 0 {
			t.Errorf("got %s", show(r))
		}
		if told := strings.Contains(k.text["stdout"], "told"); told == vital {
			t.Errorf("vital %v: it printed %q", vital, k.text["stdout"])
		}
	}
}

// proves COO-7: who forks without end is ended too.
func TestCommand_EndsWhoForksInALoop(t *testing.T) {
	t.Parallel()
	d := newDeaths(t)
	// Each generation starts the next in a session of its own and ends.
	loop := filepath.Join(t.TempDir(), "loop.sh")
	if err := os.WriteFile(loop, []byte("trap '' TERM\nsleep 1000 &\nsleep 0.02\nsetsid sh \"$0\" &\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	spec, _ := specOf(t, "exec 5>'"+d.path+"'\nfor i in 1 2 3; do setsid sh '"+loop+"' & done; echo up >&5; wait; sleep 1000")
	spec.Grace = 100 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := start(ctx, t, mustPrepare(t, spec))
	d.awaitSaid(t)
	cancel()
	if r := await1(t, done); len(r.Survivors) > 0 || r.Reason != ReasonInterrupted {
		t.Errorf("got %s", show(r))
	}
	await(t, d.end, "the death of every generation")
}

// onDyingThread runs f on a thread that ends with it, never the main thread,
// and returns that thread's id.
func onDyingThread(f func()) (tid int) {
	done := make(chan struct{})
	body := func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: so the thread ends
		f()
		tid = unix.Gettid()
	}
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != os.Getpid() {
			body()
			return
		}
		go body()
		<-done // it can't be on the main thread: we hold that
		runtime.UnlockOSThread()
	}()
	<-done
	return tid
}

// proves COO-7: the command is tied to this process, not to the thread that
// happened to ask for it.
func TestCommand_OutlivesTheThreadThatAsked(t *testing.T) {
	t.Parallel()
	spec, _ := specOf(t, "exit 5")
	var c *Command
	var err error
	task := fmt.Sprintf("/proc/self/task/%d", onDyingThread(func() { c, err = Prepare(spec) }))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Abandon()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for deadline := time.After(patience); ; {
		if _, err := os.Stat(task); errors.Is(err, os.ErrNotExist) {
			break
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatal("the thread lives on")
		}
	}
	// That it went well this time may be luck: the thread that forked must be
	// nobody else's.
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		head, _, _ := strings.Cut(stack, "\n")
		if strings.Contains(stack, "tool.awaitEnd(") && !strings.Contains(head, "locked to thread") {
			t.Errorf("holder isn't locked to its thread: %s", head)
		}
	}
	wantExit(t, await1(t, start(t.Context(), t, c)), 5)
}

// proves COO-7: who is alone with a call looks at its processes, not at those of the
// whole host.
func TestDescendants_AreOurs(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "sleep 1000 & echo $!; wait")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var grandchild int
	if _, err := fmt.Fscan(pipe, &grandchild); err != nil {
		t.Fatal(err)
	}
	all, ok := descendants()
	if !ok {
		t.Fatal("this kernel keeps no lists of children")
	}
	ours := map[int]bool{os.Getpid(): true}
	for _, p := range all {
		if !ours[p.parent] {
			t.Errorf("%+v descends from nobody of ours", p)
		}
		ours[p.pid] = true
	}
	if !ours[cmd.Process.Pid] || !ours[grandchild] || ours[os.Getppid()] {
		t.Errorf("got %v, want %d and %d among them, and not %d", all, cmd.Process.Pid, grandchild, os.Getppid())
	}
	for _, pid := range []int{grandchild, cmd.Process.Pid} {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	_ = cmd.Wait() // it was killed
}
