package handlers

import (
	"net/http"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// Over the API a message can stop the turn of any agent.
func TestPrompts_StopTheTurn(t *testing.T) {
	// proves ADM-1 ADM-3 ADM-4 COO-4 PRO-5
	onEach(t, func(t *testing.T, w *world) {
		r := w.run(t, w.alice)
		path := "/api/v1/sessions/" + r.Session
		stops := func() int {
			return storetest.CountKind(storetest.Events(t, w.store, r.Session), journal.KindInterruptRequested)
		}
		send := func(k, body string) answer {
			return w.do(t, post, path+"/prompts", as(w.alice), key(k), sendsJSON(body))
		}
		first := wantMembers(t, "receipt", any(send("k", `{"text":"instead","delivery":"interrupt"}`).want(t, http.StatusAccepted)), receiptMembers)
		if s := w.do(t, get, path, as(w.alice)).want(t, http.StatusOK); first["delivery"] != "steer" || first["state"] != "admitted" || s["state"] != "stopping" {
			t.Errorf("the receipt is %v, the session %v", first, s["state"])
		}
		again := send("k", `{"text":"instead","delivery":"interrupt"}`)
		if got := again.want(t, http.StatusAccepted); got["id"] != first["id"] || got["replayed"] != true || again.header.Get("Idempotent-Replayed") != "true" || stops() != 1 {
			t.Errorf("the same again answers %v, with %d stops", got, stops())
		}
		send("k", `{"text":"instead","delivery":"steer"}`).wantProblem(t, http.StatusUnprocessableEntity, "idempotency-key-reused")
		if b := storetest.Body[*journal.InterruptRequested](t, storetest.Events(t, w.store, r.Session)); b.PromptID != first["id"] || b.By != w.alice.user.ID || stops() != 1 {
			t.Errorf("got %+v, %d times", b, stops())
		}
		storetest.MustLose(t, w.store, r.Claim) // that carries it out
		if s := w.do(t, get, path, as(w.alice)).want(t, http.StatusOK); s["state"] != "queued" || s["pending_prompts"] != 1.0 {
			t.Errorf("the session is %v", s)
		}
		// With nothing to stop it is taken all the same.
		if got := send("k2", `{"text":"and this","delivery":"interrupt"}`).want(t, http.StatusAccepted); got["state"] != "admitted" || stops() != 1 {
			t.Errorf("without a turn: %v, with %d stops", got, stops())
		}
	})
}

// Of an agent whose whole answer is one step, the pages say what a stop at the next safe
// point waits for, and when a message before the queue is delivered.
func TestPages_StopOfAnAgentThatAnswersWhole(t *testing.T) {
	// proves COO-4 PRO-4
	onEach(t, func(t *testing.T, w *world) {
		worker := store.Worker{ID: "w1", StateFolderID: "f1", Host: "h", Agents: []store.Agent{{Name: "own", Kind: "acp", Available: true, Steer: "after_turn"}}}
		if err := w.store.SeeWorker(t.Context(), worker); err != nil {
			t.Fatal(err)
		}
		made := storetest.MustSession(t, w.store, w.alice.user.ID, func(n *store.NewSession) {
			n.Agent, n.Prompt = "own", &store.PromptInput{Text: "go", Delivery: journal.Queue}
		})
		w.pickUp(t, w.alice, made.ID)
		b := w.tab(t, w.alice).open("/sessions/" + made.ID)
		b.submit(`[data-testid="composer"]`, vals("text", "and", "delivery", "steer")).follow().page().want(http.StatusOK, "Delivered before the queue, when the agent is free")
		b.open("/sessions/"+made.ID+"/stop").page().want(http.StatusOK, "This agent has no safe point before the end of its answer")
		if got := b.main(); strings.Contains(got, "What runs now is finished first") {
			t.Errorf("the form says %q", got)
		}
		b.submit(`[data-testid="stop-form"]`, vals("mode", "boundary")).follow().page().wantState(journal.StateStopping).want(http.StatusOK, "Ends when the agent has answered or asks you.")
		b.open("/help").page().want(http.StatusOK, "Stop the turn and send", "Send before the queue")
	})
}

// On the page it is a button where an agent takes no text in mid-turn, and the words
// beside it say what becomes of the turn and of the message (PRO-4).
func TestPages_StopTheTurnAndSend(t *testing.T) {
	// proves PRO-4 PRO-5 ADM-1 ADM-3
	onEach(t, func(t *testing.T, w *world) {
		worker := store.Worker{ID: "w1", StateFolderID: "f1", Host: "h", Agents: []store.Agent{{Name: "own", Kind: "acp", Available: true, Steer: "after_turn"}}}
		if err := w.store.SeeWorker(t.Context(), worker); err != nil {
			t.Fatal(err)
		}
		made := storetest.MustSession(t, w.store, w.alice.user.ID, func(n *store.NewSession) {
			n.Agent, n.Prompt = "own", &store.PromptInput{Text: "go", Delivery: journal.Queue}
		})
		run := w.pickUp(t, w.alice, made.ID)
		count := func(kind journal.Kind) int {
			return storetest.CountKind(storetest.Events(t, w.store, made.ID), kind)
		}
		b := w.tab(t, w.alice).open("/sessions/" + made.ID)
		b.page().want(http.StatusOK, "Stop the turn and send", "What runs now is ended; what it did until then stays done. Then your message begins the next turn, before the queue.")
		action, body := b.fields(`[data-testid="composer"]`, vals("text", "instead", "delivery", "interrupt"))
		b.post(action, body).follow().page().wantState(journal.StateStopping).want(http.StatusOK, "Recorded as entry #", "Then your message is delivered.", "Begins the next turn", "You asked to stop now, and to deliver the message sent with it then", "The turn is being stopped already.")
		b.post(action, body).follow().want(http.StatusOK, "Already recorded as entry #")
		if count(journal.KindInterruptRequested) != 1 || count(journal.KindPromptAdmitted) != 2 {
			t.Errorf("%d stops, %d messages", count(journal.KindInterruptRequested), count(journal.KindPromptAdmitted))
		}
		// A refusal, and a sign-in that has ended, send it again with a button that says what else it does.
		b.post(action, vals("text", "", "delivery", "interrupt", "idempotency_key", newKey(), "for", w.alice.user.ID)).page().want(http.StatusUnprocessableEntity, "The message is empty")
		b.post(action, vals("text", "other", "delivery", "interrupt", "idempotency_key", body.Get("idempotency_key"), "for", w.alice.user.ID)).page().want(http.StatusUnprocessableEntity, "Send the new text as a separate message, and stop the turn")
		run.Claim = storetest.MustClaim(t, w.store, made.ID, "w1")
		if _, _, err := w.store.EndTurn(t.Context(), run.Claim, store.EndTurn{End: journal.TurnEnded{Outcome: journal.Stopped, Reason: "interrupted"}, Actor: journal.Server()}); err != nil {
			t.Fatal(err)
		}
		b.open("/sessions/" + made.ID).page()
		if got := b.main(); strings.Contains(got, "held") || b.doc.Find("#send-stop").Length() != 0 {
			t.Errorf("the page says that something is held, or offers to stop what has ended:\n%s", got)
		}

		// An agent that takes text in mid-turn is steered: its page stays as it is.
		steered := w.start(t, w.alice, "go")
		b.open("/sessions/" + steered.Session).page()
		if b.doc.Find("#send-steer").Length() != 1 || b.doc.Find("#send-stop").Length() != 0 {
			t.Error("a runbook's page has other buttons than it had")
		}
	})
}

// After a sign-in a kept text is sent by a button that says that the turn is stopped.
func TestPages_StopAndSendAfterSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	w.password(t, w.alice)
	run := w.start(t, w.alice, "go")
	b := w.tab(t, person{}).post("/sessions/"+run.Session+"/prompts", vals("text", "instead", "delivery", "interrupt", "for", w.alice.user.ID, "idempotency_key", newKey())).page().want(http.StatusUnauthorized, "Your text is kept in this page.")
	b.submit(`[data-testid="login-form"]`, vals("email", w.alice.user.Email, "password", "right horse")).page().want(http.StatusOK, "Your text was not sent")
	if got := b.doc.Find(`[data-testid="draft-form"] button`).Text(); got != "Stop the turn and send" {
		t.Errorf("the button says %q", got)
	}
	b.submit(`[data-testid="draft-form"]`, nil).follow().page().wantState(journal.StateStopping)
}
