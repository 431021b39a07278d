package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// focusIn is an expression that is true while the focus lies at, or in, something.
func focusIn(css string) string { return "!!document.activeElement?.closest(" + quote(css) + ")" }

// The single keys of ux §9. None of them sends anything.
func TestLive_Keys(t *testing.T) {
	t.Parallel()
	l := watch(t, "# Merge\n\n"+steps("echo merged"), asking)
	b := l.b
	b.within(recovery, "the request is there", has(sel("decision-form")))
	lasting(600 * time.Millisecond) // keys are deaf while a card has just arrived
	head := l.a.session(l.id).LastSeq
	blur := func() { eval[bool](b, "(document.activeElement?.blur(), true)") }
	once, reject := sel("decision-form")+` [value="once"]`, sel("decision-form")+` [value="reject"]`

	blur()
	b.key("n")
	b.until("n goes to what needs you", focusIn(sel("needs")))
	blur()
	b.key("?")
	b.until("? opens the help", has("dialog[open]"))
	b.key(keyEsc)
	b.until("Escape closes it", "!"+has("dialog[open]"))
	b.key("c")
	b.until("c goes to the composer", focusIn("#text"))
	b.key("arn?/gs")
	if got := eval[string](b, "document.querySelector('#text').value"); got != "arn?/gs" {
		t.Errorf("in a field the keys typed %q", got)
	}
	b.selectAll()
	b.key("\b")
	blur()
	b.key("j")
	b.until("j goes to an entry", focusIn(`[data-testid="journal"] > li`))
	first := eval[int](b, `Number(document.activeElement.closest('li').dataset.seq)`)
	b.key("j")
	b.until("j goes to the next", fmt.Sprintf("Number(document.activeElement.closest('li')?.dataset.seq) > %d", first))
	b.key("k")
	b.until("k goes back", fmt.Sprintf("Number(document.activeElement.closest('li')?.dataset.seq) === %d", first))

	for key, button := range map[string]string{"a": once, "r": reject} {
		blur()
		b.key(key, chromedp.ModifierCtrl) // not with a modifier
		if eval[bool](b, focusIn(button)) {
			t.Errorf("Ctrl+%s acts", key)
		}
		b.key(key)
		b.until(key+" goes to its button", focusIn(button))
		b.until("it says what Enter does", says(sel("decision-form"), "Press Enter"))
		if fault := b.focused("").fault(); fault != "" {
			t.Error(fault)
		}
		b.key(keyEsc)
		b.until("Escape goes back", "!"+focusIn(button))
	}
	if got := l.a.session(l.id); got.LastSeq != head || got.State != "waiting" {
		t.Errorf("the keys changed something: entry %d, %s; it was %d", got.LastSeq, got.State, head)
	}
	blur()
	b.key("a")
	b.until("a goes to its button", focusIn(once))
	b.key(keyEnter)
	l.a.untilQuiet(l.id, "ready")
	b.within(recovery, "it is ready", shows("execution", "ready"))

	b.key("c")
	b.until("c goes to the composer", focusIn("#text"))
	b.typeText("```sh\necho more\n```")
	sent := l.a.count(l.id, "prompt.admitted")
	b.key(keyEnter, chromedp.ModifierCtrl)
	eventually(t, "Ctrl+Enter sends", func() bool { return l.a.count(l.id, "prompt.admitted") == sent+1 })

	for keys, path := range map[string]string{"gs": "/", "gi": "/needs-you", "gn": "/sessions/new"} {
		b.visit(l.path())
		b.until("the script is there", shows("your-view", "live"))
		b.key(keys)
		b.until(keys+" leads to "+path, "location.pathname === "+quote(path))
	}
	b.visit("/")
	b.key("/")
	b.until("/ goes to the search", focusIn(`input[type="search"]`))
	blur()
	b.key("j")
	b.until("j goes to a session", focusIn(sel("session-row")))
	b.key("o")
	b.until("o opens it", "location.pathname === "+quote(l.path()))
}

