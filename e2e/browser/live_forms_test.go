package browser

import (
	"strings"
	"testing"
)

const (
	refusal = `[data-testid="refusal"]`
	typed   = "document.querySelector('#text')?.value"
	toQueue = `[data-testid="composer"] button[value="queue"]`
)

// send writes a message and sends it.
func (l *live) send(text string) {
	l.t.Helper()
	l.b.fill("#text", text)
	l.b.press(toQueue)
}

// wantRefused waits until a form says why nothing, or nothing known, came of it.
// What was typed stays, and the focus is at the refusal.
func (l *live) wantRefused(form, field, text, says string) {
	l.t.Helper()
	l.b.until("it is refused: "+says, has(form)+"?.previousElementSibling?.matches("+quote(refusal)+") && "+focusIn(refusal)+" && "+
		"document.querySelector("+quote(refusal)+").innerText.includes("+quote(says)+")")
	if got := eval[string](l.b, has(field)+".value"); got != text {
		l.t.Errorf("after the refusal %q the field holds %q, want %q", says, got, text)
	}
}

// wantMessages fails unless so many messages were recorded in all.
func (l *live) wantMessages(n int) {
	l.t.Helper()
	if got := l.a.count(l.id, "prompt.admitted"); got != n {
		l.t.Errorf("%d messages are recorded, want %d", got, n)
	}
}

// An answer with a note, and messages that are withdrawn: the page stays, and the
// focus goes to what is next.
// proves PER-2 ADM-8
func TestLive_DecisionAndQueue(t *testing.T) {
	t.Parallel()
	l := watch(t, steps("echo one", "echo two"), asking)
	b := l.b
	j := l.job
	eval[bool](b, "(document.same = true)")
	j.reach("waiting")
	note := sel("decision-note")
	b.press(note + " summary")
	b.fill(note+" textarea", "only this once")
	j.allowStep()
	b.until("the note is in the journal", says(sel("journal"), "only this once"))
	j.reach("waiting")
	if !eval[bool](b, focusIn("#needs")+" || "+focusIn("#needs-list .card h3")) {
		t.Errorf("after an answer the focus is at %s", b.focused("").Is)
	}

	l.send("the first of two")
	b.until("it waits", countOf(sel("queued-prompt"))+" === 1 && "+typed+" === ''")
	b.until("the focus stays with the composer", focusIn("#text"))
	l.send("the second of two")
	b.until("both wait", countOf(sel("queued-prompt"))+" === 2")
	j.withdraw("the first", 1)
	b.until("the focus is at the next one", focusIn(sel("queued-prompt")+" button"))
	j.withdraw("the second", 0)
	b.until("the focus is at the composer", focusIn("#text"))
	b.until("it is told", says("#flash", "ithdrawn"))

	b.press("#" + l.a.pending(l.id)[0].ID + ` button[value="reject"]`)
	j.reach("stopped")
	if !eval[bool](b, "document.same === true") {
		t.Error("the page was left on the way")
	}
	l.wantRows()
}

// A message whose answer is lost, whether it was recorded or not, is kept, and is
// recorded once when it is sent again; if it was changed meanwhile, that is refused.
// proves ADM-2 ADM-3 ADM-4
func TestLive_LostAnswers(t *testing.T) {
	t.Parallel()
	l := watch(t, "")
	b := l.b
	b.allow("net::ERR_", "status of 503", "status of 422", "status of 401")
	form, again := sel("composer"), sel("send-again")

	l.p.lose("/prompts")
	l.send(steps("echo hello"))
	l.wantRefused(form, "#text", steps("echo hello"), "may or may not have been recorded")
	l.wantMessages(1)
	l.p.pass()
	b.press(again)
	b.until("it is recorded", "!"+has(refusal)+" && "+typed+" === '' && "+says("#flash", "ecorded"))
	l.wantMessages(1)

	l.p.lose("/prompts")
	l.send("this")
	l.wantRefused(form, "#text", "this", "may or may not have been recorded")
	l.p.pass()
	b.fill("#text", "and that")
	b.press(again)
	l.wantRefused(form, "#text", "and that", "already sent with other content")
	l.wantMessages(2)

	b.visit(l.path())
	l.wantLive()
	b.until("no draft is left of what was sent", typed+" !== 'this'")
	l.p.answer503()
	l.send("while nobody answers")
	l.wantRefused(form, "#text", "while nobody answers", "may or may not have been recorded")
	l.p.pass()
	b.press(again)
	b.until("it is recorded", "!"+has(refusal)+" && "+typed+" === ''")
	l.wantMessages(3)
	l.wantLive()

	b.visit(l.path())
	l.wantLive()
	b.fill("#text", "after the end")
	b.forgetCookies()
	b.press(toQueue)
	l.wantRefused(form, "#text", "after the end", "You are signed out, so this was not sent")
	if to := b.attr(refusal+" a", "href"); to != "/login?next="+"%2Fsessions%2F"+l.id {
		t.Errorf("its link leads to %s", to)
	}
	l.wantMessages(3)
}

