package store_test

import (
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// What was asked for at the start bounds every turn; a continuation raises it for its own.
func TestCreateSession_Limits(t *testing.T) {
	// proves COO-5 ADM-3 ADM-4 JRN-4
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		owner := storetest.MustUser(t, s).ID
		asked := store.NewSession{Title: "x", Agent: "runbook", Workspace: "/srv/x", WorkspaceID: "wsp_1", Preset: "ask_writes", Limits: &journal.Limits{Steps: 7}, Prompt: &store.PromptInput{Text: "go", Delivery: journal.Queue}}
		one, _, err := s.CreateSession(t.Context(), owner, "key-1", asked)
		must(t, err)
		again, replayed, err := s.CreateSession(t.Context(), owner, "key-1", asked)
		if err != nil || !replayed || again.ID != one.ID {
			t.Errorf("the same once more: %v, %v", replayed, err)
		}
		other := asked
		other.Limits = &journal.Limits{Steps: 8}
		for name, n := range map[string]store.NewSession{"other limits": other, "none": {Title: "x", Agent: "runbook", Workspace: "/srv/x", WorkspaceID: "wsp_1", Preset: "ask_writes", Prompt: asked.Prompt}} {
			if _, _, err := s.CreateSession(t.Context(), owner, "key-1", n); !journal.Is(err, journal.Unprocessable) {
				t.Errorf("the key with %s: %v", name, err)
			}
		}
		other.Limits = &journal.Limits{Steps: -1}
		if _, _, err := s.CreateSession(t.Context(), owner, "key-2", other); !journal.Is(err, journal.Unprocessable) {
			t.Errorf("limits that make no sense: %v", err)
		}

		want := func(l journal.Limits) {
			t.Helper()
			st := storetest.MustState(t, s, one.ID)
			if st.TurnLimits() != l {
				t.Errorf("the bounds are %+v, want %+v", st.TurnLimits(), l)
			}
		}
		defaults := journal.DefaultLimits()
		want(journal.Limits{Steps: 7, WallS: defaults.WallS})
		turn := func(o journal.Outcome) {
			claim := storetest.MustClaim(t, s, one.ID, "w")
			if st := storetest.MustState(t, s, one.ID); !st.TurnOpen() {
				storetest.MustPromote(t, s, claim)
			}
			end(t, s, claim, o, true)
		}
		turn(journal.LimitReach)
		must(t, s.Continue(t.Context(), owner, one.ID, &journal.Limits{Steps: 14}))
		want(journal.Limits{Steps: 14, WallS: defaults.WallS})
		turn(journal.Completed)
		storetest.MustPrompt(t, s, owner, one.ID, "next", journal.Queue)
		storetest.MustPromote(t, s, storetest.MustClaim(t, s, one.ID, "w"))
		want(journal.Limits{Steps: 7, WallS: defaults.WallS})

		report, err := s.Verify(t.Context(), store.VerifyOptions{Session: one.ID})
		if err != nil || !report.OK() {
			t.Errorf("verify: %+v, %v", report, err)
		}
	})
}
