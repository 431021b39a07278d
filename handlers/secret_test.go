package handlers

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
	"holdfast/views/components"
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

// What an agent writes in pieces of Markdown, and a command in colours, isn't put
// together on a page or in its stream.
// proves OWN-3
func TestPages_MaskWhatDrawingPutsTogether(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		const secret = "sk9-Zq7-secret"
		masking := db.Open(t, func(o *store.Options) { o.Secrets = []string{secret} })
		w := newWorld(t, db, func(o *Options) { o.Store = masking })
		run := w.start(t, w.alice, "go")
		call := store.NewID("call")
		storetest.MustAppend(t, w.store, run.Claim, journal.PhaseUncertain, run.propose(call, "make"), &journal.CallDispatched{CallID: call, N: 1, AllowedBy: journal.AllowedBy{Type: journal.AllowedByRule}})
		storetest.MustAppend(t, w.store, run.Claim, "", &journal.CallOutput{CallID: call, Stream: "stdout", Text: journal.T("its key is sk9\x1b[31m-Zq7-\x1b[0msecret\n")},
			&journal.MessageCompleted{MessageID: "m", Role: "agent", Part: journal.PartText, Text: journal.T(`The key is sk9\-Zq7\-secret.`)})
		b := w.tab(t, w.alice).open("/sessions/"+run.Session).page().want(http.StatusOK, "The key is [hidden].", "its key is [hidden]")
		if strings.Contains(b.doc.Text(), secret) {
			t.Error("the page has the secret")
		}
		snap, err := w.store.SessionPage(t.Context(), w.alice.user.ID, run.Session, 0, 50)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := w.srv.rowMessages(t.Context(), components.Viewer{ID: w.alice.user.ID}, &snap)
		if err != nil || len(rows) == 0 {
			t.Fatal(rows, err)
		}
		for _, r := range rows {
			if doc, err := goquery.NewDocumentFromReader(strings.NewReader(string(r.text))); err != nil || strings.Contains(doc.Text(), secret) {
				t.Errorf("the stream has the secret, %v", err)
			}
		}
	})
}
