package browser

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// recovery is how soon a page must be live again once it can be.
const recovery = 15 * time.Second

// live is a session in a tab, behind a proxy that can fail.
type live struct {
	*job
	t *testing.T
	w *world
	s *server
	p *proxy

	opened *tab // where wantSame opens the page anew
}

// watch opens a session's page through a proxy, and waits until it is live.
func watch(t *testing.T, mission string, with ...func(map[string]any)) *live {
	t.Helper()
	w := newWorld(t, "sqlite")
	s := w.serve()
	p, a := s.proxy(), s.api()
	l := &live{job: &job{b: w.tab(p.base), a: a, id: a.mission(mission, with...)}, t: t, w: w, s: s, p: p}
	l.b.signIn()
	l.b.visit(l.path())
	l.wantLive()
	return l
}

func (l *live) path() string { return "/sessions/" + l.id }

// wantLive waits until the page says that it is live.
func (l *live) wantLive() {
	l.t.Helper()
	l.b.within(recovery, "the view is live", shows("your-view", "live"))
}

// wantRows waits until the page shows all entries, and holds them against a page
// that is opened now: each once, in order, none missing.
func (l *live) wantRows() {
	l.t.Helper()
	fresh := l.b.sibling()
	fresh.base = l.s.base // not through the proxy
	fresh.visit(l.path())
	want := fresh.rows(l.t)
	if len(want) == 0 {
		l.t.Fatal("a page that is opened now has no entries")
	}
	l.b.within(recovery, "the last entry is there", lastRow+" >= "+fmt.Sprint(want[len(want)-1]))
	got := l.b.rows(l.t)
	if len(got) < len(want) || !slices.Equal(got[len(got)-len(want):], want) {
		l.t.Errorf("the page shows the entries\n%v\na page that is opened now\n%v", got, want)
	}
}

// rows gives the numbers of the entries that a page shows, and fails unless they
// rise, and each row bears its number as its id.
func (b *tab) rows(t *testing.T) []int64 {
	t.Helper()
	got := eval[[]struct{ ID, Seq, From string }](b, `[...document.querySelectorAll('[data-testid="journal"] > li')].map(r => ({id: r.id, seq: r.dataset.seq ?? '', from: r.dataset.from ?? ''}))`)
	var out []int64
	for _, r := range got {
		seq, err := strconv.ParseInt(r.Seq, 10, 64)
		if err != nil || r.ID != "j-"+r.Seq {
			t.Errorf("a row has the id %q and the number %q", r.ID, r.Seq)
		}
		if len(out) > 0 && seq <= out[len(out)-1] {
			t.Errorf("entry %d stands after %d", seq, out[len(out)-1])
		}
		out = append(out, run(t, r.From, seq)...)
	}
	return out
}

// run are the numbers that a row stands for: its own, or those of a run of pieces.
func run(t *testing.T, from string, seq int64) (out []int64) {
	t.Helper()
	first := seq
	if from != "" {
		var err error
		if first, err = strconv.ParseInt(from, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	for n := first; n <= seq; n++ {
		out = append(out, n)
	}
	return out
}

// sibling opens another tab of the same browser context, which shares cookies
// and storage, in a window of its own.
func (b *tab) sibling() *tab {
	b.t.Helper()
	other := newTab(b.ctx, b.t, b.w, b.base)
	b.t.Cleanup(other.wantSilence)
	return other
}

// says is an expression that is true when the first element says a text.
func says(css, text string) string {
	return "(document.querySelector(" + quote(css) + ")?.innerText ?? '').includes(" + quote(text) + ")"
}

// hide minimizes the page's window, until it is shown again. Chromium calls a
// page hidden only while its focus is not emulated.
func (b *tab) hide() (show func()) {
	b.t.Helper()
	set := func(state browser.WindowState, emulated bool) {
		b.call("change the window", func(ctx context.Context) error {
			if _, err := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: emulated}); err != nil {
				return err
			}
			win, err := chromedp.Call(ctx, browser.GetWindowForTarget, browser.GetWindowForTargetParams{})
			if err != nil {
				return err
			}
			_, err = chromedp.CallBrowser(ctx, browser.SetWindowBounds, browser.SetWindowBoundsParams{WindowID: win.WindowID, Bounds: &browser.Bounds{WindowState: state}})
			return err
		})
	}
	set(browser.WindowStateMinimized, false)
	b.until("the page is hidden", "document.hidden")
	return func() {
		set(browser.WindowStateNormal, true)
		b.until("the page is shown", "!document.hidden")
	}
}

// lifecycle freezes a page as a laptop that sleeps does, or wakes it.
func (b *tab) lifecycle(state page.SetWebLifecycleStateState) {
	b.t.Helper()
	b.call("set the lifecycle", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: state})
		return err
	})
	if state == page.SetWebLifecycleStateStateActive { // a page that is seen isn't really frozen here, and isn't told
		eval[bool](b, "document.dispatchEvent(new Event('resume'))")
	}
}

// record notes, from now on, each different text that an element says.
func (b *tab) record(name, css string) {
	b.t.Helper()
	eval[bool](b, `(() => {
		const heard = (document.heard ||= {})[`+quote(name)+`] = [];
		const look = () => {
			const text = (document.querySelector(`+quote(css)+`)?.innerText ?? '').trim().replace(/\s+/g, ' ');
			if (heard.at(-1)?.text !== text) heard.push({text, at: performance.now()});
		};
		look();
		new MutationObserver(look).observe(document.body, {subtree: true, childList: true, characterData: true, attributes: true});
		return true;
	})()`)
}

