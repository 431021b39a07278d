package handlers

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// wantMembers fails unless an object has exactly the members of the contract.
func wantMembers(t *testing.T, what string, got any, members string) map[string]any {
	t.Helper()
	o, ok := got.(map[string]any)
	if !ok {
		t.Fatalf("%s is %v, not an object", what, got)
	}
	want := strings.Fields(members)
	slices.Sort(want)
	if have := slices.Sorted(maps.Keys(o)); !slices.Equal(have, want) {
		t.Errorf("%s has the members %v\nwant %v", what, have, want)
	}
	return o
}

var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)

func wantTimes(t *testing.T, o map[string]any, members ...string) {
	t.Helper()
	for _, m := range members {
		if s, ok := o[m].(string); !ok || !rfc3339.MatchString(s) {
			t.Errorf("%s is %v, not a time as the contract writes it", m, o[m])
		}
	}
}

const (
	sessionMembers = "id title agent workspace state state_since last_seq pending_prompts pending_permissions unknown_calls unknown_attempts forgotten execution usage created_at updated_at"
	receiptMembers = "id session_id admitted_seq promoted_seq delivery state replayed created_at"
	eventMembers   = "id session_id seq kind version time actor execution_id data"
	requestMembers = "id session_id tool permission resources always digest metadata state asked_at expires_at answered"
	callMembers    = "id session_id tool input effect state resolution exit_code output_bytes allowed_by dispatched_at adopted_at ended_at ran_ms"
)

func TestSessions_Shape(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		r := w.run(t, w.alice)
		storetest.MustPrompt(t, w.store, r.Owner, r.Session, "<next> & \u2028 last", journal.Queue)
		a := w.do(t, get, "/api/v1/sessions/"+r.Session, as(w.alice))
		s := wantMembers(t, "session", a.want(t, http.StatusOK), sessionMembers)
		wantTimes(t, s, "state_since", "created_at", "updated_at")
		e := wantMembers(t, "execution", s["execution"], "id worker phase expires_at")
		wantTimes(t, e, "expires_at")
		wantMembers(t, "usage", s["usage"], "input_tokens output_tokens cost_usd")
		if s["state"] != "running" || e["worker"] != "w1" || e["phase"] != "ready" || e["id"] != r.Claim.ExecutionID || s["pending_prompts"] != 1.0 || s["last_seq"] != 5.0 {
			t.Errorf("got %s", a.body)
		}
		other := w.session(t, w.alice)
		if got := w.do(t, get, "/api/v1/sessions/"+other, as(w.alice)).want(t, http.StatusOK); got["execution"] != nil || got["state"] != "idle" {
			t.Errorf("got %v", got)
		}
	})
}

func TestSessions_List(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		var ids []string
		for range 25 {
			ids = append(ids, w.session(t, w.alice))
		}
		slices.Reverse(ids)
		storetest.MustPrompt(t, w.store, w.alice.user.ID, ids[3], "Fix the ÄRGER in 100% of it", journal.Queue)
		list := func(query string) ([]string, any) {
			a := w.do(t, get, "/api/v1/sessions"+query, as(w.alice)).want(t, http.StatusOK)
			wantMembers(t, "list", any(a), "items next_cursor")
			got := []string{}
			for _, it := range a["items"].([]any) {
				got = append(got, wantMembers(t, "item", it, sessionMembers)["id"].(string))
			}
			return got, a["next_cursor"]
		}
		first, next := list("")
		if len(first) != listDefault || !slices.Equal(first, ids[:listDefault]) {
			t.Fatalf("got %d sessions %v, want the newest %d", len(first), first, listDefault)
		}
		rest, end := list("?cursor=" + next.(string))
		if !slices.Equal(rest, ids[listDefault:]) || end != nil {
			t.Errorf("got the second page %v and the cursor %v", rest, end)
		}
		if got, _ := list("?limit=1000"); len(got) != 25 {
			t.Errorf("got %d sessions, want all 25", len(got))
		}
		for query, want := range map[string][]string{
			"?state=queued": {ids[3]}, "?state=running": {}, "?q=%C3%A4rger": {ids[3]}, "?q=100%25": {ids[3]}, "?q=1_0": {}, "?state=idle&limit=1": {ids[0]}, "?q=try+it&limit=2": ids[:2],
		} {
			if got, _ := list(query); !slices.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", query, got, want)
			}
		}
		if got := w.do(t, get, "/api/v1/sessions", as(w.mallory)); !strings.Contains(string(got.body), `"items":[]`) {
			t.Errorf("another owner gets %s", got.body)
		}
	})
}

