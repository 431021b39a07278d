package storetest

import (
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/store"
)

// StatesLease is the length of the leases of States: so long that no slow test
// comes near the end of one.
const StatesLease = time.Hour

// States makes sessions in every execution state that a journal and a claim come
// to (semantics §11), and in each with all that it may stand beside. It gives their ids.
func States(t testing.TB, s *store.Store, owner string) map[journal.ExecutionState][]string {
	t.Helper()
	w := stateMaker{t: t, s: s, owner: owner, out: map[journal.ExecutionState][]string{}}
	w.quiet()
	w.running()
	w.waiting()
	w.uncertain()
	w.adopted()
	return w.out
}

type stateMaker struct {
	t     testing.TB
	s     *store.Store
	owner string
	out   map[journal.ExecutionState][]string
}

func (w *stateMaker) is(state journal.ExecutionState, session string) {
	w.out[state] = append(w.out[state], session)
}

func (w *stateMaker) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// asked is a session with a prompt that nobody has promoted.
func (w *stateMaker) asked() *Run {
	w.t.Helper()
	r := &Run{Owner: w.owner, Session: MustSession(w.t, w.s, w.owner).ID, Worker: "w"}
	r.Prompt = MustPrompt(w.t, w.s, w.owner, r.Session, "x", journal.Queue)
	return r
}

func (w *stateMaker) claim(r *Run) {
	w.t.Helper()
	var err error
	r.Claim, err = w.s.Claim(w.t.Context(), store.ClaimRequest{SessionID: r.Session, WorkerID: r.Worker, StateFolderID: "fld_" + r.Worker, Lease: StatesLease})
	w.must(err)
	if r.Claim == nil {
		w.t.Fatalf("%s wasn't claimed", r.Session)
	}
}

// run is a session with an open turn and its claim.
func (w *stateMaker) run() *Run {
	w.t.Helper()
	r := w.asked()
	w.claim(r)
	r.Turn = MustPromote(w.t, w.s, r.Claim)
	return r
}

func (w *stateMaker) ask(r *Run) {
	w.t.Helper()
	MustAppend(w.t, w.s, r.Claim, "", Ask(store.NewID("per"), r.MustCall(w.t, w.s, journal.EffectEffect)))
}

func (w *stateMaker) end(r *Run, outcome journal.Outcome) {
	w.t.Helper()
	_, released, err := w.s.EndTurn(w.t.Context(), r.Claim, store.EndTurn{End: journal.TurnEnded{Outcome: outcome, Limit: map[journal.Outcome]string{journal.LimitReach: "steps"}[outcome]}, Actor: journal.Agent()})
	w.must(err)
	if !released {
		w.t.Fatalf("%s: %s, and it is held", r.Session, outcome)
	}
}

// quiet are those that nobody runs.
func (w *stateMaker) quiet() {
	w.is(journal.StateIdle, MustSession(w.t, w.s, w.owner).ID)
	w.is(journal.StateQueued, w.asked().Session)
	for state, outcome := range map[journal.ExecutionState]journal.Outcome{
		journal.StateReady: journal.Completed, journal.StateFailed: journal.Failed, journal.StateLimitReached: journal.LimitReach, journal.StateStopped: journal.Interrupted,
	} {
		r := w.run()
		w.end(r, outcome)
		w.is(state, r.Session)
	}
	r := w.run()
	w.end(r, journal.Stopped)
	w.is(journal.StateStopped, r.Session)
	r = w.run() // with a message that is held
	MustPrompt(w.t, w.s, w.owner, r.Session, "and then", journal.Queue)
	w.end(r, journal.Stopped)
	w.is(journal.StateStopped, r.Session)
	r = w.run()
	w.end(r, journal.Completed)
	w.must(w.s.Archive(w.t.Context(), w.owner, r.Session))
	w.is(journal.StateClosed, r.Session)
	r = w.asked()
	w.must(w.s.Block(w.t.Context(), r.Session, "w", journal.SessionBlocked{Cause: journal.BlockAgent, Detail: "No worker has it."}))
	w.is(journal.StateBlocked, r.Session)
}

