package store_test

import (
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// A request comes with the same call before whose outcome was lost, and with what was
// found out about that since.
//
// proves CAL-6
func TestRequest_LostBefore(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w1")
		lost := r.MustUnknown(t, s)
		if _, err := s.ResolveCall(t.Context(), r.Owner, lost, store.CallResolution{Outcome: journal.DidNotHappen, Evidence: "none is there", Then: journal.ThenContinue}); err != nil {
			t.Fatal(err)
		}
		r.Claim = storetest.MustClaim(t, s, r.Session, "w1")
		call, request := r.MustAsk(t, s)

		p, err := s.SessionPage(t.Context(), r.Owner, r.Session, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		one, err := s.Request(t.Context(), r.Owner, request)
		if err != nil {
			t.Fatal(err)
		}
		for where, got := range map[string]*journal.Call{"the session's page": p.Lost[call], "the request": one.Lost} {
			if got == nil || got.ID != lost || got.Resolution == nil || got.Resolution.Outcome != journal.DidNotHappen {
				t.Errorf("%s: the call before is %+v, want %s, which did not happen", where, got, lost)
			}
		}
		other := storetest.MustRun(t, s, "w1")
		call, _ = other.MustAsk(t, s)
		if p, err = s.SessionPage(t.Context(), other.Owner, other.Session, 0, 1); err != nil || p.Lost[call] != nil {
			t.Errorf("another session's call stands before: %+v, %v", p.Lost[call], err)
		}
	})
}
