package e2e

import (
	"syscall"
	"testing"
)

// floods is an agent that has answered and doesn't stop talking, in each process as often
// as it is asked to.
const floods = `{"prompts": [{"match": "flood", "steps": [{"say": "I will"}, {"stop": "end_turn"}, {"repeat": 1000000000, "steps": [{"burst": 100}]}]}, {"steps": [{"say": "done"}]}]}`

// An agent that floods while it rests is told what is sent next in another process, once.
// A stop, and the end of the server, have it gone.
//
// proves COO-4 COO-6 COO-7 ATT-1
func TestACP_FloodsWhileItRests(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fake("fake", floods)
		s := w.serve(flags(quick...), agents(f))
		id := s.mission("Please flood", f.by)
		s.untilQuiet(id, "ready")
		s.prompt(id, "Do it", "queue")
		s.untilKind(id, "turn.ended", 2)
		j := s.events(id)
		wantCounts(t, j, map[string]int{"agent.started": 2, "agent.ended": 1, "attempt.dispatched": 2, "attempt.settled": 2, "attempt.unknown": 0})
		f.wantPrompts("Please flood", "Do it")
		f.want(map[string]int{"session/new": 1, "session/resume": 1})

		s.prompt(id, "Please flood again", "queue")
		s.untilKind(id, "turn.ended", 3)
		s.prompt(id, "And again", "queue")
		s.untilKind(id, "turn.started", 4)
		s.interrupt(id) // it waits for the agent to fall silent
		s.untilQuiet(id, "stopped")
		if n := len(f.prompts()); n != 3 {
			t.Errorf("the agent was asked %d times, want 3", n)
		}
		s.sigterm()
		for _, pid := range f.pids() {
			if syscall.Kill(pid, 0) == nil {
				t.Errorf("process %d of the agent lives", pid)
			}
		}
	})
}
