package handlers

import (
	"net/http"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// offered are two settings of an agent.
func offered() []journal.AgentOption {
	return []journal.AgentOption{
		{
			ID: "model", Name: "Model", Category: journal.OptionModel, Source: journal.OptionByConfig, Type: journal.OptionSelect, Current: "small",
			Choices: []journal.AgentChoice{{Value: "small", Name: "Small <1>", Group: "Acme"}, {Value: "large", Name: "Large", Group: "Acme"}},
		},
		{ID: "web", Name: "Web", Source: journal.OptionByConfig, Type: journal.OptionBoolean, Current: "false"},
	}
}

func seeAgents(t *testing.T, w *world, names ...string) {
	t.Helper()
	worker := store.Worker{ID: "w1", StateFolderID: "f1", Host: "h", Agents: []store.Agent{{Name: runbook, Kind: "builtin", Available: true}}}
	for _, name := range names {
		worker.Agents = append(worker.Agents, store.Agent{Name: name, Kind: "acp", Available: true})
	}
	if err := w.store.SeeWorker(t.Context(), worker); err != nil {
		t.Fatal(err)
	}
}

// What an agent names its settings and their values is seen, not obeyed, also where a
// browser shows nothing but text.
func TestPages_SettingsOfHostileNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	seeAgents(t, w, "opencode")
	options := offered()
	options[0].Name, options[0].Choices = "Mo\u202edel", []journal.AgentChoice{{Value: "small", Name: "Sm\u202eall", Description: "li\u2066ttle", Group: "A\u202ecme"}}
	if err := w.store.SaveAgentOffers(t.Context(), w.alice.user.ID, "opencode", "1", options); err != nil {
		t.Fatal(err)
	}
	r := w.run(t, w.alice)
	storetest.MustAppend(t, w.store, r.Claim, "", &journal.AgentOptions{ProcessID: "prc_1", Options: options})
	for _, path := range []string{"/sessions/new", "/sessions/" + r.Session + "/settings"} {
		b := w.tab(t, w.alice).open(path).page()
		if html, err := b.doc.Html(); err != nil || strings.ContainsAny(html, "\u202e\u2066") || !strings.Contains(b.doc.Find("option").Text(), `Sm\u202eall: li\u2066ttle`) || b.doc.Find("optgroup").AttrOr("label", "") != `A\u202ecme` {
			t.Errorf("%s: %s", path, b.doc.Find("select").Text())
		}
	}
}

