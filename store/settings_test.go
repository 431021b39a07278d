package store_test

import (
	"errors"
	"sync"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

func large(value string) []journal.Setting { return []journal.Setting{{ID: "model", Value: value}} }

// proves ADM-1 ADM-2 ADM-3 ADM-4 OWN-1 JRN-4
func TestChooseSettings(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		owner, other := storetest.MustUser(t, s).ID, storetest.MustUser(t, s).ID
		id := storetest.MustSession(t, s, owner, func(n *store.NewSession) { n.Settings = large("small") }).ID
		choose := func(owner, key string, list []journal.Setting) (int64, bool, error) {
			return s.ChooseSettings(t.Context(), owner, id, key, list)
		}
		st := storetest.MustState(t, s, id)
		if v, _ := st.Wants("model"); v != "small" {
			t.Errorf("a new session wants %q", v)
		}
		before := db.RowCounts(t, db.SQL(t))
		_, _, err := choose(other, "k", large("large"))
		storetest.WantCode(t, err, journal.NotFound)
		_, _, err = choose(owner, "k", []journal.Setting{{}})
		storetest.WantSlug(t, err, "bad-setting")
		if after := db.RowCounts(t, db.SQL(t)); after["event"] != before["event"] || after["receipt"] != before["receipt"] {
			t.Errorf("refusals wrote: %v before, %v after", before, after)
		}

		var wait sync.WaitGroup
		var mu sync.Mutex
		firsts, seqs := 0, map[int64]bool{}
		for range 8 {
			wait.Go(func() {
				seq, replayed, err := choose(owner, "k", large("large"))
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				if !replayed {
					firsts++
				}
				seqs[seq] = true
			})
		}
		wait.Wait()
		if firsts != 1 || len(seqs) != 1 || storetest.CountKind(storetest.Events(t, s, id), journal.KindSettingsChosen) != 1 {
			t.Errorf("%d first answers, of entries %v", firsts, seqs)
		}
		_, _, err = choose(owner, "k", large("medium"))
		storetest.WantSlug(t, err, "idempotency-key-reused")
		if seq, again, err := s.ChosenBefore(t.Context(), owner, id, "k", large("large")); err != nil || !again || !seqs[seq] {
			t.Errorf("what was chosen before: %d, %v, %v", seq, again, err)
		}
		if _, again, err := s.ChosenBefore(t.Context(), owner, id, "new", large("large")); err != nil || again {
			t.Errorf("what was never chosen: %v, %v", again, err)
		}

		if err := s.Archive(t.Context(), owner, id); err != nil {
			t.Fatal(err)
		}
		_, _, err = choose(owner, "new", large("medium"))
		storetest.WantSlug(t, err, "session-archived")
		if _, replayed, err := choose(owner, "k", large("large")); err != nil || !replayed { // ADM-3
			t.Errorf("a replay after the end: %v, %v", replayed, err)
		}
		storetest.CheckInvariants(t, s)
	})
}

// What an agent offers is read whole, and what is set as it is now.
// proves OWN-1 JRN-4
func TestOffersOf(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		of := func(owner string) []journal.AgentOption {
			t.Helper()
			list, err := s.OffersOf(t.Context(), owner, r.Session)
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		if list := of(r.Owner); list != nil {
			t.Errorf("before it has said anything it offers %+v", list)
		}
		options := []journal.AgentOption{{ID: "model", Name: "Model", Current: "small", Choices: []journal.AgentChoice{{Value: "small"}, {Value: "large"}}}}
		storetest.MustAppend(t, s, r.Claim, "",
			&journal.AgentStarted{ProcessID: "prc_1"}, &journal.AgentOpened{ProcessID: "prc_1"}, &journal.AgentOptions{ProcessID: "prc_1", Options: options},
			&journal.AgentCommands{ProcessID: "prc_1", Commands: []journal.AgentCommand{{Name: "init"}}},
			&journal.AgentUsage{Used: 5, Size: 10, Cost: &journal.Cost{Amount: "0.5", Currency: "USD"}})
		if list := of(r.Owner); len(list) != 1 || len(list[0].Choices) != 2 || list[0].Current != "small" {
			t.Errorf("it offers %+v", list)
		}
		if _, err := s.OffersOf(t.Context(), storetest.MustUser(t, s).ID, r.Session); !journal.Is(err, journal.NotFound) {
			t.Errorf("somebody else is told %v", err)
		}
		page, err := s.SessionPage(t.Context(), r.Owner, r.Session, 0, 50)
		if err != nil || page.Commands == nil || len(page.Commands.Commands) != 1 || page.Session.State.Usage.CostUSD != 0.5 {
			t.Errorf("the page has %+v, %v", page.Commands, err)
		}
		storetest.MustAppend(t, s, r.Claim, "", &journal.AgentOpened{ProcessID: "prc_1"})
		if list := of(r.Owner); len(list) != 1 || list[0].Current != "" {
			t.Errorf("a new process has %+v before it says so", list)
		}
		storetest.CheckInvariants(t, s)
	})
}

// proves OWN-1 OWN-3
func TestAgentOffers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner, other := storetest.MustUser(t, s).ID, storetest.MustUser(t, s).ID
		for _, name := range []string{"Small", "Large"} { // the last word counts
			err := s.SaveAgentOffers(t.Context(), owner, "fake", "fake 1", []journal.AgentOption{{ID: "model", Name: name, Choices: []journal.AgentChoice{}}})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := s.SaveAgentOffers(t.Context(), owner, "none", "", nil); err != nil {
			t.Fatal(err)
		}
		all, err := s.AgentOffers(t.Context(), owner)
		if o := all["fake"]; err != nil || len(all) != 2 || len(o.Options) != 1 || o.Options[0].Name != "Large" || o.Version != "fake 1" || o.At == 0 {
			t.Errorf("kept %+v, %v", all, err)
		}
		if o, known := all["none"]; !known || o.Options == nil {
			t.Errorf("one that offers nothing is %+v", o)
		}
		if all, err := s.AgentOffers(t.Context(), other); err != nil || len(all) != 0 {
			t.Errorf("somebody else has %+v, %v", all, err)
		}
		if err := s.SaveAgentOffers(t.Context(), "usr_none", "fake", "", nil); err == nil || errors.Is(err, t.Context().Err()) {
			t.Errorf("kept for nobody: %v", err)
		}
	})
}

// To choose what is wanted already is a choice, unless it is so already: the agent may
// have changed it by itself meanwhile.
//
// proves ADM-1
func TestChooseSettings_Again(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		again := func(value string, want bool) {
			t.Helper()
			seq, _, err := s.ChooseSettings(t.Context(), r.Owner, r.Session, "", large(value))
			if err != nil || (seq != 0) != want {
				t.Errorf("%s became entry %d, %v; want one: %v", value, seq, err, want)
			}
		}
		is := func(value string) {
			storetest.MustAppend(t, s, r.Claim, "", &journal.AgentOptions{ProcessID: "prc_1", Options: []journal.AgentOption{{ID: "model", Name: "Model", Current: value, Choices: []journal.AgentChoice{}}}})
		}
		again("", false)
		again("large", true)
		again("large", true) // nobody knows what is so
		is("small")
		again("large", true)
		is("large")
		again("large", false)
		again("", true)
		again("", false)
		storetest.CheckInvariants(t, s)
	})
}
