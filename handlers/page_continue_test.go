package handlers

import (
	"net/http"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// In every state a page offers *continue*, or to start anew, exactly where the server
// takes it.
//
// proves PRO-6
func TestPages_ContinueIsOfferedWhereTaken(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		sessions := map[string][]string{}
		for state, list := range storetest.States(t, w.store, w.alice.user.ID) {
			sessions[string(state)] = list
		}
		for _, passes := range []bool{false, true} {
			run := w.start(t, w.alice, "go")
			run.forget(passes)
			sessions["forgotten"] = append(sessions["forgotten"], run.Session)
		}
		for _, cause := range []journal.BlockCause{journal.BlockAgent, journal.BlockSignIn, journal.BlockRecovery} {
			run := w.start(t, w.alice, "go")
			storetest.MustAppend(t, w.store, run.Claim, journal.PhaseSafe, &journal.SessionBlocked{Cause: cause, Detail: "It is not there."})
			run.park()
			sessions["blocked"] = append(sessions["blocked"], run.Session)
		}
		held := w.start(t, w.alice, "go")
		held.MustUnknown(t, w.store)
		storetest.MustPrompt(t, w.store, w.alice.user.ID, held.Session, "and then", journal.Queue)
		sessions["uncertain"] = append(sessions["uncertain"], held.Session)

		b, offers := w.tab(t, w.alice), 0
		for state, list := range sessions {
			for _, id := range list {
				offers += b.continues(state, id)
			}
		}
		if offers < 8 {
			t.Errorf("only %d offers were tried", offers)
		}
	})
}

// continues checks what the page of a session offers against what is taken, and takes it.
func (b *tab) continues(state, id string) (offers int) {
	b.t.Helper()
	st := storetest.MustState(b.t, b.w.store, id)
	b.open("/sessions/" + id).page()
	offered := func(form string) bool { return b.doc.Find(`[data-testid="`+form+`"]`).Length() == 1 }
	again, anew := offered("continuation-form"), offered("anew-form")
	if again != (st.MayContinue(false) == nil) || anew != (st.MayContinue(true) == nil) {
		b.t.Errorf("%s: the page offers %v and %v, the state says %v and %v", state, again, anew, st.MayContinue(false), st.MayContinue(true))
	}
	try := func(offered bool, sent option) {
		want := http.StatusConflict
		if offered {
			want, offers = http.StatusAccepted, offers+1
		}
		b.w.do(b.t, post, "/api/v1/sessions/"+id+"/continuation", as(b.w.alice), sent).want(b.t, want)
	}
	for _, yes := range []bool{false, true} { // what is taken ends what else is offered
		if anew == yes {
			try(anew, sendsJSON(`{"anew":true}`))
		}
		if again == yes && offers == 0 {
			try(again, sendsJSON(`{}`))
		}
	}
	return offers
}

// With several unknown outcomes each card says that the last answer decides.
//
// proves CAL-6
func TestPages_LastAnswerDecides(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		run := w.start(t, w.alice, "go")
		first, second := run.MustDispatched(t, w.store, journal.EffectEffect), run.MustDispatched(t, w.store, journal.EffectEffect)
		storetest.MustLose(t, w.store, run.Claim)
		path, says := "/sessions/"+run.Session, "as the last answer says"
		b := w.tab(t, w.alice).open(path).page().want(http.StatusOK, says)
		if n := b.doc.Find(`[data-testid="last-decides"]`).Length(); n != 2 {
			t.Errorf("%d of 2 cards say that the last answer decides", n)
		}
		b.open("/calls/"+first).page().want(http.StatusOK, says)
		b.open(path).submit(`#`+first+` [data-testid="resolution-form"]`, vals("outcome", "cannot_tell", "then", "continue")).follow().page()
		if b.doc.Find(`[data-testid="last-decides"]`).Length() != 0 {
			t.Error("the last card says that another decides")
		}
		if _, err := w.store.ResolveCall(t.Context(), w.alice.user.ID, second, store.CallResolution{Outcome: journal.CannotTell, Then: journal.ThenStay}); err != nil {
			t.Fatal(err)
		}
		b.open(path).page().wantState(journal.StateStopped)
	})
}
