package journal

import (
	"encoding/json"
	"testing"
)

// story folds bodies, one a second, and gives the state.
func story(t *testing.T, bodies ...Body) *State {
	t.Helper()
	var s State
	for i, b := range bodies {
		ev := &Event{Seq: int64(i + 1), Time: int64(i+1) * 1000, Kind: b.Kind(), Actor: User("usr_1")}
		if err := s.Apply(ev, b); err != nil {
			t.Fatalf("#%d %s: %v", ev.Seq, b.Kind(), err)
		}
	}
	return &s
}

var (
	created  = &SessionCreated{Title: "t", Agent: "runbook"}
	admitted = &PromptAdmitted{PromptID: "inp_1", Delivery: Queue}
	started  = &TurnStarted{TurnID: "trn_1", Cause: CausePrompt}
	promoted = &PromptPromoted{PromptID: "inp_1", TurnID: "trn_1"}
	proposed = &CallProposed{CallID: "call_1", TurnID: "trn_1", Effect: EffectEffect}
	asked    = &PermissionAsked{ID: "per_1", Tool: ToolRef{CallID: "call_1"}}
	replied  = &PermissionReplied{ID: "per_1", Reply: ReplyOnce}
	sent     = &CallDispatched{CallID: "call_1", N: 1}
	done     = &CallSettled{CallID: "call_1", State: CallSucceeded}
	unknown  = &CallUnknown{CallID: "call_1"}
	lost     = &StepRecovered{ExecutionID: "exe_1"}
	kept     = &StepRecovered{ExecutionID: "exe_1", Calls: []RecoveredCall{{CallID: "call_1", Became: CallIsAdopted}}}
	adopted  = &CallAdopted{CallID: "call_1", StateFolderID: "fld_1"}
	ask      = &InterruptRequested{By: "usr_1", Mode: InterruptNow}
	askSafe  = &InterruptRequested{By: "usr_1", Mode: InterruptBoundary}
)

func ended(o Outcome) *TurnEnded { return &TurnEnded{TurnID: "trn_1", Outcome: o} }

func resolved(then Then) *CallResolved {
	return &CallResolved{CallID: "call_1", Outcome: Happened, Then: then}
}

