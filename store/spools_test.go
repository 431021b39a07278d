package store_test

import (
	"fmt"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// readOn appends what was read of a spool, with the offset, as one commit.
func readOn(s *store.Store, t testing.TB, c *journal.Claim, call string, n int, to int64, bodies ...journal.Body) error {
	t.Helper()
	_, err := s.Append(t.Context(), c, store.Append{
		Drafts: storetest.Drafts(bodies...), Spool: &store.Spool{CallID: call, N: n, StateFolderID: c.StateFolderID, ReadTo: to},
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
		r, other := storetest.MustRun(t, s, "w"), storetest.MustRun(t, s, "w")
		id := r.MustSpooled(t, s, journal.EffectEffect)
		wantOffset(t, s, id, 1, 0)
		_, err := s.SpoolOffset(t.Context(), id, 2)
		storetest.WantCode(t, err, journal.NotFound)
		must(t, readOn(s, t, r.Claim, id, 1, 40, printed(id, "a", 0)))
		must(t, readOn(s, t, r.Claim, id, 1, 40)) // as one that is repeated
		wantOffset(t, s, id, 1, 40)

		raw := db.SQL(t)
		before := db.RowCounts(t, raw)
		// Somebody has read further: what this one read is in the journal already.
		storetest.WantSlug(t, readOn(s, t, r.Claim, id, 1, 39, printed(id, "again", 1)), "spool-state")
		storetest.WantSlug(t, readOn(s, t, r.Claim, id, 2, 80, printed(id, "of another dispatch", 1)), "spool-state")
		storetest.WantSlug(t, readOn(s, t, other.Claim, id, 1, 80), "spool-state")
		elsewhere := *r.Claim
		elsewhere.StateFolderID = "fld_copy"
		storetest.WantSlug(t, readOn(s, t, &elsewhere, id, 1, 80), "spool-state")
		storetest.WantCode(t, readOn(s, t, r.Claim, id, 1, 80, storetest.Dispatch(id, 7)), journal.Conflict) // a refused event takes the offset with it
		stale := *r.Claim
		stale.ExecutionID = "exe_other"
		storetest.WantCode(t, readOn(s, t, &stale, id, 1, 80), journal.StaleClaim)
		wantOffset(t, s, id, 1, 40)
		wantSame(t, before, db.RowCounts(t, raw))
	})
}

// What is dispatched again begins a new spool in the row of the old one.
//
// proves CAL-4 CAL-5
func TestSpool_OfTheLastDispatch(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		id := r.MustSpooled(t, s, journal.EffectRead)
		must(t, readOn(s, t, r.Claim, id, 1, 90, printed(id, "early", 0)))
		must(t, readOn(s, t, r.Claim, id, 2, 0, storetest.Dispatch(id, 2)))
		wantOffset(t, s, id, 2, 0)
		must(t, readOn(s, t, r.Claim, id, 2, 7, printed(id, "late", 0)))
		storetest.WantSlug(t, readOn(s, t, r.Claim, id, 1, 95), "spool-state")
		if _, err := s.SpoolOffset(t.Context(), id, 1); !journal.Is(err, journal.NotFound) {
			t.Errorf("the spool of the first dispatch: %v, want not found", err)
		}
		must(t, s.ForgetSpool(t.Context(), id, 1)) // gone with the dispatch
		wantOffset(t, s, id, 2, 7)
	})
}

// A state folder finds what it keeps, with what it must know to follow it, end
// it, testify of it or remove it.
//
// proves CAL-5 LEA-11
func TestSpools_OfAFolder(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r, other := storetest.MustRun(t, s, "w"), storetest.MustRun(t, s, "w2")
		other.MustSpooled(t, s, journal.EffectEffect)
		lost, kept := r.MustSpooled(t, s, journal.EffectEffect), r.MustSpooled(t, s, journal.EffectEffect)
		rows := func(folder string) map[string]store.SpoolRow {
			t.Helper()
			out := map[string]store.SpoolRow{}
			for after, more := "", true; more; {
				page, err := s.Spools(t.Context(), folder, after, 1)
				must(t, err)
				for _, row := range page {
					out[row.CallID], after = row, row.CallID
				}
				more = len(page) > 0
			}
			return out
		}
		got := rows("fld_w")
		c, err := s.Call(t.Context(), r.Owner, lost)
		must(t, err)
		want := store.SpoolRow{
			SessionID: r.Session, CallID: lost, N: 1, State: journal.CallIsDispatched, CallN: 1, DispatchedAt: c.DispatchedAt, Claimed: true, ClaimedFolder: "fld_w",
		}
		if len(got) != 2 || got[lost] != want {
			t.Fatalf("got %+v, want %+v and another", got, want)
		}
		for _, id := range []string{lost, kept} {
			storetest.WantSlug(t, s.ForgetSpool(t.Context(), id, 1), "call-state")
		}
		r.MustAdopt(t, s, kept)
		got = rows("fld_w")
		if row := got[kept]; row.AdoptedBy != "fld_w" || row.Claimed || row.State != journal.CallIsDispatched {
			t.Errorf("what is adopted: %+v", row)
		}
		if row := got[lost]; row.State != journal.CallIsUnknown || row.Testified || row.AdoptedBy != "" {
			t.Errorf("what is lost: %+v", row)
		}
		storetest.WantSlug(t, s.ForgetSpool(t.Context(), kept, 1), "call-state")

		// The returning host testifies once, and forgets.
		must(t, s.Evidence(t.Context(), r.Session, lost, journal.Evidence{Type: "process", Text: "it was ended"}))
		if rows("fld_w")[lost].Testified {
			t.Error("something else counts as its exit record")
		}
		must(t, s.Evidence(t.Context(), r.Session, lost, journal.Evidence{Type: journal.EvidenceExitRecord, Text: "exit code 0"}))
		if !rows("fld_w")[lost].Testified {
			t.Error("its exit record isn't seen as evidence")
		}
		for range 2 {
			must(t, s.ForgetSpool(t.Context(), lost, 1))
		}
		if got = rows("fld_w"); len(got) != 1 || len(rows("fld_w2")) != 1 {
			t.Errorf("left are %+v", got)
		}
		r.Claim = storetest.MustClaim(t, s, r.Session, "w")
		storetest.MustAppend(t, s, r.Claim, journal.PhaseSafe, storetest.Settle(kept, journal.CallSucceeded))
		must(t, s.ForgetSpool(t.Context(), kept, 1))
		_, err = s.SpoolOffset(t.Context(), kept, 1)
		storetest.WantCode(t, err, journal.NotFound)
	})
}

