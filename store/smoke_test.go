package store_test

import (
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

func TestSmoke(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w1")
		id := r.MustDispatched(t, s, journal.EffectEffect)
		storetest.MustAppend(t, s, r.Claim, journal.PhaseSafe, storetest.Settle(id, journal.CallSucceeded))
		evs, released, err := s.EndTurn(t.Context(), r.Claim, store.EndTurn{End: journal.TurnEnded{Outcome: journal.Completed}, Actor: journal.Agent()})
		if err != nil || !released {
			t.Fatal(evs, released, err)
		}
		t.Log(storetest.Kinds(storetest.Events(t, s, r.Session)))
		st := storetest.MustState(t, s, r.Session)
		t.Logf("%+v", st)
	})
}
