package store_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// follow follows a session from its end on.
func follow(t *testing.T, s *store.Store, owner, session string) (f *store.Follower, head int64) {
	t.Helper()
	f = s.Follow(owner, session)
	t.Cleanup(f.Close)
	_, head, err := f.After(t.Context(), 0, 1)
	must(t, err)
	return f, head
}

// wantTail fails unless the tail gives just these seqs after one.
func wantTail(t *testing.T, f *store.Follower, after int64, want ...int64) {
	t.Helper()
	list, _, ok := f.Tail(after, store.MaxEvents)
	got := make([]int64, len(list))
	for i, e := range list {
		got[i] = e.Seq
	}
	if !ok || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("after #%d the tail gives %v (%t), want %v", after, got, ok, want)
	}
}

// wantNoTail fails unless only the journal can say what comes after a seq.
func wantNoTail(t *testing.T, f *store.Follower, after int64, why string) {
	t.Helper()
	if list, _, ok := f.Tail(after, store.MaxEvents); ok {
		t.Fatalf("%s: the tail gives %d entries after #%d, want that the journal is read", why, len(list), after)
	}
}

func wantTails(t *testing.T, s *store.Store, sessions, entries int) {
	t.Helper()
	if n, m, bytes := s.Tails(); n != sessions || m != entries || (m == 0) != (bytes == 0) {
		t.Fatalf("%d sessions with %d entries of %d bytes are kept, want %d with %d", n, m, bytes, sessions, entries)
	}
}

// proves RDR-2 JRN-2
func TestTail_IsTheJournal(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		here := db.Open(t)
		there := here // SQLite's journal has one server
		if db.Name == "postgres" {
			there = db.Open(t)
		}
		r := storetest.MustRun(t, here, "w")
		const each = 30
		stores := []*store.Store{here, there}
		var readers sync.WaitGroup
		for _, s := range stores {
			f, head := follow(t, s, r.Owner, r.Session)
			readers.Go(func() { readAll(t, f, head, head+3*each) })
		}
		noErrors(t, together(3, func(i int) error {
			for k := range each {
				text := fmt.Sprintf("<%d> \u2028 %d \U0001F600 \"", i, k)
				err := insist(func() (err error) {
					if i < 2 {
						_, err = stores[i].SubmitPrompt(t.Context(), r.Owner, r.Session, fmt.Sprint(i, "-", k), queue(text))
						return err
					}
					body := &journal.MessageCompleted{MessageID: store.NewID("msg"), Role: "agent", Part: journal.PartText, Text: journal.T(text)}
					_, err = here.Append(t.Context(), r.Claim, store.Append{Drafts: storetest.Drafts(body)})
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		}))
		readers.Wait()
	})
}

// readAll follows from a seq to another as a stream does, and compares what it
// was given with the journal.
func readAll(t *testing.T, f *store.Follower, after, until int64) {
	poll := time.NewTicker(50 * time.Millisecond) // the journal of two servers: a wake-up may be late
	defer poll.Stop()
	first, fromTail, end := after, 0, time.After(patience)
	var got []journal.Event
	for look := false; after < until; {
		list, head, ok := f.Tail(after, 7)
		if ok && !look {
			fromTail += len(list)
		} else {
			var err error
			if list, head, err = f.After(t.Context(), after, 7); err != nil {
				t.Error(err)
				return
			}
		}
		look = false
		for _, e := range list {
			got = append(got, e.Event)
			after = e.Seq
		}
		if after < head {
			continue
		}
		select {
		case <-f.C():
		case <-poll.C:
			look = true
		case <-end:
			t.Errorf("only #%d was reached, want #%d", after, until)
			return
		}
	}
	page, _, err := f.After(t.Context(), first, store.MaxEvents)
	if err != nil || len(page) != len(got) || fromTail == 0 {
		t.Errorf("%d entries were given, %d of them by the tail, of %d: %v", len(got), fromTail, len(page), err)
		return
	}
	for i, e := range page {
		if !reflect.DeepEqual(e.Event, got[i]) || e.Seq != first+1+int64(i) {
			t.Errorf("given\n%+v, in the journal\n%+v", got[i], e.Event)
		}
	}
}

// proves RDR-2 JRN-3
func TestTail_OnlyWhatIsCommitted(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		f, head := follow(t, s, owner, session)
		submit := func(key, text string) func() error {
			return func() error {
				_, err := s.SubmitPrompt(t.Context(), owner, session, key, queue(text))
				return err
			}
		}
		for _, err := range batch(t, s, session, submit("a", "x"), submit("b", "y"), breaksCommit(t, db, s, session)) {
			storetest.WantSlug(t, err, "commit-unknown")
		}
		wantTails(t, s, 0, 0)
		wantTail(t, f, head)
		noErrors(t, batch(t, s, session, submit("a", "z"), submit("a", "z"))) // one of them is a replay, and undone
		wantTails(t, s, 1, 1)
		list, _, _ := f.Tail(head, 10)
		if all := storetest.Events(t, s, session); len(all) != 2 || len(list) != 1 || !reflect.DeepEqual(list[0].Event, all[1]) {
			t.Errorf("the tail gives %v of %v", list, all)
		}
		wantTail(t, f, head, head+1)
		wantTail(t, f, head+1)
	})
}

