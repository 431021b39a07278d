package handlers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
	"holdfast/views/components"
)

// stainedWorld is a session in whose journal a key stands everywhere that people,
// agents and commands can write it, from before it was stored as a credential.
func stainedWorld(t *testing.T, w *world, key string) (session, call, request string) {
	t.Helper()
	seeAgents(t, w, "opencode")
	one, _, err := w.store.CreateSession(t.Context(), w.alice.user.ID, newKey(), store.NewSession{
		Title: "Use " + key, Agent: "opencode", Workspace: "/srv/" + key, WorkspaceID: "wsp_1", Preset: "ask_all",
		Prompt: &store.PromptInput{Text: "The key is " + key, Delivery: journal.Queue},
	})
	if err != nil {
		t.Fatal(err)
	}
	run := w.pickUp(t, w.alice, one.ID)
	call = store.NewID("call")
	storetest.MustAppend(t, w.store, run.Claim, journal.PhaseUncertain, run.propose(call, "echo "+key), &journal.CallDispatched{CallID: call, N: 1, AllowedBy: journal.AllowedBy{Type: journal.AllowedByRule, Text: key}})
	storetest.MustAppend(t, w.store, run.Claim, journal.PhaseSafe,
		&journal.CallOutput{CallID: call, Stream: "stdout", Text: journal.T("it is " + key + "\n")},
		&journal.CallSettled{CallID: call, State: journal.CallFailed, Reason: key, OutputBytes: int64(len(key) + 7)},
		&journal.MessageCompleted{MessageID: "msg_1", Part: journal.PartText, Text: journal.T("I use **" + key + "**")},
		&journal.MessageCompleted{MessageID: "msg_2", Part: journal.PartText, Text: journal.T(strings.Repeat("long ", 8000) + key)},
		&journal.AgentOptions{ProcessID: "prc_1", Options: []journal.AgentOption{{ID: "model", Name: "Model " + key, Description: key, Source: journal.OptionByConfig, Type: journal.OptionSelect, Current: "a", Choices: []journal.AgentChoice{{Value: "a", Name: "A " + key, Group: key}}}}},
		&journal.PlanUpdated{Plan: []journal.PlanItem{{Key: "k", Title: key, State: journal.PlanRunning}}},
		&journal.StepStarted{TurnID: run.Turn, Step: journal.Step{Name: key, Index: 1, Of: 1}})
	_, request = run.ask("deploy " + key)
	storetest.MustPrompt(t, w.store, w.alice.user.ID, one.ID, "again "+key, journal.Queue)
	return one.ID, call, request
}