// Each state of semantics §11 that the journal alone decides, and whether there is work.
//
// proves COO-2 PRO-5 CAL-6 REC-10
func TestState_Base(t *testing.T) {
	t.Parallel()
	running := []Body{created, admitted, started, promoted, proposed}
	with := func(more ...Body) []Body { return append(append([]Body{}, running...), more...) }
	for _, c := range []struct {
		name  string
		story []Body
		base  ExecutionState
		needs Needs
		work  bool
	}{
		{"nothing asked", []Body{created}, StateIdle, NeedsNone, false},
		{"withdrawn", []Body{created, admitted, &PromptWithdrawn{PromptID: "inp_1"}}, StateIdle, NeedsNone, false},
		{"admitted", []Body{created, admitted}, StateQueued, NeedsNone, true},
		{"turn open", running, StateQueued, NeedsNone, true},
		{"waiting", with(asked), StateWaiting, NeedsDecision, false},
		{"answered", with(asked, replied), StateQueued, NeedsNone, true},
		{"request cancelled", with(asked, &PermissionCancelled{ID: "per_1"}), StateQueued, NeedsNone, true},
		{"unknown", with(sent, lost, unknown), StateUncertain, NeedsReconcile, false},
		{"unknown and a new prompt", with(sent, lost, unknown, &PromptAdmitted{PromptID: "inp_2"}), StateUncertain, NeedsReconcile, false},
		{"resolved", with(sent, unknown, resolved(ThenContinue)), StateQueued, NeedsNone, true},
		{"interrupt", with(sent, ask), StateStopping, NeedsNone, true},
		{"interrupt of a parked turn", with(asked, ask), StateStopping, NeedsNone, true},
		{"stopping at a safe point, a request beside what runs", with(sent, &CallProposed{CallID: "call_2", TurnID: "trn_1"}, &PermissionAsked{ID: "per_2", Tool: ToolRef{CallID: "call_2"}}, askSafe), StateStopping, NeedsDecision, true},
		{"stopping at a safe point, and there", with(asked, askSafe, &PermissionCancelled{ID: "per_1", Stops: true}), StateStopping, NeedsNone, true},
		{"stopped", with(sent, ask, done, ended(Stopped)), StateStopped, NeedsNone, false},
		{"stopped with a held queue", []Body{created, admitted, &PromptAdmitted{PromptID: "inp_2"}, started, promoted, ended(Stopped)}, StateStopped, NeedsBlocked, false},
		{"failed with a held queue", []Body{created, admitted, &PromptAdmitted{PromptID: "inp_2"}, started, promoted, ended(Failed)}, StateFailed, NeedsBlocked, false},
		{"a new prompt lifts the hold", with(done, ended(Stopped), &PromptAdmitted{PromptID: "inp_2"}), StateQueued, NeedsNone, true},
		{"continue lifts the hold", with(done, ended(Failed), &ContinuationRequested{}, &TurnStarted{TurnID: "trn_2", Cause: CauseContinuation}), StateQueued, NeedsNone, true},
		{"interrupted", with(done, ended(Interrupted)), StateStopped, NeedsReview, false},
		{"failed", with(done, ended(Failed)), StateFailed, NeedsReview, false},
		{"limit", with(done, ended(LimitReach)), StateLimitReached, NeedsReview, false},
		{"completed", with(sent, done, ended(Completed)), StateReady, NeedsReview, false},
		{"completed with a queue", append(with(&PromptAdmitted{PromptID: "inp_2"}, done), ended(Completed)), StateQueued, NeedsNone, true},
		{"stay after the turn has ended", with(sent, unknown, ended(Stopped), &PromptAdmitted{PromptID: "inp_2"}, resolved(ThenStay)), StateStopped, NeedsBlocked, false},
		{"blocked", with(&SessionBlocked{Cause: BlockAgent}), StateBlocked, NeedsBlocked, false},
		{"unblocked", with(&SessionBlocked{Cause: BlockAgent}, &SessionUnblocked{Cause: BlockAgent}), StateQueued, NeedsNone, true},
		{"adopted", with(sent, kept, adopted), StateRunning, NeedsNone, true},
		{"adopted, and let go", with(sent, kept, adopted, &CallAdopted{CallID: "call_1"}), StateQueued, NeedsNone, true},
		{"adopted and settled", with(sent, kept, adopted, done, ended(Completed)), StateReady, NeedsReview, false},
		{"adopted beside a request", with(sent, &CallProposed{CallID: "call_2", TurnID: "trn_1"}, &PermissionAsked{ID: "per_2", Tool: ToolRef{CallID: "call_2"}}, kept, adopted), StateRunning, NeedsDecision, true},
		{"adopted and blocked", with(sent, kept, adopted, &SessionBlocked{Cause: BlockAgent}), StateRunning, NeedsBlocked, true},
		{"adopted beside an unknown", with(sent, &CallProposed{CallID: "call_2", TurnID: "trn_1"}, kept, adopted, &CallUnknown{CallID: "call_2"}), StateUncertain, NeedsReconcile, true},
		{"adopted beside a retry", with(sent, &AttemptPrepared{AttemptID: "att_1"}, &AttemptFailed{AttemptID: "att_1", Retry: &Retry{At: 1 << 50}}, kept, adopted), StateRunning, NeedsNone, true},
		{"adopted, then interrupted", with(sent, kept, adopted, ask), StateStopping, NeedsNone, true},
		{"archived", with(done, ended(Completed), &SessionArchived{}), StateClosed, NeedsNone, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := story(t, c.story...)
			if s.Base != c.base || s.HasWork(1<<40) != c.work {
				t.Errorf("base %s, work %v; want %s, %v", s.Base, s.HasWork(1<<40), c.base, c.work)
			}
			if s.Needs() != c.needs {
				t.Errorf("needs %s, want %s", s.Needs(), c.needs)
			}
			b, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var back State
			if err := json.Unmarshal(b, &back); err != nil {
				t.Fatal(err)
			}
			again, err := json.Marshal(&back)
			if err != nil || string(again) != string(b) {
				t.Errorf("the state doesn't survive storage:\n%s\n%s", b, again)
			}
		})
	}
}

