package e2e

import "testing"

// named is a script of one turn in which two calls have one id, as some providers name
// their calls anew in each answer: the first runs unasked, the second asks.
const named = `{"prompts": [{"steps": [
	{"update": {"sessionUpdate": "tool_call", "toolCallId": "call_0", "title": "first", "kind": "execute", "status": "pending", "rawInput": {"command": "first"}}},
	{"run": "echo first >> effects; echo one", "tool": "call_0"},
	{"touch": "WORK/between"}, {"wait_file": "WORK/go"},
	{"update": {"sessionUpdate": "tool_call", "toolCallId": "call_0", "title": "second", "kind": "execute", "status": "pending", "rawInput": {"command": "second"}}},
	{"permission": {"toolCall": {"toolCallId": "call_0", "title": "second", "kind": "execute", "rawInput": {"command": "second"}}},
		"then_on": {"allow": [{"run": "echo second >> effects; echo two", "tool": "call_0"}]}},
	{"update": {"sessionUpdate": "tool_call", "toolCallId": "call_0", "title": "third", "kind": "execute", "status": "pending", "rawInput": {"command": "third"}}},
	{"run": "echo third >> effects; echo three", "tool": "call_0"},
	{"say": "done"}
]}]}`

// The server is killed between the calls of one id, and while the second is asked about.
// Each is in the journal once, runs once, and has its own output.
// proves CAL-1 REC-7 REC-10 PER-1 PER-4
func TestACP_CallsOfOneIDOutliveTheServer(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fake("fake", named)
		s := w.serve(flags(quick...), agents(f))
		id := s.mission("Do it", f.by, asking)
		w.untilFile("between")
		s.untilKind(id, "attempt.receiving", 1)
		s.kill9()
		w.touch("go")
		s.restart()
		s.untilKind(id, "permission.asked", 1)
		s.untilState(id, "waiting")
		s.kill9()
		s.restart()
		s.untilState(id, "waiting")
		s.allow(id)
		s.untilQuiet(id, "ready")
		for _, name := range []string{"first", "second", "third"} {
			w.wantEffect(name, 1)
		}
		j := s.events(id)
		wantCounts(t, j, map[string]int{"call.proposed": 3, "call.dispatched": 3, "call.settled": 3, "call.unknown": 0, "attempt.unknown": 0, "permission.asked": 1, "permission.replied": 1, "agent.started": 1})
		calls := s.calls(id)
		for i, want := range []string{"one\n", "two\n", "three\n"} {
			if i >= len(calls) || calls[i].State != "succeeded" || j.output(calls[i].ID) != want {
				t.Errorf("call %d isn't one that printed %q: %+v", i, want, calls)
			}
		}
		f.want(map[string]int{"session/prompt": 1, "answer": 1})
	})
}
