package runner_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp"
	"holdfast/store"
	"holdfast/store/storetest"
)

// together writes lines at once, as an agent does that has them all ready.
const together = `together() { printf '%s\n' "$@"; }
of() { id=$(printf '%s' "$l" | sed 's/.*"id":\([0-9]*\).*/\1/'); }
up() { printf '%s' '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":'"$1"'}}'; }
`

// What an agent says behind the answer to its prompt is no part of its attempt, also
// if it comes in the same write: a sign-in that is asked for is not forgotten by it.
//
// proves ATT-1 REC-11 CAL-8
func TestACP_SpeaksOnAfterItsAnswer(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]string{
		"usage":   `"$(up '{"sessionUpdate":"usage_update","used":1,"size":2}')"`,
		"text":    `"$(up '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Please log in."}}')"`,
		"call":    `"$(up '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"touch made","kind":"execute","status":"in_progress"}')"`,
		"plan":    `"$(up '{"sessionUpdate":"plan","entries":[{"content":"a","priority":"low","status":"pending"}]}')"`,
		"request": `'{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"touch made","kind":"execute"},"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"}]}}'`,
		"answer":  `'{"jsonrpc":"2.0","id":'$id',"result":{"stopReason":"end_turn"}}'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, together+`while read -r l; do case $l in *session/prompt*) of
if [ -e in ]; then text done; stop $id; else together '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32000,"message":"Authentication required"}}' `+after+`; fi;; esac; done`)
				b := setup(t, s, with)
				b.start()
				id := b.session("Do it", byFake)
				v := b.untilState(id, journal.StateBlocked)
				if v.State.Blocked.Cause != journal.BlockSignIn || v.State.Unknowns() != 0 {
					t.Errorf("%+v", v.State)
				}
				if err := os.WriteFile(filepath.Join(b.dir, "in"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := s.Continue(t.Context(), b.owner, id, nil); err != nil {
					t.Fatal(err)
				}
				b.untilState(id, journal.StateReady)
				events := storetest.Events(t, s, id)
				for kind, want := range map[journal.Kind]int{
					journal.KindStepRecovered: 0, journal.KindAttemptDispatched: 2, journal.KindAttemptFailed: 1, journal.KindAttemptSettled: 1,
					journal.KindCallProposed: 0, journal.KindAgentStarted: 1,
				} {
					if n := storetest.CountKind(events, kind); n != want {
						t.Errorf("%d %s, want %d", n, kind, want)
					}
				}
			})
		})
	}
}

// An answer that ends a turn in order is followed by more, too.
//
// proves ATT-1 CAL-8
func TestACP_SpeaksOnAfterItsTurn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, together+`while read -r l; do case $l in *session/prompt*) of
together "$(up '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"deploy","kind":"execute","status":"in_progress"}')" "$(up '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}')" \
'{"jsonrpc":"2.0","id":'$id',"result":{"stopReason":"end_turn"}}' "$(up '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"in_progress","content":[{"type":"content","content":{"type":"text","text":"late"}}]}')" \
"$(up '{"sessionUpdate":"tool_call","toolCallId":"t2","title":"late","kind":"execute","status":"in_progress"}')" "$(up '{"sessionUpdate":"usage_update","used":1,"size":2}')";; esac; done`)
		b := setup(t, s, with)
		b.start()
		id := b.session("Do it", byFake)
		for n := 1; n <= 2; n++ {
			b.until(id, "it has answered", func(v store.Session) bool {
				return v.State.Base == journal.StateReady && v.State.Turn.Number == n && v.Claim == nil
			})
			if n == 1 {
				b.submit(id, "Again", journal.Queue)
			}
		}
		if n := storetest.CountKind(storetest.Events(t, s, id), journal.KindCallProposed); n != 2 {
			t.Errorf("%d calls, want one of each turn: %s", n, b.dump(id))
		}
	})
}

// An agent that rests and doesn't stop talking, and can't go on in another process, holds
// up no message without a word: it is ended, and what is sent next fails before it is told.
// Of one that can see TestACP_FloodsAtRest.
//
// proves REC-11 CAL-8
func TestACP_DoesNotStopTalking(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		heard, with := scriptedWhole(t, strings.Replace(hello, `{"loadSession":true}`, `{}`, 1)+`hear; text one; stop 3; while :; do text more; done`, func(o *acp.Options) {
			o.OpenWithin, o.ExitWithin = 3*time.Second, time.Millisecond
		})
		b := setup(t, s, with)
		b.start()
		id := b.session("Do it", byFake)
		b.until(id, "it has answered", func(v store.Session) bool {
			return v.State.Base == journal.StateReady && v.State.Turn != nil && v.Claim == nil
		})
		b.submit(id, "Again", journal.Queue)
		v := b.until(id, "the turn has failed", func(v store.Session) bool { return v.State.Turn.Number == 2 && v.State.Turn.Outcome == journal.Failed })
		if v.State.Process != nil || v.State.Unknowns() != 0 || !strings.Contains(v.State.Turn.Reason, "did not stop talking") || !strings.Contains(v.State.Turn.Reason, "Nothing was sent") {
			t.Errorf("%+v %+v", v.State.Turn, v.State.Process)
		}
		if got, err := os.ReadFile(heard); err != nil || strings.Count(string(got), "session/prompt") != 1 {
			t.Errorf("the agent heard %q, %v; want one prompt", got, err)
		}
	})
}

// Lines that the journal refuses, and would refuse whenever they were read, end the
// agent's process: they aren't read again without end.
//
// proves REC-11 ATT-3 CAL-8
func TestACP_SaysWhatCantBeRecorded(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, `hear; echo up > up; read -r x < gate; text hello; text and; hear`)
		b := setup(t, s, with)
		gate, up := b.fifo("gate"), b.fifo("up")
		b.start()
		id := b.session("Do it", byFake)
		awaitLine(t, up)
		v := b.until(id, "it is told", func(v store.Session) bool { return len(v.State.Attempts) == 1 && v.Claim != nil })
		// As if it had been noted before: to note it again is refused.
		storetest.MustAppend(t, s, v.Claim, "", &journal.AttemptReceiving{AttemptID: v.State.Attempts[0]})
		open(t, gate)
		v = b.untilState(id, journal.StateUncertain)
		if len(v.State.UnknownAttempts) != 1 || v.State.Process != nil {
			t.Errorf("%+v", v.State)
		}
		dump := b.dump(id)
		for _, want := range []string{"doesn't fit what the journal has", `\"text\":\"hello\"`, "what it said can't be recorded"} {
			if !strings.Contains(dump, want) {
				t.Errorf("the journal doesn't say %q: %s", want, dump)
			}
		}
		if n := storetest.CountKind(storetest.Events(t, s, id), journal.KindStepRecovered); n != 0 {
			t.Errorf("%d recoveries", n)
		}
		b.untilShimsEnd()
	})
}

