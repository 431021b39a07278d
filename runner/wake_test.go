package runner

import (
	"slices"
	"testing"
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
