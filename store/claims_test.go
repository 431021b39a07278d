package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// proves LEA-1 LEA-2
func TestClaim_Leases(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		second := db.Open(t)

		t.Run("never starts a second owner while the lease is live", func(t *testing.T) {
			r := storetest.MustRun(t, s, "w1")
			for _, at := range []time.Duration{0, storetest.Lease - time.Second} {
				second.Skew(at)
				for _, phase := range []journal.Phase{journal.PhaseReady, journal.PhaseUncertain, journal.PhaseSafe} {
					storetest.MustAppend(t, s, r.Claim, phase)
					c, err := second.Claim(t.Context(), claimRequest(r.Session, "w2"))
					if err != nil || c != nil {
						t.Fatalf("after %s in phase %s: %v, %v", at, phase, c, err)
					}
				}
			}
			second.Skew(0)
			storetest.MustAppend(t, s, r.Claim, "", &journal.PlanUpdated{}) // still the owner
		})

		t.Run("never re-enters its own uncertain live lease", func(t *testing.T) {
			r := storetest.MustRun(t, s, "w1")
			r.MustDispatched(t, s, journal.EffectEffect)
			c, err := s.Claim(t.Context(), claimRequest(r.Session, "w1"))
			if err != nil || c != nil {
				t.Fatalf("got %v, %v", c, err)
			}
			storetest.MustAppend(t, s, r.Claim, "", &journal.PlanUpdated{})
		})

		t.Run("leaves an expired claim to who ends first what it left", func(t *testing.T) {
			r := storetest.MustRun(t, s, "w1")
			r.MustDispatched(t, s, journal.EffectEffect)
			must(t, s.ExpireClaim(t.Context(), r.Claim))
			req := claimRequest(r.Session, "w2")
			req.LeaveExpired = true
			if c, err := s.Claim(t.Context(), req); err != nil || c != nil {
				t.Fatalf("got %v, %v", c, err)
			}
			if seen, err := s.ExpiredClaim(t.Context(), r.Session); err != nil || seen == nil || seen.ExecutionID != r.Claim.ExecutionID {
				t.Errorf("the expired claim is %v, %v; want it as it was", seen, err)
			}
			if st := storetest.MustState(t, s, r.Session); st.Unknowns() != 0 {
				t.Error("something was concluded about what may still run")
			}
		})

		t.Run("re-enters its own lease that has nothing in the air", func(t *testing.T) {
			for _, phase := range []journal.Phase{journal.PhaseReady, journal.PhaseSafe} {
				r := storetest.MustRun(t, s, "w1")
				_, err := s.Append(t.Context(), r.Claim, store.Append{Phase: phase, Assistant: "msg_1"})
				must(t, err)
				c := storetest.MustClaim(t, s, r.Session, "w1")
				if c.ExecutionID == r.Claim.ExecutionID || c.Phase != journal.PhaseReady || c.AssistantMessageID != "" || c.Epoch != r.Claim.Epoch+1 {
					t.Errorf("%s: the new claim is %+v after %+v", phase, c, r.Claim)
				}
				_, err = s.Append(t.Context(), r.Claim, store.Append{Drafts: storetest.Drafts(&journal.PlanUpdated{})})
				storetest.WantCode(t, err, journal.StaleClaim)
			}
		})

		t.Run("takes an expired one over after it was recovered", func(t *testing.T) {
			r := storetest.MustRun(t, s, "w1")
			second.Skew(storetest.Lease + time.Second)
			defer second.Skew(0)
			c, err := second.Claim(t.Context(), claimRequest(r.Session, "w2"))
			must(t, err)
			if c == nil || c.WorkerID != "w2" || c.Epoch != r.Claim.Epoch+2 { // a recovery and a claim
				t.Fatalf("got %+v", c)
			}
			if n := storetest.CountKind(storetest.Events(t, s, r.Session), journal.KindStepRecovered); n != 1 {
				t.Errorf("%d recoveries", n)
			}
		})

		t.Run("keeps the recovery although no claim is taken", func(t *testing.T) {
			r := storetest.MustRun(t, s, "w1")
			r.MustDispatched(t, s, journal.EffectEffect)
			second.Skew(storetest.Lease + time.Second)
			defer second.Skew(0)
			c, err := second.Claim(t.Context(), claimRequest(r.Session, "w2"))
			if err != nil || c != nil {
				t.Fatalf("got %v, %v", c, err)
			}
			if st := storetest.MustState(t, s, r.Session); st.Base != journal.StateUncertain {
				t.Errorf("the state is %s", st.Base)
			}
		})

		t.Run("COO-2 writes nothing without work", func(t *testing.T) {
			owner := storetest.MustUser(t, s).ID
			session := storetest.MustSession(t, s, owner).ID
			raw := db.SQL(t)
			before := db.RowCounts(t, raw)
			c, err := s.Claim(t.Context(), claimRequest(session, "w1"))
			if err != nil || c != nil {
				t.Fatalf("got %v, %v", c, err)
			}
			wantSame(t, before, db.RowCounts(t, raw))
			_, err = s.Claim(t.Context(), claimRequest("ses_none", "w1"))
			storetest.WantCode(t, err, journal.NotFound)
			if !strings.Contains(err.Error(), "session not found: ses_none") { // COO-9
				t.Errorf("got %v", err)
			}
		})
	})
}