// A person can turn single keys off, for good: it is stored with the account.
func TestLive_KeysOff(t *testing.T) {
	t.Parallel()
	l := watch(t, "")
	b := l.b
	set := func(value string) {
		b.visit("/settings")
		b.choose(sel("settings-form") + ` input[name="keys"][value="` + value + `"]`)
		b.leaving(func() { b.press(sel("settings-form") + " button") })
	}
	set("off")
	elsewhere := l.w.tab(l.p.base)
	elsewhere.signIn()
	for _, other := range []*tab{b, elsewhere} {
		other.visit(l.path())
		other.until("the script is there", shows("your-view", "live"))
		other.key("c")
		other.key("?")
		if eval[bool](other, focusIn("#text")+" || !!"+has("dialog[open]")) {
			t.Error("a key acts although they are off")
		}
	}
	set("on")
	b.visit(l.path())
	b.until("the script is there", shows("your-view", "live"))
	b.key("c")
	b.until("c goes to the composer", focusIn("#text"))
}

// 200 entries in 60 s make at most 6 announcements, by the page's own clock.
func TestLive_Announcements(t *testing.T) {
	t.Parallel()
	l := watch(t, "")
	if said := l.b.text("#say") + l.b.text("#say-now"); strings.TrimSpace(said) != "" {
		t.Errorf("a page that was just opened says %q", said)
	}
	if n := l.b.count(`[aria-live]:not(#say):not(#say-now), [role="alert"]:not(#say-now), [role="log"], [role="status"]:not(#say)`); n != 0 {
		t.Errorf("there are %d live regions beside the two", n)
	}
	l.b.record("say", "#say")
	begun, from := eval[float64](l.b, "performance.now()"), len(l.b.rows(t))
	l.a.prompt(l.id, many(60), "queue")
	l.a.untilQuiet(l.id, "ready")
	l.wantRows()
	if n := len(l.b.rows(t)) - from; n < 200 {
		t.Fatalf("%d entries came; that is no rate to be tested", n)
	}
	var spoken []heardText
	for _, h := range l.b.recorded("say") {
		if h.Text != "" {
			spoken = append(spoken, h)
		}
	}
	for i := range spoken {
		n := 0
		for _, h := range spoken[i:] {
			if h.At-spoken[i].At < 60_000 {
				n++
			}
		}
		if n > 6 {
			t.Errorf("%d announcements within 60 s: %v", n, spoken)
			break
		}
	}
	seconds := (eval[float64](l.b, "performance.now()") - begun) / 1000
	if most := 2 + int(seconds/10); len(spoken) > most { // one each 10 s, and the end
		t.Errorf("%d announcements in %.0f s, want at most %d: %v", len(spoken), seconds, most, spoken)
	}
}

// A card that arrives takes nobody's focus, is told once, and shows in the title
// and the icon. A card that has the focus is not changed under it.
func TestLive_FocusIsNeverStolen(t *testing.T) {
	t.Parallel()
	l := watch(t, "")
	b := l.b
	plain := b.attr("link#favicon", "href")
	b.record("alert", "#say-now")
	b.fill("#text", "I am typing")
	l.a.send("POST", "/api/v1/sessions/"+l.id+"/prompts", map[string]string{"text": steps("sudo true", "sudo true"), "delivery": "queue"}, nil)
	b.within(recovery, "the request is there", has(sel("decision-form")))
	b.typeText(" on")
	if got := eval[string](b, "document.activeElement.id + ': ' + document.activeElement.value"); got != "text: I am typing on" {
		t.Errorf("when the card arrived the focus went to %q", got)
	}
	b.until("it is told", says("#say-now", "Decision needed"))
	b.until("the title says it", "document.title.startsWith('(1) Decision needed:')")
	b.until("the icon shows it", "document.querySelector('link#favicon').getAttribute('href') !== "+quote(plain))
	told := 0
	for _, h := range b.recorded("alert") {
		if strings.Contains(h.Text, "Decision needed") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("it was told %d times: %v", told, b.recorded("alert"))
	}

	card := "#" + b.attr(sel("decision-card"), "id")
	b.tabTo(card + ` [value="once"]`)
	eval[bool](b, "(document.kept = document.activeElement, true)")
	l.a.prompt(l.id, "one more", "queue")
	b.within(recovery, "its entry is there", says(sel("journal"), "one more"))
	if !eval[bool](b, "document.activeElement === document.kept && document.kept.isConnected") {
		t.Error("the button that had the focus was replaced")
	}
	for _, r := range l.a.pending(l.id) { // somebody else answers
		l.a.decide(r.ID, "once")
	}
	b.within(recovery, "it is told", says("#say-now", "allowed this"))
	if eval[bool](b, "document.activeElement === document.body") {
		t.Error("the focus was lost with the card")
	}
}
