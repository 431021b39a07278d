package handlers

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store/storetest"
)

// Each form of a page that is sent after its sender was signed out says what was not
// done, and leads back to its page. The table is that of the routes: a new one is in it.
//
// proves ADM-1
func TestPages_SignedOutFormsSayWhatWasNotDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	w.password(t, w.alice)
	ids := map[string]string{"/prompts/": "inp_1", "/permissions/": "per_1", "/calls/": "call_1", "/attempts/": "att_1", "/settings/credentials/": "crd_1", "/sessions/": "ses_1", "/settings/agents/": "opencode"}
	seen := 0
	for _, r := range w.srv.pageRoutes() {
		if r.method != post || r.access != owner || r.path == "/logout" {
			continue
		}
		seen++
		path := r.path
		for under, id := range ids {
			if strings.HasPrefix(path, under) {
				path = strings.NewReplacer(":id", id, ":name", id).Replace(path)
			}
		}
		before := w.db.RowCounts(t, w.db.SQL(t))
		body := vals("for", w.alice.user.ID, "idempotency_key", newKey(), "value", "s3cr3t-value")
		b := w.tab(t, person{}).post(path, body).page().want(http.StatusUnauthorized, "You are signed out.", "not", "Sign in")
		if b.find("not-recorded") == "" || b.doc.Find(`[name="next"]`).AttrOr("value", "") == "" {
			t.Errorf("%s: it isn't said what was not done, or where it stands: %s", r.path, b.main())
		}
		b.hides("s3cr3t-value")
		a := w.do(t, post, path, header("HX-Request", "true"), header("Sec-Fetch-Site", "same-origin"), sendsForm(body.Encode()))
		if a.status != http.StatusUnauthorized || !strings.Contains(string(a.body), "signed-out-notice") || strings.Contains(string(a.body), "s3cr3t-value") {
			t.Errorf("%s: in place it says %d %s", r.path, a.status, a.body)
		}
		for table, n := range w.db.RowCounts(t, w.db.SQL(t)) {
			if n != before[table] {
				t.Errorf("%s wrote to %s", r.path, table)
			}
		}
	}
	if seen < 17 {
		t.Errorf("only %d forms were looked at", seen)
	}
}

// All that is typed and chosen in a form with a text is in the form that offers it
// again, after a sign-in: a mission that asked for one model isn't sent for another.
//
// proves ADM-1
func TestPages_DraftKeepsTheWholeForm(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.password(t, w.alice)
		seeAgents(t, w, "opencode")
		if err := w.store.SaveAgentOffers(t.Context(), w.alice.user.ID, "opencode", "1", offered()); err != nil {
			t.Fatal(err)
		}
		run := w.start(t, w.alice, "go")
		for _, one := range []struct {
			page, form string
			with       url.Values
		}{
			{"/sessions/new", `[data-testid="new-session-form"]`, vals("prompt", "my mission", "workspace", "/srv/x", "agent", "opencode", "preset", "ask_all",
				"set:opencode:model", "=large", "set:opencode:web", "=true", "steps", "7", "wall_h", "2", "tokens", "1000", "cost_usd", "3", "kept_at", "5")},
			{"/sessions/" + run.Session, `[data-testid="composer"]`, vals("text", "my words", "delivery", "steer", "kept_at", "5")},
		} {
			b := w.tab(t, w.alice).open(one.page).page()
			action, body := b.fields(one.form, one.with)
			for name := range body {
				if body.Get(name) == "" {
					t.Errorf("%s: the test gives the field %s nothing", one.page, name)
				}
			}
			for _, to := range []string{action, b.doc.Find(one.form+" [formaction]").AttrOr("formaction", "")} {
				b.cookie = ""
				b.post(to, body).page().want(http.StatusUnauthorized, "Your text is kept in this page.")
				b.submit(`[data-testid="login-form"]`, vals("email", w.alice.user.Email, "password", "right horse")).page().want(http.StatusOK, "Your text was not sent")
				_, kept := b.fields(`[data-testid="draft-form"]`, nil)
				for name := range body {
					if name == "delivery" && to != action { // it was to be kept, not to be sent
						continue
					}
					if kept.Get(name) != body.Get(name) {
						t.Errorf("%s: the field %s had %q and is kept as %q", to, name, body.Get(name), kept.Get(name))
					}
				}
			}
		}
		// What goes along can be read, and is sent.
		b := w.tab(t, person{}).post("/sessions", vals("prompt", "a mission", "workspace", "/srv/x", "agent", "opencode", "preset", "ask_all", "set:opencode:model", "=large", "steps", "7", "for", w.alice.user.ID, "idempotency_key", newKey()))
		b.submit(`[data-testid="login-form"]`, vals("email", w.alice.user.Email, "password", "right horse")).page()
		if said := b.find("draft-along"); !strings.Contains(said, "Setting opencode:model") || !strings.Contains(said, "large") || !strings.Contains(said, "/srv/x") {
			t.Errorf("it goes along unseen: %s", said)
		}
		b.submit(`[data-testid="draft-form"]`, nil).follow()
		st := storetest.MustState(t, w.store, strings.TrimPrefix(strings.Split(b.path, "?")[0], "/sessions/"))
		if len(st.Wanted) != 1 || st.Wanted[0].Setting != (journal.Setting{ID: "model", Value: "large"}) {
			t.Errorf("wanted %+v", st.Wanted)
		}
	})
}

