package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/runner/tool"
)

// hiding are the ways to leave a shell's process group.
var hiding = map[string]string{
	"in the background":   `sleep 1000 & echo up >&5; wait`,
	"nohup":               `nohup sleep 1000 >/dev/null 2>&1 & echo up >&5; wait`,
	"setsid":              `setsid sleep 1000 & echo up >&5; wait`,
	"double fork":         `(sh -c 'sleep 1000 & echo up >&5' &); wait; sleep 1000`,
	"double fork, setsid": `(setsid sh -c 'trap "" HUP TERM; sleep 1000 & echo up >&5; wait; sleep 1000' &); sleep 1000`,
	"stopped":             `sh -c 'echo up >&5; kill -STOP $$'`,
	"ignores TERM":        `trap '' TERM; echo up >&5; while :; do sleep 1000; done`,
}

// proves COO-7: a command outlives its server, and the next one gets its output and
// its end, once.
func TestServerKilled_TheCommandGoesOn(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	gate := filepath.Join(t.TempDir(), "gate")
	if err := unix.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	s, id := mustServe(t, r, "echo before; read -r word <'"+gate+"'; echo $word; exit 6")
	s.open(t)
	c := mustAttach(t, r, id)
	k := newKept()
	before := k.until("before\n")
	done := follow(t.Context(), c, 0, k)
	await(t, before, "what it printed before")
	s.kill()
	if found, err := r.Find(id); err != nil || !found.Running {
		t.Fatalf("got %+v, %v, want it running", found, err)
	}
	if err := os.WriteFile(gate, []byte("after\n"), 0); err != nil {
		t.Fatal(err)
	}
	exit := awaitExit(t, done)
	wantExit(t, exit, 6)
	if k.text["stdout"] != "before\nafter\n" || exit.Process != c.Process() || c.Process().PID == 0 {
		t.Errorf("got %q, %+v, %+v", k.text["stdout"], exit.Process, c.Process())
	}
}

// proves COO-7: a server that dies between prepare and commit has run nothing.
func TestServerKilled_AtTheGateRunsNothing(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	ran := filepath.Join(t.TempDir(), "ran")
	s, id := mustServe(t, r, "touch "+ran)
	s.kill()
	exit := mustFind(t, r, id)
	if exit.Started || exit.ExitCode != nil || exit.Signal != "" || exit.Error == "" || exit.Process.PID == 0 {
		t.Errorf("got %+v", exit)
	}
	if _, err := os.Stat(ran); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it ran: %v", err)
	}
	if err := r.Remove(id); err != nil {
		t.Error(err)
	}
}

// proves COO-5: a command's time is kept while no server is there.
func TestShim_KeepsTheTimeAlone(t *testing.T) {
	t.Parallel()
	r, s := mustRoot(t), specOf(t, "trap 'echo bye; exit 0' TERM; sleep 1000 & wait")
	s.Timeout = 300 * time.Millisecond
	c := mustStart(t, r, s)
	_ = c.Close()
	exit := mustFind(t, r, c.ID())
	if exit.Reason != tool.ReasonTimeout || exit.ExitCode == nil || *exit.ExitCode != 0 || exit.EndedAt-exit.StartedAt < 300 {
		t.Errorf("got %+v", exit)
	}
	k := newKept()
	if err := r.Read(t.Context(), c.ID(), 0, k.take); err != nil || k.text["stdout"] != "bye\n" {
		t.Errorf("got %q, %v", k.text["stdout"], err)
	}
}

