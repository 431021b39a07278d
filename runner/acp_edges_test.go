package runner_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

const needsLogin = `{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"token expired"}}`

// What an agent that asks for a sign-in may have worked on is not sent again, in whatever
// form it told of its work; what tells of none is no work.
//
// proves ATT-3 CAL-7
func TestACP_SignInAfterWork(t *testing.T) {
	t.Parallel()
	tool := func(session, status string) string {
		return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"` + session + `","update":{"sessionUpdate":"tool_call","toolCallId":"t1","title":"touch made","kind":"execute","status":"` + status + `"}}}`
	}
	for name, c := range map[string]struct {
		line    string
		answers bool
		again   bool
	}{
		"a line that can't be read": {line: `log: ` + tool("s1", "completed")},
		"another session's":         {line: tool("sub", "completed")},
		"a request that is refused": {line: `{"jsonrpc":"2.0","id":0,"method":"fs/write_text_file","params":{"sessionId":"s1","path":"made","content":"x"}}`, answers: true},
		"of a kind unknown":         {line: `{"jsonrpc":"2.0","method":"_vendor/did","params":{"sessionId":"s1","tool":"touch made"}}`},
		"an answer to nothing":      {line: `{"jsonrpc":"2.0","id":2,"result":{}}`},
		"half a line":               {line: `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","upd`},
		"its commands":              {line: `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}}`, again: true},
		"its title":                 {line: `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"session_info_update","title":"Work"}}}`, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				hears := ""
				if c.answers {
					hears = "hear; "
				}
				heard, with := scripted(t, `hear; echo '`+c.line+`'; `+hears+`echo '`+needsLogin+`'; read -r l`)
				b := setup(t, s, with)
				b.start()
				id := b.session("Do it", byFake)
				want, failed := journal.StateFailed, 0
				if c.again {
					want, failed = journal.StateBlocked, 1
				}
				b.untilState(id, want)
				events := storetest.Events(t, s, id)
				if n := storetest.CountKind(events, journal.KindAttemptFailed); n != failed || storetest.CountKind(events, journal.KindAttemptSettled) != 1-failed {
					t.Errorf("%d attempts have failed, want %d:\n%s", n, failed, b.dump(id))
				}
				if got, err := os.ReadFile(heard); err != nil || strings.Count(string(got), `"text":"Do it"`) != 1 {
					t.Errorf("the agent heard %q, %v", got, err)
				}
			})
		})
	}
}

// An agent that answers a stop by asking for a sign-in is told nothing again by itself,
// and nobody is told that it is.
//
// proves COO-4
func TestACP_SignInAtAStop(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		heard, with := scripted(t, `hear; echo up > up; hear; echo '`+needsLogin+`'; read -r l`)
		b := setup(t, s, with)
		up := b.fifo("up")
		b.start()
		id := b.session("Do it", byFake)
		awaitLine(t, up)
		if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow); err != nil {
			t.Fatal(err)
		}
		v := b.untilState(id, journal.StateStopped)
		if strings.Contains(b.dump(id), "sent again") || v.State.Blocked != nil || v.State.Unknowns() != 0 {
			t.Errorf("%+v\n%s", v.State, b.dump(id))
		}
		if got, err := os.ReadFile(heard); err != nil || strings.Count(string(got), "session/prompt") != 1 {
			t.Errorf("the agent heard %q, %v", got, err)
		}
	})
}

// What comes together stands in the journal as it came.
//
// proves JRN-8 JRN-7
func TestACP_OrderOfWhatComes(t *testing.T) {
	t.Parallel()
	text := func(s string) string {
		return ` "$(up '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + s + `"}}')" `
	}
	for name, line := range map[string]string{
		"a notification": `'{"jsonrpc":"2.0","method":"_x/SECOND","params":{}}'`,
		"a notice":       `"$(up '{"sessionUpdate":"notice","severity":"info","title":"SECOND"}')"`,
		"a content":      `"$(up '{"sessionUpdate":"agent_message_chunk","content":{"type":"resource_link","uri":"file:///SECOND","name":"x"}}')"`,
		"rubbish":        `'SECOND'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, together+`hear; together`+text("FIRST")+line+text("THIRD")+`; stop 3; read -r l`)
				b := setup(t, s, with)
				b.start()
				id := b.session("Do it", byFake)
				b.untilState(id, journal.StateReady)
				d := b.dump(id)
				first, second, third := strings.Index(d, "FIRST"), strings.Index(d, "SECOND"), strings.Index(d, "THIRD")
				if first < 0 || second < first || third < second {
					t.Errorf("they stand at %d, %d and %d:\n%s", first, second, third, d)
				}
			})
		})
	}
}

// What a process wrote last without a line feed is heard: its text stands in the journal,
// an answer that stands there whole is one, and what can't be read is shown.
//
// proves ATT-4 ATT-1
func TestACP_TheLastLineWithoutALineFeed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body, says string
		ends       journal.ExecutionState
	}{
		"a text":          {`printf %s "$(text 'I HAVE DELETED IT')"; exit 0`, "I HAVE DELETED IT", journal.StateUncertain},
		"its answer":      {`printf %s "$(stop 3)"; exit 0`, "end_turn", journal.StateReady},
		"its late answer": {`printf %s "$(stop 3)"; exec sleep 1000`, "end_turn", journal.StateReady},
		"half of it":      {`printf %s '{"jsonrpc":"2.0","id":3,"res'; exit 0`, `"unread":true`, journal.StateUncertain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, `hear; `+c.body, quietFor(200*time.Millisecond))
				b := setup(t, s, with)
				b.start()
				id := b.session("Do it", byFake)
				b.until(id, "it has ended", func(v store.Session) bool {
					return v.State.Base == c.ends && v.State.Process == nil && v.State.Turn != nil
				})
				if d := b.dump(id); !strings.Contains(d, c.says) {
					t.Errorf("it doesn't say %q:\n%s", c.says, d)
				}
			})
		})
	}
}

// An agent whose line could not be read, and that is told what a person decided long
// after, may be silent for as long again.
//
// proves PER-6 ATT-3
func TestACP_RubbishWhileAPersonIsAway(t *testing.T) {
	t.Parallel()
	for _, reply := range []store.Decision{{Reply: journal.ReplyOnce}, {Reply: journal.ReplyReject, Message: "not that"}} {
		t.Run(string(reply.Reply), func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				const patience = 2 * time.Second
				_, with := scripted(t, `hear
say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"touch made","kind":"execute","status":"pending","rawInput":{"command":"touch made"}}'
echo '{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1"},"options":[{"optionId":"no","kind":"reject_once","name":"No"},{"optionId":"yes","kind":"allow_once","name":"Yes"}]}}'
read -r x < gate; echo 'waiting for permission...'
hear; sleep 0.3
say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"failed"}'
stop 3; while hear; do stop 5; stop 6; done`, quietFor(patience))
				b := setup(t, s, with)
				gate := b.fifo("gate")
				b.start()
				id := b.session("Do it", byFake, asking)
				b.untilKind(id, journal.KindPermissionAsked, 1)
				open(t, gate)
				b.untilKind(id, journal.KindAgentEvent, 1)
				<-time.After(4 * patience) // longer than it may be silent, also while a call runs
				b.decide(b.pending(id)[0].ID, reply)
				v := b.until(id, "ended", func(v store.Session) bool {
					return v.Claim == nil && (v.State.Base == journal.StateReady || v.State.Base == journal.StateUncertain)
				})
				if v.State.Base != journal.StateReady {
					t.Errorf("%s:\n%s", v.State.Base, b.dump(id))
				}
			})
		})
	}
}

// A secret that an agent spells in the escapes of JSON is masked wherever what it wrote
// becomes text: in the reason of a turn, in lines that can't be read, in last words.
//
// proves OWN-3 JRN-8
func TestACP_SpellsASecretInEscapes(t *testing.T) {
	t.Parallel()
	const secret, spelt, begins = "s3cr3t-value-1", `s3cr3t\u002dvalue\u002d1`, `read -r l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}'
