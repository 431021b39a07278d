package browser

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
)

// plain sends forms as a browser without script does, and stays at the answer.
type plain struct {
	t     *testing.T
	base  string
	http  *http.Client
	doc   *goquery.Document
	forms map[string]bool // what forms post to, of all pages that were opened
}

func (s *server) plain() *plain {
	s.w.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.w.t.Fatal(err)
	}
	return &plain{t: s.w.t, base: s.base, forms: map[string]bool{}, http: &http.Client{
		Jar: jar, Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

var ids = regexp.MustCompile(`/[a-z]+_[0-9a-f]{32}`)

// open reads a page and notes its forms.
func (p *plain) open(path string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.base+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	res, err := p.http.Do(req)
	if err != nil {
		p.t.Fatalf("open %s: %v", path, err)
	}
	defer func() { _ = res.Body.Close() }()
	if p.doc, err = goquery.NewDocumentFromReader(res.Body); err != nil || res.StatusCode != http.StatusOK {
		p.t.Fatalf("%s answered %d %v", path, res.StatusCode, err)
	}
	p.doc.Find("form[method=post]").Each(func(_ int, f *goquery.Selection) {
		p.forms[ids.ReplaceAllString(f.AttrOr("action", path), "/:id")] = true
		if f.Find("input[name=idempotency_key]").AttrOr("value", "") == "" {
			p.t.Errorf("%s: the form for %s has no key", path, f.AttrOr("action", ""))
		}
	})
}

// fields gives what a form sends as it stands, with others in their place.
func (p *plain) fields(selector string, with ...string) (action string, body url.Values) {
	p.t.Helper()
	form := p.doc.Find(selector).First()
	if form.Length() == 0 {
		p.t.Fatalf("there is no form %s", selector)
	}
	body = url.Values{}
	form.Find("input[name], textarea[name], select[name]").Each(func(_ int, f *goquery.Selection) {
		value := f.AttrOr("value", "")
		switch _, checked := f.Attr("checked"); {
		case goquery.NodeName(f) == "textarea":
			value = f.Text()
		case goquery.NodeName(f) == "select":
			value = f.Find("option").First().AttrOr("value", "")
		case f.AttrOr("type", "") == "radio" && !checked:
			return
		}
		body.Set(f.AttrOr("name", ""), value)
	})
	for i := 0; i+1 < len(with); i += 2 {
		body.Set(with[i], with[i+1])
	}
	return form.AttrOr("action", ""), body
}

// post sends a form, and gives status and Location.
func (p *plain) post(action string, body url.Values) (status int, location string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.base+action, strings.NewReader(body.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", p.base)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	res, err := p.http.Do(req)
	if err != nil {
		p.t.Fatalf("post to %s: %v", action, err)
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		p.t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Location")
}

// twice sends a form two times under one key: 303 both times, and one event of
// the kind comes of it. Then other fields under that key: refused, and nothing
// comes of that.
func (p *plain) twice(a *api, session, kind, selector string, fields []string, refused int, other ...string) {
	p.t.Helper()
	action, body := p.fields(selector, fields...)
	before := a.count(session, kind)
	for i := range 2 {
		if status, _ := p.post(action, body); status != http.StatusSeeOther {
			p.t.Errorf("%s, for the %d. time, answered %d, want 303", action, i+1, status)
		}
	}
	for i := 0; i+1 < len(other); i += 2 {
		body.Set(other[i], other[i+1])
	}
	if len(other) > 0 {
		if status, _ := p.post(action, body); status != refused {
			p.t.Errorf("%s with other content answered %d, want %d", action, status, refused)
		}
	}
	if n := a.count(session, kind) - before; n != 1 {
		p.t.Errorf("%s: %d %s, want 1", action, n, kind)
	}
}

// count counts the events of a kind in a session.
func (a *api) count(session, kind string) (n int) {
	a.w.t.Helper()
	var page struct {
		Events []struct{ Kind string }
	}
	a.send(http.MethodGet, "/api/v1/sessions/"+session+"/events?after=0&limit=1000", nil, &page)
	for _, e := range page.Events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// Every form of every page, sent twice under its key, is as good as once. The
// forms that the pages have are held against those that were sent.
// proves ADM-2 ADM-3 ADM-4
func TestForms_SentTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	s := w.serve()
	a, p := s.api(), s.plain()
	up, gate := w.gate("up"), w.gate("gate")
	sent := []string{"/login", "/logout", "/sessions"}

	p.open("/login")
	action, body := p.fields(sel("login-form"), "email", w.email, "password", password)
	if status, location := p.post(action, body); status != http.StatusSeeOther || location != "/" {
		t.Fatalf("signing in answered %d %s", status, location)
	}

	p.open("/sessions/new")
	action, body = p.fields(sel("new-session-form"), "prompt", steps("true", up.Tell("$$")+"; "+gate.Read(), "true"), "workspace", w.work, "preset", "ask_all")
	_, first := p.post(action, body)
	status, again := p.post(action, body)
	first, again = bare(first), bare(again)
	if status != http.StatusSeeOther || first == "" || again != first {
		t.Errorf("the first time led to %s, the second, with %d, to %s", first, status, again)
	}
	body.Set("prompt", "something else")
	if status, _ := p.post(action, body); status != http.StatusUnprocessableEntity {
		t.Errorf("a mission of other content answered %d, want 422", status)
	}
	id := strings.TrimPrefix(first, "/sessions/")
	page := "/sessions/" + id

	a.until(id, "waiting")
	p.open("/needs-you")
	p.open(page)
	p.twice(a, id, "permission.replied", sel("decision-form"), []string{"reply", "once"}, http.StatusUnprocessableEntity, "reply", "reject")
	eventually(t, "the second step asks", func() bool { return len(a.pending(id)) > 0 })
	for _, r := range a.pending(id) {
		a.decide(r.ID, "once")
	}
	up.Wait()
	p.open(page)
	p.twice(a, id, "prompt.admitted", sel("composer"), []string{"text", "once", "delivery", "queue"}, http.StatusUnprocessableEntity, "text", "not the same")
	p.open(page)
	p.twice(a, id, "prompt.withdrawn", sel("queued-prompt")+" form", nil, 0)
	s.powerCut()
	s.start()
	a.untilQuiet(id, "uncertain")
	p.open(page)
	p.twice(a, id, "call.resolved", sel("resolution-form"), []string{"outcome", "happened", "evidence", "seen", "then", "stay"}, http.StatusConflict, "outcome", "did_not_happen")
	a.untilQuiet(id, "stopped")
	p.open(page)
	p.twice(a, id, "continuation.requested", sel("continuation-form"), nil, 0)
	a.until(id, "waiting")
	p.open(page + "/stop")
	p.twice(a, id, "interrupt.requested", sel("stop-form"), []string{"mode", "now"}, 0)
	a.untilQuiet(id, "stopped")
	p.open(page)
	p.twice(a, id, "session.archived", `form[action$="/archive"]`, nil, 0)
	for _, form := range []string{"prompts", "interruption", "continuation", "archive"} {
		sent = append(sent, "/sessions/:id/"+form)
	}
	sent = append(sent, "/permissions/:id/decision", "/prompts/:id/withdrawal", "/calls/:id/resolution")

	action, body = p.fields(`form[action="/logout"]`)
	for i, want := range []int{http.StatusSeeOther, http.StatusSeeOther} {
		if status, location := p.post(action, body); status != want || location == "/" {
			t.Errorf("signing out, for the %d. time, answered %d %s", i+1, status, location)
		}
	}
	for form := range p.forms {
		if !slices.Contains(sent, form) {
			t.Errorf("a page has a form for %s, which this test doesn't send", form)
		}
	}
	for _, form := range sent {
		if !p.forms[form] {
			t.Errorf("no page has a form for %s: %v", form, p.forms)
		}
	}
}

// bare is an address without what follows ? or #.
func bare(address string) string {
	return strings.FieldsFunc(address, func(r rune) bool { return r == '?' || r == '#' })[0]
}
