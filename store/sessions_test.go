package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// The lists' filters, which SQL decides, are what the fold says of the same session.
func TestSessions_FilterEqualsExecution(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		want := storetest.States(t, s, owner)
		check := func(skew time.Duration, want map[journal.ExecutionState][]string) {
			t.Helper()
			s.Skew(skew)
			for _, state := range journal.States() {
				list, _, err := s.Sessions(t.Context(), owner, store.SessionQuery{State: state, Limit: 100})
				must(t, err)
				var got []string
				for _, ss := range list {
					got = append(got, ss.ID)
					if is, since := ss.Execution(); is != state || since == 0 {
						t.Errorf("after %s: the filter %s gave a session that is %s since %d", skew, state, is, since)
					}
				}
				slices.Sort(got)
				slices.Sort(want[state])
				if !slices.Equal(got, want[state]) {
					t.Errorf("after %s: the filter %s gave %v, want %v", skew, state, got, want[state])
				}
			}
			groups(t, s, owner)
		}
		check(0, want)
		check(storetest.StatesLease/2, want)
		// Two of three renewals failed to come: every live claim, but those of the states that come before.
		late := map[journal.ExecutionState][]string{}
		for state, ids := range want {
			for _, id := range ids {
				ss, err := s.Session(t.Context(), owner, id)
				must(t, err)
				is := state
				if ss.Claim != nil && state != journal.StateStopping && state != journal.StateUncertain {
					is = journal.StateUnconfirmed
				}
				late[is] = append(late[is], id)
			}
		}
		if len(late[journal.StateUnconfirmed]) < 5 {
			t.Fatalf("few are claimed: %v", late)
		}
		check(storetest.StatesLease*5/6, late)
		check(2*storetest.StatesLease, late)
	})
}

// groups holds the groups of the list, which SQL decides, against the fold's.
func groups(t *testing.T, s *store.Store, owner string) {
	t.Helper()
	counts, err := s.SessionCounts(t.Context(), owner)
	must(t, err)
	all := 0
	for _, group := range journal.Groups() {
		list, next, err := s.Sessions(t.Context(), owner, store.SessionQuery{Group: group, NeedsFirst: true, Limit: 100})
		if err != nil || next != "" {
			t.Fatal(err, next)
		}
		if len(list) != counts[group] || len(list) == 0 {
			t.Errorf("%s lists %d sessions and counts %d", group, len(list), counts[group])
		}
		for i := range list {
			if got := list[i].Group(); got != group {
				is, _ := list[i].Execution()
				t.Errorf("a session that is %s and needs %s is listed under %s, want %s", is, list[i].State.Needs(), group, got)
			}
		}
		all += len(list)
	}
	whole, _, err := s.Sessions(t.Context(), owner, store.SessionQuery{Limit: 100})
	if err != nil || len(whole) != all {
		t.Errorf("%d sessions in groups, %d in all, %v", all, len(whole), err)
	}
}

