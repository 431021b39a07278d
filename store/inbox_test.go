package store_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// askedRun is a session of the owner's that asks for n permissions at once, and waits.
func askedRun(t *testing.T, s *store.Store, owner string, n int) (ids []string) {
	t.Helper()
	r := ownRun(t, s, owner)
	call := r.MustCall(t, s, journal.EffectEffect)
	var asks []journal.Body
	for range n {
		ids = append(ids, store.NewID("per"))
		asks = append(asks, storetest.Ask(ids[len(ids)-1], call))
	}
	evs := storetest.MustAppend(t, s, r.Claim, "", asks...)
	released, err := s.Release(t.Context(), r.Claim, evs[len(evs)-1].Seq)
	if err != nil || !released {
		t.Fatal(released, err)
	}
	return ids
}

func ownRun(t *testing.T, s *store.Store, owner string) *storetest.Run {
	t.Helper()
	r := &storetest.Run{Owner: owner, Session: storetest.MustSession(t, s, owner).ID, Worker: "w"}
	storetest.MustPrompt(t, s, owner, r.Session, "x", journal.Queue)
	r.Claim = storetest.MustClaim(t, s, r.Session, "w")
	r.Turn = storetest.MustPromote(t, s, r.Claim)
	return r
}

// Of each kind those that wait longest are there, whichever was written first,
// with how many there are in truth.
func TestInbox_OldestOfEachKind(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		storetest.States(t, s, storetest.MustUser(t, s).ID) // another's
		many := func(hours int) {
			s.Skew(time.Duration(hours) * time.Hour)
			askedRun(t, s, owner, store.MaxInbox)
			ownRun(t, s, owner).MustUnknown(t, s)
			r := ownRun(t, s, owner)
			end(t, s, r.Claim, journal.Completed, true)
			blocked := storetest.MustSession(t, s, owner).ID
			storetest.MustPrompt(t, s, owner, blocked, "x", journal.Queue)
			must(t, s.Block(t.Context(), blocked, "w", journal.SessionBlocked{Cause: journal.BlockAgent}))
		}
		many(3)
		many(2)
		s.Skew(time.Hour)
		oldest := askedRun(t, s, owner, 1)[0]
		in, err := s.Inbox(t.Context(), owner)
		must(t, err)
		if want := (store.InboxCount{Decisions: 2*store.MaxInbox + 1, Reconciles: 2, Missing: 2, Ready: 2}); in.Count != want || in.Count.Open() != 2*store.MaxInbox+5 {
			t.Errorf("the counts are %+v, want %+v", in.Count, want)
		}
		if len(in.Decisions) != store.MaxInbox || in.Decisions[0].ID != oldest {
			t.Errorf("%d decisions, the first is %s; want %d and the oldest, %s", len(in.Decisions), in.Decisions[0].ID, store.MaxInbox, oldest)
		}
		var since []int64
		for _, r := range in.Decisions {
			since = append(since, r.AskedAt)
			if in.Sessions[r.SessionID].ID != r.SessionID {
				t.Fatalf("the session of %s isn't there", r.ID)
			}
		}
		rising(t, "decisions", since)
		rising(t, "reconciles", []int64{in.Reconciles[0].Since, in.Reconciles[1].Since})
		rising(t, "missing", []int64{in.Missing[0].State.BaseSince, in.Missing[1].State.BaseSince})
		rising(t, "ready", []int64{in.Ready[0].State.BaseSince, in.Ready[1].State.BaseSince})
		for _, u := range in.Reconciles {
			if u.Call == nil || in.Sessions[u.SessionID].ID != u.SessionID {
				t.Errorf("to reconcile: %+v", u)
			}
		}
		if in.Running != 0 || in.Now == 0 {
			t.Errorf("%d run at %d", in.Running, in.Now)
		}
	})
}

func rising(t *testing.T, what string, times []int64) {
	t.Helper()
	for i := 1; i < len(times); i++ {
		if times[i] < times[i-1] {
			t.Errorf("the %s aren't oldest first: %v", what, times)
			return
		}
	}
}

// Sessions are bounded too, and what is bounded is counted.
func TestInbox_Bounds(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		for i := range store.MaxInbox + 1 {
			s.Skew(-time.Duration(i) * time.Hour) // the last is the oldest
			id := storetest.MustSession(t, s, owner, func(n *store.NewSession) { n.Title = fmt.Sprint(i) }).ID
			storetest.MustPrompt(t, s, owner, id, "x", journal.Queue)
			must(t, s.Block(t.Context(), id, "w", journal.SessionBlocked{Cause: journal.BlockAgent}))
		}
		in, err := s.Inbox(t.Context(), owner)
		must(t, err)
		if len(in.Missing) != store.MaxInbox || in.Count.Missing != store.MaxInbox+1 || in.Missing[0].State.Title != fmt.Sprint(store.MaxInbox) {
			t.Errorf("%d of %d, the first is %s", len(in.Missing), in.Count.Missing, in.Missing[0].State.Title)
		}
	})
}

// An unknown attempt waits beside the unknown calls, and what runs is counted by its group.
func TestInbox_EveryState(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		storetest.States(t, s, owner)
		in, err := s.Inbox(t.Context(), owner)
		must(t, err)
		attempts := 0
		for _, u := range in.Reconciles {
			if u.AttemptID != "" {
				attempts++
			}
		}
		counts, err := s.SessionCounts(t.Context(), owner)
		must(t, err)
		needs, err := s.NeedsCount(t.Context(), owner)
		must(t, err)
		if !maps.Equal(in.Needs, needs) || len(needs) == 0 {
			t.Errorf("sessions need %v, by the inbox %v", needs, in.Needs)
		}
		if attempts != 1 || len(in.Reconciles) != in.Count.Reconciles || in.Running != counts[journal.GroupRunning] || len(in.Ready) != counts[journal.GroupReview] || in.Latest == 0 {
			t.Errorf("%d attempts, %+v, %d run since %d; the list has %v", attempts, in.Count, in.Running, in.Latest, counts)
		}
	})
}
