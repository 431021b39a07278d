package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// proves ADM-1 ADM-3 JRN-2
func TestSubmitPrompt_OneReceiptForConcurrentRetries(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		for _, stores := range []int{1, 2} {
			t.Run(fmt.Sprintf("%d stores", stores), func(t *testing.T) {
				ss := []*store.Store{db.Open(t)}
				for len(ss) < stores {
					ss = append(ss, db.Open(t))
				}
				owner := storetest.MustUser(t, ss[0]).ID
				session := storetest.MustSession(t, ss[0], owner).ID
				const n = 20
				got := make([]journal.Receipt, n)
				noErrors(t, together(n, func(i int) (err error) {
					got[i], err = ss[i%stores].SubmitPrompt(t.Context(), owner, session, "key-1", queue("hello"))
					return err
				}))
				firsts := 0
				for _, r := range got {
					if !r.Replayed {
						firsts++
					}
					want := got[0]
					want.Replayed = r.Replayed
					if r != want {
						t.Errorf("got the receipt %+v, want %+v", r, want)
					}
				}
				if firsts != 1 {
					t.Errorf("%d of %d were first", firsts, n)
				}
				wantKinds(t, storetest.Events(t, ss[0], session), journal.KindSessionCreated, journal.KindPromptAdmitted)
			})
		}
	})
}

// proves ADM-4 ADM-2
func TestSubmitPrompt_KeyClash(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		raw := db.SQL(t)
		owner, other := storetest.MustUser(t, s).ID, storetest.MustUser(t, s).ID
		a, b := storetest.MustSession(t, s, owner).ID, storetest.MustSession(t, s, owner).ID
		foreign := storetest.MustSession(t, s, other).ID
		first, err := s.SubmitPrompt(t.Context(), owner, a, "k", queue("one\n"))
		must(t, err)
		before := db.RowCounts(t, raw)
		for name, try := range map[string]struct {
			session string
			p       store.PromptInput
		}{
			"another text":     {a, queue("two\n")},
			"trimmed":          {a, queue("one")},
			"another delivery": {a, store.PromptInput{Text: "one\n", Delivery: journal.Steer}},
			"another session":  {b, queue("one\n")},
		} {
			_, err := s.SubmitPrompt(t.Context(), owner, try.session, "k", try.p)
			if !journal.Is(err, journal.Unprocessable) {
				t.Errorf("%s: got %v, want unprocessable", name, err)
				continue
			}
			storetest.WantSlug(t, err, "idempotency-key-reused")
			var je *journal.Error
			if errors.As(err, &je); je.Extra["session_id"] != a || je.Extra["admitted_seq"] != first.AdmittedSeq {
				t.Errorf("%s: the clash isn't named: %v", name, je.Extra)
			}
		}
		wantSame(t, before, db.RowCounts(t, raw))

		// A key's scope is owner and operation.
		if _, err := s.SubmitPrompt(t.Context(), other, foreign, "k", queue("two")); err != nil {
			t.Errorf("another owner's key: %v", err)
		}
		if _, replayed, err := s.CreateSession(t.Context(), owner, "k", storetest.NewSession()); err != nil || replayed {
			t.Errorf("another operation's key: %v, replayed %v", err, replayed)
		}
	})
}

// proves ADM-3
func TestSubmitPrompt_SamePayload(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		first, err := s.SubmitPrompt(t.Context(), owner, session, "k", queue("caf\u00e9\nau lait"))
		must(t, err)
		for _, text := range []string{"caf\u00e9\r\nau lait", "cafe\u0301\nau lait", "cafe\u0301\r\nau lait"} {
			r, err := s.SubmitPrompt(t.Context(), owner, session, "k", queue(text))
			must(t, err)
			if !r.Replayed || r.ID != first.ID {
				t.Errorf("%q: got %+v, want a replay of %s", text, r, first.ID)
			}
		}
	})
}