// proves REC-11
func TestState_CountsRecoveriesWithoutProgress(t *testing.T) {
	t.Parallel()
	s := story(t, created, admitted, started, promoted, lost, lost, proposed, sent, done, lost)
	if s.Recoveries != 1 {
		t.Errorf("%d recoveries since the last settled step, want 1", s.Recoveries)
	}
	if s = story(t, created, admitted, started, promoted, lost, proposed, sent, kept, adopted, kept, adopted); s.Recoveries != 1 {
		t.Errorf("%d recoveries, want 1: those that adopt don't count", s.Recoveries)
	}
	s = story(t, created, admitted, started, promoted, lost, lost, lost, &SessionBlocked{Cause: BlockRecovery}, &ContinuationRequested{})
	if s.Recoveries != 0 || s.Blocked != nil {
		t.Errorf("continue doesn't lift the block: %+v", s)
	}
}

// A turn that has ended parks nothing: what was missing for it is nobody's need any
// more, and isn't said of what comes next.
//
// proves COO-2 COO-4
func TestState_AnEndedTurnIsNotBlocked(t *testing.T) {
	t.Parallel()
	s := story(t, created, admitted, started, promoted, &SessionBlocked{Cause: BlockWorkspace}, &TurnEnded{TurnID: "trn_1", Outcome: Stopped})
	if s.Blocked != nil || s.Base != StateStopped || s.Needs() != NeedsNone || !s.Held {
		t.Errorf("%+v", s)
	}
}

// What can't follow is refused, and the caller writes nothing.
//
// proves CAL-8 COO-4
func TestState_Refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		story []Body
		then  Body
	}{
		{"a second open turn", []Body{created, started}, started},
		{"the end of no turn", []Body{created}, ended(Completed)},
		{"the end of another turn", []Body{created, started}, &TurnEnded{TurnID: "trn_9"}},
		{"a step without a turn", []Body{created}, &StepStarted{TurnID: "trn_1"}},
		{"a call without a turn", []Body{created, started, ended(Stopped)}, proposed},
		{"an interrupt without a turn", []Body{created}, ask},
	} {
		s := story(t, c.story...)
		if err := s.Apply(&Event{Seq: 99, Time: 99}, c.then); !Is(err, Conflict) {
			t.Errorf("%s: %v, want conflict", c.name, err)
		}
	}
}

