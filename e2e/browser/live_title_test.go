package browser

import (
	"fmt"
	"testing"
)

// pulse makes a page ask what changed, as it does when its tab is shown again.
func (b *tab) pulse() {
	b.t.Helper()
	eval[bool](b, "document.dispatchEvent(new Event('visibilitychange'))")
}

// The count in a page's title comes and goes by itself, and takes nothing along of
// what the session is called or of what the server says of it.
func TestLive_TitleOfAPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	s := w.serve()
	a, b := s.api(), w.tab(s.base)
	idle := a.mission("", titled("(2) fix"))
	b.signIn()
	b.visit("/sessions/" + idle + "?before=2") // one that doesn't follow its session
	is := func(title string) string { return "document.title === " + quote(title+" · Holdfast") }
	b.until("it is called as its session", is("(2) fix"))

	asks := a.mission(steps("echo one"), asking, titled("(7) asks"))
	a.until(asks, "waiting")
	b.pulse()
	b.until("it counts", is("(1) (2) fix"))
	request := a.pending(asks)[0].ID
	own := b.sibling()
	own.visit("/permissions/" + request)
	own.pulse()
	own.until("the count is asked for", "document.querySelector('#nav-count').textContent === '1'")
	own.until("the server's own words stay", "document.title.startsWith('(1) Decision needed: run this command: (7) asks')")

	counted := b.sibling()
	counted.visit("/settings")
	counted.until("the server counted", is("(1) Settings"))

	a.decide(request, "once")
	a.until(asks, "ready")
	counted.pulse()
	counted.until("that count goes too", is("Settings"))
	b.pulse()
	b.until("it counts no more", is("(2) fix"))
}

// A session that is called as if something were wrong has the title of what it is.
func TestLive_TitleOfASession(t *testing.T) {
	t.Parallel()
	l := watch(t, steps("echo one"), asking, titled("Error: (3) of nine"))
	l.reach("waiting")
	l.b.until("the title says it", "document.title === '(1) Decision needed: Error: (3) of nine · Holdfast'")
	l.allowStep()
	l.reach("ready")
	l.b.until("the title says it", "document.title === 'Ready for review: Error: (3) of nine · Holdfast'")
}

// A page that is open says that the disk is full when it hears of it, and until it hears of room.
func TestLive_FullDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	s := w.serve()
	b := w.tab(s.base)
	b.signIn()
	for _, path := range []string{"/sessions/" + s.api().mission("", titled("Try it")), "/settings"} {
		b.visit(path)
		hidden := "document.querySelector('#journal-full').hidden"
		b.until("it says nothing of that", hidden)
		for _, full := range []bool{true, false} {
			eval[bool](b, "(window.holdfast.pulse = async () => ({needs: 0, changed: 0, icon: '', full: "+fmt.Sprint(full)+"})) && true")
			b.pulse()
			b.until("it says what it heard", hidden+" === "+fmt.Sprint(!full))
		}
	}
}
