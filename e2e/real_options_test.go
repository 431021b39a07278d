//go:build agents

package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a real agent offers is read, is set before its first prompt and between two
// turns, and is set again in a process that comes up otherwise.
// proves REC-12 ATT-1
func TestReal_IsSet(t *testing.T) {
	first := map[string][]string{"claude": {"mode", "plan", "model", "sonnet"}, "opencode": {"mode", "plan", "model", "mock/m2"}}
	second := map[string][]string{"claude": {"mode", "default", "model", "haiku"}, "opencode": {"mode", "build", "model", "mock/m1"}}
	eachReal(t, onSQLite, func(r *realWorld) {
		r.twoModels()
		s := r.serve()
		id := s.mission(lines("SAY(one)"), r.a.by, asking, set(first[r.a.Name]...))
		s.untilQuiet(id, "ready")
		r.wantSet(s, id, first[r.a.Name])
		j := s.events(id)
		wantSaid(r.world, j, "one")
		for kind, most := range map[string]int{"agent.options": 6, "agent.commands": 3, "agent.usage": 3} {
			if n := len(j.of(kind)); n == 0 || n > most {
				r.t.Errorf("%d %s, want 1 to %d\n%s", n, kind, most, j.dump())
			}
		}
		all := decode[items[offeredAgent]](r.t, s.get("/api/v1/agents").want(r.t, http.StatusOK)).Items
		if !slices.ContainsFunc(all, func(a offeredAgent) bool { return a.Name == r.a.Name && len(a.Options) >= 2 }) {
			r.t.Errorf("the agents offer %+v", all)
		}

		s.choose(id, second[r.a.Name]...).want(r.t, http.StatusAccepted)
		s.prompt(id, "SAY(two)", "queue")
		s.untilKind(id, "turn.ended", 2)
		s.untilQuiet(id, "ready")
		r.wantSet(s, id, second[r.a.Name])

		s.choose(id, "model", "no such model").want(r.t, http.StatusUnprocessableEntity)

		s.sigterm() // which ends the process, as nobody needs it
		s.waitShimsGone()
		s.restart()
		s.prompt(id, "SAY(three)", "queue")
		s.untilKind(id, "turn.ended", 3)
		s.untilQuiet(id, "ready")
		r.wantSet(s, id, second[r.a.Name])
		j = s.events(id)
		wantSaid(r.world, j, "one", "two", "three")
		wantCounts(r.t, j, map[string]int{"agent.started": 2, "attempt.unknown": 0, "agent.event": 0})
		r.m.want(3)
	})
}

// twoModels gives opencode a second model to be set to.
func (r *realWorld) twoModels() {
	r.t.Helper()
	path := filepath.Join(r.dir, "opencode.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	text := strings.Replace(string(raw), `"models":{`, `"models":{"m2":{"name":"m2","tool_call":true,"limit":{"context":100000,"output":4000}},`, 1)
	if !json.Valid([]byte(text)) || !strings.Contains(text, "m2") {
		r.t.Fatalf("no settings of opencode: %s", text)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// wantSet fails unless the agent says itself that it is set so.
func (r *realWorld) wantSet(s *server, id string, pairs []string) {
	r.t.Helper()
	got := strings.Fields(s.isSet(id))
	for i := 0; i < len(pairs); i += 2 {
		if want := pairs[i] + "=" + pairs[i+1] + ">" + pairs[i+1]; !slices.Contains(got, want) {
			r.t.Errorf("it is set %v, want %s", got, want)
		}
	}
}