// proves COO-7: a command without a server doesn't go on for ever; one with a server
// isn't orphaned, of whatever kind its attachment is.
func TestShim_OrphanTime(t *testing.T) {
	t.Parallel()
	r, s := mustRoot(t), specOf(t, "sleep 1000")
	s.Orphan = 100 * time.Millisecond
	c := mustStart(t, r, s)
	_ = c.Close()
	if exit := mustFind(t, r, c.ID()); exit.Reason != ReasonOrphaned || exit.Signal != "SIGTERM" {
		t.Errorf("got %+v", exit)
	}
	for name, attach := range map[string]func(*Child){
		"its own":      func(*Child) {},
		"another's":    func(c *Child) { mustAttach(t, r, c.ID()); _ = c.Close() },
		"who follows":  func(c *Child) { follow(t.Context(), c, 0, newKept()) },
		"who comes in": func(c *Child) { _ = c.Close(); mustAttach(t, r, c.ID()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := specOf(t, "sleep 1; exit 3")
			s.Orphan = 500 * time.Millisecond
			c := mustStart(t, r, s)
			attach(c)
			wantExit(t, mustFind(t, r, c.ID()), 3)
		})
	}
}

// proves COO-7: what is aimed at the server's terminal ends no command; what ends a
// whole service ends it in order.
func TestShim_Signals(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	d := newDeaths(t)
	c := mustStart(t, r, specOf(t, d.script("trap 'echo bye; exit 4' TERM; sleep 1000 & echo up >&5; wait")))
	d.awaitSaid(t)
	for _, sig := range []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGPIPE} {
		kill(t, c.shim.Pid, sig)
	}
	if _, err := c.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	if sid, err := unix.Getsid(c.shim.Pid); err != nil || sid != c.shim.Pid {
		t.Errorf("got session %d, %v, want its own", sid, err)
	}
	kill(t, c.shim.Pid, unix.SIGTERM)
	exit, k := mustFollow(t, c)
	if exit.Reason != ReasonTerminated || exit.ExitCode == nil || *exit.ExitCode != 4 || k.text["stdout"] != "bye\n" {
		t.Errorf("got %+v, %q", exit, k.text["stdout"])
	}
	await(t, d.end, "the death of all")
	atGate := mustPrepare(t, r, specOf2(t, "true"))
	kill(t, atGate.shim.Pid, unix.SIGTERM)
	if exit := mustFind(t, r, atGate.ID()); exit.Started || exit.Reason != ReasonTerminated {
		t.Errorf("at its gate: got %+v", exit)
	}
}

// proves COO-4, COO-7: an end ends every descendant.
func TestEnd_EndsAllDescendants(t *testing.T) {
	t.Parallel()
	scripts := map[string]string{
		"no environment": `env -i setsid sh -c 'sleep 1000 & echo up >&5; wait' & wait`,
		"hides at once":  `(env -i setsid sh -c '(exec env -i sh -c "echo up >&5; sleep 1000") & exit' &) ; sleep 1000`,
		"forks in a loop": `echo 'trap "" TERM; sleep 1000 & sleep 0.02; setsid sh "$0" &' >loop.sh
for i in 1 2 3; do setsid sh loop.sh & done; echo up >&5; wait; sleep 1000`,
	}
	for name, script := range hiding {
		scripts[name] = script
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := mustRoot(t)
			d := newDeaths(t)
			c := mustStart(t, r, specOf(t, d.script(script)))
			d.awaitSaid(t)
			if err := c.End("a person's", 300*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if err := c.End("another's", time.Hour); err != nil {
				t.Fatal(err)
			}
			exit, _ := mustFollow(t, c)
			if exit.Reason != "a person's" || len(exit.Survivors) > 0 || exit.ExitCode == nil && exit.Signal == "" {
				t.Errorf("got %+v", exit)
			}
			await(t, d.end, "the death of every descendant")
			if err := c.End("late", 0); err != nil {
				t.Errorf("end of one that has ended: %v", err)
			}
			if _, err := c.Status(t.Context()); !errors.Is(err, ErrEnded) {
				t.Errorf("status: got %v, want ErrEnded", err)
			}
		})
	}
}