func TestAgents(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		get1 := func() []any {
			return w.do(t, get, "/api/v1/agents", as(w.alice)).want(t, http.StatusOK)["items"].([]any)
		}
		if got := get1(); len(got) != 1 || got[0].(map[string]any)["name"] != "runbook" || got[0].(map[string]any)["available"] != true {
			t.Errorf("without a worker: got %v, want runbook", got)
		}
		seen := func(id string, agents ...store.Agent) {
			if err := w.store.SeeWorker(t.Context(), store.Worker{ID: id, StateFolderID: "f" + id, Host: "h", Agents: agents}); err != nil {
				t.Fatal(err)
			}
		}
		seen("w1", store.Agent{Name: "runbook", Kind: "runbook", Available: true}, store.Agent{Name: "coder", Kind: "acp", Reason: "not installed"})
		seen("w2", store.Agent{Name: "coder", Kind: "acp", Available: true})
		got := get1()
		if len(got) != 2 || !reflect.DeepEqual(got[0], any(map[string]any{"name": "coder", "kind": "acp", "available": true})) {
			t.Errorf("got %v, want what one of the workers can run", got)
		}
		w.do(t, post, "/api/v1/sessions", as(w.alice), key("k"), sendsJSON(`{"workspace":"/srv/x","agent":"coder"}`)).want(t, http.StatusCreated)
	})
}

func TestSession_EverythingGiven(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		body := `{"workspace":"/srv/x","agent":"runbook","title":"A <b> & c","preset":"workspace","rules":[{"permission":"shell","pattern":"git push *","action":"deny"}],"policy":{"retry_unknown_attempts":true},"limits":{"steps":7,"cost_usd":2.5},"prompt":{"text":"go"}}`
		s := w.do(t, post, "/api/v1/sessions", as(w.alice), key("k"), sendsJSON(body)).want(t, http.StatusCreated)
		created := storetest.Body[*journal.SessionCreated](t, storetest.Events(t, w.store, s["id"].(string)))
		want := &journal.SessionCreated{
			Title: "A <b> & c", Agent: "runbook", Workspace: "/srv/x", WorkspaceID: "wsp_1", Preset: "workspace", OwnerID: w.alice.user.ID,
			Rules: []journal.Rule{{Permission: "shell", Pattern: "git push *", Action: "deny"}}, Policy: journal.Policy{RetryUnknownAttempts: true}, Limits: &journal.Limits{Steps: 7, CostUSD: 2.5},
		}
		if !reflect.DeepEqual(created, want) {
			t.Errorf("got %+v\nwant %+v", created, want)
		}
		s = w.do(t, post, "/api/v1/sessions", as(w.alice), key("k2"), sendsJSON(`{"workspace":"/srv/x","agent":"runbook","rules":null,"title":null}`)).want(t, http.StatusCreated)
		created = storetest.Body[*journal.SessionCreated](t, storetest.Events(t, w.store, s["id"].(string)))
		if created.Limits != nil {
			t.Errorf("limits that nobody gave: %+v", created.Limits)
		}
		w.do(t, post, "/api/v1/sessions", as(w.alice), key("k3"), sendsJSON(`{"workspace":"/srv/x","agent":"runbook","limits":{"steps":-1}}`)).wantProblem(t, http.StatusUnprocessableEntity, "bad-limit")
		w.do(t, post, "/api/v1/sessions", as(w.alice), key("k3"), sendsJSON(`{"workspace":"/srv/x","agent":"runbook","limits":{"minutes":1}}`)).want(t, http.StatusUnprocessableEntity)
		w.do(t, post, "/api/v1/sessions", as(w.alice), key("k3"), sendsJSON(`{"workspace":"/srv/x","agent":"runbook","limits":{}}`)).want(t, http.StatusCreated)
		if created.Preset != "ask_writes" || created.Policy.RetryUnknownAttempts || len(created.Rules) != 0 {
			t.Errorf("got the defaults %+v", created)
		}
	})
}

