package handlers

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"holdfast/store"
	"holdfast/store/storetest"
)

// A folder whose name holds a secret is refused at the door, by API and form, with
// what to do; else it would be accepted, masked, and never found again.
func TestCreateSession_FolderNamedLikeASecret(t *testing.T) {
	// proves OWN-3 WSP-1
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		masking := db.Open(t, func(o *store.Options) { o.Secrets = []string{"postgres"} })
		w := newWorld(t, db, func(o *Options) { o.Store = masking })
		raw := db.SQL(t)
		before := db.RowCounts(t, raw)
		says := func(text string) {
			t.Helper()
			if !strings.Contains(text, "/srv/my-[hidden]-app") || !strings.Contains(text, "Rename the folder") {
				t.Errorf("it doesn't say what to do: %s", text)
			}
		}
		api := w.do(t, post, "/api/v1/sessions", as(w.alice), key("s"), sendsJSON(`{"workspace":"/srv/my-postgres-app","agent":"runbook"}`))
		api.wantProblem(t, http.StatusUnprocessableEntity, "workspace-holds-secret")
		says(string(api.body))
		w.do(t, post, "/api/v1/sessions", as(w.alice), key("s"), sendsJSON(`{"workspace":"/srv/x","agent":"runbook","rules":[{"permission":"shell","pattern":"psql postgres","action":"allow"}]}`)).
			wantProblem(t, http.StatusUnprocessableEntity, "rule-holds-secret")
		form := w.do(t, post, "/sessions", browser(w.alice), sendsForm(url.Values{
			"idempotency_key": {newKey()}, "workspace": {"/srv/my-postgres-app"}, "agent": {"runbook"}, "preset": {"ask_all"}, "prompt": {"hi"},
		}.Encode()))
		if form.status != http.StatusUnprocessableEntity {
			t.Errorf("the form answers %d", form.status)
		}
		says(string(form.body))
		if !strings.Contains(string(form.body), "/srv/my-postgres-app") {
			t.Error("what was typed isn't in the form any more")
		}
		after := db.RowCounts(t, raw)
		for name, n := range before {
			if after[name] != n {
				t.Errorf("%s has %d rows, had %d", name, after[name], n)
			}
		}
	})
}
