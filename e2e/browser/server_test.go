package browser

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
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
	w        *world
	addr     string
	base     string // its address for a browser
	flags    []string
	out, err *output // of all its processes
	cmd      *exec.Cmd
	exited   chan struct{}
}

// quick are flags with which a lost execution is noticed within seconds.
var quick = []string{"--lease", "3s", "--renew", "1s", "--sweep", "1s"}

// serve starts a server and waits until it is ready.
func (w *world) serve(flags ...string) *server {
	w.t.Helper()
	s := &server{w: w, addr: freeAddr(w.t), flags: slices.Concat(w.flags, flags), out: newOutput(), err: newOutput()}
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
	cmd.Stdout, cmd.Stderr = s.out.next(), s.err.next()
	if err := s.spawn(cmd); err != nil {
		s.w.t.Fatalf("start a server: %v", err)
	}
	if s.out.await(s.exited, "listening on ") == "" {
		s.w.t.Fatalf("the server didn't come up:\n%s\n%s", s.out.String(), tail(s.err.String(), 4000))
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
// and "" if the process ends without one.
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