func TestState_Execution(t *testing.T) {
	t.Parallel()
	const lease, now = 30_000, 1_000_000
	claim := func(left int64) *Claim { return &Claim{ClaimedAt: 5, LeaseMS: lease, ExpiresAt: now + left} }
	queued := story(t, created, admitted)
	for _, c := range []struct {
		name  string
		state *State
		claim *Claim
		want  ExecutionState
	}{
		{"no claim", queued, nil, StateQueued},
		{"live", queued, claim(lease), StateRunning},
		{"one renewal late", queued, claim(lease / 2), StateRunning},
		{"two renewals late", queued, claim(lease/3 - 1), StateUnconfirmed},
		{"expired", queued, claim(-1), StateUnconfirmed},
		{"all waits", story(t, created, admitted, started, promoted, proposed, asked), claim(lease), StateWaiting},
		{"adopted, and no worker yet", story(t, created, admitted, started, promoted, proposed, sent, kept, adopted), nil, StateRunning},
		{"adopted, and its worker gone", story(t, created, admitted, started, promoted, proposed, sent, kept, adopted), claim(-1), StateUnconfirmed},
		{"uncertain wins", story(t, created, admitted, started, promoted, proposed, sent, unknown), claim(lease), StateUncertain},
		{"stopping wins", story(t, created, admitted, started, promoted, proposed, sent, ask), claim(lease), StateStopping},
	} {
		if got, _ := c.state.Execution(c.claim, now); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Every change of a call is conditional on the state that it leaves.
//
// proves CAL-3 CAL-4 CAL-8
func TestCall_Moves(t *testing.T) {
	t.Parallel()
	settle := func(s CallState) Body { return &CallSettled{CallID: "call_1", State: s} }
	moves := map[string]Body{
		"ask": asked, "dispatch": &CallDispatched{CallID: "call_1", N: 1}, "settle": settle(CallSucceeded), "lose": unknown, "resolve": resolved(ThenStay), "evidence": &CallEvidence{CallID: "call_1"},
		"adopt": adopted,
	}
	allowed := map[CallState]map[string]CallState{
		CallIsProposed:   {"ask": CallIsWaiting, "dispatch": CallIsDispatched, "settle": CallSucceeded},
		CallIsWaiting:    {"ask": CallIsWaiting, "dispatch": CallIsDispatched, "settle": CallSucceeded},
		CallIsDispatched: {"settle": CallSucceeded, "lose": CallIsUnknown, "adopt": CallIsDispatched},
		CallIsUnknown:    {"resolve": CallIsUnknown, "evidence": CallIsUnknown},
		CallSucceeded:    {}, CallFailed: {}, CallCancelled: {}, CallIsRefused: {},
	}
	for from, ways := range allowed {
		for name, body := range moves {
			c := &Call{ID: "call_1", Effect: EffectEffect, State: from}
			err := c.Apply(&Event{Time: 7}, body)
			to, ok := ways[name]
			switch {
			case ok && (err != nil || c.State != to):
				t.Errorf("%s, %s: %s, %v; want %s", from, name, c.State, err, to)
			case !ok && !Is(err, Conflict):
				t.Errorf("%s, %s: %v, want conflict", from, name, err)
			}
		}
	}
	for effect, again := range map[Effect]bool{EffectRead: true, EffectIdempotent: true, EffectEffect: false} {
		c := &Call{ID: "call_1", Effect: effect, State: CallIsDispatched, N: 1}
		if err := c.Apply(&Event{}, &CallDispatched{N: 2}); (err == nil) != again {
			t.Errorf("a second dispatch of class %s: %v", effect, err)
		}
		if err := c.Apply(&Event{}, &CallDispatched{N: 2}); err == nil {
			t.Errorf("class %s: a number was given twice", effect)
		}
	}
	c := &Call{ID: "call_1", State: CallIsUnknown}
	if err := c.Apply(&Event{}, resolved(ThenStay)); err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(&Event{}, resolved(ThenStay)); !Is(err, Conflict) {
		t.Errorf("a second resolution: %v, want conflict", err)
	}
}

// An adoption is of one dispatch: the next one, and who lets go, end it.
//
// proves REC-10 CAL-4
func TestCall_AdoptedUntilItIsDispatchedAgain(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]Body{"let go": &CallAdopted{CallID: "call_1"}, "dispatched again": &CallDispatched{CallID: "call_1", N: 2}} {
		c := &Call{ID: "call_1", Effect: EffectRead, State: CallIsDispatched, N: 1}
		s := story(t, created, admitted, started, promoted, &CallProposed{CallID: "call_1", TurnID: "trn_1", Effect: EffectRead}, sent, kept, &CallAdopted{CallID: "call_1", Since: 3, StateFolderID: "fld_1"})
		if err := c.Apply(&Event{Time: 7}, adopted); err != nil || c.AdoptedAt != 7 || c.AdoptedBy != "fld_1" || !s.Adopts() || s.Adopted()[0] != (OpenCall{ID: "call_1", Effect: EffectRead, State: CallIsDispatched, Adopted: "fld_1", Since: 3, AdoptedAt: 8000}) {
			t.Fatalf("%+v, %+v, %v", c, s.Calls, err)
		}
		if err := c.Apply(&Event{Time: 9}, end); err != nil || c.AdoptedAt != 0 || c.AdoptedBy != "" {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
		if err := s.Apply(&Event{Seq: 99, Time: 9}, end); err != nil || s.Adopts() || len(s.Adopted()) != 0 || s.Calls[0] != (OpenCall{ID: "call_1", Effect: EffectRead, State: CallIsDispatched}) {
			t.Errorf("%s: %+v, %v", name, s.Calls, err)
		}
	}
}

func TestCall_NeverRan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		call Call
		want bool
	}{
		{Call{State: CallIsProposed}, true},
		{Call{State: CallCancelled, Reason: "interrupted"}, true},
		{Call{State: CallCancelled, N: 1, Reason: ReasonNotStarted}, true},
		{Call{State: CallCancelled, N: 1, Reason: "interrupted"}, false},
		{Call{State: CallFailed, N: 1, Reason: ReasonNotStarted}, false}, // only its exit record may say so
		{Call{State: CallIsDispatched, N: 1}, false},
	} {
		if got := c.call.NeverRan(); got != c.want {
			t.Errorf("%s, dispatched %d times, %q: %v", c.call.State, c.call.N, c.call.Reason, got)
		}
	}
}

