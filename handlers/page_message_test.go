package handlers

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

func say(id, text string) journal.Body {
	return &journal.MessageDelta{MessageID: id, Role: "agent", Part: journal.PartText, Text: journal.T(text)}
}

// attempt begins a message to the session's agent.
func attempt(t *testing.T, w *world, r *storetest.Run) (id string) {
	t.Helper()
	id = store.NewID("att")
	storetest.MustAppend(t, w.store, r.Claim, journal.PhaseUncertain, &journal.AttemptPrepared{AttemptID: id, TurnID: r.Turn}, &journal.AttemptDispatched{AttemptID: id})
	return id
}

// held are the entries that the rows of a page account for: each row one, or the
// run of pieces that it stands for.
func held(doc *goquery.Document) (n int64) {
	doc.Find("ol.journal > li[data-seq]").Each(func(_ int, li *goquery.Selection) {
		var from, seq int64
		_, _ = fmt.Sscan(li.AttrOr("data-seq", ""), &seq)
		if _, err := fmt.Sscan(li.AttrOr("data-from", ""), &from); err != nil {
			from = seq
		}
		n += seq - from + 1
	})
	return n
}

// A message of 2,000 pieces is one entry while it is written, when it is whole, and
// when it was cut off; the entries before it stand in the same window.
//
// proves RDR-4 RDR-6
func TestPages_MessageIsOneEntry(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		r := w.run(t, w.alice)
		id := attempt(t, w, r)
		pieces := make([]journal.Body, 100)
		for i := range pieces {
			pieces[i] = say("msg_1", "word ")
		}
		for range 20 {
			storetest.MustAppend(t, w.store, r.Claim, "", pieces...)
		}
		b := w.tab(t, w.alice)
		open := func(note string, text string) {
			t.Helper()
			b.open("/sessions/" + r.Session).page()
			last := int64(len(storetest.Events(t, w.store, r.Session)))
			seen := b.doc.Find("ol.journal > li:not([hidden])")
			if n := held(b.doc); n != last || seen.Length() > 12 || b.doc.Find("ol.journal > li").Last().AttrOr("data-seq", "") != fmt.Sprint(last) {
				t.Errorf("%s: %d rows are seen, and all stand for %d entries of %d", note, seen.Length(), n, last)
			}
			if got := b.main(); strings.Count(got, text) != 1 || !strings.Contains(got, note) {
				t.Errorf("the page doesn't say %q, or not %q once", note, text)
			}
		}
		all := strings.TrimSpace(strings.Repeat("word ", 2000))
		open("is writing; this is not complete", all)
		storetest.MustAppend(t, w.store, r.Claim, "", &journal.MessageCompleted{MessageID: "msg_1", Role: "agent", Part: journal.PartText, Text: journal.T(all)}, say("msg_2", "never "), say("msg_2", "ended"))
		open("is writing; this is not complete", all)
		storetest.MustAppend(t, w.store, r.Claim, journal.PhaseSafe, &journal.AttemptUnknown{AttemptID: id})
		open("incomplete: it was cut off here", all)
		open("never ended", "never ended")
	})
}

// Who follows is brought each piece once: with its row, for the entry where the
// message began; then the whole, which takes that entry's place.
//
// proves RDR-2 RDR-4 ATT-4
func TestPageStream_MessagePieces(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.serve(t)
		r := w.run(t, w.alice)
		att := attempt(t, w, r)
		head := int64(len(storetest.Events(t, w.store, r.Session)))
		s := w.openAt(t, fmt.Sprintf("/sessions/%s/stream?after=%d", r.Session, head), browser(w.alice))
		next := func() *goquery.Selection {
			t.Helper()
			head++
			m := s.event()
			if m.id != fmt.Sprint(head) {
				t.Fatalf("got the row %s, want %d", m.id, head)
			}
			return fragment(t, m.data).Find("body")
		}
		storetest.MustAppend(t, w.store, r.Claim, "", say("msg_1", "one "))
		if row := next(); row.Find("li:not([hidden]) #draft-text-msg_1").Text() != "one " || row.Find("[hx-swap-oob]#facts").Length() != 0 {
			t.Errorf("the first piece is %s", squeeze(row.Text()))
		}
		storetest.MustAppend(t, w.store, r.Claim, "", say("msg_1", "two"), say("msg_2", "lost"))
		if li := next().Find(`li[hidden][data-adds-to="draft-text-msg_1"]`); li.Text() != "two" {
			t.Errorf("the second piece brings %q", li.Text())
		}
		next()
		storetest.MustAppend(t, w.store, r.Claim, "", &journal.MessageCompleted{MessageID: "msg_1", Role: "agent", Part: journal.PartText, Text: journal.T("one two")})
		if row := next(); row.Find(`li[data-finishes="draft-text-msg_1"] .prose.md`).Length() != 1 {
			t.Errorf("the whole is %s", squeeze(row.Text()))
		}
		storetest.MustAppend(t, w.store, r.Claim, journal.PhaseSafe, &journal.AttemptUnknown{AttemptID: att})
		if note := next().Find("[hx-swap-oob]#draft-text-msg_2-note"); note.Text() != "incomplete: it was cut off here" {
			t.Errorf("the note of what was lost becomes %q", note.Text())
		}
	})
}

