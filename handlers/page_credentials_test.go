package handlers

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/store"
	"holdfast/store/storetest"
	"holdfast/vault"
)

const credentialForm = `[data-testid="credential-form"]`

// offers lets a server offer agents besides the runbook.
func (w *world) offers(t *testing.T, names ...string) {
	t.Helper()
	one := store.Worker{ID: store.NewID("wrk"), StateFolderID: "fld_1", Host: "h", Places: 1}
	for _, name := range names {
		one.Agents = append(one.Agents, store.Agent{Name: name, Kind: "acp", Available: true})
	}
	if err := w.store.SeeWorker(t.Context(), one); err != nil {
		t.Fatal(err)
	}
}

// hides fails if a page, or the log, shows a value.
func (b *tab) hides(values ...string) *tab {
	b.t.Helper()
	html, err := b.doc.Html()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, v := range values {
		if strings.Contains(html, v) || strings.Contains(b.w.log.String(), v) || strings.Contains(strings.Join(slices.Concat(b.header.Values("Location"), b.header.Values("HX-Redirect")), " "), v) {
			b.t.Errorf("%s shows the value %q", b.path, v)
		}
	}
	return b
}

// A credential is stored, replaced and deleted without a script, and its value is on no
// page and in no log.
//
// proves OWN-3
func TestCredentials_StoredReplacedDeleted(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		const first, second = "s3cr3t-number-one", "s3cr3t-number-two"
		w.offers(t, "codex")
		b := w.tab(t, w.alice).open("/settings").page()
		if b.doc.Find(`a[href="/settings/credentials"]`).Length() != 1 {
			t.Error("the settings don't lead there")
		}
		b.open("/settings/credentials").page().want(http.StatusOK, "None is stored", "The key is in the file", "[hidden]")
		if field := b.doc.Find("#value"); field.AttrOr("type", "") != "password" || field.AttrOr("autocomplete", "") != "new-password" || field.AttrOr("value", "") != "" {
			t.Error("the field for the value shows or remembers it")
		}
		b.submit(credentialForm, vals("name", " MODEL_KEY ", "agent", "codex", "value", " "+first+" ")).hides(first).follow().page().hides(first).want(http.StatusOK, "MODEL_KEY is stored. Agents get it")
		gets := func(agent string, want ...string) {
			t.Helper()
			got, err := w.srv.opts.Vault.ForOwner(t.Context(), w.alice.user.ID, agent)
			if err != nil || !slices.Equal(got.Env, want) {
				t.Errorf("%s gets %v, %v", agent, got.Env, err)
			}
		}
		gets("codex", "MODEL_KEY="+first)
		gets("claude")

		// In another tab it was replaced meanwhile: the last one counts, and says so.
		old := w.tab(t, w.alice).open("/settings/credentials")
		replace := b.doc.Find(`[data-testid="credential-row"] a`).First().AttrOr("href", "")
		b.open(replace).page()
		if b.doc.Find("#name").AttrOr("value", "") != "MODEL_KEY" || b.doc.Find("#agent option[selected]").AttrOr("value", "") != "codex" {
			t.Errorf("%s doesn't fill the form", replace)
		}
		action, body := b.fields(credentialForm, vals("value", second))
		b.post(action, body).follow().page().hides(first, second).want(http.StatusOK, "in place of the value that was there")
		b.post(action, body).follow().page().want(http.StatusOK, "MODEL_KEY is stored")
		gets("codex", "MODEL_KEY="+second)
		stale := old.doc.Find(`[data-testid="credential-delete"]`).AttrOr("href", "")
		old.post(stale, nil).page().want(http.StatusGone, "Another value of MODEL_KEY was stored meanwhile", "Nothing was deleted")
		old.open(stale).page().want(http.StatusNotFound, "There is no such credential")

		at := b.open("/settings/credentials").doc.Find(`[data-testid="credential-delete"]`).AttrOr("href", "")
		w.tab(t, w.mallory).open(at).page().want(http.StatusNotFound)
		w.tab(t, w.mallory).post(at, nil).page().want(http.StatusNotFound)
		if w.tab(t, w.mallory).open("/settings/credentials").page().find("credential-row") != "" {
			t.Error("another owner sees it in the list")
		}
		gets("codex", "MODEL_KEY="+second)
		b.open(at).page().want(http.StatusOK, "Delete MODEL_KEY?", "can’t be brought back")
		deletion, fields := b.fields(`[data-testid="credential-deletion-form"]`, nil)
		b.post(deletion, fields).follow().page().want(http.StatusOK, "The credential is deleted", "None is stored")
		gone := b.path
		for said, who := range map[string]person{gone: w.mallory, "/settings/credentials?notice=deleted&id=crd_anything": w.alice, "/settings/credentials?notice=deleted&id=": w.alice} {
			if got := w.tab(t, who).open(said).page().find("notice"); got != "" { // nothing of theirs was
				t.Errorf("%s says %q", said, got)
			}
		}
		b.post(deletion, fields).page().want(http.StatusGone, "MODEL_KEY was deleted already")
		gets("codex")
		for _, v := range []string{first, second} {
			if w.db.Contains(t, v) {
				t.Error("the database has a value in clear")
			}
		}
	})
}

