package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// proves REC-1 LEA-2
func TestRecover_LiveLease(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		t.Run("never recovers a live execution lease", func(t *testing.T) {
			r := storetest.MustRun(t, s, "w")
			r.MustDispatched(t, s, journal.EffectEffect)
			seen := *r.Claim
			seen.Phase = journal.PhaseUncertain
			if list, err := s.ExpiredClaims(t.Context(), journal.Claim{}, 10); err != nil || len(list) != 0 {
				t.Fatalf("a live lease is listed: %v, %v", list, err)
			}
			raw := db.SQL(t)
			before := db.RowCounts(t, raw)
			done, err := s.Recover(t.Context(), store.Recovery{Claim: seen})
			if done || !journal.Is(err, journal.Conflict) || !strings.Contains(err.Error(), "recovery execution claim changed: "+seen.ExecutionID) {
				t.Fatalf("got %v, %v", done, err)
			}
			// Seen as expired, then renewed: the guard reads the lease again.
			s.Skew(storetest.Lease + time.Second)
			seen = storetest.MustLoad(t, s, r.Claim)
			_, err = s.RenewClaims(t.Context(), "w", []string{seen.ExecutionID}, storetest.Lease)
			must(t, err)
			_, err = s.Recover(t.Context(), store.Recovery{Claim: seen})
			storetest.WantSlug(t, err, "claim-changed")
			s.Skew(0)
			wantSame(t, before, db.RowCounts(t, raw))
			storetest.MustAppend(t, s, r.Claim, "", &journal.PlanUpdated{})
		})

		t.Run("never recovers an execution superseded by a newer assistant", func(t *testing.T) {
			r := storetest.MustRun(t, s, "w")
			_, err := s.Append(t.Context(), r.Claim, store.Append{
				Drafts: storetest.Drafts(&journal.StepStarted{TurnID: r.Turn, MessageID: journal.OrNil("msg_old")}), Assistant: "msg_old",
			})
			must(t, err)
			call := r.MustDispatched(t, s, journal.EffectEffect)
			storetest.MustAppend(t, s, r.Claim, "",
				&journal.MessageCompleted{MessageID: "msg_note", Role: "agent", Part: journal.PartNote, Text: journal.T("a note supersedes nothing")})
			if st := storetest.MustState(t, s, r.Session); st.LatestAssistant != "msg_old" {
				t.Fatalf("the newest assistant message is %s", st.LatestAssistant)
			}
			storetest.MustAppend(t, s, r.Claim, "", &journal.MessageDelta{MessageID: "msg_new", Role: "agent", Part: journal.PartText, Text: journal.T("newer")})
			storetest.MustLose(t, s, r.Claim)
			evs := storetest.Events(t, s, r.Session)
			if storetest.CountKind(evs, journal.KindStepRecovered) != 0 {
				t.Error("it was recovered")
			}
			// What it had in the air is unknown all the same (REC-2).
			c, err := s.Call(t.Context(), r.Owner, call)
			must(t, err)
			if c.State != journal.CallIsUnknown {
				t.Errorf("its call is %s", c.State)
			}
		})
	})
}

// What recovers an execution notes until when it surely lived: its worker's last word,
// however much later its lease is ended from outside.
//
// proves REC-4 LEA-3
func TestRecover_NotesUntilWhenItLived(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		lost := func(name string, after, until time.Duration, by func(r *storetest.Run)) {
			t.Helper()
			s.Skew(0)
			r := storetest.MustRun(t, s, "w-"+name)
			r.MustDispatched(t, s, journal.EffectEffect)
			s.Skew(after)
			by(r)
			seen, err := s.Session(t.Context(), r.Owner, r.Session)
			must(t, err)
			if state, since := seen.Execution(); state != journal.StateUnconfirmed || since != storetest.MustLoad(t, s, r.Claim).AliveAt {
				t.Errorf("%s: the page says %s since %d", name, state, since)
			}
			done, err := s.Recover(t.Context(), store.Recovery{Claim: storetest.MustLoad(t, s, r.Claim)})
			if err != nil || !done {
				t.Fatalf("%s: %v, %v", name, done, err)
			}
			evs := storetest.Events(t, s, r.Session)
			got := time.Duration(storetest.Body[*journal.StepRecovered](t, evs).AliveAt-r.Claim.ClaimedAt) * time.Millisecond
			if got < until || got > until+30*time.Second {
				t.Errorf("%s: it lived for %v, want %v", name, got, until)
			}
		}
		lost("never renewed", time.Hour, 0, func(*storetest.Run) {})
		lost("renewed", time.Hour, 20*time.Minute, func(r *storetest.Run) {
			s.Skew(20 * time.Minute)
			_, err := s.RenewClaims(t.Context(), r.Worker, []string{r.Claim.ExecutionID}, storetest.Lease)
			must(t, err)
			s.Skew(time.Hour)
		})
		lost("its folder is another worker's", time.Hour, 0, func(r *storetest.Run) {
			n, err := s.ExpireFolder(t.Context(), r.Claim.StateFolderID, "next")
			if must(t, err); n == 0 {
				t.Error("nothing expired")
			}
		})
		lost("its worker says that it failed", time.Hour, time.Hour, func(r *storetest.Run) { must(t, s.ExpireClaim(t.Context(), r.Claim)) })
	})
}

