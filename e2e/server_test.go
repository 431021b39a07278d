package e2e

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"holdfast/e2e/power"
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

	out, err *output // of all its processes
	cmd      *exec.Cmd
	exited   chan struct{}
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
	s := &server{w: w, state: w.state("1"), addr: freeAddr(w.t), out: newOutput(), err: newOutput()}
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
	cmd.Stdout, cmd.Stderr = s.out.next(), s.err.next()
	if err := s.spawn(cmd); err != nil {
		s.w.t.Fatalf("start a server: %v", err)
	}
}

// spawn starts a process that dies with the tests, however they end. The signal
// follows the thread that started it, which therefore stays.
func (s *server) spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// A command of the agent may hold the pipes of its server open for a moment longer.
	cmd.WaitDelay = time.Second
	started, exited := make(chan error, 1), make(chan struct{})
	s.cmd, s.exited = cmd, exited
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // its state is read from cmd
		}
		close(exited)
	}()
	return <-started
}

// ready waits until the server listens and says that it is ready.
func (s *server) ready() {
	s.w.t.Helper()
	if line := s.out.await(s.exited, "listening on "); line == "" {
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

// output collects what a process prints, and lets a test wait for a line.
type output struct {
	mu    sync.Mutex
	all   bytes.Buffer
	start int           // of the newest process
	more  chan struct{} // closed and replaced at each write
}

func newOutput() *output { return &output{more: make(chan struct{})} }

// next says that another process begins.
func (o *output) next() io.Writer {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.start = o.all.Len()
	return o
}

// Write takes what the process prints.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.more)
	o.more = make(chan struct{})
	return o.all.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

// await gives the rest of the newest process' first whole line that holds mark,
// after the mark; "" if the process ends, or time does, before it prints one.
func (o *output) await(exited <-chan struct{}, mark string) string {
	late := time.After(patience)
	for over := false; ; {
		o.mu.Lock()
		text, more := o.all.String()[o.start:], o.more
		o.mu.Unlock()
		sc := bufio.NewScanner(strings.NewReader(text[:strings.LastIndex(text, "\n")+1]))
		for sc.Scan() {
			if _, rest, ok := strings.Cut(sc.Text(), mark); ok {
				return rest
			}
		}
		if over {
			return ""
		}
		select {
		case <-more:
		case <-exited:
			over = true // look once more: the last words may have come with the end
		case <-late:
			return ""
		}
	}
}

var nextPort atomic.Int64

// freeAddr gives an address on which nothing listens, outside of the range from
// which the kernel takes ports for outgoing connections.
func freeAddr(t testing.TB) string {
	t.Helper()
	nextPort.CompareAndSwap(0, time.Now().UnixNano()%8000+1)
	for range 200 {
		addr := "127.0.0.1:" + strconv.FormatInt(20000+nextPort.Add(1)%12000, 10)
		var lc net.ListenConfig
		ln, err := lc.Listen(context.WithoutCancel(t.Context()), "tcp", addr)
		if err == nil && ln.Close() == nil {
			return addr
		}
	}
	t.Fatal("no free port")
	return ""
}
