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

// proves RDR-2 JRN-1 JRN-2
func TestEventsAfter_EveryCursor(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		for range 20 {
			storetest.MustAppend(t, s, r.Claim, "", &journal.PlanUpdated{}, &journal.PlanUpdated{})
		}
		all := storetest.Events(t, s, r.Session)
		for after := range int64(len(all) + 1) {
			for _, limit := range []int{1, 7, 1000} {
				p, err := s.EventsAfter(t.Context(), r.Owner, r.Session, after, limit)
				must(t, err)
				want := all[after:min(after+int64(limit), int64(len(all)))]
				if len(p.Events) != len(want) || p.Head != int64(len(all)) {
					t.Fatalf("after %d: %d events up to %d, want %d", after, len(p.Events), p.Head, len(want))
				}
				for i, ev := range p.Events {
					if ev.Seq != after+int64(i)+1 || ev.ID != want[i].ID || string(ev.Data) != string(want[i].Data) {
						t.Fatalf("after %d came %+v", after, ev)
					}
				}
			}
		}
		for _, bad := range []int64{-1, int64(len(all)) + 1} {
			_, err := s.EventsAfter(t.Context(), r.Owner, r.Session, bad, 10)
			storetest.WantSlug(t, err, "cursor-beyond-head")
			storetest.WantCode(t, err, journal.Invalid)
		}
		p, err := s.EventsBefore(t.Context(), r.Owner, r.Session, 0, 5)
		must(t, err)
		if len(p.Events) != 5 || p.Events[4].Seq != p.Head {
			t.Errorf("the newest window is %v", storetest.Kinds(p.Events))
		}
		p, err = s.EventsBefore(t.Context(), r.Owner, r.Session, p.Events[0].Seq, 3)
		must(t, err)
		if len(p.Events) != 3 || p.Events[2].Seq != p.Head-5 {
			t.Errorf("the window before it ends at #%d", p.Events[2].Seq)
		}
		missed, err := s.Missed(t.Context(), r.Session, 2, 6)
		must(t, err)
		if len(missed) != 3 || missed[0].Seq != 3 {
			t.Errorf("missed %v", missed)
		}
		if missed, err = s.Missed(t.Context(), r.Session, 6, 6); err != nil || len(missed) != 0 {
			t.Errorf("missed %v, %v", missed, err)
		}
		ev := all[len(all)-1]
		if ev.Actor != journal.Agent() || ev.ExecutionID != r.Claim.ExecutionID || ev.Version != 1 || ev.Time == 0 || ev.SessionID != r.Session {
			t.Errorf("an event of the run is %+v", ev)
		}
		if all[1].Actor != journal.User(r.Owner) || all[1].ExecutionID != "" {
			t.Errorf("an event of a person is %+v", all[1])
		}
	})
}

// proves JRN-2
func TestEventsAfter_NoGapWhileWritten(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		a, b := db.Open(t), db.Open(t)
		owner := storetest.MustUser(t, a).ID
		session := storetest.MustSession(t, a, owner).ID
		const writers, each = 4, 12
		done := make(chan struct{})
		read := make(chan error, 1)
		go func() { // a reader never sees N+1 before N
			var last int64
			for {
				p, err := b.EventsAfter(t.Context(), owner, session, last, 1000)
				for _, ev := range p.Events {
					if ev.Seq != last+1 && err == nil {
						err = fmt.Errorf("#%d came after #%d", ev.Seq, last)
					}
					last = ev.Seq
				}
				if err != nil || last == writers*each+1 {
					read <- err
					return
				}
				select {
				case <-done:
					done = nil // one more pass
				default:
				}
			}
		}()
		noErrors(t, together(writers, func(i int) error {
			for n := range each {
				if _, err := []*store.Store{a, b}[i%2].SubmitPrompt(t.Context(), owner, session, fmt.Sprintf("%d-%d", i, n), queue("x")); err != nil {
					return err
				}
			}
			return nil
		}))
		close(done)
		must(t, <-read)
	})
}