// A secret that stood in the journal before it was known leaves the server nowhere:
// on no page, in no title or attribute, in no stream, export or answer to a program.
//
// proves OWN-3
func TestMasked_WhatWasRecordedBefore(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		const key = `oops-"pasted"&KEY<QWXZ>`
		session, call, request := stainedWorld(t, w, key)
		spelt := func(s string) bool {
			encoded, _ := journal.Encode(key)
			for _, form := range append(journal.Forms(key), `oops-&#34;pasted&#34;&amp;KEY&lt;QWXZ&gt;`, string(encoded[1:len(encoded)-1]), "QWXZ") {
				if strings.Contains(s, form) {
					return true
				}
			}
			return false
		}
		at := map[string]bool{}
		for _, path := range []string{
			"/", "/needs-you", "/running", "/sessions/new", "/sessions/" + session, "/sessions/" + session + "?before=4", "/sessions/" + session + "/stop", "/sessions/" + session + "/settings",
			"/permissions/" + request, "/calls/" + call, "/calls/" + call + "/output", "/calls/" + call + "/output?offset=9", "/calls/" + call + "/output?download=1",
			"/sessions/" + session + "/export.md", "/sessions/" + session + "/export.json",
			"/api/v1/sessions", "/api/v1/sessions/" + session, "/api/v1/sessions/" + session + "/events", "/api/v1/sessions/" + session + "/calls", "/api/v1/sessions/" + session + "/export",
			"/api/v1/permissions", "/api/v1/calls/" + call + "/output", "/api/v1/calls/" + call + "/output?offset=8", "/api/v1/calls/" + call + "/output?limit=12",
		} {
			at[path] = true
		}
		read := func(path string, of person) string {
			how := browser(of)
			if strings.HasPrefix(path, "/api/") {
				how = as(of)
			}
			a := w.do(t, get, path, how)
			if a.status != http.StatusOK {
				t.Fatalf("%s: %d %s", path, a.status, a.body)
			}
			return string(a.body)
		}
		stream := func() (out string) {
			snap, err := w.store.SessionPage(t.Context(), w.alice.user.ID, session, 0, 50)
			if err != nil {
				t.Fatal(err)
			}
			rows, err := w.srv.rowMessages(t.Context(), components.Viewer{ID: w.alice.user.ID}, &snap)
			if err != nil {
				t.Fatal(err)
			}
			f := w.store.Follow(w.alice.user.ID, session)
			defer f.Close()
			events, _, err := eventFeed{w.store, w.alice.user.ID}.read(t.Context(), f, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range append(rows, events...) {
				out += string(m.text)
			}
			return out
		}
		if !spelt(stream()) { // the forms that the streams keep for their readers have it
			t.Fatal("the streams have no key to hide")
		}
		seen := 0
		for path := range at {
			if spelt(read(path, w.alice)) {
				seen++
			}
		}
		if seen < len(at)-4 {
			t.Errorf("only %d of %d answers had the key to hide", seen, len(at))
		}
		// Somebody else who stores it hides nothing.
		w.store.Mask(w.mallory.user.ID, journal.Forms(key)...)
		if !spelt(read("/sessions/"+session, w.alice)) {
			t.Error("another's credential masks the page")
		}
		w.store.Mask(w.alice.user.ID, journal.Forms(key)...)
		for path := range at {
			got := read(path, w.alice)
			if i := strings.Index(got, "QWXZ"); spelt(got) {
				t.Errorf("%s has it: %s", path, got[max(0, i-200):min(len(got), i+20)])
			}
			if strings.Contains(path, "/api/") || strings.HasSuffix(path, ".json") {
				if !strings.Contains(path, "/output") && !json.Valid([]byte(got)) {
					t.Errorf("%s is no JSON any more", path)
				}
			}
		}
		if got := stream(); spelt(got) || !strings.Contains(got, "[hidden]") {
			t.Error("the streams have it")
		}
		b := w.tab(t, w.alice).open("/sessions/" + session).page()
		if title := b.doc.Find("title").Text(); !strings.Contains(title, "Use [hidden]") {
			t.Errorf("the title is %q", title)
		}
		// A problem of a program, and the page of an error, don't tell it either.
		for _, a := range []answer{
			w.do(t, post, "/api/v1/permissions/"+request+"/decision", as(w.alice), sendsJSON(`{"reply":"nothing","message":"x"}`)),
			w.do(t, post, "/sessions/"+session+"/continuation", browser(w.alice), header("Sec-Fetch-Site", "same-origin"), sendsForm(vals("idempotency_key", newKey(), "for", w.alice.user.ID).Encode())),
		} {
			if spelt(string(a.body)) {
				t.Errorf("an error has it: %s", a.body)
			}
		}
	})
}

