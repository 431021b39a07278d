package store_test

import (
	"fmt"
	"slices"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// stops is a prompt that the open turn is stopped for.
func stops(text string) store.PromptInput {
	return store.PromptInput{Text: text, Delivery: journal.Steer, Stops: true}
}

func mustStopFor(t *testing.T, s *store.Store, r *storetest.Run, text string) journal.Receipt {
	t.Helper()
	got, err := s.SubmitPrompt(t.Context(), r.Owner, r.Session, "key-"+r.Session+text, stops(text))
	must(t, err)
	return got
}

// Message and stop are one transaction, and nobody else is there to carry it out: what
// waits is cancelled, the turn ends, and nothing is held.
//
// proves COO-4 PRO-5 PRO-1 PER-6
func TestStopFor_WithoutAClaim(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		_, request := r.MustAsk(t, s)
		queued := storetest.MustPrompt(t, s, r.Owner, r.Session, "later", journal.Queue)
		older := storetest.MustPrompt(t, s, r.Owner, r.Session, "older", journal.Steer)
		before := len(storetest.Events(t, s, r.Session))
		sub := s.SubscribeWork()
		defer sub.Close()
		got := mustStopFor(t, s, r, "instead")
		hearWork(t, sub, r.Session)
		evs := storetest.Events(t, s, r.Session)
		wantKinds(t, evs[before:], journal.KindPromptAdmitted, journal.KindInterruptRequested, journal.KindPermissionCancelled, journal.KindCallSettled, journal.KindTurnEnded)
		if b := storetest.Body[*journal.InterruptRequested](t, evs); b.PromptID != got.ID || b.Mode != journal.InterruptNow || b.By != r.Owner || got.AdmittedSeq != evs[before].Seq || got.Delivery != journal.Steer {
			t.Errorf("the receipt is %+v, the stop %+v", got, b)
		}
		p, err := s.Request(t.Context(), r.Owner, request)
		must(t, err)
		st := storetest.MustState(t, s, r.Session)
		if p.Request.State != journal.RequestCancelled || st.Held || st.Base != journal.StateQueued || st.Turn.EndedBy != r.Owner || st.Turn.Outcome != journal.Stopped {
			t.Errorf("the request is %s, the state %+v", p.Request.State, st)
		}
		claim := storetest.MustClaim(t, s, r.Session, "w")
		wantPromoted(t, first(s.PromoteNext(t.Context(), claim)), true, older.ID)
		wantPromoted(t, first(s.PromoteSteers(t.Context(), claim)), false, got.ID)
		end(t, s, claim, journal.Completed, false)
		wantPromoted(t, first(s.PromoteNext(t.Context(), claim)), true, queued.ID)
	})
}

// proves COO-4 PRO-1 PRO-3 PRO-5 COO-8
func TestStopFor_WithAClaim(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		runs := r.MustDispatched(t, s, journal.EffectEffect)
		must(t, s.RequestInterrupt(t.Context(), r.Owner, r.Session, journal.InterruptBoundary)) // the later word counts
		one, two := mustStopFor(t, s, r, "one"), mustStopFor(t, s, r, "two")
		list, err := s.Interrupted(t.Context(), []string{r.Session})
		if err != nil || len(list) != 1 {
			t.Errorf("its keeper hears %v, %v", list, err)
		}
		wantPromoted(t, first(s.PromoteSteers(t.Context(), r.Claim)), false) // they don't join the turn that is stopped for them
		_, _, err = s.EndTurn(t.Context(), r.Claim, store.EndTurn{End: journal.TurnEnded{Outcome: journal.Completed}, Actor: journal.Agent()})
		storetest.WantSlug(t, err, "interrupted")
		_, released, err := s.EndTurn(t.Context(), r.Claim, store.EndTurn{
			Drafts: storetest.Drafts(storetest.Settle(runs, journal.CallCancelled)), End: journal.TurnEnded{Outcome: journal.Stopped, Reason: "interrupted"}, Actor: journal.Server(),
		})
		if err != nil || released {
			t.Fatalf("released %v, %v; want the same drain to go on", released, err)
		}
		wantPromoted(t, first(s.PromoteNext(t.Context(), r.Claim)), true, one.ID)
		wantPromoted(t, first(s.PromoteSteers(t.Context(), r.Claim)), false, two.ID)
		if st := storetest.MustState(t, s, r.Session); st.Turn.Cause != journal.CausePrompt || st.Turn.Continues != "" {
			t.Errorf("the turn is %+v", st.Turn)
		}
	})
}

