package store_test

import (
	"fmt"
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
		keep(t, s, owner, session, "key-1", "first")
		keep(t, s, owner, session, "key-1", "second\nline")
		keep(t, s, owner, store.NewMission, "key-2", "a mission")
		wantUnsent(t, s, owner, session, "second\nline")
		wantUnsent(t, s, owner, store.NewMission, "a mission")
		wantUnsent(t, s, other, session, "")
		wantUnsent(t, s, other, store.NewMission, "")
		// proves OWN-1
		form := store.UnsentForm{Key: "key-1"}
		_, err := s.KeepUnsent(t.Context(), other, session, form, "mine")
		storetest.WantCode(t, err, journal.NotFound)
		_, err = s.KeepUnsent(t.Context(), owner, "ses_none", form, "mine")
		storetest.WantCode(t, err, journal.NotFound)
		if _, err := s.KeepUnsent(t.Context(), owner, session, form, strings.Repeat("x", 256<<10+1)); err == nil {
			t.Error("kept more than a prompt may hold")
		}
		wantUnsent(t, s, owner, session, "second\nline")

		page, err := s.SessionPage(t.Context(), owner, session, 0, 10)
		must(t, err)
		if page.Unsent.Text != "second\nline" || page.Unsent.UpdatedAt == 0 {
			t.Errorf("the page has %+v", page.Unsent)
		}
		keep(t, s, owner, session, "key-1", "")
		must(t, s.DropUnsent(t.Context(), owner, session, form))
		wantUnsent(t, s, owner, session, "")
		if n := len(storetest.Events(t, s, session)); n != 1 {
			t.Errorf("the journal has %d entries", n)
		}
	})
}

// Several forms may stand open for one place. What one of them sends or empties is
// what was kept under its own key, or the version that it was drawn with.
func TestUnsent_OfSeveralForms(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		drop := func(form store.UnsentForm) {
			t.Helper()
			must(t, s.DropUnsent(t.Context(), owner, session, form))
		}
		first := keep(t, s, owner, session, "one", "half a thought")
		drop(store.UnsentForm{Key: "two"})
		drop(store.UnsentForm{})
		if at := keep(t, s, owner, session, "two", ""); at != 0 {
			t.Errorf("an empty form kept something, at %d", at)
		}
		wantUnsent(t, s, owner, session, "half a thought")

		// Within a millisecond too, a later version is another one.
		second := keep(t, s, owner, session, "one", "half a thought, and more")
		if first == 0 || second <= first {
			t.Errorf("the versions are %d and %d", first, second)
		}
		drop(store.UnsentForm{Key: "two", KeptAt: first})
		wantUnsent(t, s, owner, session, "half a thought, and more")
		drop(store.UnsentForm{Key: "two", KeptAt: second})
		wantUnsent(t, s, owner, session, "")

		at := keep(t, s, owner, session, "one", "again")
		if _, err := s.KeepUnsent(t.Context(), owner, session, store.UnsentForm{Key: "three", KeptAt: at}, ""); err != nil {
			t.Fatal(err)
		}
		wantUnsent(t, s, owner, session, "")
		keep(t, s, owner, session, "one", "and again")
		drop(store.UnsentForm{Key: "one"})
		wantUnsent(t, s, owner, session, "")
	})
}

// keep keeps a text under a form's key, and gives its version.
func keep(t *testing.T, s *store.Store, owner, place, key, text string) int64 {
	t.Helper()
	kept, err := s.KeepUnsent(t.Context(), owner, place, store.UnsentForm{Key: key}, text)
	must(t, err)
	return kept.At
}

// A save that comes after its form was sent brings nothing back: neither all of
// the text nor, while it is typed, a part of it.
func TestUnsent_NotAfterItWasSent(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		late := func(place, key, text string) {
			t.Helper()
			kept, err := s.KeepUnsent(t.Context(), owner, place, store.UnsentForm{Key: key, Typing: true}, text)
			must(t, err)
			if kept != (store.Kept{}) {
				t.Errorf("%q was kept at %s: %+v", text, place, kept)
			}
			wantUnsent(t, s, owner, place, "")
		}
		mission := storetest.NewSession()
		mission.Prompt = &store.PromptInput{Text: "build\r\nit", Delivery: journal.Queue}
		one, _, err := s.CreateSession(t.Context(), owner, "key-new", mission)
		must(t, err)
		keep(t, s, owner, store.NewMission, "key-new", "build\r\nit")
		wantUnsent(t, s, owner, store.NewMission, "")
		late(store.NewMission, "key-new", "build")
		_, err = s.SubmitPrompt(t.Context(), owner, one.ID, "key-sent", store.PromptInput{Text: "do it, élan", Delivery: journal.Queue})
		must(t, err)
		keep(t, s, owner, one.ID, "key-sent", "do it, e\u0301lan")
		wantUnsent(t, s, owner, one.ID, "")
		late(one.ID, "key-sent", "do")
		keep(t, s, owner, one.ID, "key-next", "and this")
		wantUnsent(t, s, owner, one.ID, "and this")
		// Sent under its key, and nobody dropped it, since the answer was lost.
		_, err = s.SubmitPrompt(t.Context(), owner, one.ID, "key-next", store.PromptInput{Text: "and this", Delivery: journal.Queue})
		must(t, err)
		wantUnsent(t, s, owner, one.ID, "")
	})
}

