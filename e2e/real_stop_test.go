//go:build agents

package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// A person stops the agent in a command that has left something behind, and in a
// text. It answers that it has stopped, nothing of the command is left, and it goes on
// when it is told to.
// proves COO-4 COO-7 PRO-6
func TestReal_APersonStopsIt(t *testing.T) {
	eachReal(t, onSQLite, func(r *realWorld) {
		s := r.serve()
		gate, up := r.gate("gate"), r.gate("up")

		id := s.mission(lines("SAY(half)", "RUN(setsid sh -c '"+up.tell("$$")+"; "+gate.read()+"; "+effect("late")+"' & wait)", "SAY(never)"), r.a.by, asking)
		r.untilAsked(s, id)
		s.allow(id)
		pid := atoi(r.t, up.wait())
		s.interrupt(id)
		r.stopped(s, id, 1)
		waitGone(r.t, pid)
		s.waitShimsGone()
		if calls := s.calls(id); len(calls) != 1 || calls[0].State != "cancelled" {
			r.t.Errorf("its calls are %+v, want one that is cancelled", calls)
		}
		s.resume(id).want(r.t, http.StatusAccepted)
		s.untilQuiet(id, "ready")
		wantSaid(r.world, s.events(id), "half", unasked)
		r.m.want(2)

		id = s.mission(lines("SAY(half a )", "WAIT(text)", "SAY(never)"), r.a.by, asking)
		r.m.reached("text")
		r.untilStreams(s, id, "half a ")
		s.interrupt(id)
		r.stopped(s, id, 0)
		s.resume(id).want(r.t, http.StatusAccepted)
		s.untilQuiet(id, "ready")
		wantSaid(r.world, s.events(id), "half a ", unasked)
		r.m.want(4)

		gate.open() // nobody reads it
		r.wantEffect("late", 0)
	})
}

// stopped waits until the session has stopped, and sees that its agent has said so in time.
func (r *realWorld) stopped(s *server, id string, ended int) {
	r.t.Helper()
	s.untilQuiet(id, "stopped")
	j := s.events(id)
	wantCounts(r.t, j, map[string]int{"turn.ended": 1, "attempt.settled": 1, "attempt.unknown": 0, "call.unknown": 0, "agent.ended": ended})
	if settled := j.of("attempt.settled"); len(settled) == 1 && settled[0].str("outcome") != "cancelled" {
		r.t.Errorf("the attempt ended %s", settled[0].str("outcome"))
	}
}

// An operator sees what the agent is and can.
func TestReal_Doctor(t *testing.T) {
	eachReal(t, onSQLite, func(r *realWorld) {
		args := append([]string{"--database", r.db.URL, "--state", r.state("1"), "doctor", "agent", r.a.name}, r.passed()...)
		o := execute(r.t, r.dir, "", r.env(), args...)
		if o.code != 0 {
			r.t.Errorf("exit %d: %s", o.code, o.err)
		}
		for _, want := range []string{r.a.version, "ACP 1", "opens a session", "no model was asked", "goes on with a conversation in another process", "ends by itself"} {
			if !strings.Contains(strings.Join(strings.Fields(o.out), " "), want) { // lines break anywhere
				r.t.Errorf("it doesn't say %q:\n%s", want, o.out)
			}
		}
		r.m.want(0)
	})
}
