package handlers

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// someAgents gives a server agents, and looks at them with look.
func someAgents(look func(ctx context.Context, agent, owner string) ([]store.Finding, error)) func(*Options) {
	return func(o *Options) {
		o.WorkerID = "w1"
		o.LookAt = look
		o.Agents = func() []AgentProgram {
			return []AgentProgram{
				{Name: runbook, From: BuiltIn},
				{Name: "opencode", Command: "opencode acp", From: "PATH", File: "/usr/bin/opencode"},
				{Name: "own", Command: "<own> --key [hidden]", From: "--agent", Reason: "its program own\x1b[31m was not found on PATH"},
				{Name: "third", Command: "third", From: "PATH", File: "/third"},
				{Name: "gemini", Command: "gemini --acp", Reason: "its program gemini was not found on PATH when this server was started", Get: "npm install --global @google/gemini-cli"},
			}
		}
	}
}

const lookForm = `[data-testid="look-form"]`

// What the server has of agents is told as it is; what isn't offered is no page.
func TestPages_Agents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"), someAgents(nil))
	for _, row := range []store.Worker{
		{ID: "w1", StateFolderID: "f1", Host: "h", Agents: []store.Agent{{Name: "own", Kind: "acp", Available: true, Steer: "after_turn"}, {Name: "opencode", Kind: "acp", Steer: "after_turn"}}},
		{ID: "w2", StateFolderID: "f2", Host: "h2", Agents: []store.Agent{{Name: "far", Kind: "acp", Available: true}}},
	} {
		if err := w.store.SeeWorker(t.Context(), row); err != nil {
			t.Fatal(err)
		}
	}
	if w.tab(t, w.alice).open("/settings").page().doc.Find(`a[href="/settings/agents"]`).Length() != 1 {
		t.Error("the settings don't lead there")
	}
	b := w.tab(t, w.alice).open("/settings/agents").page().want(
		http.StatusOK, "Always there", "Can be started", "Can’t be started", `Its program own\x1b[31m was not found on PATH.`, "<own> --key [hidden]", "named with --agent", "known, found on PATH",
		"Its program gemini was not found on PATH", "npm install --global @google/gemini-cli", "Offered by other servers", "far",
	)
	if n := b.doc.Find(`[data-testid="agent-row"]`).Length(); n != 4 {
		t.Errorf("%d agents are offered", n)
	}
	b.open("/settings/agents/own").page().want(http.StatusOK, "Can’t be started", "You have not looked at it", "Start it and look")
	b.open("/settings/agents/runbook").page().want(http.StatusOK, "Always there", "needs no look")
	if b.open("/settings/agents/far").page().want(http.StatusOK, "Another server of this journal offers it").doc.Find("form.stack").Length() != 0 {
		t.Error("another server's agent can be started here")
	}
	for _, name := range []string{"gemini", "nobody", "..%2fetc", "%00", "OPENCODE", "own%20", strings.Repeat("x", 3000)} {
		b.open("/settings/agents/" + name).page().want(http.StatusNotFound)
		b.post("/settings/agents/"+name+"/probe", vals("idempotency_key", newKey())).page().want(http.StatusNotFound)
	}
	b.post("/settings/agents/runbook/probe", vals("idempotency_key", newKey())).page().want(http.StatusConflict, "built in")
	b.post("/settings/agents/far/probe", vals("idempotency_key", newKey())).page().want(http.StatusConflict, "Another server offers")
	if got := w.do(t, get, "/settings/agents", option(func(*http.Request) {})); got.status == http.StatusOK {
		t.Errorf("who isn't signed in gets %d", got.status)
	}
	if got := w.do(t, post, "/settings/agents/opencode/probe", browser(w.alice), header("Sec-Fetch-Site", "cross-site"), sendsForm("a=b")); got.status != http.StatusForbidden {
		t.Errorf("another site's form gets %d", got.status)
	}

	// The form and the API say the same, as it is now and not as it was written down.
	b.open("/sessions/new").page().want(http.StatusOK, `Can’t be chosen: its program own\x1b[31m was not found on PATH`)
	if _, off := b.doc.Find("input[name=agent][value=own]").Attr("disabled"); !off || b.doc.Find(`a[href="/settings/agents/own"]`).Length() != 1 {
		t.Error("it can be chosen, or nothing leads to its page")
	}
	if _, off := b.doc.Find("input[name=agent][value=opencode]").Attr("disabled"); off {
		t.Error("one that is there by now can't be chosen")
	}
	body := string(w.do(t, get, "/api/v1/agents", as(w.alice)).body)
	for _, want := range []string{`{"name":"opencode","kind":"acp","available":true}`, `"name":"own","kind":"acp","available":false,"reason":"its program own`, `"name":"far"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the API doesn't say %s: %s", want, body)
		}
	}
}

// A look is shown to who asked for it; what an agent says in it is escaped and bounded.
// proves OWN-1
func TestPages_AgentLook(t *testing.T) {
	t.Parallel()
	hostile := []store.Finding{
		{Check: "start", Health: store.Healthy, Found: "<script>alert(1)</script> \x1b[31mred\x07 \u202Egnp"},
		{Check: "stop", Health: store.Warning, Found: "opencode 1.2 did not", Do: "mind \x00this"},
		{Check: "session", Health: store.Wrong, Found: strings.Repeat("long ", 2000), Do: "sign in"},
	}
	w := newWorld(t, storetest.New(t, "sqlite"), someAgents(func(_ context.Context, agent, _ string) ([]store.Finding, error) {
		if agent == "own" {
			panic("no")
		}
		if agent == "third" {
			return nil, errors.New("no room")
		}
		return hostile, nil
	}))
	b := w.tab(t, w.alice).open("/settings/agents/opencode").page().submit(lookForm, vals()).follow().page().want(
		http.StatusOK, "1 of 3 findings wrong", "<script>alert(1)</script>", `\x1b[31mred\x07`, `\u202egnp`, "Mind this", "Wrong", "opencode 1.2 did not", "To do: mind", "Start it and look again",
	)
	if b.path != "/settings/agents/opencode" || b.doc.Find(`[data-testid="finding"]`).Length() != 3 || b.doc.Find("main script").Length() != 0 {
		t.Errorf("%s has %d findings, %d scripts", b.path, b.doc.Find(`[data-testid="finding"]`).Length(), b.doc.Find("main script").Length())
	}
	if n := len(b.page().main()); n > 8000 {
		t.Errorf("%d bytes are shown", n)
	}
	b.open("/settings/agents").page()
	if got := squeeze(b.doc.Find(`[data-agent="opencode"]`).Text()); !strings.Contains(got, "1 wrong") {
		t.Errorf("the list says of the look %q", got)
	}
	if got := b.doc.Find(`[data-agent="opencode"] time`).Length(); got != 1 {
		t.Errorf("%d times of the last look", got)
	}
	w.tab(t, w.mallory).open("/settings/agents/opencode").page().want(http.StatusOK, "You have not looked at it since this server was started")
	b.open("/settings/agents/own").page().submit(lookForm, vals()).follow().page().want(http.StatusOK, "something went wrong in the server")
	b.open("/settings/agents/third").page().submit(lookForm, vals()).follow().page().want(http.StatusOK, "The look came to nothing: no room.")
}

// One look at a time at an agent and of a person, few at once; a second press joins; the server's stop
// ends them and waits.
func TestPages_AgentLooksAreFew(t *testing.T) {
	t.Parallel()
	began, ended := make(chan string, 10), make(chan error, 10)
	w := newWorld(t, storetest.New(t, "sqlite"), someAgents(func(ctx context.Context, agent, _ string) ([]store.Finding, error) {
		began <- agent
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, context.Cause(ctx)
	}))
	begin := func(agent string, p person) (<-chan struct{}, error) {
		return w.srv.looks.begin(t.Context(), agent, p.user.ID)
	}
	first, err := begin("opencode", w.alice)
	if err != nil {
		t.Fatal(err)
	}
	again, err := begin("opencode", w.alice)
	if err != nil || again != first {
		t.Errorf("a second press starts another: %v", err)
	}
	b := w.tab(t, w.alice).open("/settings/agents/opencode").page().want(http.StatusOK, "is being looked at", "Reload this page")
	if b.doc.Find(lookForm).Length() != 0 {
		t.Error("it can be pressed again")
	}
	w.tab(t, w.mallory).post("/settings/agents/opencode/probe", vals("idempotency_key", newKey())).page().want(http.StatusConflict, "Somebody else looks at this agent just now")
	w.tab(t, w.alice).post("/settings/agents/third/probe", vals("idempotency_key", newKey())).page().want(http.StatusConflict, "You look at another agent just now", "Nothing was started")
	if _, err := begin("own", w.mallory); err != nil { // whatever hangs of another's
		t.Fatal(err)
	}
	if _, err := begin("third", person{user: store.User{ID: "usr_3"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := begin("fourth", person{user: store.User{ID: "usr_4"}}); !journal.Is(err, journal.Conflict) || !strings.Contains(err.Error(), "3 agents are looked at just now") {
		t.Errorf("a fourth: %v", err)
	}
	for range 3 {
		<-began
	}
	if err := w.srv.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := <-ended; !errors.Is(err, errServerStops) {
			t.Errorf("a look ended: %v", err)
		}
	}
	if len(began) > 0 {
		t.Error("more than three were begun")
	}
	if _, err := begin("third", w.alice); !journal.Is(err, journal.Unavailable) {
		t.Errorf("a look is begun after the stop: %v", err)
	}
	if look := w.srv.looks.of("opencode", w.alice.user.ID); look == nil || !strings.Contains(look.Failed, "the server stops") {
		t.Errorf("it says %+v", look)
	}
}

// A session that can't go on because of its agent leads to the agent's page, with what is
// wrong in a sentence.
// proves PRO-6
func TestPages_SessionLeadsToItsAgent(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		if err := w.store.SeeWorker(t.Context(), store.Worker{ID: "w1", StateFolderID: "f1", Host: "h", Agents: []store.Agent{{Name: "own", Kind: "acp", Steer: "after_turn"}}}); err != nil {
			t.Fatal(err)
		}
		start := func() *agent {
			n := store.NewSession{Title: "Do it", Agent: "own", Workspace: "/srv/shop", WorkspaceID: "wsp_1", Preset: "ask_writes", Prompt: &store.PromptInput{Text: "Do it", Delivery: journal.Queue}}
			one, _, err := w.store.CreateSession(t.Context(), w.alice.user.ID, store.NewSecret(), n)
			if err != nil {
				t.Fatal(err)
			}
			return w.pickUp(t, w.alice, one.ID)
		}
		for in, block := range map[string]journal.SessionBlocked{
			"#blocked": {Cause: journal.BlockAgent, Detail: "The agent own can't be started: its program own was not found on PATH."},
			"#held":    {Cause: journal.BlockSignIn, Detail: "The agent needs a sign-in: run own login."},
		} {
			a := start()
			storetest.MustAppend(t, w.store, a.Claim, "", &block)
			b := w.tab(t, w.alice).open("/sessions/"+a.Session).page().want(http.StatusOK, block.Detail, "Look at the agent own", "Do it")
			if b.doc.Find(in+` a[href="/settings/agents/own"]`).Length() != 1 {
				t.Errorf("%s doesn't lead to the agent", in)
			}
		}
		a := start()
		a.end(journal.TurnEnded{Outcome: journal.Failed, Reason: "The agent's process ended with exit code 127. Nothing was sent."})
		b := w.tab(t, w.alice).open("/sessions/"+a.Session).page().want(http.StatusOK, "exit code 127. Nothing was sent.", "Look at the agent own", "Continue takes the unfinished turn up")
		if b.doc.Find(`#held a[href="/settings/agents/own"]`).Length() != 1 {
			t.Error("what failed doesn't lead to the agent")
		}
		a = w.start(t, w.alice, "go")
		a.end(journal.TurnEnded{Outcome: journal.Failed, Reason: "A step failed."})
		if w.tab(t, w.alice).open("/sessions/"+a.Session).page().doc.Find(`[data-testid="agent-link"]`).Length() != 0 {
			t.Error("the runbook is looked at")
		}
	}, someAgents(nil))
}
