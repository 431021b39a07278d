package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"holdfast/store"
)

// everything is a script of one turn in which an agent does all that it can, and
// meets the test before each thing that follows.
const everything = `{
	"answers": {"initialize": {"after_file": "WORK/initialize"}, "session/new": {"after_file": "WORK/new"}},
	"prompts": [{"match": "Do everything", "steps": [
		{"say": "one ä "}, {"say": "two "}, {"touch": "WORK/texted"}, {"wait_file": "WORK/text"}, {"say": "three"},
		{"run": "echo begun >> effects; echo first; echo $$ > up; read -r _ < gate; echo last; echo ended >> effects"},
		{"say": "between"},
		{"permission": {"toolCall": {"toolCallId": "p1", "title": "echo p1 >> effects", "kind": "execute", "rawInput": {"command": "echo p1 >> effects"}}},
			"then_on": {"allow": [{"run": "echo p1 >> effects", "tool": "p1"}]}},
		{"permission": {"toolCall": {"toolCallId": "p2", "title": "echo p2 >> effects", "kind": "execute", "rawInput": {"command": "echo p2 >> effects"}}},
			"then_on": {"allow": [{"run": "echo p2 >> effects", "tool": "p2"}]}},
		{"permission": {"toolCall": {"toolCallId": "p3", "title": "echo p3 >> effects", "kind": "execute", "rawInput": {"command": "echo p3 >> effects"}}},
			"then_on": {"allow": [{"run": "echo p3 >> effects", "tool": "p3"}], "reject": [{"say": "as you say"}]}},
		{"repeat": 200, "steps": [{"say": "{{n}}, "}]}
	]}]}`

// The server is killed at each point of one turn. Whatever the agent does or is
// asked meanwhile goes on, is in the journal once, and is answered once.
// proves REC-10 ATT-1 ATT-3 JRN-5 PER-1 PER-4 REC-7 CAL-1 REC-11
func TestACP_ATurnOutlivesItsServer(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fake("fake", everything)
		s := w.serve(flags(quick...), agents(f))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission("Do everything", f.by, asking)
		again := func(while func()) {
			t.Helper()
			s.kill9()
			while()
			s.restart()
		}
		nothing := func() {}

		received := func(method string) {
			t.Helper()
			eventually(t, "the agent was told "+method, func() bool { return f.received()[method] > 0 })
		}
		received("initialize")
		again(nothing)
		w.touch("initialize")
		received("session/new")
		again(func() { w.touch("new") })

		s.until(id, "it is in mid-text", func(j journal) bool { return len(j.said()) == 1 && j.said()[0].streamed == "one ä two " })
		w.untilFile("texted")
		again(func() { w.touch("text") })

		pid := atoi(t, up.Wait())
		again(nothing)
		s.untilKind(id, "call.output", 1)
		gate.Open()
		waitGone(t, pid)

		s.untilKind(id, "permission.asked", 2) // for the command, and for the file that it writes
		s.untilState(id, "waiting")
		again(nothing)
		s.allow(id)

		s.untilKind(id, "permission.asked", 4)
		s.untilState(id, "waiting")
		open := s.pending(id)
		again(func() { w.decide(open) })

		s.untilKind(id, "permission.asked", 6)
		s.untilState(id, "waiting")
		again(nothing)
		s.decide(s.pending(id)[0].ID, "reject", "not that").want(t, http.StatusOK)

		s.untilQuiet(id, "ready")
		for name, n := range map[string]int{"begun": 1, "ended": 1, "p1": 1, "p2": 1, "p3": 0} {
			w.wantEffect(name, n)
		}
		j := s.events(id)
		var numbers strings.Builder
		for n := range 200 {
			fmt.Fprintf(&numbers, "%d, ", n+1)
		}
		wantSaid(w, j, "one ä two three", "between", "as you say"+numbers.String())
		wantCounts(t, j, map[string]int{
			"agent.started": 1, "agent.opened": 1, "agent.ended": 0, "message.completed": 4, "turn.started": 1, "turn.ended": 1,
			"attempt.prepared": 2, "attempt.dispatched": 2, "attempt.receiving": 1, "attempt.settled": 2, "attempt.unknown": 0,
			"call.dispatched": 3, "call.unknown": 0, "permission.asked": 6, "permission.replied": 5, "permission.cancelled": 1, "session.blocked": 0,
		})
		if got := j.output(s.calls(id)[0].ID); got != "first\nlast\n" {
			t.Errorf("the command printed %q", got)
		}
		f.wantTold(j)
		// The second prompt is what was said about the rejection.
		f.want(map[string]int{"initialize": 1, "session/new": 1, "session/prompt": 2, "answer": 3, "session/cancel": 0})
		if got := fmt.Sprint(f.answers()); got != "[allow once allow once reject reject]" {
			t.Errorf("its requests were answered %s", got)
		}
		s.sigterm()
	})
}

// decide answers requests although no server runs.
func (w *world) decide(requests []request) {
	w.t.Helper()
	st := w.db.OpenUnchecked(w.t, func(o *store.Options) { o.Admin = true })
	owner, err := st.UserByEmail(w.t.Context(), w.email)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range requests {
		if _, err := st.Decide(w.t.Context(), owner.ID, r.ID, store.Decision{Reply: "once"}); err != nil {
			w.t.Fatal(err)
		}
	}
}
