package handlers

import (
	"net/url"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store/storetest"
)

// vals makes the fields of a form.
func vals(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v
}

// The main job, end to end, by forms alone.
func TestPages_MainJob(t *testing.T) {
	// proves ADM-1 PER-2 CAL-6 PRO-5 PRO-6 COO-4
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		w := newEmptyWorld(t, db)
		b := w.tab(t, person{})
		code, err := w.store.SetupLink(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.open("/setup?code=" + code).page().want(200)
		b.submit(`[data-testid="setup-form"]`, vals("email", "Me@example.org", "password", "short")).page().want(422, "at least 8 characters")
		b.submit(`[data-testid="setup-form"]`, vals("password", "long enough")).follow().page().want(200, "New session")
		u, err := w.store.UserByEmail(t.Context(), "me@example.org")
		if err != nil {
			t.Fatal(err)
		}
		me := person{user: u}

		b.submit(`[data-testid="new-session-form"]`, vals("prompt", "# Deploy the shop\n\nplease", "workspace", "/srv/shop")).follow().page().wantState(journal.StateQueued)
		b.want(200, "Recorded as entry #0002", "Deploy the shop", "Ask before writes", "Not delivered yet: 1")
		session := strings.TrimPrefix(strings.Split(b.path, "?")[0], "/sessions/")

		// A decision: read, answered once, and a second answer told who was first.
		run := w.pickUp(t, me, session)
		_, request := run.ask("make deploy")
		b.open("/sessions/"+session).page().wantState(journal.StateWaiting).want(200, "make deploy", "of which nothing has been run")
		again := w.tab(t, person{cookie: b.cookie}).open("/permissions/" + request).page()
		b.submit(`[data-testid="decision-form"]`, vals("reply", "once")).follow().want(200, "Recorded as entry #")
		again.submit(`[data-testid="decision-form"]`, vals("reply", "reject")).page().want(409, "This request was answered already", "You allowed this once at", "Your answer was not recorded")

		// An outcome that isn't known: reconciled, and it goes on.
		run = w.pickUp(t, me, session)
		call := run.MustUnknown(t, w.store)
		b.open("/sessions/"+session).page().wantState(journal.StateUncertain).want(200, "It was not run again")
		b.submit(`[data-testid="resolution-form"]`, vals("evidence", "I think so", "then", "continue")).page().want(422, "Choose what you found", "I think so")
		b.submit(`[data-testid="resolution-form"]`, vals("outcome", "happened", "evidence", "", "then", "continue")).page().want(422, "Say how you know")
		b.submit(`[data-testid="resolution-form"]`, vals("evidence", "I looked", "then", "continue")).follow().page().wantState(journal.StateQueued).want(200, "You reconciled", "it happened", "I looked")
		b.post("/calls/"+call+"/resolution", vals("outcome", "did_not_happen", "evidence", "no", "then", "stay", "idempotency_key", newKey())).page().want(409, "You recorded “it happened”")
		b.post("/calls/"+call+"/resolution", vals("outcome", "happened", "evidence", "I looked", "then", "continue", "idempotency_key", newKey())).follow().want(200)

		// Stopped by a person: the queue is held until they continue.
		run = w.pickUp(t, me, session)
		b.open("/sessions/"+session).submit(`[data-testid="composer"]`, vals("text", "and then the blog", "delivery", "queue")).follow().want(200, "and then the blog")
		b.submit(`[data-testid="queue"] form`, nil).follow().page().want(200, "Withdrawn")
		b.submit(`[data-testid="composer"]`, vals("text", "and then the docs", "delivery", "queue")).follow().want(200, "and then the docs")
		b.open("/sessions/"+session+"/stop").page().want(200, "What it did until then stays done")
		b.submit(`[data-testid="stop-form"]`, vals("mode", "now")).follow().page().wantState(journal.StateStopping)
		run.end(journal.TurnEnded{Outcome: journal.Stopped, Reason: "interrupted"})
		b.open("/sessions/"+session).page().wantState(journal.StateStopped).want(200, "The queue is held", "1 message is held", "Held, not delivered yet: 1")
		b.submit(`[data-testid="continuation-form"]`, nil).follow().page().wantState(journal.StateQueued)

		// Seen done, and closed.
		run = w.pickUp(t, me, session)
		run.end(journal.TurnEnded{Outcome: journal.Completed})
		storetest.MustPromote(t, w.store, run.Claim) // the message that was held
		run.end(journal.TurnEnded{Outcome: journal.Completed})
		b.open("/needs-you").page().want(200, "To look at", "Deploy the shop")
		b.open("/sessions/"+session).page().wantState(journal.StateReady).want(200, "Ready for review")
		b.submit(`[data-testid="archive"] form`, nil).follow().page().wantState(journal.StateClosed).want(200, "takes no messages")
		b.open("/").submit("form.sign-out", nil).follow().page().want(200, "Sign in")
		b.open("/").follow().page().want(200, "Sign in")
	})
}

