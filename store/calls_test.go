package store_test

import (
	"errors"
	"slices"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// A session of many calls is listed by pages, in the order of proposal, none twice.
func TestCalls_Pages(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		var want, got []string
		for len(want) < 2*store.MaxCalls {
			var bodies []journal.Body
			for range 50 {
				id := store.NewID("call")
				want, bodies = append(want, id), append(bodies, r.Propose(id, journal.EffectRead))
			}
			storetest.MustAppend(t, s, r.Claim, "", bodies...)
		}
		for after, sizes := int64(0), []int{store.MaxCalls, store.MaxCalls, 0}; len(sizes) > 0; sizes = sizes[1:] {
			page, err := s.Calls(t.Context(), r.Owner, r.Session, after)
			must(t, err)
			if len(page) != sizes[0] {
				t.Fatalf("a page of %d calls, want %d", len(page), sizes[0])
			}
			for _, c := range page {
				got, after = append(got, c.ID), c.ProposedSeq
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("the pages have %d calls, want %d in their order", len(got), len(want))
		}
	})
}

// Output belongs to a call that runs, of the same session.
// proves CAL-8
func TestCallOutput_OnlyWhileItRuns(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r, other := storetest.MustRun(t, s, "w"), storetest.MustRun(t, s, "w2")
		runs := r.MustDispatched(t, s, journal.EffectRead)
		output := func(call string) error {
			_, err := s.Append(t.Context(), r.Claim, store.Append{Drafts: storetest.Drafts(&journal.CallOutput{CallID: call, Stream: "stdout", Text: journal.T("x")})})
			return err
		}
		must(t, output(runs))
		settled := r.MustDispatched(t, s, journal.EffectRead)
		storetest.MustAppend(t, s, r.Claim, "", storetest.Settle(settled, journal.CallSucceeded))
		before := storetest.Events(t, s, r.Session)
		for name, call := range map[string]string{
			"proposed": r.MustCall(t, s, journal.EffectEffect), "settled": settled, "none": "call_none", "another session's": other.MustDispatched(t, s, journal.EffectRead),
		} {
			if err := output(call); !journal.Is(err, journal.Conflict) {
				t.Errorf("output of a call that is %s: got %v", name, err)
			}
		}
		if after := storetest.Events(t, s, r.Session); len(after) != len(before)+1 { // the proposal
			t.Errorf("%d events after, %d before", len(after), len(before))
		}
	})
}

// proves CAL-3 CAL-8
func TestCall_States(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		raw := db.SQL(t)
		r := storetest.MustRun(t, s, "w")
		settle := func(to journal.CallState) func(id string) journal.Body {
			return func(id string) journal.Body { return storetest.Settle(id, to) }
		}
		dispatch := func(n int) func(id string) journal.Body {
			return func(id string) journal.Body { return storetest.Dispatch(id, n) }
		}
		unknown := func(id string) journal.Body { return &journal.CallUnknown{CallID: id} }
		for name, tt := range map[string]struct {
			effect journal.Effect
			path   []func(id string) journal.Body // each is taken
			last   func(id string) journal.Body   // refused, and nothing written
			state  journal.CallState
		}{
			"proposed can't become unknown":        {journal.EffectEffect, nil, unknown, journal.CallIsProposed},
			"proposed can be cancelled":            {journal.EffectEffect, []func(string) journal.Body{settle(journal.CallCancelled)}, dispatch(1), journal.CallCancelled},
			"the first dispatch is the first":      {journal.EffectEffect, nil, dispatch(2), journal.CallIsProposed},
			"an effect is dispatched once":         {journal.EffectEffect, []func(string) journal.Body{dispatch(1)}, dispatch(2), journal.CallIsDispatched},
			"a read again, with the next number":   {journal.EffectRead, []func(string) journal.Body{dispatch(1), dispatch(2)}, dispatch(2), journal.CallIsDispatched},
			"an idempotent one again":              {journal.EffectIdempotent, []func(string) journal.Body{dispatch(1), dispatch(2)}, dispatch(4), journal.CallIsDispatched},
			"a settled one isn't settled again":    {journal.EffectEffect, []func(string) journal.Body{dispatch(1), settle(journal.CallSucceeded)}, settle(journal.CallFailed), journal.CallSucceeded},
			"a settled one isn't dispatched again": {journal.EffectRead, []func(string) journal.Body{dispatch(1), settle(journal.CallFailed)}, dispatch(2), journal.CallFailed},
			"a settled one can't become unknown":   {journal.EffectEffect, []func(string) journal.Body{dispatch(1), settle(journal.CallFailed)}, unknown, journal.CallFailed},
			"an unknown one isn't settled":         {journal.EffectEffect, []func(string) journal.Body{dispatch(1), unknown}, settle(journal.CallSucceeded), journal.CallIsUnknown},
			"an unknown one isn't dispatched":      {journal.EffectEffect, []func(string) journal.Body{dispatch(1), unknown}, dispatch(2), journal.CallIsUnknown},
		} {
			id := r.MustCall(t, s, tt.effect)
			for _, step := range tt.path {
				storetest.MustAppend(t, s, r.Claim, "", step(id))
			}
			before := db.RowCounts(t, raw)
			_, err := s.Append(t.Context(), r.Claim, store.Append{Drafts: storetest.Drafts(&journal.PlanUpdated{}, tt.last(id))})
			if !journal.Is(err, journal.Conflict) {
				t.Errorf("%s: got %v", name, err)
			}
			wantSame(t, before, db.RowCounts(t, raw))
			c, err := s.Call(t.Context(), r.Owner, id)
			must(t, err)
			if c.State != tt.state {
				t.Errorf("%s: the call is %s, want %s", name, c.State, tt.state)
			}
		}
		_, err := s.Append(t.Context(), r.Claim, store.Append{Drafts: storetest.Drafts(storetest.Dispatch("call_none", 1))})
		storetest.WantCode(t, err, journal.NotFound)
		other := storetest.MustRun(t, s, "w") // another session's call isn't this one's to move
		foreign := other.MustCall(t, s, journal.EffectEffect)
		_, err = s.Append(t.Context(), r.Claim, store.Append{Drafts: storetest.Drafts(storetest.Dispatch(foreign, 1))})
		storetest.WantCode(t, err, journal.NotFound)
	})
}

