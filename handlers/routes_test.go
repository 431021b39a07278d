package handlers

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
	"holdfast/vault"
)

// things are ids of everything that one owner has.
type things struct {
	session, prompt, request, call, attempt, credential, key string
}

func (w *world) things(t *testing.T, p person) things {
	t.Helper()
	r := w.run(t, p)
	var th things
	th.attempt = store.NewID("att")
	storetest.MustAppend(t, w.store, r.Claim, journal.PhaseUncertain, &journal.AttemptPrepared{AttemptID: th.attempt, TurnID: r.Turn, Model: "m", RequestSHA256: journal.Hash("x")},
		&journal.AttemptDispatched{AttemptID: th.attempt})
	th.session, th.call = r.Session, r.MustUnknown(t, w.store)
	th.prompt = storetest.MustPrompt(t, w.store, p.user.ID, r.Session, "a private plan", journal.Queue).ID
	other := w.run(t, p)
	_, th.request = other.MustAsk(t, w.store)
	var err error
	if th.credential, err = w.srv.opts.Vault.Put(t.Context(), p.user.ID, vault.New{Name: "A_KEY_OF_ALICE", Value: "a-value-of-alice", Key: "k1"}); err != nil {
		t.Fatal(err)
	}
	th.key = "the-key-of-alice"
	if _, err := w.store.SubmitPrompt(t.Context(), p.user.ID, other.Session, th.key, store.PromptInput{Text: "x", Delivery: journal.Queue}); err != nil {
		t.Fatal(err)
	}
	return th
}

// fill puts ids into the path of a route.
func (th things) fill(path string) string {
	for _, kind := range []struct{ at, id string }{
		{"/sessions/:id", th.session},
		{"/prompts/:id", th.prompt},
		{"/permissions/:id", th.request},
		{"/calls/:id", th.call},
		{"/attempts/:id", th.attempt},
		{"/credentials/:id", th.credential},
	} {
		path = strings.Replace(path, kind.at, strings.Replace(kind.at, ":id", kind.id, 1), 1)
	}
	return strings.Replace(path, ":key", th.key, 1)
}

// plausible is a body with which the owner would get through.
func plausible(r route) []option {
	if r.method != post {
		return nil
	}
	if !strings.HasPrefix(r.path, "/api/") {
		return []option{sendsForm("text=hi&delivery=queue&idempotency_key=k1&reply=once&digest=d1&outcome=cannot_tell&evidence=x&then=stay&mode=now&seq=1")}
	}
	body := "{}"
	switch {
	case strings.HasSuffix(r.path, "/prompts"):
		body = `{"text":"hi","delivery":"queue"}`
	case strings.HasSuffix(r.path, "/decision"):
		body = `{"reply":"once","digest":"d1"}`
	case strings.Contains(r.path, "/calls/"):
		body = `{"outcome":"cannot_tell","evidence":"","then":"stay"}`
	case strings.Contains(r.path, "/attempts/"):
		body = `{"outcome":"abandon","evidence":"","then":"stay"}`
	case r.path == "/api/v1/sessions":
		body = `{"workspace":"/srv/x","agent":"runbook"}`
	}
	return []option{sendsJSON(body), key("k1")}
}

func TestRoutes(t *testing.T) {
	// proves OWN-1 OWN-2
	onEach(t, func(t *testing.T, w *world) {
		th := w.things(t, w.alice)
		raw := w.db.SQL(t)
		before := w.db.RowCounts(t, raw)
		var open []string
		for _, r := range w.srv.routes() {
			name := r.method + " " + r.path
			api := strings.HasPrefix(r.path, "/api/")
			sign := as(w.mallory)
			if !api { // anew each time: one of the routes signs out
				sign = browser(person{cookie: w.newCookie(t, w.mallory.user.ID)})
			}
			if r.access == public {
				open = append(open, name)
			} else {
				w.checkClosed(t, r, th, api)
				w.checkForeign(t, r, th, api, sign)
			}
			if r.method != get {
				for _, how := range [][]option{{header("Sec-Fetch-Site", "cross-site")}, {header("Sec-Fetch-Site", "same-site")}, {header("Origin", "https://evil.example")}, {header("Origin", "null")}} {
					if a := w.do(t, r.method, th.fill(r.path), append(append(plausible(r), sign), how...)...); a.status != http.StatusForbidden {
						t.Errorf("%s from another site: got %d, want 403", name, a.status)
					}
				}
			}
		}
		t.Logf("routes that need no sign-in: %s", strings.Join(open, ", "))
		allowed := []string{"GET /healthz", "GET /readyz", "GET /setup", "POST /setup", "GET /login", "POST /login", "GET /static/:name", "GET /help"}
		for _, name := range open {
			if !slices.Contains(allowed, name) {
				t.Errorf("%s is open to everybody; the list of such routes is %v", name, allowed)
			}
		}
		if len(open) > 8 {
			t.Errorf("%d routes are public, at most 8 may be", len(open))
		}
		after := w.db.RowCounts(t, raw)
		delete(after, "web_session")
		delete(after, "preference") // mallory's own
		delete(after, "unsent")     // likewise; alice has none, which is looked at below
		for table, n := range after {
			if n != before[table] && table != "session" && table != "event" && table != "receipt" { // mallory may make sessions
				t.Errorf("table %s had %d rows and has %d", table, before[table], n)
			}
		}
		if n := w.db.Count(t, raw, "SELECT count(*) FROM event WHERE session_id IN (SELECT id FROM session WHERE owner_id = ?)", w.alice.user.ID); n != before["event"] {
			t.Errorf("alice had %d events and has %d", before["event"], n)
		}
		if n := w.db.Count(t, raw, "SELECT count(*) FROM unsent WHERE owner_id = ?", w.alice.user.ID); n != before["unsent"] {
			t.Errorf("alice had %d unsent texts and has %d", before["unsent"], n)
		}
	})
}