// The form for a new session has what each agent offered its owner; only what is
// chosen for the agent that is chosen counts, and a refusal keeps it.
// proves OWN-1 ADM-6
func TestPages_NewSessionSettings(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		seeAgents(t, w, "opencode", "other")
		if err := w.store.SaveAgentOffers(t.Context(), w.alice.user.ID, "opencode", "opencode <1>", offered()); err != nil {
			t.Fatal(err)
		}
		b := w.tab(t, w.alice).open("/sessions/new").page().want(http.StatusOK, "As “opencode <1>” offered them", "As the agent has it: “Small <1>”", "not known yet")
		if n := b.doc.Find(`[data-testid="agent-set"] select`).Length(); n != 2 {
			t.Errorf("%d settings can be chosen", n)
		}
		if strings.Contains(w.tab(t, w.mallory).open("/sessions/new").page().main(), "Small") {
			t.Error("another owner is told")
		}
		chosen := vals("prompt", "go", "workspace", "/srv/x", "agent", "opencode", "set:opencode:model", "=large", "steps", "many")
		b.submit(`[data-testid="new-session-form"]`, chosen).page().want(http.StatusUnprocessableEntity)
		if got := b.doc.Find(`select[name="set:opencode:model"] option[selected]`).AttrOr("value", ""); got != "=large" {
			t.Errorf("the refusal has chosen %q", got)
		}
		if _, open := b.doc.Find("#set-0, #set-1").First().Attr("open"); !open {
			t.Error("what was chosen is folded away")
		}
		b.submit(`[data-testid="new-session-form"]`, vals("prompt", "go", "workspace", "/srv/x", "agent", "opencode", "set:opencode:model", "=large", "steps", "")).follow()
		id := strings.TrimPrefix(strings.Split(b.path, "?")[0], "/sessions/")
		if st := storetest.MustState(t, w.store, id); len(st.Wanted) != 1 || st.Wanted[0].Setting != (journal.Setting{ID: "model", Value: "large"}) {
			t.Errorf("wanted %+v", st.Wanted)
		}
		// What isn't offered is refused, and so are settings of an agent that has none.
		for agent, value := range map[string]string{"opencode": "=huge", runbook: "=large"} {
			b.post("/sessions", vals("prompt", "go", "workspace", "/srv/x", "agent", agent, "preset", "ask_all", "set:"+agent+":model", value, "idempotency_key", newKey())).
				page().want(http.StatusUnprocessableEntity, "Nothing was recorded")
		}
		// What is chosen for another agent would be dropped: it is refused, and stays.
		for field, value := range map[string]string{"set:opencode:model": "=large", "set:fake:model": "m1"} {
			b.open("/sessions/new").page()
			b.submit(`[data-testid="new-session-form"]`, vals("prompt", "go", "workspace", "/srv/x", "agent", runbook, "preset", "ask_all", field, value)).page().
				want(http.StatusUnprocessableEntity, "but the agent is "+runbook, "Nothing was recorded")
		}
		b.open("/sessions/new").page()
		b.submit(`[data-testid="new-session-form"]`, vals("prompt", "go", "workspace", "/srv/x", "agent", runbook, "set:opencode:model", "=large")).page()
		if got := b.doc.Find(`select[name="set:opencode:model"] option[selected]`).AttrOr("value", ""); got != "=large" || b.doc.Find(`textarea[name="prompt"]`).Text() != "go" {
			t.Errorf("the refusal has chosen %q", got)
		}
		// So is what no field sends.
		for _, value := range []string{"large", "=", "x"} {
			b.post("/sessions", vals("prompt", "go", "workspace", "/srv/x", "agent", "opencode", "preset", "ask_all", "set:opencode:model", value, "idempotency_key", newKey())).
				page().want(http.StatusUnprocessableEntity, "names no value")
		}
		// Of an agent that has told nothing anything is taken.
		b.post("/sessions", vals("prompt", "go", "workspace", "/srv/x", "agent", "other", "preset", "ask_all", "set:other:model", "=huge", "set:opencode:model", "", "idempotency_key", newKey())).follow()
		id = strings.TrimPrefix(strings.Split(b.path, "?")[0], "/sessions/")
		if st := storetest.MustState(t, w.store, id); len(st.Wanted) != 1 || st.Wanted[0].Value != "huge" {
			t.Errorf("wanted %+v", st.Wanted)
		}
	})
}

// What a session's agent is set to is read on its page and changed in a form: from
// the next message on, by its owner, while it isn't archived.
// proves OWN-1 ADM-2 ADM-3 RDR-1
func TestPages_AgentSettings(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		a := w.start(t, w.alice, "go")
		path := "/sessions/" + a.Session
		b := w.tab(t, w.alice).open(path+"/settings").page().want(http.StatusOK, "has not said yet")
		storetest.MustAppend(t, w.store, a.Claim, "",
			&journal.AgentStarted{ProcessID: "prc_1"}, &journal.AgentOpened{ProcessID: "prc_1"}, &journal.AgentOptions{ProcessID: "prc_1", Options: offered()},
			&journal.AgentCommands{Commands: []journal.AgentCommand{{Name: "init", Description: "set up <it>"}}},
			&journal.AgentUsage{Used: 34_000, Size: 200_000, Cost: &journal.Cost{Amount: "0.1249", Currency: "USD"}})
		b.open(path).page().want(http.StatusOK, "34 of 200 thousand tokens", "$0.12", "1 command of the agent", "/init", "set up <it>", "Change what the agent is set to")
		b.open(path+"/settings").page().want(http.StatusOK, "The turn that is open goes on as it is", "Leave it as it is: “Small <1>”")
		b.submit(`[data-testid="agent-settings-form"]`, vals("set:model", "=large")).follow().want(http.StatusOK, "The agent’s settings are chosen", "From the next message on: large")
		b.open(path+"/settings").page().want(http.StatusOK, "Leave it: from the next message on “Large”", "As the agent has it: “Small <1>”")
		b.submit(`[data-testid="agent-settings-form"]`, vals("set:model", "=huge")).page().want(http.StatusUnprocessableEntity, "has no value")
		b.post(path+"/settings", vals("set:model", "huge", "set:web", "=true", "idempotency_key", newKey())).page().want(http.StatusUnprocessableEntity, "names no value")
		b.open(path + "/settings").page()
		b.submit(`[data-testid="agent-settings-form"]`, vals()).page().want(http.StatusUnprocessableEntity, "Name at least one setting")
		b.open(path + "/settings").page()
		b.submit(`[data-testid="agent-settings-form"]`, vals("set:model", "-")).follow().want(http.StatusOK)
		if st := storetest.MustState(t, w.store, a.Session); len(st.Wanted) != 0 {
			t.Errorf("wanted %+v", st.Wanted)
		}
		w.tab(t, w.mallory).open(path + "/settings").page().want(http.StatusNotFound)
		w.tab(t, w.mallory).post(path+"/settings", vals("set:model", "=large", "idempotency_key", newKey())).page().want(http.StatusNotFound)

		a.end(journal.TurnEnded{Outcome: journal.Completed})
		if err := w.store.Archive(t.Context(), w.alice.user.ID, a.Session); err != nil {
			t.Fatal(err)
		}
		b.open(path+"/settings").page().want(http.StatusOK, "nothing of it is changed any more")
		b.post(path+"/settings", vals("set:model", "=large", "idempotency_key", newKey())).page().want(http.StatusConflict)
	})
}