// proves CAL-3 CAL-6 PRO-6
func TestResolveCall(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		raw := db.SQL(t)
		r := storetest.MustRun(t, s, "w")
		one, two := r.MustDispatched(t, s, journal.EffectEffect), r.MustDispatched(t, s, journal.EffectEffect)
		storetest.MustLose(t, s, r.Claim)
		storetest.MustPrompt(t, s, r.Owner, r.Session, "still admitted", journal.Queue)
		before := db.RowCounts(t, raw)
		for name, bad := range map[string]store.CallResolution{
			"no evidence":   {Outcome: journal.Happened, Evidence: " \n", Then: journal.ThenContinue},
			"no then":       {Outcome: journal.CannotTell},
			"a bad outcome": {Outcome: "maybe", Evidence: "x", Then: journal.ThenStay},
			"NUL":           {Outcome: journal.InPart, Evidence: "a\x00", Then: journal.ThenStay},
		} {
			if _, err := s.ResolveCall(t.Context(), r.Owner, one, bad); !journal.Is(err, journal.Unprocessable) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		storetest.WantSlug(t, s.Continue(t.Context(), r.Owner, r.Session, nil), "outcome-unknown")
		storetest.WantCode(t, s.Archive(t.Context(), r.Owner, r.Session), journal.Conflict)
		wantSame(t, before, db.RowCounts(t, raw))

		// Ten people answer at once: one answer counts, the others are told which.
		errs := together(10, func(int) error {
			_, err := s.ResolveCall(t.Context(), r.Owner, one, store.CallResolution{Outcome: journal.DidNotHappen, Evidence: "I looked", Then: journal.ThenContinue})
			return err
		})
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
				continue
			}
			storetest.WantSlug(t, err, "already-resolved")
			var je *journal.Error
			if !errors.As(err, &je) || je.Extra["resolution"] == nil {
				t.Errorf("the first answer isn't named: %v", err)
			}
		}
		if won != 1 {
			t.Errorf("%d answers were taken", won)
		}
		if c, err := s.Claim(t.Context(), claimRequest(r.Session, "w")); err != nil || c != nil {
			t.Fatalf("it runs with one outcome unknown: %v, %v", c, err)
		}
		c, err := s.ResolveCall(t.Context(), r.Owner, two, store.CallResolution{Outcome: journal.CannotTell, Then: journal.ThenContinue})
		must(t, err)
		if c.State != journal.CallIsUnknown || c.Resolution == nil || c.Resolution.By != r.Owner || c.Resolution.At == 0 {
			t.Errorf("got %+v", c)
		}
		cl := storetest.MustClaim(t, s, r.Session, "w2") // the same turn goes on
		r.Claim = cl
		done := r.MustDispatched(t, s, journal.EffectEffect)
		storetest.MustAppend(t, s, cl, journal.PhaseSafe, storetest.Settle(done, journal.CallSucceeded))
		_, err = s.ResolveCall(t.Context(), r.Owner, done, store.CallResolution{Outcome: journal.CannotTell, Then: journal.ThenStay})
		storetest.WantSlug(t, err, "call-state")
		end(t, s, cl, journal.Completed, false)
	})
}

