package runner_test

import (
	"os"
	"syscall"
	"testing"
)

func mustMkfifo(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// open lets the command that reads the pipe go on. It waits for nobody: a
// command that was ended meanwhile must fail its test, not hang it.
func open(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // until then the line is kept for its reader
	if _, err := f.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
}
