package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A person stops agents for messages, in all that they can be at. The turn is ended as by
// a stop alone, and they are asked for the messages next, in order and before the queue,
// without anybody who continues; nothing of what was stopped is gone on with.
// proves COO-4 COO-7 PER-6 PRO-1 PRO-3 PRO-5
func TestACP_AMessageStopsTheTurn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		var all []*fake
		for _, c := range stops {
			all = append(all, w.fake(c.name, c.script()))
		}
		s := w.serve(flags(quick...), agents(all...))
		gate := w.gate("gate")
		ids := make([]string, len(stops))
		for i, c := range stops {
			ids[i] = s.mission("Do "+c.name, all[i].by, func(body map[string]any) {
				if strings.Contains(c.steps, "permission") {
					asking(body)
				}
			})
		}
		for i, c := range stops {
			w.untilFile("at-" + c.name)
			switch {
			case c.steps == detaches:
				s.untilKind(ids[i], "call.dispatched", 1)
			case c.call != "":
				s.untilState(ids[i], "waiting")
			default:
				s.untilKind(ids[i], "message.delta", 1)
			}
			queued, older := s.prompt(ids[i], "later", "queue"), s.prompt(ids[i], "before, ", "steer")
			one, key := s.prompt(ids[i], "this, ", "interrupt"), newKey()
			two := s.promptAs(key, ids[i], "and this", "interrupt")
			if again := s.promptAs(key, ids[i], "and this", "interrupt"); again.ID != two.ID || !again.Replayed {
				t.Errorf("the same again is %+v, the first %+v", again, two)
			}
			s.untilKind(ids[i], "turn.ended", 3)
			s.untilQuiet(ids[i], "ready")
			j := s.events(ids[i])
			if got := fmt.Sprint(j.promoted()[1:]); got != fmt.Sprint([]string{older.ID, one.ID, two.ID, queued.ID}) {
				t.Errorf("%s: promoted %s\n%s", c.name, got, j.dump())
			}
			all[i].wantPrompts("Do "+c.name, "before, this, and this", "later")
			all[i].want(map[string]int{"session/cancel": 1})
			wantCounts(t, j, map[string]int{
				"turn.started": 3, "continuation.requested": 0, "attempt.settled": 3, "attempt.unknown": 0, "call.unknown": 0,
				"permission.replied": 0, "permission.cancelled": j.count("permission.asked"), "agent.ended": boolInt(!c.lives),
			})
			var outcomes []string
			for _, e := range j.of("turn.ended") {
				outcomes = append(outcomes, e.str("outcome"))
			}
			if got := strings.Join(outcomes, " "); got != "stopped completed completed" {
				t.Errorf("%s: the turns ended %s", c.name, got)
			}
			asked := j.of("interrupt.requested")
			if asked[0].str("prompt_id") != one.ID || j.count("interrupt.requested") > 2 {
				t.Errorf("%s: stops %s", c.name, asked.dump())
			}
		}
		for range stops {
			gate.Open() // nobody reads it
		}
		for _, name := range []string{"late", "allowed"} {
			w.wantEffect(name, 0)
		}
	})
}

