package handlers

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// tab is a browser without scripts: it keeps its cookie, and sends forms as they stand.
type tab struct {
	t      *testing.T
	w      *world
	cookie string
	path   string
	status int
	doc    *goquery.Document
	header http.Header
}

// newEmptyWorld is a server that nobody can sign in to yet.
func newEmptyWorld(t *testing.T, db *storetest.DB) *world {
	t.Helper()
	w := &world{db: db, store: db.Open(t), log: &logBuffer{}}
	w.srv = New(Options{
		Store: w.store, Logger: slog.New(slog.NewJSONHandler(w.log, nil)),
		Prepare: func(_ context.Context, path string) (string, string, error) { return path, "wsp_1", nil },
	})
	return w
}

func (w *world) tab(t *testing.T, p person) *tab {
	t.Helper()
	return &tab{t: t, w: w, cookie: p.cookie}
}

func (b *tab) take(path string, a answer) *tab {
	b.t.Helper()
	b.path, b.status, b.header = path, a.status, a.header
	for _, line := range a.header.Values("Set-Cookie") {
		if c, err := http.ParseSetCookie(line); err == nil && c.Name == cookieName {
			b.cookie = c.Value
		}
	}
	doc, err := goquery.NewDocumentFromReader(bytes.NewReader(a.body))
	if err != nil {
		b.t.Fatal(err)
	}
	b.doc = doc
	return b
}

// open loads a page.
func (b *tab) open(path string) *tab {
	b.t.Helper()
	bare, _, _ := strings.Cut(path, "#")
	return b.take(path, b.w.do(b.t, get, bare, browser(person{cookie: b.cookie})))
}

// post sends a body and stays at the answer.
func (b *tab) post(path string, body url.Values) *tab {
	b.t.Helper()
	return b.take(path, b.w.do(b.t, post, path, browser(person{cookie: b.cookie}), header("Sec-Fetch-Site", "same-origin"), sendsForm(body.Encode())))
}

// fields are what a form sends as it stands, with others put in their place.
func (b *tab) fields(selector string, with url.Values) (action string, body url.Values) {
	b.t.Helper()
	form := b.doc.Find(selector)
	if form.Length() != 1 {
		b.t.Fatalf("%s: %d forms %s in\n%s", b.path, form.Length(), selector, b.main())
	}
	body = url.Values{}
	form.Find("input[name], textarea[name], select[name]").Not("[disabled]").Each(func(_ int, f *goquery.Selection) {
		name, value := f.AttrOr("name", ""), f.AttrOr("value", "")
		switch _, checked := f.Attr("checked"); {
		case goquery.NodeName(f) == "textarea":
			value = f.Text()
		case goquery.NodeName(f) == "select":
			value = f.Find("option[selected]").AttrOr("value", f.Find("option").First().AttrOr("value", ""))
		case f.AttrOr("type", "") == "radio" && !checked:
			return
		}
		body.Add(name, value)
	})
	for name, values := range with {
		body[name] = values
	}
	return form.AttrOr("action", b.path), body
}

// submit sends a form and stays at the answer.
func (b *tab) submit(selector string, with url.Values) *tab {
	b.t.Helper()
	action, body := b.fields(selector, with)
	return b.post(action, body)
}

// follow goes where a 303 leads.
func (b *tab) follow() *tab {
	b.t.Helper()
	if b.status != http.StatusSeeOther {
		b.t.Fatalf("%s: got %d, want 303\n%s", b.path, b.status, b.main())
	}
	return b.open(b.header.Get("Location"))
}

// main is the text of the page's main part.
func (b *tab) main() string { return squeeze(b.doc.Find("main").Text()) }

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// find is the text under a test id.
func (b *tab) find(id string) string { return squeeze(b.doc.Find(`[data-testid="` + id + `"]`).Text()) }

// state is what the register says of the execution.
func (b *tab) state() string {
	return b.doc.Find(`[data-testid="reading-execution"]`).AttrOr("data-state", "")
}

// want fails unless the page has the status and, in its main part, the texts.
func (b *tab) want(status int, texts ...string) *tab {
	b.t.Helper()
	if b.status != status {
		b.t.Fatalf("%s: got %d, want %d\n%s", b.path, b.status, status, b.main())
	}
	for _, text := range texts {
		if !strings.Contains(b.main(), text) {
			b.t.Errorf("%s doesn't say %q:\n%s", b.path, text, b.main())
		}
	}
	return b
}

func (b *tab) wantState(state journal.ExecutionState) *tab {
	b.t.Helper()
	if b.want(http.StatusOK).state() != string(state) {
		b.t.Fatalf("%s: the session is %q, want %q", b.path, b.state(), state)
	}
	return b
}