// proves REC-2
func TestRecover_SafePhaseLeavesNoEvent(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		call := r.MustDispatched(t, s, journal.EffectEffect)
		storetest.MustAppend(t, s, r.Claim, journal.PhaseSafe, storetest.Settle(call, journal.CallSucceeded))
		sub := s.SubscribeWork()
		defer sub.Close()
		before := storetest.Events(t, s, r.Session)
		storetest.MustLose(t, s, r.Claim)
		if after := storetest.Events(t, s, r.Session); len(after) != len(before) {
			t.Errorf("events were written: %v", storetest.Kinds(after[len(before):]))
		}
		hearWork(t, sub, r.Session)
		if c := storetest.MustClaim(t, s, r.Session, "w2"); c.Epoch != r.Claim.Epoch+2 {
			t.Errorf("the epoch is %d after %d, a recovery and a claim", c.Epoch, r.Claim.Epoch)
		}
	})
}

// proves REC-3 REC-6
func TestRecover_ReadyPhaseChangesNoCall(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		call := r.MustCall(t, s, journal.EffectEffect)
		sub := s.SubscribeWork()
		defer sub.Close()
		storetest.MustLose(t, s, r.Claim)
		evs := storetest.Events(t, s, r.Session)
		b := storetest.Body[*journal.StepRecovered](t, evs)
		if b.Phase != journal.PhaseReady || len(b.Calls) != 0 || b.AssistantMessageID != nil || b.RecoveryMessageID == "" || b.ContinuationMessageID == "" || b.ExecutionID != r.Claim.ExecutionID {
			t.Errorf("got %+v", b)
		}
		if evs[len(evs)-1].Kind != journal.KindStepRecovered {
			t.Errorf("after it came %s", evs[len(evs)-1].Kind)
		}
		hearWork(t, sub, r.Session)
		c, err := s.Call(t.Context(), r.Owner, call)
		must(t, err)
		if c.State != journal.CallIsProposed {
			t.Errorf("the call is %s", c.State)
		}
		// The turn goes on without a second turn.started.
		r.Claim = storetest.MustClaim(t, s, r.Session, "w2")
		storetest.MustAppend(t, s, r.Claim, journal.PhaseUncertain, storetest.Dispatch(call, 1))
		storetest.MustAppend(t, s, r.Claim, journal.PhaseSafe, storetest.Settle(call, journal.CallSucceeded))
		end(t, s, r.Claim, journal.Completed, true)
		if n := storetest.CountKind(storetest.Events(t, s, r.Session), journal.KindTurnStarted); n != 1 {
			t.Errorf("%d turns were started", n)
		}
	})
}

