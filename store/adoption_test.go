package store_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// seeWorker says that a worker of a folder lives.
func seeWorker(t testing.TB, s *store.Store, worker string) {
	t.Helper()
	must(t, s.SeeWorker(t.Context(), store.Worker{ID: worker, StateFolderID: "fld_" + worker, Host: "host_" + worker}))
}

// noClaim fails if a worker gets the session.
func noClaim(t testing.TB, s *store.Store, session, worker string) {
	t.Helper()
	if c, err := s.Claim(t.Context(), claimRequest(session, worker)); err != nil || c != nil {
		t.Fatalf("%s claimed %+v, %v", worker, c, err)
	}
}

func callState(t testing.TB, s *store.Store, r *storetest.Run, id string) journal.CallState {
	t.Helper()
	c, err := s.Call(t.Context(), r.Owner, id)
	must(t, err)
	return c.State
}

// What still runs when its execution is lost is adopted, whatever its class:
// nothing is unknown, nothing is asked, and the next claim follows it.
//
// proves REC-10 REC-4 REC-6 CAL-5 COO-2 LEA-1 LEA-2
func TestRecover_AdoptsWhatStillRuns(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		var ids []string
		for _, effect := range []journal.Effect{journal.EffectEffect, journal.EffectRead, journal.EffectIdempotent} {
			ids = append(ids, r.MustSpooled(t, s, effect))
		}
		must(t, readOn(s, t, r.Claim, ids[0], 1, 40, printed(ids[0], "so far", 0)))
		sub := s.SubscribeWork()
		defer sub.Close()
		r.MustAdopt(t, s, ids...)
		hearWork(t, sub, r.Session)

		evs := storetest.Events(t, s, r.Session)
		b := storetest.Body[*journal.StepRecovered](t, evs)
		for i, id := range ids {
			if len(b.Calls) != 3 || b.Calls[i] != (journal.RecoveredCall{CallID: id, Became: journal.CallIsAdopted}) {
				t.Fatalf("calls %+v", b.Calls)
			}
			c, err := s.Call(t.Context(), r.Owner, id)
			must(t, err)
			if c.State != journal.CallIsDispatched || c.AdoptedBy != "fld_w" || c.AdoptedAt == 0 {
				t.Errorf("%+v", c)
			}
		}
		a := storetest.Body[*journal.CallAdopted](t, evs)
		last, err := s.Call(t.Context(), r.Owner, ids[2])
		must(t, err)
		if *a != (journal.CallAdopted{CallID: ids[2], Since: last.DispatchedAt, StateFolderID: "fld_w"}) || storetest.CountKind(evs, journal.KindCallAdopted) != 3 || storetest.CountKind(evs, journal.KindCallUnknown) != 0 {
			t.Errorf("%+v among %v", a, storetest.Kinds(evs))
		}
		ss, err := s.Session(t.Context(), r.Owner, r.Session)
		must(t, err)
		if state, _ := ss.Execution(); state != journal.StateRunning || ss.State.Recoveries != 0 {
			t.Errorf("it is %s after %d recoveries", state, ss.State.Recoveries)
		}
		if list, _, err := s.Sessions(t.Context(), r.Owner, store.SessionQuery{State: journal.StateRunning, Limit: 10}); err != nil || len(list) != 1 {
			t.Errorf("among the running: %v, %v", list, err)
		}
		if got := runnable(t, s); len(got) != 1 {
			t.Errorf("a sweep finds %v", got)
		}

		r.Claim = storetest.MustClaim(t, s, r.Session, "w")
		if r.Claim.Phase != journal.PhaseUncertain {
			t.Errorf("its claim begins %s", r.Claim.Phase)
		}
		noClaim(t, s, r.Session, "w") // never one's own that is uncertain
		// Lost again: it is asked again, and said only once that it is adopted.
		r.MustAdopt(t, s, ids...)
		evs = storetest.Events(t, s, r.Session)
		if storetest.CountKind(evs, journal.KindCallAdopted) != 3 || storetest.CountKind(evs, journal.KindStepRecovered) != 2 {
			t.Errorf("after the second: %v", storetest.Kinds(evs))
		}
		r.Claim = storetest.MustClaim(t, s, r.Session, "w")
		wantOffset(t, s, ids[0], 1, 40)
		must(t, readOn(s, t, r.Claim, ids[0], 1, 50, printed(ids[0], "…and on", 6)))
		for _, id := range ids {
			storetest.MustAppend(t, s, r.Claim, "", storetest.Settle(id, journal.CallSucceeded))
		}
		storetest.MustAppend(t, s, r.Claim, journal.PhaseSafe)
		end(t, s, r.Claim, journal.Completed, true)
	})
}