// proves LEA-1 LEA-2 LEA-10
func TestClaim_OneOfMany(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		ss := []*store.Store{db.Open(t), db.Open(t)}
		owner := storetest.MustUser(t, ss[0]).ID
		session := storetest.MustSession(t, ss[0], owner).ID
		storetest.MustPrompt(t, ss[0], owner, session, "x", journal.Queue)
		for round := range 3 { // a free session, then expired claims
			got := make([]*journal.Claim, 12)
			noErrors(t, together(len(got), func(i int) (err error) {
				got[i], err = ss[i%2].Claim(t.Context(), claimRequest(session, fmt.Sprintf("w%d-%d", round, i)))
				return err
			}))
			var won *journal.Claim
			for _, c := range got {
				if c != nil && won != nil {
					t.Fatal("two claims of one session")
				}
				if c != nil {
					won = c
				}
			}
			if won == nil {
				t.Fatal("nobody got the session")
			}
			must(t, ss[0].ExpireClaim(t.Context(), won))
		}
	})
}

// proves COO-2
func TestClaim_NeedsWork(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for name, tt := range map[string]struct {
			before func(r *storetest.Run) // with the run's claim
			after  func(r *storetest.Run) // without one
			work   bool
		}{
			"an open turn": {work: true},
			"a pending request": {before: func(r *storetest.Run) {
				storetest.MustAppend(t, s, r.Claim, "", r.Propose("call_p"+r.Turn, journal.EffectEffect), storetest.Ask("per_"+r.Turn, "call_p"+r.Turn))
			}},
			"an answered request": {before: func(r *storetest.Run) {
				storetest.MustAppend(t, s, r.Claim, "", r.Propose("call_a"+r.Turn, journal.EffectEffect), storetest.Ask("per_a"+r.Turn, "call_a"+r.Turn))
				_, err := s.Decide(t.Context(), r.Owner, "per_a"+r.Turn, store.Decision{Reply: journal.ReplyOnce})
				must(t, err)
			}, work: true},
			"a retry ahead": {before: func(r *storetest.Run) {
				now, err := s.Now(t.Context())
				must(t, err)
				id := store.NewID("att")
				storetest.MustAppend(t, s, r.Claim, "", &journal.AttemptPrepared{AttemptID: id, TurnID: r.Turn},
					&journal.AttemptFailed{AttemptID: id, Retry: &journal.Retry{N: 1, Of: 3, At: now + 3_600_000}})
			}},
			"a retry that is due": {before: func(r *storetest.Run) {
				now, err := s.Now(t.Context())
				must(t, err)
				id := store.NewID("att")
				storetest.MustAppend(t, s, r.Claim, "", &journal.AttemptPrepared{AttemptID: id, TurnID: r.Turn},
					&journal.AttemptFailed{AttemptID: id, Retry: &journal.Retry{N: 1, Of: 3, At: now - 1}})
			}, work: true},
			"blocked": {after: func(r *storetest.Run) {
				must(t, s.Block(t.Context(), r.Session, "w", journal.SessionBlocked{Cause: journal.BlockAgent}))
			}},
			"no more blocked": {after: func(r *storetest.Run) {
				must(t, s.Block(t.Context(), r.Session, "w", journal.SessionBlocked{Cause: journal.BlockAgent}))
				must(t, s.Unblock(t.Context(), r.Session, journal.BlockWorkspace)) // another cause: nothing happens
				must(t, s.Unblock(t.Context(), r.Session, journal.BlockAgent))
			}, work: true},
		} {
			r := storetest.MustRun(t, s, "w")
			if tt.before != nil {
				tt.before(r)
			}
			evs := storetest.Events(t, s, r.Session)
			released, err := s.Release(t.Context(), r.Claim, evs[len(evs)-1].Seq)
			must(t, err)
			if !released {
				t.Fatalf("%s: not released", name)
			}
			if tt.after != nil {
				tt.after(r)
			}
			if slices.Contains(runnable(t, s), r.Session) != tt.work {
				t.Errorf("%s: runnable %v, want %v", name, !tt.work, tt.work)
			}
			c, err := s.Claim(t.Context(), claimRequest(r.Session, "w"))
			must(t, err)
			if (c != nil) != tt.work {
				t.Errorf("%s: claimed %v, want %v", name, c != nil, tt.work)
			}
		}
	})
}

