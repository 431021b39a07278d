package runner_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// tells are helpers of agents that are scripts: a call, news of it, and a request.
const tells = `call() { say '{"sessionUpdate":"tool_call","toolCallId":"'"$1"'","title":"'"$2"'","kind":"execute","status":"'"$3"'","rawInput":{"command":"'"$2"'"}}'; }
news() { say '{"sessionUpdate":"tool_call_update","toolCallId":"'"$1"'","status":"'"$2"'"'"$3"'}'; }
out() { news "$1" "$2" ',"content":[{"type":"content","content":{"type":"text","text":"'"$3"'"}}]'; }
perm() { printf '%s\n' '{"jsonrpc":"2.0","id":'"$1"',"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"'"$2"'","title":"'"$3"'","kind":"execute","rawInput":{"command":"'"$3"'"}},"options":'"$4"'}}'; }
both='[{"optionId":"yes","kind":"allow_once","name":"Yes"},{"optionId":"no","kind":"reject_once","name":"No"}]'
`

// callsOf says what the calls of a session are, in their order.
func (b *bench) callsOf(id string) string {
	b.t.Helper()
	calls, err := b.s.Calls(b.t.Context(), b.owner, id, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	var out []string
	for i, c := range calls {
		by := ""
		if c.AllowedBy != nil {
			by = " by " + string(c.AllowedBy.Type)
		}
		out = append(out, fmt.Sprintf("%s: %s%s, %q", c.Title(), c.State, by, b.output(id, i)))
	}
	return strings.Join(out, "; ")
}

// Providers name calls anew in each answer: what comes under the id of a call that has
// ended is another call. What an agent says late of one that has ended, or once more of
// one that is open, is none.
//
// proves CAL-1 CAL-7
func TestACP_TheNextCallOfOneID(t *testing.T) {
	t.Parallel()
	const first = `call c0 ls pending; news c0 in_progress; out c0 completed one; `
	for name, c := range map[string]struct{ does, want string }{
		"announced":             {first + `call c0 'rm data' pending; out c0 completed two`, `ls: succeeded by agent, "one"; rm data: succeeded by agent, "two"`},
		"of the same input":     {first + `call c0 ls pending; out c0 completed two`, `ls: succeeded by agent, "one"; ls: succeeded by agent, "two"`},
		"told when it is done":  {first + `call c0 'rm data' completed`, `ls: succeeded by agent, "one"; rm data: succeeded by agent, ""`},
		"by an update":          {first + `news c0 in_progress ',"title":"rm data","rawInput":{"command":"rm data"}'; out c0 failed two`, `ls: succeeded by agent, "one"; rm data: failed by agent, "two"`},
		"by a last update":      {first + `news c0 completed ',"title":"rm data","kind":"execute","rawInput":{"command":"rm data"}'`, `ls: succeeded by agent, "one"; rm data: succeeded by agent, ""`},
		"three":                 {first + `call c0 b in_progress; news c0 failed; call c0 c pending; news c0 failed`, `ls: succeeded by agent, "one"; b: failed by agent, ""; c: failed by agent, ""`},
		"named like the second": {first + `call 'c0#2' b completed; call c0 c completed`, `ls: succeeded by agent, "one"; b: succeeded by agent, ""; c: succeeded by agent, ""`},
		"a late word":           {first + `out c0 completed more; news c0 in_progress; news c0 '' ',"title":"List"'; out c0 completed one; news c0 failed`, `ls: succeeded by agent, "one"`},
		"its end first":         {`out c0 completed one; call c0 ls pending`, `other: succeeded by agent, "one"`},
		"told piece by piece":   {`call c0 '' pending; call c0 ls pending; call c0 ls in_progress; out c0 completed one`, `ls: succeeded by agent, "one"`},
		"in one write": {
			`together "$(call c0 ls in_progress)" "$(out c0 completed one)" "$(call c0 b in_progress)" "$(perm 0 c0 b "$none")"; hear; news c0 failed`,
			`ls: succeeded by agent, "one"; b: refused, ""`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, tells+together+"none='[]'; hear; "+c.does+`; stop 3; read -r l`)
				b := setup(t, s, with)
				b.start()
				id := b.session("Do it", byFake)
				b.untilState(id, journal.StateReady)
				if got := b.callsOf(id); got != c.want {
					t.Errorf("calls\n  %s\nwant\n  %s\n%s", got, c.want, b.dump(id))
				}
				if report, err := s.Verify(t.Context(), store.VerifyOptions{}); err != nil || !report.OK() {
					t.Errorf("verify says %+v, %v", report.Checks, err)
				}
			})
		})
	}
}