// What an agent says more of its call changes the row of its intent.
func TestPageStream_CallIsDescribed(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.serve(t)
		r := w.run(t, w.alice)
		att, call := attempt(t, w, r), store.NewID("call")
		b := r.Propose(call, journal.EffectEffect)
		b.AttemptID, b.Tool, b.Input = &att, "edit", []byte(`{"title":"edit","kind":"edit"}`)
		storetest.MustAppend(t, w.store, r.Claim, "", b)
		head := int64(len(storetest.Events(t, w.store, r.Session)))
		s := w.openAt(t, fmt.Sprintf("/sessions/%s/stream?after=%d", r.Session, head), browser(w.alice))
		storetest.MustAppend(t, w.store, r.Claim, "", &journal.CallDescribed{CallID: call, InputSHA256: "s", Input: []byte(`{"title":"Edit a.txt","kind":"edit","diffs":[{"path":"a.txt","old":"a\n","new":"b\n"}]}`)})
		doc := fragment(t, s.event().data)
		if doc.Find("li[hidden]").Length() != 1 || squeeze(doc.Find("[hx-swap-oob]#title-"+call).Text()) != "The agent proposed Edit a.txt" || doc.Find("[hx-swap-oob]#what-"+call+" tr.a").Length() != 1 {
			t.Errorf("it changes %s", squeeze(doc.Text()))
		}
		page := w.tab(t, w.alice).open("/sessions/" + r.Session).page()
		if page.doc.Find("li:not([hidden]) #what-"+call+" tr.d").Length() != 1 || page.doc.Find("#title-"+call).Length() != 1 {
			t.Error("the page doesn't show the change in the row of the intent")
		}
	})
}

// What an agent says of its call once somebody was asked, which is something else, leaves
// the row of its intent as it was, in the page and in the stream.
//
// proves CAL-1 JRN-1
func TestPages_CallIsContradicted(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.serve(t)
		r := w.run(t, w.alice)
		att, call := attempt(t, w, r), store.NewID("call")
		input := func(command string) []byte {
			return []byte(`{"title":"Terminal","kind":"execute","input":{"command":"` + command + `"}}`)
		}
		b := r.Propose(call, journal.EffectEffect)
		b.AttemptID, b.Tool, b.Input = &att, "execute", input("ls")
		storetest.MustAppend(t, w.store, r.Claim, "", b, &journal.CallDescribed{CallID: call, InputSHA256: "s", Input: input("ls -la")})
		head := int64(len(storetest.Events(t, w.store, r.Session)))
		s := w.openAt(t, fmt.Sprintf("/sessions/%s/stream?after=%d", r.Session, head), browser(w.alice))
		storetest.MustAppend(t, w.store, r.Claim, "",
			&journal.CallContradicted{CallID: call, InputSHA256: "t", Input: input("rm -rf x"), Late: journal.LateAsked},
			&journal.CallDescribed{CallID: call, InputSHA256: "u", Input: input("rm -rf y"), Late: journal.LateAsked})
		for doc := fragment(t, s.event().data); ; doc = fragment(t, s.event().data) {
			if doc.Find("[hx-swap-oob]#title-"+call).Length() != 0 {
				t.Errorf("the stream rewrites the row of the intent: %s", squeeze(doc.Text()))
			}
			if doc.Find("li[hidden]").Length() == 1 { // the last one, which has no row of its own
				break
			}
		}
		page := w.tab(t, w.alice).open("/sessions/" + r.Session).page()
		if got := squeeze(page.doc.Find("#title-" + call).Text()); got != "The agent proposed ls -la" {
			t.Errorf("the row of the intent says %q", got)
		}
	})
}

// The card of a message whose outcome is unknown says which one it was; with a call
// beside it the notice says that one answer isn't enough.
// proves CAL-6 ATT-6
func TestPages_UnknownAttempt(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		run := w.start(t, w.alice, "Tidy up the <b>notes</b>")
		call, att := store.NewID("call"), store.NewID("att")
		storetest.MustAppend(t, w.store, run.Claim, "", &journal.AttemptPrepared{AttemptID: att, TurnID: run.Turn}, &journal.AttemptDispatched{AttemptID: att})
		storetest.MustAppend(t, w.store, run.Claim, journal.PhaseUncertain, run.propose(call, "make"), &journal.CallDispatched{CallID: call, N: 1, AllowedBy: journal.AllowedBy{Type: journal.AllowedByRule}})
		storetest.MustAppend(t, w.store, run.Claim, journal.PhaseSafe, &journal.CallUnknown{CallID: call, Evidence: []journal.Evidence{{Type: "process", Text: "The agent's process was ended by SIGKILL."}}}, &journal.AttemptUnknown{AttemptID: att})
		b := w.tab(t, w.alice).open("/sessions/"+run.Session).page().want(http.StatusOK, "The agent’s process ended while this ran")
		if got := squeeze(b.doc.Find(`[data-testid="attempt-message"]`).Text()); got != "Tidy up the <b>notes</b>" || b.doc.Find(`[data-testid="attempt-card"] a[href*="before="]`).Length() == 0 {
			t.Errorf("the card names the message %q", got)
		}
		b.submit(`[data-testid="resolution-form"]`, vals("outcome", "happened", "evidence", "I looked", "then", "continue")).follow().page().
			want(http.StatusOK, "Another card has to be answered before the session goes on.")
		b.submit(`[data-testid="attempt-form"]`, vals("outcome", "abandon", "then", "continue")).follow().page().want(http.StatusOK, "your word about a message to the agent")
		if strings.Contains(b.main(), "Another card") {
			t.Error("the last answer isn't enough")
		}
	})
}
