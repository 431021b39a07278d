package runner_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner/acp"
	"holdfast/store"
	"holdfast/store/storetest"
)

// What an agent has asked for and was refused because of a stop did not run, also if
// the server that read the question died before it was put to a person.
//
// proves CAL-7 CAL-4 COO-4
func TestACP_RefusesWhatWasAskedBeforeARestart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		does  string
		state journal.ExecutionState
	}{
		"it answers": {`echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}'; read -r l`, journal.StateStopped},
		"it dies":    {`kill -9 $$`, journal.StateUncertain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				heard, with := scripted(t, `hear; say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"rm a","kind":"execute","status":"pending","rawInput":{"command":"rm a"}}'; echo up > up
hear; hear; `+c.does, func(o *acp.Options) { o.CancelWithin, o.ExitWithin = patience, time.Millisecond })
				b := setup(t, s, with, brief)
				up := b.fifo("up")
				r := b.start()
				id := b.session("Do it", byFake)
				awaitLine(t, up)
				b.untilKind(id, journal.KindCallProposed, 1)
				r.Stop()
				b.asks(id, `{"id":0,"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"}],"tool":{"title":"rm a","kind":"execute"}}`)
				if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow); err != nil {
					t.Fatal(err)
				}
				b.next()
				b.untilState(id, c.state)
				if got, err := os.ReadFile(heard); err != nil || !strings.Contains(string(got), `"outcome":"cancelled"`) {
					t.Errorf("the agent heard %q, %v", got, err)
				}
				calls, err := s.Calls(t.Context(), b.owner, id, 0)
				if err != nil || len(calls) != 1 || calls[0].State != journal.CallCancelled || !calls[0].NeverRan() || calls[0].Unseen() {
					t.Errorf("%+v, %v\n%s", calls[0], err, b.dump(id))
				}
			})
		})
	}
}

// asks leaves a question of the agent for its only call as a server does that dies
// when it has just read it.
func (b *bench) asks(id, request string) {
	b.t.Helper()
	s := b.s
	v, err := s.Session(b.t.Context(), b.owner, id)
	if err != nil || v.Claim == nil || v.State.Process == nil {
		b.t.Fatalf("%+v, %v", v, err)
	}
	p, err := s.AgentProcess(b.t.Context(), v.State.Process.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	_, err = s.Append(b.t.Context(), v.Claim, store.Append{Agent: &store.AgentIO{
		ProcessID: p.ID, ReadTo: p.ReadTo, Skip: p.Skip, Sent: p.Sent, Asks: []store.AgentAsk{{N: 1 << 40, CallID: v.State.Calls[0].ID, Request: request}},
	}})
	if err != nil {
		b.t.Fatal(err)
	}
}
