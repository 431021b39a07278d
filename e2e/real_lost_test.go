//go:build agents

package e2e

import (
	"net/http"
	"testing"

	"holdfast/e2e/model"
	"holdfast/e2e/power"
)

// The agent's process is killed, alone, in the middle of a text, of a command, and
// while it waits for an answer. What it did is unknown, what it has left goes on no
// more, nothing is sent again by itself, and a person has it go on in a new process.
// proves ATT-3 ATT-4 ATT-6 CAL-4 CAL-6 CAL-7 REC-12 PER-6
func TestReal_TheAgentIsKilled(t *testing.T) {
	eachReal(t, onSQLite, func(r *realWorld) {
		r.losesIt(1, func(s *server) {
			if err := power.CutAgents(s.state); err != nil {
				r.t.Fatal(err)
			}
		})
	})
}

// The machine fails: the server, the shims and the agents are killed at once. After
// the restart it is as if the agent alone had been.
// proves ATT-3 ATT-4 ATT-6 CAL-4 CAL-6 CAL-7 REC-12 PER-6
func TestReal_TheMachineFails(t *testing.T) {
	eachReal(t, onSQLite, func(r *realWorld) {
		r.losesIt(0, func(s *server) {
			s.powerCut()
			s.restart()
		})
	})
}

// losesIt has the agent be lost at three points. What it leaves may ask the model so
// often, in the moment before it is ended.
func (r *realWorld) losesIt(asks int, loseIt func(s *server)) {
	r.t.Helper()
	s := r.serve()
	gate, up := r.gate("gate"), r.gate("up")
	strays := 0
	lose := func(id, said string) {
		r.t.Helper()
		before := len(r.m.Asked())
		loseIt(s)
		r.lost(s, id, said)
		stray := len(r.m.Asked()) - before
		if stray > asks {
			r.t.Errorf("what the agent left asked the model %d times", stray)
		}
		strays += stray
	}

	id := r.conversation(s, "a text", "SAY(half a )", "WAIT(text)", "SAY(never)")
	r.m.reached("text")
	r.untilStreams(s, id, "half a ")
	lose(id, "half a ")
	r.m.GoOn("text") // nobody hears it
	r.goesOn(s, id, "a text", "half a ")
	r.m.want(3 + strays)

	id = r.conversation(s, "a command", "SAY(half)", "RUN("+effect("command")+"; "+up.Tell("$$")+"; "+gate.Read()+"; "+effect("late")+")", "SAY(never)")
	r.untilAsked(s, id)
	s.allow(id)
	pid := atoi(r.t, up.Wait())
	lose(id, "half")
	waitGone(r.t, pid)
	calls := s.calls(id)
	if len(calls) != 1 || calls[0].State != "unknown" {
		r.t.Fatalf("its calls are %+v, want one that is unknown", calls)
	}
	s.resolve(calls[0].ID, "did_not_happen", "continue").want(r.t, http.StatusOK)
	r.goesOn(s, id, "a command", "half")
	r.m.want(6 + strays)

	id = r.conversation(s, "a request", "SAY(half)", "RUN("+effect("request")+")", "SAY(never)")
	r.untilAsked(s, id)
	lose(id, "half")
	if calls = s.calls(id); len(calls) != 1 || calls[0].State != "cancelled" || len(s.pending(id)) > 0 {
		r.t.Errorf("its calls are %+v, want one that is cancelled, and no request", calls)
	}
	r.goesOn(s, id, "a request", "half")
	r.m.want(9 + strays)
	r.wantModelAPI()

	gate.Open() // nobody reads it
	for name, n := range map[string]int{"command": 1, "late": 0, "request": 0} {
		r.wantEffect(name, n)
	}
}

// conversation makes a session with one turn behind it, and gives it another prompt:
// Claude Code that is killed in its first answer has kept nothing to go on with.
func (r *realWorld) conversation(s *server, about string, words ...string) string {
	r.t.Helper()
	id := s.mission("SAY("+about+")", r.a.by, asking)
	s.untilQuiet(id, "ready")
	s.prompt(id, lines(words...), "queue")
	return id
}

// lost sees that what was asked of this session's agent is unknown, that what it said
// is kept, and that nothing of any agent is left.
func (r *realWorld) lost(s *server, id, said string) {
	r.t.Helper()
	s.untilQuiet(id, "uncertain")
	r.untilNothingRuns(s)
	j := s.events(id)
	wantCounts(r.t, j, map[string]int{"attempt.dispatched": 2, "attempt.unknown": 1, "attempt.settled": 1, "agent.ended": 1, "turn.ended": 1, "session.blocked": 0})
	if all := j.said(); len(all) != 2 || all[1].streamed != said {
		r.t.Errorf("it has said %+v, want %q", all, said)
	}
	b := r.browser(s)
	b.signIn(r.email)
	r.wantOnPage(b, id, said)
	if b.doc.Find(`[data-testid="attempt-form"], [data-testid="reconcile-card"]`).Length() == 0 {
		r.t.Error("the page asks nothing about what is unknown")
	}
}

// goesOn has a person give up what is unknown, and the agent go on with the rest of
// its turn, which is nothing.
func (r *realWorld) goesOn(s *server, id string, said ...string) {
	r.t.Helper()
	s.resolveAttempt(s.events(id).attempt(), "abandon", "continue").want(r.t, http.StatusOK)
	s.untilQuiet(id, "ready")
	j := s.events(id)
	wantSaid(r.world, j, append(said, model.Unasked)...)
	wantCounts(r.t, j, map[string]int{"agent.started": 2, "agent.opened": 2, "attempt.dispatched": 3, "attempt.settled": 2, "attempt.unknown": 1, "turn.started": 2, "turn.ended": 2})
	if how := j.of("agent.opened")[1].str("how"); how != "resumed" {
		r.t.Errorf("its conversation was %s, want resumed", how)
	}
}