// Each form sent twice with its key is the same as once; with another text it is refused, and the text kept.
func TestPages_SentTwice(t *testing.T) {
	// proves ADM-2 ADM-3 ADM-4
	onEach(t, func(t *testing.T, w *world) {
		b := w.tab(t, w.alice).open("/sessions/new")
		action, body := b.fields(`[data-testid="new-session-form"]`, vals("prompt", "once\r\nonly", "workspace", "/srv/shop"))
		first := b.post(action, body).follow().path
		if again := b.post(action, body).follow(); strings.Split(again.path, "?")[0] != strings.Split(first, "?")[0] || !strings.Contains(again.main(), "Already recorded as entry #0002") {
			t.Errorf("the second time led to %s, the first to %s", again.path, first)
		}
		session := strings.Split(first, "?")[0]
		body.Set("prompt", "something else")
		b.post(action, body).page().want(422, "This form was already sent with other content", "Send the new text as a separate message", "something else")
		b.submit(`[data-testid="resend-form"]`, nil).follow().wantState(journal.StateQueued)
		if strings.Split(b.path, "?")[0] == session {
			t.Error("the new text went into the first session")
		}

		b.open(session)
		action, body = b.fields(`[data-testid="composer"]`, vals("text", "hello", "delivery", "queue"))
		b.post(action, body).follow().want(200, "Recorded as entry #0003")
		b.post(action, body).follow().want(200, "Already recorded as entry #0003")
		body.Set("text", "other\n words <b>")
		b.post(action, body).page().want(422, "This form was already sent with other content", "What was sent first became entry #0003.", "Keep the first")
		if got := b.doc.Find("textarea").Text(); got != "other\n words <b>" {
			t.Errorf("the typed text became %q", got)
		}
		b.submit(`[data-testid="resend-form"]`, nil).follow().want(200, "Recorded as entry #0004")
		body.Del("idempotency_key")
		b.post(action, body).page().want(400)
		body.Set("idempotency_key", newKey())
		body.Set("text", "")
		b.post(action, body).page().want(422, "The message is empty")
		body.Set("text", strings.Repeat("x", journal.MaxPromptBytes+1))
		b.post(action, body).page().want(413, "at most 262144 are taken")
		if got := len(b.doc.Find("textarea").Text()); got != journal.MaxPromptBytes+1 {
			t.Errorf("%d bytes of the typed text are kept", got)
		}
		if n := storetest.CountKind(storetest.Events(t, w.store, strings.TrimPrefix(session, "/sessions/")), journal.KindPromptAdmitted); n != 3 {
			t.Errorf("%d prompts were admitted, want 3", n)
		}
	})
}

