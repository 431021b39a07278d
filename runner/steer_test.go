package runner_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

func (b *bench) submit(session, text string, d journal.Delivery) journal.Receipt {
	b.t.Helper()
	r, err := b.s.SubmitPrompt(b.t.Context(), b.owner, session, rand.Text(), store.PromptInput{Text: text, Delivery: d})
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// proves PRO-1 PRO-2 PRO-3 PRO-4 ADM-8
func TestRunner_SteersGoBeforeWhatHasNotBegun(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		gate := b.fifo("gate")
		b.start()
		id := b.session(steps("read x < gate; echo a >> log", "echo b >> log"))
		b.untilKind(id, journal.KindCallDispatched, 1)
		b.submit(id, steps("echo q >> log"), journal.Queue)
		b.submit(id, steps("echo s1 >> log"), journal.Steer)
		b.submit(id, steps("echo s2 >> log", "echo s3 >> log"), journal.Steer)
		b.submit(id, "only words", journal.Steer)
		gone := b.submit(id, steps("echo never >> log"), journal.Steer)
		if _, err := s.WithdrawPrompt(t.Context(), b.owner, gone.ID); err != nil {
			t.Fatal(err)
		}
		open(t, gate)
		b.until(id, "both turns have ended", func(v store.Session) bool {
			return v.State.Base == journal.StateReady && v.State.Turn.Number == 2 && v.Claim == nil
		})
		if got, want := strings.Fields(b.file("log")), "a s1 s2 s3 b q"; strings.Join(got, " ") != want {
			t.Errorf("order %v, want %s", got, want)
		}
		if n := strings.Count(b.dump(id), "only words"); n != 2 { // as the prompt, and noted once
			t.Errorf("the steer without steps stands %d times in the journal, want 2", n)
		}
		workers, err := s.Workers(t.Context())
		if err != nil || len(workers) != 1 || workers[0].Agents[0].Steer != "boundary" {
			t.Errorf("workers %+v, %v: want an agent that says when it takes steers", workers, err)
		}
	})
}

// A steer that comes while the last step runs is promoted at the boundary after it.
//
// proves PRO-1
func TestRunner_SteerAfterTheLastStep(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		gate := b.fifo("gate")
		b.start()
		id := b.session(steps("read x < gate; echo a >> log"))
		b.untilKind(id, journal.KindCallDispatched, 1)
		b.submit(id, steps("echo s >> log"), journal.Steer)
		open(t, gate)
		v := b.untilState(id, journal.StateReady)
		if got := b.file("log"); got != "a\ns\n" || v.State.Turn.Number != 1 {
			t.Errorf("log %q in turn %d, want both in turn 1", got, v.State.Turn.Number)
		}
	})
}

// A parked turn has no boundary: a steer waits until the step that was asked about has settled.
//
// proves PRO-1 PER-6
func TestRunner_SteerOfAParkedTurnWaits(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		b.start()
		id := b.session(steps("echo a", "echo b"), asking)
		b.untilState(id, journal.StateWaiting)
		asked := b.pending(id)[0]
		steer := b.submit(id, "words", journal.Steer)
		if v := b.untilState(id, journal.StateWaiting); len(v.State.Admitted) != 1 || b.pending(id)[0].ID != asked.ID {
			t.Fatal("a message moved a parked turn")
		}
		b.decide(asked.ID, store.Decision{Reply: journal.ReplyOnce})
		evs := b.untilKind(id, journal.KindPermissionAsked, 2)
		settled, promoted := int64(0), int64(0)
		for _, e := range evs {
			switch {
			case e.Kind == journal.KindCallSettled && settled == 0:
				settled = e.Seq
			case e.Kind == journal.KindPromptPromoted:
				promoted = e.Seq
			}
		}
		if settled == 0 || promoted < settled {
			t.Errorf("the steer %s was promoted at #%d, the step settled at #%d", steer.ID, promoted, settled)
		}
	})
}

// proves PRO-5 PRO-6 COO-4 CAL-3
func TestRunner_StopHoldsTheQueueUntilContinue(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		b.fifo("gate")
		first := b.start()
		id := b.session(steps("echo begun >> log; echo begun; read x < gate; echo never >> log", "echo b >> log"))
		b.untilKind(id, journal.KindCallOutput, 1) // it has begun: a stop before that is another matter
		b.submit(id, steps("echo q >> log"), journal.Queue)
		if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow); err != nil {
			t.Fatal(err)
		}
		v := b.untilState(id, journal.StateStopped)
		if len(v.State.Admitted) != 1 || !v.State.Held || v.State.Turn.EndedBy != b.owner {
			t.Errorf("state %+v, want one held prompt and the turn ended by its owner", v.State)
		}
		calls, err := s.Calls(t.Context(), b.owner, id, 0)
		if err != nil || calls[0].State != journal.CallCancelled {
			t.Errorf("call %+v, %v; want cancelled: its end was seen", calls[0], err)
		}
		first.Stop() // the hold survives a restart
		b.opts.WorkerID += "2"
		second := b.start()
		second.Wake(id)
		second.Sweep(t.Context())
		if err := s.Continue(t.Context(), b.owner, id, nil); err != nil {
			t.Fatal(err)
		}
		b.until(id, "the queue is done", func(v store.Session) bool {
			return v.State.Base == journal.StateReady && len(v.State.Admitted) == 0 && v.Claim == nil
		})
		if got := b.file("log"); got != "begun\nb\nq\n" {
			t.Errorf("log %q: the cancelled step isn't run again, the rest follows in order", got)
		}
		if err := s.Continue(t.Context(), b.owner, id, nil); !journal.Is(err, journal.Conflict) {
			t.Errorf("continue with nothing held: %v, want conflict", err)
		}
	})
}

