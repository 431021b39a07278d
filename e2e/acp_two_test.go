package e2e

import (
	"fmt"
	"net/http"
	"testing"
)

// A server is frozen, or lost, while its agent works, and another recovers the session:
// the attempt is unknown, and the agent ends as soon as the server is back.
// proves LEA-4 LEA-12 REC-4 REC-10 ATT-3
func TestACP_AnotherServerTakesOver(t *testing.T) {
	t.Parallel()
	type loss struct{ lose, back func(s *server) }
	for name, l := range map[string]loss{
		"it is frozen": {(*server).sigstop, (*server).sigcont},
		"it is lost":   {(*server).kill9, func(s *server) { s.restart() }},
	} {
		for _, verdict := range []string{"before a verdict", "after it"} {
			t.Run(fmt.Sprint(name, " and comes back ", verdict), func(t *testing.T) {
				t.Parallel()
				onPostgres(t, func(t *testing.T, w *world) {
					f := w.fake("fake", `{"prompts": [
						{"times": 1, "steps": [{"say": "half"}, {"run": "echo $$ > pid; touch up; read -r _ < gate; echo late >> effects"}]},
						{"steps": [{"say": "the rest"}]}]}`)
					owner := w.serve(flags(quick...), agents(f))
					gate := w.gate("gate")
					id := owner.mission("Do it", f.by)
					w.untilFile("up")
					owner.untilKind(id, "call.dispatched", 1)
					l.lose(owner)
					other := w.serve(as("2"), flags(quick...), agents(f))
					other.untilQuiet(id, "uncertain")
					before := other.events(id)
					wantCounts(t, before, map[string]int{"agent.lost": 1, "agent.ended": 0})
					resolve := func() {
						other.resolve(other.calls(id)[0].ID, "cannot_tell", "continue").want(t, http.StatusOK)
						other.resolveAttempt(before.attempt(), "retry", "continue").want(t, http.StatusOK)
						other.untilQuiet(id, "ready")
					}
					if verdict == "after it" {
						resolve()
					}
					l.back(owner)
					waitGone(t, f.pids()[0])
					waitGone(t, atoi(t, w.file("pid")[:len(w.file("pid"))-1]))
					gate.Open()
					if verdict != "after it" {
						resolve()
					}
					w.wantEffect("late", 0)
					owner.untilKind(id, "agent.ended", 1)
					j := owner.events(id)
					wantSaid(w, j, "half", "the rest")
					wantCounts(t, j, map[string]int{"attempt.unknown": 1, "attempt.dispatched": 2, "call.unknown": 1, "agent.started": 2, "agent.ended": 1, "step.recovered": 1})
					f.wantPrompts("Do it", "Do it")
				})
			})
		}
	}
}