// What programs go by stays: ids, seqs, digests and words are as before, also if a
// secret is one of them, and an export's hash is that of its own bytes.
//
// proves OWN-3
func TestMasked_KeepsStructure(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		const key = "oops-pasted-KEY-QWXZ"
		session, _, request := stainedWorld(t, w, key)
		export := func() (out struct {
			Session map[string]any   `json:"session"`
			Events  json.RawMessage  `json:"events"`
			Blobs   []map[string]any `json:"blobs"`
			Sum     string           `json:"journal_sha256"`
		},
		) {
			if err := json.Unmarshal(w.do(t, get, "/api/v1/sessions/"+session+"/export", as(w.alice)).body, &out); err != nil {
				t.Fatal(err)
			}
			return out
		}
		was, before := export(), storetest.Events(t, w.store, session)
		digest := func() string {
			r, err := w.store.Request(t.Context(), w.alice.user.ID, request)
			if err != nil {
				t.Fatal(err)
			}
			var list struct{ Items []map[string]any }
			if err := json.Unmarshal(w.do(t, get, "/api/v1/permissions", as(w.alice)).body, &list); err != nil || len(list.Items) != 1 || list.Items[0]["digest"] != r.Request.Digest {
				t.Errorf("the digest that a program is told isn't the one that it answers with: %v, %v", list, err)
			}
			return r.Request.Digest
		}
		asked := digest()
		words := []string{key, asked, was.Sum[:12], "agent.options", "permission.asked", "completed", "dispatched", "waiting", "session_id", session[4:20], w.alice.user.ID[4:16]}
		w.store.Mask(w.alice.user.ID, words...)
		is := export()
		if asked != digest() {
			t.Error("the digest is another one")
		}
		var a, b []map[string]any
		if json.Unmarshal(was.Events, &a) != nil || json.Unmarshal(is.Events, &b) != nil || len(a) != len(b) {
			t.Fatalf("%d events became %d", len(a), len(b))
		}
		for i := range a {
			for _, name := range []string{"id", "session_id", "seq", "kind", "version", "time", "actor", "execution_id"} {
				x, _ := journal.Encode(a[i][name])
				if y, _ := journal.Encode(b[i][name]); string(x) != string(y) {
					t.Errorf("event %d: %s was %s and is %s", i+1, name, x, y)
				}
			}
		}
		for _, name := range []string{"id", "state", "state_since", "agent", "last_seq", "created_at"} {
			if was.Session[name] != is.Session[name] {
				t.Errorf("the session's %s was %v and is %v", name, was.Session[name], is.Session[name])
			}
		}
		if sum := sha256.Sum256(is.Events); hex.EncodeToString(sum[:]) != is.Sum || is.Sum == was.Sum {
			t.Error("the hash isn't that of the events as they stand in the export")
		}
		if len(is.Blobs) != len(was.Blobs) || is.Blobs[0]["sha256"] != was.Blobs[0]["sha256"] {
			t.Error("a blob has another name")
		}
		// The journal is as it was.
		for i, ev := range storetest.Events(t, w.store, session) {
			if string(ev.Data) != string(before[i].Data) {
				t.Errorf("event %d was rewritten", i+1)
			}
		}
		// The page still works: its forms answer what they stand for.
		tab := w.tab(t, w.alice).open("/permissions/" + request).page()
		action, body := tab.fields(`[data-testid="decision-form"]`, vals("reply", "reject", "message", "no"))
		tab.post(action, body).follow().page().want(http.StatusOK)
	})
}

// What an error tells of the past is masked likewise: the message of the first answer,
// to a second one.
//
// proves OWN-3
func TestMasked_Errors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	const key = "oops-pasted-KEY-QWXZ"
	run := w.start(t, w.alice, "go")
	_, request := run.ask("make deploy")
	decide := func(reply string) [2]answer {
		body := vals("reply", reply, "digest", "digest-of-"+request, "idempotency_key", newKey(), "for", w.alice.user.ID)
		return [2]answer{
			w.do(t, post, "/api/v1/permissions/"+request+"/decision", as(w.alice), sendsJSON(`{"reply":"`+reply+`","message":"not with `+key+`"}`)),
			w.do(t, post, "/permissions/"+request+"/decision", browser(w.alice), header("Sec-Fetch-Site", "same-origin"), sendsForm(body.Encode())),
		}
	}
	decide("reject")
	for masked := range 2 {
		for i, a := range decide("once") {
			if has := strings.Contains(string(a.body), key); a.status != http.StatusConflict || has != (masked == 0) || masked == 1 && !strings.Contains(string(a.body), "not with [hidden]") {
				t.Errorf("answer %d, masked %d: %d %s", i, masked, a.status, a.body)
			}
		}
		w.store.Mask(w.alice.user.ID, key)
	}
}
