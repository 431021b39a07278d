package handlers

import (
	"net/http"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// The form that stops a turn says what a stop comes to in the state that it finds.
func TestPages_StopSaysWhatItDoes(t *testing.T) {
	// proves COO-4 CAL-6
	onEach(t, func(t *testing.T, w *world) {
		b := w.tab(t, w.alice)
		buttons := func() int { return b.doc.Find(`[data-testid="stop-form"] button`).Length() }

		runs := w.start(t, w.alice, "go")
		b.open("/sessions/"+runs.Session+"/stop").page().want(http.StatusOK, "What runs now is finished first. Nothing is left uncertain.", "Back, and let it run")
		if buttons() != 2 {
			t.Errorf("a turn that runs has %d ways to stop it", buttons())
		}

		lost := w.start(t, w.alice, "go")
		lost.MustUnknown(t, w.store)
		b.open("/sessions/" + lost.Session).page().wantState(journal.StateUncertain)
		b.open("/sessions/"+lost.Session+"/stop").page().want(http.StatusOK, "One outcome is not known", "it waits for your word", "the turn ends at once")
		if got := b.main(); strings.Contains(got, "Nothing is left uncertain") || strings.Contains(got, "let it run") || buttons() != 1 {
			t.Errorf("of a turn that doesn't run it says %q", got)
		}
		b.submit(`[data-testid="stop-form"]`, vals("mode", "boundary")).follow().page().wantState(journal.StateUncertain).want(http.StatusOK, "Stopping was asked for as entry #")

		asks := w.start(t, w.alice, "go")
		asks.ask("make deploy")
		b.open("/sessions/"+asks.Session+"/stop").page().want(http.StatusOK, "the turn ends at once", "An open decision is cancelled, and nothing is run because of it.")
		b.submit(`[data-testid="stop-form"]`, vals("mode", "boundary")).follow().page().wantState(journal.StateStopped)

		// It is archived once nothing waits in it.
		waits := w.start(t, w.alice, "go")
		b.open("/sessions/"+waits.Session).submit(`[data-testid="composer"]`, vals("text", "and then", "delivery", "queue")).follow().want(http.StatusOK)
		waits.end(journal.TurnEnded{Outcome: journal.Stopped, Reason: "interrupted"})
		b.open("/sessions/"+waits.Session).page().want(http.StatusOK, "can be archived when no message waits in it")
		if b.find("archive") != "" {
			t.Error("it is offered to archive what can't be archived")
		}
		b.submit(`[data-testid="queue"] form`, nil).follow().page()
		if b.find("archive") == "" || b.find("archive-waits") != "" {
			t.Errorf("with nothing that waits it can't be archived:\n%s", b.main())
		}
	})
}

// An agent whose worker is there and that only waits for a person is at a safe point: both
// ways to stop it come to the same. While something else of it runs that comes first, and
// until then a decision is needed.
func TestPages_StopWhileItAsks(t *testing.T) {
	// proves COO-4 PER-6
	onEach(t, func(t *testing.T, w *world) {
		b := w.tab(t, w.alice)
		held := w.run(t, w.alice)
		storetest.MustAppend(t, w.store, held.Claim, "", storetest.Ask("per_held", held.MustCall(t, w.store, journal.EffectEffect)))
		b.open("/sessions/"+held.Session+"/stop").page().want(http.StatusOK, "Nothing of it runs just now: the agent waits for you, and is told to stop. An open decision is cancelled")
		if n := b.doc.Find(`[data-testid="stop-form"] button`).Length(); n != 1 {
			t.Errorf("an agent that only waits has %d ways to stop it", n)
		}
		b.submit(`[data-testid="stop-form"]`, vals("mode", "boundary")).follow().page().wantState(journal.StateStopping).want(http.StatusOK, "What runs is being ended.", "A request ended without an answer the turn was stopped", "Nothing You can leave.")
		if n := b.doc.Find(`form[action*="decision"]`).Length(); n != 0 || b.find("stop-link") != "" {
			t.Errorf("%d forms answer what has ended, and it can be stopped once more: %q", n, b.find("stop-link"))
		}
		b.open("/permissions/per_held").page().want(http.StatusOK, "This request ended without an answer: the turn was stopped.")

		beside := w.run(t, w.alice)
		other := beside.MustCall(t, w.store, journal.EffectRead)
		storetest.MustAppend(t, w.store, beside.Claim, "", storetest.Ask("per_beside", beside.MustCall(t, w.store, journal.EffectEffect)), storetest.Dispatch(other, 1))
		b.open("/sessions/"+beside.Session+"/stop").page().want(http.StatusOK, "What runs now is finished first. Until then you can decide what is asked")
		b.submit(`[data-testid="stop-form"]`, vals("mode", "boundary")).follow().page().wantState(journal.StateStopping).want(http.StatusOK, "1 decision", "what is asked is cancelled then")
		if title := b.doc.Find("title").Text(); !strings.HasPrefix(title, "(1) Decision needed: ") {
			t.Errorf("the title is %q", title)
		}
	})
}

// A form that stops a turn is about the one that it was drawn for. Sent while another is
// open it does nothing, says so, and keeps what was typed.
func TestPages_StopOfAnotherTurn(t *testing.T) {
	// proves COO-4 PER-6 ADM-4
	onEach(t, func(t *testing.T, w *world) {
		worker := store.Worker{ID: "w1", StateFolderID: "f1", Host: "h", Agents: []store.Agent{{Name: "own", Kind: "acp", Available: true, Steer: "after_turn"}}}
		if err := w.store.SeeWorker(t.Context(), worker); err != nil {
			t.Fatal(err)
		}
		made := storetest.MustSession(t, w.store, w.alice.user.ID, func(n *store.NewSession) {
			n.Agent, n.Prompt = "own", &store.PromptInput{Text: "go", Delivery: journal.Queue}
		})
		run := w.pickUp(t, w.alice, made.ID)
		path := "/sessions/" + made.ID
		b := w.tab(t, w.alice)
		stop, stopBody := b.open(path+"/stop").fields(`[data-testid="stop-form"]`, vals("mode", "now"))
		send, sendBody := b.open(path).fields(`[data-testid="composer"]`, vals("text", "instead of it", "delivery", "interrupt"))
		first := storetest.MustState(t, w.store, made.ID).Turn.ID
		storetest.MustPrompt(t, w.store, w.alice.user.ID, made.ID, "next", journal.Queue)
		if _, _, err := w.store.EndTurn(t.Context(), run.Claim, store.EndTurn{End: journal.TurnEnded{Outcome: journal.Completed}, Actor: journal.Agent()}); err != nil {
			t.Fatal(err)
		}
		second := storetest.MustPromote(t, w.store, run.Claim)
		head := len(storetest.Events(t, w.store, made.ID))

		b.post(stop, stopBody).page().want(http.StatusConflict, "Another turn is open now", "has ended", "Nothing was stopped or recorded", "Back to the session")
		b.post(send, sendBody).page().want(http.StatusConflict, "Another turn is open now", "instead of it", "Send it, and stop nothing")
		as := as(w.alice)
		api := "/api/v1" + path
		if p := w.do(t, post, api+"/interruption", as, sendsJSON(`{"turn_id":"`+first+`"}`)).wantProblem(t, http.StatusConflict, "other-turn"); p["turn_id"] != second {
			t.Errorf("it says %v", p)
		}
		w.do(t, post, api+"/prompts", as, key("k"), sendsJSON(`{"text":"x","delivery":"interrupt","turn_id":"`+first+`"}`)).wantProblem(t, http.StatusConflict, "other-turn")
		if n := len(storetest.Events(t, w.store, made.ID)); n != head {
			t.Fatalf("%d entries were recorded", n-head)
		}
		b.post(send, sendBody).page().submit(`[data-testid="resend-form"]`, nil).follow().page().wantState(journal.StateRunning).want(http.StatusOK, "instead of it", "Recorded as entry #")
		w.do(t, post, api+"/interruption", as, sendsJSON(`{"turn_id":"`+second+`"}`)).want(t, http.StatusAccepted)
		b.open(path).page().wantState(journal.StateStopping)
	})
}
