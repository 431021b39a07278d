package runner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// outsides are what the journal has of what an agent did outside of turns.
func outsides(t *testing.T, evs []journal.Event) (out []string) {
	t.Helper()
	for i := range evs {
		body, err := evs[i].Decode()
		if err != nil {
			t.Fatal(err)
		}
		switch b := body.(type) {
		case *journal.AgentEvent:
			what := "call"
			for _, word := range []string{"in_progress", "completed", "request_permission", "agent_message_chunk"} {
				if strings.Contains(b.Raw.S, word) {
					what = word
				}
			}
			out = append(out, fmt.Sprintf("%s %s %v", b.Outside, what, b.Refused))
		case *journal.MessageCompleted:
			out = append(out, strings.TrimSpace(string(b.Outside)+" "+b.Text.S))
		case *journal.PromptPromoted:
			out = append(out, "prompt")
		}
	}
	return out
}

const inOther = `other() { echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s2","update":'"$1"'}}'; }
out() { echo '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"'$1'","content":[{"type":"content","content":{"type":"text","text":"'$2'"}}]}'; }
`

// What an agent does while it has nothing to do, or in another session of its own, is in
// the journal: no call of a turn, but as it came. What it says meanwhile is told from the
// answer to the message that it was read behind.
//
// proves JRN-1 CAL-1 RDR-1
func TestACP_WhatItDoesOutsideOfTurns(t *testing.T) {
	t.Parallel()
	const tool = `{"sessionUpdate":"tool_call","toolCallId":"t1","title":"rm -rf x","kind":"execute","status":"in_progress","rawInput":{"command":"rm -rf x"}}`
	for name, c := range map[string]struct {
		script string
		want   []string
	}{
		"behind its answer": { // which may be read with it, or with the next prompt
			`hear; text one; stop 3; say '` + tool + `'; say "$(out in_progress a)"; say "$(out completed ab)"; text late; hear; text two; stop 4; read -r l`,
			[]string{"one", "turn in_progress false", "turn completed false", "turn late", "two"},
		},
		"at rest": {
			`hear; text one; stop 3; read -r x < gate; say '` + tool + `'; say "$(out in_progress a)"; say "$(out in_progress ab)"; say "$(out completed abc)"; text late; echo up > up; hear; text two; stop 4; read -r l`,
			[]string{"prompt", "one", "prompt", "turn in_progress false", "turn completed false", "turn late", "two"},
		},
		"it asks at rest": {
			`hear; text one; stop 3; read -r x < gate; echo '{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1"},"options":[]}}'; echo up > up; hear; hear; text two; stop 5; read -r l`,
			[]string{"prompt", "one", "prompt", "turn request_permission true", "two"},
		},
		"in another session": {
			`hear; text one; other '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hm"}}'; other '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hm"}}'
other '{"sessionUpdate":"available_commands_update","availableCommands":[]}'
other '` + tool + `'; other "$(out in_progress a)"; other "$(out completed ab)"
echo '{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s2","toolCall":{"toolCallId":"t2"},"options":[]}}'; hear
stop 3; hear; text two; stop 5; read -r l`,
			[]string{"prompt", "session agent_message_chunk false", "session in_progress false", "session completed false", "session request_permission true", "one", "prompt", "two"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, inOther+c.script)
				b := setup(t, s, with)
				gate, up := b.fifo("gate"), b.fifo("up")
				b.start()
				id := b.session("Begin", byFake)
				b.untilState(id, journal.StateReady)
				if strings.Contains(c.script, "< gate") {
					open(t, gate)
					awaitLine(t, up)
				}
				b.submit(id, "More", journal.Queue)
				b.until(id, "it has answered twice", func(v store.Session) bool {
					return v.State.Base == journal.StateReady && v.State.Turn.Number == 2 && v.Claim == nil
				})
				evs := storetest.Events(t, s, id)
				got := outsides(t, evs)
				if !slices.Contains(c.want, "prompt") {
					got = slices.DeleteFunc(got, func(what string) bool { return what == "prompt" })
				}
				if strings.Join(got, "|") != strings.Join(c.want, "|") {
					t.Errorf("the journal has\n%q, want\n%q", got, c.want)
				}
				if n := storetest.CountKind(evs, journal.KindCallProposed); n != 0 {
					t.Errorf("%d calls of turns, want none", n)
				}
				storetest.CheckInvariants(t, s)
			})
		})
	}
}

// What is kept so is bounded, and the last of it says that there may be more.
//
// proves JRN-6
func TestACP_AFloodOutsideOfTurns(t *testing.T) {
	t.Parallel()
	s := storetest.New(t, "sqlite").Open(t)
	_, with := scripted(t, inOther+`hear; n=0; while [ $n -lt 600 ]; do n=$((n+1)); other '{"sessionUpdate":"tool_call","toolCallId":"t'$n'","title":"x","status":"in_progress"}'; done; stop 3; read -r l`)
	b := setup(t, s, with)
	b.start()
	id := b.session("Begin", byFake)
	b.untilState(id, journal.StateReady)
	evs := storetest.Events(t, s, id)
	if n, last := storetest.CountKind(evs, journal.KindAgentEvent), storetest.Body[*journal.AgentEvent](t, evs); n != 500 || !last.More || !strings.Contains(last.Raw.S, `"t500"`) {
		t.Errorf("%d events, the last %+v; want 500, and that it says that there may be more", n, last)
	}
}

// An agent that takes up another conversation than the one it was asked for isn't told
// anything in it.
//
// proves REC-12
func TestACP_TakesUpAnotherConversation(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		heard, with := scriptedWhole(t, `if [ -e begun ]; then echo up > begun; read -r l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}'
read -r l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s2"}}'; while read -r l; do printf '%s\n' "$l" >> "$HEARD"; done; exit; fi
`+hello+`: > begun; hear; stop 3; exit`)
		b := setup(t, s, with)
		b.start()
		id := b.session("Begin", byFake)
		b.untilState(id, journal.StateReady)
		b.untilShimsEnd() // it has ended, so nothing is given to it
		b.submit(id, "More", journal.Queue)
		v := b.untilState(id, journal.StateFailed)
		evs := storetest.Events(t, s, id)
		forgotten, end := storetest.Body[*journal.AgentForgotten](t, evs), storetest.Body[*journal.TurnEnded](t, evs)
		if !strings.Contains(end.Reason, "another conversation") || forgotten.How != journal.AskedToLoad || !forgotten.MayPass || v.State.Process != nil || v.State.AgentSession != "s1" {
			t.Errorf("it ended with %q, forgotten %+v, in %+v", end.Reason, forgotten, v.State)
		}
		if got := promptsHeard(t, heard); len(got) != 1 {
			t.Errorf("the agent was told %q", got)
		}
	})
}
