package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// A message whose turn failed before anything was sent stays what it is over a death of
// the server: it can't be withdrawn any more, the page says that it is told with the next
// one, and then it is, once.
//
// proves PRO-2 ADM-8 PRO-5 ATT-1
func TestACP_AMessageThatWasNotSentIsToldWithTheNext(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fake("fake", `{"prompts": [{"steps": [{"say": "done"}]}]}`)
		f.is("echo 'database is locked' >&2; exit 1")
		s := w.serve(flags(quick...), agents(f))
		b := w.signedIn(s)
		id := s.mission("Do it", f.by)
		s.untilQuiet(id, "failed")
		page := func() string {
			b.visit("/sessions/" + id)
			return strings.Join(strings.Fields(b.doc.Find("main").Text()), " ")
		}
		const unsent, late = "it had not been sent when its turn ended; it is told with the next message", "The server told the agent The next message is older"
		if got := page(); !strings.Contains(got, unsent) || !strings.Contains(got, "Its message had not been sent to the agent") || strings.Contains(got, "the turn works on it from here") {
			t.Errorf("the page says %s", got)
		}
		refused := s.must(http.MethodDelete, "/api/v1/prompts/"+s.events(id).promoted()[0], nil)
		refused.want(t, http.StatusConflict)
		if strings.Contains(string(refused.body), "delivered") {
			t.Errorf("it can't be withdrawn since %s", refused.body)
		}
		s.kill9()
		f.is("exec " + agentBinary)
		s.restart()
		s.prompt(id, "In Python", "queue")
		s.untilQuiet(id, "ready")
		s.kill9()
		s.restart()
		s.prompt(id, "More", "queue")
		s.untilKind(id, "turn.ended", 3)
		s.untilQuiet(id, "ready")
		f.wantTold(s.events(id))
		if got := f.blocks(); len(got) != 4 || got[1] != "Do it" || got[2] != "In Python" || got[3] != "More" {
			t.Errorf("the agent was told %q", got)
		}
		if got := page(); strings.Contains(got, unsent) || !strings.Contains(got, late) {
			t.Errorf("the page says %s", got)
		}
	})
}

// carriers are the attempts that had a prompt, by its text, in order, and what became of
// each attempt, by the journal alone.
func (j journal) carriers() (had map[string][]string, became map[string]string) {
	had, became = map[string][]string{}, map[string]string{}
	texts := map[string]string{}
	var waiting, sent []string // prompts
	for i := range j {
		switch e := &j[i]; e.Kind {
		case "prompt.admitted":
			texts[e.str("prompt_id")] = e.str("text")
		case "prompt.promoted":
			waiting = append(waiting, texts[e.str("prompt_id")])
		case "attempt.prepared":
			sent, waiting = waiting, nil
			for _, text := range sent {
				had[text] = append(had[text], e.str("attempt_id"))
			}
		case "attempt.settled", "attempt.unknown":
			became[e.str("attempt_id")] = e.Kind
		case "attempt.failed":
			became[e.str("attempt_id")] = e.Kind
			waiting = append(sent, waiting...)
		}
	}
	return had, became
}

// settle says of all that is unknown that it did not happen, and is not sent again.
func (s *server) settle(id, then string) {
	for _, c := range s.calls(id) {
		if c.State == "unknown" {
			s.resolve(c.ID, "did_not_happen", then)
		}
	}
	for _, e := range s.events(id).of("attempt.unknown") {
		s.resolveAttempt(e.str("attempt_id"), "abandon", then)
	}
}

// mayhem is a session with an agent to which, and to whose server, a seed does things.
type mayhem struct {
	s         *server
	f         *fake
	r         *rand.Rand
	id        string
	n         int
	ops       []string
	texts     map[string]string // of prompts, by id
	withdrawn map[string]bool
	said      []string // with rejections
}

func (m *mayhem) did(format string, a ...any) { m.ops = append(m.ops, fmt.Sprintf(format, a...)) }

func (m *mayhem) text() string {
	m.n++
	kinds := []string{"slowly", "hangs", "asks", "runs", "quickly"}
	return fmt.Sprintf("<p%d> %s", m.n, kinds[m.r.IntN(len(kinds))])
}

// once does one thing.
func (m *mayhem) once() {
	s, r := m.s, m.r
	switch r.IntN(13) {
	case 0, 1, 2, 3, 4, 5:
		text, how := m.text(), []string{"queue", "steer", "interrupt", "interrupt"}[r.IntN(4)]
		m.texts[s.prompt(m.id, text, how).ID] = text
		m.did("%s %s", how, text)
	case 6:
		s.post("/api/v1/sessions/"+m.id+"/interruption", nil)
		m.did("stop")
	case 7:
		for id, text := range m.texts {
			if s.must(http.MethodDelete, "/api/v1/prompts/"+id, nil).status == http.StatusOK {
				m.withdrawn[id] = true
				m.did("withdraw %s", text)
				break
			}
		}
	case 8, 9:
		for _, p := range s.pending(m.id) {
			why := fmt.Sprintf("no-%d-", m.n*100+len(m.said))
			if s.decide(p.ID, "reject", why).status == http.StatusOK {
				m.said = append(m.said, why)
				m.did("reject: %s", why)
			}
		}
	case 10:
		if r.IntN(2) == 0 {
			s.kill9()
			m.did("kill -9")
		} else {
			s.sigterm()
			m.did("SIGTERM")
		}
		s.restart()
	case 11:
		if pids := m.f.pids(); len(pids) > 0 && r.IntN(3) == 0 {
			if p, err := os.FindProcess(pids[len(pids)-1]); err == nil {
				_ = p.Kill() // gone already: nothing to do
				m.did("kill the agent")
			}
			return
		}
		s.resume(m.id)
		m.did("continue")
	case 12:
		s.settle(m.id, []string{"continue", "stay"}[r.IntN(2)])
		m.did("settle")
	}
}

