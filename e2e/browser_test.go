package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
)

// browser is a person without JavaScript: it keeps cookies, follows redirects,
// and submits the forms that a page has.
type browser struct {
	t    *testing.T
	base string
	http *http.Client
	at   string // the page that it is on
	doc  *goquery.Document
	text string
}

func (w *world) browser(s *server) *browser {
	w.t.Helper()
	return newBrowser(w.t, s.base)
}

func newBrowser(t *testing.T, base string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t: t, base: base, http: &http.Client{Jar: jar, Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}}
}

// visit opens a page and gives its HTML.
func (b *browser) visit(path string) string {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.base+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.send(req, http.StatusOK)
	if b.at == "/login" && !strings.HasPrefix(path, "/login") {
		b.t.Fatalf("%s wants a sign-in", path)
	}
	return b.text
}

// send sends a request as a browser does, and reads the page that it leads to.
func (b *browser) send(req *http.Request, want int) {
	b.t.Helper()
	if req.Method != http.MethodGet {
		req.Header.Set("Origin", b.base)
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	res, err := b.http.Do(req)
	if err != nil {
		b.t.Fatalf("%s %s: %v", req.Method, req.URL, err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatalf("%s %s: %v", req.Method, req.URL, err)
	}
	if res.StatusCode != want {
		b.t.Fatalf("%s %s answered %d, want %d: %s", req.Method, req.URL, res.StatusCode, want, tail(string(raw), 2000))
	}
	b.at, b.text = res.Request.URL.Path, string(raw)
	if b.doc, err = goquery.NewDocumentFromReader(strings.NewReader(b.text)); err != nil {
		b.t.Fatal(err)
	}
}

// fields gives what a browser would send of a form, with what the person typed.
// A button's name and value may stand in typed.
func (b *browser) fields(form *goquery.Selection, typed map[string]string) url.Values {
	out := url.Values{}
	form.Find("input, textarea, select").Each(func(_ int, f *goquery.Selection) {
		name, ok := f.Attr("name")
		if !ok {
			return
		}
		kind, _ := f.Attr("type")
		_, checked := f.Attr("checked")
		switch {
		case (kind == "radio" || kind == "checkbox") && !checked, kind == "submit":
		case goquery.NodeName(f) == "select":
			value, _ := f.Find("option[selected], option").First().Attr("value")
			out.Set(name, value)
		case goquery.NodeName(f) == "textarea":
			out.Set(name, f.Text())
		default:
			value, _ := f.Attr("value")
			out.Set(name, value)
		}
	})
	for name, value := range typed {
		out.Set(name, value)
	}
	return out
}

// submit sends the form that posts to an address (its end), and follows.
func (b *browser) submit(action string, typed map[string]string) {
	b.t.Helper()
	b.submitFor(http.StatusOK, action, typed)
}

func (b *browser) submitFor(want int, action string, typed map[string]string) {
	b.t.Helper()
	form := b.doc.Find(fmt.Sprintf("form[action$=%q]", action)).First()
	if form.Length() == 0 {
		b.t.Fatalf("%s has no form for %s:\n%s", b.at, action, tail(b.text, 4000))
	}
	to, _ := form.Attr("action")
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.base+to, strings.NewReader(b.fields(form, typed).Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	b.send(req, want)
}

// signIn signs the world's user in.
func (b *browser) signIn(email string) {
	b.t.Helper()
	b.visit("/login")
	b.submit("/login", map[string]string{"email": email, "password": password})
	if b.at != "/" {
		b.t.Fatalf("signing in led to %s:\n%s", b.at, tail(b.text, 2000))
	}
}