// A stop alone that comes later holds what was sent with one, and can be asked for
// although a stop is under way; it doesn't make it slower.
//
// proves COO-4 PRO-5
func TestStopFor_AStopAloneComesLater(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		mustStopFor(t, s, r, "one")
		for range 2 { // asking again is the same answer
			must(t, s.RequestInterrupt(t.Context(), r.Owner, r.Session, journal.InterruptBoundary))
		}
		evs := storetest.Events(t, s, r.Session)
		if b := storetest.Body[*journal.InterruptRequested](t, evs); storetest.CountKind(evs, journal.KindInterruptRequested) != 2 || b.PromptID != "" || b.Mode != journal.InterruptNow {
			t.Errorf("the last stop is %+v", b)
		}
		end(t, s, r.Claim, journal.Stopped, true)
		if st := storetest.MustState(t, s, r.Session); !st.Held || len(st.Admitted) != 1 || st.Base != journal.StateStopped {
			t.Errorf("the state is %+v", st)
		}
	})
}

// A retry stops nothing again, whatever became of the first; the same key for the same
// text without the stop is another payload. What can't be admitted stops nothing.
//
// proves ADM-1 ADM-3 ADM-4 ADM-10
func TestStopFor_Keys(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		raw := db.SQL(t)
		r := storetest.MustRun(t, s, "w")
		storetest.MustPrompt(t, s, r.Owner, r.Session, "plain", journal.Steer)
		submit := func(key string, p store.PromptInput) (journal.Receipt, error) {
			return s.SubmitPrompt(t.Context(), r.Owner, r.Session, key, p)
		}
		got := make([]journal.Receipt, 8)
		noErrors(t, together(len(got), func(i int) (err error) {
			got[i], err = submit("k", stops("x"))
			return err
		}))
		before := db.RowCounts(t, raw)
		for _, p := range []store.PromptInput{queue("x"), prompt("x", journal.Steer), stops("y")} {
			_, err := submit("k", p)
			storetest.WantSlug(t, err, "idempotency-key-reused")
		}
		wantSame(t, before, db.RowCounts(t, raw))
		end(t, s, r.Claim, journal.Stopped, false)
		opened := storetest.MustPromote(t, s, r.Claim)
		must(t, first(s.PromoteSteers(t.Context(), r.Claim)).err)
		before = db.RowCounts(t, raw)
		again, err := submit("k", stops("x"))
		must(t, err)
		if again.ID != got[0].ID || !again.Replayed || again.State != journal.InputPromoted {
			t.Errorf("the replay is %+v, the first %+v", again, got[0])
		}
		wantSame(t, before, db.RowCounts(t, raw))
		for i := len(storetest.MustState(t, s, r.Session).Admitted); i < journal.MaxAdmitted; i++ {
			storetest.MustPrompt(t, s, r.Owner, r.Session, fmt.Sprint(i), journal.Queue)
		}
		before = db.RowCounts(t, raw)
		_, err = submit("full", stops("one too many"))
		storetest.WantSlug(t, err, "queue-full")
		wantSame(t, before, db.RowCounts(t, raw))
		if st := storetest.MustState(t, s, r.Session); st.Turn.ID != opened || st.Interrupt != nil {
			t.Errorf("the state is %+v", st)
		}
	})
}

// Without an open turn there is nothing to stop: it is a steer like others, and its text isn't lost.
//
// proves PRO-1 PRO-5
func TestStopFor_NoTurnIsOpen(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		storetest.MustPrompt(t, s, r.Owner, r.Session, "later", journal.Queue)
		end(t, s, r.Claim, journal.Failed, true)
		got := mustStopFor(t, s, r, "now this")
		evs := storetest.Events(t, s, r.Session)
		if st := storetest.MustState(t, s, r.Session); st.Held || storetest.CountKind(evs, journal.KindInterruptRequested) != 0 || evs[len(evs)-1].Kind != journal.KindPromptAdmitted {
			t.Errorf("the state is %+v", st)
		}
		wantPromoted(t, first(s.PromoteNext(t.Context(), storetest.MustClaim(t, s, r.Session, "w"))), true, got.ID)
	})
}