// A word about a call that lacks something is refused beside its form, which keeps
// what was typed; a whole one is taken.
// proves CAL-6 CAL-7
func TestLive_Resolution(t *testing.T) {
	t.Parallel()
	l := watch(t, "")
	b := l.b
	b.allow("net::ERR_", "status of 422")
	j := l.job
	up, gate := l.w.gate("up"), l.w.gate("gate")
	l.a.prompt(l.id, steps(up.Tell("$$")+"; "+gate.Read(), "echo next"), "queue")
	up.Wait()
	l.s.powerCut()
	l.s.start()
	j.reach("uncertain")
	l.wantLive()

	form := sel("resolution-form")
	evidence := form + ` textarea[name="evidence"]`
	b.fill(evidence, "I looked.")
	b.press(form + ` button[value="continue"]`)
	l.wantRefused(form, evidence, "I looked.", "There is a problem")
	b.choose(form + ` input[name="outcome"][value="in_part"]`)
	b.fill(evidence, " ")
	b.press(form + ` button[value="continue"]`)
	l.wantRefused(form, evidence, " ", "vidence")
	if !eval[bool](b, has(form+` input[value="in_part"]`)+".checked") {
		t.Error("what was chosen is not chosen any more")
	}
	if n := l.a.count(l.id, "call.resolved"); n != 0 {
		t.Errorf("%d words are recorded", n)
	}
	j.reconcile("happened", "The log has it.", "continue")
	b.until("the focus is where one goes on", focusIn("#needs"))
	j.reach("ready")
	l.wantRows()
}

// A page that answers a refused form stands at the form's address, and follows its
// session like any other.
// proves RDR-4
func TestLive_APageThatAnswersAForm(t *testing.T) {
	t.Parallel()
	l := watch(t, "")
	b := l.b
	b.allow("net::ERR_", "status of 422")
	up, gate := l.w.gate("up"), l.w.gate("gate")
	l.a.prompt(l.id, steps(up.Tell("$$")+"; "+gate.Read(), "echo next"), "queue")
	up.Wait()
	l.s.powerCut()
	l.s.start()
	l.reach("uncertain")
	eval[bool](b, "(HTMLFormElement.prototype.submit.call("+has(sel("resolution-form"))+"), true)")
	b.until("the form is refused by a page", "location.pathname.endsWith('/resolution') && document.readyState === 'complete' && "+says("main", "There is a problem"))
	l.wantLive()
	if !eval[bool](b, "holdfast.source().ask()") {
		t.Error("what is new can't be asked for")
	}
}

// An answer that comes after a stream that has told more puts nothing older in
// its place: neither a card that was answered, nor what the session did then.
// proves RDR-1
func TestLive_AnOlderAnswer(t *testing.T) {
	t.Parallel()
	l := watch(t, steps("echo one"), asking)
	b := l.b
	l.reach("waiting")
	b.within(recovery, "the card is there", has(sel("decision-card")))
	eval[bool](b, `(async () => { window.older = await (await fetch(location.pathname, {headers: {'HX-Request': 'true'}})).text(); return true; })()`)
	for _, r := range l.a.pending(l.id) {
		l.a.decide(r.ID, "once")
	}
	l.a.untilQuiet(l.id, "ready")
	b.within(recovery, "it is ready", shows("execution", "ready"))
	eval[bool](b, `(holdfast.swapParts(window.older), true)`)
	if !eval[bool](b, "!!"+shows("execution", "ready")+" && !"+has(sel("decision-card"))) {
		t.Error("an older answer took the place of what is")
	}
}

