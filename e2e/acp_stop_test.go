package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// stopped is an agent that a person stops somewhere.
type stoppedAt struct {
	name, cancel string // what session/cancel does
	steps        string // of its turn; then the file at-NAME is there
	call         string // the state of its call afterwards
	reason       string // of that
	lives        bool   // its process does
}

const detaches = `{"run": "setsid sh -c 'echo $$ > child-NAME; read -r _ < gate; echo late >> effects' & until [ -s child-NAME ]; do sleep 0.01; done; touch at-NAME; wait"}`

var stops = []stoppedAt{
	{name: "text", cancel: `"answer"`, steps: `{"say": "on "}, {"touch": "WORK/at-NAME"}, {"hang": true}`, lives: true},
	{name: "command", cancel: `"answer"`, steps: detaches, call: "cancelled"},
	{name: "completed", cancel: `"complete"`, steps: detaches, call: "cancelled", reason: "stopped; the agent says completed"},
	{
		name: "request", cancel: `"answer"`, call: "cancelled", lives: true,
		steps: `{"permission": {}, "meanwhile": [{"touch": "WORK/at-NAME"}], "then_on": {"allow": [{"run": "echo allowed >> effects"}]}}`,
	},
	{
		name: "waits", cancel: `"answer"`, call: "cancelled", lives: true, // for the answer to its request
		steps: `{"permission": {}, "meanwhile": [{"touch": "WORK/at-NAME"}], "then_on": {"cancelled": [{"say": "I hear"}]}}`,
	},
}

func (c stoppedAt) script() string {
	return strings.ReplaceAll(`{"on_cancel": `+c.cancel+`, "prompts": [{"times": 1, "steps": [`+c.steps+`]}, {"steps": [{"say": "again"}]}]}`, "NAME", c.name)
}

// A person stops agents in all that they can be at. Nothing of their commands is
// left, and they go on when they are told to.
// proves COO-4 COO-7 PER-6 PRO-5 PRO-6
func TestACP_APersonStopsIt(t *testing.T) {
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
			if c.steps == detaches {
				s.untilKind(ids[i], "call.dispatched", 1)
			} else if c.call != "" {
				s.untilState(ids[i], "waiting")
			} else {
				s.untilKind(ids[i], "message.delta", 1)
			}
			s.interrupt(ids[i])
		}
		for i, c := range stops {
			t.Run(c.name, func(*testing.T) { c.stopped(s, all[i], ids[i]) })
		}
		for range stops {
			gate.Open() // nobody reads it
		}
		for _, name := range []string{"late", "allowed"} {
			w.wantEffect(name, 0)
		}
	})
}

func (c stoppedAt) stopped(s *server, f *fake, id string) {
	t := s.w.t
	t.Helper()
	s.untilQuiet(id, "stopped")
	if c.steps == detaches {
		waitGone(t, atoi(t, strings.TrimSpace(s.w.file("child-"+c.name))))
	}
	j := s.events(id)
	wantCounts(t, j, map[string]int{"turn.ended": 1, "attempt.settled": 1, "attempt.unknown": 0, "call.unknown": 0, "permission.replied": 0, "permission.cancelled": j.count("permission.asked"), "agent.ended": boolInt(!c.lives)})
	if outcome := j.of("attempt.settled")[0].str("outcome"); outcome != "cancelled" {
		t.Errorf("the attempt of %s ended %s", c.name, outcome)
	}
	settled := j.of("call.settled")
	if len(settled) != boolInt(c.call != "") || (c.call != "" && (settled[0].str("state") != c.call || !strings.Contains(settled[0].str("reason"), c.reason))) {
		t.Errorf("the call of %s: %s; want one that is %q, %q", c.name, settled.dump(), c.call, c.reason)
	}
	f.want(map[string]int{"session/cancel": 1, "answer": j.count("permission.asked")})
	s.resume(id).want(t, http.StatusAccepted)
	s.untilQuiet(id, "ready")
	f.wantPrompts("Do "+c.name, "Go on")
	if n := len(f.pids()); n != 1+boolInt(!c.lives) {
		t.Errorf("the agent %s had %d processes", c.name, n)
	}
}

// A server that is to end its commands ends its agents, in order: those that work, that
// wait for an answer, and that rest.
// proves COO-6
func TestACP_SIGTERMEndsAgents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fake("fake", `{"prompts": [{"times": 1, "steps": [{"say": "half"}, {"hang": true}]}, {"steps": [{"say": "the rest"}]}]}`)
		rests := w.fake("rests", `{}`)
		asks := w.fake("asks", `{"prompts": [{"steps": [{"permission": {"toolCall": {"toolCallId": "p", "title": "deploy", "kind": "execute", "rawInput": {"command": "deploy"}}}}]}]}`)
		s := w.serve(flags(quick...), flags("--stop-commands"), agents(f, rests, asks))
		id := s.mission("Do it", f.by)
		rest, ask := s.mission("Rest", rests.by), s.mission("Ask", asks.by, asking)
		s.untilKind(id, "message.delta", 1)
		s.untilQuiet(rest, "ready")
		s.untilState(ask, "waiting")
		if code, _ := s.sigterm(); code != 0 {
			t.Errorf("it left with %d", code)
		}
		for _, one := range []*fake{f, rests, asks} {
			waitGone(t, one.pids()[0])
		}
		if left := s.shims(); len(left) != 0 {
			t.Errorf("shims %v were left", left)
		}
		s.restart()
		s.untilQuiet(ask, "stopped")
		wantCounts(t, s.events(ask), map[string]int{"attempt.unknown": 0, "permission.cancelled": 1, "agent.ended": 1})
		s.untilQuiet(id, "stopped")
		wantCounts(t, s.events(id), map[string]int{"attempt.unknown": 0, "attempt.settled": 1, "agent.ended": 1, "step.recovered": 0})
		s.resume(id).want(t, http.StatusAccepted)
		s.untilQuiet(id, "ready")
		wantSaid(w, s.events(id), "half", "the rest")
		f.wantPrompts("Do it", "Go on")
	})
}
