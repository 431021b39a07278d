package handlers

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/journal/policy"
	"holdfast/store/storetest"
)

type badInput struct {
	name   string
	method string
	path   string
	opts   []option
	status int
	slug   string
}

func TestBadInput(t *testing.T) {
	// proves ADM-2 ADM-10 CAL-3
	onEach(t, func(t *testing.T, w *world) {
		th := w.things(t, w.alice)
		raw := w.db.SQL(t)
		cases := keysAndBodies(th)
		cases = append(cases, badPrompts(th)...)
		cases = append(cases, badSessions()...)
		cases = append(cases, badAnswers(th)...)
		cases = append(cases, badQueries(th)...)
		for _, tt := range cases {
			before := w.db.RowCounts(t, raw)
			a := w.do(t, tt.method, tt.path, append([]option{as(w.alice)}, tt.opts...)...)
			if a.status != tt.status {
				t.Errorf("%s: got %d %s\nwant %d %s", tt.name, a.status, a.body, tt.status, tt.slug)
				continue
			}
			a.wantProblem(t, tt.status, tt.slug)
			if after := w.db.RowCounts(t, raw); !maps.Equal(before, after) {
				t.Errorf("%s: rows were written: %v, then %v", tt.name, before, after)
			}
		}
		if log := w.log.String(); log != "" {
			t.Errorf("bad input was logged as a fault:\n%s", log)
		}
	})
}

// A header that is there twice with one value, as a careless proxy sends it, is that value.
func TestHeaders_TwiceTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	path := "/api/v1/sessions/" + w.session(t, w.alice)
	w.do(t, post, path+"/prompts", as(w.alice), also("Authorization", "Bearer "+w.alice.token), key("k"), also("Idempotency-Key", "k"), sendsJSON(`{"text":"hi"}`)).want(t, http.StatusAccepted)
	w.do(t, get, path+"/events", as(w.alice), header("Last-Event-ID", "1"), also("Last-Event-ID", "1")).want(t, http.StatusOK)
}