// proves REC-4 CAL-4 REC-6 CAL-7
func TestRecover_UncertainPhase(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		r := storetest.MustRun(t, s, "w")
		_, err := s.Append(t.Context(), r.Claim, store.Append{
			Drafts: storetest.Drafts(&journal.StepStarted{TurnID: r.Turn, MessageID: journal.OrNil("msg_1")}), Assistant: "msg_1",
		})
		must(t, err)
		effect, read, idem := r.MustDispatched(t, s, journal.EffectEffect), r.MustDispatched(t, s, journal.EffectRead), r.MustDispatched(t, s, journal.EffectIdempotent)
		proposed := r.MustCall(t, s, journal.EffectEffect)
		storetest.MustAppend(t, s, r.Claim, "", &journal.CallOutput{CallID: effect, Stream: "stdout", Offset: 0, Text: journal.T("so far")},
			&journal.CallOutput{CallID: effect, Stream: "stderr", Offset: 6, Text: journal.T("…and on")})
		inAir, prepared := store.NewID("att"), store.NewID("att")
		storetest.MustAppend(t, s, r.Claim, "", &journal.AttemptPrepared{AttemptID: inAir, TurnID: r.Turn}, &journal.AttemptDispatched{AttemptID: inAir}, &journal.AttemptPrepared{AttemptID: prepared, TurnID: r.Turn})
		queued := storetest.MustPrompt(t, s, r.Owner, r.Session, "later", journal.Queue)

		must(t, s.ExpireClaim(t.Context(), r.Claim))
		done, err := s.Recover(t.Context(), store.Recovery{
			Claim:    storetest.MustLoad(t, s, r.Claim),
			Evidence: map[string][]journal.Evidence{effect: {{Type: "process", Text: "the process 7 was ended"}}},
		})
		if err != nil || !done {
			t.Fatalf("%v, %v", done, err)
		}
		evs := storetest.Events(t, s, r.Session)
		b := storetest.Body[*journal.StepRecovered](t, evs)
		if *b.AssistantMessageID != "msg_1" || b.RecoveryMessageID != "msg_1" || b.ContinuationMessageID == "msg_1" || b.Phase != journal.PhaseUncertain {
			t.Errorf("got %+v", b)
		}
		if len(b.Calls) != 1 || b.Calls[0] != (journal.RecoveredCall{CallID: effect, Became: journal.CallIsUnknown}) {
			t.Errorf("calls %+v", b.Calls)
		}
		if len(b.Attempts) != 2 || b.Attempts[0].Became != journal.AttemptIsUnknown || b.Attempts[1].Became != journal.AttemptHasFailed {
			t.Errorf("attempts %+v", b.Attempts)
		}
		for id, want := range map[string]journal.CallState{effect: journal.CallIsUnknown, read: journal.CallIsDispatched, idem: journal.CallIsDispatched, proposed: journal.CallIsProposed} {
			c, err := s.Call(t.Context(), r.Owner, id)
			must(t, err)
			if c.State != want {
				t.Errorf("%s call is %s, want %s", c.Effect, c.State, want)
			}
		}
		c, err := s.Call(t.Context(), r.Owner, effect)
		must(t, err)
		if c.OutputBytes != 15 || c.Since != c.DispatchedAt || c.Since == 0 || len(c.Evidence) != 2 || !strings.Contains(c.Evidence[0].Text, "so far…and on") {
			t.Errorf("its output and times aren't kept: %+v", c)
		}
		// Nothing runs until a person says what happened; prompts still come in.
		if c, err := s.Claim(t.Context(), claimRequest(r.Session, "w2")); err != nil || c != nil {
			t.Errorf("claimed an uncertain session: %v, %v", c, err)
		}
		storetest.MustPrompt(t, s, r.Owner, r.Session, "more", journal.Queue)
		p, err := s.SessionPage(t.Context(), r.Owner, r.Session, 0, 50)
		must(t, err)
		if len(p.Queue) != 2 || p.Queue[0].Receipt.ID != queued.ID || len(p.Unknown) != 1 {
			t.Errorf("the page has %d prompts and %d unknown calls", len(p.Queue), len(p.Unknown))
		}
		raw := db.SQL(t)
		if n := db.Count(t, raw, "SELECT count(*) FROM recovery WHERE session_id = ? AND execution_id = ?", r.Session, r.Claim.ExecutionID); n != 1 {
			t.Errorf("%d recovery rows", n)
		}
	})
}

