package e2e

import (
	"net/http"
	"slices"
	"testing"
	"time"
)

// promoted gives the prompts of a journal in the order of their promotion.
func (j journal) promoted() []string {
	var out []string
	for _, e := range j.of("prompt.promoted") {
		out = append(out, e.str("prompt_id"))
	}
	return out
}

// proves PRO-1 PRO-2 PRO-3 ADM-8 COO-8
func TestE2E_SteersAndQueuedPromptsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		// A command that may be run again, so that the kill leaves nothing unknown.
		id := s.mission("```sh effect=read\n" + up.Tell("$$") + "; " + gate.Read() + "\n```\n" + steps(effect("own")))
		first := s.events(id).of("prompt.admitted")[0].str("prompt_id")
		up.Wait()
		q1 := s.prompt(id, steps(effect("q1")), "queue")
		s1 := s.prompt(id, steps(effect("s1")), "steer")
		gone := s.prompt(id, steps(effect("gone")), "queue")
		s2 := s.prompt(id, steps(effect("s2")), "steer")
		s.powerCut()
		s.restart()
		up.Wait()
		q2 := s.prompt(id, steps(effect("q2")), "queue")
		s.must(http.MethodDelete, "/api/v1/prompts/"+gone.ID, nil).want(t, http.StatusOK)
		s.must(http.MethodDelete, "/api/v1/prompts/"+gone.ID, nil).want(t, http.StatusOK) // a repeat
		gate.Open()
		s.untilKind(id, "turn.ended", 3)
		s.untilQuiet(id, "ready")

		j := s.events(id)
		want := []string{first, s1.ID, s2.ID, q1.ID, q2.ID}
		if got := j.promoted(); !slices.Equal(got, want) {
			t.Errorf("promoted %v, want %v: steers first, then what was queued, each in its order", got, want)
		}
		wantCounts(t, j, map[string]int{"turn.started": 3, "prompt.withdrawn": 1})
		if got := w.file("effects"); got != "s1\ns2\nown\nq1\nq2\n" {
			t.Errorf("effects in the order %q", got)
		}
		s.must(http.MethodDelete, "/api/v1/prompts/"+s1.ID, nil).problem(t, http.StatusConflict, "prompt-promoted")
	})
}

// A steer that arrives in the last step is promoted before the turn can end.
// proves PRO-1
func TestE2E_ASteerInTheLastStepJoinsTheTurn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve()
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission(steps(up.Tell("up") + "; " + gate.Read()))
		up.Wait()
		s.prompt(id, steps(effect("queued")), "queue")
		s.prompt(id, steps(effect("steered")), "steer")
		gate.Open()
		s.untilKind(id, "turn.ended", 2)
		s.untilQuiet(id, "ready")
		wantCounts(t, s.events(id), map[string]int{"turn.started": 2})
		if got := w.file("effects"); got != "steered\nqueued\n" {
			t.Errorf("effects in the order %q", got)
		}
	})
}

// Stopped by a person: what waits is held, also over a restart, until *continue*.
// proves COO-4 COO-7 PRO-5 PRO-6
func TestE2E_StoppedByAPersonHoldsTheQueue(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission(steps(effect("before"), up.Tell("$$")+"; "+gate.Read()+"; "+effect("cut"), effect("after")))
		pid := atoi(t, up.Wait())
		s.prompt(id, steps(effect("queued")), "queue")
		s.interrupt(id)
		s.untilQuiet(id, "stopped")
		waitGone(t, pid)
		calls := s.calls(id)
		if got := calls[len(calls)-1].State; got != "cancelled" {
			t.Errorf("the call in flight is %s, want cancelled: its end was seen", got)
		}
		s.kill9()
		s.restart()
		bystander := s.mission(steps("true"))
		s.untilQuiet(bystander, "ready")
		if one := s.session(id); one.State != "stopped" || one.PendingPrompts != 1 {
			t.Errorf("after the restart it is %s with %d waiting prompts", one.State, one.PendingPrompts)
		}
		w.wantEffect("queued", 0)

		s.resume(id).want(t, http.StatusAccepted)
		s.untilKind(id, "turn.ended", 3)
		s.untilQuiet(id, "ready")
		if got := w.file("effects"); got != "before\nafter\nqueued\n" {
			t.Errorf("effects %q: the unfinished turn goes on first, the cut step isn't run again", got)
		}
		j := s.events(id)
		if turns := j.of("turn.started"); turns[1].str("cause") != "continuation" || turns[1].str("continues") != turns[0].str("turn_id") {
			t.Errorf("the second turn is %s, want a continuation of the first", turns[1].Data)
		}
		s.resume(id).problem(t, http.StatusConflict, "nothing-held")
		s.post("/api/v1/sessions/"+id+"/interruption", nil).problem(t, http.StatusConflict, "no-open-turn")
	})
}

