package browser

import (
	"testing"
)

// signInHere signs somebody in at the form that the tab shows.
func (b *tab) signInHere(email string) {
	b.t.Helper()
	b.until("the sign-in form is there", has(sel("login-form")))
	b.fill("#email", email)
	b.fill("#password", b.w.pass)
	b.leaving(func() { b.key(keyEnter) })
}

// signOutIn signs out in another tab of the browser, which is at the sign-in form then.
func (b *tab) signOutIn(other *tab) {
	b.t.Helper()
	other.visit("/settings")
	other.press(`form[action="/logout"] button`)
	other.until("the sign-in form is there", has(sel("login-form")))
}

// stranger makes another user, and gives the address.
func (w *world) stranger() string {
	w.t.Helper()
	email := "other-" + w.email
	w.mustRun(w.pass+"\n", "user", "add", email, "--password-stdin")
	return email
}

// keeps is an expression that is true while a text is somewhere in the page, in a
// field of it, or in the browser's storage.
func keeps(text string) string {
	return `[document.documentElement.outerHTML, document.title, ...[...document.querySelectorAll('textarea')].map(t => t.value),
		...Object.values(sessionStorage), ...Object.values(localStorage)].some(t => t.includes(` + quote(text) + `))`
}

// A note that was typed in a card is there again after the same person's sign-in,
// and gone after anybody else's.
// proves OWN-1 RDR-7
func TestLive_TypedInACard(t *testing.T) {
	t.Parallel()
	l := watch(t, steps("echo merged"), asking)
	b := l.b
	b.allow("status of 401", "status of 404")
	b.within(recovery, "the request is there", has(sel("decision-form")))
	const text = "only after the backup of Tuesday"
	note := sel("decision-note") + " textarea"
	is := "document.querySelector(" + quote(note) + ")?.value === " + quote(text)
	write := func() {
		b.press(sel("decision-note") + " summary")
		b.fill(note, text)
	}
	other := b.sibling()
	covered := func() {
		b.signOutIn(other)
		b.within(recovery, "the page is covered", isCovered)
		if eval[bool](b, "document.documentElement.outerHTML.includes("+quote(text)+") || "+has(note)) {
			t.Error("a page of nobody shows what was typed")
		}
	}

	write()
	covered()
	b.leaving(func() { b.press("#signed-out a") })
	b.signInHere(l.w.email)
	b.until("the note is there again, to be seen", is+" && "+has(note)+".checkVisibility()")
	l.wantLive()
	if eval[bool](b, "Object.values(sessionStorage).some(v => v.includes("+quote(text)+"))") {
		t.Error("what stands in its form again is kept still")
	}

	covered()
	b.leaving(func() { b.press("#signed-out a") })
	b.signInHere(l.w.stranger())
	b.until("it is nobody else's session", "!"+has(sel("journal")))
	if eval[bool](b, keeps(text)) {
		t.Errorf("what was typed is left to another:\n%s", b.text("body"))
	}
	b.signOutIn(b)
	b.signInHere(l.w.email)
	b.visit(l.path())
	b.until("the form is empty", has(note)+"?.value === ''")
	if n := l.a.count(l.id, "permission.replied"); n != 0 {
		t.Errorf("%d answers were sent by themselves", n)
	}
}

// Evidence that was typed for a call is there again too, with what was chosen;
// and what it was for may be over by then: then the text is shown, to be copied.
// proves OWN-1 CAL-7
func TestLive_TypedEvidence(t *testing.T) {
	t.Parallel()
	l := watch(t, "")
	b := l.b
	b.allow("net::ERR_", "status of 401")
	up, gate := l.w.gate("up"), l.w.gate("gate")
	l.a.prompt(l.id, steps(up.tell("$$")+"; "+gate.read()), "queue")
	up.wait()
	l.s.powerCut()
	l.s.start()
	l.reach("uncertain")
	l.wantLive()
	const text = "The log has three of nine parts."
	form := sel("resolution-form")
	other := b.sibling()
	again := func() {
		b.signOutIn(other)
		b.within(recovery, "the page is covered", isCovered)
		b.leaving(func() { b.press("#signed-out a") })
	}

	b.choose(form + ` input[name="outcome"][value="in_part"]`)
	b.fill(form+" textarea", text)
	again()
	b.signInHere(l.w.email)
	b.until("both are there again", "document.querySelector("+quote(form+" textarea")+")?.value === "+quote(text)+" && "+has(form+` input[value="in_part"]`)+".checked")
	l.wantLive()

	again()
	l.a.send("POST", "/api/v1/calls/"+l.a.calls(l.id)[0].ID+"/resolution", map[string]string{"outcome": "happened", "evidence": "I saw it.", "then": "stay"}, nil)
	b.signInHere(l.w.email)
	b.until("the text is shown", says(sel("typed-left"), text))
	b.press(sel("typed-left") + " button")
	b.until("it is taken away", "!"+has(sel("typed-left")))
	if n := l.a.count(l.id, "call.resolved"); n != 1 {
		t.Errorf("%d words are recorded, want the one that was sent", n)
	}
}