// What the spool of a finished call still held comes into the journal once,
// behind what is there, and only for who may conclude the execution.
//
// proves CAL-5 REC-4 REC-5
func TestRecoverOutput(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		r := storetest.MustRun(t, s, "w")
		id, other := r.MustSpooled(t, s, journal.EffectEffect), r.MustSpooled(t, s, journal.EffectEffect)
		must(t, readOn(s, t, r.Claim, id, 1, 40, printed(id, "ab", 0)))
		live := *r.Claim
		live.Phase = journal.PhaseUncertain
		sp := store.Spool{CallID: id, N: 1, StateFolderID: "fld_w", ReadTo: 80}
		more := func(bodies ...journal.Body) []journal.Draft { return storetest.Drafts(bodies...) }

		raw := db.SQL(t)
		before := db.RowCounts(t, raw)
		storetest.WantSlug(t, s.RecoverOutput(t.Context(), live, more(printed(id, "cd", 2)), sp), "claim-changed")
		must(t, s.ExpireClaim(t.Context(), r.Claim))
		seen := storetest.MustLoad(t, s, r.Claim)
		phase := seen
		phase.Phase = journal.PhaseReady
		storetest.WantSlug(t, s.RecoverOutput(t.Context(), phase, more(printed(id, "cd", 2)), sp), "claim-changed")
		for _, b := range []journal.Body{printed(id, "bc", 1), printed(other, "cd", 2), storetest.Settle(id, journal.CallSucceeded)} {
			storetest.WantSlug(t, s.RecoverOutput(t.Context(), seen, more(b), sp), "output-order")
		}
		storetest.WantSlug(t, s.RecoverOutput(t.Context(), seen, more(printed(id, "cd", 2), printed(id, "de", 3)), sp), "output-order")
		back := sp
		back.ReadTo = 39
		storetest.WantSlug(t, s.RecoverOutput(t.Context(), seen, more(printed(id, "cd", 2)), back), "spool-state")
		wantSame(t, before, db.RowCounts(t, raw))

		head := len(storetest.Events(t, s, r.Session))
		drafts := more(printed(id, "cd", 2), &journal.CallOutput{CallID: id, Stream: "stderr", Offset: 104, Text: journal.T("e"), Dropped: 100})
		must(t, s.RecoverOutput(t.Context(), seen, drafts, sp))
		wantOffset(t, s, id, 1, 80)
		if err := s.RecoverOutput(t.Context(), seen, drafts, sp); !journal.Is(err, journal.Conflict) {
			t.Errorf("a repeat: %v, want conflict", err)
		}
		code := 0
		storetest.MustFind(t, s, r.Claim, map[string]store.Found{id: {Settled: &journal.CallSettled{State: journal.CallSucceeded, ExitCode: &code, OutputBytes: 105, DroppedBytes: 100}}})
		out, err := s.CallOutput(t.Context(), r.Owner, id, 0, 100)
		must(t, err)
		c, err := s.Call(t.Context(), r.Owner, id)
		must(t, err)
		if string(out.Data) != "abcd" || c.State != journal.CallSucceeded || c.OutputBytes != 105 || c.DroppedBytes != 100 {
			t.Errorf("%q, %+v", out.Data, c)
		}
		for _, ev := range storetest.Events(t, s, r.Session)[head:] {
			if ev.Kind == journal.KindCallOutput && (ev.ExecutionID != "" || ev.Actor != journal.Agent()) {
				t.Errorf("#%d is of the execution %q, by %v", ev.Seq, ev.ExecutionID, ev.Actor)
			}
		}
		sp.ReadTo = 90
		storetest.WantSlug(t, s.RecoverOutput(t.Context(), seen, more(printed(id, "f", 105)), sp), "claim-changed") // it is concluded
	})
}

// Many pages of output are read without an end in sight: none is lost, none twice.
//
// proves JRN-5 CAL-5
func TestSpool_ReadInManyPieces(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		id := r.MustSpooled(t, s, journal.EffectEffect)
		want := ""
		for i := range 20 {
			text := fmt.Sprintf("%d;", i)
			must(t, readOn(s, t, r.Claim, id, 1, int64(i+1)*10, printed(id, text, int64(len(want)))))
			want += text
			if i%7 == 6 { // the server dies, and its successor reads on
				r.MustAdopt(t, s, id)
				r.Claim = storetest.MustClaim(t, s, r.Session, "w")
				wantOffset(t, s, id, 1, int64(i+1)*10)
			}
		}
		out, err := s.CallOutput(t.Context(), r.Owner, id, 0, 1000)
		must(t, err)
		if string(out.Data) != want {
			t.Errorf("got %q, want %q", out.Data, want)
		}
	})
}
