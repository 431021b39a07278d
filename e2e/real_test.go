//go:build agents

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	pinned "holdfast/e2e/agents"
	"holdfast/e2e/model"
	"holdfast/e2e/power"
	"holdfast/store/storetest"
)

// realAgent is an agent as people have it, and what is its own way.
type realAgent struct {
	pinned.Agent
	// api is how it speaks with its model in a world on each database.
	api map[string]string
	// rejected: its model is told of a rejection in the turn, and goes on.
	rejected bool
}

var reals = []realAgent{
	{Agent: pinned.Claude, api: map[string]string{"sqlite": "anthropic", "postgres": "anthropic"}, rejected: true},
	{Agent: pinned.OpenCode, api: map[string]string{"sqlite": "openai", "postgres": "anthropic"}},
}

// by makes the session one of this agent.
func (a realAgent) by(body map[string]any) { body["agent"] = a.Name }

// realPlaces bounds how many worlds with real agents live at once: an agent takes up
// to a gigabyte.
var realPlaces = make(chan struct{}, 3)

// eachReal runs body with each agent: on SQLite, or as one says on Postgres, too.
// One that isn't installed, at its version, is a failure.
func eachReal(t *testing.T, databases []string, body func(r *realWorld)) {
	t.Helper()
	t.Parallel()
	for _, a := range reals {
		for _, database := range databases {
			t.Run(a.Name+"/"+database, func(t *testing.T) {
				t.Parallel()
				realPlaces <- struct{}{}
				t.Cleanup(func() { <-realPlaces })
				r := newRealWorld(t, a, database)
				body(r)
			})
		}
	}
}

var (
	onSQLite = []string{"sqlite"}
	onAll    = storetest.Databases()
)

// realModel is the model of one test.
type realModel struct {
	*model.Model
	t *testing.T
}

func newRealModel(t *testing.T) realModel {
	m := realModel{model.New(), t}
	t.Cleanup(func() {
		m.Close()
		if t.Failed() {
			t.Logf("the model was asked:\n%s", m)
		}
	})
	return m
}

// reached waits until the model waits there.
func (m realModel) reached(name string) {
	m.t.Helper()
	select {
	case <-m.Reached(name):
	case <-time.After(patience):
		m.t.Fatalf("the model was never asked to wait at %s", name)
	}
}

// want fails unless the model was asked n times, each time something else.
func (m realModel) want(n int) {
	m.t.Helper()
	calls := m.Asked()
	if len(calls) != n {
		m.t.Errorf("the model was asked %d times, want %d", len(calls), n)
	}
	seen := map[string]bool{}
	for _, c := range calls {
		if seen[c.Sum] || seen[c.Conversation] {
			m.t.Errorf("the model was asked twice for %v", c.Words)
		}
		seen[c.Sum], seen[c.Conversation] = true, true
	}
}

// realWorld is a world with one of the agents and the model that it asks.
type realWorld struct {
	*world
	a    realAgent
	m    realModel
	env  []string // of the servers, with what agents need
	mark string   // stands in it, so also in the environment of all that they start
}

func newRealWorld(t *testing.T, a realAgent, database string) *realWorld {
	t.Helper()
	if err := a.Check(t.Context(), realFolder); err != nil {
		t.Fatal(err)
	}
	bin, err := pinned.Bin(realFolder)
	if err != nil {
		t.Fatal(err)
	}
	r := &realWorld{world: newWorld(t, database), a: a, m: newRealModel(t)}
	r.mark = "HOLDFAST_REAL_TEST=" + r.dir
	if r.env, err = pinned.Settings(r.dir, r.m.URL(), a.api[database]); err != nil {
		t.Fatal(err)
	}
	r.env = append(r.env, r.mark, "PATH="+bin+":"+os.Getenv("PATH"))
	return r
}

// passed names what the server passes on to agents.
func (r *realWorld) passed() []string {
	var names []string
	for _, e := range r.env {
		if name, _, _ := strings.Cut(e, "="); name != "PATH" {
			names = append(names, name)
		}
	}
	return []string{"--agent-env", strings.Join(names, ",")}
}

// serve starts a server that has the agents.
func (r *realWorld) serve(with ...func(*server)) *server {
	r.t.Helper()
	return r.world.serve(append([]func(*server){flags(quick...), flags(r.passed()...), env(r.env...)}, with...)...)
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

// untilNothingRuns waits until nothing that the server has started is left: no agent,
// no shim, and nothing that a command detached.
func (r *realWorld) untilNothingRuns(s *server) {
	r.t.Helper()
	eventually(r.t, "nothing is left running", func() bool {
		left, err := power.Marked(r.mark)
		if err != nil {
			r.t.Fatal(err)
		}
		return !slices.ContainsFunc(left, func(pid int) bool { return !s.running() || pid != s.pid() })
	})
}

// wantModelAPI fails unless the model was asked in the way that this world is for.
func (r *realWorld) wantModelAPI() {
	r.t.Helper()
	for _, c := range r.m.Asked() {
		if c.API != r.a.api[r.db.Name] {
			r.t.Errorf("the model was asked by %s, want %s", c.API, r.a.api[r.db.Name])
		}
	}
}

// lines puts words together.
func lines(words ...string) string { return strings.Join(words, "\n") }
