package store_test

import (
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// spooled dispatches a call under a shim, as the runner does.
func spooled(t testing.TB, s *store.Store, r *storetest.Run, effect journal.Effect) string {
	t.Helper()
	id := r.MustCall(t, s, effect)
	phase := journal.PhaseUncertain
	if effect == journal.EffectRead {
		phase = ""
	}
	must(t, appendSpooled(t, s, r, id, 1, 0, phase, storetest.Dispatch(id, 1)))
	return id
}

// appendSpooled appends with the spool's offset in the same transaction.
func appendSpooled(t testing.TB, s *store.Store, r *storetest.Run, call string, n int, readTo int64, phase journal.Phase, bodies ...journal.Body) error {
	t.Helper()
	_, err := s.Append(t.Context(), r.Claim, store.Append{
		Drafts: storetest.Drafts(bodies...), Phase: phase,
		Spool: &store.Spool{CallID: call, N: n, StateFolderID: r.Claim.StateFolderID, ReadTo: readTo},
	})
	return err
}

func wantOffset(t testing.TB, s *store.Store, call string, n int, want int64) {
	t.Helper()
	if at, err := s.SpoolOffset(t.Context(), call, n); err != nil || at != want {
		t.Fatalf("read to %d (%v), want %d", at, err, want)
	}
}

func printed(call, text string, offset int64) *journal.CallOutput {
	return &journal.CallOutput{CallID: call, Stream: "stdout", Offset: offset, Text: journal.T(text)}
}

// The offset and the events made of what was read are one commit: who reads on
// from it journals each byte once.
//
// proves CAL-5 JRN-5 LEA-4
func TestSpool_OffsetAndEventsAreOneCommit(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		r := storetest.MustRun(t, s, "w")
		id := spooled(t, s, r, journal.EffectEffect)
		wantOffset(t, s, id, 1, 0)
		_, err := s.SpoolOffset(t.Context(), id, 2)
		storetest.WantCode(t, err, journal.NotFound)
		must(t, appendSpooled(t, s, r, id, 1, 40, "", printed(id, "a", 0)))
		wantOffset(t, s, id, 1, 40)

		raw := db.SQL(t)
		before := db.RowCounts(t, raw)
		// Somebody has read further: what this one read is in the journal already.
		storetest.WantSlug(t, appendSpooled(t, s, r, id, 1, 39, "", printed(id, "again", 1)), "spool-state")
		storetest.WantSlug(t, appendSpooled(t, s, r, id, 2, 80, "", printed(id, "of another dispatch", 1)), "spool-state")
		storetest.WantCode(t, appendSpooled(t, s, r, id, 1, 80, "", storetest.Dispatch(id, 7)), journal.Conflict) // a refused event takes the offset with it
		other := storetest.MustRun(t, s, "w2")
		storetest.WantSlug(t, appendSpooled(t, s, other, id, 1, 80, ""), "spool-state")
		stale := *r.Claim
		stale.ExecutionID = "exe_other"
		_, err = s.Append(t.Context(), &stale, store.Append{Spool: &store.Spool{CallID: id, N: 1, StateFolderID: stale.StateFolderID, ReadTo: 80}})
		storetest.WantCode(t, err, journal.StaleClaim)
		wantOffset(t, s, id, 1, 40)
		before["session"], before["users"] = before["session"]+1, before["users"]+1
		for name, n := range db.RowCounts(t, raw) {
			if name == "call" || name == "call_output" || name == "spool" {
				if n != before[name] {
					t.Errorf("%s has %d rows, had %d", name, n, before[name])
				}
			}
		}
	})
}
