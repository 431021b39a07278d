package e2e

import (
	"net/http"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"holdfast/e2e/power"
	"holdfast/e2e/rig"
)

// server is one process of the binary, and after restart its successors.
type server struct {
	*client
	w     *world
	state string // its state folder
	addr  string
	flags []string
	env   []string
	// through is a command that the binary is started by, as its arguments.
	through []string

	out, err *rig.Output // of all its processes
	cmd      *exec.Cmd
	exited   <-chan struct{}
}

// quick are flags with which a lost execution is noticed within seconds.
var quick = []string{"--lease", "3s", "--renew", "1s", "--sweep", "1s"}

// as names the server's state folder; servers of one world need different ones.
func as(name string) func(*server) { return func(s *server) { s.state = s.w.state(name) } }

// flags adds flags.
func flags(f ...string) func(*server) {
	return func(s *server) { s.flags = append(s.flags, f...) }
}

// env adds variables of the environment.
func env(e ...string) func(*server) { return func(s *server) { s.env = append(s.env, e...) } }

// serve starts a server and waits until it is ready.
func (w *world) serve(with ...func(*server)) *server {
	w.t.Helper()
	s := w.configure(with...)
	s.start()
	return s
}

// configure describes a server without starting it.
func (w *world) configure(with ...func(*server)) *server {
	w.t.Helper()
	s := &server{w: w, state: w.state("1"), addr: rig.FreeAddr(w.t), out: rig.NewOutput(), err: rig.NewOutput()}
	for _, f := range with {
		f(s)
	}
	s.client = newClient(w, "http://"+s.addr)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers = append(w.servers, s)
	return s
}

// start starts the process and waits until it is ready.
func (s *server) start() {
	s.w.t.Helper()
	s.launch()
	s.ready()
}

// launch starts the process.
func (s *server) launch() {
	s.w.t.Helper()
	args := append(slices.Clone(s.through), binary, "serve", "--addr", s.addr, "--database", s.w.db.URL, "--state", s.state, "--workspaces", s.w.work)
	args = append(args, s.flags...)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = s.w.dir, environment(s.w.dir, s.env)
	cmd.Stdout, cmd.Stderr = s.out.Next(), s.err.Next()
	var err error
	s.cmd = cmd
	if s.exited, err = rig.Spawn(cmd); err != nil {
		s.w.t.Fatalf("start a server: %v", err)
	}
}

// ready waits until the server listens and says that it is ready.
func (s *server) ready() {
	s.w.t.Helper()
	if line := s.out.Await(s.exited, "listening on "); line == "" {
		s.w.t.Fatalf("the server didn't come up:\n%s\n%s", s.out.String(), tail(s.err.String(), 4000))
	}
	s.get("/readyz").want(s.w.t, http.StatusOK)
}

// pid of the running process.
func (s *server) pid() int { return s.cmd.Process.Pid }

// running reports whether the process has not ended.
func (s *server) running() bool {
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

func (s *server) signal(sig syscall.Signal) {
	s.w.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.w.t.Fatalf("signal %v: %v", sig, err)
	}
}

// kill9 kills the process, wherever it is, and waits until it is gone.
func (s *server) kill9() {
	s.w.t.Helper()
	s.signal(syscall.SIGKILL)
	s.exit()
}

// powerCut kills the process and all shims that it has, with what they run.
func (s *server) powerCut() {
	s.w.t.Helper()
	s.kill9()
	s.cutShims()
}

func (s *server) cutShims() {
	s.w.t.Helper()
	if err := power.Cut(s.state); err != nil {
		s.w.t.Errorf("cut the power: %v", err)
	}
}

// shims gives the pids of the process's shims.
func (s *server) shims() []int {
	s.w.t.Helper()
	pids, err := power.Shims(s.state)
	if err != nil {
		s.w.t.Fatalf("look for shims: %v", err)
	}
	return pids
}

// waitShimsGone waits until no shim of the process's state folder has a command.
func (s *server) waitShimsGone() {
	s.w.t.Helper()
	eventually(s.w.t, "its shims are gone", func() bool { return len(s.shims()) == 0 })
}

// killShims kills the shims of the process and nothing else.
func (s *server) killShims() {
	s.w.t.Helper()
	shims := s.shims()
	if len(shims) == 0 {
		s.w.t.Fatal("there is no shim to kill")
	}
	for _, pid := range shims {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			s.w.t.Fatalf("kill the shim %d: %v", pid, err)
		}
		waitGone(s.w.t, pid)
	}
}

// sigterm asks the process to leave, waits, and gives its exit code and how long it took.
func (s *server) sigterm() (code int, took time.Duration) {
	s.w.t.Helper()
	began := time.Now()
	s.signal(syscall.SIGTERM)
	return s.exit(), time.Since(began)
}

// sigstop freezes the process and waits until it is frozen.
func (s *server) sigstop() {
	s.w.t.Helper()
	s.signal(syscall.SIGSTOP)
	eventually(s.w.t, "the server is frozen", func() bool { return procState(s.pid()) == 'T' })
}

// sigcont lets a frozen process go on.
func (s *server) sigcont() {
	s.w.t.Helper()
	s.signal(syscall.SIGCONT)
}

// exit waits for the end of the process and gives its exit code; -1: by a signal.
func (s *server) exit() int {
	s.w.t.Helper()
	select {
	case <-s.exited:
	case <-time.After(patience):
		s.w.t.Fatalf("process %d doesn't end:\n%s", s.pid(), tail(s.err.String(), 4000))
	}
	return s.cmd.ProcessState.ExitCode()
}

// restart starts the server again on the same state folder, database and address.
func (s *server) restart(with ...func(*server)) {
	s.w.t.Helper()
	if s.running() {
		s.w.t.Fatal("restart: the server still runs")
	}
	for _, f := range with {
		f(s)
	}
	s.start()
}

// end kills what still runs, at the end of a test.
func (s *server) end() {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may have ended by itself
	<-s.exited
	s.cutShims()
}
