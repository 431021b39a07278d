package store_test

import (
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// What a cancelled call had written, and what of it was lost, is counted as for any other.
// proves COO-4 COO-5
func TestEndTurn_CountsTheOutputOfWhatItCancels(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		id := r.MustDispatched(t, s, journal.EffectRead)
		storetest.MustAppend(t, s, r.Claim, "", &journal.CallOutput{CallID: id, Stream: "stdout", Text: journal.T("head")},
			&journal.CallOutput{CallID: id, Stream: "stdout", Offset: 1004, Text: journal.T("tail"), Dropped: 1000})
		live, err := s.Call(t.Context(), r.Owner, id)
		must(t, err)
		end(t, s, r.Claim, journal.Stopped, true)
		c, err := s.Call(t.Context(), r.Owner, id)
		must(t, err)
		for _, c := range []*journal.Call{live, c} {
			if c.OutputBytes != 1008 || c.DroppedBytes != 1000 {
				t.Errorf("%s: %d bytes, %d dropped; want 1008 and 1000", c.State, c.OutputBytes, c.DroppedBytes)
			}
		}
		if c.State != journal.CallCancelled {
			t.Errorf("the call is %s", c.State)
		}
	})
}

// proves COO-4
func TestRequestInterrupt_WithoutAClaim(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		r := storetest.MustRun(t, s, "w")
		proposed := r.MustCall(t, s, journal.EffectEffect)
		asked, request := r.MustAsk(t, s)
		queued := storetest.MustPrompt(t, s, r.Owner, r.Session, "later", journal.Queue)
		must(t, s.RequestInterrupt(t.Context(), r.Owner, r.Session, journal.InterruptNow))
		evs := storetest.Events(t, s, r.Session)
		b := storetest.Body[*journal.TurnEnded](t, evs)
		if b.Outcome != journal.Stopped {
			t.Errorf("got %+v", b)
		}
		for _, id := range []string{proposed, asked} {
			c, err := s.Call(t.Context(), r.Owner, id)
			must(t, err)
			if c.State != journal.CallCancelled {
				t.Errorf("a call is %s", c.State)
			}
		}
		p, err := s.Request(t.Context(), r.Owner, request)
		must(t, err)
		if p.Request.State != journal.RequestCancelled {
			t.Errorf("the request is %s", p.Request.State)
		}
		st := storetest.MustState(t, s, r.Session)
		if !st.Held || st.Base != journal.StateStopped || len(st.Admitted) != 1 || st.Admitted[0].ID != queued.ID {
			t.Errorf("the state is %+v", st)
		}
		raw := db.SQL(t)
		before := db.RowCounts(t, raw)
		err = s.RequestInterrupt(t.Context(), r.Owner, r.Session, journal.InterruptNow)
		storetest.WantCode(t, err, journal.Conflict)
		wantSame(t, before, db.RowCounts(t, raw))
	})
}

// proves COO-4 COO-2 LEA-6
func TestRequestInterrupt_WithAClaim(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		effect, read, done := r.MustDispatched(t, s, journal.EffectEffect), r.MustDispatched(t, s, journal.EffectRead), r.MustDispatched(t, s, journal.EffectEffect)
		storetest.MustPrompt(t, s, r.Owner, r.Session, "steer", journal.Steer)
		sub := s.SubscribeWork()
		defer sub.Close()
		for range 2 { // asking again is the same answer
			must(t, s.RequestInterrupt(t.Context(), r.Owner, r.Session, journal.InterruptBoundary))
		}
		hearWork(t, sub, r.Session)
		must(t, s.RequestInterrupt(t.Context(), r.Owner, r.Session, journal.InterruptNow)) // more urgent
		must(t, s.RequestInterrupt(t.Context(), r.Owner, r.Session, journal.InterruptBoundary))
		if n := storetest.CountKind(storetest.Events(t, s, r.Session), journal.KindInterruptRequested); n != 2 {
			t.Errorf("%d interrupts in the journal", n)
		}
		st := storetest.MustState(t, s, r.Session)
		if st.Base != journal.StateStopping || st.Interrupt.Mode != journal.InterruptNow {
			t.Errorf("the state is %+v", st)
		}
		list, err := s.Interrupted(t.Context(), []string{r.Session, "ses_none"})
		if err != nil || len(list) != 1 {
			t.Errorf("its keeper hears %v, %v", list, err)
		}
		wantPromoted(t, first(s.PromoteSteers(t.Context(), r.Claim)), false) // no new work
		_, released, err := s.EndTurn(t.Context(), r.Claim, store.EndTurn{
			Drafts: storetest.Drafts(storetest.Settle(done, journal.CallCancelled)), End: journal.TurnEnded{Outcome: journal.Stopped, Reason: "interrupted"}, Actor: journal.Server(),
		})
		if err != nil || !released {
			t.Fatalf("%v, %v", released, err)
		}
		for id, want := range map[string]journal.CallState{effect: journal.CallIsUnknown, read: journal.CallCancelled, done: journal.CallCancelled} {
			c, err := s.Call(t.Context(), r.Owner, id)
			must(t, err)
			if c.State != want {
				t.Errorf("a call is %s, want %s", c.State, want)
			}
		}
		if list, err := s.Interrupted(t.Context(), []string{r.Session}); err != nil || len(list) != 0 {
			t.Errorf("still interrupted: %v, %v", list, err)
		}
	})
}

