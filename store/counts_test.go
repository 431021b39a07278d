package store_test

import (
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// proves OWN-1
func TestSessionCounts(t *testing.T) {
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		alice, mallory := storetest.MustUser(t, s).ID, storetest.MustUser(t, s).ID
		states(t, s, alice)
		storetest.MustSession(t, s, mallory)
		counts, err := s.SessionCounts(t.Context(), alice)
		if err != nil {
			t.Fatal(err)
		}
		all := 0
		for _, group := range []store.SessionGroup{store.GroupNeeds, store.GroupRunning, store.GroupReview, store.GroupEarlier} {
			list, next, err := s.Sessions(t.Context(), alice, store.SessionQuery{Group: group, NeedsFirst: true, Limit: 100})
			if err != nil || next != "" {
				t.Fatal(err, next)
			}
			if len(list) != counts[group] || len(list) == 0 {
				t.Errorf("%s lists %d sessions and counts %d", group, len(list), counts[group])
			}
			for i := range list {
				needs := list[i].State.Needs()
				if waits := needs == journal.NeedsReconcile || needs == journal.NeedsDecision || needs == journal.NeedsBlocked; waits != (group == store.GroupNeeds) {
					t.Errorf("a session that needs %q is under %s", needs, group)
				}
			}
			all += len(list)
		}
		whole, _, err := s.Sessions(t.Context(), alice, store.SessionQuery{Limit: 100})
		if err != nil || len(whole) != all {
			t.Errorf("%d sessions in groups, %d in all, %v", all, len(whole), err)
		}
		if counts, err := s.SessionCounts(t.Context(), mallory); err != nil || len(counts) != 1 || counts[store.GroupEarlier] != 1 {
			t.Errorf("the other owner has %v, %v", counts, err)
		}
	})
}
