package e2e

import (
	"testing"
)

// proves ADM-6 CAL-1 COO-8
func TestE2E_RunsAMission(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve()
		id := s.mission(steps("echo one", effect("two")))
		s.untilState(id, "ready")
		if got := s.events(id).output(""); got != "one\n" {
			t.Errorf("output %q", got)
		}
		w.wantEffect("two", 1)
		s.kill9()
		s.restart()
		if got := s.untilState(id, "ready"); got.LastSeq != s.events(id).last() {
			t.Errorf("last_seq %d, events end at %d", got.LastSeq, s.events(id).last())
		}
		w.wantEffect("two", 1)
	})
}
