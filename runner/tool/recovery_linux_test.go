package tool

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

	"golang.org/x/sys/unix"
)

// server is a process that has prepared a command.
type server struct {
	cmd     *exec.Cmd
	stdin   *os.File
	process Process
}

// mustServe starts a server; kill ends it as kill -9 does.
func mustServe(t *testing.T, callID, script string) *server {
	t.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(BaseEnv(os.Environ()), serverVariable+"="+script, "TOOL_TEST_CALL="+callID)
	cmd.Stdin = inR
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = inR.Close()
	s := &server{cmd: cmd, stdin: inW}
	t.Cleanup(func() { s.kill(t); _ = inW.Close() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("server said %q: %v", line, err)
	}
	p := &s.process
	if _, err := fmt.Sscan(line, &p.PID, &p.StartedTicks, &p.BootID, &p.Host); err != nil {
		t.Fatalf("server said %q: %v", line, err)
	}
	p.PGID = p.PID
	return s
}

func (s *server) kill(t *testing.T) {
	t.Helper()
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

func (s *server) run(t *testing.T) {
	t.Helper()
	if _, err := s.stdin.WriteString("run\n"); err != nil {
		t.Fatal(err)
	}
}

// proves COO-7: a server that dies between prepare and commit has run nothing.
func TestServerKilled_AtTheGateRunsNothing(t *testing.T) {
	t.Parallel()
	ran := filepath.Join(t.TempDir(), "ran")
	s := mustServe(t, "call-at-gate", "touch "+ran)
	launcher := mustPidfd(t, s.process.PID)
	s.kill(t)
	awaitDeath(t, launcher)
	if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it ran: %v", err)
	}
}

// proves COO-7: the gate's end alone ends a launcher, without a signal.
func TestServerKilled_ClosedGateEndsTheLauncher(t *testing.T) {
	t.Parallel()
	spec, k := specOf(t, "touch ran; echo ran")
	c := mustPrepare(t, spec)
	_ = c.gate.Close()
	await(t, c.ended, "the launcher's end")
	c.Abandon()
	if code := c.cmd.ProcessState.ExitCode(); code != 125 {
		t.Errorf("got exit code %d, want 125", code)
	}
	if _, err := os.Stat(filepath.Join(spec.Dir, "ran")); !errors.Is(err, os.ErrNotExist) || len(k.pieces) > 0 {
		t.Errorf("it ran: %v", err)
	}
}

// proves COO-7: the command dies with its server.
func TestServerKilled_EndsTheCommand(t *testing.T) {
	t.Parallel()
	d := newDeaths(t)
	s := mustServe(t, "call-dies", "exec 5>'"+d.path+"'; trap '' TERM HUP; echo up >&5; exec sleep 1000")
	s.run(t)
	d.awaitSaid(t)
	s.kill(t)
	await(t, d.end, "the command's death")
}

// proves COO-7: recovery ends what a dead server's call left, wherever it went.
func TestKillCall_EndsWhatADeadServerLeft(t *testing.T) {
	t.Parallel()
	i := 0
	for name, script := range hiding {
		i++
		callID := fmt.Sprintf("call-left-%d", i)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "no environment" {
				// Its group is proven by a sibling that carries the marker.
				script = "sleep 1000 & " + script
			}
			d := newDeaths(t)
			s := mustServe(t, callID, "exec 5>'"+d.path+"'\n"+script)
			s.run(t)
			d.awaitSaid(t)
			s.kill(t)
			killed, err := KillCall(t.Context(), callID, 0, s.process, time.Second)
			if err != nil {
				t.Errorf("killed %d: %v", killed, err)
			}
			await(t, d.end, "the death of what was left")
			if killed, err := KillCall(t.Context(), callID, 0, s.process, time.Second); killed != 0 || err != nil {
				t.Errorf("again: got %d, %v, want none", killed, err)
			}
		})
	}
}

