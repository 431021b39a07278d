//go:build agents

package e2e

import (
	"strings"
	"testing"
)

// The server is killed in the middle of a text, of a command, and while the agent
// waits for an answer. Nothing of that is lost, and nothing is done or asked twice.
// proves REC-10 REC-11 ATT-3 PER-4 JRN-5 CAL-1
func TestReal_TheServerIsKilled(t *testing.T) {
	eachReal(t, onAll, func(r *realWorld) {
		s := r.serve()
		gate, up := r.gate("gate"), r.gate("up")
		id := s.mission(lines("SAY(one ä )", "WAIT(text)", "SAY(two)",
			"RUN("+effect("begun")+"; echo first; "+up.Tell("$$")+"; "+gate.Read()+"; echo last; "+effect("ended")+")",
			"SAY(between)", "RUN("+effect("asked")+")", "SAY(three)"), r.a.by, asking)

		r.m.reached("text")
		r.untilStreams(s, id, "one ä ")
		s.kill9()
		r.m.GoOn("text") // while no server is there
		s.restart()

		r.untilAsked(s, id)
		s.allow(id)
		pid := atoi(r.t, up.Wait())
		s.kill9()
		s.restart()
		gate.Open()
		waitGone(r.t, pid)

		s.untilKind(id, "call.proposed", 2)
		asked := r.untilAsked(s, id)
		s.kill9()
		s.restart()
		if again := s.pending(id); len(again) != len(asked) || again[0].ID != asked[0].ID {
			r.t.Errorf("it asks %+v, and asked %+v", again, asked)
		}
		s.allow(id)

		s.untilQuiet(id, "ready")
		j := s.events(id)
		wantSaid(r.world, j, "one ä two", "between", "three")
		for _, name := range []string{"begun", "ended", "asked"} {
			r.wantEffect(name, 1)
		}
		if got := strings.TrimSpace(j.output(s.calls(id)[0].ID)); got != "first\nlast" {
			r.t.Errorf("the command printed %q", got)
		}
		r.m.want(3)
		r.wantModelAPI()
		wantCounts(r.t, j, map[string]int{
			"agent.started": 1, "agent.opened": 1, "agent.ended": 0, "turn.started": 1, "turn.ended": 1,
			"attempt.dispatched": 1, "attempt.settled": 1, "attempt.unknown": 0, "call.unknown": 0, "session.blocked": 0,
		})
		if n := j.letRun(); n != 2 {
			r.t.Errorf("%d calls were let run, want 2", n)
		}
	})
}
