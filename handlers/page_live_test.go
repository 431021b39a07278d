package handlers

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
	"holdfast/views/components"
)

func fragment(t *testing.T, html string) *goquery.Document {
	t.Helper()
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(html))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// rows are the seqs of the rows in a fragment, in order.
func rows(doc *goquery.Document) []int64 {
	var out []int64
	doc.Find("li[data-seq]").Each(func(_ int, li *goquery.Selection) {
		n, err := strconv.ParseInt(li.AttrOr("data-seq", ""), 10, 64)
		if err == nil && li.AttrOr("id", "") == "j-"+strconv.FormatInt(n, 10) {
			out = append(out, n)
		}
	})
	return out
}

// proves RDR-1 RDR-2 RDR-4
func TestPageStream_RowsOnceInOrder(t *testing.T) {
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		w := newWorld(t, db)
		w.serve(t)
		r := w.run(t, w.alice)
		last := int64(len(storetest.Events(t, w.store, r.Session)))
		s := w.openAt(t, "/sessions/"+r.Session+"/stream?after=1", browser(w.alice))
		for seq := int64(2); seq <= last; seq++ {
			m := s.event()
			if m.event != "row" || m.id != strconv.FormatInt(seq, 10) {
				t.Fatalf("got %s %s, want row %d", m.event, m.id, seq)
			}
			doc := fragment(t, m.data)
			if got := rows(doc); len(got) != 1 || got[0] != seq {
				t.Errorf("row %d holds %v", seq, got)
			}
			if parts := doc.Find("[hx-swap-oob]").Length(); (parts > 5) != (seq == last) {
				t.Errorf("row %d of %d carries %d parts", seq, last, parts)
			}
		}
		storetest.MustAppend(t, w.store, r.Claim, "", &journal.StepStarted{TurnID: r.Turn, Step: journal.Step{Name: hostile, Index: 1, Of: 1}})
		m := s.event()
		doc := fragment(t, m.data)
		if m.id != strconv.FormatInt(last+1, 10) || doc.Find("script, img").Length() != 0 || !strings.Contains(doc.Find("li h3").Text(), "<script>") {
			t.Errorf("got %s: %s", m.id, m.data)
		}
	})
}

func TestPageStream_Refused(t *testing.T) {
	// proves OWN-1 OWN-2
	w := newWorld(t, storetest.New(t, "sqlite"))
	id := w.session(t, w.alice)
	path := "/sessions/" + id + "/stream"
	if a := w.do(t, get, path, browser(w.mallory)); a.status != http.StatusNotFound {
		t.Errorf("another owner got %d", a.status)
	}
	if a := w.do(t, get, path+"?after=99", browser(w.alice)); a.status != http.StatusBadRequest {
		t.Errorf("a cursor beyond the head got %d", a.status)
	}
	if a := w.do(t, get, path, header("HX-Request", "true")); a.status != http.StatusUnauthorized {
		t.Errorf("nobody got %d", a.status)
	}
}

// A page that was away asks for what it missed, and gets the same rows and parts.
func TestPageParts(t *testing.T) {
	// proves RDR-1 RDR-4 RDR-6
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		w := newWorld(t, db)
		r := w.run(t, w.alice)
		for range 30 {
			storetest.MustAppend(t, w.store, r.Claim, "", &journal.PlanUpdated{}, &journal.PlanUpdated{})
		}
		_, request := r.MustAsk(t, w.store)
		last := int64(len(storetest.Events(t, w.store, r.Session)))
		ask := func(query string) (*goquery.Document, answer) {
			a := w.do(t, get, "/sessions/"+r.Session+query, browser(w.alice), header("HX-Request", "true"))
			if a.status != http.StatusOK || a.header.Get(headHeader) != strconv.FormatInt(last, 10) {
				t.Fatalf("%s: got %d, head %q", query, a.status, a.header.Get(headHeader))
			}
			return fragment(t, string(a.body)), a
		}
		doc, _ := ask("?after=3")
		got := rows(doc)
		if int64(len(got)) != last-3 || got[0] != 4 || got[len(got)-1] != last {
			t.Errorf("after 3 came %v", got)
		}
		for _, id := range []string{"reading-execution", "reading-needs", "register-act", "needs-list", "queue-box", "composer-key", "deliveries", "plan", "unasked", "facts", "nav-count", "page-state", "trace"} {
			if doc.Find("#"+id+"[hx-swap-oob]").Length() != 1 {
				t.Errorf("the part %s is missing", id)
			}
		}
		if doc.Find("#"+request).Length() != 1 || !strings.Contains(doc.Find("#page-state").AttrOr("data-title", ""), "(1) Decision needed") {
			t.Error("the request isn't among the parts")
		}
		doc, _ = ask("?before=20")
		if got := rows(doc); len(got) != 19 || got[0] != 1 || got[18] != 19 || doc.Find("#earlier a").Length() != 0 {
			t.Errorf("before 20 came %v", got)
		}
		doc, _ = ask("?before=60")
		if got := rows(doc); len(got) != windowSize || got[len(got)-1] != 59 || doc.Find("#earlier a").AttrOr("href", "") != "/sessions/"+r.Session+"?before=10#journal" {
			t.Errorf("before 60 came %v", got)
		}
		doc, a := ask("?notice=recorded&seq=2")
		if len(rows(doc)) != 0 || a.header.Get("X-Holdfast-Said") != "Recorded as entry #0002: your message." {
			t.Errorf("after a form: %v, %q", rows(doc), a.header.Get("X-Holdfast-Said"))
		}
	})
}

