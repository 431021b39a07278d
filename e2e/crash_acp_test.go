//go:build crashpoints

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// agentPoints are the places between what is journalled of an agent and what it is
// told; with ":n" the nth time. The first two frames open its session, the third is
// the prompt, the fourth an answer.
var agentPoints = []string{
	"agent.before_run",
	"agent.committed:1", "agent.committed:2", "agent.committed:3", "agent.committed:4", "agent.committed:5", "agent.committed:6",
	"agent.told:1", "agent.told:2", "agent.told:3", "agent.told:4",
}

// crashedTurn is a turn in which an agent speaks, acts, asks and acts.
const crashedTurn = `{"prompts": [{"steps": [
	{"say": "one "}, {"say": "two"}, {"run": "echo ran >> effects; echo out"},
	{"permission": {"toolCall": {"toolCallId": "p", "title": "deploy", "kind": "execute", "rawInput": {"command": "deploy"}}}, "then_on": {"allow": [{"run": "echo asked >> effects", "tool": "p"}]}},
	{"say": "three"}]}]}`

// agentPerson gives a session a prompt and answers what is asked, over server's deaths.
type agentPerson struct {
	s   *server
	f   *fake
	key string
	id  string

	with func(map[string]any) // what else the session is made of
}

// work does so until the turn has ended; false: the server was lost.
func (p *agentPerson) work(ends ...string) bool {
	p.s.w.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.s.w.t.Context()), patience)
	defer cancel()
	body := p.s.w.newSession("Do it")
	p.f.by(body)
	asking(body)
	if p.with != nil {
		p.with(body)
	}
	a, err := p.s.do(ctx, http.MethodPost, "/api/v1/sessions", body, "Idempotency-Key", p.key)
	if err != nil {
		return false
	}
	p.id = decode[session](p.s.w.t, a).ID
	for {
		a, err := p.s.do(ctx, http.MethodGet, "/api/v1/sessions/"+p.id, nil)
		if err != nil {
			break
		}
		one := decode[session](p.s.w.t, a)
		for _, state := range ends {
			if one.State == state && one.Execution == nil {
				return true
			}
		}
		a, err = p.s.do(ctx, http.MethodGet, "/api/v1/permissions?state=pending&session="+p.id, nil)
		if err != nil {
			break
		}
		for _, r := range decode[items[request]](p.s.w.t, a).Items {
			_, _ = p.s.do(ctx, http.MethodPost, "/api/v1/permissions/"+r.ID+"/decision", map[string]string{"reply": "once"}) // it is looked for again
		}
		if _, err = p.s.do(ctx, http.MethodGet, fmt.Sprintf("/api/v1/sessions/%s/events?after=%d&wait=250ms", p.id, one.LastSeq), nil); err != nil {
			break
		}
	}
	if ctx.Err() != nil {
		p.s.w.t.Fatalf("waited in vain until %s is one of %v", p.id, ends)
	}
	return false
}

// The server is killed at each label; the turn goes on as if nothing had been.
// proves ATT-1 ATT-3 REC-3 REC-10 PER-4 CAL-1 JRN-5
func TestCrash_Agents(t *testing.T) {
	t.Parallel()
	for _, label := range agentPoints {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *world) {
				f := w.fake("fake", crashedTurn)
				s := w.configure(flags(quickest...), agents(f))
				p := &agentPerson{s: s, f: f, key: newKey()}
				reached := filepath.Join(w.dir, "reached")
				s.env = []string{"HOLDFAST_CRASH=" + label, "HOLDFAST_CRASH_REACHED=" + reached}
				s.start()
				done := p.work("ready")
				if done {
					t.Fatalf("%s was never reached\n%s", label, s.events(p.id).dump())
				}
				s.exit()
				status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
				if b, err := os.ReadFile(reached); !ok || status.Signal() != syscall.SIGKILL || err != nil || !strings.HasPrefix(label, strings.TrimSpace(string(b))) {
					t.Fatalf("the server armed with %s ended by itself (%s): %v", label, s.cmd.ProcessState, err)
				}
				s.env = nil
				s.start()
				if !p.work("ready", "uncertain", "failed") {
					t.Fatal("the server was lost again")
				}
				j := s.events(p.id)
				wantSaid(w, j, "one two", "three")
				began := 1 + boolInt(label == "agent.before_run") // that one never ran
				wantCounts(t, j, map[string]int{
					"agent.started": began, "agent.opened": 1, "agent.ended": began - 1, "attempt.dispatched": 1, "attempt.receiving": 1, "attempt.settled": 1,
					"attempt.unknown": 0, "call.unknown": 0, "call.dispatched": 2, "permission.asked": 1, "permission.replied": 1, "turn.started": 1,
				})
				for _, name := range []string{"ran", "asked"} {
					w.wantEffect(name, 1)
				}
				f.want(map[string]int{"initialize": 1, "session/new": 1, "session/prompt": 1, "answer": 1})
				if got := j.output(s.calls(p.id)[0].ID); got != "out\n" {
					t.Errorf("it printed %q", got)
				}
			})
		})
	}
}

// settingPoints are those of a turn before which two settings are told: the first two
// frames open the session, then each setting is one.
var settingPoints = []string{
	"agent.committed:1", "agent.committed:2", "agent.committed:3", "agent.committed:4", "agent.committed:5", "agent.committed:6",
	"agent.told:3", "agent.told:4", "agent.told:5",
}