// Who asks whether a call may run under the id of one that has ended, by its own word or
// since a person has refused it, asks for another: a person is asked, also if the server
// was lost in between.
//
// proves PER-1 PER-6 REC-7 CAL-1
func TestACP_AsksForTheNextCallOfOneID(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply          journal.Reply
		message        string
		ends, want     string
		restartBetween bool
	}{
		"one that has ended":           {journal.ReplyOnce, "", "out c0 completed one", `a: succeeded by person, "one"; b: succeeded by person, "two"`, false},
		"one that has ended, before":   {journal.ReplyOnce, "", "out c0 completed one", `a: succeeded by person, "one"; b: succeeded by person, "two"`, true},
		"one that was refused":         {journal.ReplyReject, "not that", "news c0 failed", `a: refused, ""; b: succeeded by person, "two"`, false},
		"one that was refused, before": {journal.ReplyReject, "not that", ":", `a: refused, ""; b: succeeded by person, "two"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				heard, with := scripted(t, tells+`hear; call c0 a pending; perm 0 c0 a "$both"; hear; `+c.ends+`; text between; echo up > up; read -r x < gate
perm 1 c0 b "$both"; hear; out c0 completed two; stop 3; hear; stop 6; read -r l`)
				b := setup(t, s, with, brief)
				gate, up := b.fifo("gate"), b.fifo("up")
				r := b.start()
				id := b.session("Do it", byFake, asking)
				b.untilKind(id, journal.KindPermissionAsked, 1)
				b.decide(b.pending(id)[0].ID, store.Decision{Reply: c.reply, Message: c.message})
				awaitLine(t, up)
				b.untilKind(id, journal.KindMessageDelta, 1)
				if c.restartBetween {
					r.Stop()
					b.next()
					b.untilKind(id, journal.KindStepRecovered, 1)
				}
				open(t, gate)
				b.untilKind(id, journal.KindPermissionAsked, 2)
				b.decide(b.pending(id)[0].ID, store.Decision{Reply: journal.ReplyOnce})
				b.until(id, "it is done", func(v store.Session) bool { return v.State.Base == journal.StateReady && v.Claim == nil })
				if got := b.callsOf(id); got != c.want {
					t.Errorf("calls\n  %s\nwant\n  %s\n%s", got, c.want, b.dump(id))
				}
				if got, err := os.ReadFile(heard); err != nil || !strings.Contains(string(got), `{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`) {
					t.Errorf("the agent heard %q, %v", got, err)
				}
			})
		})
	}
}

// What an agent says of a call after it was refused here is no other call.
//
// proves CAL-7 PER-2
func TestACP_SpeaksOnOfARefusedCall(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"it has failed": "news c0 failed", "what it was": `news c0 in_progress ',"title":"A","rawInput":{"command":"a b"}'; news c0 failed`, "the same anew": "call c0 a pending; news c0 failed",
		"that it failed, anew": "call c0 A failed",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, tells+`hear; perm 0 c0 a "$both"; hear; `+says+`; stop 3; read -r l`)
				b := setup(t, s, with)
				b.start()
				id := b.session("Do it", byFake, func(n *store.NewSession) {
					n.Rules = []journal.Rule{{Permission: "shell", Pattern: "a*", Action: "deny"}}
				})
				b.untilState(id, journal.StateReady)
				if got := b.callsOf(id); got != `a: refused, ""` {
					t.Errorf("calls %s\n%s", got, b.dump(id))
				}
			})
		})
	}
}

// A request to which the agent takes no answer that allows it once, and that can be told
// it exactly, is refused at once: nobody is asked, and nothing is dispatched.
//
// proves PER-1 PER-4 CAL-1
func TestACP_CantBeAllowed(t *testing.T) {
	t.Parallel()
	const cancelled = `{"outcome":{"outcome":"cancelled"}}`
	const no = `,{"optionId":"no","kind":"reject_once","name":"No"}`
	said := func(id string) string { return `{"outcome":{"outcome":"selected","optionId":"` + id + `"}}` }
	for name, c := range map[string]struct{ options, why, hears string }{
		"none":             {`[]`, "offers no answer that allows it once", cancelled},
		"only always":      {`[{"optionId":"ever","kind":"allow_always","name":"Ever"}` + no + `]`, "offers no answer that allows it once", said("no")},
		"one id for two":   {`[{"optionId":"go","kind":"allow_once","name":"Yes"},{"optionId":"g\u006f","kind":"reject_once","name":"No"}]`, "has the same id", cancelled},
		"one id, always":   {`[{"optionId":"go","kind":"allow_once","name":"Yes"},{"optionId":"go","kind":"allow_always","name":"Ever"}` + no + `]`, "has the same id", said("no")},
		"a NUL":            {`[{"optionId":"y\u0000","kind":"allow_once","name":"Yes"}` + no + `]`, "can't be kept", said("no")},
		"half of a pair":   {`[{"optionId":"\ud800","kind":"allow_once","name":"Yes"}` + no + `]`, "can't be kept", said("no")},
		"two that allow":   {`[{"optionId":"all","kind":"allow_once","name":"Yes, and ask no more"},{"optionId":"yes","kind":"allow_once","name":"Yes, once"}` + no + `]`, "chosen unseen: “Yes, and ask no more”, “Yes, once”", said("no")},
		"two that reject":  {`[{"optionId":"ever","kind":"allow_always","name":"Ever"},{"optionId":"plan","kind":"reject_once","name":"No, keep planning"}` + no + `]`, "offers no answer that allows it once", cancelled},
		"an id of nothing": {`[{"optionId":"","kind":"allow_once","name":"Yes"}` + no + `]`, "gives no id", said("no")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				heard, with := scripted(t, tells+`hear; perm 0 c0 deploy '`+c.options+`'; hear; news c0 failed; stop 3; read -r l`)
				b := setup(t, s, with)
				b.start()
				id := b.session("Do it", byFake, asking)
				b.untilState(id, journal.StateReady)
				events := storetest.Events(t, s, id)
				if n := storetest.CountKind(events, journal.KindPermissionAsked) + storetest.CountKind(events, journal.KindCallDispatched); n != 0 || b.callsOf(id) != `deploy: refused, ""` || !strings.Contains(b.dump(id), "it can't be allowed: ") || !strings.Contains(b.dump(id), c.why) {
					t.Errorf("%d asked or dispatched, calls %s:\n%s", n, b.callsOf(id), b.dump(id))
				}
				if got, err := os.ReadFile(heard); err != nil || !strings.Contains(string(got), `"id":0,"result":`+c.hears) {
					t.Errorf("the agent heard %q, %v; want %s", got, err, c.hears)
				}
			})
		})
	}
}

// A denial is never told as something else: not under an id that was changed, nor as an
// answer that isn't offered.
//
// proves PER-2 PER-4
func TestACP_ADenialIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ no, hears string }{
		"as it is offered": {`,{"optionId":"no","kind":"reject_once","name":"No"}`, `{"outcome":"selected","optionId":"no"}`},
		"a NUL":            {`,{"optionId":"g\u0000o","kind":"reject_once","name":"No"}`, `{"outcome":"cancelled"}`},
		"not offered":      {``, `{"outcome":"cancelled"}`},
		"two that reject":  {`,{"optionId":"no","kind":"reject_once","name":"No"},{"optionId":"plan","kind":"reject_once","name":"No, and plan"}`, `{"outcome":"cancelled"}`},
		"only for ever":    {`,{"optionId":"never","kind":"reject_always","name":"Never"}`, `{"outcome":"cancelled"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				heard, with := scripted(t, tells+`hear; perm 0 c0 deploy '[{"optionId":"go","kind":"allow_once","name":"Yes"}`+c.no+`]'; hear; news c0 failed; stop 3; hear; stop 5; read -r l`)
				b := setup(t, s, with)
				b.start()
				id := b.session("Do it", byFake, asking)
				b.untilKind(id, journal.KindPermissionAsked, 1)
				b.decide(b.pending(id)[0].ID, store.Decision{Reply: journal.ReplyReject, Message: "not that"})
				b.until(id, "it has ended", func(v store.Session) bool { return v.State.Base == journal.StateReady && v.Claim == nil })
				if got, err := os.ReadFile(heard); err != nil || !strings.Contains(string(got), `"id":0,"result":{"outcome":`+c.hears+`}`) || strings.Contains(string(got), `"go"`) {
					t.Errorf("the agent heard %q, %v; want %s", got, err, c.hears)
				}
				if got := b.callsOf(id); got != `deploy: refused, ""` {
					t.Errorf("calls %s", got)
				}
			})
		})
	}
}

