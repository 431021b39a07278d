package handlers

import (
	"net/http"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store/storetest"
)

// password lets people sign in by the form.
func (w *world) password(t *testing.T, people ...person) {
	t.Helper()
	hash, err := HashPassword("right horse")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range people {
		if err := w.store.SetPassword(t.Context(), p.user.ID, hash); err != nil {
			t.Fatal(err)
		}
	}
}

// A text that was sent after the sign-in had ended comes back after the next one, and is sent by a person only.
func TestPages_DraftAfterSignIn(t *testing.T) {
	// proves ADM-1
	onEach(t, func(t *testing.T, w *world) {
		w.password(t, w.alice)
		session := w.session(t, w.alice)
		prompts := func() int {
			return storetest.CountKind(storetest.Events(t, w.store, session), journal.KindPromptAdmitted)
		}
		b := w.tab(t, w.alice).open("/sessions/" + session)
		text := "\nline <b>one</b>\n\"two\" & 'three' \u202e 漢字\n"
		action, body := b.fields(`[data-testid="composer"]`, vals("text", text, "delivery", "queue"))
		b.cookie = "" // signed out
		b.post(action, body).page().want(http.StatusUnauthorized, "You are signed out, so this was not sent.")
		login := `[data-testid="login-form"]`
		b.submit(login, vals("email", w.alice.user.Email, "password", "wrong")).page().want(http.StatusUnauthorized, "don’t match an account")
		b.submit(login, vals("email", w.alice.user.Email, "password", "right horse")).page().want(http.StatusOK, "Your text was not sent")
		if got := b.doc.Find("textarea#kept").Text(); got != text {
			t.Errorf("the text became %q, want %q", got, text)
		}
		if prompts() != 0 {
			t.Fatal("it was sent by itself")
		}
		action, body = b.fields(`[data-testid="draft-form"]`, nil)
		b.post(action, body).follow().want(http.StatusOK, "Recorded as entry #")
		b.post(action, body).follow().want(http.StatusOK, "Already recorded as entry #")
		if prompts() != 1 {
			t.Errorf("%d messages were admitted, want 1", prompts())
		}
	})
}

func TestPages_DraftKinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	w.password(t, w.alice)
	th := w.things(t, w.alice)
	login := `[data-testid="login-form"]`
	for _, tt := range []struct {
		path, field, page string
		again             bool
	}{
		{"/sessions", "prompt", "/sessions/new", true},
		{"/sessions/" + th.session + "/prompts", "text", "/sessions/" + th.session, true},
		{"/permissions/" + th.request + "/decision", "message", "/permissions/" + th.request, false},
		{"/calls/" + th.call + "/resolution", "evidence", "/calls/" + th.call, false},
		{"/attempts/" + th.attempt + "/resolution", "evidence", "/needs-you", false},
	} {
		b := w.tab(t, person{}).post(tt.path, vals(tt.field, "my words", "for", w.alice.user.ID, "reply", "once", "outcome", "happened", "then", "continue", "workspace", "/srv/x", "idempotency_key", newKey())).page().want(http.StatusUnauthorized, "Your text is kept in this page.")
		if promised := strings.Contains(b.find("draft-kept"), "with a button that sends it"); promised != tt.again {
			t.Errorf("%s: promised a button that sends it: %v", tt.path, promised)
		}
		b.submit(login, vals("email", w.alice.user.Email, "password", "right horse")).page().want(http.StatusOK, "Your text was not sent")
		if got := b.doc.Find("#kept").Text(); got != "my words" || b.doc.Find(`main a`).Last().AttrOr("href", "") != tt.page {
			t.Errorf("%s: %q, to %q", tt.path, got, b.doc.Find("main a").Last().AttrOr("href", ""))
		}
		if got := b.doc.Find(`[data-testid="draft-form"]`).Length() == 1; got != tt.again || b.doc.Find("main [name=reply], main [name=outcome], main [name=then]").Length() != 0 {
			t.Errorf("%s: an answer is offered again", tt.path)
		}
	}
	// Nothing to keep, or nobody to keep it for: that nothing was done is said, and no more.
	for path, body := range map[string]string{"/sessions": "prompt=words+of+nobody", "/sessions/" + th.session + "/prompts": "text=", "/sessions/" + th.session + "/archive": "text=x", "/sessions/" + th.session + "/interruption": "mode=now"} {
		if a := w.do(t, post, path, sendsForm(body)); a.status != http.StatusUnauthorized || !strings.Contains(string(a.body), "not-recorded") || strings.Contains(string(a.body), "words of nobody") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if a := w.do(t, post, "/logout", sendsForm("text=x")); a.status != http.StatusSeeOther || a.header.Get("Location") != "/login" {
		t.Errorf("a sign-out without a sign-in: %d to %q", a.status, a.header.Get("Location"))
	}
	// In place, the text stays where it was typed.
	a := w.do(t, post, "/sessions/"+th.session+"/prompts", sendsForm("text=hello&for="+w.alice.user.ID), header("HX-Request", "true"))
	if a.status != http.StatusUnauthorized || a.header.Get("HX-Redirect") != "" || !strings.Contains(string(a.body), "Your text is kept here.") || strings.Contains(string(a.body), "<html") {
		t.Errorf("in place: %d, redirect %q, %.200s", a.status, a.header.Get("HX-Redirect"), a.body)
	}
}