// proves JRN-7
func TestEvents_UnknownKindsAreOpaque(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		raw := db.SQL(t)
		r := storetest.MustRun(t, s, "w")
		for _, ev := range []journal.Event{{Kind: "weather.changed", Version: 1, Data: []byte(`{"sky":"blue"}`)}, {Kind: journal.KindPlanUpdated, Version: 2, Data: []byte(`{"plan":7}`)}} {
			ev.ID, ev.SessionID, ev.Actor = store.NewID("evt"), r.Session, journal.Server()
			ev.Seq = db.Count(t, raw, "SELECT next_seq + 1 FROM session WHERE id = ?", r.Session)
			ev.Time = db.Count(t, raw, "SELECT updated_at FROM session WHERE id = ?", r.Session)
			db.MustExec(t, raw, "INSERT INTO event (session_id, seq, id, kind, version, time, actor_type, data, checksum) VALUES (?, ?, ?, ?, ?, ?, 'server', ?, ?)",
				ev.SessionID, ev.Seq, ev.ID, string(ev.Kind), ev.Version, ev.Time, string(ev.Data), store.Checksum(&ev))
			db.MustExec(t, raw, "UPDATE session SET next_seq = next_seq + 1 WHERE id = ?", r.Session)
		}
		p, err := s.SessionPage(t.Context(), r.Owner, r.Session, 0, 50)
		must(t, err)
		for _, ev := range p.Events[len(p.Events)-2:] {
			body, err := ev.Decode()
			must(t, err)
			if o, ok := body.(*journal.Opaque); !ok || o.Kind() != ev.Kind || string(o.Raw) != string(ev.Data) {
				t.Errorf("got %+v", body)
			}
		}
		if _, _, err := s.Fold(t.Context(), r.Session); err != nil {
			t.Errorf("fold: %v", err)
		}
		end(t, s, r.Claim, journal.Completed, true) // and the run goes on over them
	})
}

// proves JRN-6
func TestCallOutput(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		id := r.MustDispatched(t, s, journal.EffectEffect)
		long := strings.Repeat("ä", 30_000) // a blob
		pieces := []string{"one\n", long, "two\n", "", "three\n"}
		var at int64
		for i, p := range pieces {
			o := &journal.CallOutput{CallID: id, Stream: []string{"stdout", "stderr"}[i%2], Offset: at, Text: journal.T(p)}
			if i == 4 { // its middle was lost
				o.Offset += 1000
				o.Dropped = 1000
				at += 1000
			}
			storetest.MustAppend(t, s, r.Claim, "", o)
			at += int64(len(p))
		}
		whole := "one\n" + long + "two\nthree\n"
		var got strings.Builder
		for offset := int64(0); ; {
			out, err := s.CallOutput(t.Context(), r.Owner, id, offset, 7001)
			must(t, err)
			if out.Total != at {
				t.Fatalf("total %d, want %d", out.Total, at)
			}
			if len(out.Data) == 0 {
				break
			}
			got.Write(out.Data)
			offset += int64(len(out.Data))
			if offset == int64(len("one\n"+long+"two\n")) {
				offset += 1000
			}
		}
		if got.String() != whole {
			t.Errorf("%d bytes came back, want %d", got.Len(), len(whole))
		}
		// Unknown: the count and the end of the output stay, cut between characters.
		storetest.MustAppend(t, s, r.Claim, "", &journal.CallOutput{CallID: id, Stream: "stdout", Offset: at, Text: journal.T(strings.Repeat("ä", 1500))})
		storetest.MustLose(t, s, r.Claim)
		c, err := s.Call(t.Context(), r.Owner, id)
		must(t, err)
		if c.OutputBytes != at+3000 || c.DroppedBytes != 1000 || strings.ContainsRune(c.Evidence[0].Text, '\uFFFD') || !strings.HasSuffix(c.Evidence[0].Text, "ää") {
			t.Errorf("%d bytes, %d dropped, evidence %.80q", c.OutputBytes, c.DroppedBytes, c.Evidence[0].Text)
		}
	})
}

// The pieces of a message are written once, as events; its row is written when it
// begins and when it is whole, however many pieces lie between.
// proves JRN-5
func TestAppend_MessageIsWrittenWhenItIsWhole(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		raw := db.SQL(t)
		r := storetest.MustRun(t, s, "w")
		row := func() (length, complete, seq int64) {
			t.Helper()
			return db.Count(t, raw, "SELECT length(text) FROM message WHERE id = 'm'"), db.Count(t, raw, "SELECT complete FROM message WHERE id = 'm'"), db.Count(t, raw, "SELECT seq FROM message WHERE id = 'm'")
		}
		var first int64
		piece := strings.Repeat("a", 4096)
		for i := range 5 {
			evs := storetest.MustAppend(t, s, r.Claim, "", &journal.MessageDelta{MessageID: "m", Role: "agent", Part: journal.PartText, Text: journal.T(piece)})
			if i == 0 {
				first = evs[0].Seq
			}
		}
		if n, complete, seq := row(); n != 0 || complete != 0 || seq != first {
			t.Errorf("before its end: %d characters, complete %d, seq %d; want none, 0, %d", n, complete, seq, first)
		}
		whole := &journal.MessageCompleted{MessageID: "m", Role: "agent", Part: journal.PartText, Text: journal.T(strings.Repeat(piece, 5) + "b")}
		storetest.MustAppend(t, s, r.Claim, "", whole)
		if n, complete, seq := row(); n != 5*4096+1 || complete != 1 || seq != first {
			t.Errorf("at its end: %d characters, complete %d, seq %d", n, complete, seq)
		}
	})
}