// proves CAL-6 PRO-6 PRO-5
func TestResolveCall_ThenDecides(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		resolve := func(r *storetest.Run, call string, then journal.Then) {
			t.Helper()
			_, err := s.ResolveCall(t.Context(), r.Owner, call, store.CallResolution{Outcome: journal.CannotTell, Then: then})
			must(t, err)
		}
		t.Run("stay ends the open turn", func(t *testing.T) {
			r := storetest.MustRun(t, s, "w")
			waiting := r.MustCall(t, s, journal.EffectEffect)
			storetest.MustAppend(t, s, r.Claim, "", storetest.Ask("per_stay", waiting))
			call := r.MustUnknown(t, s)
			storetest.MustPrompt(t, s, r.Owner, r.Session, "later", journal.Queue)
			resolve(r, call, journal.ThenStay)
			b := storetest.Body[*journal.TurnEnded](t, storetest.Events(t, s, r.Session))
			if b.Outcome != journal.Stopped || b.Reason != "stay" {
				t.Errorf("got %+v", b)
			}
			p, err := s.Request(t.Context(), r.Owner, "per_stay")
			must(t, err)
			if p.Request.State != journal.RequestCancelled || p.Call.State != journal.CallCancelled {
				t.Errorf("the request is %s, its call %s", p.Request.State, p.Call.State)
			}
			if st := storetest.MustState(t, s, r.Session); !st.Held || st.Base != journal.StateStopped {
				t.Errorf("the queue isn't held: %+v", st)
			}
		})
		t.Run("stay after the turn holds the queue", func(t *testing.T) {
			r := storetest.MustRun(t, s, "w")
			call := r.MustDispatched(t, s, journal.EffectEffect)
			end(t, s, r.Claim, journal.Interrupted, true)
			storetest.MustPrompt(t, s, r.Owner, r.Session, "later", journal.Queue)
			resolve(r, call, journal.ThenStay)
			if c, err := s.Claim(t.Context(), claimRequest(r.Session, "w")); err != nil || c != nil {
				t.Errorf("claimed: %v, %v", c, err)
			}
		})
		t.Run("continue after the turn is a continue", func(t *testing.T) {
			r := storetest.MustRun(t, s, "w")
			call := r.MustDispatched(t, s, journal.EffectEffect)
			end(t, s, r.Claim, journal.Interrupted, true)
			resolve(r, call, journal.ThenContinue)
			evs := storetest.Events(t, s, r.Session)
			wantKinds(t, evs[len(evs)-3:], journal.KindCallResolved, journal.KindContinuation, journal.KindTurnStarted)
			f, _, err := s.Fold(t.Context(), r.Session)
			must(t, err)
			if len(f.Chain) != 2 || f.Chain[0] != r.Turn || f.Call(call) == nil || f.Call(call).Resolution == nil {
				t.Errorf("the chain is %v", f.Chain)
			}
		})
	})
}

// proves CAL-9
func TestAppend_RulesChanged(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		raw := db.SQL(t)
		r := storetest.MustRun(t, s, "w")
		id := r.MustCall(t, s, journal.EffectEffect)
		_, rules, err := s.Fold(t.Context(), r.Session)
		must(t, err)
		db.MustExec(t, raw, "UPDATE session SET rules_version = rules_version + 1 WHERE id = ?", r.Session)
		a := store.Append{Drafts: storetest.Drafts(storetest.Dispatch(id, 1)), Phase: journal.PhaseUncertain, RulesVersion: rules.Version}
		_, err = s.Append(t.Context(), r.Claim, a)
		if !errors.Is(err, store.ErrRulesChanged) {
			t.Fatalf("got %v", err)
		}
		c, err := s.Call(t.Context(), r.Owner, id)
		must(t, err)
		if c.State != journal.CallIsProposed {
			t.Errorf("the call is %s", c.State)
		}
		a.RulesVersion++
		_, err = s.Append(t.Context(), r.Claim, a)
		must(t, err)
		// No event has raised it, which verify would find.
		db.MustExec(t, raw, "UPDATE session SET rules_version = rules_version - 1 WHERE id = ?", r.Session)
	})
}