// A drain that fails whenever it follows its agent isn't taken up again without end.
//
// proves REC-11 ATT-3
func TestACP_CantBeFollowed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, `hear; text before; hear`)
		b := setup(t, s, with, brief)
		r := b.start()
		id := b.session("Do it", byFake)
		b.untilKind(id, journal.KindMessageDelta, 1)
		r.Stop()
		b.opts.Agents = append(b.opts.Agents[:1:1], failing{name: "fake", run: func(context.Context, *runner.Turn) (runner.Result, error) {
			return runner.Result{}, errors.New("on purpose")
		}})
		b.next()
		v := b.until(id, "it is given up", func(v store.Session) bool { return v.State.Blocked != nil && v.Claim == nil })
		if v.State.Blocked.Cause != journal.BlockRecovery || len(v.State.UnknownAttempts) != 1 || v.State.Process != nil {
			t.Errorf("%+v", v.State)
		}
		// One for the stop of the first server.
		if n := storetest.CountKind(storetest.Events(t, s, id), journal.KindStepRecovered); n != 1+journal.MaxRecoveries {
			t.Errorf("%d recoveries", n)
		}
		b.untilShimsEnd()
	})
}

// A stop ends what the commands of its turn have left behind, whatever their agent
// calls them, and although it says that they have ended.
//
// proves COO-4 COO-7
func TestACP_AStopEndsWhatRanBefore(t *testing.T) {
	t.Parallel()
	call := func(kind, status string) string {
		return `say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"look","kind":"` + kind + `","status":"` + status + `"}'`
	}
	for name, says := range map[string]string{"a look": call("read", "in_progress"), "what is done": call("execute", "completed"), "what has failed": call("execute", "failed")} {
		for _, can := range []string{`{"loadSession":true}`, `{}`} {
			t.Run(name+" "+can, func(t *testing.T) {
				t.Parallel()
				storetest.Each(t, func(t *testing.T, s *store.Store) {
					_, with := scriptedWhole(t, strings.Replace(hello, `{"loadSession":true}`, can, 1)+`hear; (setsid sh -c 'echo $$ > stray; trap "" HUP; sleep 1000 & wait' >/dev/null 2>&1 &)
until [ -s stray ]; do sleep 0.01; done; `+says+`; text on; hear; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}'; hear`)
					b := setup(t, s, with)
					b.start()
					id := b.session("Look", byFake)
					b.untilKind(id, journal.KindMessageDelta, 1)
					if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow); err != nil {
						t.Fatal(err)
					}
					v := b.untilState(id, journal.StateStopped)
					if pid, err := strconv.Atoi(strings.TrimSpace(b.file("stray"))); err != nil || syscall.Kill(pid, 0) == nil {
						t.Errorf("process %d lives (%v)", pid, err)
					}
					if (v.State.Process != nil) != (can == `{}`) {
						t.Errorf("its process is %+v", v.State.Process)
					}
				})
			})
		}
	}
}

