//go:build agents

package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/e2e/model"
)

// stopWithin is acp.md's: 20 seconds to answer, 5 to leave, 15 to be killed.
const stopWithin = 40 * time.Second

// A person stops the agent in a command that has left things behind, in a text, and
// while it waits for an answer. It answers in time that it has stopped, nothing of the
// command is left, and it goes on when it is told to.
// proves COO-4 COO-7 PRO-6 PER-6
func TestReal_APersonStopsIt(t *testing.T) {
	eachReal(t, onSQLite, func(r *realWorld) {
		s := r.serve()
		gate, up := r.gate("gate"), r.gate("up")
		detached := func(by string) string {
			return by + " sh -c '" + up.Tell("$$") + "; " + gate.Read() + "; " + effect("late") + "' >/dev/null 2>&1 & "
		}

		id := s.mission(lines("SAY(half)", "RUN("+detached("setsid")+detached("nohup")+detached("nohup setsid")+"wait)", "SAY(never)"), r.a.by, asking)
		r.untilAsked(s, id)
		s.allow(id)
		pids := []int{atoi(r.t, up.Wait()), atoi(r.t, up.Wait()), atoi(r.t, up.Wait())}
		r.stop(s, id, 1)
		for _, pid := range pids {
			waitGone(r.t, pid)
		}
		r.untilNothingRuns(s)
		if calls := s.calls(id); len(calls) != 1 || calls[0].State != "cancelled" {
			r.t.Errorf("its calls are %+v, want one that is cancelled", calls)
		}
		r.continues(s, id, "half")
		r.m.want(2)

		id = s.mission(lines("SAY(half a )", "WAIT(text)", "SAY(never)"), r.a.by, asking)
		r.m.reached("text")
		r.untilStreams(s, id, "half a ")
		r.stop(s, id, 0)
		r.continues(s, id, "half a ")
		r.m.want(4)

		id = s.mission(lines("SAY(half)", "RUN("+effect("asked")+")", "SAY(never)"), r.a.by, asking)
		r.untilAsked(s, id)
		r.stop(s, id, 0)
		if calls := s.calls(id); len(calls) != 1 || calls[0].State != "cancelled" || len(s.pending(id)) > 0 {
			r.t.Errorf("its calls are %+v, want one that is cancelled, and no request", calls)
		}
		r.continues(s, id, "half")
		r.m.want(6)
		r.wantModelAPI()

		gate.Open() // nobody reads it
		r.wantEffect("late", 0)
		r.wantEffect("asked", 0)
		if code, _ := s.sigterm(); code != 0 {
			r.t.Errorf("the server left with %d", code)
		}
	})
}

// A person stops the agent for another message, in a command and in a text: that is what
// it does next, in the same conversation, and nobody continues.
// proves COO-4 PRO-5
func TestReal_AMessageStopsTheTurn(t *testing.T) {
	eachReal(t, onSQLite, func(r *realWorld) {
		s := r.serve()
		gate, up := r.gate("gate"), r.gate("up")
		for _, does := range []string{"RUN(" + up.Tell("$$") + "; " + gate.Read() + "; " + effect("late") + ")", "WAIT(text)"} {
			id := s.mission(lines("SAY(half a )", does, "SAY(never)"), r.a.by)
			if does == "WAIT(text)" {
				r.m.reached("text")
				r.untilStreams(s, id, "half a ")
			} else {
				up.Wait()
				s.untilKind(id, "call.dispatched", 1)
			}
			s.prompt(id, lines("SAY(later)"), "queue")
			s.prompt(id, lines("SAY(instead)"), "interrupt")
			s.untilKind(id, "turn.ended", 3)
			s.untilQuiet(id, "ready")
			j := s.events(id)
			wantSaid(r.world, j, "half a ", "instead", "later")
			wantCounts(r.t, j, map[string]int{"attempt.unknown": 0, "call.unknown": 0, "continuation.requested": 0, "interrupt.requested": 1, "attempt.settled": 3})
		}
		gate.Open() // nobody reads it
		r.wantEffect("late", 0)
	})
}

// stop stops a session, and sees that its agent has said so in time.
func (r *realWorld) stop(s *server, id string, ended int) {
	r.t.Helper()
	s.interrupt(id)
	s.untilQuiet(id, "stopped")
	j := s.events(id)
	wantCounts(r.t, j, map[string]int{"turn.ended": 1, "attempt.settled": 1, "attempt.unknown": 0, "call.unknown": 0, "agent.ended": ended, "permission.cancelled": j.count("permission.asked") - j.count("permission.replied")})
	if settled := j.of("attempt.settled"); len(settled) == 1 && settled[0].str("outcome") != "cancelled" {
		r.t.Errorf("the attempt ended %s", settled[0].str("outcome"))
	}
	if took := j.of("turn.ended")[0].at(r.t).Sub(j.of("interrupt.requested")[0].at(r.t)); took > stopWithin {
		r.t.Errorf("it took %s to stop", took)
	}
}

func (e *event) at(t *testing.T) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, e.Time)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// continues tells a session that was stopped to go on.
func (r *realWorld) continues(s *server, id, said string) {
	r.t.Helper()
	s.resume(id).want(r.t, http.StatusAccepted)
	s.untilQuiet(id, "ready")
	wantSaid(r.world, s.events(id), said, model.Unasked)
}

// An operator sees what the agent is and can.
func TestReal_Doctor(t *testing.T) {
	eachReal(t, onSQLite, func(r *realWorld) {
		args := append([]string{"--database", r.db.URL, "--state", r.state("1"), "doctor", "agent", r.a.Name}, r.passed()...)
		o := execute(r.t, r.dir, "", r.env, args...)
		if o.code != 0 {
			r.t.Errorf("exit %d: %s", o.code, o.err)
		}
		for _, want := range []string{r.a.Version, "ACP 1", "opens a session", "no model was asked", "goes on with a conversation in another process", "ends by itself"} {
			if !strings.Contains(o.words(), want) {
				r.t.Errorf("it doesn't say %q:\n%s", want, o.out)
			}
		}
		r.m.want(0)
	})
}
