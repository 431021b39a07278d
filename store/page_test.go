package store_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// writes gives the events of a call's output, piece by piece.
func writes(call string, from int64, pieces ...string) []journal.Body {
	out := make([]journal.Body, 0, len(pieces))
	for _, p := range pieces {
		out = append(out, &journal.CallOutput{CallID: call, Stream: "stdout", Offset: from, Text: journal.Text{S: p}})
		from += int64(len(p))
	}
	return out
}

// A window in which a command printed without end still shows what led to it.
func TestSessionPage_ReachesBehindOutput(t *testing.T) {
	// proves RDR-6
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		call := r.MustDispatched(t, s, journal.EffectEffect)
		before := int64(len(storetest.Events(t, s, r.Session)))
		var offset int64
		for range 12 {
			evs := writes(call, offset, strings.Split(strings.Repeat("x|", 9)+"x", "|")...)
			offset += int64(len(evs))
			storetest.MustAppend(t, s, r.Claim, "", evs...)
		}
		p, err := s.SessionPage(t.Context(), r.Owner, r.Session, 0, 50)
		must(t, err)
		if first := p.Events[0].Seq; first != 1 || int64(len(p.Events)) != before+120 {
			t.Errorf("the window holds %d events from #%d on", len(p.Events), first)
		}
		for i := range p.Events {
			if p.Events[i].Seq != int64(i)+1 {
				t.Fatalf("#%d stands at place %d", p.Events[i].Seq, i+1)
			}
			if whole := string(p.Events[i].Data) != "{}"; p.Events[i].Kind != journal.KindCallOutput && !whole {
				t.Errorf("#%d has lost its data", p.Events[i].Seq)
			}
		}
		if got := p.Outputs[call]; got.Total != 120 || len(got.Head) != 120 || len(got.Tail) != 0 {
			t.Errorf("output %d bytes, head %d, tail %d", got.Total, len(got.Head), len(got.Tail))
		}
	})
}

// proves JRN-6
func TestSessionPage_EndsOfAnOutput(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		call := r.MustDispatched(t, s, journal.EffectEffect)
		text := strings.Repeat("0123456é", 12000) // 9 bytes each
		for from := 0; from < len(text); {
			to := min(from+30000, len(text))
			for to < len(text) && !utf8.RuneStart(text[to]) {
				to--
			}
			storetest.MustAppend(t, s, r.Claim, "", writes(call, int64(from), text[from:to])...)
			from = to
		}
		p, err := s.SessionPage(t.Context(), r.Owner, r.Session, 0, 50)
		must(t, err)
		got := p.Outputs[call]
		if got.Total != int64(len(text)) || !strings.HasPrefix(text, string(got.Head)) || !strings.HasSuffix(text, string(got.Tail)) {
			t.Fatalf("%d bytes of %d, head %d, tail %d", got.Total, len(text), len(got.Head), len(got.Tail))
		}
		if len(got.Head) < 8000 || len(got.Tail) < 24000 || len(got.Head)+len(got.Tail) > 33<<10 {
			t.Errorf("head %d, tail %d bytes", len(got.Head), len(got.Tail))
		}
		if !utf8.Valid(got.Head) || !utf8.Valid(got.Tail) || bytes.ContainsRune(got.Tail, utf8.RuneError) {
			t.Error("a character was cut")
		}
	})
}

// Who is asked reads all of what would be run, however long it is.
//
// proves PER-1
func TestRequest_WholeInput(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		call, request := store.NewID("call"), store.NewID("per")
		intent := r.Propose(call, journal.EffectEffect)
		long := strings.Repeat("echo one more line\n", 4000)
		input, err := journal.Encode(map[string]string{"command": long})
		must(t, err)
		intent.Input = input
		storetest.MustAppend(t, s, r.Claim, "", intent, storetest.Ask(request, call))
		p, err := s.SessionPage(t.Context(), r.Owner, r.Session, 0, 50)
		must(t, err)
		one, err := s.Request(t.Context(), r.Owner, request)
		must(t, err)
		alone, err := s.Call(t.Context(), r.Owner, call)
		must(t, err)
		for where, c := range map[string]*journal.Call{"the session's page": p.Calls[call], "the request's page": one.Call, "the call's page": alone} {
			if !bytes.Equal(c.Input, input) {
				t.Errorf("%s has %d bytes of %d: %.60s", where, len(c.Input), len(input), c.Input)
			}
		}
	})
}

// After a second crash in one turn the line of the session's life still has what
// each lost execution said last, and the recorded end of what had ended by itself:
// without them the time between two recoveries would count as unknown.
//
// proves REC-10 CAL-5
func TestSessionPage_SpansHoldTheLastWords(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		well, never := r.MustSpooled(t, s, journal.EffectEffect), r.MustSpooled(t, s, journal.EffectEffect)
		r.MustAdopt(t, s, well, never)
		r.Claim = storetest.MustClaim(t, s, r.Session, "w")
		must(t, readOn(s, t, r.Claim, well, 1, 2, printed(well, "on", 0)))
		// What a person sends and what is read from the spool when all is over are no words of the execution.
		storetest.MustPrompt(t, s, r.Owner, r.Session, "are you there?", journal.Queue)
		must(t, s.ExpireClaim(t.Context(), r.Claim))
		lost := storetest.MustLoad(t, s, r.Claim)
		late := []journal.Draft{{ID: store.NewID("evt"), Actor: journal.Server(), Body: printed(well, "late", 2)}}
		must(t, s.RecoverOutput(t.Context(), lost, late, store.Spool{CallID: well, N: 1, StateFolderID: lost.StateFolderID, ReadTo: 6}))
		_, err := s.Recover(t.Context(), store.Recovery{Claim: lost, Found: map[string]store.Found{
			well: {Settled: &journal.CallSettled{State: journal.CallSucceeded, StartedAt: 1000, EndedAt: 2000}}, never: {Settled: storetest.Settle("", journal.CallCancelled)},
		}})
		must(t, err)

		p, err := s.SessionPage(t.Context(), r.Owner, r.Session, 0, 1)
		must(t, err)
		want := []journal.Kind{journal.KindTurnStarted, journal.KindCallDispatched, journal.KindStepRecovered, journal.KindCallOutput, journal.KindStepRecovered, journal.KindCallSettled, journal.KindCallSettled}
		if got := storetest.Kinds(p.Spans); !slices.Equal(got, want) {
			t.Fatalf("the spans are drawn from %v, want %v", got, want)
		}
		all := storetest.Events(t, s, r.Session)
		for _, ev := range p.Spans {
			whole := ev.Kind != journal.KindCallDispatched && ev.Kind != journal.KindCallOutput
			if of := all[ev.Seq-1]; of.ID != ev.ID || of.Time != ev.Time || whole && string(of.Data) != string(ev.Data) {
				t.Errorf("%s #%d is %+v, want %+v", ev.Kind, ev.Seq, ev, of)
			}
		}
		if b := storetest.Body[*journal.CallOutput](t, all[p.Spans[3].Seq-1:p.Spans[3].Seq]); b.Text.S != "on" {
			t.Errorf("the last word is the output %q", b.Text.S)
		}
	})
}
