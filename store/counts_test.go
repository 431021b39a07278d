package store_test

import (
	"fmt"
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
		storetest.States(t, s, alice)
		storetest.MustSession(t, s, mallory)
		groups(t, s, alice)
		if counts, err := s.SessionCounts(t.Context(), mallory); err != nil || len(counts) != 1 || counts[journal.GroupEarlier] != 1 {
			t.Errorf("the other owner has %v, %v", counts, err)
		}
	})
}

// A page of the list says what its groups and its badge count: all of it is as of
// one moment, however much comes meanwhile.
//
// proves RDR-1
func TestSessionList_OneSnapshot(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		const many = 20
		written := make(chan error, many)
		go func() {
			for i := range many {
				n := storetest.NewSession()
				n.Prompt = &store.PromptInput{Text: "go", Delivery: journal.Queue}
				one, _, err := s.CreateSession(t.Context(), owner, fmt.Sprint("key-", i), n)
				if err == nil {
					err = s.Block(t.Context(), one.ID, "w", journal.SessionBlocked{Cause: journal.BlockAgent})
				}
				written <- err
			}
			close(written)
		}()
		look := func() store.SessionList {
			t.Helper()
			list, err := s.SessionList(t.Context(), owner, store.SessionQuery{NeedsFirst: true, Limit: 2 * many})
			must(t, err)
			all, blocked := 0, 0
			for _, n := range list.Groups {
				all += n
			}
			for _, one := range list.Sessions {
				if one.State.Needs() == journal.NeedsBlocked {
					blocked++
				}
			}
			if len(list.Sessions) != all || list.Groups[journal.GroupNeeds] != blocked || list.Needs[journal.NeedsBlocked] != blocked {
				t.Errorf("%d sessions, %d of them blocked; the groups have %v, the badge %v", len(list.Sessions), blocked, list.Groups, list.Needs)
			}
			return list
		}
		for ended := false; !ended; {
			select {
			case err, more := <-written:
				must(t, err)
				ended = !more
			default:
			}
			look()
		}
		if list := look(); len(list.Sessions) != many || list.Next != "" || list.Now == 0 {
			t.Errorf("%d sessions at %d, then %q", len(list.Sessions), list.Now, list.Next)
		}
		list, err := s.SessionList(t.Context(), owner, store.SessionQuery{NeedsFirst: true, Limit: many - 1})
		must(t, err)
		if len(list.Sessions) != many-1 || list.Next == "" || list.Groups[journal.GroupNeeds] != many {
			t.Errorf("a page has %d, of %v, then %q", len(list.Sessions), list.Groups, list.Next)
		}
	})
}