// The first answer wins, and names itself to the second.
//
// proves PER-2 PER-6
func TestRequest_FirstAnswerWins(t *testing.T) {
	t.Parallel()
	r := NewRequest(&Event{Time: 5}, asked)
	if err := r.Apply(&Event{Time: 9}, &PermissionReplied{Reply: ReplyReject, Message: "no", By: "usr_1"}); err != nil || r.State != RequestRejectedWithFeedback {
		t.Fatalf("%s, %v", r.State, err)
	}
	err := r.Apply(&Event{Time: 10}, replied)
	if !Is(err, Conflict) {
		t.Fatalf("a second answer: %v, want conflict", err)
	}
	answered, ok := err.(*Error).Extra["answered"].(map[string]any) //nolint:errorlint // its type is what is tested
	if !ok || answered["by"] != "usr_1" || answered["at"] != int64(9) {
		t.Errorf("the refusal names %v", answered)
	}
	gone := NewRequest(&Event{}, asked)
	if err := gone.Apply(&Event{}, &PermissionCancelled{Reason: "stopped"}); err != nil {
		t.Fatal(err)
	}
	if err := gone.Apply(&Event{}, replied); !Is(err, Gone) {
		t.Errorf("an answer to a cancelled request: %v, want gone", err)
	}
}

// proves CAL-4
func TestCall_CountsTheOutputOfItsLastDispatch(t *testing.T) {
	t.Parallel()
	c := NewCall(&Event{SessionID: "ses_1", Seq: 1}, &CallProposed{CallID: "call_1", Effect: EffectRead})
	apply := func(body Body) error { return c.Apply(&Event{Kind: body.Kind()}, body) }
	output := &CallOutput{CallID: "call_1", Text: T("12345"), Dropped: 2}
	if err := apply(output); !Is(err, Conflict) {
		t.Errorf("output of a call that is %s: got %v", c.State, err)
	}
	for n := range 2 {
		if err := apply(&CallDispatched{CallID: "call_1", N: n + 1}); err != nil {
			t.Fatal(err)
		}
		if err := apply(output); err != nil {
			t.Fatal(err)
		}
		if c.OutputBytes != 5 || c.DroppedBytes != 2 {
			t.Errorf("dispatch %d: %d bytes, %d dropped; want 5 and 2", c.N, c.OutputBytes, c.DroppedBytes)
		}
	}
}

// Time in which a command ran on without its execution counts: up to its
// adoption, and from there to the first word of who follows it.
//
// proves COO-5 REC-10
func TestFold_CountsWhatOutlivedItsExecution(t *testing.T) {
	t.Parallel()
	f := NewFold(State{}, 0)
	seq := int64(0)
	tell := func(at int64, execution string, body Body) {
		t.Helper()
		seq++
		data, err := Encode(body)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Chained(&Event{Seq: seq, Kind: body.Kind(), Version: 1, Time: at, ExecutionID: execution, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	recovered := func(at int64, execution string, became CallState) {
		tell(at, "", &StepRecovered{ExecutionID: execution, Calls: []RecoveredCall{{CallID: "call_1", Became: became}}, Attempts: []RecoveredAttempt{}})
	}
	tell(1000, "", &TurnStarted{TurnID: "trn_1", Cause: CausePrompt})
	tell(2000, "exe_1", &StepStarted{TurnID: "trn_1"})
	recovered(5000, "exe_1", CallIsAdopted)
	recovered(6000, "exe_2", CallIsAdopted) // which was lost before it said anything
	tell(9000, "exe_3", &StepStarted{TurnID: "trn_1"})
	if got := f.WallMS(); got != 7000 {
		t.Errorf("it ran for %d ms, want from 2 s to 9 s", got)
	}
	recovered(12000, "exe_3", CallIsUnknown)
	tell(20000, "exe_4", &StepStarted{TurnID: "trn_1"})
	if got := f.WallMS(); got != 7000 {
		t.Errorf("it ran for %d ms, want no more: what was lost ran nothing", got)
	}
}

// A stop at the next safe point is one at once from there on; what the person asked for
// stands. A request that ends for another reason is no safe point.
//
// proves COO-4
func TestState_ASafePointIsReached(t *testing.T) {
	t.Parallel()
	for _, stops := range []bool{true, false} {
		s := story(t, created, admitted, started, promoted, proposed, asked, askSafe)
		if !s.OnlyWaits() || s.Interrupt.AtOnce() {
			t.Fatalf("%+v", s.Interrupt)
		}
		if err := s.Apply(&Event{Seq: 9}, &PermissionCancelled{ID: "per_1", Stops: stops}); err != nil {
			t.Fatal(err)
		}
		if s.Interrupt.AtOnce() != stops || s.Interrupt.Mode != InterruptBoundary {
			t.Errorf("%+v", s.Interrupt)
		}
	}
}