func TestUnsent_FormsAndRestore(t *testing.T) {
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		w := newWorld(t, db)
		id := w.session(t, w.alice)
		b := w.tab(t, w.alice)
		b.open("/sessions/"+id).page().submit(`[data-testid="composer"]`, vals("text", "not yet"))
		storetest.MustState(t, w.store, id)
		b.open("/sessions/" + id)
		_, fields := b.fields(`[data-testid="composer"]`, vals("text", "half a thought\n</textarea><b>x"))
		if b.post("/sessions/"+id+"/unsent", fields).status != http.StatusSeeOther {
			t.Fatalf("got %d", b.status)
		}
		b.follow().page().want(http.StatusOK, "Your text is kept. It was not sent.")
		_, fields = b.fields(`[data-testid="composer"]`, nil)
		if got := strings.ReplaceAll(fields.Get("text"), "\r\n", "\n"); strings.TrimPrefix(got, "\n") != "half a thought\n</textarea><b>x" {
			t.Errorf("the composer holds %q", got)
		}
		other := w.tab(t, w.mallory)
		fields.Del("for")
		if other.post("/sessions/"+id+"/unsent", fields).status != http.StatusNotFound {
			t.Errorf("another owner got %d", other.status)
		}
		b.submit(`[data-testid="composer"]`, vals("delivery", "queue")).follow().page()
		_, fields = b.fields(`[data-testid="composer"]`, nil)
		if strings.TrimSpace(fields.Get("text")) != "" {
			t.Errorf("sent, and still kept: %q", fields.Get("text"))
		}
	})
}

// What one tab sends or empties isn't what another one keeps.
func TestUnsent_OfTwoTabs(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		session := "/sessions/" + w.session(t, w.alice)
		for _, at := range []struct{ page, keep, form, field string }{
			{session, session + "/unsent", `[data-testid="composer"]`, "text"},
			{"/sessions/new", "/sessions/new/unsent", `[data-testid="new-session-form"]`, "prompt"},
		} {
			send := func(text string) map[string][]string {
				return vals(at.field, text, "delivery", "queue", "workspace", "/srv/x")
			}
			open := func() *tab { return w.tab(t, w.alice).open(at.page).page() }
			keeps := func(b *tab, text string) {
				t.Helper()
				_, fields := b.fields(at.form, vals(at.field, text))
				b.post(at.keep, fields).want(http.StatusSeeOther)
			}
			want := func(text string) {
				t.Helper()
				if got := open().doc.Find("[data-unsent]").Text(); strings.TrimPrefix(got, "\n") != text {
					t.Errorf("%s: %q is kept, want %q", at.page, got, text)
				}
			}
			one, two := open(), open()
			_, oneForm := one.fields(at.form, nil)
			keeps(one, "half a thought")
			keeps(two, "")
			want("half a thought")
			two.open(at.page).submit(at.form, send("half a thought")) // drawn with it, so this is it
			want("")

			oneForm.Set(at.field, "half a thought, and more")
			one.post(at.keep, oneForm).want(http.StatusSeeOther)
			two = open()
			oneForm.Set(at.field, "half a thought, more, and more")
			one.post(at.keep, oneForm)
			two.submit(at.form, send("half a thought, and more")).want(http.StatusSeeOther)
			want("half a thought, more, and more")
			_, fields := two.open(at.page).fields(at.form, send("something else")) // by a tab that never had it
			fields.Del("kept_at")
			two.post(map[bool]string{true: "/sessions", false: session + "/prompts"}[at.field == "prompt"], fields).want(http.StatusSeeOther)
			want("half a thought, more, and more")

			// What a refused form was drawn with goes along when it is sent again.
			two.open(at.page).submit(at.form, vals("idempotency_key", "no key", at.field, "half a thought, more, and more", "workspace", "/srv/x", "delivery", "queue")).page().want(http.StatusBadRequest)
			two.submit(`[data-testid="resend-form"]`, nil).want(http.StatusSeeOther)
			want("")
		}
	})
}