// proves LEA-3 LEA-5
func TestRenewClaims(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s, other := db.Open(t), db.Open(t)
		mine, alsoMine, taken, unnamed := storetest.MustRun(t, s, "w1"), storetest.MustRun(t, s, "w1"), storetest.MustRun(t, s, "w1"), storetest.MustRun(t, s, "w1")
		foreign := storetest.MustRun(t, s, "w2")

		// All leases pass; one session is taken over, the others wait for whoever comes first.
		s.Skew(storetest.Lease + time.Second)
		other.Skew(storetest.Lease + time.Second)
		c, err := other.Claim(t.Context(), claimRequest(taken.Session, "w3"))
		must(t, err)
		if c == nil {
			t.Fatal("an expired lease was not taken over")
		}
		ids := []string{mine.Claim.ExecutionID, alsoMine.Claim.ExecutionID, taken.Claim.ExecutionID, foreign.Claim.ExecutionID}
		held, err := s.RenewClaims(t.Context(), "w1", ids, storetest.Lease)
		must(t, err)
		if len(held) != 2 || !held[mine.Claim.ExecutionID] || !held[alsoMine.Claim.ExecutionID] {
			t.Errorf("held %v", held)
		}
		expired, err := s.ExpiredClaims(t.Context(), journal.Claim{}, 100)
		must(t, err)
		var got []string
		for _, e := range expired {
			got = append(got, e.ExecutionID)
		}
		slices.Sort(got)
		want := []string{unnamed.Claim.ExecutionID, foreign.Claim.ExecutionID}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("expired are %v, want %v", got, want)
		}
		if held, err := s.RenewClaims(t.Context(), "w1", nil, storetest.Lease); err != nil || len(held) != 0 {
			t.Errorf("renewing nothing: %v, %v", held, err)
		}
	})
}