// page fails unless a page is whole: one of each landmark, one h1, no id twice, a name for
// every field, no script but our files, no inline style, a key in every form that changes something.
func (b *tab) page() *tab {
	b.t.Helper()
	if got := b.header.Get("Content-Type"); got != "text/html; charset=utf-8" {
		b.t.Errorf("%s is %q", b.path, got)
	}
	for selector, n := range map[string]int{"body > header": 1, "main": 1, "body > footer": 1, "h1": 1, "html[lang=en]": 1, "title": 1, "a.skip[href='#main']": 1, "script:not([src^='/static/'][defer]), script:not(:empty)": 0, "[style], style": 0, "[onclick], [onload], [onerror]": 0, "footer a[href='/help']": 1, "link[rel=stylesheet]": 1} {
		if got := b.doc.Find(selector).Length(); got != n {
			b.t.Errorf("%s has %d %s, want %d", b.path, got, selector, n)
		}
	}
	seen := map[string]bool{}
	b.doc.Find("[id]").Each(func(_ int, s *goquery.Selection) {
		id := s.AttrOr("id", "")
		if seen[id] {
			b.t.Errorf("%s has the id %q twice", b.path, id)
		}
		seen[id] = true
	})
	b.doc.Find("input:not([type=hidden]), textarea, select").Each(func(_ int, s *goquery.Selection) {
		if id := s.AttrOr("id", ""); id == "" || b.doc.Find("label[for='"+id+"']").Length() != 1 {
			b.t.Errorf("%s: a field without a label: %q", b.path, s.AttrOr("name", ""))
		}
	})
	b.doc.Find("form[method=post]").Each(func(_ int, s *goquery.Selection) {
		if len(s.Find("input[name=idempotency_key]").AttrOr("value", "")) < 20 {
			b.t.Errorf("%s: a form without a key: %s", b.path, s.AttrOr("action", ""))
		}
	})
	b.doc.Find("[aria-labelledby], [aria-describedby]").Each(func(_ int, s *goquery.Selection) {
		for _, id := range strings.Fields(s.AttrOr("aria-labelledby", "") + " " + s.AttrOr("aria-describedby", "")) {
			if !seen[id] {
				b.t.Errorf("%s refers to the id %q, which isn't there", b.path, id)
			}
		}
	})
	return b
}

// agent plays the part of a runner in a session of the owner's.
type agent struct {
	t *testing.T
	w *world
	storetest.Run
}

// start makes a session with a prompt, claims it and promotes the prompt.
func (w *world) start(t *testing.T, p person, text string) *agent {
	t.Helper()
	s, _, err := w.store.CreateSession(t.Context(), p.user.ID, store.NewSecret(), store.NewSession{
		Title: "Deploy the shop", Agent: runbook, Workspace: "/srv/shop", WorkspaceID: "wsp_1", Preset: "ask_writes",
		Prompt: &store.PromptInput{Text: text, Delivery: journal.Queue},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w.pickUp(t, p, s.ID)
}

// pickUp claims a session that has work and promotes what waits, as a runner does.
func (w *world) pickUp(t *testing.T, p person, session string) *agent {
	t.Helper()
	a := &agent{t: t, w: w, Run: storetest.Run{Owner: p.user.ID, Session: session, Worker: "w1"}}
	a.Claim = storetest.MustClaim(t, w.store, session, a.Worker)
	st := storetest.MustState(t, w.store, session)
	if st.TurnOpen() {
		a.Turn = st.Turn.ID
		return a
	}
	a.Turn = storetest.MustPromote(t, w.store, a.Claim)
	return a
}

func (a *agent) ask(command string) (call, request string) {
	a.t.Helper()
	call, request = store.NewID("call"), store.NewID("per")
	storetest.MustAppend(a.t, a.w.store, a.Claim, "", a.propose(call, command))
	meta, err := journal.Encode(map[string]any{"tool": "shell", "command": command, "command_bytes": len(command), "directory": "/srv/shop"})
	if err != nil {
		a.t.Fatal(err)
	}
	storetest.MustAppend(a.t, a.w.store, a.Claim, journal.PhaseSafe, &journal.PermissionAsked{
		ID: request, Tool: journal.ToolRef{CallID: call}, Permission: "shell", Resources: []string{command}, Always: []string{}, Digest: "digest-of-" + request, Metadata: meta,
	})
	a.park()
	return call, request
}

func (a *agent) propose(call, command string) *journal.CallProposed {
	a.t.Helper()
	in, err := journal.Encode(map[string]string{"command": command, "shell": "sh"})
	if err != nil {
		a.t.Fatal(err)
	}
	return &journal.CallProposed{CallID: call, TurnID: a.Turn, Key: call, Tool: "shell", Input: in, InputSHA256: journal.Hash(command), Effect: journal.EffectEffect}
}

func (a *agent) park() {
	a.t.Helper()
	head, _, err := a.w.store.Head(a.t.Context(), a.Owner, a.Session)
	if err != nil {
		a.t.Fatal(err)
	}
	if ok, err := a.w.store.Release(a.t.Context(), a.Claim, head); err != nil || !ok {
		a.t.Fatalf("park: %v, %v", ok, err)
	}
}

func (a *agent) end(e journal.TurnEnded) {
	a.t.Helper()
	if _, _, err := a.w.store.EndTurn(a.t.Context(), a.Claim, store.EndTurn{End: e, Actor: journal.Agent()}); err != nil {
		a.t.Fatal(err)
	}
}