// What is refused is said at its field, nothing is stored, and the value is given back
// by no answer: it is to be typed again.
//
// proves OWN-3
func TestCredentials_RefusedKeepsNoValue(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		const value = "s3cr3t-that-was-typed"
		raw := w.db.SQL(t)
		w.offers(t, "codex")
		before := w.db.RowCounts(t, raw)
		for name, one := range map[string]struct {
			typed  url.Values
			status int
			field  string
			says   string
		}{
			"a name that isn't one": {vals("name", "NO-NAME", "value", value), 422, "name", "letters without accents"},
			"PATH":                  {vals("name", "PATH", "value", value), 422, "name", "PATH decides how"},
			"the product's own":     {vals("name", "HOLDFAST_KEY", "value", value), 422, "name", "begin with HOLDFAST_"},
			"too short":             {vals("name", "A_KEY", "value", "s3cr3t!"), 422, "value", "fewer than 8 characters"},
			"two lines":             {vals("name", "A_KEY", "value", value+"\nmore"), 422, "value", "one line"},
			"NUL":                   {vals("name", "A_KEY", "value", value+"\x00"), 422, "value", "one line"},
			"too long":              {vals("name", "A_KEY", "value", strings.Repeat(value, 500)), 422, "value", "longer than 8 KiB"},
			"no such agent":         {vals("name", "A_KEY", "agent", "nobody", "value", value), 422, "agent", "No server here offers"},
			"the runbook":           {vals("name", "A_KEY", "agent", "runbook", "value", value), 422, "agent", "No server here offers"},
			"no key":                {vals("name", "A_KEY", "value", value, "idempotency_key", ""), 400, "", "Nothing was recorded"},
		} {
			b := w.tab(t, w.alice).open("/settings/credentials")
			_, body := b.fields(credentialForm, nil)
			for field, v := range one.typed {
				body[field] = v
			}
			b.post("/settings/credentials", body).page().hides(value, "s3cr3t!").want(one.status, one.says)
			if one.field == "" {
				continue
			}
			b.want(one.status, "Type the value again")
			if b.doc.Find("#errors a[href='#"+one.field+"']").Length() != 1 || b.doc.Find("#"+one.field+"-err").Length() != 1 {
				t.Errorf("%s: it isn't said at its field", name)
			}
			if got := b.doc.Find("#name").AttrOr("value", ""); got != one.typed.Get("name") {
				t.Errorf("%s: the name became %q", name, got)
			}
		}
		after := w.db.RowCounts(t, raw)
		for table, n := range before {
			if after[table] != n {
				t.Errorf("%s has %d rows, had %d", table, after[table], n)
			}
		}
	})
}

// Who is signed out in between finds the sign-in, which keeps nothing of the form: not
// in the page, not for after it, not with another form's fields.
//
// proves OWN-3 OWN-2
func TestCredentials_SignedOutKeepsNoValue(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		const value = "s3cr3t-that-was-typed"
		w.password(t, w.alice)
		b := w.tab(t, w.alice).open("/settings/credentials")
		action, body := b.fields(credentialForm, vals("name", "A_KEY", "value", value))
		body.Set("for", w.alice.user.ID)
		b.cookie = ""
		b.post(action, body).page().hides(value).want(http.StatusUnauthorized, "The credential was not stored")
		b.submit(`[data-testid="login-form"]`, vals("email", w.alice.user.Email, "password", "right horse")).page().hides(value).want(http.StatusOK, "type it again")
		// The same by a script in the page.
		a := w.do(t, post, action, header("HX-Request", "true"), header("Sec-Fetch-Site", "same-origin"), sendsForm(body.Encode()))
		if a.status != http.StatusUnauthorized || strings.Contains(string(a.body), value) {
			t.Errorf("with HX-Request: %d %s", a.status, a.body)
		}
		// A sign-in form that claims to carry one is not believed.
		c := w.tab(t, w.alice).open("/login?next=/settings/credentials")
		c.post("/login", vals("email", w.alice.user.Email, "password", "wrong horse", "draft_action", "/settings/credentials", "draft_text", value)).hides(value)
		if list, err := w.store.Credentials(t.Context(), w.alice.user.ID); err != nil || len(list) != 0 {
			t.Errorf("stored: %v, %v", list, err)
		}
		if w.db.Contains(t, value) {
			t.Error("the database has it")
		}
	})
}