// Who signs in next is shown only what they typed themselves.
//
// proves OWN-1
func TestPages_DraftOfAnother(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.password(t, w.alice, w.mallory)
		th := w.things(t, w.alice)
		const secret = "the plan of alice"
		login, as := `[data-testid="login-form"]`, func(p person) map[string][]string {
			return vals("email", p.user.Email, "password", "right horse")
		}
		for path, field := range map[string]string{
			"/sessions": "prompt", "/sessions/" + th.session + "/prompts": "text", "/permissions/" + th.request + "/decision": "message",
			"/calls/" + th.call + "/resolution": "evidence", "/attempts/" + th.attempt + "/resolution": "evidence",
		} {
			b := w.tab(t, person{}).post(path, vals(field, secret, "for", w.alice.user.ID, "workspace", "/srv/of-alice", "idempotency_key", newKey())).page().want(http.StatusUnauthorized, "Sign in as the same person")
			asked := *b
			b.submit(login, as(w.mallory)).want(http.StatusSeeOther)
			b.follow().page().want(http.StatusOK, "A text that somebody else had typed was not sent, and is not shown to you.")
			if html, err := b.doc.Html(); err != nil || strings.Contains(html, secret) || strings.Contains(html, "/srv/of-alice") {
				t.Errorf("%s: it is shown to the next one (%v)", path, err)
			}
			asked.submit(login, as(w.alice)).page().want(http.StatusOK, "Your text was not sent")
			if got := asked.doc.Find("#kept").Text(); got != secret {
				t.Errorf("%s: its own sender is offered %q", path, got)
			}
		}
		// A form of a page of ours says whom it is for; where it doesn't say, nobody is offered it.
		for _, more := range []string{"", "{}", `{"for":""}`, `{"for":7}`, `{"for":"` + w.mallory.user.ID + `"}`} {
			b := w.tab(t, person{}).open("/login")
			b.submit(login, vals("email", w.alice.user.Email, "password", "right horse", "draft", secret, "draft_action", "/sessions", "draft_more", more)).want(http.StatusSeeOther)
			if b.follow().page(); strings.Contains(b.main(), secret) || !strings.Contains(b.main(), "not shown to you") {
				t.Errorf("%q: %s", more, b.main())
			}
		}
	})
}

// A sign-in that is refused for now goes on holding the text.
func TestPages_DraftOverARefusedSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	w.password(t, w.alice)
	w.srv.signIns = newLimiter(0.001, 1)
	login := `[data-testid="login-form"]`
	b := w.tab(t, person{}).post("/sessions", vals("prompt", "a long mission", "for", w.alice.user.ID)).page().want(http.StatusUnauthorized)
	b.submit(login, vals("email", w.alice.user.Email, "password", "wrong")).page().want(http.StatusUnauthorized)
	b.submit(login, vals("email", w.alice.user.Email, "password", "right horse")).page().want(http.StatusTooManyRequests, "Too many tries", "Your text is kept in this page.")
	if _, fields := b.fields(login, nil); fields.Get("draft") != "a long mission" || fields.Get("email") != w.alice.user.Email {
		t.Errorf("the form holds %v", fields)
	}
}

// What a sign-in form carries leads nowhere but to our own forms.
func TestPages_ForgedDraft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	w.password(t, w.alice)
	for _, action := range []string{"https://evil.example/sessions", "//evil.example/sessions", "/logout", "javascript:alert(1)", "/sessions/ses_1/prompts/../../../logout", "/sessions?x=", ""} {
		b := w.tab(t, person{}).open("/login")
		b.submit(`[data-testid="login-form"]`, vals("email", w.alice.user.Email, "password", "right horse", "draft", "x", "draft_action", action))
		if b.status != http.StatusSeeOther || b.doc.Find("form").Length() != 0 {
			t.Errorf("%q: got %d with a form to %q", action, b.status, b.doc.Find("main form").AttrOr("action", ""))
		}
	}
	b := w.tab(t, person{}).open("/login")
	b.submit(`[data-testid="login-form"]`, vals("email", w.alice.user.Email, "password", "right horse", "draft", `"><img src=x onerror=alert(1)>`, "draft_action", "/sessions", "draft_more", `{"workspace":"\"><img src=x>","reply":"once","idempotency_key":"not a key","for":"`+w.alice.user.ID+`"}`)).page().want(http.StatusOK)
	if b.doc.Find("img").Length() != 0 || b.doc.Find("main [name=reply]").Length() != 0 || b.doc.Find("main input[name=workspace]").AttrOr("value", "") != `"><img src=x>` {
		t.Error("a forged draft became markup, or brought an answer along")
	}
}

// Who comes back with a sign-in that has ended is told when, and what goes on.
func TestPages_EndedSignIn(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.start(t, w.alice, "go")
		w.start(t, w.alice, "go")
		b := w.tab(t, w.alice)
		if b.open("/login").page().find("signed-out") != "" {
			t.Error("who is signed in is told that it has ended")
		}
		raw := w.db.SQL(t)
		if _, err := raw.ExecContext(t.Context(), "UPDATE web_session SET expires_at = 1000"); err != nil {
			t.Fatal(err)
		}
		b.open("/needs-you").follow().page().want(http.StatusOK, "You were signed out at", "Two sessions are still running. Sign in to see them.")
		if got := w.tab(t, person{}).open("/login").find("signed-out"); got != "" {
			t.Errorf("a stranger is told %q", got)
		}
		if got := w.tab(t, w.mallory).open("/login").page().find("signed-out"); !strings.Contains(got, "No session is running.") {
			t.Errorf("the other one is told %q", got)
		}
	})
}
