package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// proves PER-1 PER-4 PER-5
func TestAsk_RunsWhenAllAreAllowed(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		r := storetest.MustRun(t, s, "w")
		call := r.MustCall(t, s, journal.EffectEffect)
		evs := storetest.MustAppend(t, s, r.Claim, "", storetest.Ask("per_a", call), storetest.Ask("per_b", call))
		dispatch := store.Append{Drafts: storetest.Drafts(storetest.Dispatch(call, 1))}
		_, err := s.Append(t.Context(), r.Claim, dispatch)
		storetest.WantSlug(t, err, "call-not-allowed")
		released, err := s.Release(t.Context(), r.Claim, evs[len(evs)-1].Seq)
		if err != nil || !released {
			t.Fatalf("parking: %v, %v", released, err)
		}
		ss, err := s.Session(t.Context(), r.Owner, r.Session)
		must(t, err)
		if state, _ := ss.Execution(); state != journal.StateWaiting || ss.Claim != nil {
			t.Errorf("the session is %s", state)
		}
		must(t, s.Close()) // durable: the answers come after a restart
		s = db.Open(t)
		for i, id := range []string{"per_a", "per_b"} {
			sub := s.SubscribeWork()
			p, err := s.Decide(t.Context(), r.Owner, id, store.Decision{Reply: journal.ReplyOnce, Digest: "d1"})
			must(t, err)
			if p.Request.State != journal.RequestApprovedOnce || p.Request.By != r.Owner {
				t.Errorf("got %+v", p.Request)
			}
			if b := storetest.Body[*journal.PermissionReplied](t, storetest.Events(t, s, r.Session)); b.Others != 1-i {
				t.Errorf("answer %d: %d others wait", i, b.Others)
			}
			if i == 0 {
				silent(t, sub.C(), "one answer of two is no work")
				if c, err := s.Claim(t.Context(), claimRequest(r.Session, "w")); err != nil || c != nil {
					t.Fatalf("claimed with one request open: %v, %v", c, err)
				}
			} else {
				hearWork(t, sub, r.Session)
			}
			sub.Close()
		}
		c := storetest.MustClaim(t, s, r.Session, "w2")
		f, _, err := s.Fold(t.Context(), r.Session)
		must(t, err)
		if got := f.Requests(call); len(got) != 2 || got[0].State != journal.RequestApprovedOnce {
			t.Errorf("the drain folds %+v", got)
		}
		storetest.MustAppend(t, s, c, journal.PhaseUncertain, storetest.Dispatch(call, 1))
		_, err = s.Append(t.Context(), c, dispatch) // once is spent
		storetest.WantCode(t, err, journal.Conflict)
		storetest.MustAppend(t, s, c, journal.PhaseSafe, storetest.Settle(call, journal.CallSucceeded))
	})
}

// proves PER-2 PER-6 CAL-8
func TestDecide_FirstAnswerWins(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		ss := []*store.Store{db.Open(t), db.Open(t)}
		r := storetest.MustRun(t, ss[0], "w")
		_, id := r.MustAsk(t, ss[0])
		won := 0
		for _, err := range together(10, func(i int) error {
			_, err := ss[i%2].Decide(t.Context(), r.Owner, id, store.Decision{Reply: journal.ReplyOnce, Message: fmt.Sprint(i)})
			return err
		}) {
			if err == nil {
				won++
				continue
			}
			storetest.WantCode(t, err, journal.Conflict)
			var je *journal.Error
			if !errors.As(err, &je) || je.Extra["answered"].(map[string]any)["by"] != r.Owner {
				t.Errorf("the first answer isn't named: %v", err)
			}
		}
		if won != 1 || storetest.CountKind(storetest.Events(t, ss[0], r.Session), journal.KindPermissionReplied) != 1 {
			t.Errorf("%d answers were taken", won)
		}
	})
}

// proves PER-2 ADM-4
func TestDecide_Refusals(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		raw := db.SQL(t)
		r := storetest.MustRun(t, s, "w")
		_, id := r.MustAsk(t, s)
		before := db.RowCounts(t, raw)
		for name, tt := range map[string]struct {
			id   string
			d    store.Decision
			slug string
		}{
			"always":         {id, store.Decision{Reply: journal.ReplyAlways, Key: "k"}, "always-not-available"},
			"another word":   {id, store.Decision{Reply: "yes", Key: "k"}, "unknown-reply"},
			"a stale digest": {id, store.Decision{Reply: journal.ReplyOnce, Digest: "d0", Key: "k"}, "digest-differs"},
			"a form without": {id, store.Decision{Reply: journal.ReplyOnce, NeedDigest: true, Key: "k"}, "digest-differs"},
			"a NUL":          {id, store.Decision{Reply: journal.ReplyReject, Message: "\x00", Key: "k"}, "bad-message"},
			"no such":        {"per_none", store.Decision{Reply: journal.ReplyOnce, Key: "k"}, "no-such-request"},
		} {
			_, err := s.Decide(t.Context(), r.Owner, tt.id, tt.d)
			var je *journal.Error
			if !errors.As(err, &je) || je.Slug() != tt.slug {
				t.Errorf("%s: got %v", name, err)
			}
		}
		wantSame(t, before, db.RowCounts(t, raw))

		// The same submission again, under its key: the first answer, not a conflict.
		d := store.Decision{Reply: journal.ReplyOnce, Digest: "d1", Key: "k"}
		for range 3 {
			p, err := s.Decide(t.Context(), r.Owner, id, d)
			must(t, err)
			if p.Request.State != journal.RequestApprovedOnce {
				t.Errorf("got %s", p.Request.State)
			}
		}
		d.Reply = journal.ReplyReject
		_, err := s.Decide(t.Context(), r.Owner, id, d)
		storetest.WantSlug(t, err, "idempotency-key-reused")
		items, err := s.Receipts(t.Context(), r.Owner, "k")
		must(t, err)
		if len(items) != 1 || items[0].Operation != journal.OpDecide || items[0].State != string(journal.RequestApprovedOnce) {
			t.Errorf("got %+v", items)
		}
	})
}