func keysAndBodies(th things) []badInput {
	path := "/api/v1/sessions/" + th.session + "/prompts"
	good := sendsJSON(`{"text":"hi","delivery":"queue"}`)
	body := func(name, json, slug string, status int) badInput {
		return badInput{name, post, path, []option{key("k"), sendsJSON(json)}, status, slug}
	}
	return []badInput{
		{"no key", post, path, []option{good}, 400, "idempotency-key-missing"},
		{"an empty key", post, path, []option{good, key(`""`)}, 400, "idempotency-key-missing"},
		{"a key of 256", post, path, []option{good, key(strings.Repeat("k", 256))}, 400, "idempotency-key-malformed"},
		{"a key with a blank", post, path, []option{good, key("a b")}, 400, "idempotency-key-malformed"},
		{"a key that isn't ASCII", post, path, []option{good, key("schlüssel")}, 400, "idempotency-key-malformed"},
		{"two keys", post, path, []option{good, key("k"), also("Idempotency-Key", "j")}, 400, "header-repeated"},
		{"no key and a key", post, path, []option{good, key(""), also("Idempotency-Key", "j")}, 400, "header-repeated"},
		{"two keys of an answer", post, "/api/v1/permissions/" + th.request + "/decision", []option{key("k"), also("Idempotency-Key", "j"), sendsJSON(`{"reply":"once"}`)}, 400, "header-repeated"},
		{"two tokens", post, path, []option{good, key("k"), also("Authorization", "Bearer hft_other")}, 400, "header-repeated"},
		{"two places to go on from", get, "/api/v1/sessions/" + th.session + "/events", []option{header("Last-Event-ID", "1"), also("Last-Event-ID", "0")}, 400, "header-repeated"},
		{"no key for a session", post, "/api/v1/sessions", []option{sendsJSON(`{"workspace":"/srv/x","agent":"runbook"}`)}, 400, "idempotency-key-missing"},
		body("no body", "", "malformed-json", 400),
		body("an array", "[]", "malformed-json", 400),
		body("null", "null", "malformed-json", 400),
		body("half an object", `{"text":"hi"`, "malformed-json", 400),
		body("two objects", `{"text":"hi"}{"text":"ho"}`, "malformed-json", 400),
		body("a comma too many", `{"text":"hi",}`, "malformed-json", 400),
		body("a member twice", `{"text":"hi","text":"ho"}`, "duplicate-member", 400),
		body("an unknown member", `{"text":"hi","colour":1}`, "unknown-member", 422),
		body("another spelling", `{"Text":"hi"}`, "unknown-member", 422),
		body("a number for a text", `{"text":7}`, "wrong-type", 422),
		body("an object for a text", `{"text":{"a":1}}`, "wrong-type", 422),
		body("an array for a text", `{"text":["a"]}`, "wrong-type", 422),
		body("nested deep", `{"text":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`}`, "wrong-type", 422),
		body("not UTF-8", "{\"text\":\"\xff\xfe\"}", "not-utf8", 400),
		{"no type", post, path, []option{key("k"), sending("", `{"text":"hi"}`)}, 415, "unsupported-media-type"},
		{"a form", post, path, []option{key("k"), sendsForm("text=hi")}, 415, "unsupported-media-type"},
		{"another charset", post, path, []option{key("k"), sending("application/json; charset=latin1", `{"text":"hi"}`)}, 415, "unsupported-media-type"},
		{"compressed", post, path, []option{key("k"), good, header("Content-Encoding", "gzip")}, 415, "unsupported-media-type"},
	}
}

func badPrompts(th things) []badInput {
	var out []badInput
	add := func(name, body, slug string, status int) {
		out = append(out, badInput{name, post, "/api/v1/sessions/" + th.session + "/prompts", []option{key("k"), sendsJSON(body)}, status, slug})
	}
	add("no text", `{"delivery":"queue"}`, "empty-text", 422)
	add("an empty text", `{"text":""}`, "empty-text", 422)
	add("NUL", `{"text":"a\u0000b"}`, "text-has-nul", 422)
	add("256 KiB and one", `{"text":"`+strings.Repeat("x", journal.MaxPromptBytes+1)+`"}`, "text-too-large", 413)
	add("a delivery that isn't known", `{"text":"hi","delivery":"now"}`, "unknown-delivery", 422)
	return out
}

func badSessions() []badInput {
	var out []badInput
	add := func(name, body, slug string, status int) {
		out = append(out, badInput{name, post, "/api/v1/sessions", []option{key("k"), sendsJSON(body)}, status, slug})
	}
	with := func(more string) string { return `{"workspace":"/srv/x","agent":"runbook",` + more + `}` }
	rule := func(permission, pattern, action string) string {
		return with(fmt.Sprintf(`"rules":[{"permission":"shell","pattern":"ls *","action":"allow"},{"permission":%q,"pattern":%q,"action":%q}]`, permission, pattern, action))
	}
	many := strings.Repeat(`{"permission":"shell","pattern":"x","action":"ask"},`, maxRules) + `{"permission":"shell","pattern":"x","action":"ask"}`
	add("no workspace", `{"agent":"runbook"}`, "workspace-missing", 422)
	add("a workspace elsewhere", `{"agent":"runbook","workspace":"/etc"}`, "workspace-outside", 422)
	add("a workspace with NUL", `{"agent":"runbook","workspace":"/srv/\u0000"}`, "bad-workspace", 422)
	add("no agent", `{"workspace":"/srv/x"}`, "agent-missing", 422)
	add("an agent that nobody offers", `{"workspace":"/srv/x","agent":"hal"}`, "unknown-agent", 422)
	add("a preset that isn't known", with(`"preset":"yolo"`), "unknown-preset", 422)
	add("a long title", with(`"title":"`+strings.Repeat("é", 201)+`"`), "bad-title", 422)
	add("a title of two lines", with(`"title":"a\nb"`), "bad-title", 422)
	add("an unknown permission", rule("fly", "*", "allow"), "bad-rule", 422)
	add("an unknown action", rule("shell", "*", "maybe"), "bad-rule", 422)
	add("an empty pattern", rule("shell", "", "allow"), "bad-rule", 422)
	add("201 rules", with(`"rules":[`+many+`]`), "too-many-rules", 422)
	add("200 rules of the longest patterns", with(`"rules":[`+strings.TrimSuffix(strings.Repeat(`{"permission":"shell","pattern":"`+strings.Repeat("\U0001f980", 256)+`","action":"ask"},`, maxRules), ",")+`]`), "rules-too-large", 413)
	add("an unknown member of a rule", with(`"rules":[{"permission":"shell","pattern":"x","action":"ask","why":"x"}]`), "unknown-member", 422)
	for _, limit := range []string{`"steps":0`, `"steps":-1`, `"wall_s":0`, `"tokens":-5`, `"cost_usd":0`, `"cost_usd":-0.5`, `"steps":7,"tokens":0`, `"steps":2000000`} {
		add("the limit "+limit, with(`"limits":{`+limit+`}`), "bad-limit", 422)
	}
	add("an unknown policy", with(`"policy":{"retry":true}`), "unknown-member", 422)
	add("an empty prompt", with(`"prompt":{"text":""}`), "empty-text", 422)
	add("a prompt with delivery", with(`"prompt":{"text":"x","delivery":"steer"}`), "unknown-member", 422)
	return out
}

func badAnswers(th things) []badInput {
	var out []badInput
	add := func(name, path, body, slug string, status int) {
		out = append(out, badInput{name, post, "/api/v1" + path, []option{sendsJSON(body)}, status, slug})
	}
	session := "/sessions/" + th.session
	add("a mode that isn't known", session+"/interruption", `{"mode":"soon"}`, "unknown-mode", 422)
	add("a negative limit", session+"/continuation", `{"limits":{"steps":-1}}`, "bad-limit", 422)
	add("a limit of nothing", session+"/continuation", `{"limits":{"wall_s":0}}`, "bad-limit", 422)
	add("half a step", session+"/continuation", `{"limits":{"steps":1.5}}`, "wrong-type", 422)
	add("an unknown limit", session+"/continuation", `{"limits":{"stamina":1}}`, "unknown-member", 422)
	add("to start anew in words", session+"/continuation", `{"anew":"yes"}`, "wrong-type", 422)
	add("to archive with a reason", session+"/archive", `{"reason":"x"}`, "unknown-member", 422)
	add("no reply", "/permissions/"+th.request+"/decision", `{}`, "unknown-reply", 422)
	add("another reply", "/permissions/"+th.request+"/decision", `{"reply":"yes"}`, "unknown-reply", 422)
	add("always", "/permissions/"+th.request+"/decision", `{"reply":"always","scope":"session"}`, "always-not-available", 422)
	add("another scope", "/permissions/"+th.request+"/decision", `{"reply":"once","scope":"world"}`, "unknown-scope", 422)
	add("another digest", "/permissions/"+th.request+"/decision", `{"reply":"once","digest":"d2"}`, "digest-differs", 422)
	add("a message with NUL", "/permissions/"+th.request+"/decision", `{"reply":"reject","message":"\u0000"}`, "bad-message", 422)
	add("a message of control characters", "/permissions/"+th.request+"/decision", `{"reply":"reject","message":"`+strings.Repeat(`\u0001`, 16<<10)+`"}`, "bad-message", 422)
	add("evidence of control characters", "/calls/"+th.call+"/resolution", `{"outcome":"happened","evidence":"`+strings.Repeat(`\u0001`, 16<<10)+`","then":"stay"}`, "bad-evidence", 422)
	add("no evidence", "/calls/"+th.call+"/resolution", `{"outcome":"happened","evidence":" ","then":"stay"}`, "evidence-missing", 422)
	add("another outcome", "/calls/"+th.call+"/resolution", `{"outcome":"perhaps","evidence":"x","then":"stay"}`, "unknown-outcome", 422)
	add("no then", "/calls/"+th.call+"/resolution", `{"outcome":"cannot_tell","evidence":""}`, "unknown-then", 422)
	add("another outcome of an attempt", "/attempts/"+th.attempt+"/resolution", `{"outcome":"happened","evidence":"x","then":"stay"}`, "unknown-outcome", 422)
	return out
}

func badQueries(th things) []badInput {
	var out []badInput
	add := func(path, slug string, status int, opts ...option) {
		out = append(out, badInput{path, get, "/api/v1" + path, opts, status, slug})
	}
	events := "/sessions/" + th.session + "/events"
	for _, q := range []string{"after=-1", "after=x", "after=", "after=1.5", "after=%2B1", "after=99999999999999999999", "limit=0", "limit=x", "limit=-5", "wait=x", "wait=-1s", "wait=5"} {
		add(events+"?"+q, "bad-parameter", 400)
	}
	add(events+"?after=1000", "cursor-beyond-head", 400)
	add(events+"?after=1000", "cursor-beyond-head", 400, header("Accept", "text/event-stream"))
	add(events+"?after=x", "bad-parameter", 400, header("Accept", "text/event-stream"))
	add(events, "bad-parameter", 400, header("Last-Event-ID", "x"))
	add(events, "cursor-beyond-head", 400, header("Last-Event-ID", "1000"))
	add("/sessions?state=happy", "bad-parameter", 400)
	add("/sessions?cursor=x", "bad-cursor", 400)
	add("/sessions?cursor=ses_%00", "bad-parameter", 400)
	add("/sessions?limit=ten", "bad-parameter", 400)
	add("/sessions?q=%ff", "bad-parameter", 400)
	add("/sessions?q=%00", "bad-parameter", 400)
	add("/permissions?state=open", "bad-parameter", 400)
	add("/permissions?cursor=x", "bad-cursor", 400)
	add("/permissions?session=ses_0", "no-such-session", 404)
	add("/calls/"+th.call+"/output?offset=-1", "bad-parameter", 400)
	add("/calls/"+th.call+"/output?limit=0", "bad-parameter", 400)
	add("/receipts/%zz", "bad-parameter", 400)
	add("/receipts/a%20b", "idempotency-key-malformed", 400)
	for _, id := range []string{"x", "inp_1", "ses_", "ses_%00", "ses_%FF", "ses_A", "ses_1'--", "ses_" + strings.Repeat("a", 65), "..%2fx"} {
		add("/sessions/"+id, "not_found", 404)
	}
	return out
}

func TestPrompt_TheLargest(t *testing.T) {
	// proves ADM-10
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	path := "/api/v1/sessions/" + w.session(t, w.alice) + "/prompts"
	text := strings.Repeat(`\u4e16`, journal.MaxPromptBytes/3) + "x" // as Python's json writes it
	w.do(t, post, path, as(w.alice), key("a"), sendsJSON(`{"text":"`+text+`"}`)).want(t, http.StatusAccepted)
	w.do(t, post, path, as(w.alice), key("b"), sendsJSON(`{"text":"x"}`)).want(t, http.StatusAccepted)
}

// What keeps the bounds is taken, however many bytes it has in JSON.
func TestSession_TheLargest(t *testing.T) {
	// proves ADM-10
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	rules := make([]journal.Rule, 0, maxRules)
	for range maxRules {
		rule := journal.Rule{Permission: "shell", Pattern: strings.Repeat(`"`, policy.MaxPattern), Action: "ask"}
		if b, err := journal.Encode(append(rules, rule)); err != nil || len(b) > maxRuleBytes {
			break
		}
		rules = append(rules, rule)
	}
	body, err := journal.Encode(map[string]any{
		"workspace": "/srv/" + strings.Repeat("\x01", maxWorkspace-len("/srv/")), "agent": "runbook", "title": strings.Repeat("\U0001f980", maxTitle), "rules": rules,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.do(t, post, "/api/v1/sessions", as(w.alice), key("k"), sendsJSON(string(body))).want(t, http.StatusCreated)
	th := w.things(t, w.alice)
	most := strings.Repeat(`\"`, 16<<10)
	w.do(t, post, "/api/v1/permissions/"+th.request+"/decision", as(w.alice), sendsJSON(`{"reply":"reject","message":"`+most+`"}`)).want(t, http.StatusOK)
	w.do(t, post, "/api/v1/calls/"+th.call+"/resolution", as(w.alice), sendsJSON(`{"outcome":"happened","evidence":"`+most+`","then":"stay"}`)).want(t, http.StatusOK)
}

func TestQueueFull(t *testing.T) {
	// proves ADM-10
	onEach(t, func(t *testing.T, w *world) {
		id := w.session(t, w.alice)
		path := "/api/v1/sessions/" + id + "/prompts"
		for i := range journal.MaxAdmitted {
			w.do(t, post, path, as(w.alice), key(fmt.Sprint("k", i)), sendsJSON(`{"text":"x"}`)).want(t, http.StatusAccepted)
		}
		w.do(t, post, path, as(w.alice), key("more"), sendsJSON(`{"text":"x"}`)).wantProblem(t, http.StatusConflict, "queue-full")
		if n := storetest.CountKind(storetest.Events(t, w.store, id), journal.KindPromptAdmitted); n != journal.MaxAdmitted {
			t.Errorf("got %d admitted prompts, want %d", n, journal.MaxAdmitted)
		}
	}, func(o *Options) { o.Burst = 1000 })
}

func TestRateLimit(t *testing.T) {
	// proves ADM-10
	onEach(t, func(t *testing.T, w *world) {
		id := w.session(t, w.alice)
		path := "/api/v1/sessions/" + id + "/prompts"
		send := func(p person, path, k, body string) answer {
			return w.do(t, post, path, as(p), key(k), sendsJSON(body))
		}
		for _, k := range []string{"1", "2"} {
			send(w.alice, path, k, `{"text":"x"}`).want(t, http.StatusAccepted)
		}
		send(w.alice, "/api/v1/sessions", "3", `{"workspace":"/srv/x","agent":"runbook"}`).want(t, http.StatusCreated)
		raw := w.db.SQL(t)
		before := w.db.RowCounts(t, raw)
		for _, a := range []answer{
			send(w.alice, path, "4", `{"text":"x"}`), send(w.alice, "/api/v1/sessions", "5", `{"workspace":"/srv/x","agent":"runbook"}`),
		} {
			a.wantProblem(t, http.StatusTooManyRequests, "rate-limited")
			if got := a.header.Get("Retry-After"); got != "1000" {
				t.Errorf("got Retry-After %q, want the 1000 s that a submission takes here", got)
			}
		}
		if after := w.db.RowCounts(t, raw); !maps.Equal(before, after) {
			t.Errorf("rows were written: %v, then %v", before, after)
		}
		send(w.mallory, "/api/v1/sessions", "1", `{"workspace":"/srv/x","agent":"runbook"}`).want(t, http.StatusCreated)
		w.do(t, get, "/api/v1/sessions/"+id, as(w.alice)).want(t, http.StatusOK)
	}, func(o *Options) { o.Rate, o.Burst = 0.001, 3 })
}