// proves LEA-4
func TestAppend_Fence(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		paused, s := db.Open(t), db.Open(t)
		r := storetest.MustRun(t, paused, "w1")
		s.Skew(storetest.Lease + time.Second)
		c, err := s.Claim(t.Context(), claimRequest(r.Session, "w2"))
		must(t, err)
		if c == nil {
			t.Fatal("not taken over")
		}
		raw := db.SQL(t)
		before := db.RowCounts(t, raw)
		head := db.Count(t, raw, "SELECT next_seq FROM session WHERE id = ?", r.Session)
		for name, do := range map[string]func() error{
			"append": func() error {
				_, err := paused.Append(t.Context(), r.Claim, store.Append{Drafts: storetest.Drafts(&journal.PlanUpdated{}, &journal.PlanUpdated{})})
				return err
			},
			"phase": func() error {
				_, err := paused.Append(t.Context(), r.Claim, store.Append{Phase: journal.PhaseUncertain})
				return err
			},
			"promote": func() error { _, err := paused.PromoteNext(t.Context(), r.Claim); return err },
			"steer":   func() error { _, err := paused.PromoteSteers(t.Context(), r.Claim); return err },
			"end": func() error {
				_, _, err := paused.EndTurn(t.Context(), r.Claim, store.EndTurn{End: journal.TurnEnded{Outcome: journal.Completed}})
				return err
			},
			"release": func() error { _, err := paused.Release(t.Context(), r.Claim, head); return err },
		} {
			err := do()
			if !journal.Is(err, journal.StaleClaim) || !strings.Contains(err.Error(), "session execution claim lost: "+r.Claim.ExecutionID) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		must(t, paused.ExpireClaim(t.Context(), r.Claim)) // nothing of its own is left to expire
		wantSame(t, before, db.RowCounts(t, raw))
		if now := db.Count(t, raw, "SELECT next_seq FROM session WHERE id = ?", r.Session); now != head {
			t.Errorf("the head moved from %d to %d", head, now)
		}
		if n := db.Count(t, raw, "SELECT count(*) FROM claim WHERE execution_id = ? AND expires_at > 0", c.ExecutionID); n != 1 {
			t.Error("the new claim is gone")
		}
		storetest.MustAppend(t, s, c, "", &journal.PlanUpdated{})
	})
}

// proves LEA-6 COO-8
func TestRelease(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		call := r.MustDispatched(t, s, journal.EffectEffect)
		head := storetest.Events(t, s, r.Session)
		_, err := s.Release(t.Context(), r.Claim, head[len(head)-1].Seq)
		storetest.WantSlug(t, err, "in-flight")

		evs := storetest.MustAppend(t, s, r.Claim, journal.PhaseSafe, storetest.Settle(call, journal.CallSucceeded))
		folded := evs[0].Seq
		storetest.MustPrompt(t, s, r.Owner, r.Session, "more", journal.Queue)
		released, err := s.Release(t.Context(), r.Claim, folded)
		if err != nil || released {
			t.Fatalf("released although somebody added work: %v, %v", released, err)
		}
		// The last turn's end and the release look for more work in one transaction.
		end(t, s, r.Claim, journal.Completed, false)
		storetest.MustPromote(t, s, r.Claim)
		end(t, s, r.Claim, journal.Completed, true)
		ss, err := s.Session(t.Context(), r.Owner, r.Session)
		must(t, err)
		if ss.Claim != nil {
			t.Error("the claim is still there")
		}
		if state, _ := ss.Execution(); state != journal.StateReady {
			t.Errorf("the state is %s", state)
		}
	})
}

// proves LEA-6
func TestEndTurn_ReleasesInAnyCaseWhenTold(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		sub := s.SubscribeWork()
		defer sub.Close()
		storetest.MustPrompt(t, s, r.Owner, r.Session, "more", journal.Queue)
		hearWork(t, sub, r.Session)
		_, released, err := s.EndTurn(t.Context(), r.Claim, store.EndTurn{End: journal.TurnEnded{Outcome: journal.Completed}, Actor: journal.Agent(), Release: true})
		if err != nil || !released {
			t.Fatalf("%v, %v", released, err)
		}
		hearWork(t, sub, r.Session) // what is left is for others
		storetest.MustClaim(t, s, r.Session, "w2")
	})
}

// The answer to an end was lost, and more work keeps the claim: the same end,
// with the same drafts, is told that the turn has ended, not that an id is taken.
// proves COO-10
func TestEndTurn_RepeatedAfterAnUnknownCommit(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		storetest.MustPrompt(t, s, r.Owner, r.Session, "more", journal.Queue)
		e := store.EndTurn{Drafts: storetest.Drafts(&journal.PlanUpdated{}), End: journal.TurnEnded{Outcome: journal.Completed}, Actor: journal.Agent()}
		_, released, err := s.EndTurn(t.Context(), r.Claim, e)
		if err != nil || released {
			t.Fatalf("%v, %v", released, err)
		}
		before := storetest.Events(t, s, r.Session)
		_, _, err = s.EndTurn(t.Context(), r.Claim, e)
		storetest.WantSlug(t, err, "turn-state")
		if after := storetest.Events(t, s, r.Session); len(after) != len(before) {
			t.Errorf("%d events after, %d before", len(after), len(before))
		}
		storetest.MustPromote(t, s, r.Claim)
	})
}

