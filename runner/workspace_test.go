package runner_test

import (
	"os"
	"path/filepath"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// A workspace that vanishes while a turn runs fails nothing: what isn't
// dispatched yet waits for it, and goes on by itself when it is back.
//
// proves WSP-1 COO-2
func TestRunner_WorkspaceVanishesDuringATurn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for name, instead := range map[string]func(path string) error{
			"it is gone":                      func(string) error { return nil },
			"another stands there":            func(path string) error { return os.Mkdir(path, 0o700) },
			"a link leads to where it is now": func(path string) error { return os.Symlink(path+".moved", path) },
		} {
			b := setup(t, s)
			root := b.dir
			b.dir = filepath.Join(root, "w")
			must(t, os.Mkdir(b.dir, 0o700))
			b.fifo("gate")
			r := b.start()
			id := b.session(steps("read x < gate; echo one >> log", "echo two >> log"))
			b.untilKind(id, journal.KindCallDispatched, 1)
			must(t, os.Rename(b.dir, b.dir+".moved"))
			must(t, instead(b.dir))
			open(t, filepath.Join(b.dir+".moved", "gate"))
			v := b.untilState(id, journal.StateBlocked)
			if v.State.Blocked.Cause != journal.BlockWorkspace || !v.State.TurnOpen() {
				t.Errorf("%s: blocked %+v, turn open %v", name, v.State.Blocked, v.State.TurnOpen())
			}
			if n := storetest.CountKind(storetest.Events(t, s, id), journal.KindCallDispatched); n != 1 {
				t.Errorf("%s: %d calls were dispatched, want the first alone", name, n)
			}
			must(t, os.RemoveAll(b.dir))
			must(t, os.Rename(b.dir+".moved", b.dir))
			r.Sweep(t.Context())
			b.untilState(id, journal.StateReady)
			if got := b.file("log"); got != "one\ntwo\n" {
				t.Errorf("%s: the log says %q", name, got)
			}
			r.Stop()
		}
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
