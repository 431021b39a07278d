//go:build agents

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/store/storetest"
)

// realFolder has the agents from npm, at the versions that its lock pins.
const realFolder = "agents"

// realAgent is an agent as people have it, and what is its own way.
type realAgent struct {
	name, pkg, version string
	// rejected: its model is told of a rejection in the turn, and goes on.
	rejected bool
}

var reals = []realAgent{
	{name: "claude", pkg: "@agentclientprotocol/claude-agent-acp", version: "0.49.0", rejected: true},
	{name: "opencode", pkg: "opencode-ai", version: "1.18.33"},
}

// by makes the session one of this agent.
func (a realAgent) by(body map[string]any) { body["agent"] = a.name }

// eachReal runs body with each agent: on SQLite, or as one says on Postgres, too.
// One that isn't installed, at its version, is a failure.
func eachReal(t *testing.T, databases []string, body func(r *realWorld)) {
	t.Helper()
	for _, a := range reals {
		for _, database := range databases {
			t.Run(a.name+"/"+database, func(t *testing.T) {
				a.mustBeInstalled(t)
				w := newWorld(t, database)
				r := &realWorld{world: w, a: a, m: newModel(t)}
				r.settings()
				body(r)
			})
		}
	}
}

var (
	onSQLite = []string{"sqlite"}
	onAll    = storetest.Databases()
)

func (a realAgent) mustBeInstalled(t *testing.T) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(realFolder, "node_modules", a.pkg, "package.json"))
	var found struct {
		Version string `json:"version"`
	}
	if err != nil || json.Unmarshal(raw, &found) != nil || found.Version != a.version {
		t.Fatalf("%s %s is not installed (found %q, %v): scripts/npm -C e2e/agents", a.pkg, a.version, found.Version, err)
	}
}

// realWorld is a world with one of the agents and the model that it asks.
type realWorld struct {
	*world
	a realAgent
	m *model
}

// settings writes what opencode reads; the other takes all from its environment.
func (r *realWorld) settings() {
	r.t.Helper()
	raw, err := json.Marshal(map[string]any{
		"model": "mock/m1", "small_model": "mock/m1",
		"permission": map[string]string{"bash": "ask", "edit": "ask"},
		"provider": map[string]any{"mock": map[string]any{
			"npm": "@ai-sdk/anthropic", "options": map[string]string{"baseURL": r.m.base + "/v1", "apiKey": "no-key"},
			"models": map[string]any{"m1": map[string]any{"name": "m1", "tool_call": true, "limit": map[string]int{"context": 100000, "output": 4000}}},
		}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "opencode.json"), raw, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// env is what the agents need: their programs, the model, and that they leave the
// rest of the world alone.
func (r *realWorld) env() []string {
	r.t.Helper()
	bin, err := filepath.Abs(filepath.Join(realFolder, "node_modules", ".bin"))
	if err != nil {
		r.t.Fatal(err)
	}
	return append(slices.Clone(realEnv), "PATH="+bin+":"+os.Getenv("PATH"), "ANTHROPIC_BASE_URL="+r.m.base, "OPENCODE_CONFIG="+filepath.Join(r.dir, "opencode.json"))
}

var realEnv = []string{
	"ANTHROPIC_API_KEY=no-key", "IS_SANDBOX=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
}

// passed names what the server passes on to agents.
func (r *realWorld) passed() []string {
	var names []string
	for _, e := range r.env() {
		if name, _, _ := strings.Cut(e, "="); name != "PATH" {
			names = append(names, name)
		}
	}
	return []string{"--agent-env", strings.Join(names, ",")}
}

// serve starts a server that has the agents.
func (r *realWorld) serve() *server {
	r.t.Helper()
	return r.world.serve(flags(quick...), flags(r.passed()...), env(r.env()...))
}

// untilStreams waits until the newest of the agent's texts has come so far.
func (r *realWorld) untilStreams(s *server, id, text string) {
	r.t.Helper()
	s.until(id, fmt.Sprintf("%q is journalled", text), func(j journal) bool {
		said := j.said()
		return len(said) > 0 && said[len(said)-1].streamed == text
	})
}

// untilAsked waits until a person is asked about a call, and gives the requests.
func (r *realWorld) untilAsked(s *server, id string) []request {
	r.t.Helper()
	s.untilState(id, "waiting")
	return s.pending(id)
}

// A mission with all that agents do for people: a text that streams, a command that
// is allowed, an edit that is shown and rejected with a reason, and another turn.
// proves PRO-6 PER-2 ATT-1 JRN-5 CAL-1
func TestReal_AMission(t *testing.T) {
	eachReal(t, onAll, func(r *realWorld) {
		s := r.serve()
		id := s.mission(lines("SAY(one ä )", "WAIT(text)", "SAY(two)", "RUN(echo ran >> effects; echo out)", "SAY(It ran.)",
			"EDIT("+r.work+"/note.txt, hello there)", "SAY(It was rejected.)"), r.a.by, asking)
		r.m.reached("text")
		r.untilStreams(s, id, "one ä ")
		r.m.goOn("text")

		r.untilAsked(s, id)
		r.wantEffect("ran", 0)
		s.allow(id)

		s.untilKind(id, "call.proposed", 2)
		asked := r.untilAsked(s, id)
		if len(asked) != 1 {
			t.Fatalf("it asks %+v", asked)
		}
		shown := s.events(id).of("permission.asked")
		if body := string(shown[len(shown)-1].Data); !strings.Contains(body, "note.txt") || !strings.Contains(body, "+ hello there") {
			t.Errorf("the edit is shown as %s", body)
		}
		s.decide(asked[0].ID, "reject", "Not that.\nSAY(As you say.)").want(r.t, 200)
		s.untilQuiet(id, "ready")

		want := []string{"one ä two", "It ran.", "It was rejected.", "As you say."}
		if !r.a.rejected {
			want = slices.Delete(want, 2, 3)
		}
		j := s.events(id)
		wantSaid(r.world, j, want...)
		r.wantEffect("ran", 1)
		if got := strings.TrimSpace(j.output(s.calls(id)[0].ID)); got != "out" {
			r.t.Errorf("the command printed %q", got)
		}
		if got := r.file("note.txt"); got != "" {
			r.t.Errorf("it wrote %q", got)
		}
		r.m.want(len(want))
		wantCounts(r.t, j, map[string]int{"turn.ended": 1, "attempt.settled": 2, "attempt.unknown": 0, "call.unknown": 0, "call.dispatched": 1, "call.settled": 2})

		s.prompt(id, "SAY(The second turn.)", "queue")
		s.untilKind(id, "turn.ended", 2)
		s.untilQuiet(id, "ready")
		j = s.events(id)
		wantSaid(r.world, j, append(want, "The second turn.")...)
		r.m.want(len(want) + 1)
		wantCounts(r.t, j, map[string]int{"agent.started": 1, "agent.opened": 1, "agent.ended": 0, "session.blocked": 0})
	})
}

// lines puts words together.
func lines(words ...string) string { return strings.Join(words, "\n") }