// Two requests under one id at once are both refused: an answer to one could be taken
// for the other's.
//
// proves PER-1 PER-4
func TestACP_AsksTwiceUnderOneID(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]string{"in one write": "", "after a person is asked": "read -r x < gate; ", "written differently": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				one, same := "0", "0"
				if name == "written differently" {
					one, same = `'"x"'`, `'"\u0078"'`
				}
				first, second := `"$(perm `+one+` c0 a "$both")"`, `"$(perm `+same+` c1 b "$both")"`
				asks := "together " + first + " " + second + "; "
				if between != "" {
					asks = "together " + first + "; " + between + "together " + second + "; "
				}
				heard, with := scripted(t, tells+together+`hear; `+asks+`hear; hear; stop 3; read -r l`)
				b := setup(t, s, with)
				gate := b.fifo("gate")
				b.start()
				id := b.session("Do it", byFake, asking)
				if between != "" {
					b.untilKind(id, journal.KindPermissionAsked, 1)
					open(t, gate)
				}
				v := b.untilState(id, journal.StateReady)
				if got := b.callsOf(id); got != `a: refused, ""; b: refused, ""` || len(v.State.Pending) != 0 {
					t.Errorf("calls %s\n%s", got, b.dump(id))
				}
				if got, err := os.ReadFile(heard); err != nil || strings.Count(string(got), `,"result":{"outcome":{"outcome":"cancelled"}}`) != 2 {
					t.Errorf("the agent heard %q, %v", got, err)
				}
			})
		})
	}
}