// What is recorded is what a form sends and what a program sends: a CR would end up in a command.
// proves ADM-3
func TestPeoplesDoors_LineEnds(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const sent, want = "if true\r\nthen\r\r\n  :\r\nfi", "if true\nthen\n  :\nfi"
		owner := storetest.MustUser(t, s).ID
		n := storetest.NewSession()
		n.Prompt = &store.PromptInput{Text: sent, Delivery: journal.Queue}
		session, _, err := s.CreateSession(t.Context(), owner, "k", n)
		must(t, err)
		_, err = s.SubmitPrompt(t.Context(), owner, session.ID, "k", queue(sent))
		must(t, err)
		if n.Prompt.Text != sent {
			t.Error("what the caller holds was changed")
		}
		prompts := 0
		for _, ev := range storetest.Events(t, s, session.ID) {
			body, err := ev.Decode()
			must(t, err)
			p, ok := body.(*journal.PromptAdmitted)
			if !ok {
				continue
			}
			prompts++
			texts, err := s.PromptTexts(t.Context(), session.ID, []string{p.PromptID})
			must(t, err)
			if p.Text.S != want || texts[p.PromptID] != want {
				t.Errorf("recorded %q and %q, want %q", p.Text.S, texts[p.PromptID], want)
			}
		}
		if prompts != 2 {
			t.Errorf("%d prompts", prompts)
		}
		for _, text := range []string{sent, want} {
			if r, err := s.SubmitPrompt(t.Context(), owner, session.ID, "k", queue(text)); err != nil || !r.Replayed {
				t.Errorf("%q is another payload: %+v, %v", text, r, err)
			}
		}

		run := storetest.MustRun(t, s, "w1")
		_, request := run.MustAsk(t, s)
		_, err = s.Decide(t.Context(), run.Owner, request, store.Decision{Reply: journal.ReplyReject, Message: sent})
		must(t, err)
		if got := storetest.Body[*journal.PermissionReplied](t, storetest.Events(t, s, run.Session)); got.Message != want {
			t.Errorf("the message is %q", got.Message)
		}
		run = storetest.MustRun(t, s, "w2")
		call := run.MustUnknown(t, s)
		_, err = s.ResolveCall(t.Context(), run.Owner, call, store.CallResolution{Outcome: journal.Happened, Evidence: sent, Then: journal.ThenStay})
		must(t, err)
		if got := storetest.Body[*journal.CallResolved](t, storetest.Events(t, s, run.Session)); got.Evidence != want {
			t.Errorf("the evidence is %q", got.Evidence)
		}
	})
}

// proves ADM-5 ADM-7
func TestSubmitPrompt_WakesAlsoWhenReplayed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		sub := s.SubscribeWork()
		defer sub.Close()
		for range 2 {
			_, err := s.SubmitPrompt(t.Context(), owner, session, "k", queue("hello"))
			must(t, err)
			hearWork(t, sub, session)
		}
	})
}

// proves ADM-6 ADM-1
func TestCreateSession_WithFirstPrompt(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		owner := storetest.MustUser(t, s).ID
		n := storetest.NewSession()
		n.Prompt = &store.PromptInput{Text: "first", Delivery: journal.Queue}
		ids := make([]string, 10)
		noErrors(t, together(len(ids), func(i int) error {
			out, _, err := s.CreateSession(t.Context(), owner, "k", n)
			ids[i] = out.ID
			return err
		}))
		for _, id := range ids {
			if id != ids[0] {
				t.Fatalf("two sessions under one key: %v", ids)
			}
		}
		evs := storetest.Events(t, s, ids[0])
		wantKinds(t, evs, journal.KindSessionCreated, journal.KindPromptAdmitted)
		if evs[0].Time != evs[1].Time {
			t.Error("the events are of two transactions")
		}
		raw := db.SQL(t)
		before := db.RowCounts(t, raw)
		other := n
		other.Prompt = &store.PromptInput{Text: "another", Delivery: journal.Queue}
		_, _, err := s.CreateSession(t.Context(), owner, "k", other)
		storetest.WantCode(t, err, journal.Unprocessable)
		n.Title = "Another"
		_, _, err = s.CreateSession(t.Context(), owner, "k", n)
		storetest.WantCode(t, err, journal.Unprocessable)
		n.Prompt = &store.PromptInput{Text: "a\x00b", Delivery: journal.Queue}
		_, _, err = s.CreateSession(t.Context(), owner, "k2", n)
		storetest.WantCode(t, err, journal.Unprocessable)
		wantSame(t, before, db.RowCounts(t, raw))
		if before["session"] != 1 || before["receipt"] != 1 {
			t.Errorf("rows: %v", before)
		}
	})
}

