package browser

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Eight pages of one browser: at most four hold a stream, the others ask now and
// then, and a form is answered at once, although a browser has six connections.
func TestLive_EightPages(t *testing.T) {
	t.Parallel()
	l := watch(t, many(2))
	l.a.untilQuiet(l.id, "ready")
	tabs := []*tab{l.b}
	for range 7 {
		b := l.b.sibling()
		b.visit(l.path())
		tabs = append(tabs, b)
	}
	for _, b := range tabs {
		b.until("the view is live, or polls", shows("your-view", "live")+" || "+shows("your-view", "polling"))
	}
	var took []float64
	for i := range 3 {
		took = append(took, eval[float64](tabs[7], `(async () => {
			const form = document.querySelector('[data-testid="composer"]'), body = new URLSearchParams(new FormData(form));
			body.set('text', `+quote(steps("echo hello"))+`);
			body.set('delivery', 'queue');
			body.set('idempotency_key', 'eight-pages-`+fmt.Sprint(i)+`');
			const begun = performance.now();
			const answer = await fetch(form.action, {method: 'POST', body});
			if (!answer.ok) throw new Error('answered ' + answer.status);
			return performance.now() - begun;
		})()`))
	}
	if best := slices.Min(took); best > 1000 { // a busy machine may hold up one, a lack of connections holds up all
		t.Errorf("a form is answered after %v ms", took)
	}
	l.a.untilQuiet(l.id, "ready")
	if _, most := l.p.counts(); most < 1 || most > 4 {
		t.Errorf("%d streams at once, want 1 to 4", most)
	}
	l.wantRows()
	want := l.b.rows(t)
	for i, b := range tabs[1:] {
		b.until("the last entry is there", lastRow+" >= "+fmt.Sprint(want[len(want)-1]))
		if got := b.rows(t); got[len(got)-1] != want[len(want)-1] {
			t.Errorf("tab %d ends at %d, want %d", i+1, got[len(got)-1], want[len(want)-1])
		}
	}
	l.p.wantContiguous()
}

// A page that was left, and that the browser keeps to go back to, holds no connection;
// it is live again when somebody comes back.
// proves RDR-5
func TestLive_APageThatWasLeftHoldsNoConnection(t *testing.T) {
	t.Parallel()
	l := watch(t, many(2))
	l.a.untilQuiet(l.id, "ready")
	l.b.until("the view is live", shows("your-view", "live"))
	l.b.transit("pagehide")
	eventually(t, "its stream has ended", func() bool { return l.p.openNow() == 0 })
	l.b.transit("pageshow")
	l.b.within(recovery, "the view is live again", shows("your-view", "live"))
	if n := l.p.openNow(); n != 1 {
		t.Errorf("%d streams, want one", n)
	}
	l.wantRows()
}

// blindAtFirst lets pages have no locks, and see no marks but their own until see() is
// called, as when all of them look at the same moment. They look when they are shown,
// by show().
const blindAtFirst = `(() => {
	Object.defineProperty(Navigator.prototype, 'locks', {value: undefined});
	let hidden = true, blind = true;
	Object.defineProperty(document, 'hidden', {get: () => hidden});
	window.show = () => { hidden = false; return document.dispatchEvent(new Event('visibilitychange')); };
	window.see = () => { blind = false; return true; };
	const own = {}, getItem = Storage.prototype.getItem, setItem = Storage.prototype.setItem;
	Storage.prototype.setItem = function (name, value) { own[name] = value; setItem.call(this, name, value); };
	Storage.prototype.getItem = function (name) {
		return blind && name.startsWith('holdfast-stream-') ? own[name] ?? null : getItem.call(this, name);
	};
})()`

// Where a browser has no locks, pages that are opened at the same moment may take
// one place together; soon at most four hold a stream, and so it stays.
func TestLive_PlacesWithoutLocks(t *testing.T) {
	t.Parallel()
	l := watch(t, many(1))
	l.a.untilQuiet(l.id, "ready")
	l.b.visit("/help")
	var tabs []*tab
	for range 5 { // a browser has six connections
		b := l.b.sibling()
		b.call("blind its pages", func(ctx context.Context) error {
			_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: blindAtFirst})
			return err
		})
		tabs = append(tabs, b)
	}
	for _, b := range tabs {
		b.visit(l.path())
	}
	for _, b := range tabs {
		eval[bool](b, "show()")
	}
	eventually(t, "all have a stream, in one place", func() bool { return l.p.openNow() == len(tabs) })
	for _, b := range tabs {
		eval[bool](b, "see()")
	}
	settled := func() (live, polling int) {
		for _, b := range tabs {
			switch eval[string](b, "document.querySelector('#reading-view').dataset.state") {
			case "live":
				live++
			case "polling":
				polling++
			}
		}
		return live, polling
	}
	eventually(t, "four are live, and the other polls", func() bool {
		live, polling := settled()
		return live == 4 && polling == 1 && l.p.openNow() == 4
	})
	lasting(7 * time.Second) // longer than from mark to mark
	if live, polling := settled(); live != 4 || polling != 1 || l.p.openNow() != 4 {
		t.Errorf("later %d are live and %d poll, with %d streams", live, polling, l.p.openNow())
	}
	l.a.prompt(l.id, many(1), "queue")
	l.a.untilQuiet(l.id, "ready")
	for _, b := range tabs {
		b.until("the last entry is there", lastRow+" >= "+fmt.Sprint(l.a.session(l.id).LastSeq))
	}
	l.p.wantContiguous()
}

