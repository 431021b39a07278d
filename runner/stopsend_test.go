package runner_test

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner/acp"
	"holdfast/store"
	"holdfast/store/storetest"
)

// stopFor submits a prompt that the open turn is stopped for.
func (b *bench) stopFor(session, text string) journal.Receipt {
	b.t.Helper()
	r, err := b.s.SubmitPrompt(b.t.Context(), b.owner, session, rand.Text(), store.PromptInput{Text: text, Delivery: journal.Steer, Stops: true})
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// A runbook is stopped for another: what runs is ended, the other runs next and the
// queue after it, and nobody goes on with what was stopped.
//
// proves COO-4 PRO-1 PRO-5 CAL-3
func TestRunner_ARunbookStopsForAnother(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		b.fifo("gate")
		b.start()
		id := b.session(steps("echo begun >> log; echo begun; read x < gate; echo never >> log", "echo b >> log"))
		b.untilKind(id, journal.KindCallOutput, 1)
		b.submit(id, steps("echo q >> log"), journal.Queue)
		b.stopFor(id, steps("echo s1 >> log"))
		b.stopFor(id, steps("echo s2 >> log"))
		b.until(id, "all is done", func(v store.Session) bool {
			return v.State.Base == journal.StateReady && len(v.State.Admitted) == 0 && v.Claim == nil
		})
		if got := b.file("log"); got != "begun\ns1\ns2\nq\n" {
			t.Errorf("log %q", got)
		}
		calls, err := s.Calls(t.Context(), b.owner, id, 0)
		if err != nil || calls[0].State != journal.CallCancelled {
			t.Errorf("call %+v, %v; want cancelled: its end was seen", calls[0], err)
		}
	})
}

// A turn that waits for a decision is stopped at once; what was asked about never runs.
//
// proves COO-4 PER-6 PRO-5
func TestRunner_AParkedTurnStopsForAMessage(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		b.start()
		id := b.session(steps("echo asked >> log"), asking)
		b.until(id, "it is parked", func(v store.Session) bool { return v.State.Base == journal.StateWaiting && v.Claim == nil })
		asked := b.pending(id)[0]
		b.stopFor(id, steps("echo instead >> log"))
		b.until(id, "the message's step waits", func(v store.Session) bool {
			return v.State.Base == journal.StateWaiting && v.State.Turn.Number == 2
		})
		if _, err := s.Decide(t.Context(), b.owner, asked.ID, store.Decision{Reply: journal.ReplyOnce}); !journal.Is(err, journal.Gone) {
			t.Errorf("the request of the turn that was stopped: %v, want that it has ended", err)
		}
		for _, p := range b.pending(id) {
			b.decide(p.ID, store.Decision{Reply: journal.ReplyOnce})
		}
		b.untilState(id, journal.StateReady)
		if got := b.file("log"); got != "instead\n" {
			t.Errorf("log %q", got)
		}
	})
}

// An agent that doesn't stop is ended, and what it was at is unknown: the message waits
// until that is reconciled. Then it is what the agent hears next, after the verdict.
//
// proves COO-4 CAL-6 PRO-5 PRO-6
func TestACP_DoesNotStopForAMessage(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		heard, with := scripted(t, `hear; text on
[ -e again ] || { touch again; say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"deploy","kind":"execute","status":"in_progress"}'; while read -r l; do :; done; sleep 1000; }
stop 3; hear; stop 4; read -r l`, func(o *acp.Options) {
			o.CancelWithin, o.ExitWithin = time.Millisecond, time.Millisecond
		})
		b := setup(t, s, with)
		b.start()
		id := b.session("Deploy it", byFake)
		b.untilKind(id, journal.KindCallDispatched, 1)
		queued := b.submit(id, "Later", journal.Queue)
		sent := b.stopFor(id, "Instead")
		v := b.until(id, "it is unknown", func(v store.Session) bool { return v.State.Base == journal.StateUncertain && v.Claim == nil })
		if len(v.State.Admitted) != 2 || v.State.Held || v.State.Turn.Outcome != journal.Stopped {
			t.Fatalf("%+v", v.State)
		}
		for _, call := range v.State.UnknownCalls {
			if _, err := s.ResolveCall(t.Context(), b.owner, call, store.CallResolution{Outcome: journal.DidNotHappen, Evidence: "looked", Then: journal.ThenContinue}); err != nil {
				t.Fatal(err)
			}
		}
		for _, attempt := range v.State.UnknownAttempts {
			if _, err := s.ResolveAttempt(t.Context(), b.owner, attempt, store.AttemptResolution{Outcome: journal.AttemptAbandon, Then: journal.ThenContinue}); err != nil {
				t.Fatal(err)
			}
		}
		b.until(id, "all is done", func(v store.Session) bool {
			return v.State.Base == journal.StateReady && v.State.Turn.Number == 3 && v.Claim == nil
		})
		var got []string
		for _, ev := range storetest.Events(t, s, id) {
			if body, err := ev.Decode(); err == nil {
				if p, ok := body.(*journal.PromptPromoted); ok {
					got = append(got, p.PromptID)
				}
			}
		}
		if len(got) != 3 || got[1] != sent.ID || got[2] != queued.ID {
			t.Errorf("promoted %v, want %s and then %s", got, sent.ID, queued.ID)
		}
		said, err := os.ReadFile(heard)
		if err != nil || strings.Count(string(said), "Deploy it") != 1 || !strings.Contains(string(said), `a person says: it did not happen. looked\n"},{"type":"text","text":"Instead"`) || strings.Contains(string(said), "Go on with what was asked") {
			t.Errorf("the agent heard %q, %v", said, err)
		}
	})
}