// proves COO-5
func TestEndTurn_LimitReached(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		for range 3 {
			storetest.MustAppend(t, s, r.Claim, "", &journal.StepStarted{TurnID: r.Turn})
		}
		_, released, err := s.EndTurn(t.Context(), r.Claim, store.EndTurn{
			End: journal.TurnEnded{Outcome: journal.LimitReach, Limit: "steps"}, Limit: &journal.LimitReached{Limit: "steps", Value: 3}, Actor: journal.Server(),
		})
		if err != nil || !released {
			t.Fatalf("%v, %v", released, err)
		}
		evs := storetest.Events(t, s, r.Session)
		wantKinds(t, evs[len(evs)-2:], journal.KindLimitReached, journal.KindTurnEnded)
		must(t, s.Continue(t.Context(), r.Owner, r.Session, &journal.Limits{Steps: 4}))
		f, _, err := s.Fold(t.Context(), r.Session)
		must(t, err)
		if f.Steps() != 0 || f.State.TurnLimits().Steps != 4 || len(f.Prompts) != 1 {
			t.Errorf("%d steps of %+v, %d prompts", f.Steps(), f.State.TurnLimits(), len(f.Prompts))
		}
	})
}

func TestArchive(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		r := storetest.MustRun(t, s, "w")
		raw := db.SQL(t)
		before := db.RowCounts(t, raw)
		storetest.WantCode(t, s.Archive(t.Context(), r.Owner, r.Session), journal.Conflict)
		wantSame(t, before, db.RowCounts(t, raw))
		end(t, s, r.Claim, journal.Completed, true)
		for range 2 {
			must(t, s.Archive(t.Context(), r.Owner, r.Session))
		}
		if n := storetest.CountKind(storetest.Events(t, s, r.Session), journal.KindSessionArchived); n != 1 {
			t.Errorf("archived %d times", n)
		}
		before = db.RowCounts(t, raw)
		_, err := s.SubmitPrompt(t.Context(), r.Owner, r.Session, "k", queue("x"))
		storetest.WantSlug(t, err, "session-archived")
		wantSame(t, before, db.RowCounts(t, raw))
		ss, err := s.Session(t.Context(), r.Owner, r.Session)
		must(t, err)
		if state, _ := ss.Execution(); state != journal.StateClosed {
			t.Errorf("the session is %s", state)
		}
	})
}

// A refusal to archive offers *continue* exactly where it is taken.
//
// proves PRO-6
func TestArchive_SaysWhatLetsIt(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		refused := func(r *storetest.Run, want string) {
			t.Helper()
			if err := s.Archive(t.Context(), r.Owner, r.Session); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("it is refused with %v, want %q", err, want)
			}
		}
		r := storetest.MustRun(t, s, "w")
		end(t, s, r.Claim, journal.Completed, true)
		storetest.MustPrompt(t, s, r.Owner, r.Session, "next", journal.Queue)
		refused(r, "A message waits here and would never be delivered. Withdraw it first, or wait until it is delivered; then")
		storetest.MustPrompt(t, s, r.Owner, r.Session, "and then", journal.Queue)
		refused(r, "2 messages wait here and would never be delivered. Withdraw them first, or wait until they are delivered; then")

		r = storetest.MustRun(t, s, "w")
		storetest.MustPrompt(t, s, r.Owner, r.Session, "next", journal.Queue)
		end(t, s, r.Claim, journal.Failed, true)
		refused(r, "Withdraw it first, or continue; then")
	})
}

func TestBlock_LeavesWhatOthersMayRun(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		b := journal.SessionBlocked{Cause: journal.BlockWorkspace, Detail: "no such folder", UnblockedBy: "the folder"}
		blocked := func() int {
			t.Helper()
			list, err := s.Blocked(t.Context(), store.SessionBrief{}, 10)
			must(t, err)
			return len(list)
		}
		must(t, s.Block(t.Context(), session, "w1", b)) // no work: nothing to park
		storetest.MustPrompt(t, s, owner, session, "x", journal.Queue)
		must(t, s.SeeWorker(t.Context(), store.Worker{ID: "w2", StateFolderID: "f", Host: "h", Agents: []store.Agent{{Name: "runbook", Kind: "runbook", Available: true}}}))
		must(t, s.Block(t.Context(), session, "w1", b)) // another may be able to
		if blocked() != 0 {
			t.Fatal("blocked")
		}
		s.Skew(2 * storetest.Lease) // it wasn't seen any more
		must(t, s.Block(t.Context(), session, "w1", b))
		must(t, s.Block(t.Context(), session, "w1", b))
		if blocked() != 1 {
			t.Fatal("not blocked")
		}
		brief, err := s.Brief(t.Context(), session)
		must(t, err)
		if brief.Agent != "runbook" || brief.WorkspaceID != "wsp_1" {
			t.Errorf("got %+v", brief)
		}
		if n := storetest.CountKind(storetest.Events(t, s, session), journal.KindSessionBlocked); n != 1 {
			t.Errorf("blocked %d times", n)
		}
		must(t, s.Unblock(t.Context(), session, journal.BlockWorkspace))
		storetest.MustClaim(t, s, session, "w1")
	})
}