func TestPrompts_Withdraw(t *testing.T) {
	// proves ADM-8
	onEach(t, func(t *testing.T, w *world) {
		r := w.run(t, w.alice)
		p := storetest.MustPrompt(t, w.store, r.Owner, r.Session, "later", journal.Steer)
		for _, again := range []bool{false, true} {
			a := w.do(t, del, "/api/v1/prompts/"+p.ID, as(w.alice))
			got := wantMembers(t, "receipt", any(a.want(t, http.StatusOK)), receiptMembers)
			if header := a.header.Get("Idempotent-Replayed") == "true"; got["replayed"] != again || header != again {
				t.Errorf("got replayed %v with the header %v, want %v", got["replayed"], header, again)
			}
			if got["state"] != "withdrawn" || got["id"] != p.ID || got["promoted_seq"] != nil || got["delivery"] != "steer" {
				t.Errorf("got %v", got)
			}
			wantTimes(t, got, "created_at")
		}
		got := w.do(t, del, "/api/v1/prompts/"+r.Prompt.ID, as(w.alice)).wantProblem(t, http.StatusConflict, "prompt-promoted")
		if got["state"] != "promoted" {
			t.Errorf("the conflict doesn't say the state: %v", got)
		}
	})
}

func TestSession_StopContinueArchive(t *testing.T) {
	// proves COO-4 PRO-5 PRO-6
	onEach(t, func(t *testing.T, w *world) {
		idle := "/api/v1/sessions/" + w.session(t, w.alice)
		w.do(t, post, idle+"/interruption", as(w.alice)).wantProblem(t, http.StatusConflict, "no-open-turn")
		w.do(t, post, idle+"/continuation", as(w.alice)).wantProblem(t, http.StatusConflict, "nothing-held")

		r := w.run(t, w.alice)
		path := "/api/v1/sessions/" + r.Session
		w.do(t, post, path+"/archive", as(w.alice)).wantProblem(t, http.StatusConflict, "turn-open")
		s := wantMembers(t, "session", any(w.do(t, post, path+"/interruption", as(w.alice), sendsJSON(`{"mode":"boundary"}`)).want(t, http.StatusAccepted)), sessionMembers)
		if s["state"] != "stopping" {
			t.Errorf("got %v, want stopping", s["state"])
		}
		if b := storetest.Body[*journal.InterruptRequested](t, storetest.Events(t, w.store, r.Session)); b.Mode != journal.InterruptBoundary || b.By != w.alice.user.ID {
			t.Errorf("got %+v", b)
		}
		storetest.MustLose(t, w.store, r.Claim)
		if s = w.do(t, get, path, as(w.alice)).want(t, http.StatusOK); s["state"] != "stopped" {
			t.Errorf("got %v, want stopped", s["state"])
		}
		s = w.do(t, post, path+"/continuation", as(w.alice), sendsJSON(`{"limits":{"steps":7,"wall_s":60,"tokens":5,"cost_usd":0.5}}`)).want(t, http.StatusAccepted)
		if s["state"] != "queued" {
			t.Errorf("got %v, want queued", s["state"])
		}
		if b := storetest.Body[*journal.ContinuationRequested](t, storetest.Events(t, w.store, r.Session)); !reflect.DeepEqual(b.Limits, &journal.Limits{Steps: 7, WallS: 60, Tokens: 5, CostUSD: 0.5}) {
			t.Errorf("got the limits %+v", b.Limits)
		}
		if s = w.do(t, post, path+"/interruption", as(w.alice)).want(t, http.StatusAccepted); s["state"] != "stopped" {
			t.Errorf("without a claim: got %v, want stopped at once", s["state"])
		}
		for range 2 {
			if s = w.do(t, post, path+"/archive", as(w.alice), sendsJSON(`{}`)).want(t, http.StatusAccepted); s["state"] != "closed" {
				t.Errorf("got %v, want closed", s["state"])
			}
		}
		late := w.do(t, post, path+"/prompts", as(w.alice), key("late"), sendsJSON(`{"text":"x"}`)).wantProblem(t, http.StatusConflict, "session-archived")
		if late["state"] != "closed" {
			t.Errorf("the conflict doesn't say the state: %v", late)
		}
	})
}

