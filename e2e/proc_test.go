package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// procState gives the state letter of a process (T: stopped), 0 if it is gone.
func procState(pid int) byte {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name in brackets may hold blanks and brackets.
	_, rest, ok := strings.Cut(string(b[strings.LastIndexByte(string(b), ')'):]), ") ")
	if !ok || rest == "" {
		return 0
	}
	return rest[0]
}

// waitGone waits until a process has ended (a zombie has).
func waitGone(t *testing.T, pid int) {
	t.Helper()
	eventually(t, fmt.Sprintf("process %d ends", pid), func() bool {
		state := procState(pid)
		return state == 0 || state == 'Z' || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	})
}
