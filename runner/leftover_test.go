package runner_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner/tool"
	"holdfast/store"
	"holdfast/store/storetest"
)

// lost makes a session whose execution is dead: it had dispatched a command,
// which runs on until stop is called, or somebody ends it. Its lease has ended,
// or ends in an hour.
func (b *bench) lost(script string, lease time.Duration) (session string, c *journal.Claim, ended <-chan struct{}) {
	b.t.Helper()
	session = b.session(steps("echo done >> log"))
	c, err := b.s.Claim(b.t.Context(), store.ClaimRequest{SessionID: session, WorkerID: "wrk_dead", StateFolderID: "fld_elsewhere", Lease: lease})
	if err != nil || c == nil {
		b.t.Fatalf("claim: %v %v", c, err)
	}
	turn := storetest.MustPromote(b.t, b.s, c)
	call := store.NewID("call")
	left, err := tool.Prepare(tool.Spec{
		CallID: call, Interp: []string{"sh"}, Script: script, Dir: b.dir, Env: b.opts.Env,
		Timeout: time.Hour, MaxOutput: 1 << 10, Output: func([]tool.Piece) error { return nil },
	})
	if err != nil {
		b.t.Fatal(err)
	}
	p := journal.Process(left.Process())
	storetest.MustAppend(b.t, b.s, c, journal.PhaseUncertain,
		&journal.CallProposed{CallID: call, TurnID: turn, Key: "k", Tool: "shell", Input: []byte(`{}`), InputSHA256: journal.Hash("{}"), Effect: journal.EffectEffect},
		&journal.CallDispatched{CallID: call, N: 1, AllowedBy: journal.AllowedBy{Type: journal.AllowedByRule}, Process: &p})
	ctx, stop := context.WithCancel(context.WithoutCancel(b.t.Context()))
	over := make(chan struct{})
	go func() { defer close(over); left.Run(ctx) }()
	b.t.Cleanup(func() { stop(); <-over })
	return session, c, over
}

// awaitLine waits until a command writes to a pipe.
func awaitLine(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err == nil {
		err = f.SetReadDeadline(time.Now().Add(patience))
	}
	if err == nil {
		_, err = f.Read(make([]byte, 64))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatalf("waited in vain at %s: %v", path, err)
	}
}

// A wake that comes before the sweep, such as a retried prompt's, concludes
// nothing about a lost execution while what it left still runs.
//
// proves COO-7 LEA-1 ADM-5
func TestRunner_EndsLeftoversAlsoWhenWoken(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		id, claim, ended := b.lost("exec sleep 1000", time.Hour)
		r := b.start() // its first sweep finds a live lease of another folder
		if err := s.ExpireClaim(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		r.Wake(id)
		b.untilState(id, journal.StateUncertain)
		evidence := storetest.Body[*journal.CallUnknown](t, storetest.Events(t, s, id)).Evidence
		if len(evidence) == 0 || !strings.Contains(evidence[len(evidence)-1].Text, "ended") {
			t.Errorf("it was concluded with the evidence %+v, want that its process was ended", evidence)
		}
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("what the lost execution left still runs")
		}
	})
}

// A sweep that is slow with one session doesn't end what another one has begun
// since it looked: a wake had recovered that one meanwhile.
//
// proves REC-1 REC-5 COO-7
func TestRunner_SlowSweepEndsNothingNew(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		told, up, gate := b.fifo("told"), b.fifo("up"), b.fifo("gate")
		slow, _, _ := b.lost("trap 'echo told > told' TERM; echo up > up; while :; do sleep 1000 & wait; done", time.Millisecond)
		awaitLine(t, up) // its trap is set
		woken := b.session(steps("echo up > up; read x < gate; echo done >> log"))
		if c, err := s.Claim(t.Context(), store.ClaimRequest{SessionID: woken, WorkerID: "wrk_dead", StateFolderID: "fld_elsewhere", Lease: time.Millisecond}); err != nil || c == nil {
			t.Fatalf("claim: %v %v", c, err)
		}
		forgotten := b.session(steps("true")) // its wake is lost: the end of a sweep finds it
		r := b.start()
		awaitLine(t, told) // the sweep has told the first one's leftover to end, which doesn't
		r.Wake(woken)
		awaitLine(t, up)
		b.untilState(slow, journal.StateUncertain)
		b.untilState(forgotten, journal.StateReady)
		open(t, gate)
		b.untilState(woken, journal.StateReady)
	})
}
