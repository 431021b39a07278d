//go:build agents

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/e2e/power"
)

// Claude Code runs what its own settings allow without asking, and says no more of it
// than that there is such a call until it has ended. Killed in the middle, or stopped, it
// has had an effect of which the journal never says that it did not run.
// proves CAL-4 CAL-6 CAL-7 COO-4
func TestReal_RunsWithoutAsking(t *testing.T) {
	t.Parallel()
	claude := reals[0]
	t.Run(claude.Name+"/sqlite", func(t *testing.T) {
		r := newRealWorld(t, claude, "sqlite")
		own := filepath.Join(r.work, ".claude", "settings.local.json")
		if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(own, []byte(`{"permissions":{"allow":["Bash"]}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		s := r.serve()
		gate, up := r.gate("gate"), r.gate("up")

		id := r.conversation(s, "a", "RUN("+effect("killed")+"; "+up.Tell("$$")+"; "+gate.Read()+")", "SAY(never)")
		pid := atoi(t, up.Wait())
		if err := power.CutAgents(s.state); err != nil {
			t.Fatal(err)
		}
		s.untilQuiet(id, "uncertain")
		waitGone(t, pid)
		calls := s.calls(id)
		if len(calls) != 1 || calls[0].State != "unknown" {
			t.Fatalf("its calls are %+v, want one that is unknown", calls)
		}
		s.resolve(calls[0].ID, "happened", "continue").want(t, http.StatusOK)

		id = r.conversation(s, "b", "RUN("+effect("stopped")+"; "+up.Tell("$$")+"; "+gate.Read()+")", "SAY(never)")
		up.Wait()
		s.interrupt(id)
		s.untilQuiet(id, "stopped")
		if calls = s.calls(id); len(calls) != 1 || calls[0].State != "cancelled" {
			t.Errorf("its calls are %+v, want one that was cancelled after it may have begun", calls)
		}

		id = s.mission(lines("RUN("+effect("failed")+"; exit 3)", "SAY(so)"), r.a.by, asking)
		s.untilQuiet(id, "ready")
		if calls = s.calls(id); len(calls) != 1 || calls[0].State != "failed" {
			t.Errorf("its calls are %+v, want one that failed", calls)
		}
		if page := r.signedIn(s).visit("/sessions/" + id); strings.Contains(page, "was not started") {
			t.Error("the page says that it was not started")
		}
		for _, name := range []string{"killed", "stopped", "failed"} {
			r.wantEffect(name, 1)
		}
	})
}