// proves COO-4: what a script leaves behind when it ends is ended, and its exit code
// is the script's.
func TestChild_EndOfTheScriptEndsTheRest(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"in the background":   `sleep 1000 &`,
		"setsid":              `setsid sleep 1000 &`,
		"nohup, no output":    `nohup setsid sleep 1000 >/dev/null 2>&1 &`,
		"double fork, setsid": `(setsid sh -c 'trap "" HUP TERM; sleep 1000 & wait; sleep 1000' &)`,
		"no environment":      `(env -i setsid sleep 1000 &)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, d := mustRoot(t), newDeaths(t)
			c := mustStart(t, r, specOf(t, d.script(script+"\necho up >&5\nexit 3")))
			exit, _ := mustFollow(t, c)
			if wantExit(t, exit, 3); len(exit.Survivors) > 0 {
				t.Errorf("got %+v", exit)
			}
			await(t, d.end, "the death of what was left")
		})
	}
}

// proves COO-4: what is ended at its gate never begins.
func TestEnd_AtTheGate(t *testing.T) {
	t.Parallel()
	r, s := mustRoot(t), specOf(t, "touch ran")
	c := mustPrepare(t, r, s)
	if err := c.End("too late", 0); err != nil {
		t.Fatal(err)
	}
	_ = c.Go() // it may have been taken, or not
	exit, _ := mustFollow(t, c)
	if exit.Started || exit.Reason != "too late" {
		t.Errorf("got %+v", exit)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "ran")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it ran: %v", err)
	}
}

// proves COO-7: a killed shim's command dies with it and leaves no evidence of an
// end; what it had detached is found by its markers.
func TestShimKilled_TheOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	for name, script := range hiding {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := mustRoot(t)
			d := newDeaths(t)
			c := mustStart(t, r, specOf(t, d.script("echo printed\n"+script)))
			d.awaitSaid(t)
			k := newKept()
			printed := k.until("printed\n")
			done := follow(t.Context(), c, 0, k)
			await(t, printed, "its output")
			interp, err := unix.PidfdOpen(c.Process().PID, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = unix.Close(interp) }()
			kill(t, c.shim.Pid, unix.SIGKILL)
			if e := <-done; !errors.Is(e.err, ErrLost) || k.text["stdout"] != "printed\n" {
				t.Errorf("got %v, %q", e.err, k.text["stdout"])
			}
			wantLost(t, r, c.ID())
			n, err := 0, error(unix.EINTR)
			for errors.Is(err, unix.EINTR) {
				n, err = unix.Poll([]unix.PollFd{{Fd: int32(interp), Events: unix.POLLIN}}, int(patience.Milliseconds()))
			}
			if n != 1 || err != nil {
				t.Errorf("the interpreter lives: %v", err)
			}
			if _, err := tool.KillCall(t.Context(), c.ID().CallID, c.ID().N, c.Process(), 200*time.Millisecond); err != nil {
				t.Error(err)
			}
			await(t, d.end, "the death of what was left")
			if found, err := r.Bury(c.ID()); err != nil || found.Running || found.Exit != nil {
				t.Errorf("bury: got %+v, %v", found, err)
			}
		})
	}
}

// proves COO-7: shims that are killed before they hold their command cost it nothing, as
// nothing of it has run; but they aren't asked without end.
func TestShimKilled_AtItsBirth(t *testing.T) {
	t.Parallel()
	for killed := range maxBirths + 2 {
		t.Run(strconv.Itoa(killed), func(t *testing.T) {
			t.Parallel()
			r := mustRoot(t)
			deaths := t.TempDir()
			for i := range killed {
				if err := os.Mkdir(filepath.Join(deaths, strconv.Itoa(i)), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			r.env = []string{"SHIM_TEST_CRASH=shim.started", "SHIM_TEST_DEATHS=" + deaths}
			s := specOf(t, "echo ran >>ran; exit 3")
			c, err := r.Prepare(t.Context(), s)
			if left, e := os.ReadDir(deaths); e != nil || len(left) != max(0, killed-maxBirths) {
				t.Errorf("%d shims were not killed, %v", len(left), e)
			}
			if killed >= maxBirths {
				if left, e := os.ReadDir(r.dir); !errors.Is(err, errSilent) || e != nil || len(left) > 0 {
					t.Errorf("got %v, left %v", err, left)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Go(); err != nil {
				t.Fatal(err)
			}
			exit, _ := mustFollow(t, c)
			wantExit(t, exit, 3)
			if data, err := os.ReadFile(filepath.Join(s.Dir, "ran")); err != nil || string(data) != "ran\n" {
				t.Errorf("it ran %q, %v", data, err)
			}
		})
	}
}

// proves COO-7: at each point at which a shim can die, what is found is true.
func TestShimKilled_AtEachLabel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		label         string
		prepares      bool
		goes, ran     bool
		record, stdin bool
	}{
		{label: "shim.started"},
		{label: "shim.before_gate", prepares: true},
		{label: "shim.after_gate", prepares: true, ran: true},
		{label: "shim.stdin_logged", prepares: true, goes: true, ran: true, stdin: true},
		{label: "shim.stdin_forwarded", prepares: true, goes: true, ran: true, stdin: true},
		{label: "shim.before_record", prepares: true, goes: true, ran: true},
		{label: "shim.after_record", prepares: true, goes: true, ran: true, record: true},
	} {
		t.Run(tt.label, func(t *testing.T) {
			t.Parallel()
			r := mustRoot(t)
			r.env = []string{"SHIM_TEST_CRASH=" + tt.label}
			s := specOf(t, "echo ran >>ran; echo ran; exit 3")
			if s.Stdin = tt.stdin; tt.stdin {
				s.Script = "echo ran >>ran; echo ran; cat >read; exit 3"
			}
			c, err := r.Prepare(t.Context(), s)
			if !tt.prepares {
				if left, e := os.ReadDir(r.dir); err == nil || e != nil || len(left) > 0 {
					t.Errorf("got %v, left %v", err, left)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Go(); (err == nil) != tt.goes {
				t.Errorf("go: %v", err)
			}
			if tt.stdin {
				_ = c.Write(t.Context(), 1, []byte("word\n")) // the shim is killed in or after it
			}
			exit, err := c.Follow(t.Context(), 0, nowhere)
			if tt.record {
				if err != nil {
					t.Fatal(err)
				}
				wantExit(t, exit, 3)
			} else if !errors.Is(err, ErrLost) {
				t.Errorf("got %+v, %v, want ErrLost", exit, err)
			}
			data, err := os.ReadFile(filepath.Join(s.Dir, "ran"))
			if !tt.ran && !errors.Is(err, fs.ErrNotExist) || len(data) > len("ran\n") {
				t.Errorf("it ran: %q, %v", data, err)
			}
			if read, _ := os.ReadFile(filepath.Join(s.Dir, "read")); tt.label == "shim.stdin_logged" && len(read) > 0 {
				t.Errorf("it was given %q", read)
			}
		})
	}
}

// proves COO-7: a command sees its three descriptors and no lock, nor does anything
// else that the server starts.
func TestLock_IsTheShimsAlone(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	s := specOf(t, "ls /proc/self/fd; sleep 1000")
	s.Stdin = true
	c := mustStart(t, r, s)
	k := newKept()
	seen := k.until("3\n")
	done := follow(t.Context(), c, 0, k)
	await(t, seen, "its descriptors")
	if got, want := k.text["stdout"], "0\n1\n2\n3\n"; got != want { // 3 is ls's own
		t.Errorf("got %q, want %q", got, want)
	}
	out, err := exec.Command("ls", "-l", "/proc/self/fd").CombinedOutput()
	if err != nil || strings.Contains(string(out), r.dir) {
		t.Errorf("another child sees %s, %v", out, err)
	}
	kill(t, c.shim.Pid, unix.SIGKILL)
	if e := <-done; !errors.Is(e.err, ErrLost) {
		t.Errorf("got %v, want ErrLost: somebody else holds the lock", e.err)
	}
}

// proves COO-7: a call whose child closes its output runs on and is waited for.
func TestChild_ClosedOutputIsNoEnd(t *testing.T) {
	t.Parallel()
	r, s := mustRoot(t), specOf(t, "exec >&- 2>&-; sleep 0.3; touch ran; exit 3")
	exit, _ := mustFollow(t, mustStart(t, r, s))
	wantExit(t, exit, 3)
	if _, err := os.Stat(filepath.Join(s.Dir, "ran")); err != nil {
		t.Error(err)
	}
}

// proves COO-7, OWN-3: what is secret is neither on a command line, nor in the shim's
// environment, nor on the disk.
func TestShim_KeepsNoSecrets(t *testing.T) {
	t.Parallel()
	const secret = "topsecret-1"
	r := mustRoot(t)
	s := specOf(t, "echo $MY_TOKEN; echo "+secret+" >&2; echo up; sleep 1000")
	s.Env = append(s.Env, "MY_TOKEN="+secret, "ODD=\xff")
	s.Secrets = []string{secret}
	c := mustStart(t, r, s)
	k := newKept()
	up := k.until("up\n")
	done := follow(t.Context(), c, 0, k)
	await(t, up, "up")
	look := func(name string) {
		t.Helper()
		data, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, unix.ENXIO) { // the socket
			t.Fatal(err)
		}
		if strings.Contains(string(data), secret) {
			t.Errorf("%s holds it: %q", name, data)
		}
	}
	proc := fmt.Sprintf("/proc/%d/", c.shim.Pid)
	look(proc + "environ")
	look(proc + "cmdline")
	if line, err := os.ReadFile(proc + "cmdline"); err != nil || string(line) != "holdfast\x00shim\x00" {
		t.Errorf("got command line %q, %v", line, err)
	}
	if err := c.End("enough", 0); err != nil {
		t.Fatal(err)
	}
	awaitExit(t, done)
	files, err := filepath.Glob(r.path(c.ID(), "*"))
	if err != nil || len(files) < 4 {
		t.Fatalf("got %v, %v", files, err)
	}
	for _, name := range files {
		look(name)
	}
	if k.text["stdout"] != "[hidden]\nup\n" || k.text["stderr"] != "[hidden]\n" {
		t.Errorf("got %q", k.text)
	}
}

// proves COO-7: another user's client isn't served, even if the folder lets it in.
func TestShim_ServesItsUserOnly(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	r := mustRoot(t)
	c := mustStart(t, r, specOf(t, "sleep 1000"))
	sock := r.path(c.ID(), sockName)
	for name := sock; name != "/" && name != os.TempDir(); name = filepath.Dir(name) {
		if err := os.Chmod(name, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for uid, want := range map[int]bool{0: true, 65534: false} {
		got := make(chan string, 1)
		go func() { got <- askAs(uid, sock) }()
		if said := <-got; strings.Contains(said, "status") != want || strings.Contains(said, "no connection") {
			t.Errorf("as user %d: got %q", uid, said)
		}
	}
}

// askAs asks for the status as another user: that of this thread, which ends with it.
func askAs(uid int, sock string) string {
	runtime.LockOSThread()
	if uid != 0 {
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
			return "no connection: " + errno.Error()
		}
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "no connection: " + err.Error()
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: sock}); err != nil {
		return "no connection: " + err.Error()
	}
	if _, err := unix.Write(fd, []byte(`{"op":"status"}`+"\n")); err != nil {
		return err.Error()
	}
	buf := make([]byte, 1000)
	n, err := unix.Read(fd, buf)
	return fmt.Sprintf("%s %v", buf[:max(n, 0)], err)
}
