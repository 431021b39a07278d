package runner_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner/tool"
	"holdfast/store"
	"holdfast/store/storetest"
)

// A wake that comes before the sweep, such as a retried prompt's, concludes
// nothing about a lost execution while what it left still runs.
//
// proves COO-7 LEA-1 ADM-5
func TestRunner_EndsLeftoversAlsoWhenWoken(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		b.fifo("up")
		id := b.session(steps("echo done >> log"))
		lost, err := s.Claim(t.Context(), store.ClaimRequest{SessionID: id, WorkerID: "wrk_dead", StateFolderID: "fld_elsewhere", Lease: time.Hour})
		if err != nil || lost == nil {
			t.Fatalf("claim: %v %v", lost, err)
		}
		turn := storetest.MustPromote(t, s, lost)
		call := store.NewID("call")
		left, err := tool.Prepare(tool.Spec{
			CallID: call, Interp: []string{"sh"}, Script: "echo up > up; exec sleep 1000", Dir: b.dir, Env: b.opts.Env,
			Timeout: time.Hour, MaxOutput: 1 << 10, Output: func(tool.Piece) error { return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		p := journal.Process(left.Process())
		storetest.MustAppend(t, s, lost, journal.PhaseUncertain,
			&journal.CallProposed{CallID: call, TurnID: turn, Key: "k", Tool: "shell", Input: []byte(`{}`), InputSHA256: journal.Hash("{}"), Effect: journal.EffectEffect},
			&journal.CallDispatched{CallID: call, N: 1, AllowedBy: journal.AllowedBy{Type: journal.AllowedByRule}, Process: &p})
		ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
		ended := make(chan struct{})
		go func() { defer close(ended); left.Run(ctx) }()
		defer func() { stop(); <-ended }()

		r := b.start() // its first sweep finds a live lease of another folder
		if err := s.ExpireClaim(t.Context(), lost); err != nil {
			t.Fatal(err)
		}
		r.Wake(id)
		b.untilState(id, journal.StateUncertain)
		evidence := storetest.Body[*journal.CallUnknown](t, storetest.Events(t, s, id)).Evidence
		if len(evidence) == 0 || !strings.Contains(evidence[len(evidence)-1].Text, "were ended") {
			t.Errorf("it was concluded with the evidence %+v, want that its process was ended", evidence)
		}
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("what the lost execution left still runs")
		}
	})
}
