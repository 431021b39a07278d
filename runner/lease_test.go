package runner_test

import (
	"context"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/store"
	"holdfast/store/storetest"
)

func quick(o *runner.Options) {
	o.Lease, o.Renew, o.Sweep = 3*time.Second, 300*time.Millisecond, 500*time.Millisecond
}

// steal takes the session over as another worker would after the lease has expired.
func (b *bench) steal(id string) *journal.Claim {
	b.t.Helper()
	v, err := b.s.Session(b.t.Context(), b.owner, id)
	if err != nil || v.Claim == nil {
		b.t.Fatalf("no claim to steal: %v", err)
	}
	for {
		if err := b.s.ExpireClaim(b.t.Context(), v.Claim); err != nil {
			b.t.Fatal(err)
		}
		seen, err := b.s.ExpiredClaim(b.t.Context(), id)
		if err != nil {
			b.t.Fatal(err)
		}
		if seen == nil { // its keeper has renewed it in between
			continue
		}
		done, err := b.s.Recover(b.t.Context(), store.Recovery{Claim: *seen})
		if done {
			return v.Claim
		}
		if !journal.Is(err, journal.Conflict) { // likewise
			b.t.Fatalf("recover: %v %v", done, err)
		}
	}
}

// A worker whose session was taken over ends what it runs and writes nothing more.
//
// proves LEA-3 LEA-4 LEA-12 CAL-4
func TestRunner_EndsWhatItRunsWhenFenced(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s, quick)
		b.opts.Sweep = time.Hour
		b.fifo("gate")
		r := b.start()
		id := b.session(steps("echo $$ > pid; read x < gate; echo never >> log", "echo never >> log"))
		b.untilKind(id, journal.KindCallDispatched, 1)
		old := b.steal(id)
		b.until(id, "the fenced drain has ended", func(store.Session) bool { return len(r.Active()) == 0 })
		r.Stop() // waits for the child too
		if got := b.file("log"); got != "" {
			t.Errorf("log %q: a step ran after the fence", got)
		}
		evs := storetest.Events(t, s, id)
		recovered := false
		for _, e := range evs {
			recovered = recovered || e.Kind == journal.KindStepRecovered
			if recovered && e.ExecutionID == old.ExecutionID {
				t.Errorf("#%d %s was written by the fenced execution", e.Seq, e.Kind)
			}
		}
		if v := b.untilState(id, journal.StateUncertain); len(v.State.UnknownCalls) != 1 {
			t.Errorf("unknown calls %v, want the one in flight", v.State.UnknownCalls)
		}
	})
}

// proves LEA-5
func TestNew_RenewMustBeAThirdOfTheLease(t *testing.T) {
	t.Parallel()
	_, err := runner.New(runner.Options{Lease: 30 * time.Second, Renew: 11 * time.Second, Sweep: time.Second, MaxRunning: 1})
	if err == nil {
		t.Error("a renewal after more than a third of the lease was taken")
	}
}

// A lease that nobody renewed in time is renewed when nobody has replaced it: the run goes on.
//
// proves LEA-3 REC-1
func TestRunner_RenewsAnExpiredClaimThatNobodyReplaced(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s, quick)
		gate := b.fifo("gate")
		r := b.start()
		id := b.session(steps("read x < gate; echo a >> log", "echo b >> log"))
		b.untilKind(id, journal.KindCallDispatched, 1)
		v, err := s.Session(t.Context(), b.owner, id)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.ExpireClaim(t.Context(), v.Claim); err != nil {
			t.Fatal(err)
		}
		r.Sweep(t.Context()) // its own drain: never recovered by its own sweeper
		open(t, gate)
		v = b.untilState(id, journal.StateReady)
		if got := b.file("log"); got != "a\nb\n" || len(v.State.UnknownCalls) != 0 {
			t.Errorf("log %q, unknown %v; want the run to go on", got, v.State.UnknownCalls)
		}
		if n := storetest.CountKind(storetest.Events(t, s, id), journal.KindStepRecovered); n != 0 {
			t.Errorf("%d recoveries, want none", n)
		}
	})
}

// failing is an agent that fails, or panics, a number of times.
type failing struct {
	runner.Agent
	name string
	run  func(ctx context.Context, t *runner.Turn) (runner.Result, error)
}

func (f failing) Name() string            { return f.name }
func (f failing) Kind() string            { return "test" }
func (f failing) Steer() runner.SteerMode { return runner.SteerAfterTurn }
func (f failing) Run(ctx context.Context, t *runner.Turn) (runner.Result, error) {
	return f.run(ctx, t)
}

// A session whose drain always fails is recovered at once, and blocked at the third time.
//
// proves LEA-6 REC-3 REC-11 COO-9
func TestRunner_BlocksASessionThatAlwaysFails(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		broken := true
		b := setup(t, s, func(o *runner.Options) {
			o.Agents = append(o.Agents, failing{name: "panics", run: func(context.Context, *runner.Turn) (runner.Result, error) {
				if broken {
					panic("on purpose")
				}
				return runner.Result{}, nil
			}})
		})
		r := b.start()
		id := b.session("go", func(n *store.NewSession) { n.Agent = "panics" })
		v := b.untilState(id, journal.StateBlocked)
		evs := storetest.Events(t, s, id)
		if got := storetest.CountKind(evs, journal.KindStepRecovered); got != journal.MaxRecoveries {
			t.Errorf("%d recoveries, want %d", got, journal.MaxRecoveries)
		}
		if got := storetest.CountKind(evs, journal.KindTurnStarted); got != 1 {
			t.Errorf("%d turns were started, want the one to go on", got)
		}
		if v.State.Blocked.Cause != journal.BlockRecovery {
			t.Errorf("blocked by %s", v.State.Blocked.Cause)
		}
		r.Stop()
		broken = false
		b.opts.WorkerID += "2"
		b.start()
		if err := s.Continue(t.Context(), b.owner, id, nil); err != nil {
			t.Fatal(err)
		}
		b.untilState(id, journal.StateReady)
	})
}
