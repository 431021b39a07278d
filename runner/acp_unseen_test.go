package runner_test

import (
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner/acp"
	"holdfast/store"
	"holdfast/store/storetest"
)

// An agent that asks nobody, and says of a call no more than that there is one until it
// ends, as Claude Code does with what its own rules allow, may run it all the while. What
// becomes of that is never that it did not run.
//
// proves CAL-4 CAL-7 COO-4
func TestACP_SaysNotThatItRuns(t *testing.T) {
	t.Parallel()
	const (
		proposes = `hear; say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"touch made","kind":"execute","status":"pending","rawInput":{"command":"touch made"}}'; touch made; `
		ends     = `say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"`
	)
	for name, c := range map[string]struct {
		does  string
		stop  bool
		state journal.ExecutionState
		call  journal.CallState
	}{
		"it succeeds":          {does: ends + `completed"}'; stop 3; read -r l`, state: journal.StateReady, call: journal.CallSucceeded},
		"it fails":             {does: ends + `failed"}'; stop 3; read -r l`, state: journal.StateReady, call: journal.CallFailed},
		"its end isn't told":   {does: `stop 3; read -r l`, state: journal.StateUncertain, call: journal.CallIsUnknown},
		"all of it at once":    {does: `stop 3; read -r l`, state: journal.StateUncertain, call: journal.CallIsUnknown},
		"it dies":              {does: `kill -9 $$`, state: journal.StateUncertain, call: journal.CallIsUnknown},
		"it is stopped":        {does: `hear; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}'; read -r l`, stop: true, state: journal.StateStopped, call: journal.CallCancelled},
		"it asks, and is gone": {does: `echo '{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1"},"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"}]}}'; read -r x < gate; kill -9 $$`, state: journal.StateUncertain, call: journal.CallCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				body := proposes + c.does
				if name == "all of it at once" {
					body = "{ " + proposes + c.does + "; } | cat"
				}
				_, with := scripted(t, body, func(o *acp.Options) { o.CancelWithin, o.ExitWithin = patience, time.Millisecond })
				b := setup(t, s, with)
				asks := name == "it asks, and is gone"
				gate := b.fifo("gate")
				b.start()
				as := []func(*store.NewSession){byFake}
				if asks {
					as = append(as, asking)
				}
				id := b.session("Do it", as...)
				b.untilKind(id, journal.KindCallProposed, 1)
				if c.stop {
					if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow); err != nil {
						t.Fatal(err)
					}
				}
				if asks {
					b.untilKind(id, journal.KindPermissionAsked, 1)
					open(t, gate)
				}
				b.untilState(id, c.state)
				calls, err := s.Calls(t.Context(), b.owner, id, 0)
				if err != nil || len(calls) != 1 {
					t.Fatalf("%+v, %v", calls, err)
				}
				one := calls[0]
				if one.State != c.call || one.NeverRan() != asks || one.Unseen() == asks || one.RanMS != nil {
					t.Errorf("the call is %s, never ran %v, unseen %v, ran for %v; want %s\n%s", one.State, one.NeverRan(), one.Unseen(), one.RanMS, c.call, b.dump(id))
				}
			})
		})
	}
}
