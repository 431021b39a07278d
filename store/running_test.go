package store_test

import (
	"slices"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// What runs is listed for its owner, with who follows it; of others only how many.
//
// proves OWN-1 REC-10
func TestRunningCalls(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w1")
		first, second := r.MustSpooled(t, s, journal.EffectRead), r.MustSpooled(t, s, journal.EffectEffect)
		ended := r.MustSpooled(t, s, journal.EffectRead)
		must(t, readOn(s, t, r.Claim, ended, 1, 9, storetest.Settle(ended, journal.CallSucceeded)))
		r.MustDispatched(t, s, journal.EffectRead) // under none
		must(t, readOn(s, t, r.Claim, first, 1, 40, printed(first, "hello", 0)))
		theirs := storetest.MustRun(t, s, "w2")
		theirsRuns := theirs.MustSpooled(t, s, journal.EffectRead)

		list := func(owner string, want ...string) store.RunningCalls {
			t.Helper()
			out, err := s.RunningCalls(t.Context(), owner)
			must(t, err)
			var got []string
			for i := range out.Items {
				got = append(got, out.Items[i].Call.ID)
			}
			if !slices.Equal(got, want) || out.More || out.Now == 0 {
				t.Fatalf("%v at %d, more %v; want %v", got, out.Now, out.More, want)
			}
			return out
		}
		out := list(r.Owner, first, second)
		if one := out.Items[0]; one.Session.ID != r.Session || one.Session.State.Title != "Try it" || one.Call.OutputBytes != 5 || one.Folder != "fld_w1" || one.Worker != nil || !one.Followed() || one.Session.Kept != 2 {
			t.Errorf("the first is %+v of %+v", one, one.Call)
		}
		if theirsSee := list(theirs.Owner, theirsRuns).Others; out.Others != 1 || theirsSee != 2 {
			t.Errorf("%d and %d run for others, want 1 and 2", out.Others, theirsSee)
		}
		if nobody := list(storetest.MustUser(t, s).ID); nobody.Others != 3 {
			t.Errorf("who has none is told of %d, want 3", nobody.Others)
		}

		// The server is lost: it runs on, for a worker of that folder to follow.
		must(t, s.SeeWorker(t.Context(), store.Worker{ID: "w1b", StateFolderID: "fld_w1", Host: "build-1", Agents: []store.Agent{}}))
		r.MustAdopt(t, s, first, second)
		out = list(r.Owner, first, second)
		if one := out.Items[1]; one.Followed() || one.Call.AdoptedAt == 0 || one.Worker == nil || one.Worker.Host != "build-1" {
			t.Errorf("unclaimed: %+v of %+v", one, one.Call)
		}
		storetest.MustClaim(t, s, r.Session, "w1")
		if out = list(r.Owner, first, second); !out.Items[1].Followed() {
			t.Error("claimed by its folder, and not followed")
		}
	})
}

// What can't run any more is neither listed nor counted: a read whose execution is
// lost and that waits to be run again, though somebody holds its session by now;
// and what nobody follows, once its limit has passed.
//
// proves REC-10
func TestRunningCalls_OnlyWhatCanRun(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		other := storetest.MustUser(t, s).ID
		want := func(when, owner string, items, others int) {
			t.Helper()
			mine, err := s.RunningCalls(t.Context(), owner)
			must(t, err)
			theirs, err := s.RunningCalls(t.Context(), other)
			must(t, err)
			if len(mine.Items) != items || theirs.Others != others {
				t.Errorf("%s: %d run, and others are told of %d; want %d and %d", when, len(mine.Items), theirs.Others, items, others)
			}
		}
		r := storetest.MustRun(t, s, "w1")
		r.MustSpooled(t, s, journal.EffectRead)
		want("followed", r.Owner, 1, 1)
		storetest.MustLose(t, s, r.Claim)
		want("lost", r.Owner, 0, 0)
		r.Claim = storetest.MustClaim(t, s, r.Session, "w1")
		want("to be run again", r.Owner, 0, 0)
		if one, err := s.Session(t.Context(), r.Owner, r.Session); err != nil || one.Kept != 0 {
			t.Errorf("%d commands are kept, %v", one.Kept, err)
		}

		r = storetest.MustRun(t, s, "w2")
		r.MustAdopt(t, s, r.MustSpooled(t, s, journal.EffectEffect))
		want("adopted", r.Owner, 1, 1)
		s.Skew(journal.DefaultCallTime + time.Minute)
		want("its limit has passed", r.Owner, 0, 0)
		storetest.MustClaim(t, s, r.Session, "w2")
		want("followed at its limit", r.Owner, 1, 1)
	})
}

// More than the list has room for is said, and a call that was dispatched again
// under no shim is none that outlives its server.
func TestRunningCalls_Bounds(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		r := storetest.MustRun(t, s, "w1")
		again := r.MustSpooled(t, s, journal.EffectRead)
		for range store.MaxRunning {
			r.MustSpooled(t, s, journal.EffectRead)
		}
		storetest.MustAppend(t, s, r.Claim, "", storetest.Dispatch(again, 2))
		out, err := s.RunningCalls(t.Context(), r.Owner)
		must(t, err)
		if len(out.Items) != store.MaxRunning || out.More {
			t.Fatalf("%d, more %v; want %d", len(out.Items), out.More, store.MaxRunning)
		}
		r.MustSpooled(t, s, journal.EffectRead)
		out, err = s.RunningCalls(t.Context(), r.Owner)
		must(t, err)
		if len(out.Items) != store.MaxRunning || !out.More {
			t.Errorf("%d, more %v; want %d and more", len(out.Items), out.More, store.MaxRunning)
		}
	})
}