// flips is an agent that changes a setting to and fro, many times and never twice to
// the same: whatever of it is committed alone would be an event of its own.
const flips = `is() { say '{"sessionUpdate":"config_option_update","configOptions":[{"id":"model","name":"Model '$2'","type":"select","currentValue":"'$1'","options":[{"value":"a","name":"A"},{"value":"b","name":"B"},{"value":"c","name":"C"},{"value":"d","name":"D"}]}]}'; }
flip() { i=0; while [ $i -lt 40 ]; do i=$((i+1)); is a $i; sleep 0.01; is b $i; sleep 0.01; done; is $1; }
`

// An agent that changes a setting to and fro fills no journal with it: while it says
// nothing else that is journalled once in a while, and the last value before its answer
// and between two turns.
//
// proves JRN-5
func TestACP_Flips(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, flips+`hear; flip c; stop 3; flip d; echo up > up; hear; stop 4; hear`, func(o *acp.Options) { o.FlipPause = time.Hour })
		b := setup(t, s, with)
		up := b.fifo("up")
		b.start()
		id := b.session("One", byFake)
		b.until(id, "it has answered", func(v store.Session) bool { return v.State.Base == journal.StateReady && v.Claim == nil })
		awaitLine(t, up)
		b.submit(id, "Two", journal.Queue)
		v := b.until(id, "it has answered twice", func(v store.Session) bool {
			return v.State.Base == journal.StateReady && v.State.Turn.Number == 2 && v.Claim == nil
		})
		if got := v.State.Option("model"); got.Current != "d" {
			t.Errorf("in the end it is %+v", got)
		}
		n, now, first := 0, "", ""
		for _, ev := range storetest.Events(t, s, id) {
			body, err := ev.Decode()
			if err != nil {
				t.Fatal(err)
			}
			switch body := body.(type) {
			case *journal.AgentOptions:
				n, now = n+1, body.Options[0].Current
			case *journal.AttemptSettled:
				first = cmp.Or(first, now)
			}
		}
		// The first word of the first turn and the last; behind its answer, at rest, and before the next answer.
		if n > 5 || first != "c" {
			t.Errorf("it was journalled %d times, and was %q at its first answer", n, first)
		}
	})
}

// What was held is journalled after a pause, although the agent says no more.
//
// proves JRN-5
func TestACP_FlipsAndFallsSilent(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, flips+`hear; is a 1; read -r x < gate; is c 2; read -r x < end; stop 3; hear`)
		b := setup(t, s, with)
		gate, end := b.fifo("gate"), b.fifo("end")
		b.start()
		id := b.session("One", byFake)
		says := func(value string) {
			t.Helper()
			b.until(id, "it is journalled that the model is "+value, func(v store.Session) bool {
				o := v.State.Option("model")
				return o != nil && o.Current == value
			})
		}
		says("a")
		open(t, gate)
		says("c")
		open(t, end)
		b.untilState(id, journal.StateReady)
	})
}
