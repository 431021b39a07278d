//go:build crashpoints

package store

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

var crashHits atomic.Int64

// Crash kills this process with SIGKILL when the label is the one in
// HOLDFAST_CRASH ("label" or "label:n" for the nth time), after noting in the
// file HOLDFAST_CRASH_REACHED that it got there. Only in test builds.
func Crash(label string) {
	want, nth, _ := strings.Cut(os.Getenv("HOLDFAST_CRASH"), ":")
	if want != label {
		return
	}
	n, err := strconv.ParseInt(nth, 10, 64)
	if err != nil {
		n = 1
	}
	if crashHits.Add(1) != n {
		return
	}
	if f, err := os.OpenFile(os.Getenv("HOLDFAST_CRASH_REACHED"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		_, _ = fmt.Fprintln(f, label)
		_ = f.Sync()
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}
