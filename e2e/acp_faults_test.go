package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
)

// faulty is what an agent does badly in one turn, and what must be made of it.
type faulty struct {
	name, steps string
	said        []string
	events      map[string]int
	received    map[string]int // besides, beyond what all receive
	check       func(t *testing.T, s *server, id string)
}

const megabytes = 12_000_000

// wide is a text of which every even byte is the middle of a character.
var wide = strings.Repeat("ä", 20_000)

func bursts(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "burst %d\n", i+1)
	}
	return b.String()
}

var faults = []faulty{
	{name: "slow", steps: `{"say": "a"}, {"sleep_ms": 700}, {"say": "b"}`, said: []string{"ab"}},
	{name: "burst", steps: `{"burst": 3000}`, said: []string{bursts(3000)}},
	{name: "wide", steps: fmt.Sprintf(`{"say": "x%s"}`, wide), said: []string{"x" + wide}},
	{name: "big", steps: `{"big": 12000000}`, said: nil, check: wantBig},
	{
		name: "unknown", steps: `{"say": "a"}, {"unknown_update": true}, {"unknown_request": "session/read_mind"}, {"unknown_request": "fs/read_text_file"}, {"say": "b"}`,
		said: []string{"ab"}, events: map[string]int{"agent.event": 1}, received: map[string]int{"error -32601": 2},
		check: func(t *testing.T, s *server, id string) {
			if raw := s.events(id).of("agent.event")[0].str("raw"); !strings.Contains(raw, `"sessionUpdate":"fakeagent_novelty"`) || !strings.Contains(raw, "9007199254740993") {
				t.Errorf("what isn't known is kept as %s", raw)
			}
		},
	},
	{
		name: "ids", steps: `{"permission": {"toolCall": {"toolCallId": "a", "title": "a", "kind": "execute", "rawInput": {"command": "true"}}}}, {"dup_id": true},
			{"permission": {"toolCall": {"toolCallId": "b", "title": "b", "kind": "execute", "rawInput": {"command": "true"}}}}, {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "a", "status": "completed"}},
			{"update": {"sessionUpdate": "tool_call_update", "toolCallId": "b", "status": "failed"}}`,
		events: map[string]int{"call.proposed": 2, "call.dispatched": 2, "call.settled": 2}, received: map[string]int{"answer": 2},
	},
	{
		name: "reordered", steps: `{"reorder": [{"say": "end"}, {"update": {"sessionUpdate": "tool_call", "toolCallId": "r", "title": "r", "kind": "execute", "status": "pending"}},
			{"update": {"sessionUpdate": "tool_call_update", "toolCallId": "r", "status": "in_progress"}}, {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "r", "status": "completed"}}]}`,
		said: []string{"end"}, events: map[string]int{"call.proposed": 1, "call.dispatched": 1, "call.settled": 1},
	},
	{
		name: "rubbish", steps: `{"say": "a"}, {"rubbish": "Warning: this is no JSON"}, {"stderr": "nor this"}, {"rubbish": "{\"jsonrpc\": \"2.0\"}"}, {"say": "b"}`,
		said: []string{"ab"}, events: map[string]int{"agent.event": 2},
	},
	{
		name: "error", steps: `{"say": "a"}, {"error": {"code": -32603, "message": "the model is gone", "data": {"status": 400}}}`, said: []string{"a"},
		check: func(t *testing.T, s *server, id string) {
			if why := s.events(id).of("turn.ended")[0].str("reason"); !strings.Contains(why, "the model is gone") {
				t.Errorf("the turn failed: %q", why)
			}
		},
	},
	{
		name: "loud", steps: `{"run": "i=0; while [ $i -lt 6000 ]; do echo line $i; i=$((i+1)); done"}`,
		check: func(t *testing.T, s *server, id string) {
			var want strings.Builder
			for i := range 6000 {
				fmt.Fprintf(&want, "line %d\n", i)
			}
			if got := s.events(id).output(""); got != want.String() {
				t.Errorf("%d bytes of output, want %d; they differ at %d", len(got), want.Len(), differ(got, want.String()))
			}
		},
	},
	{name: "calls again", steps: `{"run": "true", "tool": "x"}, {"run": "true", "tool": "x"}, {"stop": "end_turn"}, {"say": "after the end"}`, events: map[string]int{"call.proposed": 1, "call.settled": 1}},
}

// wantBig fails unless one line of twelve million bytes is in the journal.
func wantBig(t *testing.T, s *server, id string) {
	t.Helper()
	got := s.events(id).said()
	if len(got) != 1 || len(got[0].streamed) < megabytes-1000 || strings.Trim(got[0].streamed, "x") != "" || got[0].bytes != int64(len(got[0].streamed)) {
		t.Errorf("it said %d messages, the first of %d bytes in pieces, %d as a whole", len(got), len(got[0].streamed), got[0].bytes)
	}
}

