package e2e

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
)

func atoi(t *testing.T, pid string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	if err != nil || n < 2 {
		t.Fatalf("no pid: %q", pid)
	}
	return n
}

// Everything is killed in the middle of an effect: the server, and the command
// after it has acted and before anybody heard of it.
// proves CAL-3 CAL-4 CAL-6 CAL-7 REC-4 REC-6 LEA-11 ADM-5
func TestE2E_KilledInTheMiddleOfAnEffect(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission(steps(effect("begun")+"; "+up.Tell("$$")+"; "+gate.Read()+"; "+effect("ended"), effect("next")))
		up.Wait()
		key, text := newKey(), steps(effect("queued"))
		queued := s.promptAs(key, id, text, "queue")
		s.powerCut()
		gate.Open() // were it run again, it would get through

		s.restart()
		if r := s.promptAs(key, id, text, "queue"); r.ID != queued.ID || !r.Replayed { // an exact retry changes nothing of it
			t.Errorf("the retry got %+v, want the receipt of %s", r, queued.ID)
		}
		s.untilQuiet(id, "uncertain")
		// Nothing acts by itself: two more sweeps of a server in which everything else works.
		bystander := s.mission(steps("true"))
		s.untilState(bystander, "ready")
		s.kill9()
		s.restart()
		one := s.untilQuiet(id, "uncertain")
		if one.UnknownCalls != 1 || one.PendingPrompts != 1 {
			t.Errorf("%d unknown calls and %d waiting prompts, want one of each", one.UnknownCalls, one.PendingPrompts)
		}
		j := s.events(id)
		if n := j.count("step.recovered"); n != 1 {
			t.Errorf("%d step.recovered, want 1", n)
		}
		if n := j.count("call.dispatched"); n != 1 {
			t.Errorf("%d call.dispatched, want 1", n)
		}
		calls := s.calls(id)
		if len(calls) != 1 || calls[0].State != "unknown" || calls[0].Resolution != nil {
			t.Fatalf("calls %+v, want one that is unknown", calls)
		}

		s.resolve(calls[0].ID, "happened", "continue").want(t, http.StatusOK)
		s.resolve(calls[0].ID, "did_not_happen", "continue").problem(t, http.StatusConflict, "")
		s.untilKind(id, "turn.ended", 2)
		s.untilQuiet(id, "ready")
		for name, n := range map[string]int{"begun": 1, "ended": 0, "next": 1, "queued": 1} {
			w.wantEffect(name, n)
		}
		if c := s.calls(id)[0]; c.State != "unknown" || c.Resolution == nil || c.Resolution.Outcome != "happened" {
			t.Errorf("the call is %+v: what was unknown stays so, with its resolution beside it", c)
		}
	})
}

// A person says that it did not happen: it is proposed again, and always asks.
// proves CAL-6 CAL-4
func TestE2E_WhatDidNotHappenIsAskedAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission(steps(up.Tell("$$") + "; " + gate.Read() + "; " + effect("done")))
		up.Wait()
		s.powerCut()
		s.restart()
		s.untilQuiet(id, "uncertain")
		s.resolve(s.calls(id)[0].ID, "did_not_happen", "continue").want(t, http.StatusOK)
		s.untilState(id, "waiting")
		requests := s.pending(id)
		if len(requests) != 1 {
			t.Fatalf("%d requests, want one although the rules allow all", len(requests))
		}
		w.wantEffect("done", 0)
		s.decide(requests[0].ID, "once", "").want(t, http.StatusOK)
		up.Wait()
		gate.Open()
		s.untilQuiet(id, "ready")
		w.wantEffect("done", 1)
	})
}

// What may be run again is, under the same call, and never blocks.
// proves CAL-2 CAL-4
func TestE2E_ReadsAreRunAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission("```sh effect=read\n" + up.Tell("$$") + "; " + gate.Read() + "; echo read\n```\n")
		up.Wait()
		s.powerCut()
		gate.Open()
		s.restart()
		up.Wait()
		s.untilQuiet(id, "ready")
		j := s.events(id)
		if j.count("call.dispatched") != 2 || j.count("call.proposed") != 1 || j.count("call.unknown") != 0 {
			t.Errorf("want one call dispatched twice, none unknown:\n%s", j.dump())
		}
	})
}

