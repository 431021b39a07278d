package browser

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"holdfast/store/storetest"
)

// The whole main job by keyboard alone: every control is reached by Tab, each
// stop on the way is seen, and no key is pressed that a person would not press.
// proves ADM-1 PER-2 PRO-5 COO-4 CAL-4 CAL-6 CAL-7
func TestMainJob_ByKeyboard(t *testing.T) {
	t.Parallel()
	for _, name := range storetest.Databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEmptyWorld(t, name)
			mainJob(t, w, w.serve(), func(*tab) {})
		})
	}
}

// The same where no script runs.
// proves ADM-1 PER-2 PRO-5 CAL-6
func TestMainJob_WithoutScript(t *testing.T) {
	t.Parallel()
	w := newEmptyWorld(t, "sqlite")
	mainJob(t, w, w.serve(), func(b *tab) {
		b.withoutScript()
		// It must be off indeed, else this proves nothing.
		b.call("open a page with a script", func(ctx context.Context) error {
			return chromedp.Do(ctx, chromedp.Navigate("data:text/html,<title>off</title><script>document.title='on'</script>"))
		})
		if got := eval[string](b, "document.title"); got != "off" {
			t.Fatalf("scripts are %s", got)
		}
	})
}

func mainJob(t *testing.T, w *world, s *server, prepare func(*tab)) {
	t.Helper()
	b := w.tab(s.base)
	prepare(b)
	b.allow("net::ERR_") // the server is killed on the way
	up, gate := w.gate("up"), w.gate("gate")

	setUp(t, b, s)
	id := handOver(b, "# The job\n\n"+steps(effect("one"), up.Tell("$$")+"; "+gate.Read()+"; "+effect("two"), effect("three")))
	j := &job{b: b, a: s.api(), id: id}

	j.reach("waiting")
	w.wantEffects()
	j.allowStep()
	j.reach("waiting")
	w.wantEffects("one")
	j.allowStep()
	up.Wait()
	j.reach("running")

	j.message(steps(effect("steered")), "steer", 1)
	j.message("not this after all", "queue", 2)
	j.withdraw("not this after all", 1)

	j.stop("boundary")
	j.reach("stopping")
	gate.Open()
	j.reach("stopped")
	w.wantEffects("one", "two")
	j.goOn()
	j.reach("waiting")
	j.allowStep()
	j.reach("waiting")
	w.wantEffects("one", "two", "steered")
	j.allowStep()
	j.reach("ready")
	w.wantEffects("one", "two", "steered", "three")

	j.message(steps(effect("begun")+"; "+up.Tell("$$")+"; "+gate.Read()+"; "+effect("ended")), "queue", 0)
	j.reach("waiting")
	j.allowStep()
	up.Wait()
	s.powerCut()
	s.start()
	b.reload()
	j.reach("uncertain")
	j.reconcile("happened", "I read the file: it says begun.", "continue")
	j.reach("ready")
	w.wantEffects("one", "two", "steered", "three", "begun")

	j.archive()
	b.press(`form[action="/logout"] button`)
	b.until("the sign-in form is there", has(sel("login-form")))
	b.signIn()
	b.until("the list shows the closed session", has(sel("session-row")+`[data-state="closed"]`))
}

// setUp makes the first user by the link that the server printed.
func setUp(t *testing.T, b *tab, s *server) {
	t.Helper()
	link := s.out.Await(s.exited, "Open ")
	u, err := url.Parse(link)
	if err != nil || u.Path != "/setup" {
		t.Fatalf("the printed link is %q", link)
	}
	b.visit("/setup?" + u.RawQuery)
	b.fill("#email", b.w.email)
	b.fill("#password", password)
	b.press(sel("setup-form") + " button")
	b.until("a session can be made", has(sel("new-session-form")))
}

// handOver makes a session by its form, whose steps all ask, and gives its id.
func handOver(b *tab, prompt string) string {
	b.t.Helper()
	b.fill("#prompt", prompt)
	b.fill("#workspace", b.w.work)
	b.choose(`input[name="preset"][value="ask_all"]`)
	b.press(sel("new-session-form") + " button")
	b.until("the session is there", has(sel("journal")))
	path, _, _ := strings.Cut(b.location(), "?")
	path, _, _ = strings.Cut(path, "#")
	return strings.TrimPrefix(path, "/sessions/")
}