// proves COO-7: neither another boot's, nor a reused pid, nor another call's
// process is touched.
func TestKillCall_HitsNobodyElse(t *testing.T) {
	t.Parallel()
	spec, k := specOf(t, "echo up; read -r _ <&0 || true; sleep 1000 & wait")
	c := mustPrepare(t, spec)
	up := k.until("up\n")
	done := start(t.Context(), t, c)
	await(t, up, "up")
	alive := func(name string) {
		t.Helper()
		if p, err := readProc(c.Process().PID); err != nil || p.dead {
			t.Fatalf("%s: the command is dead: %v", name, err)
		}
	}
	for name, tt := range map[string]struct {
		callID  string
		n       int
		change  func(*Process)
		failure error
	}{
		"another boot":      {spec.CallID, 0, func(p *Process) { p.BootID = "another" }, ErrOtherBoot},
		"reused pid":        {"call-of-old", 0, func(p *Process) { p.StartedTicks-- }, nil},
		"another host":      {spec.CallID, 0, func(p *Process) { p.Host = "elsewhere" }, ErrOtherHost},
		"another container": {spec.CallID, 0, func(p *Process) { p.PIDs = "pid:[1]" }, ErrOtherHost},
		// What it left is gone, its number is another's; the call itself runs again.
		"earlier dispatch": {spec.CallID, 1, func(p *Process) { p.StartedTicks-- }, nil},
	} {
		p := c.Process()
		tt.change(&p)
		if killed, err := KillCall(t.Context(), tt.callID, tt.n, p, time.Second); killed != 0 || !errors.Is(err, tt.failure) {
			t.Errorf("%s: got %d, %v", name, killed, err)
		}
		alive(name)
	}
	if killed, err := KillCall(t.Context(), spec.CallID, spec.N, Process{}, time.Second); killed != 0 || err == nil {
		t.Errorf("no facts: got %d, %v, want an error", killed, err)
	}
	alive("no facts")
	if killed, err := KillCall(t.Context(), spec.CallID, spec.N, c.Process(), time.Second); killed == 0 || err != nil {
		t.Errorf("the call itself: got %d, %v", killed, err)
	}
	if r := await1(t, done); r.Signal != "SIGTERM" || r.Reason != "" {
		t.Errorf("got %s", show(r))
	}
}

// proves COO-7: a subreaper reaps its orphans and nobody else's children.
// Not parallel: children of other tests would be counted.
func TestReapOrphans_TakesOnlyOrphans(t *testing.T) {
	if err := BecomeSubreaper(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }()
	plain := exec.Command("true")
	if err := plain.Start(); err != nil {
		t.Fatal(err)
	}
	fd := mustPidfd(t, plain.Process.Pid)
	awaitDeath(t, fd) // and is a zombie until its Wait
	other, _ := specOf(t, "true")
	waiting := mustPrepare(t, other)
	if err := waiting.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, waiting.ended, "a managed zombie")

	spec, k := specOf(t, `for i in 1 2 3; do (setsid true &); (true &); done; (setsid sleep 1000 &); echo up`)
	wantExit(t, run(t, spec), 0)
	if !strings.Contains(k.text["stdout"], "up") {
		t.Error("it didn't run")
	}
	for _, p := range children() {
		if p.dead && p.pid != plain.Process.Pid && p.pid != waiting.Process().PID {
			t.Errorf("zombie left: %+v", p)
		}
	}
	if err := plain.Wait(); err != nil {
		t.Errorf("child of another package was reaped: %v", err)
	}
	waiting.Abandon()
	if s := waiting.cmd.ProcessState; s == nil || s.ExitCode() != -1 {
		t.Errorf("managed child was reaped: %v", s)
	}
}

// proves COO-7: names can't confuse the parser.
func TestParseStat_OddNames(t *testing.T) {
	t.Parallel()
	p, err := parseStat([]byte("12 (a) S (b) R) Z 1 2 3 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777 0 0"))
	want := proc{pid: 12, parent: 1, pgid: 2, session: 3, ticks: 777, dead: true}
	if err != nil || p != want {
		t.Errorf("got %+v, %v, want %+v", p, err, want)
	}
	for _, bad := range []string{"", "12", "12 (a) S", "x (a) S 1 2 3 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 7 0"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q: got no error", bad)
		}
	}
}
