package browser

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"path"
	"strings"
	"testing"
)

// room is one page in one state.
type room struct {
	name string
	as   string // visitor, or newcomer (who has no session); "": who has all of them
	open func(b *tab, g *gallery)
}

// at is a page that is opened by its address.
func at(path string) func(*tab, *gallery) {
	return func(b *tab, _ *gallery) { b.visit(path) }
}

// of is the page of one of the gallery's sessions, or one below it.
func of(name, rest string) func(*tab, *gallery) {
	return func(b *tab, g *gallery) { b.visit(g.session(b.t, name) + rest) }
}

// failing is a page that is opened by its address and answers with an error.
func failing(status int, path string) func(*tab, *gallery) {
	return func(b *tab, _ *gallery) { b.visitFor(status, path) }
}

// posted is the answer to a form.
func posted(status int, path func(t *testing.T, g *gallery) string, fields ...string) func(*tab, *gallery) {
	return func(b *tab, g *gallery) {
		with := map[string]string{"idempotency_key": rand.Text()}
		for i := 0; i+1 < len(fields); i += 2 {
			with[fields[i]] = fields[i+1]
		}
		b.post(status, path(b.t, g), with)
	}
}

func to(path string) func(*testing.T, *gallery) string {
	return func(*testing.T, *gallery) string { return path }
}

// below is a path below a session of the gallery.
func below(name, rest string) func(*testing.T, *gallery) string {
	return func(t *testing.T, g *gallery) string { t.Helper(); return g.session(t, name) + rest }
}

// unknown is a path below the call of a session whose outcome isn't known.
func unknown(name, rest string) func(*testing.T, *gallery) string {
	return func(t *testing.T, g *gallery) string { t.Helper(); return g.call(t, name, "unknown", 0) + rest }
}

// asked is a path below the n-th request of a session.
func asked(name string, n int, rest string) func(*testing.T, *gallery) string {
	return func(t *testing.T, g *gallery) string { t.Helper(); return g.request(t, name, n) + rest }
}

// nth is a path below the n-th call of a session.
func nth(name string, n int, rest string) func(*testing.T, *gallery) string {
	return func(t *testing.T, g *gallery) string { t.Helper(); return g.call(t, name, "", n) + rest }
}

// opened is a page whose address the gallery knows.
func opened(path func(*testing.T, *gallery) string) func(*tab, *gallery) {
	return func(b *tab, g *gallery) { b.visit(path(b.t, g)) }
}

// then is a page with which something is done first.
func then(open func(*tab, *gallery), do func(*tab)) func(*tab, *gallery) {
	return func(b *tab, g *gallery) { open(b, g); do(b) }
}

// storeCredential fills the form and sends it.
func storeCredential(b *tab) {
	b.fill("#name", "ANTHROPIC_API_KEY")
	b.fill("#value", "a-value-that-was-typed")
	b.leaving(func() { b.press(sel("credential-form") + " button") })
}