// The server is killed between the acknowledgement and the end of the turn: before the
// agent has heard of the stop, and while it takes its time. The stop is carried out
// after the restart, and the message is delivered once. A stop of the server in between
// is no other.
// proves ADM-1 COO-4 COO-6 REC-6 REC-10 PRO-5
func TestACP_AMessageStopsTheTurnOverDeaths(t *testing.T) {
	t.Parallel()
	for name, die := range map[string]func(s *server, f *fake){
		"killed at once": func(s *server, _ *fake) { s.kill9() },
		"killed while it stops": func(s *server, f *fake) {
			eventually(s.w.t, "the agent is told to stop", func() bool { return f.received()["session/cancel"] == 1 })
			s.kill9()
		},
		"stopped": func(s *server, _ *fake) { s.sigterm() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *world) {
				f := w.fake("fake", `{"on_cancel": {"after_file": "WORK/stopped"}, "prompts": [{"times": 1, "steps": [{"say": "on"}, {"hang": true}]}, {"steps": [{"say": "you said {{prompt}}"}]}]}`)
				s := w.serve(flags(quick...), agents(f))
				id := s.mission("Do it", f.by)
				s.untilKind(id, "message.delta", 1)
				queued := s.prompt(id, "later", "queue")
				key := newKey()
				sent := s.promptAs(key, id, "this", "interrupt")
				if name == "stopped" { // it waits for what it stops
					w.touch("stopped")
				}
				die(s, f)
				w.touch("stopped")
				s.restart()
				if again := s.promptAs(key, id, "this", "interrupt"); again.ID != sent.ID || !again.Replayed {
					t.Errorf("the same again is %+v, the first %+v", again, sent)
				}
				s.untilKind(id, "turn.ended", 3)
				s.untilQuiet(id, "ready")
				j := s.events(id)
				if got := fmt.Sprint(j.promoted()[1:]); got != fmt.Sprint([]string{sent.ID, queued.ID}) {
					t.Errorf("promoted %s\n%s", got, j.dump())
				}
				f.wantPrompts("Do it", "this", "later")
				if n := f.received()["session/cancel"]; n == 0 { // who follows after a death may tell it again
					t.Error("the agent was never told to stop")
				}
				wantSaid(w, j, "on", "you said this", "you said later")
				wantCounts(t, j, map[string]int{"interrupt.requested": 1, "continuation.requested": 0, "attempt.unknown": 0, "attempt.settled": 3})
			})
		})
	}
}

// An agent that dies while it is being stopped leaves its attempt unknown: the message is
// kept until a person has said what became of that, is then the first that the agent
// hears, and one that was withdrawn meanwhile leaves the ordinary hold.
// proves COO-4 CAL-6 ATT-6 PRO-5 PRO-6 ADM-8
func TestACP_AMessageWaitsForTheUnknown(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fake("fake", `{"on_cancel": "ignore", "prompts": [{"times": 1, "steps": [{"say": "on"}, {"hang": true}]}, {"steps": [{"say": "you said {{prompt}}"}]}]}`)
		g := w.fake("gone", `{"on_cancel": "ignore", "prompts": [{"times": 1, "steps": [{"say": "on"}, {"hang": true}]}, {"steps": [{"say": "you said {{prompt}}"}]}]}`)
		s := w.serve(flags(quick...), agents(f, g))
		lost := func(f *fake) (id string, sent receipt) {
			id = s.mission("Do it", f.by)
			s.untilKind(id, "message.delta", 1)
			s.prompt(id, "later", "queue")
			sent = s.prompt(id, "this", "interrupt")
			eventually(t, "the agent is told to stop", func() bool { return f.received()["session/cancel"] == 1 })
			f.kill()
			s.untilQuiet(id, "uncertain")
			return id, sent
		}
		id, sent := lost(f)
		if j := s.events(id); j.count("prompt.promoted") != 1 || j.count("turn.ended") != 1 {
			t.Errorf("something went on: %s", j.dump())
		}
		s.resolveAttempt(s.events(id).attempt(), "abandon", "continue").want(t, http.StatusOK)
		s.untilKind(id, "turn.ended", 3)
		s.untilQuiet(id, "ready")
		j := s.events(id)
		f.wantPrompts("Do it", "this", "later")
		wantCounts(t, j, map[string]int{"continuation.requested": 0, "turn.started": 3, "attempt.unknown": 1})
		if j.promoted()[1] != sent.ID {
			t.Errorf("promoted %v, want %s first", j.promoted(), sent.ID)
		}

		id, sent = lost(g)
		s.must(http.MethodDelete, "/api/v1/prompts/"+sent.ID, nil).want(t, http.StatusOK)
		s.resolveAttempt(s.events(id).attempt(), "abandon", "stay").want(t, http.StatusOK)
		s.untilQuiet(id, "stopped")
		g.wantPrompts("Do it")
		s.resume(id).want(t, http.StatusAccepted)
		s.untilKind(id, "turn.ended", 3)
		s.untilQuiet(id, "ready")
		g.wantPrompts("Do it", "Go on", "later")
	})
}
