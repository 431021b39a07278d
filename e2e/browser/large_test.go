package browser

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/chromedp/chromedp"
)

const (
	manyEntries = 100_000 // of the session ready_many_entries
	windowSize  = 50      // entries of the newest window
	openWithin  = 20 * time.Second
)

// earlierLink leads to the entries before those that a page shows.
const earlierLink = `#earlier a`

// signedIn is a browser without script that the gallery's owner has signed in with.
func (g *gallery) signedIn(t *testing.T) *plain {
	t.Helper()
	p := g.s.plain()
	p.t = t
	p.open("/login")
	action, body := p.fields(sel("login-form"), "email", g.w.email, "password", g.w.pass)
	if status, _ := p.post(action, body); status != http.StatusSeeOther {
		t.Fatalf("signing in answered %d", status)
	}
	return p
}

// rows are the numbers of the entries in the page as it was sent.
func (p *plain) rows() (out []int64) {
	p.t.Helper()
	p.doc.Find(sel("journal") + " > li[data-seq]").Each(func(_ int, li *goquery.Selection) {
		seq, err := strconv.ParseInt(li.AttrOr("data-seq", ""), 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		out = append(out, run(p.t, li.AttrOr("data-from", ""), seq)...)
	})
	if len(out) == 0 {
		p.t.Fatal("the page has no entries")
	}
	return out
}

// wantRun fails unless the numbers are all from the first to the last one.
func wantRun(t *testing.T, got []int64, first, last int64) {
	t.Helper()
	if int64(len(got)) != last-first+1 {
		t.Fatalf("there are %d entries, want %d to %d", len(got), first, last)
	}
	for i, seq := range got {
		if seq != first+int64(i) {
			t.Fatalf("entry %d stands where %d belongs", seq, first+int64(i))
		}
	}
}

// back follows the link to earlier entries, at most n times, and gives all the
// numbers that were shown on the way, each page before the last one.
func (p *plain) back(n int) []int64 {
	p.t.Helper()
	got := p.rows()
	for ; n > 0; n-- {
		to, ok := p.doc.Find(earlierLink).Attr("href")
		if !ok {
			return got
		}
		p.open(strings.TrimSuffix(to, "#journal"))
		got = append(p.rows(), got...)
	}
	return got
}

// The page of a session of 100,000 entries has all of them, since nearly all are
// pieces of one output, in a few rows; that of thousands of commands has the newest
// ones, and the way to those before them. Both with a script and without.
func (g *gallery) testManyEntries(t *testing.T) {
	t.Parallel()
	p := g.signedIn(t)
	p.open(g.session(t, "ready_many_entries"))
	wantRun(t, p.rows(), 1, manyEntries)
	if n := p.doc.Find(sel("journal") + " > li").Length(); n > 2*windowSize || p.doc.Find(earlierLink).Length() != 0 {
		t.Errorf("%d rows stand for them, and there may be a way to more", n)
	}
	path, last := g.session(t, "ready_many_calls"), g.a.session(g.r.ID("ready_many_calls")).LastSeq
	p.open(path)
	first := p.rows()[0]
	wantRun(t, p.rows(), first, last)
	if n := p.doc.Find(sel("journal") + " > li:not([data-from])").Length(); n != windowSize {
		t.Errorf("%d entries stand in the newest window", n)
	}
	got := p.back(3)
	wantRun(t, got, got[0], last)
	p.open(path + "?before=" + strconv.Itoa(windowSize))
	wantRun(t, p.rows(), 1, windowSize-1)
	if p.doc.Find(earlierLink).Length() != 0 {
		t.Error("there is a way to what is before the first entry")
	}

	b := g.tab(t)
	b.visitSoon(path)
	wantRun(t, b.rows(t), first, last)
	for n := 2; n <= 4; n++ {
		b.press(earlierLink)
		b.until("earlier entries are there", countOf(sel("journal")+" > li:not([data-from])")+" >= "+strconv.Itoa(n*windowSize))
		rows := b.rows(t)
		wantRun(t, rows, rows[0], last)
	}
}

// Each entry is met once on the way to the first one: by links through some
// thousands, by clicking through some hundreds; and twenty clicks bring a
// thousand of the thousands.
func (g *gallery) testTheWholeWay(t *testing.T) {
	t.Parallel()
	head := func(name string) int64 { return g.a.session(g.r.ID(name)).LastSeq }
	p, last := g.signedIn(t), head("ready_many_calls")
	p.open(g.session(t, "ready_many_calls"))
	wantRun(t, p.back(int(last)), 1, last)

	b := g.tab(t)
	b.visit(g.session(t, "ready_output"))
	b.clickBack(20)
	wantRun(t, b.rows(t), 1, head("ready_output"))
	b.visit(g.session(t, "ready_many_calls"))
	b.clickBack(20)
	rows := b.rows(t)
	wantRun(t, rows, rows[0], last)
	if n := b.count(sel("journal") + " > li:not([data-from])"); n != 21*windowSize {
		t.Errorf("twenty clicks and the window show %d entries", n)
	}
}

// clickBack loads earlier entries, at most n times.
func (b *tab) clickBack(n int) {
	b.t.Helper()
	eval[bool](b, `(async () => {
		const first = () => document.querySelector('[data-testid="journal"] > li');
		for (let a, n = 0; n < `+strconv.Itoa(n)+` && (a = document.querySelector('#earlier a')); n++) {
			const was = first();
			a.click();
			while (first() === was) await new Promise((done) => setTimeout(done));
		}
		return true;
	})()`)
}

// Pages of what is hard to show open soon, and nothing of it acts.
func (g *gallery) testHardToShow(t *testing.T) {
	t.Parallel()
	b := g.tab(t)
	output := func(n int) string { return g.call(t, "ready_output", "", n) }
	large := g.call(t, "ready_large_output", "", 0)
	for _, c := range []struct{ path, shows string }{
		{g.session(t, "ready_output"), `<img src=x onerror="alert(1)">`},
		{g.session(t, "ready_large_output"), "the quick brown fox"},
		{g.session(t, "ready_many_calls"), "echo 2000"},
		{g.session(t, "waiting_bidi"), `\u202e`},
		{output(0), "true colour"},
		{output(longLine), "word  word"},
		{output(longLine) + "/output", "word  word"},
		{output(cutCharacter) + "/output", "a smile: "},
		{output(nul), "before"},
		{output(brokenColours), "moved"},
		{output(brokenColours) + "/output", "moved"},
		{output(markup), `<script>alert(2)</script> &amp; <b>bold</b>`},
		{output(markup) + "/output", `<img src=x onerror="alert(1)"><script>alert(2)</script>`},
		{output(direction) + "/output", `evil \u202egpj.exe`},
		{large, "the quick brown fox"},
		{large + "?lines=2000", "the quick brown fox"},
		{large + "/output", "the quick brown fox"},
		{large + "/output?offset=10420224", "the quick brown fox"},
	} {
		b.visitSoon(c.path)
		wantInert(t, b)
		if !strings.Contains(eval[string](b, "document.querySelector('main').textContent"), c.shows) {
			t.Errorf("%s doesn't show %q:\n%s", c.path, c.shows, tail(b.text("main"), 1500))
		}
		if n := eval[int](b, "document.documentElement.outerHTML.length"); n > 2<<20 {
			t.Errorf("%s is a page of %d characters", c.path, n)
		}
	}
	// A page leads to both exports, which come as files.
	b.visit(g.session(t, "ready_output"))
	for _, name := range []string{"export.md", "export.json"} {
		if got := eval[string](b, "fetch(document.querySelector(`a[href$='/"+name+"']`).href).then(r => r.status + ' ' + r.headers.get('Content-Disposition'))"); !strings.HasPrefix(got, "200 attachment") {
			t.Errorf("%s answers %s", name, got)
		}
	}
}

// tab is a tab of the gallery's owner, for one test.
func (g *gallery) tab(t *testing.T) *tab {
	t.Helper()
	b := newTab(chromium(t), t, g.w, g.s.base, chromedp.WithNewBrowserContext())
	t.Cleanup(b.wantSilence)
	b.signIn()
	return b
}

// visitSoon opens a page, says how long that took, and fails if it took far too long.
func (b *tab) visitSoon(path string) {
	b.t.Helper()
	begun := time.Now()
	b.visit(path)
	took := time.Since(begun)
	first := eval[float64](b, "performance.getEntriesByType('navigation')[0].responseStart")
	b.t.Logf("%s: %d ms, the first byte after %.0f ms, %s", path, took.Milliseconds(), first, fmt.Sprintf("%d elements", b.count("*")))
	if took > openWithin {
		b.t.Errorf("%s took %s to open", path, took)
	}
}
