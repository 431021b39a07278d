package browser

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// room is one page in one state.
type room struct {
	name string
	as   string // visitor, owner or newcomer (who has no session); "": owner
	open func(b *tab, g *gallery)
}

// at is a page that is opened by its address.
func at(path string) func(*tab, *gallery) {
	return func(b *tab, _ *gallery) { b.visit(path) }
}

// of is the page of one of the gallery's sessions.
func of(name, query string) func(*tab, *gallery) {
	return func(b *tab, g *gallery) { b.visit("/sessions/" + g.id(b.t, name) + query) }
}

// failing is a page that is opened by its address and answers with an error.
func failing(status int, path string) func(*tab, *gallery) {
	return func(b *tab, _ *gallery) { b.visitFor(status, path) }
}

// posted is the answer to a form.
func posted(status int, path func(g *gallery) string, fields ...string) func(*tab, *gallery) {
	return func(b *tab, g *gallery) {
		with := map[string]string{"idempotency_key": rand.Text()}
		for i := 0; i+1 < len(fields); i += 2 {
			with[fields[i]] = fields[i+1]
		}
		b.post(status, path(g), with)
	}
}

func to(path string) func(*gallery) string { return func(*gallery) string { return path } }

// rooms are all pages. To add one, add a line.
var rooms = []room{
	{"sign in", "visitor", at("/login")},
	{"sign in, refused", "visitor", posted(http.StatusUnauthorized, to("/login"), "email", "nobody@example.org", "password", "wrong")},
	{"a link that has ended", "visitor", failing(http.StatusGone, "/setup?code=wrong")},
	{"help, signed out", "visitor", at("/help")},
	{"the list, empty", "newcomer", at("/")},
	{"needs you, empty", "newcomer", at("/needs-you")},
	{"the list", "", at("/")},
	{"the list, filtered", "", at("/?state=ready&q=disk")},
	{"the list, nothing found", "", at("/?q=nowhere")},
	{"needs you", "", at("/needs-you")},
	{"new session", "", at("/sessions/new")},
	{"new session, with errors", "", posted(http.StatusUnprocessableEntity, to("/sessions"), "prompt", "", "workspace", "", "agent", "runbook", "preset", "ask_all")},
	{"help", "", at("/help")},

	{"session idle", "", of("idle", "")},
	{"session queued", "", of("queued", "")},
	{"session running", "", of("running", "")},
	{"session waiting", "", of("waiting", "")},
	{"session waiting, long and hidden texts", "", of("long", "")},
	{"session stopping", "", of("stopping", "")},
	{"session uncertain", "", of("uncertain", "")},
	{"session stopped, with messages held", "", of("stopped", "")},
	{"session at its limit", "", of("limit", "")},
	{"session failed", "", of("failed", "")},
	{"session ready", "", of("ready", "")},
	{"session closed", "", of("closed", "")},
	{"session, refreshing", "", of("waiting", "?auto=60")},
	{"session, earlier entries", "", of("ready", "?before=60")},
	{"session, an empty message", "", posted(http.StatusUnprocessableEntity, func(g *gallery) string { return "/sessions/" + g.ids["ready"] + "/prompts" }, "text", "", "delivery", "queue")},
	{"session, a resolution without outcome", "", posted(http.StatusUnprocessableEntity, func(g *gallery) string { return "/calls/" + g.lost + "/resolution" }, "evidence", "", "then", "stay")},

	{"stop", "", of("running", "/stop")},
	{"request", "", func(b *tab, g *gallery) { b.visit("/permissions/" + g.request) }},
	{"request, long", "", func(b *tab, g *gallery) { b.visit("/permissions/" + g.long) }},
	{"request, answered", "", func(b *tab, g *gallery) { b.visit("/permissions/" + g.answered) }},
	{"output", "", func(b *tab, g *gallery) { b.visit("/calls/" + g.output + "/output") }},
	{"output, none", "", func(b *tab, g *gallery) { b.visit("/calls/" + g.silent + "/output") }},

	{"error 404", "", failing(http.StatusNotFound, "/sessions/ses_nowhere")},
	{"error 409", "", posted(http.StatusConflict, func(g *gallery) string { return "/permissions/" + g.answered + "/decision" }, "reply", "reject", "digest", "other")},
	{"error 422", "", posted(http.StatusUnprocessableEntity, func(g *gallery) string { return "/permissions/" + g.request + "/decision" }, "reply", "once", "digest", "other")},
}

// Every page in every state: axe-core in both themes, wide and narrow; no
// sideways scrolling in 320 pixels, also with other text spacing; and every stop
// of the keyboard seen, in both directions.
func TestPages(t *testing.T) {
	t.Parallel()
	g, verdict := newGallery(t), newRefusals(t)
	type desk map[string]*tab
	desks := make(chan desk, 2)
	for range cap(desks) {
		d := desk{"owner": g.w.tab(g.s.base), "visitor": g.w.tab(g.s.base), "newcomer": g.w.tab(g.s.base)}
		d["owner"].signIn()
		d["newcomer"].signInAs(g.newcomer)
		desks <- d
	}
	for _, r := range rooms {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			d := <-desks
			defer func() { desks <- d }()
			if r.as == "" {
				r.as = "owner"
			}
			b := d[r.as]
			defer b.lend(t)()
			b.width(1280)
			r.open(b, g)
			verdict.judge(t, look(b))
		})
	}
}

// The page that makes the first user is there only while there is none.
func TestPages_Setup(t *testing.T) {
	t.Parallel()
	w := newEmptyWorld(t, "sqlite")
	s := w.serve()
	b := w.tab(s.base)
	_, path, _ := strings.Cut(s.out.await(s.exited, "Open "), s.base)
	b.visit(path)
	for _, fault := range look(b) {
		t.Error(fault)
	}
	b.fill("#email", w.email)
	b.fill("#password", password)
	b.press(sel("setup-form") + " button")
	b.until("a session can be made", has(sel("new-session-form")))
}

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
		for _, theme := range []string{"light", "dark"} {
			b.theme(theme)
			for _, v := range b.axe() {
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

// known are faults of the pages as they are now, by what their report says. Each
// must be met, so that a line goes with its fault.
var known = []string{
	`per_.*heading-order`,
	`(?s)landmark-unique.*Output of echo part`,
	`390 px\).*: backwards the focus is at a “(Refresh|Go to the latest|#[0-9]+, link to this entry)”, and hidden: covered`,
}

// refusals fails a subtest of what is wrong and not known, and its parent, when
// all rooms were looked at, of what is known and wasn't met.
type refusals struct {
	mu   sync.Mutex
	met  map[string]bool
	seen int
}

func newRefusals(t *testing.T) *refusals {
	r := &refusals{met: map[string]bool{}}
	t.Cleanup(func() {
		for _, k := range known {
			if r.seen == len(rooms) && !r.met[k] {
				t.Errorf("no page has the known fault any more: %s", k)
			}
		}
	})
	return r
}

func (r *refusals) judge(t *testing.T, faults []string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen++
	for _, f := range faults {
		i := slices.IndexFunc(known, func(k string) bool { return regexp.MustCompile(k).MatchString(f) })
		if i < 0 {
			t.Error(f)
			continue
		}
		r.met[known[i]] = true
		t.Log("known: " + f)
	}
}