// rooms are all pages. To add one, add a line; each session of the gallery has
// its own besides.
var rooms = []room{
	{"sign in", "visitor", at("/login")},
	{"sign in, refused", "visitor", posted(http.StatusUnauthorized, to("/login"), "email", "nobody@example.org", "password", "wrong")},
	{"sign in, with a text that was not sent", "visitor", posted(http.StatusUnauthorized, below("ready", "/prompts"), "for", "usr_of_the_sender", "text", "Then look at the logs.\n\nAll of them.", "delivery", "queue")},
	{"sign in, with an answer that was not sent", "visitor", posted(http.StatusUnauthorized, asked("waiting", 0, "/decision"), "for", "usr_of_the_sender", "message", "Not on a Friday.", "reply", "reject")},
	{"a link that has ended", "visitor", failing(http.StatusGone, "/setup?code=wrong")},
	{"help, signed out", "visitor", at("/help")},
	{"the list, empty", "newcomer", at("/")},
	{"needs you, empty", "newcomer", at("/needs-you")},
	{"running commands, none", "newcomer", at("/running")},
	{"the list", "", at("/")},
	{"the list, filtered", "", at("/?state=ready&q=print")},
	{"the list, nothing found", "", at("/?q=nowhere")},
	{"the list, nothing found in a state", "", at("/?state=closed&q=nowhere")},
	{"needs you", "", at("/needs-you")},
	{"new session", "", at("/sessions/new")},
	{"new session, with errors", "", posted(http.StatusUnprocessableEntity, to("/sessions"), "prompt", "", "workspace", "", "agent", "runbook", "preset", "ask_all")},
	{"running commands", "", at("/running")},
	{"settings", "", at("/settings")},
	{"settings, refused", "", posted(http.StatusUnprocessableEntity, to("/settings"), "keys", "some", "theme", "pink")},
	{"agents", "", at("/settings/agents")},
	{"agent, missing", "", at("/settings/agents/gone")},
	{"agent, built in", "", at("/settings/agents/runbook")},
	{"agent, looked at", "", then(at("/settings/agents/tried"), lookAtIt)},
	{"agent, nothing to start", "", posted(http.StatusConflict, to("/settings/agents/runbook/probe"))},
	{"credentials, none", "newcomer", at("/settings/credentials")},
	{"credentials", "", then(at("/settings/credentials"), storeCredential)},
	{"credentials, refused", "", posted(http.StatusUnprocessableEntity, to("/settings/credentials"), "name", "PATH", "value", "a value that was typed")},
	{"credential, to be deleted", "", then(at("/settings/credentials"), func(b *tab) {
		storeCredential(b)
		b.leaving(func() { b.press(sel("credential-delete")) })
	})},
	{"help", "", at("/help")},
	{"the help dialog", "", then(at("/"), openHelp)},
	{"the help dialog of a session", "", then(of("waiting_two", ""), openHelp)},

	{"session, refreshing", "", of("waiting", "?auto=60")},
	{"session, refreshing with calls to reconcile", "", of("uncertain", "?auto=60")},
	{"session, earlier entries", "", of("ready_many_calls", "?before=160")},
	{"session, the first entries", "", of("ready_many_entries", "?before=40")},
	{"session, an empty message", "", posted(http.StatusUnprocessableEntity, below("ready", "/prompts"), "text", "", "delivery", "queue")},
	{"session, a limit in words", "", posted(http.StatusUnprocessableEntity, below("limit_reached", "/continuation"), "steps", "many")},
	{"session, nothing to continue", "", posted(http.StatusConflict, below("ready", "/continuation"), "steps", "300", "wall_h", "2,5")},
	{"session, a resolution without outcome", "", posted(http.StatusUnprocessableEntity, unknown("uncertain", "/resolution"), "evidence", "", "then", "stay")},
	{"session, a resolution without evidence", "", posted(http.StatusUnprocessableEntity, unknown("uncertain_output", "/resolution"), "outcome", "happened", "evidence", "", "then", "stay")},
	{"session, covered", "", then(of("waiting_two", ""), coverIt)},
	{"the list, covered", "", then(at("/"), coverIt)},
	{"session, held", "", then(of("ready_output", ""), func(b *tab) { b.press(sel("hold")); b.until("it is held", shows("your-view", "held")) })},

	{"stop", "", of("running", "/stop")},
	{"stop, once more", "", of("stopping", "/stop")},
	{"request", "", opened(asked("waiting", 0, ""))},
	{"request, one of two", "", opened(asked("waiting_two", 0, ""))},
	{"request, the other one", "", opened(asked("waiting_two", 1, ""))},
	{"request, long", "", opened(asked("waiting_long", 0, ""))},
	{"request, hidden characters", "", opened(asked("waiting_bidi", 0, ""))},
	{"call, not known", "", opened(unknown("uncertain", ""))},
	{"call, not known, with output", "", opened(unknown("uncertain_output", ""))},
	{"call, reconciled", "", opened(unknown("ready_reconciled", ""))},
	{"call that runs", "", opened(nth("running", 1, ""))},
	{"call that failed", "", opened(nth("failed", 1, ""))},
	{"call, 10 MiB", "", opened(nth("ready_large_output", 0, ""))},
	{"call, 10 MiB, more of it", "", opened(nth("ready_large_output", 0, "?lines=400"))},
	{"call that asks", "", opened(nth("waiting", 0, ""))},
	{"call, broken colours", "", opened(nth("ready_output", brokenColours, ""))},
	{"output", "", opened(nth("ready_output", 0, "/output"))},
	{"output, one line", "", opened(nth("ready_output", longLine, "/output"))},
	{"output, a character that is cut", "", opened(nth("ready_output", cutCharacter, "/output"))},
	{"output, not text", "", opened(nth("ready_output", nul, "/output"))},
	{"output, directions", "", opened(nth("ready_output", direction, "/output"))},
	{"output, a later page", "", opened(nth("ready_large_output", 0, "/output?offset=65536"))},
	{"output, none", "", opened(nth("ready_output", noOutput, "/output"))},

	{"error 404", "", failing(http.StatusNotFound, "/sessions/ses_nowhere")},
	{"error 422", "", posted(http.StatusUnprocessableEntity, asked("waiting", 0, "/decision"), "reply", "once", "digest", "other")},
	{"error 409", "", posted(http.StatusConflict, unknown("ready_reconciled", "/resolution"), "outcome", "cannot_tell", "then", "stay")},
}

// afterwards are pages that are there when one request of two was answered.
func afterwards(answered string) []room {
	return []room{
		{"session, one of two answered", "", of("waiting_two", "")},
		{"request, answered", "", at(answered)},
		{"request, answered before", "", posted(http.StatusConflict, to(answered+"/decision"), "reply", "reject", "digest", "other")},
	}
}

