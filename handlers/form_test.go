package handlers

import (
	"net/http"
	"testing"

	"holdfast/journal"
	"holdfast/store/storetest"
)

// A form that says two things at once says neither.
func TestPages_AFieldTwice(t *testing.T) {
	// proves PER-2
	onEach(t, func(t *testing.T, w *world) {
		run := w.start(t, w.alice, "go")
		_, id := run.ask("make deploy")
		b := w.tab(t, w.alice).open("/permissions/" + id)
		action, body := b.fields(`[data-testid="decision-form"]`, vals("reply", "once"))
		body.Add("reply", "reject")
		b.post(action, body).page().want(http.StatusUnprocessableEntity, "one of its fields twice", "Nothing was recorded")
		send := vals("text", "one", "delivery", "queue", "idempotency_key", newKey())
		send.Add("text", "two")
		b.post("/sessions/"+run.Session+"/prompts", send).page().want(http.StatusUnprocessableEntity, "one of its fields twice")
		evs := storetest.Events(t, w.store, run.Session)
		if n := storetest.CountKind(evs, journal.KindPermissionReplied) + storetest.CountKind(evs, journal.KindPromptAdmitted); n != 1 {
			t.Errorf("%d answers and messages", n)
		}
		body.Set("reply", "reject")
		b.post(action, body).follow().page().want(http.StatusOK)
	})
}