// checkClosed asks without a sign-in.
func (w *world) checkClosed(t *testing.T, r route, th things, api bool) {
	t.Helper()
	a := w.do(t, r.method, th.fill(r.path), plausible(r)...)
	switch {
	case api:
		a.wantProblem(t, http.StatusUnauthorized, "unauthenticated")
		if a.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s %s: no WWW-Authenticate", r.method, r.path)
		}
		w.do(t, r.method, th.fill(r.path), append(plausible(r), bearer("hft_wrong"), browser(w.alice))...).wantProblem(t, http.StatusUnauthorized, "bad-token")
	case a.status == http.StatusUnauthorized && r.method == post && (bytes.Contains(a.body, []byte(`data-testid="draft-kept"`)) || bytes.Contains(a.body, []byte(`data-testid="not-recorded"`))):
		// What was written is given back with the sign-in form, and what was not done is said.
	case a.status != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), "/login"):
		t.Errorf("%s %s without a sign-in: got %d to %q, want 303 to /login", r.method, r.path, a.status, a.header.Get("Location"))
	}
}

// checkForeign asks for what is another owner's.
func (w *world) checkForeign(t *testing.T, r route, th things, api bool, sign option) {
	t.Helper()
	name := r.method + " " + r.path
	bodies := [][]option{plausible(r)}
	if api {
		bodies = append(bodies, nil)
	}
	for _, body := range bodies {
		a := w.do(t, r.method, th.fill(r.path), append(body, sign)...)
		if strings.Contains(r.path, ":") {
			if a.status != http.StatusNotFound {
				t.Errorf("%s of another owner: got %d %s, want 404", name, a.status, a.body)
			}
			none := w.do(t, r.method, things{"ses_0", "inp_0", "per_0", "call_0", "att_0", "crd_0", "none"}.fill(r.path), append(body, sign)...)
			if a.status != none.status || api && string(problemOf(a)) != string(problemOf(none)) {
				t.Errorf("%s of another owner: %s\ndiffers from nobody's: %s", name, problemOf(a), problemOf(none))
			}
		}
		for _, secret := range []string{th.session, th.prompt, th.request, th.call, th.credential, "A_KEY_OF_ALICE", "a-value-of-alice", "a private plan"} {
			if strings.Contains(string(a.body), secret) {
				t.Errorf("%s shows %q to another owner", name, secret)
			}
		}
	}
}

// problemOf is a problem document without what differs in every answer.
func problemOf(a answer) []byte {
	s := string(a.body)
	if i := strings.Index(s, `"request_id":"`); i >= 0 {
		j := i + len(`"request_id":"`)
		s = s[:j] + s[j+strings.IndexByte(s[j:], '"'):]
	}
	return []byte(s)
}

func TestTokenScopes(t *testing.T) {
	// proves PER-7
	onEach(t, func(t *testing.T, w *world) {
		for _, scope := range []store.Scope{store.ScopeRead, store.ScopePrompt, store.ScopeAll} {
			secret, _ := w.newToken(t, w.alice.user.ID, scope)
			for _, r := range w.srv.apiRoutes() {
				if r.access == public {
					continue
				}
				person := strings.HasSuffix(r.path, "/decision") || strings.HasSuffix(r.path, "/resolution")
				may := scope == store.ScopeAll || r.method == get || (scope == store.ScopePrompt && !person)
				th := things{"ses_0", "inp_0", "per_0", "call_0", "att_0", "crd_0", "none"}
				a := w.do(t, r.method, th.fill(r.path), append(plausible(r), bearer(secret))...)
				if may == (a.status == http.StatusForbidden) {
					t.Errorf("%s %s with a token for %s: got %d %s, allowed should be %v", r.method, r.path, scope, a.status, a.body, may)
				}
				if !may {
					a.wantProblem(t, http.StatusForbidden, "token-scope")
				}
			}
		}
	})
}

func TestUnknownAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	for _, path := range []string{"/api/v1/nothing", "/api/v1/rules", "/api/v1/grants", "/api/v2/sessions", "/api/", "/api/V1/sessions"} {
		w.do(t, get, path, as(w.alice)).wantProblem(t, http.StatusNotFound, "not_found")
	}
	a := w.do(t, http.MethodPut, "/api/v1/sessions", as(w.alice))
	a.wantProblem(t, http.StatusMethodNotAllowed, "method-not-allowed")
	if allow := a.header.Get("Allow"); !strings.Contains(allow, "GET") || !strings.Contains(allow, "POST") {
		t.Errorf("got Allow: %q", allow)
	}
	// A method that HTTP doesn't know is refused alike, and as carefully.
	a = w.do(t, "BREW", "/api/v1/sessions", as(w.alice))
	a.wantProblem(t, http.StatusMethodNotAllowed, "method-not-allowed")
	if allow := a.header.Get("Allow"); !strings.Contains(allow, "GET") || !strings.Contains(allow, "POST") || a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("got the headers %v", a.header)
	}
	w.do(t, "BREW", "/api/v1/nothing", as(w.alice)).wantProblem(t, http.StatusNotFound, "not_found")
	w.do(t, "BREW", "/api/v1/sessions", as(w.alice), header("Origin", "https://evil.test")).wantProblem(t, http.StatusForbidden, "cross-site")
	a = w.do(t, get, "/nothing-here", browser(w.alice))
	if a.status != http.StatusNotFound || strings.Contains(a.header.Get("Content-Type"), "json") {
		t.Errorf("a page that isn't there: got %d %s", a.status, a.header.Get("Content-Type"))
	}
}

// Who opens an address that only forms are sent to is told what it is, and led to the
// page with the form: by the table of routes, so that none is left out.
func TestPages_OpenedWhereFormsAreSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	b := w.tab(t, w.alice)
	opened := map[string]bool{}
	for _, r := range w.srv.pageRoutes() {
		opened[r.path] = opened[r.path] || r.method == get
	}
	th := things{"ses_0", "inp_0", "per_0", "call_0", "att_0", "crd_0", "none"}
	for _, r := range w.srv.pageRoutes() {
		if r.method == get || opened[r.path] {
			continue
		}
		path := th.fill(r.path)
		b.open(path).page().want(http.StatusMethodNotAllowed, "This address only takes what a form sends to it. Opening it did nothing")
		link := b.doc.Find(`[data-testid="failure"] a:contains("To the page with the form")`)
		if form := formAt(path); form != nil && link.AttrOr("href", "") != form.at(path) {
			t.Errorf("%s leads to %q", path, link.AttrOr("href", ""))
		}
	}
	if b.open("/sessions").status != http.StatusSeeOther || b.header.Get("Location") != "/" {
		t.Errorf("/sessions answers %d, to %q", b.status, b.header.Get("Location"))
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	id := w.session(t, w.alice)
	for _, r := range w.srv.apiRoutes() {
		if r.method != get || strings.Contains(r.path, ":key") || strings.Contains(r.path, "/calls/") {
			continue
		}
		for _, accept := range []string{"application/json", "text/event-stream"} {
			a := w.do(t, http.MethodHead, things{session: id}.fill(r.path), as(w.alice), header("Accept", accept))
			if a.status != http.StatusOK || len(a.body) != 0 {
				t.Errorf("HEAD %s: got %d with %d bytes", r.path, a.status, len(a.body))
			}
		}
	}
}

// A page takes no token: not from a client of HTTP/1.0 either, which names no host.
func TestPagesTakeNoToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	w.serve(t)
	for _, host := range []string{"Host: holdfast.test\r\n", ""} {
		var d net.Dialer
		conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(w.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "GET /needs-you HTTP/1.0\r\n%sAuthorization: Bearer %s\r\n\r\n", host, w.alice.token); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if a := readAnswer(t, res); a.status != http.StatusSeeOther || a.header.Get("Location") != "/login?next=%2Fneeds-you" {
			t.Errorf("with %q: got %d to %q, want the sign-in page", host, a.status, a.header.Get("Location"))
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}