// Who signs out in one tab leaves nothing to read in the others.
// proves RDR-7
func TestLive_SignedOutElsewhere(t *testing.T) {
	t.Parallel()
	l := watch(t, "# Merge\n\n"+steps("echo merged"), asking)
	l.b.within(recovery, "the request is there", has(sel("decision-form")))
	other := l.b.sibling()
	other.visit("/")
	other.press(`form[action="/logout"] button`)
	other.until("the sign-in form is there", has(sel("login-form")))
	l.b.allow("status of 401")
	l.b.within(recovery, "the view says so", shows("your-view", "signed_out"))
	l.b.until("the execution is last known", says(execution, "last known"))
	if n := l.b.count(sel("decision-form")) + l.b.count(sel("payload")); n != 0 {
		t.Errorf("%d parts of cards are still there", n)
	}
	if l.b.count(sel("decision-card")+" h3") != 1 {
		t.Error("the heading of the card is gone too")
	}
	before, _ := l.p.counts()
	lasting(recovery) // it stays so, and doesn't ask again and again
	l.b.within(recovery, "the view still says so", shows("your-view", "signed_out"))
	if after, _ := l.p.counts(); after > before+1 {
		t.Errorf("a page that is signed out asked for %d more streams", after-before)
	}
}

// What was typed and not sent is there again: after a reload, after signing out
// and in, and in another browser of the same person. It is never sent by itself.
func TestLive_Drafts(t *testing.T) {
	t.Parallel()
	l := watch(t, many(1))
	l.a.untilQuiet(l.id, "ready")
	before := l.a.count(l.id, "prompt.admitted")
	const half = "When that is done, half a thought"
	is := "document.querySelector('#text')?.value === " + quote(half)
	l.b.fill("#text", half)
	l.b.reload()
	l.b.until("the text is there after a reload", is)

	elsewhere := l.w.tab(l.p.base)
	elsewhere.signIn()
	eventually(t, "the text is there in another browser", func() bool {
		elsewhere.visit(l.path())
		return eval[bool](elsewhere, is)
	})

	l.b.press(`form[action="/logout"] button`)
	l.b.until("the sign-in form is there", has(sel("login-form")))
	l.b.signIn()
	l.b.visit(l.path())
	l.b.until("the text is there after signing in", is)
	if n := l.a.count(l.id, "prompt.admitted"); n != before {
		t.Errorf("%d messages were sent by themselves", n-before)
	}

	l.message(half+" is a whole one\n\n"+many(1), "queue", 0)
	l.b.until("the field is empty", "document.querySelector('#text').value === ''")
	l.b.reload()
	if got := eval[string](l.b, "document.querySelector('#text').value"); got != "" {
		t.Errorf("what was sent is still a draft: %q", got)
	}
}

// What was typed stands on the page of a session that has ended meanwhile: after a
// reload, and where it was typed just before its writer ended it. It can be taken to a
// new session.
func TestLive_DraftOfAnEndedSession(t *testing.T) {
	t.Parallel()
	l := watch(t, many(1))
	l.a.untilQuiet(l.id, "ready")
	const half = "half a thought"
	shown := has(sel("unsent-closed")+" textarea") + "?.value === " + quote(half)
	l.b.fill("#text", half)
	l.b.until("it is kept", says("#unsent-state", keptHere))
	l.a.send("POST", "/api/v1/sessions/"+l.id+"/archive", nil, nil)
	l.b.reload()
	l.b.until("the text is there after the end", shown)
	l.b.press(sel("unsent-closed") + " button")
	l.b.until("it stands in the form for a new session", has("#prompt")+"?.value === "+quote(half))

	l.id = l.a.mission(many(1))
	l.a.untilQuiet(l.id, "ready")
	l.b.visit(l.path())
	l.b.press("#archive summary")
	eval[bool](l.b, `(() => {
		const text = document.querySelector('#text');
		text.value = `+quote(half)+`;
		text.dispatchEvent(new Event('input', {bubbles: true}));
		document.querySelector('#archive button').click();
		return true;
	})()`)
	l.b.until("what was typed just before the end is there", shown)
}