// A server whose key isn't the journal's refuses in words, and stores nothing.
//
// proves OWN-3
func TestCredentials_AnotherKey(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		const value = "s3cr3t-of-the-second"
		second := newWorld(t, w.db, func(o *Options) { o.Store = w.store })
		b := second.tab(t, second.alice).open("/settings/credentials")
		if _, err := w.srv.opts.Vault.Put(t.Context(), w.alice.user.ID, vault.New{Name: "A_KEY", Value: "a-value-of-alice", Key: "k"}); err != nil {
			t.Fatal(err)
		}
		b.submit(credentialForm, vals("name", "A_KEY", "value", value)).page().hides(value).want(http.StatusConflict, "The credential was not stored", "holdfast doctor")
		if strings.Contains(w.log.String()+second.log.String(), value) {
			t.Error("the log has it")
		}
		// A key file that others can read is no key.
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(strings.Repeat("ab", 32)), 0o644); err != nil { //nolint:gosec // on purpose
			t.Fatal(err)
		}
		if _, err := vault.Open(t.Context(), w.store, vault.Source{File: path}); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("a key that others can read: %v", err)
		}
	})
}

// A credential that doesn't open any more is marked, until it is stored again.
//
// proves OWN-3
func TestCredentials_SpoiltIsSaid(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		b := w.tab(t, w.alice).open("/settings/credentials")
		b.submit(credentialForm, vals("name", "A_KEY", "value", "a-value-that-spoils")).follow().page()
		b.submit(credentialForm, vals("name", "B_KEY", "value", "a-value-that-stays")).follow().page()
		if b.doc.Find(`[data-testid="credential-spoilt"]`).Length() != 0 {
			t.Error("one is called spoilt")
		}
		w.db.MustExec(t, w.db.SQL(t), "UPDATE credential SET agent = 'elsewhere' WHERE name = 'A_KEY'")
		source := vault.Source{File: strings.TrimPrefix(w.srv.opts.Vault.Where(), "the file ")}
		k, err := vault.Open(t.Context(), w.store, source) // as a server that starts now
		if err != nil {
			t.Fatal(err)
		}
		w.srv.opts.Vault = k
		b.open("/settings/credentials").page().want(http.StatusOK, "It doesn’t open any more")
		if b.doc.Find(`[data-testid="credential-spoilt"]`).Length() != 1 {
			t.Error("it isn't one that is called spoilt")
		}
		w.offers(t, "elsewhere")
		b.open("/settings/credentials").submit(credentialForm, vals("name", "A_KEY", "agent", "elsewhere", "value", "a-value-that-stays-too")).follow().page()
		if b.doc.Find(`[data-testid="credential-spoilt"]`).Length() != 0 {
			t.Error("it is still called spoilt")
		}
	})
}

// Forms of credentials count in their owner's rate.
//
// proves ADM-10 OWN-3
func TestCredentials_Rate(t *testing.T) {
	w := newWorld(t, storetest.New(t, "sqlite"), func(o *Options) { o.Rate, o.Burst = 0.001, 1 })
	b := w.tab(t, w.alice).open("/settings/credentials")
	b.submit(credentialForm, vals("name", "A_KEY", "value", "a-value-of-mine")).follow().page()
	at := b.doc.Find(`[data-testid="credential-delete"]`).AttrOr("href", "")
	b.submit(credentialForm, vals("name", "B_KEY", "value", "another-of-mine")).want(http.StatusTooManyRequests)
	b.post(at, nil).want(http.StatusTooManyRequests)
	if list, err := w.store.Credentials(t.Context(), w.alice.user.ID); err != nil || len(list) != 1 || list[0].Name != "A_KEY" {
		t.Errorf("stored: %+v, %v", list, err)
	}
}
