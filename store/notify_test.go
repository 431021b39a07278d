package store_test

import (
	"context"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// proves ADM-7 RDR-3
func TestSubscribe_OwnProcess(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		a, b := storetest.MustSession(t, s, owner).ID, storetest.MustSession(t, s, owner).ID
		heardA, cancelA := s.Subscribe(a)
		heardB, cancelB := s.Subscribe(b)
		defer cancelB()
		for range 3 { // one signal, however many commits: nothing is buffered for a slow reader
			storetest.MustPrompt(t, s, owner, a, "x", journal.Queue)
		}
		heard(t, heardA, "session a")
		silent(t, heardB, "session b has no commit")
		// A refusal tells nobody.
		_, err := s.SubmitPrompt(t.Context(), owner, b, "k", queue(""))
		storetest.WantCode(t, err, journal.Unprocessable)
		_, err = s.WithdrawPrompt(t.Context(), owner, "inp_none")
		storetest.WantCode(t, err, journal.NotFound)
		silent(t, heardB, "nothing was committed in b")
		cancelA()
		cancelA()
		c := storetest.MustClaim(t, s, a, "w") // readers show who runs it
		storetest.MustPromote(t, s, c)
	})
}

// proves ADM-7
func TestSubscribeWork_OnlyWhenThereIsSome(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		sub := s.SubscribeWork()
		defer sub.Close()
		sub.Take()
		select { // what the fixture's own prompt had put out
		case <-sub.C():
		default:
		}
		readers, cancel := s.Subscribe(r.Session)
		defer cancel()
		storetest.MustAppend(t, s, r.Claim, "", &journal.PlanUpdated{})
		heard(t, readers, "an append")
		if ids, _ := sub.Take(); len(ids) != 0 {
			t.Errorf("a run woke runners: %v", ids)
		}
		end(t, s, r.Claim, journal.Completed, true)
		if ids, _ := sub.Take(); len(ids) != 0 {
			t.Errorf("a release without work woke runners: %v", ids)
		}
	})
}

// proves ADM-7
func TestSubscribe_OtherProcess(t *testing.T) {
	t.Parallel()
	for _, name := range storetest.Databases() {
		if name == "sqlite" { // one process has the journal
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t, name)
			here, there := db.Open(t), db.Open(t)
			owner := storetest.MustUser(t, here).ID
			session := storetest.MustSession(t, here, owner).ID
			readers, cancel := there.Subscribe(session)
			defer cancel()
			work := there.SubscribeWork()
			defer work.Close()
			// The listener may still be connecting: then it tells everybody to read again, or the next commit is heard.
			deadline := time.After(patience)
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for sent := false; ; {
				if !sent {
					storetest.MustPrompt(t, here, owner, session, "x", journal.Queue)
				}
				select {
				case <-readers:
					hearWork(t, work, session)
					return
				case <-tick.C:
				case <-deadline:
					t.Fatal("the other process heard nothing")
				}
			}
		})
	}
}

// A listener that lost its connection tells everybody to read again.
func TestSubscribe_LostListener(t *testing.T) {
	t.Parallel()
	for _, name := range storetest.Databases() {
		if name == "sqlite" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t, name)
			s := db.Open(t)
			raw := db.SQL(t)
			readers, cancel := s.Subscribe("ses_any")
			defer cancel()
			work := s.SubscribeWork()
			defer work.Close()
			deadline := time.After(patience)
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for killed := int64(0); killed == 0; {
				killed = db.Count(t, raw, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'")
				select {
				case <-tick.C:
				case <-deadline:
					t.Fatal("no listener")
				}
			}
			heard(t, readers, "the lost connection")
			heard(t, work.C(), "the lost connection")
			if _, resync := work.Take(); !resync {
				t.Error("runners weren't told to sweep")
			}
		})
	}
}

// Close doesn't wait for a listener that is still connecting.
func TestClose_RightAfterOpen(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s, err := store.Open(context.Background(), store.Options{URL: db.URL})
		must(t, err)
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		select {
		case err := <-closed:
			must(t, err)
		case <-time.After(patience):
			t.Fatal("Close hangs")
		}
	})
}