// coverIt covers a page as it covers itself when its owner has signed out elsewhere.
func coverIt(b *tab) {
	b.t.Helper()
	b.until("the script is there", "window.holdfast?.source?.() || !document.querySelector('#live')")
	eval[bool](b, "(holdfast.pulse = async () => null, holdfast.cover('nobody'), true)") // who is signed in still would be shown it again
	b.until("it is covered", isCovered)
}

// lookAtIt has an agent started and looked at.
func lookAtIt(b *tab) {
	b.t.Helper()
	b.press(sel("look-form") + " button")
	b.until("it was looked at", has(sel("look")))
}

func openHelp(b *tab) {
	b.t.Helper()
	b.until("the script is there", "window.holdfast?.notify")
	b.key("?")
	b.until("the help is open", has("dialog[open]"))
}

// Every page in every state: axe-core in both themes, wide and narrow; no
// sideways scrolling in 320 pixels, also with other text spacing; and every stop
// of the keyboard seen, in both directions.
//
// On the same server: journals that are long, and what is hard to show
// (large_test.go).
// proves RDR-6 JRN-8
func TestPages(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	desks := newDesks(g)
	all := rooms
	for _, one := range g.r.Sessions {
		all = append(all, room{"session " + one.Name, "", of(one.Name, "")})
	}
	t.Run("filled", func(t *testing.T) {
		t.Run("many entries", g.testManyEntries)
		t.Run("the whole way", g.testTheWholeWay)
		t.Run("hard to show", g.testHardToShow)
		desks.visit(t, g, all)
	})
	answered := g.request(t, "waiting_two", 0)
	g.a.decide(path.Base(answered), "once")
	t.Run("answered", func(t *testing.T) { desks.visit(t, g, afterwards(answered)) })
}

// desks are where rooms are looked at: a tab each for who looks, used again for
// room after room.
type desks chan map[string]*tab

func newDesks(g *gallery) desks {
	all := make(desks, 2)
	for range cap(all) {
		d := map[string]*tab{"": g.w.tab(g.s.base), "visitor": g.w.tab(g.s.base), "newcomer": g.w.tab(g.s.base)}
		d[""].signIn()
		d["newcomer"].signInAs(g.newcomer)
		all <- d
	}
	return all
}

func (all desks) visit(t *testing.T, g *gallery, rooms []room) {
	t.Helper()
	for _, r := range rooms {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			d := <-all
			defer func() { all <- d }()
			b := d[r.as]
			defer b.lend(t)()
			b.width(1280)
			r.open(b, g)
			for _, fault := range look(b) {
				t.Error(fault)
			}
		})
	}
}

// The page that makes the first user is there only while there is none.
func TestPages_Setup(t *testing.T) {
	t.Parallel()
	w := newEmptyWorld(t, "sqlite")
	s := w.serve()
	b := w.tab(s.base)
	_, path, _ := strings.Cut(s.out.Await(s.exited, "Open "), s.base)
	b.visit(path)
	for _, fault := range look(b) {
		t.Error(fault)
	}
	b.fill("#email", w.email)
	b.fill("#password", password)
	b.press(sel("setup-form") + " button")
	b.until("a session can be made", has(sel("new-session-form")))
}

// themes are the schemes of colours, with the rules of axe-core that are asked in
// each; none: all. A theme changes nothing but colours, so one is asked all.
var themes = map[string][]string{"light": nil, "dark": {"color-contrast", "link-in-text-block"}}

// look gives what is wrong with the page that a tab is at, of all that holds for
// every page, and in which way of looking it was seen.
func look(b *tab) []string {
	b.t.Helper()
	var faults []string
	ways := map[string][]string{}
	note := func(fault, way string) {
		if fault == "" {
			return
		}
		if ways[fault] == nil {
			faults = append(faults, fault)
		}
		ways[fault] = append(ways[fault], way)
	}
	for _, width := range []int64{1280, 390} {
		b.width(width)
		for theme, rules := range themes {
			b.theme(theme)
			for _, v := range b.axe(rules...) {
				note(v.String(), fmt.Sprintf("%s, %d px", theme, width))
			}
		}
	}
	b.width(320)
	note(b.overflow(), "320 px")
	unstyle := b.style(spacing)
	note(b.overflow(), "320 px, other text spacing")
	unstyle()
	for _, width := range []int64{390, 1280} {
		b.width(width)
		for _, fault := range b.walk() {
			note(fault, fmt.Sprintf("%d px", width))
		}
	}
	for i, fault := range faults {
		faults[i] = fmt.Sprintf("%s (%s): %s", b.location(), strings.Join(ways[fault], "; "), fault)
	}
	return faults
}
