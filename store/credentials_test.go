package store_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

func sealed(id, owner, agent, name string) store.Sealed {
	return store.Sealed{Credential: store.Credential{ID: id, OwnerID: owner, Agent: agent, Name: name}, Value: []byte("sealed " + id)}
}

// Lists and sessions have their owner's own, and of two servers with two keys one is
// the first, and the other is refused.
//
// proves OWN-1 OWN-3
func TestCredentials_OfOneOwnerAndOneKey(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		a, b := storetest.MustRun(t, s, "w"), storetest.MustRun(t, s, "w2")
		two := []*store.Store{s, db.OpenUnchecked(t)}
		refused := make([]error, 2)
		var wg sync.WaitGroup
		for i, one := range two {
			wg.Go(func() {
				refused[i] = one.PutCredential(t.Context(), sealed("crd_"+string(rune('a'+i)), a.Owner, "", "A_KEY"), "key"+string(rune('a'+i)))
			})
		}
		wg.Wait()
		if (refused[0] == nil) == (refused[1] == nil) {
			t.Fatalf("with two keys: %v", refused)
		}
		first := slices.Index(refused, nil)
		storetest.WantSlug(t, refused[1-first], "other-key")
		key := "key" + string(rune('a'+first))
		must(t, s.PutCredential(t.Context(), sealed("crd_b1", b.Owner, "", "A_KEY"), key))
		must(t, s.PutCredential(t.Context(), sealed("crd_b2", b.Owner, "codex", "B_KEY"), key))
		storetest.WantSlug(t, s.PutCredential(t.Context(), sealed("crd_b1", a.Owner, "", "A_KEY"), key), "idempotency-key-reused")

		for _, r := range []*storetest.Run{a, b} {
			list, err := s.Credentials(t.Context(), r.Owner)
			must(t, err)
			gets, err := s.SessionCredentials(t.Context(), r.Session, "claude")
			must(t, err)
			if len(gets) != 1 || gets[0].OwnerID != r.Owner || len(list) != map[bool]int{true: 1, false: 2}[r == a] {
				t.Errorf("%s has %+v, and its session gets %+v", r.Owner, list, gets)
			}
		}
		must(t, s.UseCredentials(t.Context(), []string{"crd_b1"}))
		must(t, s.PutCredential(t.Context(), sealed("crd_b3", b.Owner, "", "A_KEY"), key))
		list, err := s.Credentials(t.Context(), b.Owner)
		must(t, err)
		if list[0].ID != "crd_b3" || list[0].Version != 2 || !list[0].UsedAt.Valid || list[0].UpdatedAt < list[0].CreatedAt {
			t.Errorf("what replaced it is %+v", list[0])
		}
		owners, n, err := s.CountCredentials(t.Context())
		must(t, err)
		if owners != 2 || n != 3 {
			t.Errorf("%d credentials of %d owners", n, owners)
		}
	})
}

func TestCredentials_Bound(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		owner := storetest.MustUser(t, s).ID
		for i := range store.MaxCredentials {
			must(t, s.PutCredential(t.Context(), sealed("crd_"+strings.Repeat("x", i+1), owner, "", "A"+strings.Repeat("_", i)), "k"))
		}
		storetest.WantSlug(t, s.PutCredential(t.Context(), sealed("crd_more", owner, "", "MORE"), "k"), "too-many-credentials")
		must(t, s.PutCredential(t.Context(), sealed("crd_other", owner, "", "A"), "k"))
	})
}

// What an agent asks is kept until it is answered, and holds no secret in any spelling.
//
// proves OWN-3
func TestAgentAsk_HoldsNoSecret(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		r := mustAgentRun(t, s)
		s.Mask(r.Owner, "s3cr3t-of-mine")
		must(t, r.tell(t, s, store.AgentIO{Sent: 2, Asks: []store.AgentAsk{{N: 9, CallID: r.runs, Request: `{"id":1,"tool":{"title":"use \u00733cr3t-of-mine"}}`}}}, &journal.CallOutput{CallID: r.runs, Stream: "stdout", Text: journal.T("x")}))
		p, err := s.AgentProcess(t.Context(), r.process)
		must(t, err)
		i := slices.IndexFunc(p.Asks, func(a store.AgentAsk) bool { return a.N == 9 })
		if i < 0 || strings.Contains(p.Asks[i].Request, "3cr3t") || !strings.Contains(p.Asks[i].Request, journal.Hidden) {
			t.Errorf("it is kept as %+v", p.Asks)
		}
	})
}

// What an owner's credentials mask is masked in the owner's sessions only, and nobody
// else's text is held back for it; the server's own secrets are masked everywhere.
//
// proves OWN-1 OWN-3 JRN-8
func TestMask_IsItsOwners(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t, func(o *store.Options) { o.Secrets = []string{"s3rver-wide"} })
		mine, theirs := storetest.MustUser(t, s).ID, storetest.MustUser(t, s).ID
		s.Mask(mine, "the ----", "turn_id", "workspace")
		for owner, want := range map[string]string{mine: "[hidden] turn is [hidden]", theirs: "the ---- turn is [hidden]"} {
			n := storetest.NewSession()
			n.Prompt = &store.PromptInput{Text: "the ---- turn is s3rver-wide", Delivery: journal.Queue}
			v, _, err := s.CreateSession(t.Context(), owner, "k", n)
			must(t, err)
			if got := storetest.Body[*journal.PromptAdmitted](t, storetest.Events(t, s, v.ID)); got.Text.S != want {
				t.Errorf("%s reads %q, want %q", owner, got.Text.S, want)
			}
		}
		for owner, want := range map[string]int{mine: 2, theirs: 8, "": 8} {
			if n := s.Cleaner(owner).Undecided("x the --"); n != want {
				t.Errorf("of %q's text %d are decided, want %d", owner, n, want)
			}
		}
	})
}