// proves LEA-7
func TestAppend_PhaseAndAssistantChangeWithTheFact(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		raw := db.SQL(t)
		r := storetest.MustRun(t, s, "w")
		phase := func() (p, a string) {
			t.Helper()
			var assistant *string
			must(t, raw.QueryRowContext(t.Context(), db.Rebind("SELECT phase, assistant_message_id FROM claim WHERE session_id = ?"), r.Session).Scan(&p, &assistant))
			if assistant != nil {
				a = *assistant
			}
			return p, a
		}
		want := func(p, a string) {
			t.Helper()
			if gp, ga := phase(); gp != p || ga != a {
				t.Fatalf("the claim is in phase %s for %q, want %s for %q", gp, ga, p, a)
			}
		}
		want("ready", "")
		_, err := s.Append(t.Context(), r.Claim, store.Append{Drafts: storetest.Drafts(&journal.StepStarted{TurnID: r.Turn, MessageID: journal.OrNil("msg_1")}), Assistant: "msg_1"})
		must(t, err)
		want("ready", "msg_1")
		id := r.MustCall(t, s, journal.EffectEffect)
		storetest.MustAppend(t, s, r.Claim, journal.PhaseUncertain, storetest.Dispatch(id, 1))
		want("uncertain", "msg_1")
		// A fact that is refused leaves the phase alone.
		_, err = s.Append(t.Context(), r.Claim, store.Append{Drafts: storetest.Drafts(storetest.Dispatch(id, 2)), Phase: journal.PhaseSafe})
		storetest.WantCode(t, err, journal.Conflict)
		want("uncertain", "msg_1")
		storetest.MustAppend(t, s, r.Claim, journal.PhaseSafe, storetest.Settle(id, journal.CallFailed))
		want("safe", "msg_1")
	})
}

// proves LEA-5
func TestLease_ClockIsTheDatabases(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		// The host's clock is an hour wrong; only SQLite, which has no other, follows it.
		s := db.Open(t, func(o *store.Options) { o.Clock = func() time.Time { return time.Now().Add(-time.Hour) } })
		r := storetest.MustRun(t, s, "w")
		behind := time.Since(time.UnixMilli(r.Claim.ClaimedAt))
		if db.Name == "sqlite" {
			behind -= time.Hour
		}
		if behind.Abs() > 10*time.Minute {
			t.Errorf("the claim was taken %s ago", behind)
		}
		if d := r.Claim.ExpiresAt - r.Claim.ClaimedAt; d != storetest.Lease.Milliseconds() || r.Claim.LeaseMS != d {
			t.Errorf("the lease is %d ms", d)
		}
	})
}

// proves LEA-11
func TestExpireFolder(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		earlier, now, elsewhere := storetest.MustRun(t, s, "w1"), storetest.MustRun(t, s, "w2"), storetest.MustRun(t, s, "w3")
		claimIn := func(r *storetest.Run, worker, folder string) *journal.Claim {
			must(t, s.ExpireClaim(t.Context(), r.Claim))
			c, err := s.Claim(t.Context(), store.ClaimRequest{SessionID: r.Session, WorkerID: worker, StateFolderID: folder, Lease: storetest.Lease})
			must(t, err)
			return c
		}
		dead := claimIn(earlier, "old", "fld_a")
		claimIn(now, "new", "fld_a")
		claimIn(elsewhere, "w3", "fld_b")
		n, err := s.ExpireFolder(t.Context(), "fld_a", "new")
		if err != nil || n != 1 {
			t.Fatalf("%d expired, %v", n, err)
		}
		expired, err := s.ExpiredClaims(t.Context(), journal.Claim{}, 10)
		must(t, err)
		if len(expired) != 1 || expired[0].ExecutionID != dead.ExecutionID {
			t.Errorf("expired: %+v", expired)
		}
	})
}