// What was said of a message goes once more has happened since, with its place: it
// leaves no hole in the page. Not while its link has the focus, and not while there
// is something to press below it, which would move under the pointer.
func TestLive_NoticeGoesWithWhatComesLater(t *testing.T) {
	t.Parallel()
	l := watch(t, many(1))
	l.a.untilQuiet(l.id, "ready")
	b, notice := l.b, sel("notice")
	top := "Math.round(document.querySelector('#needs').getBoundingClientRect().top + scrollY)"
	before := eval[int](b, top)
	l.message(many(1), "queue", 0)
	b.until("it is told", says("#flash "+notice, "ecorded as entry"))
	if during := eval[int](b, top); during <= before {
		t.Errorf("the notice takes no place: what stands below it is at %d, and was at %d", during, before)
	}
	l.a.untilQuiet(l.id, "ready")
	l.wantRows()
	eval[bool](b, "(window.scrollTo(0, 0), true)")
	b.within(recovery, "it is gone", "!"+has(notice))
	if after := eval[int](b, top); after != before {
		t.Errorf("it left a hole: what stood at %d is at %d", before, after)
	}
	if at := eval[string](b, "document.activeElement.id"); at != "text" {
		t.Errorf("the focus is at %q", at)
	}

	gate := l.w.gate("gate")
	l.message(steps(gate.Read()), "queue", 0)
	b.until("it is told again", says("#flash "+notice, "ecorded as entry"))
	b.within(recovery, "it is gone while its turn runs", "!"+has(notice)+" && "+shows("execution", "running"))
	gate.Open()
	l.a.untilQuiet(l.id, "ready")

	l.a.prompt(l.id, many(1), "queue")
	l.a.untilQuiet(l.id, "ready")
	other := b.sibling()
	other.visit(l.path() + "?notice=recorded&seq=2")
	other.until("it is told", says(notice, "Recorded as entry #0002: your message."))
	eval[bool](other, "document.querySelector("+quote(notice+" a")+").focus() || true")
	lasting(recovery)
	if got := other.text(notice); got == "" {
		t.Error("it went while its link had the focus")
	}
	eval[bool](other, "document.activeElement.blur() || true")
	other.within(recovery, "it is gone", "!"+has(notice))
}

// A notice above a card that asks stays whole, so that no button moves to where
// another one was about to be pressed; it goes with the card, or once it isn't seen.
func TestLive_NoticeAboveACard(t *testing.T) {
	t.Parallel()
	l := watch(t, steps("echo one"), asking)
	l.reach("waiting")
	b, notice := l.b, sel("notice")
	b.visit(l.path() + "?notice=recorded&seq=2")
	l.wantLive()
	button := "Math.round(document.querySelector('#needs-list button[value=once]').getBoundingClientRect().top)"
	before := eval[int](b, button)
	l.a.prompt(l.id, many(1), "queue")
	b.within(recovery, "the message is there", has(`#journal-list li[data-kind="prompt.admitted"]:nth-last-child(-n+3)`))
	lasting(recovery)
	if got, after := b.text(notice), eval[int](b, button); !strings.Contains(got, "Recorded as entry #0002") || after != before {
		t.Errorf("the button moved from %d to %d, and above it stands %q", before, after, got)
	}
	for range 2 { // the message asks, too
		eventually(t, "it asks", func() bool { return len(l.a.pending(l.id)) == 1 })
		l.a.decide(l.a.pending(l.id)[0].ID, "once")
	}
	l.a.untilQuiet(l.id, "ready")
	b.within(recovery, "it is gone", "!"+has(notice))
}