func TestSessions_PagesSearchAndOrder(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		var ids []string
		for i := range 7 {
			ids = append(ids, storetest.MustSession(t, s, owner, func(n *store.NewSession) { n.Title = fmt.Sprintf("Größe_%d%%", i) }).ID)
		}
		storetest.MustPrompt(t, s, owner, ids[2], "please MIGRATE it", journal.Queue)
		all := func(q store.SessionQuery) (got []string) {
			t.Helper()
			q.Limit = 3
			for {
				list, next, err := s.Sessions(t.Context(), owner, q)
				must(t, err)
				for _, ss := range list {
					got = append(got, ss.ID)
				}
				if q.Cursor = next; next == "" {
					return got
				}
			}
		}
		newest := slices.Clone(ids)
		slices.Reverse(newest)
		if got := all(store.SessionQuery{}); !slices.Equal(got, newest) {
			t.Errorf("got %v, want %v", got, newest)
		}
		for text, want := range map[string]int{"größe": 7, "GRÖSSE": 0, "e_3%": 1, "_": 7, "e%3": 0, "migrate": 1, "x": 0, `\`: 0, "'": 0} {
			if got := all(store.SessionQuery{Text: text}); len(got) != want {
				t.Errorf("%q found %d, want %d", text, len(got), want)
			}
		}
		// Those that need their owner come first, who waits longest at the top, then what runs or waits, then what is ready.
		for i, id := range []string{ids[2], ids[5]} {
			s.Skew(time.Duration(i) * time.Minute)
			storetest.MustPrompt(t, s, owner, id, "y", journal.Queue)
			c := storetest.MustClaim(t, s, id, "w")
			run := storetest.Run{Owner: owner, Session: id, Claim: c, Turn: storetest.MustPromote(t, s, c)}
			run.MustAsk(t, s)
		}
		storetest.MustPrompt(t, s, owner, ids[4], "x", journal.Queue)
		got := all(store.SessionQuery{NeedsFirst: true})
		if want := []string{ids[2], ids[5], ids[4]}; len(got) != 7 || !slices.Equal(got[:3], want) {
			t.Errorf("got %v, want first %v", got, want)
		}
		for _, bad := range []store.SessionQuery{{Cursor: "x"}, {Cursor: "oops", NeedsFirst: true}, {Cursor: "o20", NeedsFirst: true}, {Cursor: "0.1.per_1", NeedsFirst: true}, {Cursor: "0.x.ses_1", NeedsFirst: true}, {Cursor: "999.1.ses_1", NeedsFirst: true}} {
			_, _, err := s.Sessions(t.Context(), owner, bad)
			storetest.WantCode(t, err, journal.Invalid)
		}
	})
}

// A list that is read by pages skips nobody and gives nobody twice, though one of
// those that were given goes, or moves on, between two pages.
func TestSessions_PagesWhileRowsMove(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		var runs []*storetest.Run
		for i := range 6 {
			s.Skew(time.Duration(min(i, 3)) * time.Minute) // the last three at one moment, but for the clock's own going
			r := &storetest.Run{Owner: owner, Session: storetest.MustSession(t, s, owner).ID}
			storetest.MustPrompt(t, s, owner, r.Session, "x", journal.Queue)
			r.Claim = storetest.MustClaim(t, s, r.Session, "w")
			r.Turn = storetest.MustPromote(t, s, r.Claim)
			r.MustAsk(t, s)
			runs = append(runs, r)
		}
		idle := storetest.MustSession(t, s, owner).ID
		page := func(cursor string) (ids []string, next string) {
			t.Helper()
			list, next, err := s.Sessions(t.Context(), owner, store.SessionQuery{NeedsFirst: true, Cursor: cursor, Limit: 2})
			must(t, err)
			for _, one := range list {
				ids = append(ids, one.ID)
			}
			return ids, next
		}
		want := func(got []string, want ...string) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Errorf("the page is %v, want %v", got, want)
			}
		}
		first, next := page("")
		want(first, runs[0].Session, runs[1].Session)
		for _, r := range runs[:2] { // answered: they need nobody any more
			open, _, err := s.Requests(t.Context(), owner, store.RequestQuery{Session: r.Session, State: journal.RequestPending})
			must(t, err)
			for _, q := range open {
				_, err := s.Decide(t.Context(), owner, q.ID, store.Decision{Reply: journal.ReplyReject})
				must(t, err)
			}
		}
		second, next := page(next)
		want(second, runs[2].Session, runs[3].Session)
		third, next := page(next)
		want(third, runs[4].Session, runs[5].Session)
		var rest []string
		for next != "" {
			var ids []string
			ids, next = page(next)
			rest = append(rest, ids...)
		}
		slices.Sort(rest) // those that went from the top have come again below, as what they are now
		all := []string{runs[0].Session, runs[1].Session, idle}
		slices.Sort(all)
		want(rest, all...)
	})
}

func TestSession_ShowsItsWorker(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		must(t, s.SeeWorker(t.Context(), store.Worker{ID: "w", StateFolderID: "fld_w", Host: "box", PID: 42, Places: 8}))
		r := storetest.MustRun(t, s, "w")
		ss, err := s.Session(t.Context(), r.Owner, r.Session)
		must(t, err)
		if ss.Host != "box" || ss.PID != 42 || ss.Claim == nil || ss.Claim.ExecutionID != r.Claim.ExecutionID || ss.Claim.Epoch != r.Claim.Epoch || ss.Now < ss.Claim.ClaimedAt {
			t.Errorf("got %+v with %+v", ss, ss.Claim)
		}
		if ss.Rules.Preset != "ask_writes" || ss.Rules.Version != 1 {
			t.Errorf("rules %+v", ss.Rules)
		}
		for _, w := range []store.Worker{{ID: "w", Running: 1, Draining: true}, {ID: "w2", StateFolderID: "fld_w", Host: "box"}} {
			must(t, s.SeeWorker(t.Context(), w))
		}
		list, err := s.Workers(t.Context())
		must(t, err)
		if len(list) != 2 || !list[0].Draining || list[0].Running != 1 || list[0].PID != 42 {
			t.Errorf("got %+v", list)
		}
		must(t, s.ForgetWorkers(t.Context(), "fld_w", "w2"))
		if list, err = s.Workers(t.Context()); err != nil || len(list) != 1 || list[0].ID != "w2" {
			t.Errorf("got %+v, %v", list, err)
		}
		s.Skew(time.Hour)
		if list, err = s.Workers(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("got %+v, %v", list, err)
		}
	})
}

// What the journal would mask is refused where it is used again, not only shown:
// the folder that is looked for, the rule that is matched. A title is masked.
//
// proves OWN-3 WSP-1
func TestCreateSession_RefusesWhatItCouldNotKeep(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		const secret = "postgres"
		s := db.Open(t, func(o *store.Options) { o.Secrets = []string{secret} })
		owner := storetest.MustUser(t, s).ID
		raw := db.SQL(t)
		before := db.RowCounts(t, raw)
		rule := func(r journal.Rule) func(*store.NewSession) {
			return func(n *store.NewSession) {
				n.Rules = []journal.Rule{{Permission: "shell", Pattern: "ls", Action: "allow"}, r}
			}
		}
		for slug, with := range map[string]func(*store.NewSession){
			"workspace-holds-secret": func(n *store.NewSession) { n.Workspace = "/srv/my-" + secret + "-app" },
			"agent-holds-secret":     func(n *store.NewSession) { n.Agent = secret },
			"preset-holds-secret":    func(n *store.NewSession) { n.Preset = secret },
			"rule-holds-secret":      rule(journal.Rule{Permission: "shell", Pattern: "psql " + secret + " *", Action: "allow"}),
			"workspace-not-text":     func(n *store.NewSession) { n.Workspace = "/srv/\xff" },
			"rule-not-text":          rule(journal.Rule{Permission: "shell", Pattern: "a\x00b", Action: "allow"}),
		} {
			n := storetest.NewSession()
			with(&n)
			_, _, err := s.CreateSession(t.Context(), owner, "k", n)
			storetest.WantCode(t, err, journal.Unprocessable)
			storetest.WantSlug(t, err, slug)
			if text := err.Error(); strings.Contains(text, secret) || !strings.Contains(text, "Nothing was recorded") {
				t.Errorf("%s says %q", slug, text)
			}
		}
		wantSame(t, before, db.RowCounts(t, raw))

		n := storetest.NewSession()
		n.Title, n.WorkspaceID = "move "+secret, "wsp_"+secret // an id stands as it is
		made, _, err := s.CreateSession(t.Context(), owner, "k", n)
		must(t, err)
		if made.State.Title != "move "+journal.Hidden {
			t.Errorf("the title is %q", made.State.Title)
		}
		if got := storetest.Body[*journal.SessionCreated](t, storetest.Events(t, s, made.ID)).WorkspaceID; got != n.WorkspaceID {
			t.Errorf("the mark is %q", got)
		}
	})
}