// proves ADM-8
func TestWithdrawPrompt(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		gone := storetest.MustPrompt(t, s, owner, session, "one", journal.Queue)
		kept := storetest.MustPrompt(t, s, owner, session, "two", journal.Queue)
		for i := range 2 {
			r, err := s.WithdrawPrompt(t.Context(), owner, gone.ID)
			must(t, err)
			if r.State != journal.InputWithdrawn || r.Replayed != (i > 0) {
				t.Errorf("withdrawal %d: %+v", i, r)
			}
		}
		c := storetest.MustClaim(t, s, session, "w")
		evs, err := s.PromoteNext(t.Context(), c)
		must(t, err)
		if b := storetest.Body[*journal.PromptPromoted](t, evs); b.PromptID != kept.ID {
			t.Errorf("%s was promoted, want %s", b.PromptID, kept.ID)
		}
		_, err = s.WithdrawPrompt(t.Context(), owner, kept.ID)
		storetest.WantCode(t, err, journal.Conflict)
		if n := storetest.CountKind(storetest.Events(t, s, session), journal.KindPromptWithdrawn); n != 1 {
			t.Errorf("%d withdrawals in the journal", n)
		}
	})
}

// proves ADM-8
func TestWithdrawPrompt_LastOneLeavesNoWork(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		r := storetest.MustPrompt(t, s, owner, session, "one", journal.Queue)
		_, err := s.WithdrawPrompt(t.Context(), owner, r.ID)
		must(t, err)
		c, err := s.Claim(t.Context(), claimRequest(session, "w"))
		if err != nil || c != nil {
			t.Errorf("claimed without work: %v, %v", c, err)
		}
		if st := storetest.MustState(t, s, session); st.Base != journal.StateIdle {
			t.Errorf("the state is %s", st.Base)
		}
	})
}

// proves ADM-9
func TestSubmitPrompt_UnknownCommit(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		var err error
		if db.Name == "sqlite" {
			// A foreign key that is deferred fails the COMMIT, not the statement.
			err = s.Write(t.Context(), session, func(ctx context.Context, x store.Tx) error {
				return errors.Join(x.Raw(ctx, "PRAGMA defer_foreign_keys = 1"), x.Exec(ctx, "INSERT INTO blob (session_id, sha256, data) VALUES ('none', 'x', 'y')"))
			})
		} else {
			raw := db.SQL(t)
			db.MustExec(t, raw, "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$")
			db.MustExec(t, raw, "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON receipt DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()")
			_, err = s.SubmitPrompt(t.Context(), owner, session, "k", queue("hello"))
			db.MustExec(t, raw, "DROP FUNCTION refuse CASCADE")
		}
		storetest.WantCode(t, err, journal.Unavailable)
		storetest.WantSlug(t, err, "commit-unknown")

		_, err = s.Receipts(t.Context(), owner, "k")
		storetest.WantCode(t, err, journal.NotFound)
		r, err := s.SubmitPrompt(t.Context(), owner, session, "k", queue("hello"))
		must(t, err)
		items, err := s.Receipts(t.Context(), owner, "k")
		must(t, err)
		if len(items) != 1 || items[0].Receipt.ID != r.ID || items[0].State != "admitted" || items[0].Operation != journal.OpCreatePrompt {
			t.Errorf("got %+v", items)
		}
		_, err = s.Receipts(t.Context(), storetest.MustUser(t, s).ID, "k")
		storetest.WantCode(t, err, journal.NotFound)
	})
}

// proves ADM-10 JRN-6
func TestSubmitPrompt_Bounds(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		raw := db.SQL(t)
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		before := db.RowCounts(t, raw)
		for text, code := range map[string]journal.Code{
			"":       journal.Unprocessable,
			"a\x00b": journal.Unprocessable,
			"a\xffb": journal.Unprocessable,
			strings.Repeat("x", journal.MaxPromptBytes+1): journal.TooLarge,
		} {
			_, err := s.SubmitPrompt(t.Context(), owner, session, "k", queue(text))
			if !journal.Is(err, code) {
				t.Errorf("%.10q: got %v, want %s", text, err, code)
			}
		}
		wantSame(t, before, db.RowCounts(t, raw))

		for i, text := range []string{"x", strings.Repeat("ü", journal.MaxPromptBytes/2), strings.Repeat("\"", journal.MaxField), strings.Repeat("\x01", journal.MaxField)} {
			r := storetest.MustPrompt(t, s, owner, session, text, journal.Queue)
			texts, err := s.PromptTexts(t.Context(), session, []string{r.ID})
			must(t, err)
			if texts[r.ID] != text {
				t.Errorf("text %d came back with %d bytes, want %d", i, len(texts[r.ID]), len(text))
			}
		}
		for _, ev := range storetest.Events(t, s, session) {
			if len(ev.Data) > journal.MaxEventBody {
				t.Errorf("#%d has %d bytes", ev.Seq, len(ev.Data))
			}
		}
		if n := db.Count(t, raw, "SELECT count(*) FROM blob"); n != 3 {
			t.Errorf("%d blobs, want 3", n)
		}
	})
}

