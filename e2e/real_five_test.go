//go:build agents

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/e2e/model"
	"holdfast/e2e/power"
)

// five is how many sessions work at once, each with an agent of its own.
const five = 5

// keptIdle is longer than what is done between two turns of them, also under load.
const keptIdle = 30 * time.Second

// Five sessions with an agent each work at once; one's is killed, and the others go on;
// idle ones are ended, their memory is free, and the next prompt begins one again. It
// prints what they hold (docs/performance.md). Not a part of make test-agents, for
// its memory:
//
//	go test -count=1 -tags agents -run TestFiveAgents -v ./e2e
func TestFiveAgents(t *testing.T) {
	for _, a := range reals {
		t.Run(a.Name, func(t *testing.T) { newRealWorld(t, a, "sqlite").five() })
	}
}

func (r *realWorld) five() {
	r.t.Helper()
	s := r.serve(flags("--agent-idle", keptIdle.String(), "--max-running", strconv.Itoa(five)))
	r.t.Logf("the server before: %s", memoryOf(r.t, s.pid()))
	// Several opencodes that make their database together fail: "database is locked".
	s.untilQuiet(s.mission("SAY(The first.)", r.a.by, asking), "ready")

	ids := make([]string, five)
	for i := range ids {
		ids[i] = s.mission(fmt.Sprintf("SAY(I am %d. )\nWAIT(first)\nSAY(Done.)", i), r.a.by, asking)
	}
	r.allReach("first", five)
	r.held(s, "in the midst of their first answers", ids)
	r.m.GoOn("first")
	for _, id := range ids {
		s.untilQuiet(id, "ready")
	}
	r.held(s, "idle after a turn", ids)

	for i, id := range ids {
		s.prompt(id, fmt.Sprintf("SAY(Again %d. )\nWAIT(second)\nRUN(echo %d >> effects)\nSAY(Done again.)", i, i), "queue")
	}
	r.allReach("second", five)
	if err := syscall.Kill(agentPID(r.t, s.events(ids[0])), syscall.SIGKILL); err != nil {
		r.t.Fatal(err)
	}
	s.untilQuiet(ids[0], "uncertain")
	r.m.GoOn("second")
	for i, id := range ids[1:] {
		r.untilAsked(s, id)
		s.allow(id)
		s.untilQuiet(id, "ready")
		r.wantEffect(strconv.Itoa(i+1), 1)
		wantSaid(r.world, s.events(id), fmt.Sprintf("I am %d. Done.", i+1), fmt.Sprintf("Again %d. ", i+1), "Done again.")
	}
	r.held(s, "idle after a turn with a command, one killed", ids[1:])

	r.untilNothingRuns(s)
	r.t.Logf("parked, the server: %s", memoryOf(r.t, s.pid()))

	s.resolveAttempt(s.events(ids[0]).attempt(), "abandon", "continue").want(r.t, http.StatusOK)
	s.untilQuiet(ids[0], "ready")
	for i, id := range ids[1:] {
		s.prompt(id, fmt.Sprintf("SAY(Back %d. )\nWAIT(third)\nSAY(Done.)", i+1), "queue")
	}
	r.allReach("third", five-1)
	r.held(s, "resumed", ids[1:])
	r.m.GoOn("third")
	for _, id := range ids[1:] {
		s.untilKind(id, "turn.ended", 3)
		s.untilQuiet(id, "ready")
	}
	for i, id := range ids {
		j := s.events(id)
		wantCounts(r.t, j, map[string]int{"agent.started": 2, "attempt.unknown": boolInt(i == 0), "session.blocked": 0})
		if how := j.of("agent.opened")[1].str("how"); how != "resumed" {
			r.t.Errorf("session %d was %s, want resumed", i, how)
		}
		if said := j.said(); i == 0 && said[len(said)-1].streamed != model.Unasked {
			r.t.Errorf("session 0 went on with %q", said[len(said)-1].streamed)
		}
	}
}

// allReach waits until the model waits there for n of them.
func (r *realWorld) allReach(name string, n int) {
	r.t.Helper()
	for range n {
		r.m.reached(name)
	}
}

// agentPID is the newest process of a session's agent.
func agentPID(t *testing.T, j journal) int {
	t.Helper()
	started := j.of("agent.started")
	var body struct {
		Process struct {
			PID int `json:"pid"`
		} `json:"process"`
	}
	if len(started) == 0 || json.Unmarshal(started[len(started)-1].Data, &body) != nil || body.Process.PID == 0 {
		t.Fatal("no process of the agent is journalled")
	}
	return body.Process.PID
}

// held prints what the sessions' agents, their shims and the server hold.
func (r *realWorld) held(s *server, when string, ids []string) {
	r.t.Helper()
	var agents, shims []holding
	for _, id := range ids {
		family, shim, err := power.Family(agentPID(r.t, s.events(id)))
		if err != nil {
			r.t.Fatal(err)
		}
		agents, shims = append(agents, memoryOf(r.t, family...)), append(shims, memoryOf(r.t, shim))
	}
	r.t.Logf("%s, each of %d: agent %s; shim %s; the server: %s", when, len(ids), span(agents), span(shims), memoryOf(r.t, s.pid()))
}

// holding is what processes hold, in MB: Pss shares out what several map.
type holding struct{ pss, rss, procs int }

func (m holding) String() string {
	return fmt.Sprintf("%d MB (resident %d), processes %d", m.pss, m.rss, m.procs)
}

func memoryOf(t *testing.T, pids ...int) holding {
	t.Helper()
	var pss, rss int
	m := holding{procs: len(pids)}
	for _, pid := range pids {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			m.procs-- // it has ended
			continue
		}
		for line := range strings.Lines(string(raw)) {
			fields := strings.Fields(line)
			switch fields[0] {
			case "Pss:":
				pss += atoi(t, fields[1])
			case "Rss:":
				rss += atoi(t, fields[1])
			}
		}
	}
	m.pss, m.rss = (pss+512)/1024, (rss+512)/1024
	return m
}

// span is the least and the greatest of some.
func span(of []holding) string {
	by := func(a, b holding) int { return a.pss - b.pss }
	return fmt.Sprintf("%s to %s", slices.MinFunc(of, by), slices.MaxFunc(of, by))
}