// An agent that misbehaves harms nothing but its turn, if that.
// proves JRN-5 JRN-6 JRN-7 ATT-1 CAL-1
func TestACP_BadManners(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fake("bad", `{}`)
		f.is("unset FAKEAGENT_STATE; echo 'Warning: a banner'; exec " + agentBinary) // many at once
		var prompts []string
		for _, c := range faults {
			prompts = append(prompts, fmt.Sprintf(`{"match": "Be %s", "steps": [%s]}`, c.name, c.steps))
		}
		f.follows(`{"prompts": [` + strings.Join(prompts, ",") + `]}`)
		s := w.serve(flags(quick...), agents(f))
		before := f.received()
		for _, c := range faults {
			t.Run(c.name, func(t *testing.T) {
				id := s.mission("Be "+c.name, f.by)
				s.untilQuiet(id, "ready", "failed")
				j := s.events(id)
				if c.said != nil {
					wantSaid(w, j, c.said...)
				}
				wantCounts(t, j, map[string]int{"attempt.settled": 1, "attempt.unknown": 0, "call.unknown": 0, "turn.ended": 1})
				wantCounts(t, j, c.events)
				now := f.received()
				for what, n := range c.received {
					if got := now[what] - before[what]; got != n {
						t.Errorf("the agent received %d more of %s, want %d", got, what, n)
					}
				}
				before = now
				if c.check != nil {
					c.check(t, s, id)
				}
				t.Logf("the server has %d MB, and had %d at most", s.memory("VmRSS"), s.memory("VmHWM"))
			})
		}
		if most := s.memory("VmHWM"); most > 400 {
			t.Errorf("the server took %d MB", most)
		}
	})
}

// memory reads a line of the process's status, in MB.
func (s *server) memory(what string) int { return memory(s.w.t, s.pid(), what) }

func memory(t *testing.T, pid int, what string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), what+":")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		t.Fatalf("no %s in the status of %d", what, pid)
	}
	kb, err := strconv.Atoi(fields[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb / 1024
}

// mended is an agent that can't be worked with at first.
type mended struct {
	name   string
	script string // "" the one of mend
	is     string // its program; "" the agent, "-" there is none, "x" it can't be executed
	words  []string
	blocks bool // its session, instead of failing the turn
	alone  bool // it goes on by itself: that it is mended can be seen
	starts int  // how often it is started; 0: once
}

const mend = `{"prompts": [{"steps": [{"say": "done"}]}]}`

var broken = []mended{
	{name: "missing", is: "-", words: []string{"was not found"}, blocks: true, alone: true},
	{name: "forbidden", is: "x", words: []string{"may not execute it"}, blocks: true, alone: true},
	{name: "missing-inside", is: "exec /nowhere/agent", words: []string{"exit code 127", "/nowhere/agent", "Nothing was sent"}, starts: 3},
	{name: "exits", is: "echo 'no key' >&2; exit 3", words: []string{"exit code 3", "no key", "Nothing was sent"}},
	{name: "rubbish", is: "echo Usage: none; exit 0", words: []string{"exit code 0", "Usage: none", "Nothing was sent"}},
	{name: "killed", is: "kill -9 $$", words: []string{"SIGKILL", "Nothing was sent"}},
	{name: "signs-in", script: `{"auth_methods": [{"id": "a", "name": "Log in", "description": "Run agent login"}], "answers": {"session/new": {"error": {"code": -32000, "message": "Authentication required"}}}}`, words: []string{"sign-in", "Authentication required", "Run agent login", "Nothing was sent"}, blocks: true},
	{name: "old", script: `{"protocol_version": 7}`, words: []string{"speaks version 7 of ACP", "Nothing was sent"}},
	{name: "refuses", script: `{"answers": {"initialize": {"error": {"code": -32603, "message": "no disk"}}}}`, words: []string{"could not begin", "no disk", "Nothing was sent"}},
}

// An agent that can't begin fails its turn, or blocks its session, with a sentence; once it is mended the
// turn goes on.
// proves PRO-6 PRO-5
func TestACP_AnAgentIsMended(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		var all []*fake
		for _, b := range broken {
			all = append(all, w.fake(b.name, mend))
		}
		s := w.serve(flags(quick...), agents(all...))
		for i, b := range broken {
			t.Run(b.name, func(t *testing.T) {
				f := all[i]
				switch {
				case b.is == "-":
					if err := os.Remove(f.program); err != nil {
						t.Fatal(err)
					}
				case b.is == "x":
					if err := os.Chmod(f.program, 0o600); err != nil {
						t.Fatal(err)
					}
				case b.is != "":
					f.is(b.is)
				default:
					f.follows(b.script)
				}
				id := s.mission("Do it", f.by)
				var why string
				if b.blocks {
					s.untilQuiet(id, "blocked")
					why = s.events(id).of("session.blocked")[0].str("detail")
				} else {
					s.untilQuiet(id, "failed")
					why = s.events(id).of("turn.ended")[0].str("reason")
				}
				j := s.events(id)
				t.Log(why)
				for _, want := range b.words {
					if !strings.Contains(why, want) {
						t.Errorf("the turn failed: %q; want %q said", why, want)
					}
				}
				started := max(b.starts, 1)
				if b.alone {
					started = 0
				}
				wantCounts(t, j, map[string]int{"prompt.admitted": 1, "attempt.prepared": 0, "agent.started": started, "agent.ended": started})
				if err := os.Remove(f.program); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				f.is("exec " + agentBinary)
				f.follows(mend)
				if !b.alone {
					s.resume(id).want(t, http.StatusAccepted)
				}
				s.untilQuiet(id, "ready")
				wantSaid(w, s.events(id), "done")
				f.wantPrompts("Do it")
			})
		}
	})
}
