package runner_test

import (
	"path/filepath"
	"testing"

	"holdfast/journal"
	"holdfast/store/storetest"
)

// A command that goes on and whose drain fails each time is not taken up without a rest:
// three times, and then after pauses. It goes on meanwhile, is never repeated, and a stop
// ends it at once.
//
// proves REC-10 REC-11 COO-4
func TestRunner_PausesWhatCantBeFollowed(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		b := setup(t, s, brief)
		id := b.left("echo $$ > pid; WAIT; echo done >> log")
		raw := db.SQL(t)
		const dispatched = " FROM event WHERE session_id = ? AND kind = 'call.dispatched'"
		damage := func(from, to string) {
			t.Helper()
			if n := db.MustExec(t, raw, "UPDATE event SET data = replace(data, ?, ?) WHERE session_id = ? AND kind = 'call.dispatched'", from, to, id); n != 1 {
				t.Fatalf("%d events were changed", n)
			}
		}
		damage(`"call_id":`, `"call_id":0,"was":`) // so that no drain can fold
		r := b.next()
		b.untilKind(id, journal.KindStepRecovered, 1+journal.MaxRecoveries)
		for range 5 {
			r.Sweep(t.Context())
			r.Wake(id)
			eventually(t, "its drain has ended", r.Rests)
		}
		events := storetest.Events(t, s, id)
		if n := storetest.CountKind(events, journal.KindStepRecovered); n != 1+journal.MaxRecoveries || db.Count(t, raw, "SELECT count(*)"+dispatched, id) != 1 {
			t.Errorf("%d recoveries, want one of the stop and %d:\n%s", n, journal.MaxRecoveries, b.dump(id))
		}
		if b.file("log") != "" {
			t.Error("the command has ended")
		}
		damage(`"call_id":0,"was":`, `"call_id":`)
		if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow); err != nil {
			t.Fatal(err)
		}
		b.untilState(id, journal.StateStopped)
		open(t, filepath.Join(b.dir, "gate"))
		b.untilShimsEnd()
		if b.file("log") != "" {
			t.Error("the command was not ended")
		}
	})
}
