//go:build !linux

package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrOtherHost says that a process was started on another host: whether it
// still runs can't be told here.
var ErrOtherHost = errors.New("process belongs to another host")

// ErrOtherBoot says that a process was started in another boot.
var ErrOtherBoot = errors.New("process belongs to another boot")

// Degraded says in sentences what this platform can't do.
func Degraded() []string {
	return []string{
		"A command goes on when the server is killed: only Linux has a parent-death signal.",
		"Ending a call ends its process group; what left the group goes on.",
		"After a crash nothing that a call left can be found and ended.",
	}
}

// BootID is unknown here.
func BootID() (string, error) { return "", errors.ErrUnsupported }

// StartTicks are unknown here.
func StartTicks(int) (uint64, error) { return 0, errors.ErrUnsupported }

// Ticks are unknown here.
func Ticks() (uint64, error) { return 0, errors.ErrUnsupported }

// EndStrays can't tell here what was left behind.
func (*Command) EndStrays(context.Context, uint64, time.Duration) (survivors []int, err error) {
	return nil, errors.ErrUnsupported
}

// BecomeSubreaper does nothing here; Degraded says what that means.
func BecomeSubreaper() error { return nil }

// KillCall can't prove whose a process is here, so it ends none.
func KillCall(_ context.Context, callID string, _ int, _ Process, _ time.Duration) (killed int, err error) {
	return 0, fmt.Errorf("end call %s: %w", callID, errors.ErrUnsupported)
}

// KillBelow can't tell what descends from a process here.
func KillBelow(context.Context, int, time.Duration) error {
	return fmt.Errorf("end what descends from a process: %w", errors.ErrUnsupported)
}

// Parent can't be told here.
func (Process) Parent() int { return 0 }

func processOf(pid int) (Process, error) {
	host, err := os.Hostname()
	return Process{Host: host, PID: pid, PGID: pid}, err
}

func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func startManaged(cmd *exec.Cmd) (forget func(), err error) { return func() {}, cmd.Start() }

func killGroupOfZombie(*exec.Cmd) {} // it is none here, so the group may be another's

// awaitEnd reaps at once: there is no way here to wait and leave a zombie.
func awaitEnd(cmd *exec.Cmd) (killed bool) {
	_ = cmd.Wait()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}

func reap(*exec.Cmd) error { return nil }

func reapOrphans() {}

func lastChild(int) bool { return false } // nothing tells

func childless() bool { return true } // nothing tells: what the group's end said stands

func scriptFile(text string) (*os.File, error) { return unlinkedScript(text) }

// hunt ends a process group, which is all that can be known here.
type hunt struct {
	leader Process
	held   bool
	alone  bool
	err    error
}

func newHunt(_ string, _ int, leader Process) *hunt { return &hunt{leader: leader} }

func (h *hunt) look() {}

func (h *hunt) end(ctx context.Context, grace time.Duration) (survivors []int) {
	if grace > 0 {
		_ = unix.Kill(-h.leader.PGID, unix.SIGTERM)
		_ = unix.Kill(-h.leader.PGID, unix.SIGCONT)
		if h.wait(ctx, grace) {
			return nil
		}
	}
	_ = unix.Kill(-h.leader.PGID, unix.SIGKILL)
	if h.wait(ctx, killPatience) {
		return nil
	}
	return []int{h.leader.PGID}
}

// wait reports whether the group is empty in time.
func (h *hunt) wait(ctx context.Context, patience time.Duration) bool {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		if errors.Is(unix.Kill(-h.leader.PGID, 0), unix.ESRCH) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-deadline.C:
			return false
		case <-again.C:
		}
	}
}