// proves REC-5
func TestRecover_Twice(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		ss := []*store.Store{db.Open(t), db.Open(t)}
		r := storetest.MustRun(t, ss[0], "w")
		r.MustDispatched(t, ss[0], journal.EffectEffect)
		must(t, ss[0].ExpireClaim(t.Context(), r.Claim))
		seen := storetest.MustLoad(t, ss[0], r.Claim)
		done := make([]bool, 8)
		for _, err := range together(len(done), func(i int) (err error) {
			done[i], err = ss[i%2].Recover(t.Context(), store.Recovery{Claim: seen})
			return err
		}) {
			if err != nil { // the row was locked by the one who recovers it
				storetest.WantSlug(t, err, "claim-changed")
			}
		}
		n := 0
		for _, d := range done {
			if d {
				n++
			}
		}
		evs := storetest.Events(t, ss[0], r.Session)
		if n != 1 || storetest.CountKind(evs, journal.KindStepRecovered) != 1 || storetest.CountKind(evs, journal.KindCallUnknown) != 1 {
			t.Errorf("%d say that they recovered it; events %v", n, storetest.Kinds(evs))
		}
		again, err := ss[1].Recover(t.Context(), store.Recovery{Claim: seen})
		if again || err != nil {
			t.Errorf("a duplicate: %v, %v", again, err)
		}
		// One that was never there, or ended well, isn't taken for done.
		seen.ExecutionID = "exe_other"
		_, err = ss[0].Recover(t.Context(), store.Recovery{Claim: seen})
		storetest.WantSlug(t, err, "claim-changed")
		seen.SessionID = "ses_none"
		_, err = ss[0].Recover(t.Context(), store.Recovery{Claim: seen})
		storetest.WantSlug(t, err, "claim-changed")
	})
}

// proves REC-4
func TestRecover_GuardFailsAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		raw := db.SQL(t)
		for name, change := range map[string]func(c *journal.Claim){
			"phase":             func(c *journal.Claim) { c.Phase = journal.PhaseReady },
			"assistant message": func(c *journal.Claim) { c.AssistantMessageID = "msg_other" },
			"execution":         func(c *journal.Claim) { c.ExecutionID = "exe_other" },
		} {
			r := storetest.MustRun(t, s, "w")
			r.MustDispatched(t, s, journal.EffectEffect)
			must(t, s.ExpireClaim(t.Context(), r.Claim))
			seen := storetest.MustLoad(t, s, r.Claim)
			change(&seen)
			before := db.RowCounts(t, raw)
			_, err := s.Recover(t.Context(), store.Recovery{Claim: seen})
			if !journal.Is(err, journal.Conflict) || !strings.Contains(err.Error(), "recovery execution claim changed: ") {
				t.Errorf("%s: got %v", name, err)
			}
			wantSame(t, before, db.RowCounts(t, raw))
			if n := db.Count(t, raw, "SELECT count(*) FROM session WHERE id = ? AND execution_id = ?", r.Session, r.Claim.ExecutionID); n != 1 {
				t.Errorf("%s: the fence was opened", name)
			}
			storetest.MustLose(t, s, r.Claim)
		}
	})
}

// proves REC-6 COO-4
func TestRecover_CarriesOutTheInterrupt(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		effect, read := r.MustDispatched(t, s, journal.EffectEffect), r.MustDispatched(t, s, journal.EffectRead)
		must(t, s.RequestInterrupt(t.Context(), r.Owner, r.Session, journal.InterruptNow))
		storetest.MustLose(t, s, r.Claim)
		evs := storetest.Events(t, s, r.Session)
		b := storetest.Body[*journal.TurnEnded](t, evs)
		if b.Outcome != journal.Stopped {
			t.Errorf("the turn ended %s", b.Outcome)
		}
		for id, want := range map[string]journal.CallState{effect: journal.CallIsUnknown, read: journal.CallCancelled} {
			c, err := s.Call(t.Context(), r.Owner, id)
			must(t, err)
			if c.State != want {
				t.Errorf("%s call is %s, want %s", c.Effect, c.State, want)
			}
		}
		if st := storetest.MustState(t, s, r.Session); st.Turn.EndedBy != r.Owner || !st.Held || st.Base != journal.StateUncertain {
			t.Errorf("the state is %+v", st)
		}
	})
}

