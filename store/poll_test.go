package store_test

import (
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// proves RDR-2
func TestPoll_LostWakeUp(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		f, head := follow(t, s, owner, session)
		only, cancel := s.Subscribe(storetest.MustSession(t, s, owner).ID)
		defer cancel()
		storetest.MustPrompt(t, s, owner, session, "x", journal.Queue)
		heard(t, f.C(), "the prompt")
		s.Unhear(session, head)
		wantTail(t, f, head) // nothing is known of it
		must(t, s.PollHeads(t.Context()))
		heard(t, f.C(), "what was missed")
		wantTail(t, f, head, head+1)
		must(t, s.PollHeads(t.Context()))
		silent(t, f.C(), "there is nothing new")
		silent(t, only, "nobody has read there")
	})
}

// A heartbeat says that the journal can be read, so it needs somebody who has.
func TestFollower_Pulse(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		f := s.Follow(owner, session)
		defer f.Close()
		if _, _, ok := f.Pulse(); ok {
			t.Error("a pulse of what nobody has read")
		}
		_, err := f.Page(t.Context(), 1, 1)
		must(t, err)
		wantTails(t, s, 0, 0)
		storetest.MustPrompt(t, s, owner, session, "x", journal.Queue)
		wantTails(t, s, 0, 0) // pages need no tail
		before, err := s.Now(t.Context())
		must(t, err)
		head, now, ok := f.Pulse()
		if !ok || head != 2 || now < before-1000 || now > before+patience.Milliseconds() {
			t.Errorf("the pulse is #%d at %d (%t), the clock was %d", head, now, ok, before)
		}
		s.AgeReading(time.Minute)
		if _, _, ok := f.Pulse(); ok {
			t.Error("a pulse of a minute ago")
		}
		must(t, s.PollHeads(t.Context()))
		if _, _, ok := f.Pulse(); !ok {
			t.Error("no pulse after a poll")
		}
		stranger := s.Follow(storetest.MustUser(t, s).ID, session)
		defer stranger.Close()
		_, err = stranger.Page(t.Context(), 1, 1)
		storetest.WantCode(t, err, journal.NotFound)
		if _, _, ok := stranger.Pulse(); ok {
			t.Error("somebody else has a pulse of it")
		}
	})
}
