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
	l.a.prompt(l.id, steps(up.Tell("$$")+"; "+gate.Read()), "queue")
	up.Wait()
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

// A note in a card is there again after its page was left or loaded again, where it
// can be seen; not after it was sent, and not after a sign-out.
// proves OWN-1
func TestLive_TypedAndLoadedAgain(t *testing.T) {
	t.Parallel()
	l, first, second := twoAsked(t)
	b := l.b
	const text = "only after the backup"
	seen := "document.querySelector(" + quote(first+" textarea") + ")?.value === " + quote(text) + " && " + has(first+" textarea") + ".checkVisibility()"

	b.noteOn(first, text)
	b.leaving(b.reload)
	b.until("the note is there again, to be seen", seen)
	b.leaving(func() { b.visit("/help") })
	b.visit(l.path())
	b.until("the note is there again, to be seen", seen)
	l.wantLive()

	b.press(first + ` button[value="once"]`)
	b.until("the note is in the journal", says(sel("journal"), text))
	b.leaving(b.reload)
	b.until("the other card is there", has(second))
	if eval[bool](b, has(sel("typed-left"))+" || Object.values(sessionStorage).some(v => v.includes("+quote(text)+"))") {
		t.Error("what was sent is kept still")
	}

	b.noteOn(second, text)
	b.leaving(b.reload) // it is kept, and stands in its form again
	b.visit("/permissions/" + second[1:])
	b.noteOn(second, text)
	b.signOutIn(b)
	if eval[bool](b, keeps(text)) {
		t.Errorf("what was typed is left to another:\n%s", b.text("body"))
	}
	b.signInHere(l.w.email)
	b.visit(l.path())
	b.until("the form is empty", has(second+" textarea")+"?.value === ''")
}

// What would be sent is never folded away: not in a card that took the place of
// another, and not after a refusal.
func TestLive_TypedIsSeen(t *testing.T) {
	t.Parallel()
	l, first, _ := twoAsked(t)
	b := l.b
	b.allow("status of 503", "net::ERR_")
	const text = "only after the backup"
	is := has(first+" textarea") + "?.value === " + quote(text)
	seen := is + " && " + has(first+" textarea") + ".checkVisibility()"
	fold := func() {
		b.press(first + " summary")
		b.until("it is folded", is+" && !"+has(first+" textarea")+".checkVisibility()")
	}

	b.noteOn(first, text)
	fold()
	eval[bool](b, `(async () => {
		const html = await (await fetch(location.pathname, {headers: {'HX-Request': 'true'}})).text();
		holdfast.swapParts(html.replaceAll(/data-version="[^"]*"/g, 'data-version="other"'));
		return true;
	})()`)
	b.until("the change is offered", has(first+" .outdated"))
	b.press(first + " .outdated button")
	b.until("the new card shows what is in it", seen+" && !"+has(first+" .outdated"))

	fold()
	l.p.answer503()
	b.press(first + ` button[value="once"]`)
	b.until("the refusal shows what it is about", seen+" && "+has(first+" "+refusal))
	l.p.pass()
}