// A text that another tab or device keeps is replaced only by who says so, and is
// shown to them then, once.
func TestUnsent_KeptElsewhere(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		session := "/sessions/" + w.session(t, w.alice)
		for _, at := range []struct{ page, keep, form, field string }{
			{session, session + "/unsent", `[data-testid="composer"]`, "text"},
			{"/sessions/new", "/sessions/new/unsent", `[data-testid="new-session-form"]`, "prompt"},
		} {
			open := func() *tab { return w.tab(t, w.alice).open(at.page).page() }
			saves := func(b *tab, text string, script bool, with ...string) answer {
				t.Helper()
				_, fields := b.fields(at.form, vals(append(with, at.field, text)...))
				opts := []option{browser(w.alice), sendsForm(fields.Encode())}
				if script {
					opts = append(opts, header("HX-Request", "true"))
				}
				return w.do(t, post, at.keep, opts...)
			}
			kept := func(want string) {
				t.Helper()
				b := open()
				if got := b.doc.Find("[data-unsent]").Text(); strings.TrimPrefix(got, "\n") != want || b.doc.Find(`[data-testid="unsent-replaced"]`).Length() != 0 {
					t.Errorf("%s: %q is kept, want %q, and nothing told of another", at.page, got, want)
				}
			}
			one, two := open(), open()
			first := saves(one, "DRAFT-A", true, "typing", "1")
			if first.status != http.StatusNoContent {
				t.Fatalf("%s: got %d", at.page, first.status)
			}
			version := first.header.Get("X-Holdfast-Kept")
			for _, typing := range []string{"1", "again"} {
				a := saves(two, "DRAFT-B", true, "typing", typing)
				if a.status != http.StatusConflict || a.header.Get("X-Holdfast-Kept") != version {
					t.Errorf("%s: a save over another's text got %d and version %q, want 409 and %q", at.page, a.status, a.header.Get("X-Holdfast-Kept"), version)
				}
			}
			kept("DRAFT-A")
			if a := saves(two, "DRAFT-B", true, "typing", "1", "kept_at", version); a.status != http.StatusNoContent {
				t.Errorf("%s: who has seen it got %d", at.page, a.status)
			}
			kept("DRAFT-B")

			// By the button of a page with a script, then of one without.
			a := saves(one, "DRAFT-A <b>", true)
			if a.status != http.StatusOK || a.header.Get("X-Holdfast-Kept") == "" || !strings.Contains(string(a.body), "DRAFT-B") || strings.Contains(string(a.body), "<html") {
				t.Errorf("%s: got %d: %s", at.page, a.status, a.body)
			}
			kept("DRAFT-A <b>")
			_, fields := two.fields(at.form, vals(at.field, "DRAFT-C", "workspace", "/srv/shop", "steps", "7"))
			two.post(at.keep, fields).page().want(http.StatusOK, "Your text is kept. It was not sent.", "replaced another text")
			box := two.doc.Find(`[data-testid="unsent-replaced"] details pre`)
			if got := strings.TrimPrefix(box.Text(), "\n"); got != "DRAFT-A <b>" {
				t.Errorf("%s: the page shows %q as replaced", at.page, got)
			}
			_, fields = two.fields(at.form, nil)
			if got := strings.TrimPrefix(fields.Get(at.field), "\n"); got != "DRAFT-C" || fields.Get("kept_at") == "" {
				t.Errorf("%s: its field holds %q, drawn with version %q", at.page, got, fields.Get("kept_at"))
			}
			if at.field == "prompt" && (fields.Get("workspace") != "/srv/shop" || fields.Get("steps") != "7") {
				t.Errorf("what else was typed is gone: %v", fields)
			}
			kept("DRAFT-C")
			two.post(at.keep, fields).want(http.StatusSeeOther) // it replaces nothing now
			two.follow().submit(at.form, vals("delivery", "queue", "workspace", "/srv/x")).want(http.StatusSeeOther)
			kept("")
		}
	})
}

