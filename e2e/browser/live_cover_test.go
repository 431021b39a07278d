package browser

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

const (
	isCovered = `document.querySelector('#signed-out')?.checkVisibility()`
	unseen    = `getComputedStyle(document.querySelector('main')).visibility === 'hidden'`
)

// forgetCookies ends the sign-in of a browser without any page that could tell.
func (b *tab) forgetCookies() {
	b.t.Helper()
	b.call("forget the sign-in", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, network.ClearBrowserCookies, cdp.Empty{})
		return err
	})
}

// transit tells a page that it goes into the browser's cache, or comes out of it.
func (b *tab) transit(event string) {
	b.t.Helper()
	eval[bool](b, "window.dispatchEvent(new PageTransitionEvent("+quote(event)+", {persisted: true}))")
}

// wantCovered waits until a page is covered, and fails if a text is left in it.
func (b *tab) wantCovered(secret string) {
	b.t.Helper()
	b.within(recovery, "the page is covered", isCovered)
	if eval[bool](b, keeps(secret)) {
		b.t.Errorf("%s is covered, and still has %q:\n%s", b.location(), secret, b.text("body"))
	}
}

// A session's page shows nothing of it to whoever sits there after its owner has
// signed out in another tab, and comes back with them.
// proves RDR-7 OWN-1
func TestLive_CoversItsJournal(t *testing.T) {
	t.Parallel()
	const secret = "Quartz"
	l := watch(t, "# "+secret+"\n\n"+steps("echo "+secret+" is out", "cat "+secret), asking, titled(secret+" mission"))
	b := l.b
	b.allow("status of 401", "status of 404", "status of 409")
	l.reach("waiting")
	l.allowStep()
	b.within(recovery, "all of it is there", says(sel("journal"), secret+" is out")+" && "+has(sel("decision-form")))
	other := b.sibling()
	other.allow("status of 401")
	journal := says(sel("journal"), secret+" is out")

	b.signOutIn(other)
	b.wantCovered(secret)
	b.until("the view says why", shows("your-view", "signed_out")+" && "+says(execution, "last known"))
	other.signInHere(l.w.email)
	b.within(recovery, "it comes back by itself", journal)
	l.wantLive()

	show := b.hide()
	b.signOutIn(other)
	b.wantCovered(secret) // before anybody looks
	show()

	other.signInHere(l.w.stranger())
	b.within(recovery, "it says that it is another's", says("#signed-out", "Somebody else"))
	b.wantCovered(secret)
	b.signOutIn(other)
	other.signInHere(l.w.email)
	b.within(recovery, "it is its owner's again", journal)
}

// Nor does the back button, whether the browser has kept the page or not.
// proves RDR-7 OWN-1
func TestLive_BackAfterTheSignOut(t *testing.T) {
	t.Parallel()
	const secret = "Quartz"
	l := watch(t, "# "+secret+"\n\n"+steps("echo "+secret+" is out"), titled(secret+" mission"))
	b := l.b
	b.allow("status of 401", "status of 404")
	l.a.untilQuiet(l.id, "ready")
	b.within(recovery, "all of it is there", says(sel("journal"), secret+" is out"))
	email, stranger := l.w.email, l.w.stranger()

	b.transit("pagehide")
	b.until("nothing of it is seen in the cache", unseen)
	b.transit("pageshow")
	b.until("its owner sees it again", "!("+unseen+") && "+says(sel("journal"), secret+" is out"))
	b.transit("pagehide")
	b.forgetCookies()
	b.transit("pageshow")
	if !eval[bool](b, unseen+" || "+isCovered) {
		t.Error("it is shown before it is known who is there")
	}
	b.wantCovered(secret)

	b.visit("/login")
	b.signInHere(email)
	for _, who := range []string{"", stranger} {
		b.visit(l.path())
		b.leaving(func() { b.press(".brand") })
		b.leaving(func() { b.press(`form[action="/logout"] button`) })
		if who != "" {
			b.signInHere(who)
		}
		for range 2 { // to the list, then to the session
			from := eval[float64](b, "performance.timeOrigin") // each document has its own, also one out of the cache
			eval[bool](b, "(history.back(), true)")
			b.until("another page is there", fmt.Sprintf("performance.timeOrigin !== %f", from)+" && document.readyState === 'complete'")
			b.until("it is nobody's, or this one's", isCovered+" || !"+has(sel("journal"))+" && !"+has(".rows"))
			if eval[bool](b, keeps(secret)) {
				t.Errorf("the back button shows %s to %q:\n%s", b.location(), who, eval[string](b, "document.documentElement.outerHTML.split("+quote(secret)+").map(s => s.slice(-200)).join('|||')"))
			}
		}
		b.visit("/login")
		b.signInHere(email)
	}
}

// The list, the inbox, a request's own page and the settings are covered too,
// whichever way they hear of it: from another tab, or by asking.
// proves OWN-1
func TestLive_CoversEveryPage(t *testing.T) {
	t.Parallel()
	const secret = "Quartz"
	w := newWorld(t, "sqlite")
	s := w.serve()
	a := s.api()
	id := a.mission("# "+secret+"\n\n"+steps("cat "+secret), asking, titled(secret+" mission"))
	a.until(id, "waiting")
	other := w.tab(s.base)
	other.allow("status of 401")
	other.signIn()
	stranger := w.stranger()
	var open []*tab
	for _, path := range []string{"/", "/needs-you", "/permissions/" + a.pending(id)[0].ID, "/sessions/" + id + "/stop"} {
		b := other.sibling()
		b.allow("status of 401")
		b.visit(path)
		open = append(open, b)
	}
	each := func(do func(b *tab)) {
		for _, b := range open {
			do(b)
		}
	}
	shown := func(b *tab) { b.within(recovery, "it shows what it is about", says("main", secret)) }
	each(shown)
	other.signOutIn(other)
	each(func(b *tab) {
		b.wantCovered(secret)
		if n := b.count("main form, .sign-out"); n != 0 {
			t.Errorf("%s is covered, and has %d forms", b.location(), n)
		}
	})
	other.signInHere(w.email)
	each(shown) // it comes back by itself

	other.visit("/login")
	other.signInHere(stranger)
	each(func(b *tab) {
		b.wantCovered(secret)
		b.until("it says that it is another's", says("#signed-out", "Somebody else"))
	})
	other.signOutIn(other)
	other.signInHere(w.email)
	each(shown)

	b := other.sibling() // nothing tells it but what it asks for as it is looked at again
	b.allow("status of 401")
	b.visit("/")
	b.until("it shows it", says("main", secret))
	b.forgetCookies()
	eval[bool](b, "document.dispatchEvent(new Event('visibilitychange'))")
	b.wantCovered(secret)
}
