package tool

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Degraded says in sentences what this platform can't do: nothing, here.
func Degraded() []string { return nil }

// BecomeSubreaper makes this process the parent of what its descendants
// orphan, so that a double fork doesn't leave the tree. main calls it once.
//
// The duty that comes with it, reaping orphans, is done by every run, each
// lookInterval and at its end, one pid at a time. An orphan is a zombie child
// in a session other than this process's own that isn't a command of this
// package. A child that another package starts with exec.Cmd shares our
// session and is never touched; one started with Setsid must be waited for
// by somebody who bears with ECHILD.
func BecomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become child subreaper: %w", err)
	}
	return nil
}

// childAttr: a session, and so a group, of its own; killed when we are.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// managed are the commands of this process, from fork to reaping: reapOrphans
// must leave them to their holders. It belongs to the process as its children
// do, hence a variable of the package.
var managed = struct {
	mu   sync.Mutex
	pids map[int]bool
}{pids: map[int]bool{}}

// keepOurs marks what this process itself inherited as closed on exec: all
// that it opened is, and a command is to see nothing of either. Kernels before
// 5.11 can't; then such descriptors are seen.
var keepOurs = sync.OnceFunc(func() {
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
})

// startManaged starts cmd and registers its pid before anybody can take it for
// an orphan. forget is called when it was reaped.
func startManaged(cmd *exec.Cmd) (forget func(), err error) {
	keepOurs()
	managed.mu.Lock()
	defer managed.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	pid := cmd.Process.Pid
	managed.pids[pid] = true
	return func() {
		managed.mu.Lock()
		defer managed.mu.Unlock()
		delete(managed.pids, pid)
	}, nil
}

// awaitEnd returns when the child has ended, and tells whether a signal did it. It
// leaves it a zombie: until it is reaped its number, and its group's, is nobody else's.
func awaitEnd(cmd *exec.Cmd) (killed bool) {
	var how unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &how, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && (how.Code == cldKilled || how.Code == cldDumped)
		}
	}
}

// killGroupOfZombie kills the group of a child that is not reaped yet, so that the
// group is its own.
func killGroupOfZombie(cmd *exec.Cmd) { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }

// Of siginfo_t.si_code for SIGCHLD: the child was killed, and left a core.
const (
	cldKilled = 2
	cldDumped = 3
)

// reap removes the zombie and keeps how it ended in cmd.ProcessState.
func reap(cmd *exec.Cmd) error { return cmd.Wait() }

// reapOrphans reaps the orphans that have ended: see BecomeSubreaper. Never by
// wait4(-1), which would take the children of others.
func reapOrphans() {
	session, err := unix.Getsid(0)
	if err != nil {
		return
	}
	managed.mu.Lock()
	defer managed.mu.Unlock()
	for _, p := range children() {
		if p.dead && p.session != session && !managed.pids[p.pid] {
			_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
		}
	}
}

// children returns our children, by the kernel's own list where it keeps one.
func children() []proc {
	own, ok := childrenOf(os.Getpid())
	if ok {
		return own
	}
	all, _ := processes()
	for _, p := range all {
		if p.parent == os.Getpid() {
			own = append(own, p)
		}
	}
	return own
}

// childrenOf returns a process's children by the kernel's own list; false if that
// can't be read: it keeps none, or the process is gone.
func childrenOf(pid int) (own []proc, ok bool) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		data, err := os.ReadFile(list)
		ok = ok || err == nil
		for _, field := range strings.Fields(string(data)) {
			pid, _ := strconv.Atoi(field)
			if p, err := readProc(pid); err == nil {
				own = append(own, p)
			}
		}
	}
	return own, ok
}

// descendants returns those of this process; false if the kernel keeps no lists.
// What moves to another parent meanwhile may be left out.
func descendants() ([]proc, bool) {
	all, ok := childrenOf(os.Getpid())
	for i := 0; i < len(all); i++ {
		if !all[i].dead {
			own, _ := childrenOf(all[i].pid)
			all = append(all, own...)
		}
	}
	return all, ok
}

// lastChild reports whether pid is the only child of this process. The kernel's
// list may leave one out while others end: childless is sure.
func lastChild(pid int) bool {
	for _, p := range children() {
		if p.pid != pid {
			return false
		}
	}
	return true
}

// childless reports whether this process has no child, not even one that has ended:
// then a subreaper has no descendant.
func childless() bool {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
		if !errors.Is(err, unix.EINTR) {
			return errors.Is(err, unix.ECHILD)
		}
	}
}

// scriptFile keeps the script in memory, so that neither a full disk nor a
// crash concerns it, and sealed: what runs is what was journalled.
func scriptFile(text string) (*os.File, error) {
	fd, err := unix.MemfdCreate("holdfast-script", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return unlinkedScript(text) // forbidden or unknown here
	}
	file := os.NewFile(uintptr(fd), "script")
	if err := fillScript(file, text); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("keep script: %w", err)
	}
	seals := unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("seal script: %w", err)
	}
	return file, nil
}