// A text that was kept isn't lost with the end of its session: the closed session's
// page shows it, and one that another save replaced. It can be brought to the form for
// a new session, and stays until its writer discards it.
func TestUnsent_ShownAfterArchive(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		page := "/sessions/" + w.session(t, w.alice)
		open := func() *tab { return w.tab(t, w.alice).open(page).page() }
		shown := func(b *tab, want string) {
			t.Helper()
			if got := strings.TrimPrefix(b.doc.Find(`[data-testid="unsent-closed"] textarea[readonly]`).Text(), "\n"); got != want {
				t.Errorf("the page shows %q, want %q", got, want)
			}
		}
		one, two := open(), open()
		_, form := one.fields(`[data-testid="composer"]`, vals("text", "DRAFT-A\n<b>"))
		one.post(page+"/unsent", form).want(http.StatusSeeOther)
		_, form = two.fields(`[data-testid="composer"]`, vals("text", "DRAFT-B"))
		two.open(page).submit(`[data-testid="archive"] form`, nil).want(http.StatusSeeOther)
		shown(two.follow().page().want(http.StatusOK, "takes no messages", "was not sent"), "DRAFT-A\n<b>")

		// From a form that had been opened before, and hadn't seen it.
		two.post(page+"/unsent", form).page().want(http.StatusOK, "Your text is kept. It was not sent.", "replaced another text")
		if got := two.doc.Find(`[data-testid="unsent-replaced"] details pre`).Text(); strings.TrimPrefix(got, "\n") != "DRAFT-A\n<b>" {
			t.Errorf("the page shows %q as replaced", got)
		}
		shown(two, "DRAFT-B")
		shown(open(), "DRAFT-B")

		two.submit(`[data-testid="unsent-closed"] form[action="/sessions/new/unsent"]`, nil).want(http.StatusSeeOther)
		_, fields := two.follow().page().fields(`[data-testid="new-session-form"]`, nil)
		if got := strings.TrimPrefix(fields.Get("prompt"), "\n"); got != "DRAFT-B" {
			t.Errorf("the form for a new session holds %q", got)
		}
		_, fields = w.tab(t, w.alice).open("/sessions/new").page().fields(`[data-testid="new-session-form"]`, vals("prompt", "ANOTHER", "agent", "runbook"))
		two.post("/sessions/new/unsent", fields).want(http.StatusSeeOther)
		two = open().submit(`[data-testid="unsent-closed"] form[action="/sessions/new/unsent"]`, nil).page().want(http.StatusOK, "ANOTHER")
		_, fields = two.fields(`[data-testid="new-session-form"]`, nil)
		if fields.Get("agent") == "" || fields.Get("workspace") == "" || fields.Get("preset") == "" {
			t.Errorf("a text that was brought leaves its form without choices: %v", fields)
		}

		two = open()
		shown(two, "DRAFT-B")
		two.submit(`[data-testid="unsent-closed"] form[action$="/unsent"]:not([action="/sessions/new/unsent"])`, nil).want(http.StatusSeeOther)
		two.follow().page().want(http.StatusOK, "takes no messages", "is kept here")
		if two.doc.Find(`[data-testid="unsent-closed"]`).Length() != 0 {
			t.Error("what was discarded is shown")
		}
	})
}

// Who goes back to a form that was sent and writes something else has it kept, and
// is told so; the text that was sent isn't. A script's save that comes late keeps nothing.
//
// proves ADM-2
func TestUnsent_BackToASentForm(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		session := "/sessions/" + w.session(t, w.alice)
		for _, at := range []struct{ page, keep, send, form, field string }{
			{session, session + "/unsent", session + "/prompts", `[data-testid="composer"]`, "text"},
			{"/sessions/new", "/sessions/new/unsent", "/sessions", `[data-testid="new-session-form"]`, "prompt"},
		} {
			b := w.tab(t, w.alice)
			_, fields := b.open(at.page).page().fields(at.form, vals(at.field, "build\r\nit", "delivery", "queue", "workspace", "/srv/x"))
			b.post(at.send, fields).want(http.StatusSeeOther)
			b.post(at.keep, fields).want(http.StatusSeeOther)
			b.follow().page().want(http.StatusOK)
			if got := b.doc.Find("[data-unsent]").Text(); strings.TrimSpace(got) != "" || b.doc.Find(`[data-testid="notice"]`).Length() != 0 {
				t.Errorf("%s: sent, and %q is kept", at.page, got)
			}
			fields.Set(at.field, "build\r\nit, and test")
			fields.Set("typing", "1")
			b.post(at.keep, fields).want(http.StatusSeeOther)
			if got := b.open(at.page).doc.Find("[data-unsent]").Text(); strings.TrimSpace(got) != "" {
				t.Errorf("%s: a late save kept %q", at.page, got)
			}
			fields.Del("typing")
			b.post(at.keep, fields).want(http.StatusSeeOther)
			b.follow().page().want(http.StatusOK, "Your text is kept. It was not sent.")
			if got := b.doc.Find("[data-unsent]").Text(); strings.TrimPrefix(got, "\n") != "build\nit, and test" {
				t.Errorf("%s: %q is kept", at.page, got)
			}
			b.submit(at.form, vals("delivery", "queue", "workspace", "/srv/x")).want(http.StatusSeeOther)
			if got := b.open(at.page).doc.Find("[data-unsent]").Text(); strings.TrimSpace(got) != "" {
				t.Errorf("%s: sent, and still kept: %q", at.page, got)
			}
		}
	})
}

