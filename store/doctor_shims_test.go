package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// The doctor tells what runs under the shims of its state folder, and of no
// other; it leaves the folder as it is.
func TestDiagnose_Shims(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		state := t.TempDir()
		shims := func(dir string) (all []string) {
			t.Helper()
			for _, f := range store.Diagnose(t.Context(), db.URL, dir).Findings {
				if f.Check == "shims" || f.Check == "command" {
					all = append(all, fmt.Sprintf("%s %s: %s", f.Check, f.Health, f.Found))
				}
			}
			return all
		}
		want := func(dir string, want ...string) {
			t.Helper()
			got := shims(dir)
			if len(got) != len(want) {
				t.Fatalf("%d findings, want %d: %q", len(got), len(want), got)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], want[i]) {
					t.Errorf("says %q, want %q", got[i], want[i])
				}
			}
		}
		want(state, "shims ok: no command runs") // not served so far
		lock, folder, err := store.LockState(state)
		must(t, err)
		t.Cleanup(func() { must(t, lock.Close()) })
		want(state, "shims ok: no command runs")

		r := storetest.MustRun(t, s, "elsewhere")
		r.MustSpooled(t, s, journal.EffectRead)
		want(state, "shims ok: no command runs")

		mine := runIn(t, s, folder.ID)
		call := mine.MustSpooled(t, s, journal.EffectRead)
		must(t, readOn(s, t, mine.Claim, call, 1, 40, printed(call, "hello", 0)))
		c, err := s.Call(t.Context(), mine.Owner, call)
		must(t, err)
		since, limit := time.UnixMilli(c.DispatchedAt).UTC().Format(time.RFC3339), time.UnixMilli(c.EndsBy()).UTC().Format(time.RFC3339)
		want(state, "shims ok: 1 command runs, since "+since,
			fmt.Sprintf("command ok: session %s, call %s, since %s, 5 bytes of output so far, limit %s", mine.Session, call, since, limit))

		for range 20 {
			mine.MustSpooled(t, s, journal.EffectRead)
		}
		if got := shims(state); len(got) != 21 || !strings.HasPrefix(got[0], "shims ok: 21 commands run, the oldest since "+since+"; here are the 20 oldest") {
			t.Errorf("says %q", got)
		}
		// A copy has the id, and is not the folder.
		other := t.TempDir()
		for _, name := range []string{"id", "lock"} {
			b, err := os.ReadFile(filepath.Join(state, name))
			must(t, err)
			must(t, os.WriteFile(filepath.Join(other, name), b, 0o600))
		}
		want(other, "shims ok: this folder is a copy")
		if names := listed(t, other); !slices.Equal(names, []string{"id", "lock"}) {
			t.Errorf("the folder has %q", names)
		}
	})
}

// runIn is a run whose worker is of a state folder.
func runIn(t *testing.T, s *store.Store, folder string) *storetest.Run {
	t.Helper()
	owner := storetest.MustUser(t, s).ID
	r := &storetest.Run{Owner: owner, Session: storetest.MustSession(t, s, owner).ID, Worker: "w"}
	r.Prompt = storetest.MustPrompt(t, s, owner, r.Session, "do it", journal.Queue)
	var err error
	r.Claim, err = s.Claim(t.Context(), store.ClaimRequest{SessionID: r.Session, WorkerID: "w", StateFolderID: folder, Lease: storetest.Lease})
	if err != nil || r.Claim == nil {
		t.Fatalf("claim: %v, %v", r.Claim, err)
	}
	r.Turn = storetest.MustPromote(t, s, r.Claim)
	return r
}

func listed(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}
