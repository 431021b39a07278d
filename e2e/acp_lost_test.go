package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// lostAt is an agent that is killed somewhere in its turn, and what comes after.
type lostAt struct {
	name   string
	can    string // its capabilities; "" all
	steps  string // of its turn up to where it is killed; then the file at-NAME is there
	calls  string // the state of its call then
	forget bool   // its session is gone when it is started anew

	verdict string // of a person on its attempt
	ends    string // the state of its session after that
	said    []string
	prompt  string // what it is asked for then; "" nothing
	how     string // it came to its session again
	words   string // in the reason for which the turn failed
}

const (
	loads   = `{"loadSession": true}`
	neither = `{}`
)

var losses = []lostAt{
	{
		name: "text", can: loads, steps: `{"say": "half of ä "}`,
		verdict: "abandon", ends: "ready", said: []string{"half of ä ", "the rest"}, prompt: "Go on", how: "loaded",
	},
	{
		name: "command", steps: `{"say": "half"}, {"run": "echo command >> effects; echo out; echo $$ > at-pid-command; touch at-command; read -r _ < gate; echo late >> effects"}`,
		calls: "unknown", verdict: "retry", ends: "ready", said: []string{"half", "the rest"}, prompt: "a person says: it did not happen. looked at the file\nDo command", how: "resumed",
	},
	{
		name: "request", steps: `{"say": "half"}, {"permission": {"toolCall": {"toolCallId": "p", "title": "deploy", "kind": "execute", "rawInput": {"command": "deploy"}}},
			"meanwhile": [{"touch": "WORK/at-request"}], "then_on": {"allow": [{"run": "echo request >> effects", "tool": "p"}]}}`,
		calls: "cancelled", verdict: "retry", ends: "ready", said: []string{"half", "the rest"}, prompt: "Do request", how: "resumed",
	},
	{
		name: "forgotten", forget: true, steps: `{"say": "half"}`, verdict: "abandon", ends: "failed", said: []string{"half"},
		words: "has no memory of this conversation any more",
	},
	{
		name: "unable", can: neither, steps: `{"say": "half"}`, verdict: "retry", ends: "failed", said: []string{"half"},
		words: "can't go on with a conversation in a new process",
	},
}

func (l lostAt) script() string {
	can := l.can
	if can == "" {
		can = `{"loadSession": true, "sessionCapabilities": {"resume": {}}}`
	}
	return fmt.Sprintf(`{"capabilities": %s, "prompts": [
		{"times": 1, "steps": [%s, {"touch": "WORK/at-%s"}, {"hang": true}]},
		{"steps": [{"say": "the rest"}]}
	]}`, can, l.steps, l.name)
}

// The agents die, alone or with the server and all that runs: what they were asked
// for is unknown and not asked for again, and a person has it go on in a new process.
// proves ATT-3 ATT-4 ATT-6 CAL-4 CAL-6 CAL-7 REC-4 REC-12 PER-6
func TestACP_ALostAgentIsAsked(t *testing.T) {
	t.Parallel()
	lose := map[string]func(s *server, all []*fake){
		"the agents are killed": func(_ *server, all []*fake) {
			for _, f := range all {
				f.kill()
			}
		},
		"the power is cut": func(s *server, _ []*fake) {
			s.powerCut()
			s.restart()
		},
	}
	for name, lose := range lose {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *world) {
				var all []*fake
				for _, l := range losses {
					all = append(all, w.fake(l.name, l.script()))
				}
				s := w.serve(flags(quick...), agents(all...))
				gate := w.gate("gate")
				ids := make([]string, len(losses))
				for i, l := range losses {
					ids[i] = s.mission("Do "+l.name, all[i].by, asking)
				}
				for i, l := range losses {
					w.untilFile("at-" + l.name)
					s.until(ids[i], "its text is journalled", func(j journal) bool { return len(j.said()) == 1 && j.said()[0].streamed == l.said[0] })
				}
				s.untilState(ids[2], "waiting")
				s.untilKind(ids[1], "call.output", 1)
				lose(s, all)
				for i, l := range losses {
					t.Run(l.name, func(*testing.T) { l.asked(s, all[i], ids[i]) })
				}
				waitGone(t, atoi(t, strings.TrimSpace(w.file("at-pid-command"))))
				gate.Open() // nobody reads it
				for name, n := range map[string]int{"command": 1, "late": 0, "request": 0} {
					w.wantEffect(name, n)
				}
			})
		})
	}
}

// asked has the person settle what was lost, and looks at what comes of it.
func (l lostAt) asked(s *server, f *fake, id string) {
	t := s.w.t
	t.Helper()
	s.untilQuiet(id, "uncertain")
	j := s.events(id)
	attempt := j.attempt()
	wantCounts(t, j, map[string]int{"attempt.unknown": 1, "attempt.settled": 0, "turn.ended": 0, "agent.ended": 1, "permission.replied": 0, "session.blocked": 0})
	f.wantPrompts("Do " + l.name)
	if len(s.pending(id)) > 0 {
		t.Errorf("a request of an agent that is gone waits for an answer")
	}
	calls := s.calls(id)
	if n := len(calls); n != boolInt(l.calls != "") || (n > 0 && calls[0].State != l.calls) {
		t.Errorf("the calls are %+v, want one that is %q", calls, l.calls)
	}
	if l.forget {
		f.forgets()
	}
	if l.calls == "unknown" {
		s.resolve(calls[0].ID, "did_not_happen", "continue").want(t, http.StatusOK)
	}
	s.resolveAttempt(attempt, l.verdict, "continue").want(t, http.StatusOK)
	s.untilQuiet(id, l.ends)
	j = s.events(id)
	wantSaid(s.w, j, l.said...)
	if cut := j.said()[0].cut; cut != (l.calls == "") { // a call ends the text before it
		t.Errorf("its text is incomplete: %v", cut)
	}
	wantCounts(t, j, map[string]int{"agent.started": 2, "agent.ended": 1 + boolInt(l.ends == "failed"), "attempt.unknown": 1, "turn.started": 1, "call.dispatched": boolInt(l.calls == "unknown")})
	if l.ends == "failed" {
		f.wantPrompts("Do " + l.name)
		if why := j.of("turn.ended")[0].str("reason"); !strings.Contains(why, l.words) || !strings.Contains(why, "Nothing was sent") {
			t.Errorf("the turn failed: %q", why)
		}
		return
	}
	f.wantPrompts("Do "+l.name, l.prompt)
	f.wantTold(j)
	wantCounts(t, j, map[string]int{"attempt.dispatched": 2, "attempt.settled": 1, "agent.opened": 2})
	if how := j.of("agent.opened")[1].str("how"); how != l.how {
		t.Errorf("the session was %s, want %s", how, l.how)
	}
}
