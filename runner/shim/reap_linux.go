package shim

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// nameProcess gives this process the name that its binary has in a list of
// processes: it was started by another one (see ownBinary).
func nameProcess() {
	_ = os.WriteFile("/proc/self/comm", []byte("holdfast"), 0) // for the eye only
}

// hasEnded reports whether a child of ours has ended, without waiting and without
// reaping it.
func hasEnded(p *os.Process) bool {
	ended := false
	err := p.WithHandle(func(fd uintptr) {
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			ended = n == 1
			return
		}
	})
	if err == nil {
		return ended
	}
	// No descriptors of processes here.
	var info unix.Siginfo
	err = unix.Waitid(unix.P_PID, p.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err != nil || info.Signo != 0
}
