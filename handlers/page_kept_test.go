package handlers

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"holdfast/journal"
	"holdfast/store/storetest"
)

// refusal is a form that is refused, with what was typed into it.
type refusal struct {
	path, why string
	status    int
	body      url.Values // as it is sent; none of a form in which nothing is typed
	typed     []string   // the names of the fields in which a person writes
}

// refusals are all forms of the pages, by their route.
func refusals(th things, limited, plain string) map[string][]refusal {
	limits := vals("steps", "twelve", "wall_h", "2,5", "tokens", "9000", "cost_usd", "0.5")
	mission := func(with ...string) url.Values {
		v := vals("prompt", "tidy\nup", "workspace", "/srv/shop", "idempotency_key", newKey())
		for name, values := range limits {
			v[name] = values
		}
		for name, values := range vals(with...) {
			v[name] = values
		}
		return v
	}
	all := []string{"prompt", "workspace", "steps", "wall_h", "tokens", "cost_usd"}
	long := strings.Repeat("x", journal.MaxPromptBytes+1)
	return map[string][]refusal{
		"/sessions": {
			{"/sessions", "a limit in words", 422, mission(), all},
			{"/sessions", "a workspace elsewhere", 422, mission("workspace", "/etc", "steps", "12"), all},
			{"/sessions", "no key", 400, mission("idempotency_key", ""), all},
		},
		"/sessions/new/unsent": {
			{"/sessions/new/unsent", "too long", 413, mission("prompt", long), all},
			{"/sessions/new/unsent", "no key", 400, mission("idempotency_key", ""), all},
		},
		"/sessions/:id/unsent": {
			{"/sessions/" + plain + "/unsent", "too long", 413, vals("text", long, "idempotency_key", newKey()), []string{"text"}},
			{"/sessions/" + plain + "/unsent", "no key", 400, vals("text", "half a\nthought"), []string{"text"}},
			{"/sessions/" + plain + "/unsent", "a key that nothing could be sent under", 400, vals("text", "half a\nthought", "idempotency_key", "two words"), []string{"text"}},
		},
		"/sessions/:id/prompts": {{"/sessions/" + plain + "/prompts", "no such delivery", 422, vals("text", "go\non", "delivery", "soon", "idempotency_key", newKey()), []string{"text"}}},
		"/sessions/:id/continuation": {
			{"/sessions/" + limited + "/continuation", "a limit in words", 422, vals("steps", "twelve"), []string{"steps"}},
			{"/sessions/" + limited + "/continuation", "another limit than was asked for", 422, vals("steps", "300", "wall_h", "long"), []string{"steps", "wall_h"}},
			{"/sessions/" + plain + "/continuation", "nothing is held", 409, vals("steps", "300", "wall_h", "2,5"), []string{"steps", "wall_h"}},
			{"/sessions/" + plain + "/continuation", "nothing is held, and in words", 422, vals("steps", "twelve"), []string{"steps"}},
		},
		"/permissions/:id/decision": {
			{"/permissions/" + th.request + "/decision", "other content", 422, vals("message", "not\nthis", "reply", "once", "digest", "other", "idempotency_key", newKey()), []string{"message"}},
			{"/permissions/" + th.request + "/decision", "no key", 400, vals("message", "not\nthis", "reply", "once"), []string{"message"}},
		},
		"/calls/:id/resolution":        {{"/calls/" + th.call + "/resolution", "no outcome", 422, vals("evidence", "looked\nat it", "then", "stay"), []string{"evidence"}}},
		"/attempts/:id/resolution":     {{"/attempts/" + th.attempt + "/resolution", "no outcome", 422, vals("evidence", "the\nbill", "then", "stay"), []string{"evidence"}}},
		"/login":                       {{"/login", "a wrong password", 401, vals("email", "who@example.org", "password", "wrong horse"), []string{"email"}}},
		"/setup":                       nil, // has its own server below
		"/logout":                      nil, // a button
		"/settings":                    nil, // choices
		"/settings/agents/:name/probe": nil, // a button
		"/settings/credentials": {
			{"/settings/credentials", "a name that isn't one", 422, vals("name", "NO-NAME", "agent", "", "value", "long-enough", "idempotency_key", newKey()), []string{"name"}},
			{"/settings/credentials", "a short value", 422, vals("name", "A_KEY", "value", "short", "idempotency_key", newKey()), []string{"name"}},
		},
		"/settings/credentials/:id/deletion": nil, // a button
		"/sessions/:id/interruption":         nil, // buttons
		"/sessions/:id/archive":              nil, // a button
		"/sessions/:id/settings":             nil, // choices
		"/sessions/:id/seen":                 nil, // sent by a script
		"/prompts/:id/withdrawal":            nil, // a button
	}
}

// What was typed into a form stands in the answer that refuses it, to be read,
// changed or copied, without a script. To add a form, add a line.
func TestForms_RefusedHoldWhatWasTyped(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		limited := w.start(t, w.alice, "go")
		limited.end(journal.TurnEnded{Outcome: journal.LimitReach, Limit: "steps"})
		all := refusals(w.things(t, w.alice), limited.Session, w.session(t, w.alice))
		for _, r := range w.srv.pageRoutes() {
			if r.method != post {
				continue
			}
			list, listed := all[r.path]
			if !listed {
				t.Errorf("nobody has looked at what a refusal of %s holds", r.path)
			}
			for _, form := range list {
				form.body.Set("for", w.alice.user.ID)
				b := w.tab(t, w.alice).post(form.path, form.body).page().want(form.status)
				wantTyped(t, b, form)
			}
		}
	})
	empty := newEmptyWorld(t, storetest.New(t, "sqlite"))
	code, err := empty.store.SetupLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	form := refusal{"/setup", "a short password", http.StatusUnprocessableEntity, vals("code", code, "email", "who@example.org", "password", "short"), []string{"email"}}
	wantTyped(t, empty.tab(t, person{}).post(form.path, form.body).page().want(form.status), form)
}

// wantTyped fails unless each typed value stands in a field that can be seen.
func wantTyped(t *testing.T, b *tab, form refusal) {
	t.Helper()
	for _, name := range form.typed {
		want := form.body.Get(name)
		found := b.doc.Find("main textarea, main input:not([type=hidden])").FilterFunction(func(_ int, f *goquery.Selection) bool {
			return strings.TrimPrefix(f.Text(), "\n") == want || f.AttrOr("value", "") == want
		})
		if found.Length() != 1 {
			t.Errorf("%s, %s: %d fields hold what was typed as %s", form.path, form.why, found.Length(), name)
		}
	}
}