func TestPermissions(t *testing.T) {
	// proves PER-1 PER-2 PER-3
	onEach(t, func(t *testing.T, w *world) {
		list := func(query string) []any {
			return w.do(t, get, "/api/v1/permissions"+query, as(w.alice)).want(t, http.StatusOK)["items"].([]any)
		}
		r := w.run(t, w.alice)
		call, id := r.MustAsk(t, w.store)
		got := list("?state=pending&session=" + r.Session)
		if len(got) != 1 {
			t.Fatalf("got %v, want the request", got)
		}
		p := wantMembers(t, "request", got[0], requestMembers)
		wantTimes(t, p, "asked_at")
		want := map[string]any{
			"id": id, "session_id": r.Session, "tool": map[string]any{"message_id": nil, "call_id": call}, "permission": "shell", "resources": []any{"echo hi"},
			"always": []any{}, "digest": "d1", "metadata": map[string]any{"command": "echo hi"}, "state": "pending", "asked_at": p["asked_at"], "expires_at": nil, "answered": nil,
		}
		if !reflect.DeepEqual(p, want) {
			t.Errorf("got %v\nwant %v", p, want)
		}

		path := "/api/v1/permissions/" + id + "/decision"
		a := w.do(t, post, path, as(w.alice), key("d"), sendsJSON(`{"reply":"once","digest":"d1"}`))
		done := wantMembers(t, "request", any(a.want(t, http.StatusOK)), requestMembers)
		ans := wantMembers(t, "answer", done["answered"], "reply by at message")
		wantTimes(t, ans, "at")
		if done["state"] != "approved_once" || ans["reply"] != "once" || ans["by"] != w.alice.user.ID || a.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("got %s %v", a.body, a.header)
		}
		a = w.do(t, post, path, as(w.alice), key("d"), sendsJSON(`{"reply":"once","digest":"d1"}`))
		if again := a.want(t, http.StatusOK); !reflect.DeepEqual(again, done) || a.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("got %s, want the first answer", a.body)
		}
		w.do(t, post, path, as(w.alice), key("d"), sendsJSON(`{"reply":"reject","digest":"d1"}`)).wantProblem(t, http.StatusUnprocessableEntity, "idempotency-key-reused")
		late := w.do(t, post, path, as(w.alice), sendsJSON(`{"reply":"reject"}`)).wantProblem(t, http.StatusConflict, "already-answered")
		first := wantMembers(t, "the first answer", late["answered"], "reply by at message")
		if !reflect.DeepEqual(first, ans) {
			t.Errorf("the conflict names %v, want %v", first, ans)
		}
		if n := storetest.CountKind(storetest.Events(t, w.store, r.Session), journal.KindPermissionReplied); n != 1 {
			t.Errorf("got %d replies, want 1", n)
		}
		if got := list("?state=pending"); len(got) != 0 {
			t.Errorf("got %v, want none pending", got)
		}
	})
}

func TestPermissions_RejectAndGone(t *testing.T) {
	// proves PER-3 PER-6
	onEach(t, func(t *testing.T, w *world) {
		r := w.run(t, w.alice)
		_, id := r.MustAsk(t, w.store)
		w.do(t, post, "/api/v1/permissions/"+id+"/decision", as(w.alice), sendsJSON(`{"reply":"reject","message":"use the other one"}`)).want(t, http.StatusOK)
		if s := w.do(t, get, "/api/v1/sessions/"+r.Session, as(w.alice)).want(t, http.StatusOK); s["state"] != "queued" {
			t.Errorf("rejected with a message: got %v, want the turn to go on", s["state"])
		}
		r = w.run(t, w.alice)
		_, id = r.MustAsk(t, w.store)
		w.do(t, post, "/api/v1/sessions/"+r.Session+"/interruption", as(w.alice)).want(t, http.StatusAccepted)
		gone := w.do(t, post, "/api/v1/permissions/"+id+"/decision", as(w.alice), sendsJSON(`{"reply":"once"}`)).wantProblem(t, http.StatusGone, "request-ended")
		if gone["reason"] == "" || gone["state"] != "cancelled" {
			t.Errorf("got %v", gone)
		}
		w.do(t, post, "/api/v1/permissions/"+id+"/decision", as(w.alice), sendsJSON(`{"reply":"once","digest":"other"}`)).wantProblem(t, http.StatusGone, "request-ended")
	})
}

