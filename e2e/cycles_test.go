package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// person reconciles what is unknown by looking at the effects, answers what is
// asked, and continues what is blocked.
type person struct {
	w   *world
	ids []string
	did map[string]string // the effect of each call that was unknown, by call
}

// look does what there is to do, and reports whether every mission is done.
func (p *person) look(s *server) (done bool) {
	p.w.t.Helper()
	done = true
	for _, id := range p.ids {
		one := s.session(id)
		done = done && one.State == "ready" && one.Execution == nil
		switch {
		case one.State == "uncertain":
			p.reconcile(s, id)
		case one.State == "blocked", one.State == "stopped", one.State == "failed":
			s.resume(id)
		case one.PendingPermissions > 0:
			for _, r := range s.pending(id) {
				s.decide(r.ID, "once", "")
			}
		}
	}
	return done
}

// reconcile says of each unknown call what the file of effects says. What was
// left running has been ended before it became unknown, so the file is final.
func (p *person) reconcile(s *server, id string) {
	p.w.t.Helper()
	j := s.events(id)
	for _, c := range s.calls(id) {
		if c.State != "unknown" || c.Resolution != nil {
			continue
		}
		i := j.at("call.proposed", func(e event) bool { return e.str("call_id") == c.ID })
		_, after, _ := strings.Cut(string(j[i].Data), "echo ")
		name, _, _ := strings.Cut(after, " ")
		outcome := "did_not_happen"
		if p.w.effects()[name] > 0 {
			outcome = "happened"
		}
		s.resolve(c.ID, outcome, "continue").want(p.w.t, http.StatusOK)
		p.did[c.ID] = name
	}
}

// Twenty kills at any moment of a server with work: every effect happens once,
// and what can't be known is asked.
// proves REC-1 REC-4 REC-5 REC-9 CAL-4 CAL-7 JRN-2 LEA-11
func TestE2E_TwentyKillsUnderLoad(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		servers := []*server{w.serve(flags(quick...))}
		if w.db.Name == "postgres" {
			servers = append(servers, w.serve(as("2"), flags(quick...)))
		}
		seed := uint64(time.Now().UnixNano())
		dice := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // dice of a test
		t.Logf("seed %d", seed)
		p := &person{w: w, did: map[string]string{}}
		want := map[string]int{}
		for m := range 5 {
			var scripts []string
			for i := range 16 {
				name := fmt.Sprintf("m%d.%d", m, i)
				want[name] = 1
				scripts = append(scripts, effect(name)+"; echo said")
			}
			id := servers[0].mission(steps(scripts[:10]...))
			servers[0].prompt(id, steps(scripts[10:]...), "queue")
			p.ids = append(p.ids, id)
		}
		db := w.sql()
		for cycle := range 20 {
			s := servers[cycle%len(servers)]
			until := w.db.Count(t, db, "SELECT count(*) FROM event") + 1 + dice.Int64N(25)
			eventually(t, "it has worked a little", func() bool {
				return p.look(s) || w.db.Count(t, db, "SELECT count(*) FROM event") >= until
			})
			s.kill9()
			s.restart()
		}
		eventually(t, "all missions are done", func() bool { return p.look(servers[0]) })
		got := w.effects()
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if got[name] != 1 {
				t.Errorf("the effect %s happened %d times", name, got[name])
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d effects, want %d", len(got), len(want))
		}
		unknown, recovered := 0, 0
		for _, id := range p.ids {
			j := servers[0].events(id)
			unknown, recovered = unknown+j.count("call.unknown"), recovered+j.count("step.recovered")
			wantCounts(t, j, map[string]int{"prompt.promoted": 2, "prompt.admitted": 2})
		}
		t.Logf("%d recoveries, %d unknown outcomes", recovered, unknown)
		if recovered == 0 {
			t.Error("no kill met a run: nothing was proved")
		}
		if unknown != len(p.did) {
			t.Errorf("%d outcomes were unknown, %d were reconciled", unknown, len(p.did))
		}
	})
}
