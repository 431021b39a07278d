package runner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner/acp"
	"holdfast/store"
	"holdfast/store/storetest"
)

// announcesFor has it left open for so long whether an agent asks for what it says runs.
func announcesFor(d time.Duration) func(*acp.Options) {
	return func(o *acp.Options) { o.Announces = d }
}

// What an agent said before it began with a call stands there at once; so does the call
// when it puts something out: it has begun without asking.
//
// proves JRN-5 CAL-7
func TestACP_WhatIsSaidBeforeACallDoesNotWait(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, `hear; text 'I begin.'
say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"make","kind":"execute","status":"pending","rawInput":{"command":"make"}}'
say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"in_progress"}'
read -r x < gate
say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"in_progress"}'
say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"in_progress","content":[{"type":"content","content":{"type":"text","text":"line 1"}}]}'
read -r x < gate
say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}'
stop 3; read -r l`, announcesFor(time.Hour))
		b := setup(t, s, with)
		gate := b.fifo("gate")
		b.start()
		id := b.session("Do it", byFake)
		b.untilKind(id, journal.KindMessageDelta, 1)
		b.untilKind(id, journal.KindCallProposed, 1)
		if n := storetest.CountKind(storetest.Events(t, s, id), journal.KindCallDispatched); n != 0 {
			t.Errorf("it may still ask, and was dispatched: %s", b.dump(id))
		}
		open(t, gate)
		b.untilKind(id, journal.KindCallOutput, 1)
		open(t, gate)
		b.untilState(id, journal.StateReady)
		if n := storetest.CountKind(storetest.Events(t, s, id), journal.KindCallDispatched); n != 1 {
			t.Errorf("it was dispatched %d times: %s", n, b.dump(id))
		}
	})
}

// What an agent says that it runs, and asks nobody for, began when it said so: not when it
// was sure that it doesn't ask.
//
// proves CAL-3
func TestACP_ACallBeganWhenItsAgentSaidSo(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const held = 1100 * time.Millisecond
		_, with := scripted(t, `hear
say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"make","kind":"execute","status":"in_progress","rawInput":{"command":"make"}}'
read -r x < gate
say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}'
stop 3; read -r l`, announcesFor(held))
		b := setup(t, s, with)
		gate := b.fifo("gate")
		b.start()
		id := b.session("Do it", byFake)
		b.untilKind(id, journal.KindCallDispatched, 1)
		open(t, gate)
		b.untilState(id, journal.StateReady)
		calls, err := s.Calls(t.Context(), b.owner, id, 0)
		if err != nil || len(calls) != 1 || calls[0].RanMS == nil {
			t.Fatalf("%+v, %v", calls, err)
		}
		var written int64
		for _, ev := range storetest.Events(t, s, id) {
			if ev.Kind == journal.KindCallDispatched {
				written = ev.Time
			}
		}
		if ago, ran := written-calls[0].DispatchedAt, *calls[0].RanMS; ago < held.Milliseconds() || ran < held.Milliseconds() {
			t.Errorf("it is said to have begun %d ms before it was written down, and to have run %d ms; its word was held for %s", ago, ran, held)
		}
	})
}