// A call that may be run again writes from its start again: what it had written
// before is in the journal, and not between the pieces of its new output.
// proves CAL-4
func TestCallOutput_OfTheLastDispatch(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.MustRun(t, s, "w")
		id := r.MustDispatched(t, s, journal.EffectRead)
		output := func(offset int64, text string) *journal.CallOutput {
			return &journal.CallOutput{CallID: id, Stream: "stdout", Offset: offset, Text: journal.T(text)}
		}
		storetest.MustAppend(t, s, r.Claim, "", output(0, "a long first piece\n"), output(19, "and more\n"))
		storetest.MustLose(t, s, r.Claim)
		r.Claim = storetest.MustClaim(t, s, r.Session, "w2")
		storetest.MustAppend(t, s, r.Claim, "", storetest.Dispatch(id, 2))
		storetest.MustAppend(t, s, r.Claim, "", output(0, "one\n"), output(4, "two\n"))
		out, err := s.CallOutput(t.Context(), r.Owner, id, 0, 1000)
		must(t, err)
		if string(out.Data) != "one\ntwo\n" || out.Total != 8 {
			t.Errorf("got %q of %d bytes", out.Data, out.Total)
		}
		if n := storetest.CountKind(storetest.Events(t, s, r.Session), journal.KindCallOutput); n != 4 {
			t.Errorf("%d pieces in the journal, want 4", n)
		}
	})
}

// proves RDR-1
func TestSessionPage_OneSnapshot(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		a, b := db.Open(t), db.Open(t)
		owner := storetest.MustUser(t, a).ID
		session := storetest.MustSession(t, a, owner).ID
		const n = 30
		done := make(chan error, 1)
		go func() {
			for i := range n {
				if _, err := a.SubmitPrompt(t.Context(), owner, session, fmt.Sprint(i), queue("x")); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		for last := int64(0); last < n+1; {
			p, err := b.SessionPage(t.Context(), owner, session, 0, 100)
			must(t, err)
			last = p.Session.LastSeq
			if got := p.Events[len(p.Events)-1].Seq; got != last || len(p.Queue) != int(last)-1 || len(p.Session.State.Admitted) != len(p.Queue) {
				t.Fatalf("the page shows #%d, its last event is #%d, its queue has %d", last, got, len(p.Queue))
			}
		}
		must(t, <-done)
	})
}