// An exit record settles its call, and nobody is asked. One whose gate was never
// opened never ran.
//
// proves CAL-5 REC-4 REC-11
func TestRecover_SettlesByTheExitRecord(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		storetest.MustLose(t, s, r.Claim)
		r.Claim = storetest.MustClaim(t, s, r.Session, "w")
		well, never, unknown := r.MustSpooled(t, s, journal.EffectEffect), r.MustSpooled(t, s, journal.EffectEffect), r.MustSpooled(t, s, journal.EffectEffect)
		code := 3
		storetest.MustFind(t, s, r.Claim, map[string]store.Found{
			well:  {Settled: &journal.CallSettled{State: journal.CallFailed, ExitCode: &code}},
			never: {Settled: &journal.CallSettled{State: journal.CallCancelled, Reason: journal.ReasonNotStarted}},
		})
		b := storetest.Body[*journal.StepRecovered](t, storetest.Events(t, s, r.Session))
		want := []journal.RecoveredCall{{CallID: well, Became: journal.CallFailed}, {CallID: never, Became: journal.CallCancelled}, {CallID: unknown, Became: journal.CallIsUnknown}}
		for i := range want {
			if len(b.Calls) != len(want) || b.Calls[i] != want[i] {
				t.Fatalf("calls %+v, want %+v", b.Calls, want)
			}
			if got := callState(t, s, r, want[i].CallID); got != want[i].Became {
				t.Errorf("a call is %s, want %s", got, want[i].Became)
			}
		}
		c, err := s.Call(t.Context(), r.Owner, never)
		must(t, err)
		if !c.NeverRan() {
			t.Errorf("%+v counts as one that ran", c)
		}
		// A step has settled: the recovery before doesn't count any more.
		if st := storetest.MustState(t, s, r.Session); st.Recoveries != 0 || st.Base != journal.StateUncertain {
			t.Errorf("the state is %+v", st)
		}
	})
}

// A claim in phase safe, as while something only reads, is deleted without an
// event of its own; what its shims say counts there too.
//
// proves REC-2 REC-10 CAL-5
func TestRecover_SafePhaseAdoptsAndSettles(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		storetest.MustAppend(t, s, r.Claim, journal.PhaseSafe)
		runs, ended, gone := r.MustSpooled(t, s, journal.EffectRead), r.MustSpooled(t, s, journal.EffectRead), r.MustSpooled(t, s, journal.EffectRead)
		storetest.MustFind(t, s, r.Claim, map[string]store.Found{runs: {Adopted: true}, ended: {Settled: storetest.Settle("", journal.CallSucceeded)}})
		evs := storetest.Events(t, s, r.Session)
		if storetest.CountKind(evs, journal.KindStepRecovered) != 0 || storetest.CountKind(evs, journal.KindCallAdopted) != 1 {
			t.Errorf("events %v", storetest.Kinds(evs))
		}
		for id, want := range map[string]journal.CallState{runs: journal.CallIsDispatched, ended: journal.CallSucceeded, gone: journal.CallIsDispatched} {
			if got := callState(t, s, r, id); got != want {
				t.Errorf("a read is %s, want %s", got, want)
			}
		}
		// What isn't found any more is let go, and run again by whoever comes.
		r.Claim = storetest.MustClaim(t, s, r.Session, "w")
		storetest.MustLose(t, s, r.Claim)
		if st := storetest.MustState(t, s, r.Session); st.Adopts() || st.Recoveries != 1 {
			t.Fatalf("the state is %+v", st)
		}
		r.Claim = storetest.MustClaim(t, s, r.Session, "w2")
		must(t, readOn(s, t, r.Claim, runs, 2, 0, storetest.Dispatch(runs, 2)))
		storetest.MustAppend(t, s, r.Claim, "", storetest.Settle(runs, journal.CallSucceeded), storetest.Settle(gone, journal.CallSucceeded))
	})
}