// A request that leaves out a part of what its call was told with asks for all of it: to
// say that part again afterwards is nothing new.
//
// proves PER-2
func TestACP_ARequestMayLeaveOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asks string
		says []string // what is asked, besides its command
		anew int      // said of it after the answer
	}{
		"a part of it":  {`{"command":"touch made"}`, []string{"/elsewhere", "Run it"}, 0},
		"all of it":     {`{"cwd":"/elsewhere","command":"touch made","description":"Run it"}`, []string{"/elsewhere", "Run it"}, 0},
		"another of it": {`{"command":"touch made","cwd":"/there"}`, []string{"/there"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				const full = `"rawInput":{"command":"touch made","description":"Run it","cwd":"/elsewhere"}}'`
				body := strings.Replace(askRun, `"rawInput":{"command":"touch made"}}'`, full, 1)
				body = strings.Replace(body, `"toolCall":{"toolCallId":"t1"}`, `"toolCall":{"toolCallId":"t1","rawInput":`+c.asks+`}`, 1)
				body = strings.Replace(body, "echo ran >> made\n", "say '"+`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"in_progress",`+full+"\n", 1)
				_, with := scripted(t, body+"read -r l")
				b := setup(t, s, with)
				b.start()
				id := b.session("Do it", byFake, asking)
				b.untilKind(id, journal.KindPermissionAsked, 1)
				asked := ""
				for _, r := range b.pending(id) {
					call, err := s.Call(t.Context(), b.owner, r.Tool.CallID)
					if err != nil {
						t.Fatal(err)
					}
					asked = string(call.Input)
				}
				for _, says := range c.says {
					if !strings.Contains(asked, says) {
						t.Errorf("what is asked is %s, without %q", asked, says)
					}
				}
				for _, r := range b.pending(id) {
					b.decide(r.ID, store.Decision{Reply: journal.ReplyOnce, Digest: r.Digest})
				}
				b.untilState(id, journal.StateReady)
				if n := storetest.CountKind(storetest.Events(t, s, id), journal.KindCallContradicted); n != c.anew {
					t.Errorf("it said something else %d times, want %d: %s", n, c.anew, b.dump(id))
				}
			})
		})
	}
}

// What an agent says that it runs, and then asks for, has not begun before the answer:
// also if its agent is stopped, or gone, before anybody could be asked.
//
// proves COO-4 CAL-7 PER-6
func TestACP_AsksForWhatItSaidToRunWhenItIsStopped(t *testing.T) {
	t.Parallel()
	const ask = `echo '{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"deploy","kind":"execute"},"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"}]}}'; `
	for name, c := range map[string]struct {
		asks string
		want journal.CallState
	}{
		"asked":     {ask + `read -r l; `, journal.CallCancelled},
		"not asked": {``, journal.CallIsUnknown},
		"asked when it had put something out": {`say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"in_progress","content":[{"type":"content","content":{"type":"text","text":"line 1"}}]}'
` + ask + `read -r l; `, journal.CallIsUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, `hear; say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"deploy","kind":"execute","status":"in_progress"}'
read -r l; `+c.asks+`exit 3`, func(o *acp.Options) { o.Announces, o.ExitWithin = time.Millisecond, time.Second })
				b := setup(t, s, with)
				b.start()
				id := b.session("One", byFake, asking)
				b.untilKind(id, journal.KindCallDispatched, 1)
				must(t, s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow))
				b.untilState(id, journal.StateUncertain) // nobody knows what became of the prompt
				calls, err := s.Calls(t.Context(), b.owner, id, 0)
				if err != nil || len(calls) != 1 || calls[0].State != c.want {
					t.Errorf("of %d calls, %v: want one that is %s, and its events are\n%s", len(calls), err, c.want, b.dump(id))
				}
			})
		})
	}
}