// A page that one person left open is no other person's, who signs in on the same browser.
//
// proves OWN-1 OWN-2
func TestForms_DrawnForAnother(t *testing.T) {
	w := newWorld(t, storetest.New(t, "sqlite"))
	alice, mallory := w.tab(t, w.alice), w.tab(t, w.mallory)
	_, fields := alice.open("/sessions/new").fields(`[data-testid="new-session-form"]`, vals("prompt", "the plan of alice", "workspace", "/srv/x"))
	if fields.Get("for") != w.alice.user.ID {
		t.Fatalf("the form says it is for %q", fields.Get("for"))
	}
	for _, path := range []string{"/sessions", "/sessions/new/unsent", "/settings", "/logout"} {
		mallory.post(path, fields).page().want(http.StatusConflict, "Somebody else is signed in now", "Nothing was recorded")
	}
	kept, err := w.store.Unsent(t.Context(), w.mallory.user.ID, store.NewMission)
	list, _, lerr := w.store.Sessions(t.Context(), w.mallory.user.ID, store.SessionQuery{})
	if err != nil || lerr != nil || kept.Text != "" || len(list) != 0 {
		t.Errorf("mallory has %q and %d sessions, %v %v", kept.Text, len(list), err, lerr)
	}
	alice.post("/sessions", fields).follow().page().want(http.StatusOK, "the plan of alice")
}

// What one person typed is in no answer to another, whichever form it was and
// however it is refused.
//
// proves OWN-1
func TestForms_OfAnotherAreNotShown(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		const secret = "the-plan-of-alice"
		mine, theirs := w.things(t, w.mallory), w.things(t, w.alice)
		fields := vals("for", w.alice.user.ID, "idempotency_key", newKey(), "delivery", "queue", "reply", "once", "outcome", "happened", "then", "stay", "steps", "many")
		for _, name := range []string{"text", "prompt", "message", "evidence", "workspace", "wall_h", "theme", "digest"} {
			fields.Set(name, secret)
		}
		refusals := map[string][]option{
			"plain": {header("Sec-Fetch-Site", "same-origin")}, "in place": {header("HX-Request", "true")},
			"cross-site": {header("Sec-Fetch-Site", "cross-site")},
		}
		for _, r := range w.srv.pageRoutes() {
			if r.method != post || r.access != owner {
				continue
			}
			for _, th := range []things{mine, theirs} {
				for name, how := range refusals {
					a := w.do(t, post, th.fill(r.path), append([]option{browser(w.mallory), sendsForm(fields.Encode())}, how...)...)
					if strings.Contains(string(a.body), secret) {
						t.Errorf("%s, %s: %d shows what alice typed", r.path, name, a.status)
					}
					if (name == "plain" || name == "in place") && (a.status != http.StatusConflict || !strings.Contains(string(a.body), "is not shown")) {
						t.Errorf("%s, %s: got %d, want 409", r.path, name, a.status)
					}
				}
			}
		}
	})
}