// Killed when a step has settled and nothing that acts is under way, the turn
// goes on by itself, in the same turn.
// proves REC-2 LEA-7 PRO-2 CAL-4
func TestE2E_KilledBetweenTwoSettledSteps(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission(steps(effect("first")) + "```sh effect=read\n" + up.Tell("$$") + "; " + gate.Read() + "\n```\n" + steps(effect("third")))
		up.Wait()
		s.powerCut()
		s.restart()
		up.Wait()
		gate.Open()
		s.untilQuiet(id, "ready")
		w.wantEffect("first", 1)
		w.wantEffect("third", 1)
		wantCounts(t, s.events(id), map[string]int{"turn.started": 1, "turn.ended": 1, "step.recovered": 0, "call.unknown": 0, "prompt.promoted": 1})
	})
}

// Killed before anything that acts was dispatched: the recovery says so, and the turn goes on.
// proves REC-3
func TestE2E_KilledBeforeAnythingWasDispatched(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission("```sh effect=read\n" + up.Tell("$$") + "; " + gate.Read() + "\n```\n" + steps(effect("second")))
		up.Wait()
		s.powerCut()
		s.restart()
		up.Wait()
		gate.Open()
		s.untilQuiet(id, "ready")
		w.wantEffect("second", 1)
		j := s.events(id)
		wantCounts(t, j, map[string]int{"turn.started": 1, "turn.ended": 1, "step.recovered": 1, "call.unknown": 0})
		if phase := j.of("step.recovered")[0].str("phase"); phase != "ready" {
			t.Errorf("recovered in phase %q, want ready", phase)
		}
	})
}

// A session that loses its server three times without progress is parked, until
// its owner continues.
// proves REC-11 PRO-6
func TestE2E_TheThirdLossOfATurnBlocksIt(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission("```sh effect=read\n" + up.Tell("$$") + "; " + gate.Read() + "\n```\n")
		for range 3 {
			up.Wait()
			s.powerCut()
			s.restart()
		}
		s.untilQuiet(id, "blocked")
		s.resume(id).want(t, http.StatusAccepted)
		up.Wait()
		gate.Open()
		s.untilQuiet(id, "ready")
	})
}

// What a lost execution had left running on this host is ended before anything
// is concluded, also what left its process group.
// proves COO-7
func TestE2E_LeftoversAreEndedBeforeARecovery(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		w.script("child", up.Tell("$$"), gate.Read(), effect("leftover"))
		w.script("parent", "setsid ./child & wait") // what leaves its session is always asked if a rule sees it
		id := s.mission(steps("./parent"))
		n := atoi(t, up.Wait())
		s.kill9()
		s.killShims() // the kernel ends the parent with it
		s.restart()
		s.untilQuiet(id, "uncertain")
		if state := procState(n); state != 0 && state != 'Z' {
			t.Errorf("process %d still runs (%c) after the recovery", n, state)
		}
		gate.Open()
		w.wantEffect("leftover", 0)
	})
}

// wantCounts fails unless a journal has so many events of each kind.
func wantCounts(t *testing.T, j journal, want map[string]int) {
	t.Helper()
	for kind, n := range want {
		if got := j.count(kind); got != n {
			t.Errorf("%d %s, want %d\n%s", got, kind, n, j.dump())
		}
	}
}

// A worker that comes back to a session that has moved on finds nothing to
// recover: the old execution is over, and so is what it claimed.
// proves REC-1 REC-5 LEA-4
func TestE2E_NeverRecoversAnExecutionTwice(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission(steps(up.Tell("$$")+"; "+gate.Read(), effect("next")))
		up.Wait()
		s.powerCut()
		for range 3 { // each start sweeps
			s.restart()
			s.untilQuiet(id, "uncertain")
			s.kill9()
		}
		s.restart()
		s.resolve(s.calls(id)[0].ID, "cannot_tell", "continue").want(t, http.StatusOK)
		s.untilQuiet(id, "ready")
		w.wantEffect("next", 1)
		wantCounts(t, s.events(id), map[string]int{"step.recovered": 1, "call.unknown": 1, "turn.started": 1})
	})
}

// The lock of the state folder proves that its earlier worker is dead: the next
// one doesn't wait for a lease to end.
// proves LEA-11
func TestE2E_ARestartWaitsForNoLease(t *testing.T) {
	t.Parallel()
	each(t, func(_ *testing.T, w *world) {
		s := w.serve(flags("--lease", "10m", "--renew", "1m", "--sweep", "1m"))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission(steps(up.Tell("$$") + "; " + gate.Read()))
		up.Wait()
		s.powerCut()
		s.restart()
		s.untilQuiet(id, "uncertain")
	})
}