// A call that was said to run and has put something out has begun, also if that is held back
// as it may begin a secret, or was told without saying once more that it runs: it is never
// said not to have run.
//
// proves CAL-7 PER-6 JRN-8
func TestACP_HasPutSomethingOutBeforeItAsks(t *testing.T) {
	t.Parallel()
	const secret = "sk-verysecret-0123456789"
	const ask = `perm 7 t1 deploy "$both"; `
	const more = `say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","content":[{"type":"content","content":{"type":"text","text":"TEXT"}}]}'; `
	begins, line, goesOn := strings.Replace(more, "TEXT", secret[:9], 1), strings.Replace(more, "TEXT", "line 1", 1), strings.Replace(more, "TEXT", secret, 1)
	for name, c := range map[string]struct {
		does string
		open time.Duration // how long it is left open whether it asks
	}{
		"held back":                  {`read -r x < gate; ` + begins + ask, time.Millisecond},
		"held back, and goes on":     {`read -r x < gate; ` + begins + ask + goesOn, time.Millisecond},
		"held back when it asks":     {`read -r x < gate; ` + ask + begins, time.Millisecond},
		"without a status":           {line + ask, time.Hour},
		"without a status, and held": {begins + ask, time.Hour},
	} {
		for _, stops := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, stopped %t", name, stops), func(t *testing.T) {
				t.Parallel()
				storetest.Each(t, func(t *testing.T, s *store.Store) {
					_, with := scripted(t, tells+`hear; call t1 deploy in_progress; `+c.does+`text asked; hear; stop 3; read -r l`, announcesFor(c.open))
					b := setup(t, s, with)
					b.s.Mask(b.owner, secret)
					gate := b.fifo("gate")
					b.start()
					id := b.session("Do it", byFake, asking)
					if c.open < time.Second {
						b.untilKind(id, journal.KindCallDispatched, 1)
						open(t, gate)
					}
					b.untilKind(id, journal.KindPermissionAsked, 1)
					b.untilKind(id, journal.KindMessageDelta, 1)
					if stops {
						must(t, s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow))
					} else {
						b.decide(b.pending(id)[0].ID, store.Decision{Reply: journal.ReplyReject})
					}
					b.until(id, "it is over", func(v store.Session) bool {
						return v.Claim == nil && (v.State.Unknowns() > 0 || v.State.Base == journal.StateReady)
					})
					if got := b.callsOf(id); !strings.Contains(got, "unknown by agent") {
						t.Errorf("calls %s\n%s", got, b.dump(id))
					}
					if said := b.dump(id); strings.Contains(said, "secret-0") {
						t.Errorf("it shows a secret: %s", said)
					}
				})
			})
		}
	}
}

// What a call has put out is known of it after a restart, too: it is never said not to have
// run, and its output is counted where it is settled.
//
// proves CAL-4 CAL-7 COO-4
func TestACP_HasPutSomethingOutBeforeARestart(t *testing.T) {
	t.Parallel()
	const byItself = `hear; call t1 deploy in_progress; out t1 in_progress out; perm 7 t1 deploy "$both"; text asked; `
	const allowed = `hear; perm 7 t1 deploy "$both"; hear; out t1 in_progress out; text asked; `
	for name, c := range map[string]struct {
		does, want string
		ends       func(t *testing.T, b *bench, id string)
	}{
		"taken back": {byItself + `read -r x < gate; echo '{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}'; hear; stop 3; read -r l`, "unknown by agent", func(*testing.T, *bench, string) {}},
		"stopped": {byItself + `read -r x < gate; hear; stop 3; read -r l`, "unknown by agent", func(t *testing.T, b *bench, id string) {
			must(t, b.s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow))
		}},
		"rejected": {byItself + `read -r x < gate; hear; stop 3; read -r l`, "unknown by agent", func(_ *testing.T, b *bench, id string) {
			b.decide(b.pending(id)[0].ID, store.Decision{Reply: journal.ReplyReject, Message: "no"})
		}},
		"its agent dies": {byItself + `read -r x < gate; kill -9 $$`, "unknown by agent", func(*testing.T, *bench, string) {}},
		"let run, and stopped": {allowed + `read -r x < gate; hear; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}'; read -r l`, "deploy: cancelled", func(t *testing.T, b *bench, id string) {
			must(t, b.s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, tells+c.does, announcesFor(time.Millisecond))
				b := setup(t, s, with, brief)
				gate := b.fifo("gate")
				r := b.start()
				id := b.session("Do it", byFake, asking)
				b.untilKind(id, journal.KindPermissionAsked, 1)
				if name == "let run, and stopped" {
					b.allowAny(id)
				}
				b.untilKind(id, journal.KindMessageDelta, 1)
				b.restart(r, id)
				c.ends(t, b, id)
				open(t, gate)
				b.until(id, "it is over", func(v store.Session) bool {
					return v.Claim == nil && v.State.Base != journal.StateRunning && v.State.Base != journal.StateWaiting
				})
				if got := b.callsOf(id); !strings.Contains(got, c.want) {
					t.Errorf("calls %s\n%s", got, b.dump(id))
				}
				calls, err := s.Calls(t.Context(), b.owner, id, 0)
				if err != nil || len(calls) != 1 || calls[0].OutputBytes != 3 {
					t.Errorf("%d bytes of output, %v\n%s", calls[0].OutputBytes, err, b.dump(id))
				}
			})
		})
	}
}