// proves COO-4
func TestRunner_StopAtABoundaryLetsTheStepEnd(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		gate := b.fifo("gate")
		b.start()
		id := b.session(steps("read x < gate; echo a >> log", "echo b >> log"))
		b.untilKind(id, journal.KindCallDispatched, 1)
		if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptBoundary); err != nil {
			t.Fatal(err)
		}
		open(t, gate)
		b.untilState(id, journal.StateStopped)
		if got := b.file("log"); got != "a\n" {
			t.Errorf("log %q, want the running step ended and no other begun", got)
		}
		if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow); !journal.Is(err, journal.Conflict) {
			t.Errorf("interrupt without a turn: %v, want conflict", err)
		}
	})
}

// A stop that is accepted while the last step runs is carried out at the boundary
// after it, however late it comes: the turn ends stopped, and what waits is held.
//
// proves COO-4 PRO-1 PRO-5
func TestRunner_StopDuringTheLastStep(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		gate := b.fifo("gate")
		b.start()
		id := b.session(steps("read x < gate; echo a >> log"))
		b.untilKind(id, journal.KindCallDispatched, 1)
		b.submit(id, steps("echo danger >> log"), journal.Queue)
		if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptBoundary); err != nil {
			t.Fatal(err)
		}
		open(t, gate)
		b.untilState(id, journal.StateStopped)
		if v := b.untilState(id, journal.StateStopped); b.file("log") != "a\n" || !v.State.Held || len(v.State.Admitted) != 1 {
			t.Errorf("log %q, %+v: want the last step ended and the queue held", b.file("log"), v.State)
		}
	})
}

// A turn that is stopped when nothing of it is left says so, and no other does.
//
// proves COO-4
func TestRunner_StopSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		gate := b.fifo("gate")
		b.start()
		for _, left := range []bool{false, true} {
			more := []string{"read x < gate"}
			if left {
				more = append(more, "echo b")
			}
			id := b.session(steps(more...))
			b.untilKind(id, journal.KindCallDispatched, 1)
			if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptBoundary); err != nil {
				t.Fatal(err)
			}
			open(t, gate)
			if v := b.untilState(id, journal.StateStopped); v.State.Turn.Done == left || !v.State.Held || v.State.Turn.Outcome != journal.Stopped {
				t.Errorf("something is left: %v, and the turn ended as %+v", left, v.State.Turn)
			}
		}
	})
}

// What was cancelled before it ever started is asked again by *continue*: nothing
// of it can be repeated. What was refused, or ended while it ran, isn't.
//
// proves PRO-6 COO-4
func TestRunner_ContinueAsksAgainWhatNeverStarted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		b.start()
		id := b.session(steps("echo a >> log", "echo b >> log"), func(n *store.NewSession) {
			n.Rules = []journal.Rule{{Permission: "shell", Pattern: "echo a", Action: "allow"}, {Permission: "edit", Pattern: "*", Action: "allow"}, {Permission: "shell", Pattern: "echo b", Action: "ask"}}
		})
		b.untilState(id, journal.StateWaiting)
		if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow); err != nil {
			t.Fatal(err)
		}
		b.untilState(id, journal.StateStopped)
		if err := s.Continue(t.Context(), b.owner, id, nil); err != nil {
			t.Fatal(err)
		}
		b.untilState(id, journal.StateWaiting)
		b.decide(b.pending(id)[0].ID, store.Decision{Reply: journal.ReplyReject})
		b.untilState(id, journal.StateStopped)
		if err := s.Continue(t.Context(), b.owner, id, nil); err != nil {
			t.Fatal(err)
		}
		b.untilState(id, journal.StateReady)
		calls, err := s.Calls(t.Context(), b.owner, id, 0)
		if err != nil || len(calls) != 3 || calls[1].State != journal.CallCancelled || calls[2].Key != calls[1].Key+"#2" || calls[2].State != journal.CallIsRefused {
			t.Errorf("calls %+v, %v", calls, err)
		}
		if got := b.file("log"); got != "a\n" {
			t.Errorf("log %q", got)
		}
	})
}

// A step that could not be started has no outcome: *continue* tries it again.
//
// proves PRO-6 CAL-7
func TestRunner_ContinueTriesAgainWhatCouldNotStart(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		env := b.opts.Env
		b.opts.Env = []string{"PATH=" + b.dir} // there is no shell
		first := b.start()
		id := b.session(steps("echo a >> log", "echo b >> log"))
		v := b.untilState(id, journal.StateFailed)
		if !strings.Contains(v.State.Turn.Reason, "could not be started") || !strings.Contains(v.State.Turn.Reason, "tries it again") {
			t.Errorf("the turn says %q", v.State.Turn.Reason)
		}
		first.Stop()
		b.opts.Env = env
		b.opts.WorkerID += "2"
		b.start()
		if err := s.Continue(t.Context(), b.owner, id, nil); err != nil {
			t.Fatal(err)
		}
		b.untilState(id, journal.StateReady)
		if got := b.file("log"); got != "a\nb\n" {
			t.Errorf("log %q, want each step once", got)
		}
	})
}
