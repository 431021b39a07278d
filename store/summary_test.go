package store_test

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// forget ends a run's turn because its agent has forgotten its session.
func forget(t *testing.T, s *store.Store, r *storetest.Run, passes bool) {
	t.Helper()
	storetest.MustAppend(t, s, r.Claim, "", &journal.AgentForgotten{ProcessID: "prc_1", Reason: "no session s1", How: journal.AskedToLoad, MayPass: passes})
	end(t, s, r.Claim, journal.Failed, true)
}

// A session is started anew only if its agent has forgotten it, once, and by its owner;
// one that was forgotten for good isn't continued otherwise.
//
// proves PRO-5 PRO-6 OWN-1 REC-12
func TestStartAnew(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		storetest.WantSlug(t, s.StartAnew(t.Context(), r.Owner, r.Session, nil), "nothing-held")
		storetest.MustAppend(t, s, r.Claim, "", &journal.AgentStarted{ProcessID: "prc_1", StateFolderID: "fld"}, &journal.AgentOpened{ProcessID: "prc_1", AgentSessionID: "s1"})
		end(t, s, r.Claim, journal.Failed, true)
		storetest.WantSlug(t, s.StartAnew(t.Context(), r.Owner, r.Session, nil), "not-forgotten")
		must(t, s.Continue(t.Context(), r.Owner, r.Session, nil))
		r.Claim = storetest.MustClaim(t, s, r.Session, "w")
		forget(t, s, r, true)
		waiting := storetest.MustPrompt(t, s, r.Owner, r.Session, "and this", journal.Queue)
		if ids := runnable(t, s); len(ids) != 0 {
			t.Errorf("runnable although the agent has forgotten it: %v", ids)
		}
		must(t, s.Continue(t.Context(), r.Owner, r.Session, nil)) // it may pass
		r.Claim = storetest.MustClaim(t, s, r.Session, "w")
		forget(t, s, r, false)
		storetest.WantSlug(t, s.Continue(t.Context(), r.Owner, r.Session, nil), "agent-forgot")
		storetest.WantCode(t, s.StartAnew(t.Context(), storetest.MustUser(t, s).ID, r.Session, nil), journal.NotFound)
		storetest.WantCode(t, s.StartAnew(t.Context(), r.Owner, r.Session, &journal.Limits{Steps: -1}), journal.Unprocessable)
		must(t, s.StartAnew(t.Context(), r.Owner, r.Session, &journal.Limits{Steps: 7}))
		all := storetest.Events(t, s, r.Session)
		wantKinds(t, all[len(all)-2:], journal.KindContinuation, journal.KindTurnStarted)
		st := storetest.MustState(t, s, r.Session)
		if b := storetest.Body[*journal.ContinuationRequested](t, all); !b.Anew || st.AgentSession != "" || st.Forgotten != nil || st.AnewSeq != all[len(all)-2].Seq || st.TurnLimits().Steps != 7 {
			t.Errorf("%+v of %+v", st, b)
		}
		storetest.WantSlug(t, s.StartAnew(t.Context(), r.Owner, r.Session, nil), "nothing-held")
		if st.Admitted[0].ID != waiting.ID {
			t.Errorf("what waited is %+v", st.Admitted)
		}
		storetest.CheckInvariants(t, s)
	})
}

// A summary is read of the journal up to a seq, in pages, and what was read of a long
// session is bounded. The page of a session shows what would be told.
func TestSummary(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		told := func(n int) {
			id := fmt.Sprint("att_", n)
			storetest.MustAppend(t, s, r.Claim, "", &journal.AttemptPrepared{AttemptID: id, TurnID: r.Turn, CutoffSeq: 1 << 40}, &journal.AttemptDispatched{AttemptID: id}, &journal.AttemptSettled{AttemptID: id, Outcome: "end_turn"})
		}
		told(0)
		call := r.MustUnknown(t, s)
		r.Claim = nil
		_, err := s.ResolveCall(t.Context(), r.Owner, call, store.CallResolution{Outcome: journal.Happened, Evidence: "I looked.", Then: journal.ThenContinue})
		must(t, err)
		r.Claim = storetest.MustClaim(t, s, r.Session, "w")
		storetest.MustAppend(t, s, r.Claim, "",
			&journal.MessageCompleted{MessageID: "msg_1", Role: "agent", Part: journal.PartText, Text: journal.T(strings.Repeat("long ", 10_000) + "end")},
			&journal.MessageCompleted{MessageID: "msg_2", Role: journal.RoleServer, Part: journal.PartNote, Text: journal.T("a note of ours"), Told: journal.ToldRejection},
			&journal.MessageDelta{MessageID: "msg_3", Role: "agent", Part: journal.PartText, Text: journal.T("cut ")}, &journal.MessageDelta{MessageID: "msg_3", Role: "agent", Part: journal.PartText, Text: journal.T("off")})
		const prompts = 60
		for i := range prompts {
			storetest.MustPrompt(t, s, r.Owner, r.Session, fmt.Sprintf("prompt <%d>", i), journal.Queue)
			end(t, s, r.Claim, journal.Completed, false)
			r.Turn = storetest.MustPromote(t, s, r.Claim)
			told(i + 1)
			for j := range 5 {
				id := fmt.Sprintf("call_%d_%d", i, j)
				storetest.MustAppend(t, s, r.Claim, "", r.Propose(id, journal.EffectEffect), storetest.Dispatch(id, 1), storetest.Settle(id, journal.CallSucceeded))
			}
		}
		for _, title := range []string{"an old plan", "the newest plan"} {
			storetest.MustAppend(t, s, r.Claim, "", &journal.PlanUpdated{Plan: []journal.PlanItem{{Key: "1", Title: title, State: journal.PlanDone}}})
		}
		forget(t, s, r, false)
		page, err := s.SessionPage(t.Context(), r.Owner, r.Session, 0, 10)
		must(t, err)
		got, err := s.Summary(t.Context(), r.Session, page.Session.LastSeq+1)
		must(t, err)
		if got != page.Summary || len(got) > journal.MaxSummary {
			t.Errorf("the page shows another summary (%d bytes):\n%s\n%s", len(got), page.Summary, got)
		}
		for _, want := range []string{"| do it", "the person says: it happened.", "| I looked.", "| prompt <59>", "older ones of what was asked are left out", "older ones of what it did are left out", "| cut off", "bytes are left out here", "the newest plan"} {
			if !strings.Contains(got, want) {
				t.Errorf("it doesn't say %q:\n%s", want, got)
			}
		}
		for _, not := range []string{"prompt <3>", "a note of ours", "an old plan"} {
			if strings.Contains(got, not) {
				t.Errorf("it says %q:\n%s", not, got)
			}
		}
		if early, err := s.Summary(t.Context(), r.Session, 3); err != nil || strings.Contains(early, "prompt") || strings.Contains(early, "| cut off") {
			t.Errorf("up to entry 3, %v:\n%s", err, early)
		}
	})
}
