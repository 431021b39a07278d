package browser

import (
	"os/exec"
	"slices"
	"time"

	"holdfast/e2e/power"
	"holdfast/e2e/rig"
)

// server is one process of the binary, and after restart its successors.
type server struct {
	w        *world
	addr     string
	base     string // its address for a browser
	flags    []string
	out, err *rig.Output // of all its processes
	cmd      *exec.Cmd
	exited   <-chan struct{}
}

// quick are flags with which a lost execution is noticed within seconds.
var quick = []string{"--lease", "3s", "--renew", "1s", "--sweep", "1s"}

// serve starts a server and waits until it is ready.
func (w *world) serve(flags ...string) *server {
	w.t.Helper()
	s := &server{w: w, addr: rig.FreeAddr(w.t), flags: slices.Concat(w.flags, flags), out: rig.NewOutput(), err: rig.NewOutput()}
	s.base = "http://" + s.addr
	w.mu.Lock()
	w.servers = append(w.servers, s)
	w.mu.Unlock()
	s.start()
	return s
}

// start starts the process and waits until it listens.
func (s *server) start() {
	s.w.t.Helper()
	args := append([]string{"serve", "--addr", s.addr, "--database", s.w.db.URL, "--state", s.w.state(), "--workspaces", s.w.work}, s.flags...)
	cmd := exec.Command(mustBinary(s.w.t), args...)
	cmd.Dir, cmd.Env = s.w.dir, environment(s.w.dir)
	cmd.Stdout, cmd.Stderr = s.out.Next(), s.err.Next()
	var err error
	s.cmd = cmd
	if s.exited, err = rig.Spawn(cmd); err != nil {
		s.w.t.Fatalf("start a server: %v", err)
	}
	if s.out.Await(s.exited, "listening on ") == "" {
		s.w.t.Fatalf("the server didn't come up:\n%s\n%s", s.out.String(), tail(s.err.String(), 4000))
	}
}

// kill9 kills the process, wherever it is, and waits until it is gone.
func (s *server) kill9() {
	s.w.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.w.t.Fatalf("kill: %v", err)
	}
	select {
	case <-s.exited:
	case <-time.After(patience):
		s.w.t.Fatalf("process %d doesn't end", s.cmd.Process.Pid)
	}
}

// powerCut kills the process and all shims that it has, with what they run.
func (s *server) powerCut() {
	s.w.t.Helper()
	s.kill9()
	s.cutShims()
}

func (s *server) cutShims() {
	s.w.t.Helper()
	if err := power.Cut(s.w.state()); err != nil {
		s.w.t.Errorf("cut the power: %v", err)
	}
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