// Nobody follows what isn't kept: nothing is adopted without a spool, and the
// claim stays for who finds out more.
//
// proves REC-10 CAL-8
func TestRecover_AdoptsNothingWithoutASpool(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		r := storetest.MustRun(t, s, "w")
		id := r.MustDispatched(t, s, journal.EffectEffect)
		must(t, s.ExpireClaim(t.Context(), r.Claim))
		seen := storetest.MustLoad(t, s, r.Claim)
		raw := db.SQL(t)
		before := db.RowCounts(t, raw)
		_, err := s.Recover(t.Context(), store.Recovery{Claim: seen, Found: map[string]store.Found{id: {Adopted: true}}})
		storetest.WantSlug(t, err, "no-such-spool")
		wantSame(t, before, db.RowCounts(t, raw))
		storetest.MustLose(t, s, r.Claim)
		if got := callState(t, s, r, id); got != journal.CallIsUnknown {
			t.Errorf("the call is %s", got)
		}
	})
}

// Three recoveries that adopt don't block a session: its command goes on.
//
// proves REC-11 REC-10
func TestRecover_AdoptionsDoNotBlock(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		for range journal.MaxRecoveries - 1 {
			storetest.MustLose(t, s, r.Claim)
			r.Claim = storetest.MustClaim(t, s, r.Session, "w")
		}
		id := r.MustSpooled(t, s, journal.EffectEffect)
		for range journal.MaxRecoveries {
			r.MustAdopt(t, s, id)
			if st := storetest.MustState(t, s, r.Session); st.Blocked != nil || st.Recoveries != journal.MaxRecoveries-1 {
				t.Fatalf("blocked %+v after %d", st.Blocked, st.Recoveries)
			}
			r.Claim = storetest.MustClaim(t, s, r.Session, "w")
		}
		storetest.MustLose(t, s, r.Claim) // this one isn't followed any more
		if st := storetest.MustState(t, s, r.Session); st.Blocked == nil || st.Unknowns() != 1 {
			t.Errorf("the state is %+v", st)
		}
	})
}

// What a folder adopted is for its workers, as long as one of them lives. Then it
// is unknown, or may be run again, and says why.
//
// proves LEA-1 LEA-11 REC-10 CAL-4 CAL-7
func TestClaim_AdoptedIsForItsFolder(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		raw := db.SQL(t)
		adopted := func(effect journal.Effect) (*storetest.Run, string) {
			t.Helper()
			r := storetest.MustRun(t, s, "w")
			id := r.MustCall(t, s, effect)
			sent := storetest.Dispatch(id, 1)
			sent.Process = &journal.Process{Host: "host_w", PID: 7}
			phase := journal.PhaseUncertain
			_, err := s.Append(t.Context(), r.Claim, store.Append{Drafts: storetest.Drafts(sent), Phase: phase, Spool: &store.Spool{CallID: id, N: 1, StateFolderID: "fld_w"}})
			must(t, err)
			r.MustAdopt(t, s, id)
			return r, id
		}
		effect, lost := adopted(journal.EffectEffect)
		read, again := adopted(journal.EffectRead)
		seeWorker(t, s, "w")
		seeWorker(t, s, "w2")
		before := db.RowCounts(t, raw)
		for _, r := range []*storetest.Run{effect, read} {
			noClaim(t, s, r.Session, "w2")
			must(t, s.Block(t.Context(), r.Session, "w2", journal.SessionBlocked{Cause: journal.BlockWorkspace})) // it runs: nothing is missing
		}
		wantSame(t, before, db.RowCounts(t, raw))

		s.Skew(time.Minute) // w was seen long ago
		seeWorker(t, s, "w2")
		noClaim(t, s, effect.Session, "w2")
		c, err := s.Call(t.Context(), effect.Owner, lost)
		must(t, err)
		if c.State != journal.CallIsUnknown || c.Since != c.DispatchedAt || len(c.Evidence) != 2 || !strings.Contains(c.Evidence[1].Text, "still running on host_w") {
			t.Errorf("%+v", c)
		}
		// Its host comes back: what it saw is evidence, and nothing else.
		must(t, s.Evidence(t.Context(), effect.Session, lost, journal.Evidence{Type: journal.EvidenceExitRecord, Text: "exit code 0"}))
		must(t, s.ForgetSpool(t.Context(), lost, 1))

		read.Claim = storetest.MustClaim(t, s, read.Session, "w2")
		if read.Claim.Phase != journal.PhaseReady || callState(t, s, read, again) != journal.CallIsDispatched {
			t.Errorf("the read's claim begins %s, it is %s", read.Claim.Phase, callState(t, s, read, again))
		}
		must(t, readOn(s, t, read.Claim, again, 2, 0, storetest.Dispatch(again, 2)))
		wantOffset(t, s, again, 2, 0)
	})
}