func TestPages_StopAndContinueTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	run := w.start(t, w.alice, "go")
	path := "/sessions/" + run.Session
	b := w.tab(t, w.alice).open(path + "/stop")
	action, body := b.fields(`[data-testid="stop-form"]`, vals("mode", "now"))
	b.post(action, body).follow().wantState(journal.StateStopping)
	b.post(action, body).follow().wantState(journal.StateStopping)
	run.end(journal.TurnEnded{Outcome: journal.Stopped, Reason: "interrupted"})
	b.post(action, body).follow().wantState(journal.StateStopped).want(200, "nothing is left to stop")
	action, body = b.fields(`[data-testid="continuation-form"]`, nil)
	b.post(action, body).follow().wantState(journal.StateQueued)
	b.post(action, body).follow().wantState(journal.StateQueued).want(200, "The session goes on")
	w.pickUp(t, w.alice, run.Session).end(journal.TurnEnded{Outcome: journal.Completed})
	b.post(action, body).page().want(409, "nothing to continue")
	b.post(path+"/interruption", vals("mode", "now")).page().want(409, "nothing to stop")
	b.post(path+"/interruption", vals("mode", "sideways")).page().want(422)
	b.post(path+"/archive", nil).follow().wantState(journal.StateClosed)
	b.post(path+"/archive", nil).follow().wantState(journal.StateClosed)
	b.post(path+"/prompts", vals("text", "late words", "delivery", "queue", "idempotency_key", newKey())).page().want(409, "This session is archived", "late words")
}

// A limit can be raised by the form that continues.
func TestPages_RaiseLimit(t *testing.T) {
	t.Parallel()
	// proves COO-5
	w := newWorld(t, storetest.New(t, "sqlite"))
	run := w.start(t, w.alice, "go")
	run.end(journal.TurnEnded{Outcome: journal.LimitReach, Limit: "steps"})
	path := "/sessions/" + run.Session
	b := w.tab(t, w.alice).open(path).page().wantState(journal.StateLimitReached).want(200, "Reached the step limit")
	b.submit(`[data-testid="continuation-form"]`, vals("steps", "many")).page().want(422, "steps must be a number")
	b.open(path).submit(`[data-testid="continuation-form"]`, vals("steps", "250")).follow().wantState(journal.StateQueued).want(200, "step limit now 250 steps")
	st := storetest.MustState(t, w.store, run.Session)
	if l := st.TurnLimits(); l.Steps != 250 {
		t.Errorf("the turn may take %d steps", l.Steps)
	}
}

func TestPages_Decision(t *testing.T) {
	// proves PER-2 PER-6 PER-7
	onEach(t, func(t *testing.T, w *world) {
		run := w.start(t, w.alice, "go")
		_, request := run.ask("make deploy")
		path := "/permissions/" + request + "/decision"
		b := w.tab(t, w.alice)
		b.post(path, vals("reply", "once", "idempotency_key", newKey())).page().want(422, "What you read is not what is waiting now")
		if b.doc.Find(`a[href="/permissions/`+request+`"]`).Length() == 0 {
			t.Error("no way to the request as it is now")
		}
		b.post(path, vals("reply", "once", "digest", "other", "idempotency_key", newKey())).page().want(422)
		b.post(path, vals("reply", "always", "digest", "digest-of-"+request, "idempotency_key", newKey())).page().want(422, "not available yet")
		b.post(path, vals("reply", "once", "digest", "digest-of-"+request)).page().want(400)
		w.tab(t, w.mallory).open("/permissions/" + request).page().want(404)

		// A new message answers no request.
		b.open("/sessions/"+run.Session).submit(`[data-testid="composer"]`, vals("text", "yes, do it", "delivery", "steer")).follow().wantState(journal.StateWaiting)

		// From the row of the inbox, where all of it stands.
		b.open("/needs-you").page()
		action, body := b.fields(`[data-testid="row-decision"]`, vals("reply", "reject", "message", "not on a Sunday"))
		b.post(action, body).follow().want(200, "You denied it", "not on a Sunday")
		b.post(action, body).follow().want(200, "Already recorded as entry #")
		b.open("/permissions/"+request).page().want(200, "You denied this at", "not on a Sunday")
		if b.doc.Find("button[name=reply]").Length() != 0 {
			t.Error("an answered request can be answered")
		}

		// Ended with its turn: it can't be answered any more.
		run = w.pickUp(t, w.alice, run.Session)
		_, second := run.ask("make undo")
		b.open("/permissions/" + second)
		action, body = b.fields(`[data-testid="decision-form"]`, vals("reply", "once", "message", "my words"))
		b.post("/sessions/"+run.Session+"/interruption", vals("mode", "now")).follow().wantState(journal.StateStopped)
		b.post(action, body).page().want(410, "This request has ended", "Nothing was run because of it", "my words")
		b.open("/permissions/"+second).page().want(200, "ended without an answer")
	})
}