read -r l; `
	prints := func(line string) string { return `printf '%s\n' '` + line + `'; ` }
	for name, body := range map[string]string{
		"the answer to initialize":  prints(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no","data":"`+spelt+`"}}`) + `read -r l`,
		"the answer to session/new": begins + prints(`{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"no","data":{"env":"`+spelt+`"}}}`) + `read -r l`,
		"a stray while it opens":    prints(`log {"env":"`+spelt+`"}`) + `exit 3`,
		"its last words":            prints(`log {"env":"`+spelt+`"}`) + `exit 3`,
		"a line that was cut off":   hello + `hear; ` + prints(`{"jsonrpc":"2.0","method":"x","params":{"env":"`+spelt+`"}`) + `stop 3; read -r l`,
		"an answer behind words":    hello + `hear; ` + prints(`log {"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","x":"`+spelt+`"}}`) + `read -r l`,
	} {
		if name == "its last words" {
			body = "exec 1>&2; " + body
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scriptedWhole(t, body)
				b := setup(t, s, with)
				s.Mask(b.owner, secret)
				b.start()
				id := b.session("Do it", byFake)
				b.until(id, "it has ended", func(v store.Session) bool { return v.Claim == nil && v.State.Turn != nil && !v.State.TurnOpen() })
				if d := b.dump(id); !strings.Contains(d, journal.Hidden) || strings.Contains(d, "s3cr3t") || strings.Contains(d, "u002d") {
					t.Errorf("%s", d)
				}
			})
		})
	}
}

// A server that is lost just when it has written that an agent's process can't be worked
// with any more leaves nothing that waits for ever: who comes next ends the process.
//
// proves REC-10 ATT-3
func TestACP_AFaultOutlivesItsServer(t *testing.T) {
	t.Parallel()
	for _, fault := range []journal.AgentFault{journal.FaultHiddenID, journal.FaultUnrecordable} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, `hear; echo up > up; while read -r l; do :; done`, quietFor(time.Hour))
				b := setup(t, s, with, brief)
				up := b.fifo("up")
				r := b.start()
				id := b.session("Do it", byFake)
				awaitLine(t, up)
				v := b.until(id, "it is told", func(v store.Session) bool { return len(v.State.Attempts) == 1 && v.Claim != nil })
				r.Stop()
				storetest.MustAppend(t, s, v.Claim, "", &journal.AgentEvent{ProcessID: v.State.Process.ID, Raw: journal.T("what it said"), Ends: fault})
				b.next()
				if v := b.untilState(id, journal.StateUncertain); v.State.Process != nil || len(v.State.UnknownAttempts) != 1 {
					t.Errorf("%+v", v.State)
				}
			})
		})
	}
}
