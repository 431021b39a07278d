package store_test

import (
	"testing"

	"holdfast/journal"
	"holdfast/store/storetest"
)

// proves OWN-1
func TestSessionCounts(t *testing.T) {
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		alice, mallory := storetest.MustUser(t, s).ID, storetest.MustUser(t, s).ID
		storetest.States(t, s, alice)
		storetest.MustSession(t, s, mallory)
		groups(t, s, alice)
		if counts, err := s.SessionCounts(t.Context(), mallory); err != nil || len(counts) != 1 || counts[journal.GroupEarlier] != 1 {
			t.Errorf("the other owner has %v, %v", counts, err)
		}
	})
}