func TestUnsent_NewMission(t *testing.T) {
	w := newWorld(t, storetest.New(t, "sqlite"))
	b := w.tab(t, w.alice)
	b.open("/sessions/new").page()
	_, fields := b.fields(`[data-testid="new-session-form"]`, vals("prompt", "a long mission", "workspace", "/srv/x"))
	if b.post("/sessions/new/unsent", fields).status != http.StatusSeeOther {
		t.Fatalf("got %d", b.status)
	}
	b.follow().page().want(http.StatusOK, "Your text is kept. It was not sent.", "It is never sent by itself")
	_, fields = b.fields(`[data-testid="new-session-form"]`, vals("workspace", "/srv/x"))
	if strings.TrimSpace(fields.Get("prompt")) != "a long mission" {
		t.Errorf("the form holds %q", fields.Get("prompt"))
	}
	b.post("/sessions", fields).follow().page().want(http.StatusOK, "a long mission")
	_, fields = b.open("/sessions/new").fields(`[data-testid="new-session-form"]`, nil)
	if strings.TrimSpace(fields.Get("prompt")) != "" {
		t.Errorf("sent, and still kept: %q", fields.Get("prompt"))
	}
}

func TestSeen_MarkerAfterTheLastSeenEntry(t *testing.T) {
	w := newWorld(t, storetest.New(t, "sqlite"))
	r := w.run(t, w.alice)
	b := w.tab(t, w.alice)
	seen := func(seq string) int {
		return b.post("/sessions/"+r.Session+"/seen", vals("seq", seq)).status
	}
	if seen("2") != http.StatusNoContent || seen("0") != http.StatusBadRequest || seen("999") != http.StatusBadRequest || seen("x") != http.StatusUnprocessableEntity {
		t.Error("what was seen isn't checked")
	}
	if w.tab(t, w.mallory).post("/sessions/"+r.Session+"/seen", vals("seq", "1")).status != http.StatusNotFound {
		t.Error("another owner may say what was seen")
	}
	p, err := w.store.SessionPage(t.Context(), w.alice.user.ID, r.Session, 0, 50)
	if err != nil || p.Seen.Seq != 2 {
		t.Fatalf("seen %+v, %v", p.Seen, err)
	}
	p.Session.Now = p.Seen.At + awayTime.Milliseconds() - 1
	model, err := w.srv.sessionModel(t.Context(), components.Viewer{ID: w.alice.user.ID}, &p, 0)
	if err != nil {
		t.Fatal(err)
	}
	markAway(&model, &p)
	if model.AwayAfter != 0 {
		t.Error("a marker for somebody who was hardly away")
	}
	p.Session.Now++
	markAway(&model, &p)
	if model.AwayAfter != 2 || model.AwaySince != p.Seen.At {
		t.Errorf("the marker stands after #%d, since %d", model.AwayAfter, model.AwaySince)
	}
}

func TestPulseAndSettings(t *testing.T) {
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		w := newWorld(t, db)
		r := w.run(t, w.alice)
		one, err := w.store.Session(t.Context(), w.alice.user.ID, r.Session)
		if err != nil {
			t.Fatal(err)
		}
		since := strconv.FormatInt(one.UpdatedAt-1, 10)
		a := w.do(t, get, "/pulse?since="+since, browser(w.alice))
		if got := string(a.body); a.status != http.StatusOK || !strings.Contains(got, `"needs":0,"changed":1`) || !strings.Contains(got, "icon-plain") {
			t.Errorf("got %d %s", a.status, got)
		}
		r.MustAsk(t, w.store)
		if got := string(w.do(t, get, "/pulse?since="+since, browser(w.alice)).body); !strings.Contains(got, `"needs":1,`) || !strings.Contains(got, "icon-decision") {
			t.Errorf("got %s", got)
		}
		if got := string(w.do(t, get, "/pulse?since=0", browser(w.mallory)).body); !strings.Contains(got, `"needs":0,"changed":0`) { // proves OWN-1
			t.Errorf("mallory got %s", got)
		}
		b := w.tab(t, w.alice)
		b.open("/settings").page().submit(`[data-testid="settings-form"]`, vals("keys", "off", "theme", "dark", "announce", "off")).follow().page().want(http.StatusOK, "Your settings are saved.")
		if root := b.doc.Find("html"); root.AttrOr("data-theme", "") != "dark" || root.AttrOr("data-keys", "") != "off" {
			t.Error("the page doesn't follow the settings")
		}
		b.submit(`[data-testid="settings-form"]`, vals("theme", "pink")).page().want(http.StatusUnprocessableEntity, "Nothing was changed")
		got, err := w.store.Preferences(t.Context(), w.alice.user.ID)
		if err != nil || got != (store.Preferences{KeysOff: true, Announce: "off", Theme: "dark"}) {
			t.Errorf("kept %+v, %v", got, err)
		}
	})
}