// proves JRN-8 OWN-3 JRN-6
func TestAppend_CleansAndMasks(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		secret, quoted := "s3cr3t-väl/ue<1>", `pa"ss\wörd`
		s := db.Open(t, func(o *store.Options) { o.Secrets = []string{secret, quoted, ""} })
		raw := db.SQL(t)
		r := storetest.MustRun(t, s, "w")
		filler := strings.Repeat("x", 40_000)
		id := store.NewID("call")
		p := r.Propose(id, journal.EffectEffect)
		p.Input = []byte(`{"a":"s3cr3t-v\u00e4l\/ue\u003c1\u003e","n":12345678901234567890}`) // as others may spell it
		named := r.Propose(store.NewID("call"), journal.EffectEffect)
		named.Input = []byte(`{"` + secret + `":1}`)
		big := r.Propose(store.NewID("call"), journal.EffectEffect)
		big.Input = []byte(`{"a":"` + filler + `s3cr3t-v\u00e4lue` + secret + `"}`)
		ask := storetest.Ask("per_1", id)
		ask.Metadata = []byte(`{"shown":"pa\"ss\\w\u00f6rd"}`)
		ask.Resources = []string{"echo " + secret}
		storetest.MustAppend(t, s, r.Claim, "",
			&journal.MessageDelta{MessageID: "m", Role: "agent", Part: journal.PartText, Text: journal.T("a " + secret + " b " + quoted + "\x00\xff|")},
			&journal.MessageCompleted{MessageID: "m2", Role: "agent", Part: journal.PartText, Text: journal.T(filler + secret + "\x00" + quoted)},
			p, big, named, ask)
		storetest.MustPrompt(t, s, r.Owner, r.Session, "use "+secret, journal.Queue)
		storetest.MustPrompt(t, s, r.Owner, r.Session, filler+secret, journal.Queue)

		for _, q := range []string{
			"SELECT data FROM event", "SELECT data FROM blob", "SELECT text FROM input", "SELECT folded FROM input", "SELECT text FROM message",
			"SELECT input FROM call", "SELECT resources FROM request", "SELECT metadata FROM request",
		} {
			rows, err := raw.QueryContext(t.Context(), q)
			must(t, err)
			masked := 0
			for rows.Next() {
				var b []byte
				must(t, rows.Scan(&b))
				text := string(b)
				for _, never := range []string{secret, quoted, `pa\"ss\\w`, `\u00e4l\/ue`, "\x00", `\u0000`} {
					if strings.Contains(strings.ToLower(text), strings.ToLower(never)) {
						t.Errorf("%s: %q stands in %.200q", q, never, text)
					}
				}
				if strings.Contains(text, journal.Hidden) {
					masked++
				}
			}
			must(t, errors.Join(rows.Err(), rows.Close()))
			if masked == 0 {
				t.Errorf("%s: nothing is masked", q)
			}
		}
		c, err := s.Call(t.Context(), r.Owner, id)
		must(t, err)
		if !strings.Contains(string(c.Input), "12345678901234567890") {
			t.Errorf("a number was changed: %s", c.Input)
		}
		list, err := s.Calls(t.Context(), r.Owner, r.Session, 0)
		must(t, err)
		if len(list[1].Input) > 200 {
			t.Errorf("a long input stays inline: %d bytes", len(list[1].Input))
		}
		evs := storetest.Events(t, s, r.Session)
		delta := storetest.Body[*journal.MessageDelta](t, evs)
		if delta.Text.S != "a "+journal.Hidden+" b "+journal.Hidden+"\uFFFD|" {
			t.Errorf("got %q", delta.Text.S)
		}
	})
}

// proves JRN-6
func TestAppend_TooLargeIsRefused(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		raw := db.SQL(t)
		r := storetest.MustRun(t, s, "w")
		before := db.RowCounts(t, raw)
		plan := make([]journal.PlanItem, 2000)
		for i := range plan {
			plan[i].Title = strings.Repeat("x", 40)
		}
		long := strings.Repeat("y", 100_000)
		_, err := s.Append(t.Context(), r.Claim, store.Append{Drafts: storetest.Drafts(
			&journal.MessageDelta{MessageID: "m", Role: "agent", Part: journal.PartText, Text: journal.T(long)}, &journal.PlanUpdated{Plan: plan})})
		storetest.WantCode(t, err, journal.TooLarge)
		wantSame(t, before, db.RowCounts(t, raw))
	})
}

// proves JRN-3
func TestAppend_EventAndProjectionCommitTogether(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		raw := db.SQL(t)
		r := storetest.MustRun(t, s, "w")
		before := db.RowCounts(t, raw)
		call := store.NewID("call")
		// The second body can't follow: the first goes with it, from every table.
		for _, second := range []journal.Body{&journal.TurnStarted{TurnID: "trn_2"}, storetest.Ask("per_1", "call_none"), &journal.TurnEnded{TurnID: "trn_other"}} {
			_, err := s.Append(t.Context(), r.Claim, store.Append{Drafts: storetest.Drafts(r.Propose(call, journal.EffectEffect), second)})
			if err == nil {
				t.Fatalf("%s was taken", second.Kind())
			}
			wantSame(t, before, db.RowCounts(t, raw))
		}
		head := db.Count(t, raw, "SELECT next_seq FROM session WHERE id = ?", r.Session)
		if evs := storetest.MustAppend(t, s, r.Claim, "", r.Propose(call, journal.EffectEffect)); evs[0].Seq != head+1 {
			t.Errorf("the next seq is %d after %d", evs[0].Seq, head)
		}
	})
}

func TestBlob(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		text := strings.Repeat("blob ", 20_000)
		for range 2 { // the same text once
			storetest.MustPrompt(t, s, owner, session, text, journal.Queue)
		}
		b := storetest.Body[*journal.PromptAdmitted](t, storetest.Events(t, s, session))
		if b.Text.S != "" || b.Text.Bytes != int64(len(text)) || b.Text.Blob != journal.Hash(text) {
			t.Errorf("got %+v", b.Text)
		}
		data, err := s.Blob(t.Context(), owner, session, b.Text.Blob)
		must(t, err)
		if string(data) != text {
			t.Errorf("%d bytes came back", len(data))
		}
		_, err = s.Blob(context.Background(), owner, session, journal.Hash("other"))
		storetest.WantCode(t, err, journal.NotFound)
	})
}