// proves RDR-2 RDR-3
func TestTail_Bounded(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		f, head := follow(t, s, r.Owner, r.Session)
		bodies := make([]journal.Body, 50)
		for i := range bodies {
			bodies[i] = &journal.PlanUpdated{}
		}
		n := int64(0)
		for ; n <= store.TailEvents; n += int64(len(bodies)) {
			storetest.MustAppend(t, s, r.Claim, "", bodies...)
		}
		wantTails(t, s, 1, store.TailEvents)
		begin := head + n - store.TailEvents
		wantNoTail(t, f, begin-1, "a reader behind its beginning")
		if list, _, ok := f.Tail(begin, 3); !ok || len(list) != 3 || list[0].Seq != begin+1 {
			t.Errorf("the beginning is %v", list)
		}
		list, last, err := f.After(t.Context(), head, store.MaxEvents)
		if err != nil || int64(len(list)) != n || last != head+n {
			t.Errorf("the journal gives %d to #%d, %v", len(list), last, err)
		}
		for range 3 {
			large := make([]journal.Body, 10)
			for i := range large {
				large[i] = &journal.MessageCompleted{MessageID: store.NewID("msg"), Role: "agent", Part: journal.PartText, Text: journal.T(strings.Repeat("x", 30_000))}
			}
			storetest.MustAppend(t, s, r.Claim, "", large...)
		}
		if _, n, bytes := s.Tails(); bytes > store.TailSize || bytes < store.TailSize/2 || n > 20 {
			t.Errorf("%d entries of %d bytes are kept", n, bytes)
		}
		wantTail(t, f, last+29, last+30)
		s.BoundTails(store.TailSize / 2)
		storetest.MustAppend(t, s, r.Claim, "", &journal.PlanUpdated{})
		wantTails(t, s, 0, 0)
		wantNoTail(t, f, last+30, "all tails began anew")
		storetest.MustAppend(t, s, r.Claim, "", &journal.PlanUpdated{})
		wantTail(t, f, last+31, last+32)
	})
}

// proves OWN-1
func TestTail_OfItsFollowers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		write := func() { storetest.MustAppend(t, s, r.Claim, "", &journal.PlanUpdated{}) }
		_, cancel := s.Subscribe(r.Session)
		defer cancel()
		stranger := s.Follow(storetest.MustUser(t, s).ID, r.Session)
		defer stranger.Close()
		_, _, err := stranger.After(t.Context(), 0, 10)
		storetest.WantCode(t, err, journal.NotFound)
		write()
		wantTails(t, s, 0, 0) // nobody is there who may read it

		f, head := follow(t, s, r.Owner, r.Session)
		g, _ := follow(t, s, r.Owner, r.Session)
		write()
		wantTails(t, s, 1, 1)
		wantTail(t, f, head, head+1)
		wantTail(t, g, head, head+1)
		wantNoTail(t, stranger, head, "of somebody else")
		unasked := s.Follow(r.Owner, r.Session)
		wantNoTail(t, unasked, head, "before the journal said whose it is")
		unasked.Close()

		s.LoseWakes()
		wantNoTail(t, f, head, "wake-ups may have been lost")
		_, head, err = f.After(t.Context(), 0, 1)
		must(t, err)
		wantTail(t, f, head-1, head)

		f.Close()
		f.Close()
		wantTails(t, s, 1, 1)
		g.Close()
		wantTails(t, s, 0, 0)
		write()
		wantTails(t, s, 0, 0)
		stranger.Close()
		cancel()
		if n := s.Topics(); n != 0 {
			t.Errorf("%d sessions are heard of by nobody", n)
		}
	})
}

// proves RDR-2
func TestTail_Gap(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, db *storetest.DB) {
		here, there := db.Open(t), db.Open(t)
		owner := storetest.MustUser(t, here).ID
		session := storetest.MustSession(t, here, owner).ID
		f, head := follow(t, here, owner, session)
		for _, s := range []*store.Store{here, there, here} {
			storetest.MustPrompt(t, s, owner, session, "x", journal.Queue)
		}
		wantTails(t, here, 1, 1) // the last one: what lies before the gap is gone
		wantNoTail(t, f, head, "there is a gap")
		wantNoTail(t, f, head+1, "another server's")
		wantTail(t, f, head+2, head+3)
	})
}

// What readers send is made once, for all who share the entry.
func TestEntry_Form(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		f, head := follow(t, s, r.Owner, r.Session)
		g, _ := follow(t, s, r.Owner, r.Session)
		storetest.MustAppend(t, s, r.Claim, "", &journal.PlanUpdated{})
		made := 0
		of := func(e *journal.Event) ([]byte, error) { made++; return fmt.Append(nil, e.Seq), nil }
		for _, f := range []*store.Follower{f, g, f} {
			list, _, _ := f.Tail(head, 1)
			if text, err := list[0].Form(of); err != nil || string(text) != fmt.Sprint(head+1) {
				t.Errorf("got %q, %v", text, err)
			}
		}
		if made != 1 {
			t.Errorf("it was made %d times", made)
		}
	})
}
