package browser

import (
	"strings"
	"testing"
)

// twoAsked watches a session whose one command asks for two permissions.
func twoAsked(t *testing.T) (l *live, first, second string) {
	t.Helper()
	l = watch(t, steps("echo hello >> greetings.txt"), asking)
	l.b.within(recovery, "both are asked", countOf(sel("decision-card"))+" === 2")
	open := l.a.pending(l.id)
	return l, "#" + open[0].ID, "#" + open[1].ID
}

// noteOn types a note into a card.
func (b *tab) noteOn(card, text string) {
	b.t.Helper()
	b.press(card + " summary")
	b.fill(card+" textarea", text)
}

// A card that is read while it is answered elsewhere tells what became of it, and
// never what became of another one.
// proves RDR-1
func TestLive_OutcomeOfItsOwnCard(t *testing.T) {
	t.Parallel()
	l, first, second := twoAsked(t)
	b := l.b
	b.noteOn(first, "of the first")
	b.noteOn(second, "of the second")
	b.press(sel("hold"))
	l.a.decide(first[1:], "once")
	l.a.decide(second[1:], "reject")
	b.press(sel("hold"))
	b.within(recovery, "the first tells its own", says(first+" .outdated", "You allowed this once at"))
	b.within(recovery, "the second tells its own", says(second+" .outdated", "You denied this at"))
}

// What a form is answered with names what it was about, by the number that its
// card has; and it is tied to that.
func TestLive_OutcomeNamesItsRequest(t *testing.T) {
	t.Parallel()
	l, first, second := twoAsked(t)
	b := l.b
	asked := "#" + strings.Split(strings.Split(b.text(first+" .card-h"), "#")[1], ",")[0]
	b.press(first + ` button[value="once"]`)
	b.until("it is told", has("#flash "+sel("notice")+`[data-of="`+first[1:]+`"]`))
	if got := b.text("#flash"); !strings.Contains(got, "you allowed what entry "+asked+" asked, once") {
		t.Errorf("after the answer it says %q, want entry %s named", got, asked)
	}
	if got := b.text(second); strings.Contains(got, "llowed what") {
		t.Errorf("the other card says %q", got)
	}
}

// An answer that was given in the inbox is told on the page of its own session.
func TestLive_OutcomeInTheInbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	s := w.serve()
	a, b := s.api(), w.tab(s.base)
	one := a.mission(steps("echo one"), asking)
	a.until(one, "waiting")
	two := a.mission(steps("echo two"), asking)
	a.until(two, "waiting")
	request := a.pending(two)[0].ID
	b.signIn()
	b.visit("/needs-you")
	b.leaving(func() { b.press(`form[action="/permissions/` + request + `/decision"] button[value="once"]`) })
	told := b.text(sel("notice"))
	_, entry, _ := strings.Cut(told, "entry #")
	entry, _, _ = strings.Cut(entry, ":")
	if at, _, _ := strings.Cut(b.location(), "?"); at != "/sessions/"+two || b.attr(sel("notice"), "data-of") != request || entry == "" {
		t.Fatalf("it is told at %s: %q", at, told)
	}
	query := "notice=recorded&seq=" + strings.TrimLeft(entry, "0") // which its address had until it was shown
	b.visit("/sessions/" + one + "?" + query)
	if got := b.text(sel("notice")); got != "" {
		t.Errorf("the other session says %q", got)
	}
	b.visit("/needs-you?" + query)
	if got := b.text(sel("notice")); got != "" {
		t.Errorf("the inbox says %q", got)
	}
	b.visit("/sessions/" + two + "?" + query)
	if got := b.text(sel("notice")); got != told {
		t.Errorf("its own session says %q, and said %q", got, told)
	}
}