// proves ADM-2 ADM-3 ADM-4 OWN-1
func TestAPI_Settings(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		seeAgents(t, w, "opencode")
		if err := w.store.SaveAgentOffers(t.Context(), w.alice.user.ID, "opencode", "1", offered()); err != nil {
			t.Fatal(err)
		}
		agents := w.do(t, get, "/api/v1/agents", as(w.alice)).want(t, http.StatusOK)
		if items := agents["items"].([]any); len(items) != 2 || len(items[0].(map[string]any)["options"].([]any)) != 2 || items[0].(map[string]any)["options_version"] != "1" {
			t.Errorf("the agents are %v", items)
		}
		if items := w.do(t, get, "/api/v1/agents", as(w.mallory)).want(t, http.StatusOK)["items"].([]any); items[0].(map[string]any)["options"] != nil {
			t.Errorf("another owner's agents are %v", items)
		}
		create := func(value string) answer {
			return w.do(t, post, "/api/v1/sessions", as(w.alice), key(newKey()), sendsJSON(`{"workspace":"/srv/x","agent":"opencode","settings":[{"id":"model","value":"`+value+`"}]}`))
		}
		for _, one := range []string{`{"id":"x","value":""}`, `{"id":"model","value":null}`} {
			w.do(t, post, "/api/v1/sessions", as(w.alice), key(newKey()), sendsJSON(`{"workspace":"/srv/x","agent":"opencode","settings":[`+one+`]}`)).
				want(t, http.StatusUnprocessableEntity)
		}
		create("huge").wantProblem(t, http.StatusUnprocessableEntity, "bad-setting")
		one := create("large").want(t, http.StatusCreated)
		path := "/api/v1/sessions/" + one["id"].(string) + "/settings"
		set := func(k, body string) answer { return w.do(t, post, path, as(w.alice), key(k), sendsJSON(body)) }
		for _, body := range []string{`{}`, `{"settings":[{"id":"model","value":"huge"}]}`, `{"settings":[{"id":"x","value":"y"}]}`, `{"settings":[{"value":"y"}]}`, `{"settings":null}`, `{"settings":[{"id":"x","value":""}]}`, `{"settings":[{"id":"model","value":null}]}`, `{"settings":[null]}`} {
			if a := set("k", body); a.status != http.StatusUnprocessableEntity {
				t.Errorf("%s: %d %s", body, a.status, a.body)
			}
		}
		for i := range 2 {
			a := set("k", `{"settings":[{"id":"web","value":"true"}]}`)
			got := a.want(t, http.StatusAccepted)
			if settings := got["settings"].([]any); len(settings) != 2 || (a.header.Get("Idempotent-Replayed") == "true") != (i == 1) {
				t.Errorf("answer %d: %v, %q", i, settings, a.header.Get("Idempotent-Replayed"))
			}
		}
		set("k", `{"settings":[{"id":"web","value":"false"}]}`).wantProblem(t, http.StatusUnprocessableEntity, "idempotency-key-reused")
		w.do(t, get, "/api/v1/receipts/k", as(w.alice)).want(t, http.StatusOK)
		w.do(t, post, path, as(w.mallory), sendsJSON(`{"settings":[{"id":"web","value":"true"}]}`)).wantProblem(t, http.StatusNotFound, "no-such-session")
		w.do(t, post, path, as(w.alice), sendsJSON(`{"settings":[{"id":"web","value":"true"}]}`)).want(t, http.StatusAccepted) // wanted already, but nobody knows whether it is so
		if n := storetest.CountKind(storetest.Events(t, w.store, one["id"].(string)), journal.KindSettingsChosen); n != 2 {
			t.Errorf("%d choices were recorded, want 2", n)
		}
	})
}
