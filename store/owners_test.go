package store_test

import (
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// Every method that takes an owner is here, but for those whose answer is the owner's own list.
// proves OWN-1 PER-7
func TestOwners_AnotherOwnersIsNotFound(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		raw := db.SQL(t)
		r := storetest.MustRun(t, s, "w")
		prompt := storetest.MustPrompt(t, s, r.Owner, r.Session, "waits", journal.Queue)
		long := storetest.MustPrompt(t, s, r.Owner, r.Session, string(make40k()), journal.Queue)
		sum := storetest.Body[*journal.PromptAdmitted](t, storetest.Events(t, s, r.Session)).Text.Blob
		asked := r.MustCall(t, s, journal.EffectEffect)
		storetest.MustAppend(t, s, r.Claim, "", storetest.Ask("per_1", asked))
		attempt := store.NewID("att")
		storetest.MustAppend(t, s, r.Claim, "", &journal.AttemptPrepared{AttemptID: attempt, TurnID: r.Turn}, &journal.AttemptDispatched{AttemptID: attempt})
		unknown := r.MustUnknown(t, s)
		_ = long

		stranger := storetest.MustUser(t, s).ID
		resolution := store.CallResolution{Outcome: journal.CannotTell, Then: journal.ThenStay}
		must(t, putCredential(t, s, store.Sealed{Credential: store.Credential{ID: "crd_1", OwnerID: r.Owner, Name: "A_KEY"}, Value: []byte("sealed")}, "key1"))
		doors := map[string]func(owner string) error{
			"Session":      func(o string) error { _, err := s.Session(t.Context(), o, r.Session); return err },
			"SessionPage":  func(o string) error { _, err := s.SessionPage(t.Context(), o, r.Session, 0, 10); return err },
			"EventsAfter":  func(o string) error { _, err := s.EventsAfter(t.Context(), o, r.Session, 0, 10); return err },
			"EventsBefore": func(o string) error { _, err := s.EventsBefore(t.Context(), o, r.Session, 0, 10); return err },
			"Head":         func(o string) error { _, _, err := s.Head(t.Context(), o, r.Session); return err },
			"Blob":         func(o string) error { _, err := s.Blob(t.Context(), o, r.Session, sum); return err },
			"Call":         func(o string) error { _, err := s.Call(t.Context(), o, unknown); return err },
			"Calls":        func(o string) error { _, err := s.Calls(t.Context(), o, r.Session, 0); return err },
			"CallOutput":   func(o string) error { _, err := s.CallOutput(t.Context(), o, unknown, 0, 10); return err },
			"Request":      func(o string) error { _, err := s.Request(t.Context(), o, "per_1"); return err },
			"Requests": func(o string) error {
				_, _, err := s.Requests(t.Context(), o, store.RequestQuery{Session: r.Session})
				return err
			},
			"SubmitPrompt":   func(o string) error { _, err := s.SubmitPrompt(t.Context(), o, r.Session, "k", queue("x")); return err },
			"WithdrawPrompt": func(o string) error { _, err := s.WithdrawPrompt(t.Context(), o, prompt.ID); return err },
			"ResolveAttempt": func(o string) error {
				_, err := s.ResolveAttempt(t.Context(), o, attempt, store.AttemptResolution{Outcome: journal.AttemptAbandon, Then: journal.ThenContinue})
				return err
			},
			"ResolveCall": func(o string) error { _, err := s.ResolveCall(t.Context(), o, unknown, resolution); return err },
			"Decide": func(o string) error {
				_, err := s.Decide(t.Context(), o, "per_1", store.Decision{Reply: journal.ReplyOnce})
				return err
			},
			"RequestInterrupt": func(o string) error {
				return s.RequestInterrupt(t.Context(), o, r.Session, journal.InterruptNow)
			},
			"Credential": func(o string) error { _, err := s.Credential(t.Context(), o, "crd_1"); return err },
			"DeleteCredential": func(o string) error {
				_, err := s.DeleteCredential(t.Context(), o, "crd_1")
				return err
			},
			"Continue":  func(o string) error { return s.Continue(t.Context(), o, r.Session, nil) },
			"StartAnew": func(o string) error { return s.StartAnew(t.Context(), o, r.Session, nil) },
			"Archive":   func(o string) error { return s.Archive(t.Context(), o, r.Session) },
		}
		before := db.RowCounts(t, raw)
		state := db.Count(t, raw, "SELECT updated_at FROM session WHERE id = ?", r.Session)
		for name, door := range doors {
			for _, owner := range []string{stranger, "", "usr_none"} {
				err := door(owner)
				if !journal.Is(err, journal.NotFound) {
					t.Errorf("%s by %q: got %v", name, owner, err)
				}
			}
		}
		// What doesn't exist looks the same.
		_, theirs := s.Session(t.Context(), stranger, r.Session)
		_, none := s.Session(t.Context(), stranger, "ses_none")
		if theirs.Error() != none.Error() {
			t.Errorf("%v differs from %v", theirs, none)
		}
		wantSame(t, before, db.RowCounts(t, raw))
		if now := db.Count(t, raw, "SELECT updated_at FROM session WHERE id = ?", r.Session); now != state {
			t.Error("the session was touched")
		}
		// Lists have the owner's own only.
		for _, owner := range []string{stranger, r.Owner} {
			list, _, err := s.Sessions(t.Context(), owner, store.SessionQuery{Limit: 10})
			must(t, err)
			reqs, _, err := s.Requests(t.Context(), owner, store.RequestQuery{Limit: 10})
			must(t, err)
			inbox, err := s.Inbox(t.Context(), owner)
			must(t, err)
			needs, err := s.NeedsCount(t.Context(), owner)
			must(t, err)
			want := 0
			if owner == r.Owner {
				want = 1
			}
			if len(list) != want || len(reqs) != want || inbox.Count != (store.InboxCount{Decisions: want, Reconciles: 2 * want}) || len(inbox.Decisions) != want || len(inbox.Reconciles) != 2*want || len(needs) != want {
				t.Errorf("%d sessions, %d requests, inbox %+v, %v needs; want %d of each", len(list), len(reqs), inbox.Count, needs, want)
			}
		}
		// And the owner finds each of them open.
		for _, name := range []string{"Session", "SessionPage", "EventsAfter", "EventsBefore", "Head", "Blob", "Call", "Calls", "CallOutput", "Request", "Requests", "SubmitPrompt", "WithdrawPrompt", "ResolveAttempt", "Decide", "ResolveCall"} {
			if err := doors[name](r.Owner); err != nil {
				t.Errorf("%s by the owner: %v", name, err)
			}
		}
	})
}

func make40k() []byte {
	b := make([]byte, 40_000)
	for i := range b {
		b[i] = 'a' + byte(i%26)
	}
	return b
}