// A form without a text is filled in again after the sign-in of its sender, and of
// nobody else; what was typed as a credential's value is gone.
//
// proves OWN-1 OWN-3
func TestPages_SignedOutFormsAreFilledAgain(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.password(t, w.alice, w.mallory)
		w.offers(t, "opencode")
		r := w.run(t, w.alice)
		storetest.MustAppend(t, w.store, r.Claim, "", &journal.AgentOptions{ProcessID: "prc_1", Options: offered()})
		const value = "s3cr3t-value"
		for _, one := range []struct {
			path, lost, chosen string
			with               url.Values
		}{
			{"/sessions/" + r.Session + "/settings", "The settings were not recorded.", `select[name="set:model"] option[value="=large"][selected]`, vals("set:model", "=large")},
			{"/settings", "The settings were not saved.", `input[name="theme"][value="dark"][checked]`, vals("theme", "dark", "announce", "all", "keys", "off")},
			{"/settings/credentials", "The credential was not stored", `input[name="name"][value="A_KEY"]`, vals("name", "A_KEY", "agent", "opencode", "value", value)},
			{"/sessions", "The session was not started.", `input[name="workspace"][value="/srv/x"]`, vals("workspace", "/srv/x", "agent", runbook, "prompt", "")},
		} {
			one.with["for"], one.with["idempotency_key"] = []string{w.alice.user.ID}, []string{newKey()}
			b := w.tab(t, person{}).post(one.path, one.with).page().want(http.StatusUnauthorized, one.lost, "what you chose is filled in")
			b.hides(value)
			other := *b
			login := `[data-testid="login-form"]`
			b.submit(login, vals("email", w.alice.user.Email, "password", "wrong horse")).page().want(http.StatusUnauthorized, one.lost)
			b.submit(login, vals("email", w.alice.user.Email, "password", "right horse")).page().hides(value).want(http.StatusOK, one.lost, "filled in again")
			if b.doc.Find("main "+one.chosen).Length() != 1 {
				t.Errorf("%s: what was chosen isn't filled in", one.path)
			}
			other.submit(login, vals("email", w.mallory.user.Email, "password", "right horse"))
			if other.follow(); other.path != "/" {
				t.Errorf("%s: another one is led to %s", one.path, other.path)
			}
		}
		if st := storetest.MustState(t, w.store, r.Session); len(st.Wanted) != 0 {
			t.Errorf("it was chosen by itself: %+v", st.Wanted)
		}
	})
}
