package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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
		seen := map[string]store.ShimSeen{} // of others: it lives
		blind := false
		look := func(c *journal.Call) (store.ShimSeen, error) {
			if blind {
				return store.ShimSeen{}, errors.New("permission denied")
			}
			if one, ok := seen[c.ID]; ok {
				return one, nil
			}
			return store.ShimSeen{Lives: true}, nil
		}
		shims := func(dir string) (all []string) {
			t.Helper()
			for _, f := range store.Diagnose(t.Context(), db.URL, dir, look).Findings {
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

		of := fmt.Sprintf("session %s, call %s, since %s, 5 bytes of output so far, limit %s", mine.Session, call, since, limit)
		seen[call] = store.ShimSeen{Lives: true, PID: 4711}
		want(state, "shims ok: 1 command runs, since "+since, "command ok: "+of+", shim pid 4711")
		seen[call] = store.ShimSeen{}
		want(state, "shims ok: no command runs; of 1 more the shim is gone", "command warning: "+of+"; its shim is gone: its server, or the next start, concludes it")
		seen[call] = store.ShimSeen{Recorded: true}
		want(state, "shims ok: no command runs; of 1 more the shim is gone", "command ok: "+of+"; it has ended: its server, or the next start, records how")
		delete(seen, call)
		blind = true
		want(state, "shims ok: 1 command runs", "command warning: "+of+"; its shim can't be looked at: permission denied")
		blind = false

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

// A command that ends while the doctor looks is not one whose shim is gone.
func TestDiagnose_ACommandThatEndsJustNow(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		state := t.TempDir()
		lock, folder, err := store.LockState(state)
		must(t, err)
		t.Cleanup(func() { must(t, lock.Close()) })
		r := runIn(t, s, folder.ID)
		r.MustSpooled(t, s, journal.EffectRead)
		look := func(c *journal.Call) (store.ShimSeen, error) {
			storetest.MustAppend(t, s, r.Claim, "", storetest.Settle(c.ID, journal.CallSucceeded))
			return store.ShimSeen{}, nil
		}
		for _, f := range store.Diagnose(t.Context(), db.URL, state, look).Findings {
			if f.Check == "command" || (f.Check == "shims" && f.Found != "no command runs") {
				t.Errorf("it says %s: %s", f.Check, f.Found)
			}
		}
	})
}

// A server that was killed and of which nobody has taken note serves nothing.
func TestDiagnose_AKilledServerThatNobodyReaped(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		return
	}
	state := t.TempDir()
	lock, _, err := store.LockState(state)
	must(t, err)
	must(t, lock.Close())
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	must(t, cmd.Start())
	host, err := os.Hostname()
	must(t, err)
	holder, err := json.Marshal(store.Holder{PID: cmd.Process.Pid, Host: host, Since: time.Now()})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(state, "lock.holder"), holder, 0o600))
	server := func() string {
		for _, f := range store.Diagnose(t.Context(), filepath.Join(state, "holdfast.db"), state, nil).Findings {
			if f.Check == "server" {
				return f.Found
			}
		}
		return ""
	}
	if got := server(); !strings.HasPrefix(got, "served by pid") {
		t.Errorf("while it runs it says %q", got)
	}
	must(t, cmd.Process.Kill())
	must(t, unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil))
	if got := server(); !strings.HasPrefix(got, "not served; the last was pid") {
		t.Errorf("of the killed one it says %q", got)
	}
	_ = cmd.Wait()
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