// running are those that a claim holds, or that wait for their next try.
func (w *stateMaker) running() {
	r := w.run()
	w.is(journal.StateRunning, r.Session)
	r = w.run()
	w.must(w.s.RequestInterrupt(w.t.Context(), w.owner, r.Session, journal.InterruptNow))
	w.is(journal.StateStopping, r.Session)
	r = w.run()
	att := store.NewID("att")
	evs := MustAppend(w.t, w.s, r.Claim, "", &journal.AttemptPrepared{AttemptID: att, TurnID: r.Turn}, &journal.AttemptFailed{AttemptID: att, Retry: &journal.Retry{N: 1, Of: 3, At: 1 << 50}})
	_, err := w.s.Release(w.t.Context(), r.Claim, evs[1].Seq)
	w.must(err)
	w.is(journal.StateRetrying, r.Session)
}

// waiting are those that have asked, also beside what still runs.
func (w *stateMaker) waiting() {
	r := w.run()
	r.MustAsk(w.t, w.s)
	w.is(journal.StateWaiting, r.Session)
	r = w.run() // waits, but its worker hasn't let go yet
	w.ask(r)
	w.is(journal.StateWaiting, r.Session)
	for _, effect := range []journal.Effect{journal.EffectRead, journal.EffectEffect} { // waits beside something that runs
		r = w.run()
		r.MustDispatched(w.t, w.s, effect)
		w.ask(r)
		w.is(journal.StateRunning, r.Session)
	}
	r = w.run()
	MustAppend(w.t, w.s, r.Claim, "", &journal.AttemptPrepared{AttemptID: store.NewID("att"), TurnID: r.Turn})
	w.ask(r) // an agent that asks does nothing until it is answered, although its attempt goes on
	w.is(journal.StateWaiting, r.Session)
}

// uncertain are those that were lost with something in the air.
func (w *stateMaker) uncertain() {
	r := w.run()
	r.MustUnknown(w.t, w.s)
	w.is(journal.StateUncertain, r.Session)
	r = w.run()
	w.ask(r)
	r.MustUnknown(w.t, w.s)
	w.is(journal.StateUncertain, r.Session)
	r = w.run()
	att := store.NewID("att")
	MustAppend(w.t, w.s, r.Claim, journal.PhaseUncertain, &journal.AttemptPrepared{AttemptID: att, TurnID: r.Turn}, &journal.AttemptDispatched{AttemptID: att})
	MustLose(w.t, w.s, r.Claim)
	w.is(journal.StateUncertain, r.Session)
}

// adopted are those whose command outlived its server, followed again or not.
func (w *stateMaker) adopted() {
	adopt := func(beside ...func(*Run)) *Run {
		r := w.run()
		call := r.MustSpooled(w.t, w.s, journal.EffectEffect)
		for _, f := range beside {
			f(r)
		}
		r.MustAdopt(w.t, w.s, call)
		return r
	}
	missing := func(r *Run) {
		MustAppend(w.t, w.s, r.Claim, "", &journal.SessionBlocked{Cause: journal.BlockWorkspace, Detail: "The folder is gone."})
	}
	w.is(journal.StateRunning, adopt().Session)
	w.is(journal.StateRunning, adopt(w.ask).Session)
	w.is(journal.StateRunning, adopt(missing).Session)
	r := adopt()
	w.claim(r)
	w.is(journal.StateRunning, r.Session)
	for _, followed := range []bool{false, true} {
		r = adopt()
		w.must(w.s.RequestInterrupt(w.t.Context(), w.owner, r.Session, journal.InterruptNow))
		if followed {
			w.claim(r)
		}
		w.is(journal.StateStopping, r.Session)
	}
	r = w.run()
	kept := r.MustSpooled(w.t, w.s, journal.EffectEffect)
	r.MustDispatched(w.t, w.s, journal.EffectEffect) // what became of it isn't known, beside what still runs
	r.MustAdopt(w.t, w.s, kept)
	w.is(journal.StateUncertain, r.Session)
}