func TestPages_SignIn(t *testing.T) {
	t.Parallel()
	// proves OWN-3
	w := newWorld(t, storetest.New(t, "sqlite"))
	hash, err := HashPassword("right horse")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.SetPassword(t.Context(), w.alice.user.ID, hash); err != nil {
		t.Fatal(err)
	}
	b := w.tab(t, person{})
	b.open("/needs-you").follow().page().want(200, "Sign in")
	form := `[data-testid="login-form"]`
	b.submit(form, vals("email", w.alice.user.Email, "password", "wrong horse")).page().want(401, "don’t match an account")
	if b.doc.Find("#email").AttrOr("value", "") != w.alice.user.Email || b.doc.Find("#password").AttrOr("value", "") != "" {
		t.Error("the address is lost, or the password is in the page")
	}
	b.submit(form, vals("email", "nobody@example.org", "password", "right horse")).page().want(401, "don’t match an account")
	b.open("/login?next=/needs-you").submit(form, vals("email", strings.ToUpper(w.alice.user.Email), "password", "right horse")).follow().page().want(200, "Needs you")
	for _, next := range []string{"https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"} {
		b.open("/login?next=" + url.QueryEscape(next))
		if got := b.doc.Find("input[name=next]").AttrOr("value", ""); got != "/" {
			t.Errorf("next=%s leads to %q", next, got)
		}
	}

	code, err := w.store.UserLink(t.Context(), w.mallory.user.ID)
	if err != nil {
		t.Fatal(err)
	}
	b = w.tab(t, person{})
	b.open("/login?code="+code).page().want(200, "Sign in with this link?")
	other := w.tab(t, person{}).open("/login?code=" + code).page() // opening spends nothing
	other.submit(`[data-testid="link-form"]`, nil).follow().page().want(200, "Sessions")
	b.submit(`[data-testid="link-form"]`, nil).page().want(410, "This link has ended")
	other.post("/login", vals("code", code)).follow().want(200, "Sessions") // the same form twice
}

func TestPages_Setup(t *testing.T) {
	t.Parallel()
	w := newEmptyWorld(t, storetest.New(t, "sqlite"))
	b := w.tab(t, person{})
	b.open("/login").page().want(403, "Open the link that the server printed")
	if links := b.doc.Find(`[data-testid="failure"] a`); links.Length() != 0 {
		t.Errorf("where nobody can sign in it leads to %q", links.AttrOr("href", ""))
	}
	b.open("/setup").page().want(403)
	b.open("/setup?code=wrong").page().want(410, "This link has ended")
	b.post("/setup", vals("code", "wrong", "email", "a@example.org", "password", "long enough")).page().want(410)
	code, err := w.store.SetupLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.open("/setup?code=" + code)
	b.submit(`[data-testid="setup-form"]`, vals("email", "not an address", "password", "long enough")).page().want(422, "not an email address")
	action, body := b.fields(`[data-testid="setup-form"]`, vals("email", "a@example.org", "password", "long enough"))
	b.post(action, body).follow().want(200, "New session")
	b.post(action, body).follow().want(200, "New session") // the same form twice
	stranger := w.tab(t, person{})
	stranger.post(action, body).page().want(410, "There is a user already. Sign in")
	stranger.open("/setup?code="+code).page().want(410, "There is a user already. Sign in")
	stranger.open("/setup").follow().want(200, "Sign in")
	if users, err := w.store.Users(t.Context()); err != nil || len(users) != 1 || users[0].PasswordHash == "" || strings.Contains(users[0].PasswordHash, "long enough") {
		t.Errorf("users %v, %v", users, err)
	}
	if got := b.w.log.String(); strings.Contains(got, "long enough") || strings.Contains(got, code) {
		t.Error("the log holds a secret")
	}
	if b.header.Get("Cache-Control") != "no-store" {
		t.Errorf("a page may be cached: %q", b.header.Get("Cache-Control"))
	}
}