type heardText struct {
	Text string
	At   float64 // ms of the page's clock
}

// recorded gives what record has noted.
func (b *tab) recorded(name string) []heardText {
	b.t.Helper()
	return eval[[]heardText](b, "document.heard["+quote(name)+"]")
}

// counts gives how many streams there were, and how many at once.
func (p *proxy) counts() (all, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.streams), p.mostOpen
}

// openNow is how many streams there are at this moment.
func (p *proxy) openNow() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// lasting lets a fault last; that is a length of time and nothing else.
func lasting(d time.Duration) { <-time.After(d) }

const (
	execution = `[data-testid="reading-execution"]`
	view      = `[data-testid="reading-your-view"]`
)

// wantNeverStopped fails if the execution was ever said to have stopped.
func (l *live) wantNeverStopped() {
	l.t.Helper()
	for _, h := range l.b.recorded("execution") {
		if strings.Contains(h.Text, "Stopped") || strings.Contains(h.Text, "Failed") {
			l.t.Errorf("the page said of a session that runs: %q", h.Text)
		}
	}
}

// many is a mission of n steps that may be run again, each some entries.
func many(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "```sh effect=read\necho line %d\n```\n\n", i)
	}
	return out.String()
}

// keepBusy gives a session something to do, whatever state it is in, and waits a
// little for what comes of it.
func (a *api) keepBusy(id string) {
	a.w.t.Helper()
	s := a.session(id)
	defer a.send(http.MethodGet, fmt.Sprintf("/api/v1/sessions/%s/events?after=%d&wait=250ms", id, s.LastSeq), nil, nil)
	switch s.State {
	case "ready", "idle":
		a.prompt(id, many(30), "queue")
	case "blocked", "stopped", "failed", "limit_reached":
		a.send(http.MethodPost, "/api/v1/sessions/"+id+"/continuation", map[string]any{"limits": map[string]int{"steps": 10000}}, nil)
	}
}

// Every entry stands on the page once and in order, over twenty kills of the
// server while it works.
// proves RDR-4 RDR-2
func TestLive_TwentyKillsUnderLoad(t *testing.T) {
	t.Parallel()
	l := watch(t, many(30))
	l.b.allow("net::ERR_")
	for range 20 {
		newer := lastRow + " > " + fmt.Sprint(eval[int](l.b, lastRow))
		for begun := time.Now(); !eval[bool](l.b, newer); {
			if time.Since(begun) > recovery {
				l.t.Fatalf("no new entry within %s after a restart; the view: %s", recovery, l.b.text(view))
			}
			l.a.keepBusy(l.id)
		}
		l.s.kill9()
		l.s.start()
	}
	for l.a.session(l.id).State != "ready" {
		l.a.keepBusy(l.id)
		l.a.until(l.id, "ready", "blocked", "stopped", "failed", "limit_reached")
	}
	l.wantLive()
	l.wantRows()
	l.p.wantContiguous()
}

// htmx may look at the page again: nothing comes twice for that.
// proves RDR-4
func TestLive_ProcessedAgain(t *testing.T) {
	t.Parallel()
	l := watch(t, many(3))
	for range 3 {
		eval[bool](l.b, "(htmx.process(document.body), true)")
	}
	l.a.until(l.id, "ready")
	l.a.prompt(l.id, many(5), "queue")
	l.a.untilQuiet(l.id, "ready")
	l.wantRows()
	l.wantLive()
	if _, most := l.p.counts(); most > 1 {
		t.Errorf("%d streams of one page at once", most)
	}
}

// A page that its reader holds stays as it is, says so, and catches up.
// proves RDR-4
func TestLive_Hold(t *testing.T) {
	t.Parallel()
	l := watch(t, many(2))
	l.a.untilQuiet(l.id, "ready")
	l.wantRows()
	before := l.b.rows(t)
	l.b.press(sel("hold"))
	l.b.until("the view is held", shows("your-view", "held"))
	l.a.prompt(l.id, many(2), "queue")
	l.a.untilQuiet(l.id, "ready")
	l.b.until("it says how much is newer", says(view, "newer"))
	l.b.until("the execution is last known", says(execution, "last known"))
	if got := l.b.rows(t); !slices.Equal(got, before) {
		t.Errorf("while it is held the entries became %v, from %v", got, before)
	}
	l.b.press(sel("hold"))
	l.wantLive()
	l.wantRows()
}

// What comes while it can be seen isn't counted as newer, not for a moment: only
// what lies below the screen is, until it was on it.
func TestLive_NewerIsWhatWasNotSeen(t *testing.T) {
	t.Parallel()
	l := watch(t, steps("echo one", "seq 1 40"), asking)
	l.reach("waiting")
	tall := func(px int64) {
		l.b.call("set the viewport", func(ctx context.Context) error { return chromedp.Do(ctx, chromedp.EmulateViewport(1280, px)) })
	}
	tall(6000)
	l.b.record("newer", "#newer:not([hidden])")
	l.reach("waiting")
	l.allowStep()
	l.reach("waiting")
	for _, h := range l.b.recorded("newer") {
		if h.Text != "" {
			t.Errorf("on a screen that holds all of it the page says %q", h.Text)
		}
	}
	tall(300)
	eval[bool](l.b, "(window.scrollTo({top: 0, behavior: 'instant'}), true)")
	l.a.decide(l.a.pending(l.id)[0].ID, "once")
	l.b.until("what lies below the screen is counted", says("#newer:not([hidden])", "newer entr"))
	l.reach("ready")
	tall(6000)
	l.b.until("what was on the screen isn't any more", "document.querySelector('#newer').hidden")
}