// An interrupt that waits for the boundary lets the step end.
// proves COO-4
func TestE2E_AnInterruptAtTheBoundary(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve()
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission(steps(up.Tell("up")+"; "+gate.Read()+"; "+effect("ended"), effect("next")))
		up.Wait()
		s.post("/api/v1/sessions/"+id+"/interruption", map[string]string{"mode": "boundary"}).want(t, http.StatusAccepted)
		if state := s.session(id).State; state != "stopping" {
			t.Errorf("it is %s, want stopping", state)
		}
		gate.Open()
		s.untilQuiet(id, "stopped")
		w.wantEffect("ended", 1)
		w.wantEffect("next", 0)
	})
}

// A server that is frozen past its lease, with nobody else there, goes on when it wakes.
// proves LEA-3 LEA-5 REC-1 LEA-2
func TestE2E_AFrozenServerGoesOn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission(steps(up.Tell("up")+"; "+gate.Read()+"; "+effect("once"), effect("next")))
		up.Wait()
		execution := s.session(id).Execution.ID
		s.sigstop()
		w.untilLeaseExpired(t, id)
		s.sigcont()
		t.Run("never re-enters its own uncertain live lease", func(t *testing.T) {
			if got := s.session(id).Execution; got == nil || got.ID != execution {
				t.Errorf("the execution is %+v, was %s", got, execution)
			}
		})
		gate.Open()
		s.untilQuiet(id, "ready")
		w.wantEffect("once", 1)
		w.wantEffect("next", 1)
		j := s.events(id)
		wantCounts(t, j, map[string]int{"step.recovered": 0, "call.unknown": 0, "turn.started": 1})
		for _, e := range j {
			if e.ExecutionID != nil && *e.ExecutionID != execution {
				t.Errorf("event %d is of the execution %s, want %s alone", e.Seq, *e.ExecutionID, execution)
			}
		}
	})
}

// untilLeaseExpired waits until the claim of a session has expired, by the clock that grants it.
func (w *world) untilLeaseExpired(t *testing.T, id string) {
	t.Helper()
	db := w.sql()
	eventually(t, "the lease has expired", func() bool {
		query := "SELECT count(*) FROM claim WHERE session_id = ? AND expires_at <= (extract(epoch FROM clock_timestamp()) * 1000)"
		if w.db.Name == "sqlite" {
			return w.db.Count(t, db, "SELECT count(*) FROM claim WHERE session_id = ? AND expires_at <= ?", id, time.Now().UnixMilli()) == 1
		}
		return w.db.Count(t, db, query, id) == 1
	})
}

// The bound of a turn ends it, named; continue raises it.
// proves COO-5 PRO-5 PRO-6
func TestE2E_ALimitEndsTheTurn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve()
		id := s.mission(steps("false", effect("a"), effect("b"), effect("c")))
		s.untilQuiet(id, "failed")
		bound := func(n int) map[string]any { return map[string]any{"limits": map[string]int{"steps": n}} }
		s.post("/api/v1/sessions/"+id+"/continuation", bound(2)).want(t, http.StatusAccepted)
		s.untilQuiet(id, "limit_reached")
		ended := s.events(id).of("turn.ended")[1]
		if ended.str("outcome") != "limit_reached" || ended.str("limit") != "steps" {
			t.Errorf("turn.ended %s", ended.Data)
		}
		w.wantEffect("c", 0)
		s.post("/api/v1/sessions/"+id+"/continuation", bound(10)).want(t, http.StatusAccepted)
		s.untilQuiet(id, "ready")
		if got := w.file("effects"); got != "a\nb\nc\n" {
			t.Errorf("effects %q, want each once and in order", got)
		}
	})
}