// job is a session in a tab.
type job struct {
	b        *tab
	a        *api
	id       string
	answered string // the call that was allowed last
}

// reach waits until the session is in a state, and the page says so. A page that
// doesn't follow by itself has a link that shows it anew.
func (j *job) reach(state string) {
	j.b.t.Helper()
	eventually(j.b.t, "the session is "+state, func() bool {
		j.a.until(j.id, state)
		return state != "waiting" || j.asked() != "" && j.asked() != j.answered // it waits for the next step
	})
	refresh := sel("refresh")
	says := shows("execution", state)
	if state == "waiting" { // also for a step that was answered: the page must show this one
		says += " && " + has("#"+j.a.pending(j.id)[0].ID)
	}
	if !eval[bool](j.b, "!!("+says+")") && eval[bool](j.b, has(refresh)+"?.checkVisibility() ?? false") {
		j.b.press(refresh)
	}
	j.b.until("the page says "+state, says)
}

// allowStep allows all that one step asks, each by the button of its card.
func (j *job) allowStep() {
	j.b.t.Helper()
	j.answered = j.asked()
	for _, r := range j.a.pending(j.id) {
		if r.Tool.CallID != j.answered {
			continue
		}
		button := "#" + r.ID + ` button[value="once"]`
		j.b.press(button)
		j.b.until("the request is answered", "!"+has(button)+" && "+has(sel("journal"))+" && document.readyState === 'complete'")
	}
}

// asked is the call that asks for a decision now; "" none.
func (j *job) asked() string {
	j.b.t.Helper()
	if open := j.a.pending(j.id); len(open) > 0 {
		return open[0].Tool.CallID
	}
	return ""
}

// message sends one, after which so many wait to be delivered; 0: any number.
func (j *job) message(text, delivery string, waiting int) {
	j.b.t.Helper()
	last := eval[int](j.b, lastRow)
	j.b.fill("#text", text)
	j.b.press(sel("composer") + " button[value=" + delivery + "]")
	j.b.until("the message is recorded", lastRow+" > "+fmt.Sprint(last))
	if waiting > 0 {
		j.b.until("the message waits", countOf(sel("queued-prompt"))+" === "+fmt.Sprint(waiting))
	}
}

// lastRow is the number of the last entry that the page shows.
const lastRow = `Number([...document.querySelectorAll('[data-testid="journal"] > li')].at(-1)?.dataset.seq ?? 0)`

// countOf is an expression that counts elements.
func countOf(css string) string { return "document.querySelectorAll(" + quote(css) + ").length" }

// withdraw takes a message back, after which so many wait to be delivered.
func (j *job) withdraw(text string, waiting int) {
	j.b.t.Helper()
	action := eval[string](j.b, "[..."+"document.querySelectorAll("+quote(sel("queued-prompt"))+")].find(p => p.innerText.includes("+quote(text)+")).querySelector('form').getAttribute('action')")
	j.b.press(fmt.Sprintf("form[action=%q] button", action))
	j.b.until("it waits no more", countOf(sel("queued-prompt"))+" === "+fmt.Sprint(waiting))
}

// stop stops the turn by the form that asks how.
func (j *job) stop(mode string) {
	j.b.t.Helper()
	j.b.press(sel("stop-link"))
	j.b.press(sel("stop-form") + " button[value=" + mode + "]")
	j.b.until("the session's page is there again", has(sel("journal")))
}

// goOn continues what is held.
func (j *job) goOn() {
	j.b.t.Helper()
	j.b.press(sel("continuation-form") + " button")
	j.b.until("it goes on", "!"+has(sel("continuation-form"))+" && "+has(sel("journal")))
}

// reconcile says what became of the first call whose outcome isn't known.
func (j *job) reconcile(outcome, evidence, then string) {
	j.b.t.Helper()
	form := sel("resolution-form")
	j.b.choose(form + fmt.Sprintf(` input[name="outcome"][value=%q]`, outcome))
	j.b.fill(form+` textarea[name="evidence"]`, evidence)
	j.b.press(form + fmt.Sprintf(" button[value=%q]", then))
	j.b.until("it is recorded", "!"+has(form)+" && "+has(sel("journal")))
}

// archive closes the session.
func (j *job) archive() {
	j.b.t.Helper()
	j.b.press(sel("archive") + " summary")
	j.b.press(sel("archive") + " button")
	j.b.until("it is closed", shows("execution", "closed"))
}