// Who lives can't therefore run everything: others that have said that they lack
// the workspace, or don't have the agent, keep no session from being blocked.
//
// proves WSP-1
func TestBlock_AsksWhoCan(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		runbook := []store.Agent{{Name: "runbook", Available: true}}
		has := store.Place{Path: "/srv/work", ID: "wsp_1"}
		for name, tt := range map[string]struct {
			other   store.Worker
			blocked bool
		}{
			"may have it":               {store.Worker{Agents: runbook}, false},
			"lacks another":             {store.Worker{Agents: runbook, Missing: []store.Place{{Path: "/srv/x", ID: "wsp_1"}, {Path: "/srv/work", ID: "wsp_2"}}}, false},
			"lacks it":                  {store.Worker{Agents: runbook, Missing: []store.Place{has}}, true},
			"has another agent":         {store.Worker{Agents: []store.Agent{{Name: "other", Available: true}}}, true},
			"has the agent but can't":   {store.Worker{Agents: []store.Agent{{Name: "runbook"}}}, true},
			"has it and takes no more":  {store.Worker{Agents: runbook, Draining: true}, true},
			"has lacked it, and has it": {store.Worker{Agents: runbook, Missing: []store.Place{}}, false},
		} {
			owner := storetest.MustUser(t, s).ID
			session := storetest.MustSession(t, s, owner).ID
			storetest.MustPrompt(t, s, owner, session, "x", journal.Queue)
			tt.other.ID, tt.other.StateFolderID = "w2", "fld_w2"
			must(t, s.SeeWorker(t.Context(), store.Worker{ID: "w2", Missing: []store.Place{has}, Agents: runbook}))
			must(t, s.SeeWorker(t.Context(), tt.other))
			must(t, s.SeeWorker(t.Context(), store.Worker{ID: "w1", Agents: runbook})) // who asks doesn't count
			must(t, s.Block(t.Context(), session, "w1", journal.SessionBlocked{Cause: journal.BlockWorkspace}))
			if got := storetest.MustState(t, s, session).Blocked != nil; got != tt.blocked {
				t.Errorf("the other %s: blocked %v, want %v", name, got, tt.blocked)
			}
		}
	})
}

// A stop names the turn that was read of. When another one is open by then, nothing is
// done: nobody has seen what that one does and asks.
//
// proves COO-4 PER-6 ADM-1 ADM-3
func TestInterruptTurn_AnotherIsOpen(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		raw := db.SQL(t)
		r := storetest.MustRun(t, s, "w")
		first := storetest.MustState(t, s, r.Session).Turn.ID
		storetest.MustPrompt(t, s, r.Owner, r.Session, "next", journal.Queue)
		end(t, s, r.Claim, journal.Completed, false)
		second := storetest.MustPromote(t, s, r.Claim)
		r.Turn = second
		_, request := r.MustAsk(t, s)
		before := db.RowCounts(t, raw)
		instead := func(turn string) (journal.Receipt, error) {
			p := stops("instead")
			p.Turn = turn
			return s.SubmitPrompt(t.Context(), r.Owner, r.Session, "k", p)
		}
		for _, mode := range []journal.InterruptMode{journal.InterruptNow, journal.InterruptBoundary} {
			storetest.WantSlug(t, s.InterruptTurn(t.Context(), r.Owner, r.Session, first, mode), "other-turn")
		}
		_, err := instead(first)
		storetest.WantSlug(t, err, "other-turn")
		wantSame(t, before, db.RowCounts(t, raw))
		if p, err := s.Request(t.Context(), r.Owner, request); err != nil || p.Request.State != journal.RequestPending {
			t.Errorf("the request is %+v, %v", p, err)
		}

		got, err := instead(second)
		must(t, err)
		if p, err := s.Request(t.Context(), r.Owner, request); err != nil || p.Request.State != journal.RequestCancelled {
			t.Errorf("the request is %+v, %v", p, err)
		}
		before = db.RowCounts(t, raw)
		for _, turn := range []string{second, first, ""} { // the same prompt, whatever its condition was
			again, err := instead(turn)
			must(t, err)
			if again.ID != got.ID || !again.Replayed {
				t.Errorf("the replay is %+v, the first %+v", again, got)
			}
		}
		wantSame(t, before, db.RowCounts(t, raw))
	})
}
