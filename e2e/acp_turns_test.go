package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Turns of one session share a process, until nobody has needed it for a while.
// proves PRO-1 PRO-4 REC-12 COO-8
func TestACP_TurnsShareAProcess(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fake("fake", `{"prompts": [
			{"match": "first", "steps": [{"say": "one"}, {"touch": "WORK/up"}, {"wait_file": "WORK/go"}]},
			{"steps": [{"say": "you said {{prompt}}"}]}]}`)
		// Its environment comes from the server's, by name.
		f.write(f.program, "#!/bin/sh\nexec "+agentBinary+"\n", 0o700)
		s := w.serve(flags(quick...), agents(f), flags("--agent-env", "FAKEAGENT_SCRIPT,FAKEAGENT_LOG,FAKEAGENT_STATE", "--agent-idle", "1s"),
			env("FAKEAGENT_SCRIPT="+f.path("script"), "FAKEAGENT_LOG="+f.path("log"), "FAKEAGENT_STATE="+f.path("state")))
		id := s.mission("the first", f.by)
		w.untilFile("up")
		queued := s.prompt(id, "queued", "queue")
		steered := s.prompt(id, "steered", "steer")
		w.touch("go")
		s.untilKind(id, "turn.ended", 2)
		s.untilQuiet(id, "ready")
		// A steer waits until the prompt is answered, and then joins its turn.
		j := s.events(id)
		if got := fmt.Sprint(j.promoted()[1:]); got != fmt.Sprint([]string{steered.ID, queued.ID}) {
			t.Errorf("promoted %s, want the steer first", got)
		}
		wantSaid(w, j, "one", "you said steered", "you said queued")
		wantCounts(t, j, map[string]int{"agent.started": 1, "agent.opened": 1, "agent.ended": 0, "attempt.settled": 3, "turn.started": 2})

		f.kill() // while nobody needs it: nothing is lost
		s.prompt(id, "another", "queue")
		s.untilKind(id, "turn.ended", 3)
		s.untilQuiet(id, "ready")
		eventually(t, "the process that nobody needs is ended", func() bool { return procState(f.pids()[1]) == 0 })
		s.waitShimsGone()
		s.prompt(id, "back again", "queue")
		s.untilKind(id, "turn.ended", 4)
		s.untilQuiet(id, "ready")
		f.wantPrompts("the first", "steered", "queued", "another", "back again")
		f.want(map[string]int{"session/new": 1, "session/resume": 2})
		wantSaid(w, s.events(id), "one", "you said steered", "you said queued", "you said another", "you said back again")
		wantCounts(t, s.events(id), map[string]int{"attempt.unknown": 0})
	})
}

// Many agents at once: one that dies takes none of the others along, and all outlive
// their server.
// proves REC-8 REC-10 COO-3 LEA-11
func TestACP_ManyAgents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		const many = 20
		f := w.fake("many", `{"prompts": [
			{"match": "die", "steps": [{"say": "half"}, {"wait_file": "WORK/die"}, {"crash": true}]},
			{"match": "ask", "steps": [{"permission": {"toolCall": {"toolCallId": "t", "title": "t", "kind": "execute", "rawInput": {"command": "true"}}}}, {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"}}]},
			{"steps": [{"say": "half "}, {"wait_file": "WORK/go"}, {"say": "whole"}]}]}`)
		f.is("unset FAKEAGENT_STATE; exec " + agentBinary) // one would be written by all
		s := w.serve(flags("--max-running", fmt.Sprint(many)), flags(quick...), agents(f))
		idle := s.memory("RssAnon")
		what := func(i int) string { return []string{"work", "ask", "work", "die"}[i%4] }
		var ids []string
		for i := range many {
			ids = append(ids, s.mission(fmt.Sprint(what(i), " ", i), f.by, func(body map[string]any) {
				if what(i) == "ask" {
					asking(body)
				}
			}))
		}
		for i, id := range ids {
			if what(i) == "ask" {
				s.untilState(id, "waiting")
			} else {
				s.untilKind(id, "message.delta", 1)
			}
		}
		agents, shims := 0, 0
		for _, pid := range f.pids() {
			agents += memory(t, pid, "RssAnon")
		}
		for _, pid := range s.shims() {
			shims += memory(t, pid, "RssAnon")
		}
		t.Logf("%d sessions, memory of their own: the server has %d MB and had %d without them; shims %d MB, agents %d MB", many, s.memory("RssAnon"), idle, shims, agents)
		w.touch("die")
		for i, id := range ids {
			if what(i) == "die" {
				s.untilQuiet(id, "uncertain")
			}
		}
		s.kill9()
		w.touch("go")
		s.restart()
		for i, id := range ids {
			switch what(i) {
			case "die":
				s.resolveAttempt(s.events(id).attempt(), "abandon", "stay").want(t, http.StatusOK)
				s.untilQuiet(id, "stopped")
			case "ask":
				if i%8 == 1 {
					s.interrupt(id)
					s.untilQuiet(id, "stopped")
					continue
				}
				s.allow(id)
				s.untilQuiet(id, "ready")
			case "work":
				s.untilQuiet(id, "ready")
				wantSaid(w, s.events(id), "half whole")
			}
			wantCounts(t, s.events(id), map[string]int{"agent.started": 1, "attempt.dispatched": 1, "session.blocked": 0, "attempt.unknown": boolInt(what(i) == "die")})
		}
		if n := len(f.prompts()); n != many || strings.Count(strings.Join(f.prompts(), "\n"), "work") != many/2 {
			t.Errorf("the agents were asked %d times, want %d", n, many)
		}
	})
}