// The server is killed at each label while its agent is being set. Each setting is
// told once, and the prompt after them.
// proves REC-3 ATT-1 JRN-3
func TestCrash_Settings(t *testing.T) {
	t.Parallel()
	for _, label := range settingPoints {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *world) {
				f := w.fake("fake", `{`+offering+`, "prompts": [{"steps": [{"say": "said"}]}]}`)
				s := w.configure(flags(quickest...), agents(f))
				p := &agentPerson{s: s, f: f, key: newKey(), with: set("model", "large", "mode", "plan")}
				reached := filepath.Join(w.dir, "reached")
				s.env = []string{"HOLDFAST_CRASH=" + label, "HOLDFAST_CRASH_REACHED=" + reached}
				s.start()
				if p.work("ready") {
					t.Fatalf("%s was never reached\n%s", label, s.events(p.id).dump())
				}
				s.exit()
				s.env = nil
				s.start()
				if !p.work("ready", "uncertain", "failed") {
					t.Fatal("the server was lost again")
				}
				if got, want := f.told(), "set_model set_config_option prompt"; got != want {
					t.Errorf("the agent was told %s, want %s", got, want)
				}
				if got, want := s.isSet(p.id), "mode=plan>plan web=false model=large>large"; got != want {
					t.Errorf("it is set %s, want %s", got, want)
				}
				j := s.events(p.id)
				wantSaid(w, j, "said")
				wantCounts(t, j, map[string]int{
					"agent.started": 1, "agent.opened": 1, "agent.setting": 4, "attempt.dispatched": 1, "attempt.settled": 1, "attempt.unknown": 0, "turn.started": 1, "turn.ended": 1,
				})
			})
		})
	}
}

// The shim of an agent is killed as it takes a frame; the agent is gone with it. What
// may have reached the agent is unknown, and the rest is told again when a person says so.
// proves ATT-3 CAL-7 REC-4
func TestCrash_ShimsOfAgents(t *testing.T) {
	t.Parallel()
	for label, ends := range stdinPoints {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *world) {
				f := w.fake("fake", `{"prompts": [{"steps": [{"say": "said"}]}]}`)
				s := w.serve(flags(quickest...), agents(f), env("HOLDFAST_CRASH="+label, "HOLDFAST_CRASH_REACHED="+filepath.Join(w.dir, "reached")))
				p := &agentPerson{s: s, f: f, key: newKey()}
				if !p.work("failed", "uncertain", "ready") {
					t.Fatal("the server was lost")
				}
				if state := s.session(p.id).State; state != ends {
					t.Fatalf("the session is %s, want %s\n%s", state, ends, s.events(p.id).dump())
				}
				s.sigterm()
				s.env = nil
				s.restart()
				if ends == "failed" {
					f.want(map[string]int{"session/prompt": 0})
					s.resume(p.id).want(t, http.StatusAccepted)
				} else {
					s.resolveAttempt(s.events(p.id).attempt(), "retry", "continue").want(t, http.StatusOK)
				}
				s.untilQuiet(p.id, "ready")
				j := s.events(p.id)
				wantCounts(t, j, map[string]int{"attempt.settled": 1, "agent.started": 2, "attempt.unknown": boolInt(ends == "uncertain")})
				if said := j.said(); len(said) == 0 || said[len(said)-1].whole != "said" {
					t.Errorf("it said %+v", said)
				}
			})
		})
	}
}

// chatter is an agent that talks and acts for a while.
const chatter = `{"prompts": [{"steps": [
	{"repeat": 4, "steps": [{"say": "{{n}}: ä "}, {"sleep_ms": 5}, {"say": "é. "}, {"burst": 40}]},
	{"run": "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.02; done; echo one >> effects"},
	{"repeat": 40, "steps": [{"say": "{{n}} "}, {"sleep_ms": 10}]},
	{"run": "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.02; done; echo two >> effects"},
	{"repeat": 40, "steps": [{"say": "{{n}} "}, {"sleep_ms": 10}]}]}]}`

// The server is killed again and again, at moments that a seed decides, while its
// agent talks and acts. Nothing is lost, and nothing is there twice.
// proves JRN-5 REC-10 REC-11 ATT-3
func TestCrash_AnAgentTalksOn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		n := seed(t)
		t.Logf("HOLDFAST_SEED=%d repeats the moments", n)
		rng := rand.New(rand.NewPCG(n, 0))
		f := w.fake("fake", chatter)
		s := w.serve(flags(quickest...), agents(f))
		id := s.mission("Talk", f.by)
		s.untilKind(id, "message.delta", 1) // before, nothing is adopted, and three recoveries are enough (REC-11)
		kills := 0
		for kills < 12 && s.session(id).State != "ready" {
			after := time.NewTimer(time.Duration(rng.Int64N(int64(150 * time.Millisecond)))) // the moment is the test's input
			<-after.C
			s.kill9()
			kills++
			s.restart()
		}
		s.untilQuiet(id, "ready", "uncertain", "failed", "blocked")
		t.Logf("%d kills", kills)
		var head, numbers strings.Builder
		for i := range 4 {
			fmt.Fprintf(&head, "%d: ä é. %s", i+1, bursts(40))
		}
		for i := range 40 {
			fmt.Fprintf(&numbers, "%d ", i+1)
		}
		j := s.events(id)
		wantSaid(w, j, head.String(), numbers.String(), numbers.String())
		wantCounts(t, j, map[string]int{"attempt.dispatched": 1, "attempt.unknown": 0, "call.unknown": 0, "call.dispatched": 2, "turn.started": 1, "turn.ended": 1, "session.blocked": 0, "agent.started": 1})
		for i, c := range s.calls(id) {
			if got, want := j.output(c.ID), "line 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\n"; got != want {
				t.Errorf("call %d printed %q", i, got)
			}
		}
		for _, name := range []string{"one", "two"} {
			w.wantEffect(name, 1)
		}
		f.want(map[string]int{"initialize": 1, "session/new": 1, "session/prompt": 1})
	})
}