// proves ADM-10
func TestSubmitPrompt_AtMost200Wait(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		raw := db.SQL(t)
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		errs := together(journal.MaxAdmitted+20, func(i int) error {
			_, err := s.SubmitPrompt(t.Context(), owner, session, fmt.Sprintf("k%d", i), queue("hello"))
			return err
		})
		refused := 0
		for _, err := range errs {
			if err != nil {
				storetest.WantCode(t, err, journal.Conflict)
				storetest.WantSlug(t, err, "queue-full")
				refused++
			}
		}
		if refused != 20 {
			t.Errorf("%d were refused, want 20", refused)
		}
		counts := db.RowCounts(t, raw)
		if counts["input"] != journal.MaxAdmitted || counts["receipt"] != journal.MaxAdmitted+1 || counts["event"] != journal.MaxAdmitted+1 {
			t.Errorf("rows: %v", counts)
		}
	})
}

// proves PRO-1 PRO-3
func TestPromote_Order(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		submit := func(text string, d journal.Delivery) string {
			return storetest.MustPrompt(t, s, owner, session, text, d).ID
		}
		q1, q2 := submit("q1", journal.Queue), submit("q2", journal.Queue)
		s1, s2, s3 := submit("s1", journal.Steer), submit("s2", journal.Steer), submit("s3", journal.Steer)
		must(t, s.Close()) // the order is the journal's, not the process's
		s = db.Open(t)

		c := storetest.MustClaim(t, s, session, "w")
		wantPromoted(t, first(s.PromoteSteers(t.Context(), c)), false) // no turn is open
		evs := wantPromoted(t, first(s.PromoteNext(t.Context(), c)), true, s1)
		wantKinds(t, evs, journal.KindTurnStarted, journal.KindPromptPromoted)
		turn := storetest.Body[*journal.TurnStarted](t, evs).TurnID
		wantPromoted(t, first(s.PromoteNext(t.Context(), c)), false) // one is open
		evs = wantPromoted(t, first(s.PromoteSteers(t.Context(), c)), false, s2, s3)
		if b := storetest.Body[*journal.PromptPromoted](t, evs); b.TurnID != turn {
			t.Errorf("steers went to the turn %s, want %s", b.TurnID, turn)
		}
		s4 := submit("s4", journal.Steer)
		_, _, err := s.EndTurn(t.Context(), c, store.EndTurn{End: journal.TurnEnded{Outcome: journal.Completed}, Actor: journal.Agent()})
		storetest.WantSlug(t, err, "steers-waiting")
		wantPromoted(t, first(s.PromoteSteers(t.Context(), c)), false, s4)
		for _, id := range []string{q1, q2} {
			end(t, s, c, journal.Completed, false)
			wantPromoted(t, first(s.PromoteNext(t.Context(), c)), true, id)
		}
		end(t, s, c, journal.Completed, true)
	})
}

func first(evs []journal.Event, err error) promoted { return promoted{evs, err} }

type promoted struct {
	evs []journal.Event
	err error
}

