package store_test

import (
	"slices"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// What an agent hasn't been told outlives the turn that it came in, whatever that ended
// with, until a message that has it has reached the agent, as far as is known: not by
// one that has failed, or is sent again. Of the prompts those are told that it had room
// for, as its cut-off says.
//
// proves CAL-6 ATT-6 PER-2 PRO-2
func TestStore_News(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		sendsUpTo := func(cutoff int64, id string, more ...journal.Body) {
			t.Helper()
			storetest.MustAppend(t, s, r.Claim, journal.PhaseUncertain, append([]journal.Body{&journal.AttemptPrepared{AttemptID: id, TurnID: r.Turn, CutoffSeq: cutoff}, &journal.AttemptDispatched{AttemptID: id}}, more...)...)
		}
		sends := func(id string, more ...journal.Body) {
			t.Helper()
			sendsUpTo(int64(len(storetest.Events(t, s, r.Session))), id, more...)
		}
		loses := func(attempt, call string, verdict journal.AttemptVerdict) {
			t.Helper()
			propose := r.Propose(call, journal.EffectEffect)
			propose.AttemptID = &attempt
			storetest.MustAppend(t, s, r.Claim, "", propose, storetest.Dispatch(call, 1))
			storetest.MustLose(t, s, r.Claim)
			_, err := s.ResolveCall(t.Context(), r.Owner, call, store.CallResolution{Outcome: journal.CannotTell, Then: journal.ThenContinue})
			must(t, err)
			_, err = s.ResolveAttempt(t.Context(), r.Owner, attempt, store.AttemptResolution{Outcome: verdict, Then: journal.ThenContinue})
			must(t, err)
			r.Claim = storetest.MustClaim(t, s, r.Session, "w")
		}
		rejects := func(message string) string {
			t.Helper()
			call, request := r.MustAsk(t, s)
			_, err := s.Decide(t.Context(), r.Owner, request, store.Decision{Reply: journal.ReplyReject, Message: message})
			must(t, err)
			r.Claim = storetest.MustClaim(t, s, r.Session, "w")
			return call
		}
		next := func(text string) {
			t.Helper()
			end(t, s, r.Claim, journal.Failed, true)
			storetest.MustPrompt(t, s, r.Owner, r.Session, text, journal.Queue)
			r.Claim = storetest.MustClaim(t, s, r.Session, "w")
			r.Turn = storetest.MustPromote(t, s, r.Claim)
		}
		ids := func(calls []*journal.Call) (out []string) {
			for _, c := range calls {
				out = append(out, c.ID)
			}
			return out
		}
		want := func(verdicts, rejected, older []string) {
			t.Helper()
			n, err := s.News(t.Context(), r.Session)
			must(t, err)
			var texts []string
			for _, p := range n.Older {
				texts = append(texts, p.Text)
			}
			if !slices.Equal(ids(n.Verdicts), verdicts) || !slices.Equal(ids(n.Rejected), rejected) || !slices.Equal(texts, older) {
				t.Errorf("verdicts %v, rejected %v and %q are to be told, want %v, %v and %q", ids(n.Verdicts), ids(n.Rejected), texts, verdicts, rejected, older)
			}
		}
		want(nil, nil, nil) // the open turn's own is no older one
		next("two")
		want(nil, nil, []string{"do it"})
		sends("att_1")
		want(nil, nil, nil)
		loses("att_1", "call_1", journal.AttemptAbandon)
		want([]string{"call_1"}, nil, nil)
		next("three")
		sends("att_2", &journal.AttemptFailed{AttemptID: "att_2"})
		want([]string{"call_1"}, nil, nil)
		no := rejects("not that")
		next("four")
		want([]string{"call_1"}, []string{no}, []string{"three"})
		sends("att_3")
		want(nil, nil, nil)
		loses("att_3", "call_3", journal.AttemptRetry)
		next("five")
		want([]string{"call_1", "call_3"}, []string{no}, []string{"three", "four"})
		sends("att_4", &journal.AttemptSettled{AttemptID: "att_4", Outcome: "end_turn"})
		want(nil, nil, nil)
		next("six")
		want(nil, nil, nil)
		six := int64(len(storetest.Events(t, s, r.Session)))
		no = rejects("nor that")
		next("seven")
		next("eight")
		want(nil, []string{no}, []string{"six", "seven"})
		sendsUpTo(six, "att_5", &journal.AttemptSettled{AttemptID: "att_5", Outcome: "end_turn"}) // it had no room for more
		want(nil, nil, []string{"seven"})
		sends("att_6", &journal.AttemptFailed{AttemptID: "att_6"})
		want(nil, nil, []string{"seven"})
		sends("att_7", &journal.AttemptSettled{AttemptID: "att_7", Outcome: "end_turn"})
		want(nil, nil, nil)
		storetest.CheckInvariants(t, s)
	})
}

// Of a turn that was stopped for a message, the last word on the last message that was
// lost decides whether it goes on, not one from before.
//
// proves ATT-6 PRO-6
func TestResolveAttempt_TheLastWordCounts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for last, wantTurns := range map[journal.AttemptVerdict]int{journal.AttemptAbandon: 1, journal.AttemptRetry: 2} {
			r := storetest.MustRun(t, s, "w")
			loses := func(id string, verdict journal.AttemptVerdict) {
				t.Helper()
				storetest.MustLose(t, s, r.Claim)
				_, err := s.ResolveAttempt(t.Context(), r.Owner, id, store.AttemptResolution{Outcome: verdict, Then: journal.ThenContinue})
				must(t, err)
			}
			sends := func(id string) string {
				t.Helper()
				id += string(last)
				storetest.MustAppend(t, s, r.Claim, journal.PhaseUncertain, &journal.AttemptPrepared{AttemptID: id, TurnID: r.Turn}, &journal.AttemptDispatched{AttemptID: id})
				return id
			}
			loses(sends("att_1"), journal.AttemptRetry)
			r.Claim = storetest.MustClaim(t, s, r.Session, "w")
			id := sends("att_2")
			_, err := s.SubmitPrompt(t.Context(), r.Owner, r.Session, "key-"+string(last), store.PromptInput{Text: "this", Delivery: journal.Steer, Stops: true})
			must(t, err)
			loses(id, last)
			evs := storetest.Events(t, s, r.Session)
			if n := storetest.CountKind(evs, journal.KindTurnStarted); n != wantTurns || storetest.CountKind(evs, journal.KindContinuation) != wantTurns-1 {
				t.Errorf("%s: %d turns, want %d: %v", last, n, wantTurns, storetest.Kinds(evs))
			}
		}
	})
}
