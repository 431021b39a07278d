package runner

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"holdfast/journal"
)

// A session has one drain. Wakes that come while it runs are one more pass,
// however many they were; without any there is none.
//
// proves COO-1
func TestWake_WhileItRuns(t *testing.T) {
	t.Parallel()
	for wakes, want := range map[int][]string{0: nil, 1: {"ses_1"}, 3: {"ses_1"}} {
		r := &Runner{runs: map[string]*run{}, queued: map[string]bool{}} // no places, so that what is to run waits in the queue
		running := newRun(t.Context(), "ses_1")
		r.runs["ses_1"] = running
		for range wakes {
			r.Wake("ses_1")
		}
		if len(r.queue) != 0 {
			t.Errorf("%d wakes queue %v while its drain runs", wakes, r.queue)
		}
		r.done(running)
		if !slices.Equal(r.queue, want) || len(r.runs) != 0 {
			t.Errorf("after %d wakes %v is to run, want %v", wakes, r.queue, want)
		}
	}
}

// A wake that came to a drain whose lease was lost isn't lost with it.
//
// proves COO-1 LEA-3
func TestWake_OfADrainThatLosesItsLease(t *testing.T) {
	t.Parallel()
	r := &Runner{runs: map[string]*run{}, queued: map[string]bool{}}
	lost := newRun(t.Context(), "ses_1")
	lost.cancel(ErrLeaseLost)
	r.runs["ses_1"] = lost
	r.Wake("ses_1")
	r.driveWith(lost, func(*run) {})
	if !slices.Equal(r.queue, []string{"ses_1"}) {
		t.Errorf("after the wake %v is to run, want the session", r.queue)
	}
}

// A keeper that hears late of a claim that was released ends nothing that its
// session does under the next one.
//
// proves LEA-3
func TestRun_LosesOnlyTheClaimThatItHolds(t *testing.T) {
	t.Parallel()
	r := newRun(t.Context(), "ses_1")
	for _, id := range []string{"exe_1", "exe_2"} {
		r.hold(&journal.Claim{SessionID: "ses_1", ExecutionID: id}, time.Now(), time.Minute)
	}
	if r.lose("exe_1") || r.ctx.Err() != nil {
		t.Error("the end of a released claim ended the run under its next one")
	}
	if !r.lose("exe_2") || !errors.Is(context.Cause(r.ctx), ErrLeaseLost) {
		t.Error("the loss of the claim that it holds doesn't end the run")
	}
	if !r.letGo() || r.lose("exe_2") {
		t.Error("a run without a claim lost one")
	}
}