// wantPromoted fails unless exactly these prompts were promoted, in this order.
func wantPromoted(t *testing.T, p promoted, opens bool, ids ...string) []journal.Event {
	t.Helper()
	must(t, p.err)
	var got []string
	for i := range p.evs {
		body, err := p.evs[i].Decode()
		must(t, err)
		if b, ok := body.(*journal.PromptPromoted); ok {
			got = append(got, b.PromptID)
			if b.MessageID == "" || b.TurnID == "" {
				t.Errorf("a promotion without a message or a turn: %+v", b)
			}
			if b.Begins != (opens && len(got) == 1 && b.Delivery == journal.Steer) {
				t.Errorf("that it begins its turn is recorded as %v: %+v", b.Begins, b)
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(ids) || storetest.CountKind(p.evs, journal.KindTurnStarted) == 1 != opens {
		t.Fatalf("promoted %v by %v, want %v", got, storetest.Kinds(p.evs), ids)
	}
	return p.evs
}

func end(t *testing.T, s *store.Store, c *journal.Claim, outcome journal.Outcome, wantReleased bool) []journal.Event {
	t.Helper()
	evs, released, err := s.EndTurn(t.Context(), c, store.EndTurn{End: journal.TurnEnded{Outcome: outcome}, Actor: journal.Agent()})
	must(t, err)
	if released != wantReleased {
		t.Fatalf("released: %v, want %v", released, wantReleased)
	}
	return evs
}

// proves PRO-2
func TestPromote_OnceWhoeverTries(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		a, b := db.Open(t), db.Open(t)
		owner := storetest.MustUser(t, a).ID
		session := storetest.MustSession(t, a, owner).ID
		for range 5 {
			storetest.MustPrompt(t, a, owner, session, "x", journal.Steer)
		}
		c := storetest.MustClaim(t, a, session, "w")
		storetest.MustPromote(t, a, c)
		noErrors(t, together(8, func(i int) error {
			_, err := []*store.Store{a, b}[i%2].PromoteSteers(t.Context(), c)
			return err
		}))
		evs := storetest.Events(t, a, session)
		if n := storetest.CountKind(evs, journal.KindPromptPromoted); n != 5 {
			t.Errorf("%d promotions of 5 prompts", n)
		}
		if n := storetest.CountKind(evs, journal.KindTurnStarted); n != 1 {
			t.Errorf("%d turns", n)
		}
	})
}

// proves PRO-5 PRO-6
func TestPromote_HeldUntilContinued(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for _, outcome := range []journal.Outcome{journal.Stopped, journal.Interrupted, journal.Failed, journal.LimitReach} {
			r := storetest.MustRun(t, s, "w")
			waiting := storetest.MustPrompt(t, s, r.Owner, r.Session, "later", journal.Queue)
			end(t, s, r.Claim, outcome, true)
			c, err := s.Claim(t.Context(), claimRequest(r.Session, "w"))
			if err != nil || c != nil {
				t.Fatalf("%s: claimed although held: %v, %v", outcome, c, err)
			}
			if ids := runnable(t, s); len(ids) != 0 {
				t.Fatalf("%s: runnable although held: %v", outcome, ids)
			}
			// A replay is no new prompt.
			_, err = s.SubmitPrompt(t.Context(), r.Owner, r.Session, "again", queue("x"))
			must(t, err)
			c = storetest.MustClaim(t, s, r.Session, "w") // a new prompt lifts it
			evs := wantPromoted(t, first(s.PromoteNext(t.Context(), c)), true, waiting.ID)
			end(t, s, c, outcome, true)
			_, err = s.SubmitPrompt(t.Context(), r.Owner, r.Session, "again", queue("x"))
			must(t, err)
			if c, err := s.Claim(t.Context(), claimRequest(r.Session, "w")); err != nil || c != nil {
				t.Fatalf("%s: a replay lifted the hold", outcome)
			}

			last := storetest.Body[*journal.TurnStarted](t, evs).TurnID
			must(t, s.Continue(t.Context(), r.Owner, r.Session, &journal.Limits{Steps: 7}))
			all := storetest.Events(t, s, r.Session)
			wantKinds(t, all[len(all)-2:], journal.KindContinuation, journal.KindTurnStarted)
			b := storetest.Body[*journal.TurnStarted](t, all)
			if b.Cause != journal.CauseContinuation || b.Continues == nil || *b.Continues != last {
				t.Errorf("the continuation is %+v, want one of %s", b, last)
			}
			if st := storetest.MustState(t, s, r.Session); st.TurnLimits().Steps != 7 || st.TurnLimits().WallS != journal.DefaultLimits().WallS {
				t.Errorf("limits %+v", st.TurnLimits())
			}
			storetest.WantSlug(t, s.Continue(t.Context(), r.Owner, r.Session, nil), "nothing-held")
			storetest.WantCode(t, s.Continue(t.Context(), r.Owner, r.Session, &journal.Limits{Steps: -1}), journal.Unprocessable)
			// The unfinished turn first, then the inputs.
			c = storetest.MustClaim(t, s, r.Session, "w")
			wantPromoted(t, first(s.PromoteNext(t.Context(), c)), false)
			end(t, s, c, journal.Completed, false)
			if evs, err := s.PromoteNext(t.Context(), c); err != nil || storetest.CountKind(evs, journal.KindPromptPromoted) != 1 {
				t.Errorf("after the continued turn: %v, %v", evs, err)
			}
		}
	})
}
