package store_test

import (
	"crypto/rand"
	"slices"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// asksMore is a run whose agent asks for two calls at once, and one of whose others runs.
type asksMore struct {
	*agentRun
	other string // the second request
}

func mustAskMore(t testing.TB, s *store.Store) asksMore {
	t.Helper()
	r := asksMore{mustAgentRun(t, s), store.NewID("per")}
	storetest.MustAppend(t, s, r.Claim, "", storetest.Ask(r.other, r.own(t, s, journal.EffectEffect)))
	return r
}

// rests settles what runs, so that the agent does nothing but wait for a person.
func (r asksMore) rests(t testing.TB, s *store.Store) {
	t.Helper()
	storetest.MustAppend(t, s, r.Claim, "", storetest.Settle(r.runs, journal.CallSucceeded), storetest.Settle(r.reads, journal.CallSucceeded))
}

// A turn that is stopped takes its requests with it, in the transaction of the stop, also
// where something else carries the stop out: a later answer is told that it is too late.
//
// proves COO-4 PER-3 PER-6
func TestStop_CancelsWhatIsAsked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stop   func(t testing.TB, s *store.Store, r asksMore) error
		reason string
		left   int
	}{
		"now": {reason: journal.ReasonInterrupted, stop: func(t testing.TB, s *store.Store, r asksMore) error {
			return s.RequestInterrupt(t.Context(), r.Owner, r.Session, journal.InterruptNow)
		}},
		"for a message": {reason: journal.ReasonInterrupted, stop: func(t testing.TB, s *store.Store, r asksMore) error {
			_, err := s.SubmitPrompt(t.Context(), r.Owner, r.Session, rand.Text(), store.PromptInput{Text: "instead", Delivery: journal.Steer, Stops: true})
			return err
		}},
		"a denial": {reason: journal.ReasonRejected, stop: func(t testing.TB, s *store.Store, r asksMore) error {
			id := store.NewID("per")
			storetest.MustAppend(t, s, r.Claim, "", storetest.Ask(id, r.own(t, s, journal.EffectEffect)))
			_, err := s.Decide(t.Context(), r.Owner, id, store.Decision{Reply: journal.ReplyReject})
			return err
		}},
		"now, of what is adopted": {reason: journal.ReasonInterrupted, stop: func(t testing.TB, s *store.Store, r asksMore) error {
			must(t, s.ExpireClaim(t.Context(), r.Claim))
			_, err := s.Recover(t.Context(), store.Recovery{Claim: storetest.MustLoad(t, s, r.Claim), Agent: true})
			must(t, err)
			return s.RequestInterrupt(t.Context(), r.Owner, r.Session, journal.InterruptNow)
		}},
		"at the next safe point, while nothing else runs": {reason: journal.ReasonInterrupted, stop: func(t testing.TB, s *store.Store, r asksMore) error {
			r.rests(t, s)
			return s.RequestInterrupt(t.Context(), r.Owner, r.Session, journal.InterruptBoundary)
		}},
		"at the next safe point, once nothing else runs": {reason: journal.ReasonInterrupted, stop: func(t testing.TB, s *store.Store, r asksMore) error {
			must(t, s.RequestInterrupt(t.Context(), r.Owner, r.Session, journal.InterruptBoundary))
			if st := storetest.MustState(t, s, r.Session); len(st.Pending) != 2 || st.Needs() != journal.NeedsDecision || st.Interrupt.AtOnce() {
				t.Errorf("while another call runs: %+v, needs %s", st, st.Needs())
			}
			r.rests(t, s)
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				r := mustAskMore(t, s)
				must(t, c.stop(t, s, r))
				st := storetest.MustState(t, s, r.Session)
				if len(st.Pending) != 0 || !st.TurnOpen() || !st.Interrupt.AtOnce() || st.Needs() != journal.NeedsNone {
					t.Errorf("%d wait, needs %s: %+v", len(st.Pending), st.Needs(), st.Interrupt)
				}
				for _, id := range []string{r.request, r.other} {
					_, err := s.Decide(t.Context(), r.Owner, id, store.Decision{Reply: journal.ReplyOnce})
					storetest.WantCode(t, err, journal.Gone)
					p, err := s.Request(t.Context(), r.Owner, id)
					must(t, err)
					if p.Request.State != journal.RequestCancelled || p.Request.Reason != c.reason || p.Call.State != journal.CallIsWaiting {
						t.Errorf("the request: %+v, its call %s", p.Request, p.Call.State)
					}
				}
				if hit, err := s.Interrupted(t.Context(), []string{r.Session}); err != nil || !slices.Contains(hit, r.Session) {
					t.Errorf("its worker isn't told: %v, %v", hit, err)
				}
			})
		})
	}
}