// Ids that aren't text are never another's, nor told changed.
//
// proves JRN-8 REC-12 CAL-1
func TestACP_IDsThatCantBeKept(t *testing.T) {
	t.Parallel()
	const nul = `\u0000`
	long := strings.Repeat("i", 70_000)
	for name, c := range map[string]struct {
		body  string
		ends  journal.ExecutionState
		calls string
		says  string
		never string // is told
	}{
		"of calls": {
			body: hello + tells + `hear; call 't` + nul + `1' a in_progress; call t1 b in_progress; news t1 completed; news 't` + nul + `1' failed; stop 3; read -r l`,
			ends: journal.StateReady, calls: `a: failed by agent, ""; b: succeeded by agent, ""`,
		},
		"of calls, halves of pairs": {
			body: hello + tells + `hear; call 't\ud800' a in_progress; call 't\ud801' b in_progress; news 't\ud800' completed; news 't\ud801' completed; stop 3; read -r l`,
			ends: journal.StateReady, calls: `a: succeeded by agent, ""; b: succeeded by agent, ""`,
		},
		"long ones of calls": {
			body: hello + tells + `long=$(head -c 70000 /dev/zero | tr '\0' i); hear; call "$long" a in_progress; call "${long}j" b in_progress; news "$long" completed; news "${long}j" failed; stop 3; read -r l`,
			ends: journal.StateReady, calls: `a: succeeded by agent, ""; b: failed by agent, ""`, never: long,
		},
		"of a call, in a last line without an end": {
			body: hello + tells + `hear; call t1 a in_progress; call 't` + "`+nul+`" + `1' b in_progress | head -c -1; kill -9 $$`,
			ends: journal.StateUncertain, calls: `a: unknown by agent, ""; b: unknown by agent, ""`,
		},
		"of its session":            {body: strings.ReplaceAll(hello, `"s1"`, `"s`+nul+`1"`) + `hear; stop 3; read -r l`, ends: journal.StateFailed, says: "can't be kept as they are", never: `prompt`},
		"a long one of its session": {body: `s1=$(head -c 70000 /dev/zero | tr '\0' i); ` + strings.ReplaceAll(hello, `"s1"`, `"'$s1'"`) + `hear; stop 3; read -r l`, ends: journal.StateFailed, says: "is longer than", never: `prompt`},
		"of another session": {
			body: hello + tells + `hear; echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s` + nul + `1","update":{"sessionUpdate":"tool_call","toolCallId":"x","title":"x","kind":"execute","status":"completed"}}}'; stop 3; read -r l`,
			ends: journal.StateReady,
		},
		"of a request": {body: hello + tells + `hear; perm '"r` + nul + `"' c0 a "$both"; exec sleep 1000`, ends: journal.StateUncertain, says: "since the id of its request has characters that can't be kept", never: `"r`},
		"of messages": {
			body: hello + `hear; for m in 'm` + nul + `1' m1; do say '{"sessionUpdate":"agent_message_chunk","messageId":"'$m'","content":{"type":"text","text":"word"}}'; done; stop 3; read -r l`,
			ends: journal.StateReady, says: `"text":"word"`, never: "nothing",
		},
		"of its end": {body: hello + `hear; printf '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"'; head -c 70000 /dev/zero | tr '\0' i; echo '"}}'; read -r l`, ends: journal.StateFailed, says: "a reason that isn't known here"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				heard, with := scriptedWhole(t, c.body, quietFor(0))
				b := setup(t, s, with)
				b.start()
				id := b.session("Do it", byFake, func(n *store.NewSession) { asking(n) })
				b.untilState(id, c.ends)
				if got := b.callsOf(id); c.calls != "" && got != c.calls || name == "of another session" && got != "" {
					t.Errorf("calls %s, want %s", got, c.calls)
				}
				if dump := b.dump(id); !strings.Contains(dump, c.says) || name == "of messages" && strings.Contains(dump, "wordword") {
					t.Errorf("it doesn't say %q:\n%s", c.says, dump)
				}
				if got, err := os.ReadFile(heard); err != nil && !os.IsNotExist(err) || c.never != "" && strings.Contains(string(got), c.never) {
					t.Errorf("the agent heard %q, %v", got, err)
				}
			})
		})
	}
}