// A session that no worker can run isn't left behind with what was adopted in it.
//
// proves REC-10 REC-9
func TestBlock_ConcludesWhatNobodyFollows(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		effect, read := storetest.MustRun(t, s, "w"), storetest.MustRun(t, s, "w")
		lost, again := effect.MustSpooled(t, s, journal.EffectEffect), read.MustSpooled(t, s, journal.EffectRead)
		effect.MustAdopt(t, s, lost)
		read.MustAdopt(t, s, again)
		for _, r := range []*storetest.Run{effect, read} {
			must(t, s.Block(t.Context(), r.Session, "w2", journal.SessionBlocked{Cause: journal.BlockWorkspace}))
		}
		if st := storetest.MustState(t, s, effect.Session); st.Base != journal.StateUncertain || st.Blocked != nil {
			t.Errorf("the effect's session is %+v", st)
		}
		if st := storetest.MustState(t, s, read.Session); st.Base != journal.StateBlocked || st.Adopts() {
			t.Errorf("the read's session is %+v", st)
		}
	})
}

// An expired claim that nobody asked the shims about: who claims concludes without
// them, unless it leaves that to the sweep.
//
// proves LEA-1 CAL-4
func TestClaim_ExpiredWithSomethingAdopted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		effect, read := r.MustSpooled(t, s, journal.EffectEffect), r.MustSpooled(t, s, journal.EffectRead)
		r.MustAdopt(t, s, effect, read)
		r.Claim = storetest.MustClaim(t, s, r.Session, "w")
		must(t, s.ExpireClaim(t.Context(), r.Claim))
		left := claimRequest(r.Session, "w")
		left.LeaveExpired = true
		if c, err := s.Claim(t.Context(), left); err != nil || c != nil || callState(t, s, r, effect) != journal.CallIsDispatched {
			t.Fatalf("claimed %v, %v", c, err)
		}
		noClaim(t, s, r.Session, "w")
		if st := storetest.MustState(t, s, r.Session); st.Adopts() || st.Unknowns() != 1 || callState(t, s, r, read) != journal.CallIsDispatched {
			t.Errorf("the state is %+v", st)
		}
	})
}

// An interrupt, a rejection or a *stay* between the adoption and the claim waits
// for the claim: it ends the command first.
//
// proves COO-4 REC-6 PER-3 PRO-6
func TestAdopted_EndIsForTheClaim(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for name, stop := range map[string]func(r *storetest.Run, request, lost string) error{
			"interrupt": func(r *storetest.Run, _, _ string) error {
				return s.RequestInterrupt(t.Context(), r.Owner, r.Session, journal.InterruptNow)
			},
			"rejection": func(r *storetest.Run, request, _ string) error {
				_, err := s.Decide(t.Context(), r.Owner, request, store.Decision{Reply: journal.ReplyReject})
				return err
			},
			"stay": func(r *storetest.Run, _, lost string) error {
				_, err := s.ResolveCall(t.Context(), r.Owner, lost, store.CallResolution{Outcome: journal.CannotTell, Then: journal.ThenStay})
				return err
			},
		} {
			r := storetest.MustRun(t, s, "w")
			runs, lost := r.MustSpooled(t, s, journal.EffectEffect), ""
			if name == "stay" {
				lost = r.MustSpooled(t, s, journal.EffectEffect)
			}
			request := store.NewID("per")
			storetest.MustAppend(t, s, r.Claim, "", storetest.Ask(request, r.MustCall(t, s, journal.EffectEffect)))
			r.MustAdopt(t, s, runs)
			must(t, stop(r, request, lost))
			st := storetest.MustState(t, s, r.Session)
			if !st.TurnOpen() || st.Interrupt == nil || st.Interrupt.By != r.Owner || st.Base != journal.StateStopping {
				t.Fatalf("%s: the state is %+v", name, st)
			}
			storetest.WantCode(t, s.Archive(t.Context(), r.Owner, r.Session), journal.Conflict)
			r.Claim = storetest.MustClaim(t, s, r.Session, "w")
			_, released, err := s.EndTurn(t.Context(), r.Claim, store.EndTurn{
				Drafts: storetest.Drafts(storetest.Settle(runs, journal.CallCancelled)), End: journal.TurnEnded{Outcome: journal.Stopped, Reason: "interrupted"}, Actor: journal.Server(),
			})
			if err != nil || !released {
				t.Fatalf("%s: %v, %v", name, released, err)
			}
			if st := storetest.MustState(t, s, r.Session); st.Turn.EndedBy != r.Owner || st.Unknowns() != 0 || !st.Held {
				t.Errorf("%s: the state is %+v", name, st)
			}
		}
	})
}

