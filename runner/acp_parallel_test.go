package runner_test

import (
	"os"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// What is asked for different calls at once is told as it is answered: an agent that is
// allowed one doesn't wait for the answers to the others. Of one call all must be.
//
// proves PER-1 PER-4 COO-2
func TestACP_IsToldEachAnswerAtOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		heard, with := scripted(t, tells+`hear; perm 7 t7 'touch m7' "$both"; perm 8 t8 'touch m8' "$both"; perm 9 t9 'touch m9' "$both"
hear; echo up > up; news t8 completed; hear; news t7 completed; hear; news t9 completed; stop 3; read -r l`)
		b := setup(t, s, with)
		up := b.fifo("up")
		b.start()
		id := b.session("Do all", byFake, asking)
		b.untilKind(id, journal.KindPermissionAsked, 3)
		asked := b.pending(id)
		b.decide(asked[1].ID, store.Decision{Reply: journal.ReplyOnce})
		awaitLine(t, up)
		if got, err := os.ReadFile(heard); err != nil || strings.Count(string(got), "optionId") != 1 || !strings.Contains(string(got), `"id":8`) {
			t.Errorf("the agent heard %q, %v", got, err)
		}
		b.untilKind(id, journal.KindCallSettled, 1)
		if v := b.until(id, "two wait", func(v store.Session) bool { return len(v.State.Pending) == 2 }); v.State.Needs() != journal.NeedsDecision {
			t.Errorf("needs %s", v.State.Needs())
		}
		b.decide(asked[0].ID, store.Decision{Reply: journal.ReplyOnce})
		b.untilKind(id, journal.KindCallSettled, 2)
		b.decide(asked[2].ID, store.Decision{Reply: journal.ReplyOnce})
		b.untilState(id, journal.StateReady)
		if got := b.callsOf(id); strings.Count(got, "succeeded by person") != 3 {
			t.Errorf("calls %s", got)
		}
	})
}
