package runner_test

import (
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/store"
	"holdfast/store/storetest"
)

// proves CAL-1 COO-8 JRN-5
func TestRunner_RunsAMission(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		b.start()
		id := b.session(steps("echo one; echo one", "echo two >> file"))
		b.untilState(id, journal.StateReady)
		if got := b.output(id, 0); got != "one\none\n" {
			t.Errorf("output %q, want one twice", got)
		}
		if got := b.file("file"); got != "two\n" {
			t.Errorf("file %q, want the effect once", got)
		}
		evs := storetest.Events(t, s, id)
		var order []string
		for _, e := range evs {
			if e.Kind != journal.KindPlanUpdated {
				order = append(order, string(e.Kind))
			}
		}
		want := "session.created prompt.admitted turn.started prompt.promoted step.started call.proposed call.dispatched call.output call.settled step.started call.proposed call.dispatched call.settled turn.ended"
		if got := strings.Join(order, " "); got != want {
			t.Errorf("events\n%s\nwant\n%s", got, want)
		}
	})
}

// What isn't text is kept byte for byte; what is stays text beside it.
//
// proves JRN-6 JRN-8 OWN-3
func TestRunner_KeepsOutputThatIsNotText(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s, func(o *runner.Options) { o.Secrets = []string{"topsecret1"} })
		b.start()
		id := b.session(steps("printf 'a\\000b\\377topsecret1\\n'", "printf 'gr\\303\\274n\\n'"))
		b.untilState(id, journal.StateReady)
		if got, want := b.output(id, 0), "a\x00b\xff[hidden]\n"; got != want {
			t.Errorf("output %q, want %q", got, want)
		}
		if got, want := b.output(id, 1), "grün\n"; got != want {
			t.Errorf("output %q, want %q", got, want)
		}
		outputs := 0
		for _, e := range storetest.Events(t, s, id) {
			body, err := e.Decode()
			if err != nil {
				t.Fatal(err)
			}
			if o, ok := body.(*journal.CallOutput); ok {
				outputs++
				if isText := o.Text.Blob == ""; isText != (outputs == 2) {
					t.Errorf("output %d: %s", outputs, e.Data)
				}
			}
		}
		if outputs != 2 {
			t.Errorf("%d outputs, want 2", outputs)
		}
	})
}

// proves PER-1 PER-4 PER-5 REC-7
func TestRunner_ParksForADecision(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		first := b.start()
		id := b.session(steps("echo hello"), asking)
		b.untilState(id, journal.StateWaiting)
		b.until(id, "it holds no claim here either", func(store.Session) bool { return len(first.Active()) == 0 })
		first.Stop()
		b.opts.WorkerID += "2"
		b.start()
		reqs, _, err := s.Requests(t.Context(), b.owner, store.RequestQuery{State: journal.RequestPending})
		if err != nil || len(reqs) != 1 {
			t.Fatalf("requests %v, %v; want the one that was asked before", reqs, err)
		}
		if _, err := s.Decide(t.Context(), b.owner, reqs[0].ID, store.Decision{Reply: journal.ReplyOnce}); err != nil {
			t.Fatal(err)
		}
		b.untilState(id, journal.StateReady)
		if got := b.output(id, 0); got != "hello\n" {
			t.Errorf("output %q", got)
		}
	})
}
