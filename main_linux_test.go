package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/runner/shim"
	"holdfast/runner/tool"
)

// maxShim bounds the memory that a shim has for itself, in KiB: there are as many of
// them as commands.
const maxShim = 10 << 10

// proves COO-7: the process that keeps a command alive is small, though it is a binary
// with everything in it. It is built here: the race detector has a memory of its own.
func TestShim_IsSmall(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "holdfast")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	shim.Exe = binary
	t.Cleanup(func() { shim.Exe = "" })
	r, err := shim.Open(filepath.Join(t.TempDir(), "shims"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.Prepare(t.Context(), shim.Spec{Spec: tool.Spec{
		CallID: "call_small", N: 1, Interp: []string{"sh", "-eu"}, Dir: t.TempDir(), Env: tool.BaseEnv(os.Environ()), Timeout: time.Hour,
		Script: `head -c 60000000 /dev/zero | tr '\0' x; sleep 1000`,
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Abandon()
	if err := c.Go(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	status, err := c.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	idle := rssAnon(t, parentOf(t, status.PID))
	peak := idle
	for status.OutputBytes < 60000000 && err == nil {
		status, err = c.Status(ctx)
		peak = max(peak, rssAnon(t, parentOf(t, status.PID)))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("RssAnon of a shim: %d kB as it begins, at most %d kB while 60 MB were printed", idle, peak)
	if idle > maxShim || peak > 2*maxShim {
		t.Errorf("got %d and %d kB, want at most %d and %d", idle, peak, maxShim, 2*maxShim)
	}
	if err := c.End("the test is over", time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Follow(ctx, 0, func([]tool.Piece, int64) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// statusOf returns a line of /proc/<pid>/status, as a number.
func statusOf(t *testing.T, pid int, name string) (n int) {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(data), "\n"+name+":")
	if _, err := fmt.Sscan(rest, &n); !ok || err != nil {
		t.Fatalf("%s of process %d: %v", name, pid, err)
	}
	return n
}

func rssAnon(t *testing.T, pid int) int { t.Helper(); return statusOf(t, pid, "RssAnon") }

func parentOf(t *testing.T, pid int) int { t.Helper(); return statusOf(t, pid, "PPid") }
