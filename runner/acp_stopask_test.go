package runner_test

import (
	"os"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/runner/acp"
	"holdfast/store"
	"holdfast/store/storetest"
)

// asksTwo asks for two calls at once. RUNS is what it does before.
const asksTwo = `perm() { echo '{"jsonrpc":"2.0","id":'"$1"',"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t'"$1"'","title":"touch m'"$1"'","kind":"execute","rawInput":{"command":"touch m'"$1"'"}},"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"},{"optionId":"no","kind":"reject_once","name":"No"}]}}'; }
fails() { say '{"sessionUpdate":"tool_call_update","toolCallId":"'"$1"'","status":"failed"}'; }
hear; RUNS perm 8; perm 9
`

// stoppedOf is how it ends when it was told to stop: a person may answer until it has.
const stoppedOf = `hear; hear; hear; echo up > up; read -r x < gate
fails t8; fails t9; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}'; hear; read -r l`

// An answer that comes while the turn is being stopped comes too late: it is refused, the
// agent hears that its requests are cancelled, and lives on to answer its prompt.
//
// proves COO-4 PER-3 PER-6 CAL-7
func TestACP_AnAnswerAfterTheStop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stop   func(b *bench, id string, asked []*journal.Request)
		reason string
		next   bool // a message begins the next turn
	}{
		"stop now": {reason: journal.ReasonInterrupted, stop: func(b *bench, id string, _ []*journal.Request) {
			b.interrupt(id, journal.InterruptNow)
		}},
		"stop at the next safe point": {reason: journal.ReasonInterrupted, stop: func(b *bench, id string, _ []*journal.Request) {
			b.interrupt(id, journal.InterruptBoundary)
		}},
		"one of two is denied": {reason: journal.ReasonRejected, stop: func(b *bench, _ string, asked []*journal.Request) {
			b.decide(asked[0].ID, store.Decision{Reply: journal.ReplyReject})
		}},
		"stop and send": {reason: journal.ReasonInterrupted, next: true, stop: func(b *bench, id string, _ []*journal.Request) {
			b.stopFor(id, "Instead")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				heard, with := scripted(t, strings.Replace(asksTwo, "RUNS", "", 1)+strings.Replace(stoppedOf, "hear; read -r l", "hear; stop 7; read -r l", 1), func(o *acp.Options) { o.CancelWithin = patience })
				b := setup(t, s, with)
				gate, up := b.fifo("gate"), b.fifo("up")
				b.start()
				id := b.session("Do both", byFake, asking)
				b.untilKind(id, journal.KindPermissionAsked, 2)
				asked := b.pending(id)
				c.stop(b, id, asked)
				awaitLine(t, up)
				_, err := s.Decide(t.Context(), b.owner, asked[1].ID, store.Decision{Reply: journal.ReplyOnce})
				storetest.WantCode(t, err, journal.Gone)
				open(t, gate)
				want := journal.StateStopped
				if c.next {
					want = journal.StateReady
				}
				v := b.until(id, "it has ended", func(v store.Session) bool { return v.State.Base == want && v.Claim == nil })
				p, err := s.Request(t.Context(), b.owner, asked[1].ID)
				if err != nil || p.Request.State != journal.RequestCancelled || p.Request.Reason != c.reason || p.Call.State != journal.CallCancelled || !p.Call.NeverRan() {
					t.Errorf("%+v of %+v, %v", p.Request, p.Call, err)
				}
				got, err := os.ReadFile(heard)
				if err != nil || strings.Count(string(got), "session/cancel") != 1 || strings.Count(string(got), `"outcome":"cancelled"`) != 2 {
					t.Errorf("the agent heard %q, %v", got, err)
				}
				if v.State.Process == nil || v.State.Unknowns() != 0 || strings.Contains(b.dump(id), "was ended") {
					t.Errorf("its process is %+v\n%s", v.State.Process, b.dump(id))
				}
			})
		})
	}
}

// A stop at the next safe point waits while another call of the agent runs; once it only
// waits for a person, that is one. The journal keeps what the person asked for.
//
// proves COO-4 PER-6
func TestACP_ItsSafePointIsWhereItOnlyWaits(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		heard, with := scripted(t, strings.Replace(asksTwo, "RUNS", `say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"build","kind":"execute","status":"in_progress"}'; text on; `, 1)+
			`read -r x < built; say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}'
`+stoppedOf, func(o *acp.Options) { o.CancelWithin = patience })
		b := setup(t, s, with)
		gate, up, built := b.fifo("gate"), b.fifo("up"), b.fifo("built")
		b.start()
		id := b.session("Do both", byFake, asking)
		b.untilKind(id, journal.KindPermissionAsked, 2)
		b.interrupt(id, journal.InterruptBoundary)
		if v := b.until(id, "it is being stopped", func(v store.Session) bool { return v.State.Base == journal.StateStopping }); v.State.Needs() != journal.NeedsDecision || len(v.State.Pending) != 2 {
			t.Errorf("while something runs it needs %s: %+v", v.State.Needs(), v.State)
		}
		open(t, built)
		awaitLine(t, up)
		v := b.until(id, "nothing waits", func(v store.Session) bool { return len(v.State.Pending) == 0 })
		if v.State.Needs() != journal.NeedsNone || v.State.Interrupt.Mode != journal.InterruptBoundary {
			t.Errorf("needs %s: %+v", v.State.Needs(), v.State.Interrupt)
		}
		open(t, gate)
		v = b.until(id, "it has stopped", func(v store.Session) bool { return v.State.Base == journal.StateStopped && v.Claim == nil })
		if v.State.Unknowns() != 0 || v.State.Turn.Done || v.State.Turn.EndedBy != b.owner {
			t.Errorf("%+v\n%s", v.State, b.dump(id))
		}
		if got := b.callsOf(id); !strings.Contains(got, "succeeded") || strings.Count(got, "cancelled") != 2 {
			t.Errorf("calls %s", got)
		}
		if got, err := os.ReadFile(heard); err != nil || strings.Count(string(got), "session/cancel") != 1 {
			t.Errorf("the agent heard %q, %v", got, err)
		}
	})
}

// interrupt asks for the end of the open turn.
func (b *bench) interrupt(session string, mode journal.InterruptMode) {
	b.t.Helper()
	if err := b.s.RequestInterrupt(b.t.Context(), b.owner, session, mode); err != nil {
		b.t.Fatal(err)
	}
}