// A stop that was asked for before a dispatch commits refuses it in the dispatch's own
// transaction; what had committed before is found by its repetition (COO-10), and a stop
// at the boundary lets the step that is open go on to it.
//
// proves COO-4 COO-10 CAL-1
func TestAppend_DispatchesNothingThatWasStopped(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		dispatch := func(id string, n int) store.Append {
			return store.Append{
				Drafts: storetest.Drafts(&journal.PlanUpdated{}, storetest.Dispatch(id, n)), Phase: journal.PhaseUncertain,
				Spool: &store.Spool{CallID: id, N: n, StateFolderID: "fld_a"},
			}
		}
		begun, never := r.MustCall(t, s, journal.EffectEffect), r.MustCall(t, s, journal.EffectEffect)
		must(t, s.RequestInterrupt(t.Context(), r.Owner, r.Session, journal.InterruptBoundary))
		first := dispatch(begun, 1)
		once, err := s.Append(t.Context(), r.Claim, first)
		must(t, err)
		must(t, s.RequestInterrupt(t.Context(), r.Owner, r.Session, journal.InterruptNow))
		before, _, err := s.Head(t.Context(), r.Owner, r.Session)
		must(t, err)
		for _, retried := range []bool{false, true} {
			refused := dispatch(never, 1)
			refused.Retried = retried
			_, err = s.Append(t.Context(), r.Claim, refused)
			if !errors.Is(err, store.ErrInterrupted) || journal.CodeOf(err) != journal.Conflict {
				t.Fatalf("retried %v: got %v", retried, err)
			}
		}
		c, err := s.Call(t.Context(), r.Owner, never)
		must(t, err)
		head, _, err := s.Head(t.Context(), r.Owner, r.Session)
		must(t, err)
		if c.State != journal.CallIsProposed || head != before {
			t.Errorf("the call is %s, the journal ends at %d; want proposed, %d", c.State, head, before)
		}
		_, err = s.SpoolOffset(t.Context(), never, 1)
		storetest.WantCode(t, err, journal.NotFound)
		first.Retried = true
		again, err := s.Append(t.Context(), r.Claim, first)
		if err != nil || len(again) != len(once) || again[1].Seq != once[1].Seq {
			t.Errorf("the repetition found %v, %v; want %v", again, err, once)
		}
		// What is known of the one that runs is still written.
		storetest.MustAppend(t, s, r.Claim, "", &journal.CallOutput{CallID: begun, Stream: "stdout", Text: journal.T("x")})
		storetest.MustAppend(t, s, r.Claim, journal.PhaseSafe, storetest.Settle(begun, journal.CallCancelled))
	})
}

// proves CAL-1 CAL-2
func TestCall_IntentIsKept(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		id := r.MustCall(t, s, journal.EffectIdempotent)
		storetest.MustAppend(t, s, r.Claim, journal.PhaseUncertain, &journal.CallDispatched{
			CallID: id, N: 1, AllowedBy: journal.AllowedBy{Type: journal.AllowedByPreset, ID: "3", Text: "allow"},
			Process: &journal.Process{Host: "h", BootID: "b", PID: 7, PGID: 7, StartedTicks: 1 << 60},
		})
		storetest.MustAppend(t, s, r.Claim, "", &journal.CallOutput{CallID: id, Stream: "stdout", Offset: 0, Text: journal.T("12345")})
		list, err := s.Unsettled(t.Context(), r.Session, r.Claim.ExecutionID)
		must(t, err)
		if others, err := s.Unsettled(t.Context(), r.Session, "exe_gone"); err != nil || len(others) != 0 {
			t.Errorf("an execution that is over has %d unsettled calls, %v", len(others), err)
		}
		if len(list) != 1 || list[0].Process.StartedTicks != 1<<60 || string(list[0].Input) != `{"command":"echo hi"}` || list[0].AllowedBy.Text != "allow" {
			t.Errorf("got %+v", list)
		}
		live, err := s.Call(t.Context(), r.Owner, id)
		must(t, err)
		if live.OutputBytes != 5 {
			t.Errorf("%d bytes so far", live.OutputBytes)
		}
		code := 3
		storetest.MustAppend(t, s, r.Claim, journal.PhaseSafe, &journal.CallSettled{CallID: id, State: journal.CallFailed, ExitCode: &code, OutputBytes: 5, Reason: "exit"})
		all, err := s.Calls(t.Context(), r.Owner, r.Session, 0)
		must(t, err)
		if len(all) != 1 || all[0].ExitCode == nil || *all[0].ExitCode != 3 || all[0].EndedAt < all[0].DispatchedAt || all[0].N != 1 {
			t.Errorf("got %+v", all[0])
		}
	})
}

