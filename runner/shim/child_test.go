package shim

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

// proves COO-7: a command runs under its shim as it would without one, and leaves
// its record.
func TestChild_RunsToItsEnd(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	c := mustStart(t, r, specOf(t, "echo out; echo err >&2; exit 3"))
	exit, k := mustFollow(t, c)
	wantExit(t, exit, 3)
	if k.text["stdout"] != "out\n" || k.text["stderr"] != "err\n" || exit.OutputBytes != 8 {
		t.Errorf("got %q, %d bytes", k.text, exit.OutputBytes)
	}
	if exit.StartedAt == 0 || exit.EndedAt < exit.StartedAt || exit.Process != c.Process() {
		t.Errorf("got %+v, process %+v", exit, c.Process())
	}
	found, err := r.Find(c.ID())
	if err != nil || found.Running || found.Exit == nil {
		t.Fatalf("got %+v, %v", found, err)
	}
	if err := r.Remove(c.ID()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(r.path(c.ID(), "")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its folder is there: %v", err)
	}
}