// The store lists calls by pages; the list and the export have all of them.
func TestCalls_More(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		r := w.run(t, w.alice)
		var bodies []journal.Body
		for range store.MaxCalls + 1 {
			bodies = append(bodies, r.Propose(store.NewID("call"), journal.EffectRead))
		}
		storetest.MustAppend(t, w.store, r.Claim, "", bodies...)
		for path, member := range map[string]string{"/calls": "items", "/export": "calls"} {
			items := w.do(t, get, "/api/v1/sessions/"+r.Session+path, as(w.alice)).want(t, http.StatusOK)[member].([]any)
			ids := map[any]bool{}
			for _, one := range items {
				ids[one.(map[string]any)["id"]] = true
			}
			if len(items) != len(bodies) || len(ids) != len(bodies) {
				t.Errorf("%s has %d calls, %d of them different; want %d", path, len(items), len(ids), len(bodies))
			}
		}
	})
}

func TestCalls(t *testing.T) {
	// proves CAL-3 CAL-6
	onEach(t, func(t *testing.T, w *world) {
		r := w.run(t, w.alice)
		waiting := r.MustCall(t, w.store, journal.EffectEffect)
		id := r.MustDispatched(t, w.store, journal.EffectEffect)
		storetest.MustAppend(t, w.store, r.Claim, "", &journal.CallOutput{CallID: id, Stream: "stdout", Text: journal.T("grüße\n")}, &journal.CallOutput{CallID: id, Stream: "stderr", Offset: 8, Text: journal.T("end\n")})
		storetest.MustLose(t, w.store, r.Claim)
		items := w.do(t, get, "/api/v1/sessions/"+r.Session+"/calls", as(w.alice)).want(t, http.StatusOK)["items"].([]any)
		if len(items) != 2 {
			t.Fatalf("got %v", items)
		}
		first := wantMembers(t, "call", items[0], callMembers)
		if first["id"] != waiting || first["state"] != "proposed" || first["dispatched_at"] != nil || first["ended_at"] != nil || first["allowed_by"] != nil || first["exit_code"] != nil || first["resolution"] != nil {
			t.Errorf("got %v", first)
		}
		c := wantMembers(t, "call", items[1], callMembers)
		wantTimes(t, c, "dispatched_at", "ended_at")
		if c["state"] != "unknown" || c["output_bytes"] != 12.0 || !reflect.DeepEqual(c["input"], any(map[string]any{"command": "echo hi"})) || c["effect"] != "effect" {
			t.Errorf("got %v", c)
		}
		wantMembers(t, "allowed_by", c["allowed_by"], "type id text")

		path := "/api/v1/calls/" + id + "/resolution"
		done := w.do(t, post, path, as(w.alice), sendsJSON(`{"outcome":"happened","evidence":"I saw it","then":"stay"}`)).want(t, http.StatusOK)
		res := wantMembers(t, "resolution", wantMembers(t, "call", any(done), callMembers)["resolution"], "outcome by at evidence")
		wantTimes(t, res, "at")
		again := w.do(t, post, path, as(w.alice), sendsJSON(`{"outcome":"did_not_happen","evidence":"x","then":"continue"}`)).wantProblem(t, http.StatusConflict, "already-resolved")
		if !reflect.DeepEqual(again["resolution"], any(res)) {
			t.Errorf("the conflict names %v, want %v", again["resolution"], res)
		}
		if s := w.do(t, get, "/api/v1/sessions/"+r.Session, as(w.alice)).want(t, http.StatusOK); s["state"] != "stopped" || s["unknown_calls"] != 0.0 {
			t.Errorf("got %v", s)
		}
	})
}