// proves CAL-6 CAL-8 ATT-1 ATT-6
func TestAttempts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		id := store.NewID("att")
		storetest.MustAppend(t, s, r.Claim, "", &journal.AttemptPrepared{AttemptID: id, TurnID: r.Turn, Model: "m"})
		_, err := s.Append(t.Context(), r.Claim, store.Append{Drafts: storetest.Drafts(&journal.AttemptReceiving{AttemptID: id})})
		storetest.WantCode(t, err, journal.Conflict)
		storetest.MustAppend(t, s, r.Claim, journal.PhaseUncertain, &journal.AttemptDispatched{AttemptID: id}, &journal.AttemptReceiving{AttemptID: id})
		storetest.MustLose(t, s, r.Claim)
		if st := storetest.MustState(t, s, r.Session); st.Base != journal.StateUncertain || len(st.UnknownAttempts) != 1 {
			t.Fatalf("got %+v", st)
		}
		_, err = s.ResolveAttempt(t.Context(), r.Owner, id, store.AttemptResolution{Outcome: "no", Then: journal.ThenContinue})
		storetest.WantCode(t, err, journal.Unprocessable)
		a, err := s.ResolveAttempt(t.Context(), r.Owner, id, store.AttemptResolution{Outcome: journal.AttemptRetry, Then: journal.ThenContinue})
		must(t, err)
		if a.State != journal.AttemptIsUnknown || a.Resolution != journal.AttemptRetry {
			t.Errorf("got %+v", a)
		}
		_, err = s.ResolveAttempt(t.Context(), r.Owner, id, store.AttemptResolution{Outcome: journal.AttemptAbandon, Then: journal.ThenStay})
		storetest.WantCode(t, err, journal.Conflict)
		c := storetest.MustClaim(t, s, r.Session, "w")
		again := store.NewID("att")
		storetest.MustAppend(t, s, c, "", &journal.AttemptPrepared{AttemptID: again, TurnID: r.Turn}, &journal.AttemptDispatched{AttemptID: again},
			&journal.AttemptSettled{AttemptID: again, Outcome: "stop", Usage: journal.Usage{InputTokens: 3, OutputTokens: 4, CostUSD: 0.1}})
		if st := storetest.MustState(t, s, r.Session); st.Usage.InputTokens != 3 || st.Usage.CostUSD != 0.1 || len(st.Attempts) != 0 {
			t.Errorf("got %+v", st)
		}
		end(t, s, c, journal.Completed, true)
	})
}

// What a person found of a step stands in the plan at once, whoever made the plan has
// a turn to say it or not.
//
// proves CAL-6
func TestResolveCall_SaysInThePlanWhatWasFound(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for _, found := range []journal.PlanItem{
			{State: journal.PlanDone}, {State: journal.PlanUnknown, Found: journal.DidNotHappen}, {State: journal.PlanUnknown, Found: journal.InPart}, {State: journal.PlanUnknown, Found: journal.CannotTell},
		} {
			r := storetest.MustRun(t, s, "w")
			call := r.MustDispatched(t, s, journal.EffectEffect)
			step := journal.PlanItem{Key: "key-" + call, Title: "Announce", State: journal.PlanRunning}
			other := journal.PlanItem{Key: "key", Title: "Another", State: journal.PlanPending}
			storetest.MustAppend(t, s, r.Claim, "", &journal.PlanUpdated{Plan: []journal.PlanItem{other, step}})
			storetest.MustLose(t, s, r.Claim)
			verdict := found.Found
			if verdict == "" {
				verdict = journal.Happened
			}
			_, err := s.ResolveCall(t.Context(), r.Owner, call, store.CallResolution{Outcome: verdict, Evidence: "I looked", Then: journal.ThenStay})
			must(t, err)
			st := storetest.MustState(t, s, r.Session)
			step.State, step.Found = found.State, found.Found
			if want := []journal.PlanItem{other, step}; !slices.Equal(st.Plan, want) || st.TurnOpen() {
				t.Errorf("%s: the plan is %+v, want %+v", verdict, st.Plan, want)
			}
		}
	})
}
