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

// However much a command printed and an agent wrote, a window has its entries, and
// no piece.
func TestSessionPage_PiecesFillNoWindow(t *testing.T) {
	// proves RDR-6
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		call := r.MustDispatched(t, s, journal.EffectEffect)
		before := storetest.Events(t, s, r.Session)
		var offset int64
		for range 12 {
			evs := writes(call, offset, strings.Split(strings.Repeat("x|", 9)+"x", "|")...)
			offset += int64(len(evs))
			storetest.MustAppend(t, s, r.Claim, "", evs...)
		}
		for range 20 {
			storetest.MustAppend(t, s, r.Claim, "", said("msg_whole", journal.PartText, slices.Repeat([]string{"word "}, 100)...)...)
		}
		whole := strings.Repeat("word ", 2000)
		storetest.MustAppend(t, s, r.Claim, "", &journal.MessageCompleted{MessageID: "msg_whole", Role: "agent", Part: journal.PartText, Text: journal.T(whole)})
		head := int64(len(storetest.Events(t, s, r.Session)))
		p, err := s.SessionPage(t.Context(), r.Owner, r.Session, 0, 50)
		must(t, err)
		want := append(storetest.Kinds(before), journal.KindMessageCompleted)
		if got := storetest.Kinds(p.Events); !slices.Equal(got, want) || p.Through != head || len(p.Writing) != 0 {
			t.Errorf("the window through #%d of %d holds %v, and %v are being written; want %v", p.Through, head, got, p.Writing, want)
		}
		if got := p.Outputs[call]; got.Total != 120 || len(got.Head) != 120 || len(got.Tail) != 0 {
			t.Errorf("output %d bytes, head %d, tail %d", got.Total, len(got.Head), len(got.Tail))
		}
		p, err = s.SessionPage(t.Context(), r.Owner, r.Session, head, 2)
		must(t, err)
		if got := storetest.Kinds(p.Events); !slices.Equal(got, want[len(want)-3:len(want)-1]) || p.Through != head-1 {
			t.Errorf("the window before the last entry holds %v through #%d", got, p.Through)
		}
	})
}

// said gives the pieces of a message.
func said(id string, part journal.Part, pieces ...string) []journal.Body {
	out := make([]journal.Body, 0, len(pieces))
	for _, p := range pieces {
		out = append(out, &journal.MessageDelta{MessageID: id, Role: "agent", Part: part, Text: journal.T(p)})
	}
	return out
}

// A message that is being written is one entry, where it began, with what was
// written up to the head; so is one that was cut off, which says so.
//
// proves RDR-4 RDR-6 ATT-4
func TestSessionPage_UnfinishedMessages(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		prepared := &journal.AttemptPrepared{AttemptID: store.NewID("att"), TurnID: r.Turn}
		storetest.MustAppend(t, s, r.Claim, journal.PhaseUncertain, prepared, &journal.AttemptDispatched{AttemptID: prepared.AttemptID})
		storetest.MustAppend(t, s, r.Claim, "", said("msg_lost", journal.PartText, "cut ", "of")...)
		storetest.MustAppend(t, s, r.Claim, "", said("msg_thought", journal.PartReasoning, "hm")...)
		storetest.MustAppend(t, s, r.Claim, "", said("msg_lost", journal.PartText, "f")...)
		storetest.MustAppend(t, s, r.Claim, journal.PhaseSafe, &journal.AttemptUnknown{AttemptID: prepared.AttemptID})
		long := strings.Repeat("ä", store.MaxWritten)
		storetest.MustAppend(t, s, r.Claim, "", said("msg_now", journal.PartText, long[:len(long)/2], long[len(long)/2:], "end")...)
		head := int64(len(storetest.Events(t, s, r.Session)))
		for _, limit := range []int{50, 4} {
			p, err := s.SessionPage(t.Context(), r.Owner, r.Session, 0, limit)
			must(t, err)
			if n := len(p.Events); n != min(limit, int(head)-4) || p.Events[n-1].Seq != head-2 || p.Events[n-2].Kind != journal.KindAttemptUnknown || p.Events[n-3].Kind != journal.KindMessageDelta {
				t.Fatalf("a window of %d holds %v", limit, storetest.Kinds(p.Events))
			}
			if len(p.Writing) != 3 {
				t.Fatalf("%d messages are unfinished", len(p.Writing))
			}
			now, thought, lost := p.Writing[0], p.Writing[1], p.Writing[2]
			if lost.Text != "cut off" || !lost.CutOff || lost.Before || lost.Seq != p.Events[len(p.Events)-4].Seq {
				t.Errorf("the one that was cut off is %+v", lost)
			}
			if thought.Text != "hm" || !thought.CutOff || thought.Part != journal.PartReasoning {
				t.Errorf("the thought is %+v", thought)
			}
			if now.CutOff || !now.Before || now.Seq != head-2 || now.Through != head || len(now.Text) > store.MaxWritten || !strings.HasSuffix(now.Text, "äend") || !utf8.ValidString(now.Text) {
				t.Errorf("the one that is being written is %d bytes, %.20q, %+v", len(now.Text), now.Text, now.Seq)
			}
		}
		p, err := s.SessionPage(t.Context(), r.Owner, r.Session, 0, 1)
		must(t, err)
		if len(p.Events) != 1 || len(p.Writing) != 1 || p.Events[0].Seq != p.Writing[0].Seq {
			t.Errorf("a window of one holds %v, %+v", storetest.Kinds(p.Events), p.Writing)
		}
		// Who has what came before is told of each piece, and where its message began.
		p, err = s.SessionAfter(t.Context(), r.Owner, r.Session, head-2, 50)
		must(t, err)
		if got := storetest.Kinds(p.Events); len(got) != 2 || p.Through != head || len(p.Writing) != 3 || p.Writing[0].Seq != head-2 || p.Writing[0].Text != "" || !p.Writing[2].CutOff {
			t.Errorf("after #%d come %v, %+v", head-2, got, p.Writing)
		}
	})
}

// A message that is so long that it lies in a blob has its text all the same.
//
// proves JRN-6
func TestSessionPage_TextOfALongMessage(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		long := strings.Repeat("0123456789", 5000)
		storetest.MustAppend(t, s, r.Claim, "", &journal.MessageCompleted{MessageID: "msg_1", Role: "agent", Part: journal.PartText, Text: journal.T(long)})
		p, err := s.SessionPage(t.Context(), r.Owner, r.Session, 0, 50)
		must(t, err)
		if got := p.Texts[store.MessageKey("msg_1", journal.PartText)]; got != long {
			t.Errorf("its text is %.60q, %d bytes", got, len(got))
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