// The execution is lost before it has carried the stop out: recovery does, what it was
// at is unknown, and the message waits until that is reconciled. Then it begins the next
// turn, and the one that was stopped for it isn't gone on with, unless its own message
// is to be sent once more.
//
// proves REC-6 COO-4 CAL-6 PRO-6 ATT-6
func TestStopFor_WaitsUntilReconciled(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for _, again := range []journal.AttemptVerdict{journal.AttemptAbandon, journal.AttemptRetry} {
			r := mustAgentRun(t, s)
			queued := storetest.MustPrompt(t, s, r.Owner, r.Session, "later", journal.Queue)
			got := mustStopFor(t, s, r.Run, "instead")
			storetest.MustLose(t, s, r.Claim)
			st := storetest.MustState(t, s, r.Session)
			if st.TurnOpen() || st.Base != journal.StateUncertain || st.Held || len(st.UnknownAttempts) != 1 || len(st.UnknownCalls) != 1 || len(st.Pending) != 0 {
				t.Fatalf("the state is %+v", st)
			}
			noClaim(t, s, r.Session, "w")
			_, err := s.ResolveAttempt(t.Context(), r.Owner, r.attempt, store.AttemptResolution{Outcome: again, Then: journal.ThenContinue})
			must(t, err)
			_, err = s.ResolveCall(t.Context(), r.Owner, r.runs, store.CallResolution{Outcome: journal.CannotTell, Then: journal.ThenContinue})
			must(t, err)
			claim := storetest.MustClaim(t, s, r.Session, "w")
			if again == journal.AttemptAbandon {
				wantPromoted(t, first(s.PromoteNext(t.Context(), claim)), true, got.ID)
			} else {
				wantPromoted(t, first(s.PromoteSteers(t.Context(), claim)), false, got.ID)
			}
			st = storetest.MustState(t, s, r.Session)
			if continues := again == journal.AttemptRetry; (st.Turn.Cause == journal.CauseContinuation) != continues || slices.ContainsFunc(st.Admitted, func(w journal.Waiting) bool { return w.ID != queued.ID }) {
				t.Errorf("%s: the turn is %+v, %v wait", again, st.Turn, st.Admitted)
			}
		}
	})
}

// What is adopted is ended by the claim that follows it.
//
// proves COO-4 REC-10
func TestStopFor_WhatIsAdopted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		runs := r.MustSpooled(t, s, journal.EffectEffect)
		r.MustAdopt(t, s, runs)
		got := mustStopFor(t, s, r, "instead")
		if st := storetest.MustState(t, s, r.Session); !st.TurnOpen() || st.Base != journal.StateStopping {
			t.Fatalf("the state is %+v", st)
		}
		claim := storetest.MustClaim(t, s, r.Session, "w")
		_, released, err := s.EndTurn(t.Context(), claim, store.EndTurn{
			Drafts: storetest.Drafts(storetest.Settle(runs, journal.CallCancelled)), End: journal.TurnEnded{Outcome: journal.Stopped, Reason: "interrupted"}, Actor: journal.Server(),
		})
		if err != nil || released {
			t.Fatalf("released %v, %v", released, err)
		}
		wantPromoted(t, first(s.PromoteNext(t.Context(), claim)), true, got.ID)
	})
}

// A server that stops in between ends the turn interrupted: the next start delivers.
//
// proves COO-6 PRO-5 REC-9
func TestStopFor_TheServerStops(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		got := mustStopFor(t, s, r, "instead")
		_, released, err := s.EndTurn(t.Context(), r.Claim, store.EndTurn{End: journal.TurnEnded{Outcome: journal.Interrupted}, Actor: journal.Server(), Release: true})
		if err != nil || !released {
			t.Fatalf("released %v, %v", released, err)
		}
		list, err := s.Runnable(t.Context(), store.SessionBrief{}, 100)
		if err != nil || !slices.ContainsFunc(list, func(b store.SessionBrief) bool { return b.ID == r.Session }) {
			t.Errorf("the sweeper finds %+v, %v", list, err)
		}
		wantPromoted(t, first(s.PromoteNext(t.Context(), storetest.MustClaim(t, s, r.Session, "w2"))), true, got.ID)
	})
}