// proves COO-10
func TestAppend_RetriedFindsItsEvents(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		r := storetest.MustRun(t, s, "w")
		a := store.Append{Drafts: storetest.Drafts(&journal.PlanUpdated{}, &journal.MessageDelta{MessageID: "m", Role: "agent", Part: journal.PartText, Text: journal.T("hi")})}
		once, err := s.Append(t.Context(), r.Claim, a)
		must(t, err)
		a.Retried = true
		for range 2 {
			again, err := s.Append(t.Context(), r.Claim, a)
			must(t, err)
			if len(again) != 2 || again[0].Seq != once[0].Seq || again[1].ID != once[1].ID {
				t.Fatalf("got %+v, want %+v", again, once)
			}
		}
		// One that had not committed is written, once, whoever tries.
		a.Drafts = storetest.Drafts(&journal.PlanUpdated{}, &journal.PlanUpdated{})
		other := db.Open(t)
		noErrors(t, together(8, func(i int) error {
			_, err := []*store.Store{s, other}[i%2].Append(t.Context(), r.Claim, a)
			return err
		}))
		evs := storetest.Events(t, s, r.Session)
		if n := storetest.CountKind(evs, journal.KindPlanUpdated); n != 3 {
			t.Errorf("%d plans, want 3", n)
		}
		// Found also by one that has lost its claim meanwhile; what isn't there is fenced.
		storetest.MustLose(t, s, r.Claim)
		found, err := s.Append(t.Context(), r.Claim, a)
		if err != nil || len(found) != 2 {
			t.Errorf("got %v, %v", found, err)
		}
		a.Drafts = storetest.Drafts(&journal.PlanUpdated{})
		_, err = s.Append(t.Context(), r.Claim, a)
		storetest.WantCode(t, err, journal.StaleClaim)
	})
}

// proves LEA-9
func TestPostgres_FrozenTransactionBlocksNobodyForLong(t *testing.T) {
	t.Parallel()
	for _, name := range storetest.Databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t, name)
			s := db.Open(t)
			if name == "sqlite" { // there a frozen owner can't be replaced, and only one process writes
				return
			}
			ctx := t.Context()
			var got struct{ lock, idle string }
			must(t, s.Write(ctx, "", func(ctx context.Context, x store.Tx) error {
				return errors.Join(x.Get(ctx, &got.lock, "SHOW lock_timeout"), x.Get(ctx, &got.idle, "SHOW idle_in_transaction_session_timeout"))
			}))
			if got.lock != "1s" || got.idle != "5s" {
				t.Errorf("timeouts: %+v", got)
			}
			// Somebody froze with the session's row locked: others are told to come again, within a second.
			r := storetest.MustRun(t, s, "w")
			must(t, s.ExpireClaim(ctx, r.Claim))
			frozen, err := db.SQL(t).BeginTx(ctx, nil)
			must(t, err)
			_, err = frozen.ExecContext(ctx, "SELECT 1 FROM session WHERE id = $1 FOR UPDATE", r.Session)
			must(t, err)
			start := time.Now()
			_, err = s.SubmitPrompt(ctx, r.Owner, r.Session, "k", queue("x"))
			storetest.WantCode(t, err, journal.Unavailable)
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("it took %s", d)
			}
			// The sweeper passes by a row that somebody writes.
			_, err = s.Recover(ctx, store.Recovery{Claim: storetest.MustLoad(t, s, r.Claim)})
			storetest.WantSlug(t, err, "claim-changed")
			must(t, frozen.Rollback())
			_, err = s.SubmitPrompt(ctx, r.Owner, r.Session, "k", queue("x"))
			must(t, err)
		})
	}
}

// A clock that was set back makes nobody wait: only a retry has a time of its own.
//
// proves COO-2 REC-9
func TestClaim_ClockSetBack(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		storetest.MustPrompt(t, s, owner, session, "x", journal.Queue)
		s.Skew(-time.Hour)
		if ids := runnable(t, s); !slices.Contains(ids, session) {
			t.Errorf("runnable %v, want the session", ids)
		}
		storetest.MustClaim(t, s, session, "w")
	})
}