// A stop at the safe point that has been reached keeps what the person asked for, and
// nothing begins any more; nor is anything asked that nobody could answer.
//
// proves COO-4 PER-6 CAL-1
func TestStop_AtItsSafePointNothingBegins(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := mustAskMore(t, s)
		r.rests(t, s)
		must(t, s.RequestInterrupt(t.Context(), r.Owner, r.Session, journal.InterruptBoundary))
		if i := storetest.MustState(t, s, r.Session).Interrupt; i == nil || i.Mode != journal.InterruptBoundary || i.By != r.Owner {
			t.Errorf("%+v", i)
		}
		call := r.own(t, s, journal.EffectEffect)
		_, err := s.Append(t.Context(), r.Claim, store.Append{Drafts: storetest.Drafts(storetest.Dispatch(call, 1))})
		storetest.WantSlug(t, err, "interrupted")
		storetest.MustAppend(t, s, r.Claim, "", storetest.Ask("per_late", call))
		_, err = s.Decide(t.Context(), r.Owner, "per_late", store.Decision{Reply: journal.ReplyOnce})
		storetest.WantCode(t, err, journal.Gone)
	})
}

// A worker that gives up a request which somebody has answered meanwhile, or which is
// cancelled already, loses: it writes no event of that, and all else that it has to say
// stands. So also when the answer to its commit was lost.
//
// proves CAL-8 PER-2 COO-10 JRN-5
func TestAppend_GivesUpNoRequestThatIsAnswered(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := mustAskMore(t, s)
		_, err := s.Decide(t.Context(), r.Owner, r.request, store.Decision{Reply: journal.ReplyOnce})
		must(t, err)
		gives := func(n int64, bodies ...journal.Body) store.Append {
			bodies = append([]journal.Body{&journal.PermissionCancelled{ID: r.request, Reason: "over"}}, bodies...)
			return store.Append{Drafts: storetest.Drafts(bodies...), Agent: &store.AgentIO{ProcessID: r.process, Sent: n, Frames: [][]byte{[]byte("no\n")}}}
		}
		for i, a := range []store.Append{
			gives(2, &journal.PermissionCancelled{ID: r.other, Reason: "over"}, storetest.Settle(r.waits, journal.CallCancelled)),
			gives(3),
		} {
			want := len(a.Drafts) - 1
			for range 2 {
				evs, err := s.Append(t.Context(), r.Claim, a)
				must(t, err)
				if len(evs) != want {
					t.Errorf("%d: %d events, want %d", i, len(evs), want)
				}
				a.Retried = true
			}
		}
		p, err := s.Request(t.Context(), r.Owner, r.request)
		must(t, err)
		if p.Request.State != journal.RequestApprovedOnce || p.Call.State != journal.CallCancelled || !p.Call.NeverRan() {
			t.Errorf("%+v; its call %+v", p.Request, p.Call)
		}
		evs := storetest.Events(t, s, r.Session)
		if n := storetest.CountKind(evs, journal.KindPermissionCancelled); n != 1 || evs[len(evs)-1].Seq != int64(len(evs)) {
			t.Errorf("%d were cancelled, of %d events the last is %d", n, len(evs), evs[len(evs)-1].Seq)
		}
		if ps, err := s.AgentProcess(t.Context(), r.process); err != nil || ps.Sent != 4 {
			t.Errorf("it was told %d, %v", ps.Sent, err)
		}
		report, err := s.Verify(t.Context(), store.VerifyOptions{Session: r.Session})
		must(t, err)
		if !report.OK() {
			t.Errorf("%+v", report)
		}
	})
}