// A resolution that says too little is told all that it lacks, at once, with the
// values that are taken, and nothing is recorded.
//
// proves CAL-3
func TestResolution_NamesAllThatIsMissing(t *testing.T) {
	w := newWorld(t, storetest.New(t, "sqlite"))
	th := w.things(t, w.alice)
	const (
		outcome  = "outcome must be happened, did_not_happen, in_part or cannot_tell"
		evidence = "evidence must say how you know, unless the outcome is cannot_tell"
		then     = "then must be continue or stay"
		attempt  = "outcome must be retry or abandon"
	)
	call, request := "/api/v1/calls/"+th.call+"/resolution", "/api/v1/attempts/"+th.attempt+"/resolution"
	for _, tt := range []struct{ path, body, slug, want string }{
		{call, `{}`, "unknown-outcome", outcome + "; " + evidence + "; " + then + "."},
		{call, `{"evidence":"I saw it"}`, "unknown-outcome", outcome + "; " + then + "."},
		{call, `{"outcome":"perhaps","then":"stay"}`, "unknown-outcome", outcome + "; " + evidence + "."},
		{call, `{"outcome":"happened"}`, "evidence-missing", evidence + "; " + then + "."},
		{call, `{"outcome":"cannot_tell"}`, "unknown-then", then + "."},
		{request, `{}`, "unknown-outcome", attempt + "; " + then + "."},
		{request, `{"outcome":"retry"}`, "unknown-then", then + "."},
	} {
		got := w.do(t, post, tt.path, as(w.alice), sendsJSON(tt.body)).wantProblem(t, http.StatusUnprocessableEntity, tt.slug)
		if got["detail"] != tt.want+" Nothing was recorded." {
			t.Errorf("%s: %q, want %q", tt.body, got["detail"], tt.want)
		}
	}
	w.do(t, post, "/api/v1/calls/"+th.call+"/resolution", as(w.mallory), sendsJSON(`{}`)).wantProblem(t, http.StatusNotFound, "no-such-call")
}

func TestAttempts_Resolve(t *testing.T) {
	// The words of a person on an attempt, of which the first stands.
	// proves ATT-6 CAL-8
	onEach(t, func(t *testing.T, w *world) {
		th := w.things(t, w.alice)
		s := w.do(t, get, "/api/v1/sessions/"+th.session, as(w.alice)).want(t, http.StatusOK)
		if s["state"] != "uncertain" || s["unknown_attempts"] != 1.0 || s["unknown_calls"] != 1.0 {
			t.Fatalf("got %v", s)
		}
		path := "/api/v1/attempts/" + th.attempt + "/resolution"
		a := w.do(t, post, path, as(w.alice), sendsJSON(`{"outcome":"abandon","evidence":"the bill","then":"stay"}`)).want(t, http.StatusOK)
		if a["id"] != th.attempt || a["state"] != "unknown" || a["resolution"] != "abandon" {
			t.Errorf("got %v", a)
		}
		again := w.do(t, post, path, as(w.alice), sendsJSON(`{"outcome":"retry","evidence":"","then":"stay"}`)).wantProblem(t, http.StatusConflict, "already-resolved")
		was := wantMembers(t, "resolution", again["resolution"], "outcome by at evidence")
		wantTimes(t, was, "at")
		if was["outcome"] != "abandon" || was["by"] != w.alice.user.ID || was["evidence"] != "the bill" {
			t.Errorf("the conflict names %v", was)
		}
	})
}