// proves PER-3
func TestDecide_RejectEndsTheTurn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		other := r.MustCall(t, s, journal.EffectEffect)
		storetest.MustAppend(t, s, r.Claim, "", storetest.Ask("per_other", other))
		call, id := r.MustAsk(t, s)
		queued := storetest.MustPrompt(t, s, r.Owner, r.Session, "later", journal.Queue)
		p, err := s.Decide(t.Context(), r.Owner, id, store.Decision{Reply: journal.ReplyReject})
		must(t, err)
		if p.Request.State != journal.RequestRejected || p.Call.State != journal.CallIsRefused {
			t.Errorf("the request is %s, its call %s", p.Request.State, p.Call.State)
		}
		b := storetest.Body[*journal.TurnEnded](t, storetest.Events(t, s, r.Session))
		if b.Outcome != journal.Stopped || b.Reason != "rejected" {
			t.Errorf("got %+v", b)
		}
		p, err = s.Request(t.Context(), r.Owner, "per_other")
		must(t, err)
		if p.Request.State != journal.RequestCancelled || p.Call.State != journal.CallCancelled {
			t.Errorf("the other request is %s, its call %s", p.Request.State, p.Call.State)
		}
		// It says so, and can't be allowed any more (410).
		_, err = s.Decide(t.Context(), r.Owner, "per_other", store.Decision{Reply: journal.ReplyAlways})
		storetest.WantCode(t, err, journal.Gone)
		st := storetest.MustState(t, s, r.Session)
		if st.Base != journal.StateStopped || st.Turn.EndedBy != r.Owner || len(st.Admitted) != 1 || st.Admitted[0].ID != queued.ID {
			t.Errorf("the state is %+v", st)
		}
		_ = call
	})
}

// proves PER-3
func TestDecide_RejectWithFeedbackGoesOn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		call := r.MustCall(t, s, journal.EffectEffect)
		storetest.MustAppend(t, s, r.Claim, "", storetest.Ask("per_2", call))
		evs := storetest.MustAppend(t, s, r.Claim, "", storetest.Ask("per_1", call))
		_, err := s.Release(t.Context(), r.Claim, evs[0].Seq)
		must(t, err)
		p, err := s.Decide(t.Context(), r.Owner, "per_1", store.Decision{Reply: journal.ReplyReject, Message: "use make"})
		must(t, err)
		if p.Request.State != journal.RequestRejectedWithFeedback || p.Call.State != journal.CallIsRefused || p.Call.Feedback != "use make" {
			t.Errorf("got %+v, %+v", p.Request, p.Call)
		}
		if p, err = s.Request(t.Context(), r.Owner, "per_2"); err != nil || p.Request.State != journal.RequestCancelled {
			t.Errorf("the call's other request is %s", p.Request.State)
		}
		c := storetest.MustClaim(t, s, r.Session, "w")
		f, _, err := s.Fold(t.Context(), r.Session)
		must(t, err)
		if got := f.Call(call); got.State != journal.CallIsRefused || got.Feedback != "use make" {
			t.Errorf("the agent hears %+v", got)
		}
		end(t, s, c, journal.Completed, true)
	})
}

// proves PER-3 COO-4
func TestDecide_RejectLeavesTheAirToItsExecution(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		running := r.MustDispatched(t, s, journal.EffectEffect)
		asked := r.MustCall(t, s, journal.EffectEffect)
		storetest.MustAppend(t, s, r.Claim, "", storetest.Ask("per_1", asked))
		_, err := s.Decide(t.Context(), r.Owner, "per_1", store.Decision{Reply: journal.ReplyReject})
		must(t, err)
		st := storetest.MustState(t, s, r.Session)
		if !st.TurnOpen() || st.Interrupt == nil || st.Interrupt.By != r.Owner {
			t.Fatalf("got %+v", st)
		}
		_, released, err := s.EndTurn(t.Context(), r.Claim, store.EndTurn{
			Drafts: storetest.Drafts(storetest.Settle(running, journal.CallCancelled)), End: journal.TurnEnded{Outcome: journal.Stopped, Reason: "rejected"}, Actor: journal.Server(),
		})
		if err != nil || !released {
			t.Fatalf("%v, %v", released, err)
		}
	})
}

