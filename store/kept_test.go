package store_test

import (
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

func TestUnsent_KeptForItsOwner(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner, other := storetest.MustUser(t, s).ID, storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		must(t, s.KeepUnsent(t.Context(), owner, session, "key-1", "first"))
		must(t, s.KeepUnsent(t.Context(), owner, session, "key-1", "second\nline"))
		must(t, s.KeepUnsent(t.Context(), owner, store.NewMission, "key-2", "a mission"))
		wantUnsent(t, s, owner, session, "second\nline")
		wantUnsent(t, s, owner, store.NewMission, "a mission")
		wantUnsent(t, s, other, session, "")
		wantUnsent(t, s, other, store.NewMission, "")
		// proves OWN-1
		storetest.WantCode(t, s.KeepUnsent(t.Context(), other, session, "key-1", "mine"), journal.NotFound)
		storetest.WantCode(t, s.KeepUnsent(t.Context(), owner, "ses_none", "key-1", "mine"), journal.NotFound)
		if err := s.KeepUnsent(t.Context(), owner, session, "key-1", strings.Repeat("x", 256<<10+1)); err == nil {
			t.Error("kept more than a prompt may hold")
		}
		wantUnsent(t, s, owner, session, "second\nline")

		page, err := s.SessionPage(t.Context(), owner, session, 0, 10)
		must(t, err)
		if page.Unsent.Text != "second\nline" || page.Unsent.UpdatedAt == 0 {
			t.Errorf("the page has %+v", page.Unsent)
		}
		must(t, s.KeepUnsent(t.Context(), owner, session, "key-1", ""))
		must(t, s.DropUnsent(t.Context(), owner, session))
		wantUnsent(t, s, owner, session, "")
		if n := len(storetest.Events(t, s, session)); n != 1 {
			t.Errorf("the journal has %d entries", n)
		}
	})
}

// A save that comes after its form was sent brings nothing back.
func TestUnsent_NotAfterItWasSent(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		one, _, err := s.CreateSession(t.Context(), owner, "key-new", storetest.NewSession())
		must(t, err)
		must(t, s.KeepUnsent(t.Context(), owner, store.NewMission, "key-new", "late"))
		wantUnsent(t, s, owner, store.NewMission, "")
		_, err = s.SubmitPrompt(t.Context(), owner, one.ID, "key-sent", store.PromptInput{Text: "do it", Delivery: journal.Queue})
		must(t, err)
		must(t, s.KeepUnsent(t.Context(), owner, one.ID, "key-sent", "do it"))
		wantUnsent(t, s, owner, one.ID, "")
		must(t, s.KeepUnsent(t.Context(), owner, one.ID, "key-next", "and this"))
		wantUnsent(t, s, owner, one.ID, "and this")
		// Sent under its key, and nobody dropped it, since the answer was lost.
		_, err = s.SubmitPrompt(t.Context(), owner, one.ID, "key-next", store.PromptInput{Text: "and this", Delivery: journal.Queue})
		must(t, err)
		wantUnsent(t, s, owner, one.ID, "")
	})
}

func wantUnsent(t *testing.T, s *store.Store, owner, place, want string) {
	t.Helper()
	got, err := s.Unsent(t.Context(), owner, place)
	must(t, err)
	if got.Text != want {
		t.Errorf("at %s %q is kept, want %q", place, got.Text, want)
	}
}

func TestMarkSeen_OnlyForward(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		last := int64(len(storetest.Events(t, s, r.Session)))
		want := func(seq int64) {
			t.Helper()
			p, err := s.SessionPage(t.Context(), r.Owner, r.Session, 0, 1)
			must(t, err)
			if p.Seen.Seq != seq || (p.Seen.At == 0) != (seq == 0) {
				t.Errorf("seen %+v, want #%d", p.Seen, seq)
			}
		}
		want(0)
		must(t, s.MarkSeen(t.Context(), r.Owner, r.Session, 2))
		want(2)
		must(t, s.MarkSeen(t.Context(), r.Owner, r.Session, 1))
		want(2)
		must(t, s.MarkSeen(t.Context(), r.Owner, r.Session, last))
		want(last)
		for _, bad := range []int64{0, -1, last + 1} {
			storetest.WantSlug(t, s.MarkSeen(t.Context(), r.Owner, r.Session, bad), "no-such-entry")
		}
		// proves OWN-1
		storetest.WantCode(t, s.MarkSeen(t.Context(), storetest.MustUser(t, s).ID, r.Session, 1), journal.NotFound)
		want(last)
	})
}

func TestPreferences(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		want := func(p store.Preferences) {
			t.Helper()
			got, err := s.Preferences(t.Context(), owner)
			must(t, err)
			if got != p {
				t.Errorf("preferences %+v, want %+v", got, p)
			}
		}
		want(store.Preferences{})
		p := store.Preferences{KeysOff: true, Announce: "off", Theme: "dark"}
		must(t, s.SavePreferences(t.Context(), owner, p))
		want(p)
		storetest.WantSlug(t, s.SavePreferences(t.Context(), owner, store.Preferences{Theme: "pink"}), "bad-preference")
		storetest.WantSlug(t, s.SavePreferences(t.Context(), owner, store.Preferences{Announce: "loud"}), "bad-preference")
		want(p)
		must(t, s.SavePreferences(t.Context(), owner, store.Preferences{Announce: "all"}))
		want(store.Preferences{Announce: "all"})
	})
}

// proves RDR-1 RDR-6
func TestSessionAfter_SameSnapshotAsThePage(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		_, request := r.MustAsk(t, s)
		all := storetest.Events(t, s, r.Session)
		for after := range int64(len(all) + 1) {
			p, err := s.SessionAfter(t.Context(), r.Owner, r.Session, after, 1000)
			must(t, err)
			if len(p.Events) != len(all)-int(after) || p.Session.LastSeq != int64(len(all)) || len(p.Requests) != 1 || p.Requests[0].ID != request {
				t.Fatalf("after %d: %d events up to #%d, %d requests", after, len(p.Events), p.Session.LastSeq, len(p.Requests))
			}
			if len(p.Events) > 0 && p.Events[0].Seq != after+1 {
				t.Errorf("after %d comes #%d", after, p.Events[0].Seq)
			}
		}
		p, err := s.SessionAfter(t.Context(), r.Owner, r.Session, 0, 1)
		must(t, err)
		if got := storetest.Kinds(p.Spans); len(p.Events) != 1 || len(got) != 2 || got[0] != journal.KindTurnStarted || got[1] != journal.KindPermissionAsked {
			t.Errorf("%d events, spans %v", len(p.Events), got)
		}
		_, err = s.SessionAfter(t.Context(), r.Owner, r.Session, int64(len(all))+1, 1)
		storetest.WantSlug(t, err, "cursor-beyond-head")
		_, err = s.SessionAfter(t.Context(), storetest.MustUser(t, s).ID, r.Session, 0, 1)
		storetest.WantCode(t, err, journal.NotFound)
	})
}
