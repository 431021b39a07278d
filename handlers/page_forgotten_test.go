package handlers

import (
	"net/http"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// forget lets the agent forget its session, so that its turn fails.
func (a *agent) forget(passes bool) {
	a.t.Helper()
	storetest.MustAppend(a.t, a.w.store, a.Claim, "", &journal.AgentForgotten{ProcessID: "prc_1", Reason: "The agent has no memory: no session s1.", How: journal.AskedToLoad, MayPass: passes})
	a.end(journal.TurnEnded{Outcome: journal.Failed, Reason: "The agent has no memory: no session s1."})
}

// Where an agent has forgotten its session the page says so, shows the summary that it
// would be told, and offers to start anew in place of *continue*.
//
// proves PRO-5 PRO-6
func TestPages_StartAnew(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		run := w.start(t, w.alice, "Make the <b>totals</b> right")
		att := store.NewID("att")
		storetest.MustAppend(t, w.store, run.Claim, "", &journal.AttemptPrepared{AttemptID: att, TurnID: run.Turn, CutoffSeq: 99}, &journal.AttemptDispatched{AttemptID: att}, &journal.AttemptSettled{AttemptID: att, Outcome: "end_turn"})
		run.forget(false)
		path := "/sessions/" + run.Session
		b := w.tab(t, w.alice).open(path).page().wantState(journal.StateFailed).want(200, "The agent has forgotten this conversation", "Make the <b>totals</b> right", "no session s1")
		if n := b.doc.Find(`[data-testid="continuation-form"]`).Length(); n != 0 {
			t.Errorf("%d forms continue what would fail again", n)
		}
		b.post(path+"/continuation", vals("idempotency_key", newKey())).page().want(409, "to continue it would fail again")
		b.post(path+"/continuation", vals("anew", "maybe", "idempotency_key", newKey())).page().want(422, "anew must be true")
		b.open(path).submit(`[data-testid="composer"]`, vals("text", "and the docs", "delivery", "queue")).follow().page().wantState(journal.StateFailed).want(200, "delivered once a new conversation is started", "1 held message")
		action, body := b.fields(`[data-testid="anew-form"]`, nil)
		b.open("/needs-you").page().want(200, "1 thing to answer in 1 session", "Waiting for you to continue", "The agent has forgotten the conversation")
		b.open(path).want(200, "1 to continue")
		b.post(action, body).follow().wantState(journal.StateQueued).want(200, "started a new conversation with the agent, with a summary")
		b.post(action, body).follow().wantState(journal.StateQueued).want(200, "The session goes on") // from another tab
		if n := storetest.CountKind(storetest.Events(t, w.store, run.Session), journal.KindContinuation); n != 1 {
			t.Errorf("%d continuations, want 1", n)
		}

		passes := w.start(t, w.alice, "go")
		passes.forget(true)
		path = "/sessions/" + passes.Session
		b.open(path).page().want(200, "The agent could not take up this conversation", "Try the old one once more")
		b.submit(`[data-testid="continuation-form"]`, nil).follow().wantState(journal.StateQueued)
		failed := w.start(t, w.alice, "go")
		failed.end(journal.TurnEnded{Outcome: journal.Failed, Reason: "x"})
		b.post("/sessions/"+failed.Session+"/continuation", vals("anew", "true", "idempotency_key", newKey())).page().want(409, "has not forgotten")
	})
}

// proves PRO-6 OWN-1
func TestAPI_StartAnew(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		run := w.start(t, w.alice, "go")
		path := "/api/v1/sessions/" + run.Session
		if s := w.do(t, get, path, as(w.alice)).want(t, http.StatusOK); s["forgotten"] != nil {
			t.Errorf("it is forgotten: %v", s["forgotten"])
		}
		run.forget(false)
		s := w.do(t, get, path, as(w.alice)).want(t, http.StatusOK)
		if f, ok := s["forgotten"].(map[string]any); !ok || f["how"] != "load" || f["may_pass"] != false {
			t.Errorf("it is forgotten: %v", s["forgotten"])
		}
		anew := sendsJSON(`{"anew":true}`)
		w.do(t, post, path+"/continuation", as(w.mallory), anew).wantProblem(t, http.StatusNotFound, "no-such-session")
		w.do(t, post, path+"/continuation", as(w.alice)).wantProblem(t, http.StatusConflict, "agent-forgot")
		if s := w.do(t, post, path+"/continuation", as(w.alice), anew).want(t, http.StatusAccepted); s["state"] != "queued" || s["forgotten"] != nil {
			t.Errorf("it is %v", s)
		}
		w.do(t, post, path+"/continuation", as(w.alice), anew).wantProblem(t, http.StatusConflict, "nothing-held")
	})
}