// proves REC-7
func TestRecover_PendingRequestSurvives(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		asked := r.MustCall(t, s, journal.EffectEffect)
		storetest.MustAppend(t, s, r.Claim, "", storetest.Ask("per_1", asked))
		other := r.MustDispatched(t, s, journal.EffectEffect) // in the air beside it
		storetest.MustLose(t, s, r.Claim)
		p, err := s.Request(t.Context(), r.Owner, "per_1")
		must(t, err)
		if p.Request.State != journal.RequestPending || p.Call.State != journal.CallIsWaiting {
			t.Errorf("the request is %s, its call %s", p.Request.State, p.Call.State)
		}
		_, err = s.Decide(t.Context(), r.Owner, "per_1", store.Decision{Reply: journal.ReplyOnce})
		must(t, err)
		_, err = s.ResolveCall(t.Context(), r.Owner, other, store.CallResolution{Outcome: journal.CannotTell, Then: journal.ThenContinue})
		must(t, err)
		c := storetest.MustClaim(t, s, r.Session, "w2")
		storetest.MustAppend(t, s, c, journal.PhaseUncertain, storetest.Dispatch(asked, 1))
		storetest.MustAppend(t, s, c, journal.PhaseSafe, storetest.Settle(asked, journal.CallSucceeded))
	})
}

// proves REC-11 PRO-6
func TestRecover_ThirdOfATurnBlocks(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		lose := func() {
			t.Helper()
			storetest.MustLose(t, s, r.Claim)
		}
		claim := func() { r.Claim = storetest.MustClaim(t, s, r.Session, "w") }
		lose()
		claim()
		lose()
		claim()
		call := r.MustDispatched(t, s, journal.EffectEffect) // a step that settles starts the count anew
		storetest.MustAppend(t, s, r.Claim, journal.PhaseSafe, storetest.Settle(call, journal.CallSucceeded))
		lose() // safe: no event
		for range 2 {
			claim()
			lose()
		}
		if st := storetest.MustState(t, s, r.Session); st.Blocked != nil || st.Recoveries != 2 {
			t.Fatalf("after %d: %+v", st.Recoveries, st.Blocked)
		}
		claim()
		lose()
		st := storetest.MustState(t, s, r.Session)
		if st.Blocked == nil || st.Blocked.Cause != journal.BlockRecovery || st.Base != journal.StateBlocked {
			t.Fatalf("not blocked: %+v", st)
		}
		if c, err := s.Claim(t.Context(), claimRequest(r.Session, "w")); err != nil || c != nil {
			t.Fatalf("claimed although blocked: %v, %v", c, err)
		}
		storetest.MustPrompt(t, s, r.Owner, r.Session, "hello?", journal.Queue) // lifts a hold, not a block
		if c, err := s.Claim(t.Context(), claimRequest(r.Session, "w")); err != nil || c != nil {
			t.Fatalf("claimed although blocked: %v, %v", c, err)
		}
		must(t, s.Continue(t.Context(), r.Owner, r.Session, nil))
		claim()
		end(t, s, r.Claim, journal.Completed, false)
		if n := storetest.CountKind(storetest.Events(t, s, r.Session), journal.KindTurnStarted); n != 1 {
			t.Errorf("%d turns: the blocked one was to go on", n)
		}
	})
}

// What fails before its turn is open is not tried for ever either, and *continue*
// goes on with the prompts that wait: no turn is unfinished.
//
// proves REC-11 PRO-6
func TestRecover_ThirdBeforeATurnBlocks(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		end(t, s, r.Claim, journal.Completed, true)
		storetest.MustPrompt(t, s, r.Owner, r.Session, "again", journal.Queue)
		for i := range journal.MaxRecoveries {
			if st := storetest.MustState(t, s, r.Session); st.Blocked != nil {
				t.Fatalf("blocked after %d", i)
			}
			storetest.MustLose(t, s, storetest.MustClaim(t, s, r.Session, "w"))
		}
		if st := storetest.MustState(t, s, r.Session); st.Blocked == nil || st.Blocked.Cause != journal.BlockRecovery {
			t.Fatalf("not blocked: %+v", st)
		}
		must(t, s.Continue(t.Context(), r.Owner, r.Session, nil))
		if st := storetest.MustState(t, s, r.Session); st.Blocked != nil || st.TurnOpen() || st.Turn.Number != 1 {
			t.Errorf("after continue: %+v, want nothing but the block lifted", st)
		}
		storetest.MustPromote(t, s, storetest.MustClaim(t, s, r.Session, "w"))
		if st := storetest.MustState(t, s, r.Session); !st.TurnOpen() || st.Recoveries != 0 {
			t.Errorf("the prompt's turn: %+v, want it open, with nothing counted", st)
		}
	})
}