// An interrupt that its claim didn't carry out: what was adopted is left to the
// next claim, and once nobody follows it the interrupt is carried out at last.
//
// proves REC-6 COO-4
func TestRecover_LeavesTheInterruptToWhoFollows(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		id := r.MustSpooled(t, s, journal.EffectEffect)
		must(t, s.RequestInterrupt(t.Context(), r.Owner, r.Session, journal.InterruptNow))
		r.MustAdopt(t, s, id)
		if st := storetest.MustState(t, s, r.Session); !st.TurnOpen() || st.Base != journal.StateStopping || !st.HasWork(st.UpdatedAt) {
			t.Fatalf("the state is %+v", st)
		}
		r.Claim = storetest.MustClaim(t, s, r.Session, "w")
		r.MustAdopt(t, s, id)
		noClaim(t, s, r.Session, "w2") // of another folder, and none of this one's workers lives
		st := storetest.MustState(t, s, r.Session)
		if st.TurnOpen() || st.Turn.Outcome != journal.Stopped || st.Turn.EndedBy != r.Owner || callState(t, s, r, id) != journal.CallIsUnknown {
			t.Errorf("the state is %+v", st)
		}
		settled := storetest.MustRun(t, s, "w")
		id = settled.MustSpooled(t, s, journal.EffectEffect)
		must(t, s.RequestInterrupt(t.Context(), settled.Owner, settled.Session, journal.InterruptNow))
		storetest.MustFind(t, s, settled.Claim, map[string]store.Found{id: {Settled: storetest.Settle(id, journal.CallCancelled)}})
		if st := storetest.MustState(t, s, settled.Session); st.TurnOpen() || st.Unknowns() != 0 {
			t.Errorf("with nothing left to follow: %+v", st)
		}
	})
}

// A claim that follows something is kept until that is settled, also if it only reads.
//
// proves LEA-6 LEA-1 COO-4
func TestRelease_NotWhileSomethingIsAdopted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		id := r.MustSpooled(t, s, journal.EffectRead)
		r.MustAdopt(t, s, id)
		r.Claim = storetest.MustClaim(t, s, r.Session, "w")
		head, _, err := s.Head(t.Context(), r.Owner, r.Session)
		must(t, err)
		_, err = s.Release(t.Context(), r.Claim, head)
		storetest.WantSlug(t, err, "in-flight")
		end(t, s, r.Claim, journal.Stopped, true) // nobody has ended the command: it may go on
		if got := callState(t, s, r, id); got != journal.CallIsUnknown {
			t.Errorf("the read is %s", got)
		}
	})
}

// verify sees an adopted call that nobody could follow.
//
// proves REC-10 LEA-1
func TestVerify_NamesWhatNobodyCanFollow(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.OpenUnchecked(t)
		r := storetest.MustRun(t, s, "w")
		r.MustAdopt(t, s, r.MustSpooled(t, s, journal.EffectEffect))
		says := func(check, want string) {
			t.Helper()
			report, err := s.Verify(t.Context(), store.VerifyOptions{Session: r.Session})
			must(t, err)
			if text := strings.Join(report.Check(check).Faults, "\n"); report.OK() != (want == "") || !strings.Contains(text, want) {
				t.Errorf("%s says %q, want %q", check, text, want)
			}
		}
		says(store.CheckClaims, "") // what runs on needs no claim
		raw := db.SQL(t)
		r.Claim = storetest.MustClaim(t, s, r.Session, "w")
		says(store.CheckClaims, "")
		db.MustExec(t, raw, "UPDATE claim SET phase = 'ready' WHERE session_id = ?", r.Session)
		says(store.CheckClaims, "the claim is ready, of fld_w")
		db.MustExec(t, raw, "UPDATE claim SET phase = 'uncertain', state_folder_id = 'fld_x' WHERE session_id = ?", r.Session)
		says(store.CheckClaims, "the claim is uncertain, of fld_x")
		db.MustExec(t, raw, "UPDATE claim SET state_folder_id = 'fld_w' WHERE session_id = ?", r.Session)
		db.MustExec(t, raw, "DELETE FROM spool WHERE session_id = ?", r.Session)
		says(store.CheckSpools, "is adopted by fld_w, which keeps no spool of it")
	})
}