// Who went back to a form that was sent, and wrote something else, has it kept.
func TestUnsent_AnotherTextOfASentForm(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		mission := storetest.NewSession()
		mission.Prompt = &store.PromptInput{Text: "build it", Delivery: journal.Queue}
		one, _, err := s.CreateSession(t.Context(), owner, "key-new", mission)
		must(t, err)
		bare, _, err := s.CreateSession(t.Context(), owner, "key-bare", storetest.NewSession())
		must(t, err)
		_, err = s.SubmitPrompt(t.Context(), owner, one.ID, "key-sent", store.PromptInput{Text: "do it", Delivery: journal.Queue})
		must(t, err)
		for _, at := range []struct{ place, key, text string }{
			{store.NewMission, "key-new", "build it, and test it"},
			{store.NewMission, "key-bare", "build it"},
			{one.ID, "key-sent", "do it twice"},
			{bare.ID, "key-sent", "do it"}, // there it was not sent
		} {
			first := keep(t, s, owner, at.place, at.key, at.text)
			wantUnsent(t, s, owner, at.place, at.text)
			second := keep(t, s, owner, at.place, at.key, at.text+"!")
			wantUnsent(t, s, owner, at.place, at.text+"!")
			if first == 0 || second <= first {
				t.Errorf("the versions are %d and %d", first, second)
			}
			must(t, s.DropUnsent(t.Context(), owner, at.place, store.UnsentForm{Key: "key-of-the-page-after", KeptAt: second}))
			wantUnsent(t, s, owner, at.place, "")
		}
	})
}

// What is saved while somebody types takes the place of no text that another form
// keeps and that this one hasn't seen: it is told what is kept. Who keeps a text
// themselves replaces the other, and is given it.
func TestUnsent_ReplacesNothingUnseen(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		for _, place := range []string{storetest.MustSession(t, s, owner).ID, store.NewMission} {
			save := func(form store.UnsentForm, text string) store.Kept {
				t.Helper()
				kept, err := s.KeepUnsent(t.Context(), owner, place, form, text)
				must(t, err)
				if kept.At == 0 {
					t.Errorf("%q isn't kept", text)
				}
				wantUnsent(t, s, owner, place, text)
				return kept
			}
			one, two := store.UnsentForm{Key: "one-" + place, Typing: true}, store.UnsentForm{Key: "two-" + place, Typing: true}
			refused := func(form store.UnsentForm, other store.Kept) {
				t.Helper()
				kept, err := s.KeepUnsent(t.Context(), owner, place, form, "DRAFT-B")
				storetest.WantSlug(t, err, "unsent-elsewhere")
				storetest.WantCode(t, err, journal.Conflict)
				if kept.At != 0 || kept.Other != (store.Unsent{Text: "DRAFT-A", UpdatedAt: other.At}) {
					t.Errorf("a save that was refused was told of %+v, want DRAFT-A at %d", kept, other.At)
				}
				wantUnsent(t, s, owner, place, "DRAFT-A")
			}
			a := save(one, "DRAFT-A")
			refused(two, a)
			again := two
			again.Again = true
			refused(again, a)
			if same := save(two, "DRAFT-A"); same != a {
				t.Errorf("the same text is kept as %+v, want what stands there: %+v", same, a)
			}
			save(one, "DRAFT-A, and on")
			a = save(one, "DRAFT-A")

			two.KeptAt = a.At // drawn with it, so this goes on from it
			if b := save(two, "DRAFT-B"); b.Other.Text != "" {
				t.Errorf("what was seen is told as replaced: %+v", b)
			}
			b := save(button(one), "DRAFT-A")
			if b.Other.Text != "DRAFT-B" {
				t.Errorf("keeping it replaced %+v, want DRAFT-B", b.Other)
			}
			if b := save(button(one), "DRAFT-A, and on"); b.Other.Text != "" {
				t.Errorf("its own text is told as replaced: %+v", b)
			}
		}
	})
}

// A text whose form was sent, by somebody who never heard of it, keeps nothing away.
func TestUnsent_SentIsReplaced(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		keep(t, s, owner, session, "key-sent", "do it")
		_, err := s.SubmitPrompt(t.Context(), owner, session, "key-sent", store.PromptInput{Text: "do it", Delivery: journal.Queue})
		must(t, err)
		kept, err := s.KeepUnsent(t.Context(), owner, session, store.UnsentForm{Key: "key-next", Typing: true}, "and this")
		must(t, err)
		if kept.At == 0 || kept.Other.Text != "" {
			t.Errorf("kept %+v", kept)
		}
		wantUnsent(t, s, owner, session, "and this")
	})
}

// Of many forms that save at once, in two servers where there can be two, one
// keeps its text, and all others are told of it.
func TestUnsent_OneOfManyAtOnce(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		servers := []*store.Store{s, s}
		if db.Name == "postgres" {
			servers[1] = db.Open(t)
		}
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		type answer struct {
			kept store.Kept
			err  error
		}
		answers, begin := make(chan answer), make(chan struct{})
		const many = 20
		for i := range many {
			go func() {
				<-begin
				kept, err := servers[i%2].KeepUnsent(t.Context(), owner, session, store.UnsentForm{Key: fmt.Sprint("key-", i), Typing: true}, fmt.Sprint("text ", i))
				answers <- answer{kept, err}
			}()
		}
		close(begin)
		taken := 0
		var others []string
		for range many {
			a := <-answers
			if a.err == nil {
				taken++
				continue
			}
			storetest.WantSlug(t, a.err, "unsent-elsewhere")
			others = append(others, a.kept.Other.Text)
		}
		if taken != 1 {
			t.Fatalf("%d of %d were kept", taken, many)
		}
		for _, other := range others {
			wantUnsent(t, s, owner, session, other)
		}
	})
}

// button is the form as its own button sends it.
func button(form store.UnsentForm) store.UnsentForm {
	form.Typing = false
	return form
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