func TestEvidence_OfAWorkerThatComesBack(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		r := storetest.MustRun(t, s, "w")
		call := r.MustUnknown(t, s)
		e := journal.Evidence{Type: "process", Text: "it was ended by the worker that had started it"}
		must(t, s.Evidence(t.Context(), r.Session, call, e))
		_, err := s.ResolveCall(t.Context(), r.Owner, call, store.CallResolution{Outcome: journal.Happened, Evidence: "seen", Then: journal.ThenStay})
		must(t, err)
		must(t, s.Evidence(t.Context(), r.Session, call, e)) // late, and the resolution stays
		c, err := s.Call(t.Context(), r.Owner, call)
		must(t, err)
		if len(c.Evidence) != 3 || c.Resolution == nil || c.Resolution.Outcome != journal.Happened {
			t.Errorf("got %+v", c)
		}
		evs := storetest.Events(t, s, r.Session)
		if last := evs[len(evs)-1]; last.ExecutionID != "" || last.Kind != journal.KindCallEvidence {
			t.Errorf("got %+v", last)
		}
		other := storetest.MustRun(t, s, "w")
		settled := other.MustDispatched(t, s, journal.EffectEffect)
		storetest.MustAppend(t, s, other.Claim, journal.PhaseSafe, storetest.Settle(settled, journal.CallSucceeded))
		raw := db.SQL(t)
		before := db.RowCounts(t, raw)
		storetest.WantCode(t, s.Evidence(t.Context(), other.Session, settled, e), journal.Conflict)
		storetest.WantCode(t, s.Evidence(t.Context(), other.Session, call, e), journal.NotFound) // of another session
		storetest.WantCode(t, s.Evidence(t.Context(), r.Session, "call_none", e), journal.NotFound)
		wantSame(t, before, db.RowCounts(t, raw))
	})
}

// proves REC-9
func TestRunnable_LongestWaitingFirst(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		var want []string
		for i := range 3 {
			s.Skew(time.Duration(i) * time.Second)
			session := storetest.MustSession(t, s, owner).ID
			storetest.MustPrompt(t, s, owner, session, "x", journal.Queue)
			storetest.MustSession(t, s, owner) // nothing asked
			want = append(want, session)
		}
		got := runnable(t, s)
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("got %v, want %v", got, want)
		}
		list, _, err := s.Sessions(t.Context(), owner, store.SessionQuery{State: journal.StateQueued, Limit: 10})
		must(t, err)
		if len(list) != 3 || list[0].Position != 3 || list[2].Position != 1 {
			t.Errorf("places: %+v", list)
		}
		c := storetest.MustClaim(t, s, want[0], "w")
		if got = runnable(t, s); !slices.Equal(got, want[1:]) {
			t.Errorf("got %v, want %v", got, want[1:])
		}
		storetest.MustPromote(t, s, c)
	})
}

// What stays at the head of a list keeps nothing behind it from being found.
//
// proves REC-1 REC-8 REC-9
func TestLists_PagesReachTheEnd(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		var want []string
		for range 5 {
			id := storetest.MustSession(t, s, owner).ID
			storetest.MustPrompt(t, s, owner, id, "x", journal.Queue)
			want = append(want, id)
		}
		if got := runnable(t, s); !slices.Equal(got, want) {
			t.Errorf("runnable are %v, want %v", got, want)
		}
		for _, id := range want {
			storetest.MustClaim(t, s, id, "w")
		}
		s.Skew(2 * storetest.Lease) // all end at once, or nearly
		var got []string
		for _, c := range allPages(t, s.ExpiredClaims) {
			got = append(got, c.SessionID)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("expired are %v, want %v", got, want)
		}
		got = nil
		for _, id := range want {
			c := storetest.MustClaim(t, s, id, "w")
			f, _, err := s.Fold(t.Context(), id)
			must(t, err)
			if released, err := s.Release(t.Context(), c, f.Seq); err != nil || !released {
				t.Fatalf("released %v, %v", released, err)
			}
			must(t, s.Block(t.Context(), id, "w", journal.SessionBlocked{Cause: journal.BlockWorkspace}))
		}
		for _, b := range allPages(t, s.Blocked) {
			got = append(got, b.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("blocked are %v, want %v", got, want)
		}
	})
}
