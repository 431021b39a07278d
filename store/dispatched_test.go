package store_test

import (
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// When an agent was heard to begin a call is written by the journal's clock, whatever that
// of who heard it says, and only if it is well before; the call began then.
//
// proves CAL-3
func TestAppend_SaysWhenACallWasHeard(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		r := mustAgentRun(t, s)
		s.Skew(-time.Hour)
		for name, c := range map[string]struct{ ago, most time.Duration }{
			"just now": {10 * time.Millisecond, 0},
			"before":   {5 * time.Second, time.Minute},
		} {
			id := r.own(t, s, journal.EffectEffect)
			began := announced(id)
			began.Heard = time.Now().Add(-c.ago)
			evs := storetest.MustAppend(t, s, r.Claim, "", began)
			call, err := s.Call(t.Context(), r.Owner, id)
			must(t, err)
			ago := time.Duration(evs[0].Time-call.DispatchedAt) * time.Millisecond
			if c.most == 0 && ago != 0 || c.most > 0 && (ago < c.ago || ago > c.most) {
				t.Errorf("%s: it began %s before it was written down; it was heard %s before", name, ago, c.ago)
			}
		}
		if report, err := s.Verify(t.Context(), store.VerifyOptions{}); err != nil || !report.OK() {
			t.Errorf("verify: %v, %+v", err, report)
		}
	})
}