func TestCalls_Output(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		r := w.run(t, w.alice)
		id := r.MustDispatched(t, w.store, journal.EffectEffect)
		path := "/api/v1/calls/" + id + "/output"
		a := w.do(t, get, path, as(w.alice))
		if a.want(t, http.StatusOK); len(a.body) != 0 || a.header.Get("X-Total-Bytes") != "0" {
			t.Errorf("without output: got %q %v", a.body, a.header)
		}
		storetest.MustAppend(t, w.store, r.Claim, "", &journal.CallOutput{CallID: id, Stream: "stdout", Text: journal.T("a€b")}, &journal.CallOutput{CallID: id, Stream: "stdout", Offset: 5, Text: journal.T("cd")})
		for query, want := range map[string]string{"": "a€bcd", "?offset=4": "bcd", "?limit=2": "a\xe2", "?offset=2&limit=2": "\x82\xac", "?offset=100": ""} {
			a := w.do(t, get, path+query, as(w.alice))
			a.want(t, http.StatusOK)
			if string(a.body) != want || a.header.Get("X-Total-Bytes") != "7" || a.header.Get("Content-Type") != "text/plain; charset=utf-8" {
				t.Errorf("%s: got %q %v, want %q of 7 bytes as text", query, a.body, a.header, want)
			}
		}
		// Its middle was dropped: a piece ends there, and the header leads over the gap.
		storetest.MustAppend(t, w.store, r.Claim, "", &journal.CallOutput{CallID: id, Stream: "stdout", Offset: 1007, Text: journal.T("end"), Dropped: 1000})
		for _, want := range []struct{ query, body, next string }{{"?limit=4", "a€", "4"}, {"?offset=4", "bcd", "1007"}, {"?offset=1007", "end", "1010"}, {"?offset=1010", "", "1010"}} {
			a := w.do(t, get, path+want.query, as(w.alice))
			if a.want(t, http.StatusOK); string(a.body) != want.body || a.header.Get("X-Next-Offset") != want.next || a.header.Get("X-Total-Bytes") != "1010" {
				t.Errorf("%s: got %q %v, want %q and the next at %s", want.query, a.body, a.header, want.body, want.next)
			}
		}
	})
}

func TestIsText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]bool{
		"": true, "abc": true, "\x82\xacx": true, "a\xe2": true, "a\xe2\x82": true, "€": true, "a\xffb": false, "a\xe2b": false, "\x80\x80\x80\x80x": false, "\xf0\x9f\x92": true, "\xc0\x80": false,
	} {
		if got := isText([]byte(in)); got != want {
			t.Errorf("%q: got %v, want %v", in, got, want)
		}
	}
}

// An export that nobody takes any more reads no more texts.
func TestExport_ReaderLeaves(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	e := &exporter{w: bufio.NewWriter(io.Discard), order: []string{"a", "b"}, err: gone} // no store to read from
	if err := e.blobTexts(t.Context()); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestExport(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		long := strings.Repeat("é<", journal.MaxField/2)
		r := w.run(t, w.alice)
		storetest.MustPrompt(t, w.store, r.Owner, r.Session, long, journal.Queue)
		for range 230 {
			storetest.MustAppend(t, w.store, r.Claim, "", &journal.PlanUpdated{Plan: []journal.PlanItem{}})
		}
		_, request := r.MustAsk(t, w.store)
		a := w.do(t, get, "/api/v1/sessions/"+r.Session+"/export", as(w.alice))
		var out struct {
			Session     map[string]any   `json:"session"`
			Events      []map[string]any `json:"events"`
			Blobs       []blobJSON       `json:"blobs"`
			Calls       []map[string]any `json:"calls"`
			Permissions []map[string]any `json:"permissions"`
		}
		if err := json.Unmarshal(a.body, &out); err != nil || a.status != http.StatusOK {
			t.Fatalf("got %d: %v\n%.300s", a.status, err, a.body)
		}
		evs := storetest.Events(t, w.store, r.Session)
		if len(out.Events) != len(evs) || out.Session["last_seq"] != float64(len(evs)) {
			t.Errorf("got %d events and last_seq %v, want %d", len(out.Events), out.Session["last_seq"], len(evs))
		}
		for i, e := range out.Events {
			wantMembers(t, "event", any(e), eventMembers)
			if e["seq"] != float64(i+1) {
				t.Fatalf("event %d has seq %v", i, e["seq"])
			}
		}
		if len(out.Blobs) != 1 || out.Blobs[0].Text == nil || *out.Blobs[0].Text != long || out.Blobs[0].SHA256 != journal.Hash(long) {
			t.Errorf("the long text is not in the export: %d blobs", len(out.Blobs))
		}
		if len(out.Calls) != 1 || len(out.Permissions) != 1 || out.Permissions[0]["id"] != request {
			t.Errorf("got %v and %v", out.Calls, out.Permissions)
		}
		wantMembers(t, "session", any(out.Session), sessionMembers)
	})
}
