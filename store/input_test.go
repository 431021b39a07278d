package store_test

import (
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// longInput is the input of a call of an agent's own that lies in a blob.
func longInput(title, text string) []byte {
	return []byte(`{"title":"` + title + `","kind":"edit","input":{"content":"` + strings.Repeat(text, 50_000/len(text)) + `"}}`)
}

// A long input is in the journal whichever event has it, also where a secret was taken
// out of it: verify finds none left over, and misses each that is gone.
//
// proves JRN-4 JRN-6 JRN-8
func TestVerify_LongInputs(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.OpenUnchecked(t, func(o *store.Options) { o.Secrets = []string{"a secret of many bytes"} })
		raw := db.SQL(t)
		for name, text := range map[string]string{"plain": "x", "masked": "a secret of many bytes"} {
			for _, kind := range []journal.Kind{journal.KindCallProposed, journal.KindCallDescribed, journal.KindCallContradicted} {
				r := storetest.MustRun(t, s, "w")
				call := r.Propose(store.NewID("call"), journal.EffectEffect)
				in := longInput("Write", text)
				bodies := []journal.Body{call}
				switch d := (&journal.CallDescribed{CallID: call.CallID, Input: in, InputSHA256: journal.Hash(string(in)), Late: journal.LateAsked}); kind {
				case journal.KindCallDescribed:
					bodies = append(bodies, d)
				case journal.KindCallContradicted:
					bodies = append(bodies, (*journal.CallContradicted)(d))
				default:
					call.Input, call.InputSHA256 = in, d.InputSHA256
				}
				storetest.MustAppend(t, s, r.Claim, "", bodies...)
				for _, gone := range []bool{false, true} {
					if gone {
						db.MustExec(t, raw, "DELETE FROM blob WHERE session_id = ?", r.Session)
					}
					report, err := s.Verify(t.Context(), store.VerifyOptions{Session: r.Session})
					must(t, err)
					if faults := report.Check(store.CheckBlobs).Faults; report.OK() == gone || gone != strings.Contains(strings.Join(faults, "\n"), "is missing") {
						t.Errorf("%s in %s, gone %v: %+v", name, kind, gone, report.Checks)
					}
				}
			}
		}
	})
}

// Whoever tells of a call names it as its agent does, however long its input is; what is
// judged is all of it, and one whose blob is gone is none that says nothing.
//
// proves JRN-6 CAL-6 PER-2
func TestStore_LongInputsAreNamed(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.OpenUnchecked(t)
		r := storetest.MustRun(t, s, "w")
		att := store.NewID("att")
		storetest.MustAppend(t, s, r.Claim, journal.PhaseUncertain, &journal.AttemptPrepared{AttemptID: att, TurnID: r.Turn}, &journal.AttemptDispatched{AttemptID: att})
		call := r.Propose(store.NewID("call"), journal.EffectEffect)
		call.AttemptID, call.Tool, call.Input = &att, "edit", longInput("Write big", "x")
		call.InputSHA256 = journal.Hash(string(call.Input))
		storetest.MustAppend(t, s, r.Claim, "", call, storetest.Dispatch(call.CallID, 1))
		calls, err := s.Calls(t.Context(), r.Owner, r.Session, 0)
		must(t, err)
		if _, elsewhere := calls[0].Elsewhere(); !elsewhere || calls[0].Title() != "edit" {
			t.Fatalf("the list has %+v", calls[0])
		}
		must(t, s.WholeInput(t.Context(), calls[0]))
		if string(calls[0].Input) != string(call.Input) {
			t.Errorf("the whole input has %d bytes, want %d", len(calls[0].Input), len(call.Input))
		}
		storetest.MustLose(t, s, r.Claim)
		_, err = s.ResolveCall(t.Context(), r.Owner, call.CallID, store.CallResolution{Outcome: journal.DidNotHappen, Evidence: "looked", Then: journal.ThenStay})
		must(t, err)
		news, err := s.News(t.Context(), r.Session)
		must(t, err)
		if len(news.Verdicts) != 1 || news.Verdicts[0].Title() != "Write big" {
			t.Errorf("the agent is told of %+v", news.Verdicts)
		}
		text, err := s.Summary(t.Context(), r.Session, 1<<40)
		must(t, err)
		if !strings.Contains(text, `edit "Write big"`) {
			t.Errorf("the summary says %s", text)
		}
		db.MustExec(t, db.SQL(t), "DELETE FROM blob WHERE session_id = ?", r.Session)
		lost, err := s.Call(t.Context(), r.Owner, call.CallID)
		must(t, err)
		if err := s.WholeInput(t.Context(), lost); err == nil || !strings.Contains(err.Error(), "missing") {
			t.Errorf("of one that is gone: %v", err)
		}
	})
}
