package runner_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner/acp"
	"holdfast/store"
	"holdfast/store/storetest"
)

// An agent that has closed its stdin can't be told anything any more: it is ended as
// soon as there is something to tell it, and what surely did not reach it was not sent.
//
// proves ATT-3 CAL-7 COO-7
func TestACP_ClosesItsStdin(t *testing.T) {
	t.Parallel()
	const shut = `; exec 0<&-; echo up > up; sleep 1000`
	t.Run("between turns", func(t *testing.T) {
		t.Parallel()
		storetest.Each(t, func(t *testing.T, s *store.Store) {
			_, with := scripted(t, `hear; text a; stop 3`+shut, func(o *acp.Options) { o.ExitWithin = time.Millisecond })
			b := setup(t, s, with)
			up := b.fifo("up")
			b.start()
			id := b.session("One", byFake)
			awaitLine(t, up)
			b.untilState(id, journal.StateReady)
			b.submit(id, "Two", journal.Queue)
			b.until(id, "it has failed", func(v store.Session) bool { return v.State.Base == journal.StateFailed && v.Claim == nil })
			evs := storetest.Events(t, s, id)
			failed := storetest.Body[*journal.AttemptFailed](t, evs)
			if !strings.Contains(failed.Error, "closed its standard input") || !strings.Contains(failed.Error, "Nothing was sent") {
				t.Errorf("it says %q", failed.Error)
			}
			if n := storetest.CountKind(evs, journal.KindAgentEnded); n != 1 {
				t.Errorf("%d ends\n%s", n, b.dump(id))
			}
		})
	})
	t.Run("while it asks", func(t *testing.T) {
		t.Parallel()
		storetest.Each(t, func(t *testing.T, s *store.Store) {
			_, with := scripted(t, `hear; echo '{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"rm a","kind":"execute","rawInput":{"command":"rm a"}},"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"}]}}'`+shut, func(o *acp.Options) { o.ExitWithin = time.Millisecond })
			b := setup(t, s, with)
			up := b.fifo("up")
			b.start()
			id := b.session("Do it", byFake, asking)
			awaitLine(t, up)
			b.untilKind(id, journal.KindPermissionAsked, 1)
			first := b.pending(id)
			b.decide(first[0].ID, store.Decision{Reply: journal.ReplyOnce, Digest: first[0].Digest})
			b.untilState(id, journal.StateUncertain)
			calls, err := s.Calls(t.Context(), b.owner, id, 0)
			if err != nil || len(calls) != 1 || calls[0].State != journal.CallCancelled || calls[0].Reason != journal.ReasonNotTold || !calls[0].NeverRan() {
				t.Errorf("%+v, %v\n%s", calls[0], err, b.dump(id))
			}
		})
	})
}
