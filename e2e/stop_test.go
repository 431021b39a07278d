package e2e

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// proves COO-6 REC-9
func TestE2E_SIGTERMEndsWhatRuns(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...), flags("--stop-commands"))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission(steps(effect("begun")+"; "+up.Tell("$$")+"; "+gate.Read()+"; "+effect("ended"), effect("next")))
		pid := atoi(t, up.Wait())
		s.prompt(id, steps(effect("queued")), "queue")
		last := make(chan int64, 1)
		open := s.follow(id, last) // an open stream must not hold the server up
		s.until(id, "the command runs", func(j journal) bool { return j.count("call.dispatched") == 1 })
		code, took := s.sigterm()
		if code != 0 || took > 25*time.Second {
			t.Errorf("it left with %d after %s, want 0 within 25 s:\n%s", code, took, tail(s.err.String(), 2000))
		}
		waitGone(t, pid)
		if n := w.db.Count(t, w.sql(), "SELECT count(*) FROM claim"); n != 0 {
			t.Errorf("%d claims are left by a graceful stop", n)
		}

		s.restart()
		one := s.session(id)
		if one.State != "stopped" || one.UnknownCalls != 0 || one.PendingPrompts != 1 {
			t.Errorf("after the stop it is %+v, want stopped, nothing unknown, one prompt held", one)
		}
		if calls := s.calls(id); len(calls) != 1 || calls[0].State != "cancelled" {
			t.Errorf("calls %+v, want one that is cancelled", calls)
		}
		j := s.events(id)
		if ended := j.of("turn.ended"); len(ended) != 1 || ended[0].str("outcome") != "interrupted" {
			t.Errorf("turn.ended %s, want interrupted", ended.dump())
		}
		wantCounts(t, j, map[string]int{"step.recovered": 0, "call.unknown": 0})
		s.resume(id).want(t, http.StatusAccepted)
		s.untilKind(id, "turn.ended", 3)
		s.untilQuiet(id, "ready")
		for name, n := range map[string]int{"begun": 1, "ended": 0, "next": 1, "queued": 1} {
			w.wantEffect(name, n)
		}
		last <- s.events(id).last()
		s.prompt(id, steps("true"), "queue") // something more, so that the reader looks up
		<-open.done
		s.untilKind(id, "turn.ended", 4)
		s.untilQuiet(id, "ready")
		wantSlice(t, s.events(id), 0, open.transcript)
	})
}

// A mission that reaches a boundary in time is released there and goes on after
// the restart in the same turn.
// proves COO-6 PRO-2 LEA-6
func TestE2E_SIGTERMLetsAStepReachItsBoundary(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission(steps(up.Tell("up")+"; "+gate.Read()+"; "+effect("first"), effect("second")))
		up.Wait()
		parked := s.mission(steps(effect("asked")), asking)
		s.untilQuiet(parked, "waiting")
		st := s.stream(id, "")
		defer st.close()
		began := time.Now()
		s.signal(syscall.SIGTERM)
		s.err.Await(s.exited, "stopping")
		words := ""
		for { // the stream is told that observation ends, and ends
			m, err := st.next()
			if err != nil {
				break
			}
			if m.id == 0 {
				words += m.name + " "
			}
		}
		if !strings.Contains(words, "bye") {
			t.Errorf("the stream ended with %q, without a word", words)
		}
		gate.Open()
		if code := s.exit(); code != 0 || time.Since(began) > 15*time.Second {
			t.Errorf("it left with %d after %s, want 0 as soon as the step has ended:\n%s", code, time.Since(began), tail(s.err.String(), 2000))
		}
		w.wantEffect("first", 1)
		w.wantEffect("second", 0)
		if n := w.db.Count(t, w.sql(), "SELECT count(*) FROM claim"); n != 0 {
			t.Errorf("%d claims are left by a graceful stop", n)
		}
		s.restart()
		s.untilQuiet(id, "ready")
		w.wantEffect("first", 1)
		w.wantEffect("second", 1)
		wantCounts(t, s.events(id), map[string]int{"turn.started": 1, "turn.ended": 1, "step.recovered": 0, "interrupt.requested": 0})
		s.decide(s.pending(parked)[0].ID, "once", "").want(t, http.StatusOK)
		s.untilState(parked, "ready", "waiting")
	})
}

// Without --stop-commands a graceful stop leaves commands to their shims, with
// their claims, and the next start follows them.
// proves COO-6 REC-10 LEA-11
func TestE2E_SIGTERMLetsCommandsGoOn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission(steps(effect("begun")+"; echo first; "+up.Tell("$$")+"; "+gate.Read()+"; echo last; "+effect("ended"), effect("next")))
		pid := atoi(t, up.Wait())
		execution := s.session(id).Execution.ID
		code, took := s.sigterm()
		if code != 0 || took > 25*time.Second {
			t.Errorf("it left with %d after %s, want 0 within 25 s:\n%s", code, took, tail(s.err.String(), 2000))
		}
		if state := procState(pid); state == 0 || state == 'Z' {
			t.Fatalf("the command has ended with its server (%c)", state)
		}
		if n := w.db.Count(t, w.sql(), "SELECT count(*) FROM claim WHERE session_id = ? AND execution_id = ?", id, execution); n != 1 {
			t.Errorf("%d claims are left, want the one of the command that goes on", n)
		}
		gate.Open() // it ends while no server is there, or soon after
		s.restart()
		s.untilQuiet(id, "ready")
		for _, name := range []string{"begun", "ended", "next"} {
			w.wantEffect(name, 1)
		}
		j := s.events(id)
		wantCounts(t, j, map[string]int{"turn.started": 1, "turn.ended": 1, "call.unknown": 0, "call.dispatched": 2, "interrupt.requested": 0})
		if got := j.output(s.calls(id)[0].ID); got != "first\nlast\n" {
			t.Errorf("the output is %q", got)
		}
	})
}

// A second signal ends it at once; the next start finds what was running.
// proves COO-6 REC-10
func TestE2E_ASecondSIGTERMEndsItAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission(steps(up.Tell("$$") + "; " + gate.Read()))
		up.Wait()
		s.signal(syscall.SIGTERM)
		s.err.Await(s.exited, "stopping")
		code, took := s.sigterm()
		if code != 1 || took > 5*time.Second {
			t.Errorf("it left with %d after %s, want 1 at once", code, took)
		}
		s.restart()
		s.untilKind(id, "call.adopted", 1)
		gate.Open()
		s.untilQuiet(id, "ready")
	})
}