// finish brings the session to where all that was asked is done.
func (m *mayhem) finish() {
	s := m.s
	s.w.t.Helper()
	stopAfter := time.Now().Add(3 * time.Second)
	eventually(s.w.t, "all is done", func() bool {
		st := s.session(m.id)
		switch st.State {
		case "ready":
			return st.Execution == nil && st.PendingPrompts == 0
		case "uncertain":
			s.settle(m.id, "continue")
		case "stopped", "failed", "limit_reached", "blocked":
			s.resume(m.id)
		case "waiting":
			for _, p := range s.pending(m.id) {
				s.decide(p.ID, "once", "")
			}
		case "running":
			if j := s.events(m.id); j[len(j)-1].Kind == "message.delta" && time.Now().After(stopAfter) {
				s.post("/api/v1/sessions/"+m.id+"/interruption", nil) // one that hangs
			}
		}
		return false
	})
}

// check fails unless each message and each word of a rejection was told exactly once, or
// went with an attempt whose outcome is unknown, and nothing that was withdrawn was told.
func (m *mayhem) check() {
	t := m.s.w.t
	t.Helper()
	j := m.s.events(m.id)
	told := map[string]int{}
	all := m.f.blocks()
	for _, text := range all {
		told[text]++
	}
	had, became := j.carriers()
	for id, text := range m.texts {
		carriers := had[text]
		switch n := told[text]; {
		case m.withdrawn[id] && n == 0 && len(carriers) == 0:
		case !m.withdrawn[id] && n == 1:
		case !m.withdrawn[id] && n == 0 && len(carriers) > 0 && became[carriers[len(carriers)-1]] == "attempt.unknown":
		default:
			t.Errorf("%s (withdrawn: %v) was told %d times, by %v", text, m.withdrawn[id], n, carriers)
		}
	}
	for _, why := range m.said {
		if n := strings.Count(strings.Join(all, "\n"), why); n > 1 || n == 0 && j.count("attempt.unknown") == 0 {
			t.Errorf("%q was told %d times", why, n)
		}
	}
	notes := map[string]int{}
	for _, e := range j.of("message.completed") {
		if e.str("told") != "" {
			notes[e.str("text")]++
		}
	}
	for text, n := range told {
		if !strings.HasPrefix(text, "<p") && notes[text] < n {
			t.Errorf("%q was told %d times, and is %d times in the journal", text, n, notes[text])
		}
	}
	if t.Failed() {
		ops, _ := json.MarshalIndent(m.ops, "", " ")
		t.Logf("%s\n%s", ops, j.dump())
	}
}

// Whatever happens to an agent that takes its time to begin, to its turns and to its
// server: what a person said is told exactly once, or its outcome is unknown.
//
// proves PRO-2 PER-2 ATT-3 ADM-8 PRO-5
func TestACP_WhateverIsSaidIsToldOnce(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{3, 7} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			each(t, func(_ *testing.T, w *world) {
				f := w.fake("fake", `{"on_cancel": "answer", "prompts": [
 {"match": "slowly", "steps": [{"say": "on"}, {"sleep_ms": 400}]},
 {"match": "hangs", "steps": [{"say": "on"}, {"hang": true}]},
 {"match": "asks", "steps": [{"permission": {}, "then_on": {"allow": [{"say": "did"}], "reject": [{"say": "pity"}, {"sleep_ms": 200}]}}]},
 {"match": "runs", "steps": [{"run": "sleep 0.2"}]},
 {"steps": [{"say": "done"}]}]}`)
				f.is("sleep 0.4; exec " + agentBinary)
				m := &mayhem{s: w.serve(flags(quick...), agents(f)), f: f, r: rand.New(rand.NewPCG(seed, 7)), texts: map[string]string{}, withdrawn: map[string]bool{}} //nolint:gosec // a seed makes it again
				m.id = m.s.mission("<p0> quickly", f.by, asking)
				for range 25 {
					m.once()
					after := time.NewTimer(time.Duration(m.r.IntN(250)) * time.Millisecond) // the moment is the test's input
					<-after.C
				}
				m.finish()
				last := "<p> the last"
				m.texts[m.s.prompt(m.id, last, "queue").ID] = last // nothing is left to be told
				m.finish()
				m.check()
			})
		})
	}
}