// What the line below a field says.
const (
	keptHere  = "Kept on the server"
	elsewhere = "Not kept: another tab or device keeps another text here."
)

// What is typed in one tab replaces nothing that another one keeps: it stands in its
// field, which says so. A press of a button replaces it, and shows what was replaced.
func TestLive_DraftKeptElsewhere(t *testing.T) {
	t.Parallel()
	l := watch(t, many(1))
	l.a.untilQuiet(l.id, "ready")
	for path, field := range map[string]string{l.path(): "#text", "/sessions/new": "#prompt"} {
		one, two := l.b.sibling(), l.b.sibling()
		two.allow("status of 409")
		one.visit(path)
		two.visit(path)
		holds := func(text string) string {
			return "document.querySelector(" + quote(field) + ").value === " + quote(text)
		}
		third := l.b.sibling()
		isKept := func(text string) {
			t.Helper()
			eventually(t, "a page that is opened now has "+text, func() bool {
				third.visit(path)
				return eval[bool](third, holds(text))
			})
		}
		hidden := has(sel("keep")) + ".closest('[hidden]')"
		shown := "!" + hidden
		one.fill(field, "DRAFT-A")
		one.until("it is kept", says("#unsent-state", keptHere))
		if eval[bool](one, shown) {
			t.Errorf("%s: a button is shown to keep what is kept by itself", path)
		}
		two.fill(field, "DRAFT-B")
		two.until("it is told that another text is kept", says("#unsent-state", elsewhere)+" && "+shown)
		if !eval[bool](two, holds("DRAFT-B")) {
			t.Errorf("%s: what was typed is gone from its field", path)
		}
		isKept("DRAFT-A")
		two.press(sel("keep"))
		two.until("it is kept now", says("#unsent-state", keptHere)+" && "+hidden)
		isKept("DRAFT-B")
		two.press(sel("unsent-replaced") + " summary")
		two.until("what it replaced can be read", has(sel("unsent-replaced")+" details[open] pre")+"?.textContent === 'DRAFT-A'")
		if at := eval[string](two, "location.pathname+' '+document.activeElement.tagName"); at != path+" SUMMARY" {
			t.Errorf("%s: then the page and the focus are %s", path, at)
		}
		two.fill(field, "DRAFT-B, and on")
		isKept("DRAFT-B, and on")
		if !eval[bool](two, says("#unsent-state", keptHere)+" && !!"+has(sel("unsent-replaced"))) {
			t.Errorf("%s: what was replaced can't be copied any more", path)
		}
	}
}

// What one tab sends isn't what another one keeps; what a tab found kept is
// dropped when it sends that.
func TestLive_DraftsOfTwoTabs(t *testing.T) {
	t.Parallel()
	l := watch(t, many(1))
	l.a.untilQuiet(l.id, "ready")
	const thought = "a thought of the first tab"
	kept, empty := says("#unsent-state", keptHere), "document.querySelector('#text').value === ''"
	opened := func(want string) *tab {
		t.Helper()
		b := l.b.sibling()
		b.visit(l.path())
		if got := eval[string](b, "document.querySelector('#text').value"); got != want {
			t.Errorf("a page that is opened now holds %q, want %q", got, want)
		}
		return b
	}
	other := opened("")
	other.fill("#text", "what the other tab sends\n\n"+many(1))
	other.until("the other tab's text is kept", kept)
	l.b.fill("#text", thought)
	l.b.allow("status of 409")
	l.b.until("the first tab is told of the other one", says("#unsent-state", elsewhere))
	l.b.press(sel("keep"))
	l.b.until("the first tab's text is kept", kept)
	other.press("#send-queue")
	other.until("it is taken", empty)

	third := opened(thought)
	third.press("#send-queue")
	third.until("it is taken", empty)
	opened("")
}

// A form that was sent and stands here again, as the back button brings it, keeps
// what is written on, and not what was sent.
func TestLive_DraftOnASentForm(t *testing.T) {
	t.Parallel()
	l := watch(t, many(1))
	l.b.visit("/sessions/new")
	const sent, more = "a mission", "a mission, and more of it"
	l.b.fill("#prompt", sent)
	l.b.until("it is kept", says("#unsent-state", keptHere))
	status := eval[int](l.b, `(() => {
		const form = document.querySelector('[data-testid=new-session-form]');
		const post = new XMLHttpRequest();
		post.open('POST', form.action, false);
		post.send(new URLSearchParams(new FormData(form)));
		return post.status;
	})()`)
	if status != http.StatusOK {
		t.Fatalf("the form was answered with %d", status)
	}
	l.b.fill("#prompt", more)
	other := l.b.sibling()
	eventually(t, "a page that is opened now holds what was written on", func() bool {
		other.visit("/sessions/new")
		return eval[string](other, "document.querySelector('#prompt').value") == more
	})
}