// proves PER-6
func TestRequest_EndsWithItsAttemptNotWithTime(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		_, id := r.MustAsk(t, s)
		s.Skew(1000 * storetest.Lease) // the person was away
		storetest.MustPrompt(t, s, r.Owner, r.Session, "hello?", journal.Queue)
		p, err := s.Request(t.Context(), r.Owner, id)
		must(t, err)
		if p.Request.State != journal.RequestPending {
			t.Fatalf("the request is %s", p.Request.State)
		}
		if c, err := s.Claim(t.Context(), claimRequest(r.Session, "w")); err != nil || c != nil {
			t.Fatal("a new message answered the request")
		}
		must(t, s.RequestInterrupt(t.Context(), r.Owner, r.Session, journal.InterruptBoundary))
		_, err = s.Decide(t.Context(), r.Owner, id, store.Decision{Reply: journal.ReplyOnce})
		storetest.WantCode(t, err, journal.Gone)
		var je *journal.Error
		if !errors.As(err, &je) || je.Extra["reason"] == "" {
			t.Errorf("no reason is told: %v", err)
		}
	})
}

func TestRequests_Lists(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		var ids []string
		call := r.MustCall(t, s, journal.EffectEffect)
		for range 5 {
			id := store.NewID("per")
			storetest.MustAppend(t, s, r.Claim, "", storetest.Ask(id, call))
			ids = append(ids, id)
		}
		var got []string
		q := store.RequestQuery{State: journal.RequestPending, Session: r.Session, Limit: 2}
		for {
			page, next, err := s.Requests(t.Context(), r.Owner, q)
			must(t, err)
			for _, p := range page {
				got = append(got, p.ID)
			}
			if q.Cursor = next; next == "" {
				break
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(ids) {
			t.Errorf("got %v, want %v", got, ids)
		}
		_, _, err := s.Requests(t.Context(), r.Owner, store.RequestQuery{Cursor: "x"})
		storetest.WantCode(t, err, journal.Invalid)
		if list, _, err := s.Requests(t.Context(), r.Owner, store.RequestQuery{State: journal.RequestRejected, Limit: 9}); err != nil || len(list) != 0 {
			t.Errorf("got %v, %v", list, err)
		}
		n, err := s.NeedsCount(t.Context(), r.Owner)
		must(t, err)
		if n[journal.NeedsDecision] != 1 {
			t.Errorf("needs: %v", n)
		}
	})
}

// A request comes with its call as it was when it was asked, however long, whatever the
// agent says of it afterwards.
//
// proves PER-2
func TestRequest_AsItWasAsked(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w1")
		att := store.NewID("att")
		storetest.MustAppend(t, s, r.Claim, journal.PhaseUncertain, &journal.AttemptPrepared{AttemptID: att, TurnID: r.Turn}, &journal.AttemptDispatched{AttemptID: att})
		input := func(command string) []byte {
			return []byte(`{"title":"x","kind":"execute","input":{"command":"` + command + `"}}`)
		}
		first, asked, later := input("first"), input(strings.Repeat("make nice; ", 10_000)), input(strings.Repeat("rm -rf /home; ", 10_000))
		for name, metadata := range map[string]string{"says of which input it is": `{"ask":7,"input_sha256":"` + journal.Hash(string(asked)) + `"}`, "of an older version": `{"ask":7}`} {
			call, other, ask := store.NewID("call"), store.NewID("call"), store.NewID("per")
			own, beside := r.Propose(call, journal.EffectEffect), r.Propose(other, journal.EffectEffect)
			own.AttemptID, own.Input, own.InputSHA256 = &att, first, journal.Hash(string(first))
			beside.AttemptID, beside.Input, beside.InputSHA256 = &att, later, journal.Hash(string(later))
			request := storetest.Ask(ask, call)
			request.Metadata = []byte(metadata)
			storetest.MustAppend(t, s, r.Claim, "", own, &journal.CallDescribed{CallID: call, Input: asked, InputSHA256: journal.Hash(string(asked))}, beside, request)
			if _, err := s.Decide(t.Context(), r.Owner, ask, store.Decision{Reply: journal.ReplyOnce, Digest: request.Digest}); err != nil {
				t.Fatal(err)
			}
			storetest.MustAppend(t, s, r.Claim, "", &journal.CallContradicted{CallID: call, Input: later, InputSHA256: journal.Hash(string(later)), Late: journal.LateAsked})
			p, err := s.Request(t.Context(), r.Owner, ask)
			must(t, err)
			if p.Asked == nil || string(p.Asked.Input) != string(asked) || p.Asked.InputSHA256 != journal.Hash(string(asked)) {
				t.Errorf("%s: it was asked as %.80v", name, p.Asked)
			}
			if string(p.Call.Input) != string(later) {
				t.Errorf("%s: the call is %.80s now", name, p.Call.Input)
			}
		}
	})
}
