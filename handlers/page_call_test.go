package handlers

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store/storetest"
)

// A call has a page of its own: an uncertain one is reconciled there.
func TestPages_Call(t *testing.T) {
	// proves CAL-6 OWN-1
	onEach(t, func(t *testing.T, w *world) {
		run := w.start(t, w.alice, "go")
		call := run.MustUnknown(t, w.store)
		b := w.tab(t, w.alice).open("/needs-you").page()
		href := b.doc.Find(`[data-testid="inbox-row"][data-kind="reconcile"] td a.btn`).AttrOr("href", "")
		if href != "/calls/"+call {
			t.Fatalf("the inbox leads to %q", href)
		}
		b.open(href).page().want(http.StatusOK, "Outcome unknown", "Last entries", "What is recorded", "To the session")
		if got := b.doc.Find("title").Text(); !strings.HasPrefix(got, "(1) To reconcile: Call: ") {
			t.Errorf("the title is %q", got)
		}
		if n := b.doc.Find(`[data-testid="last-entries"] li[data-seq]`).Length(); n != 5 {
			t.Errorf("%d entries for context, want 5", n)
		}
		b.submit(`[data-testid="resolution-form"]`, vals("then", "stay")).page().want(http.StatusUnprocessableEntity, "Choose what you found")
		b.open(href).submit(`[data-testid="resolution-form"]`, vals("outcome", "in_part", "evidence", "<i>half</i> of it", "then", "stay")).follow().want(http.StatusOK, "ecorded as entry")
		b.open(href).page().want(http.StatusOK, "reconciled: it happened in part", "You recorded “it happened in part” at", "<i>half</i> of it")
		if b.doc.Find(`[data-testid="resolution-form"]`).Length() != 0 || b.doc.Find("main i:not([class])").Length() != 0 {
			t.Error("it is asked again, or the evidence is read as markup")
		}
		w.tab(t, w.mallory).open(href).page().want(http.StatusNotFound)
		w.tab(t, w.alice).open("/calls/call_nothing").page().want(http.StatusNotFound)
		b.open(href + "?lines=x").page().want(http.StatusBadRequest)
	})
}

// The page of a call shows the end of its output in bounded steps, and nothing of it acts.
func TestPages_CallOutputIsBounded(t *testing.T) {
	t.Parallel()
	// proves JRN-6
	w := newWorld(t, storetest.New(t, "sqlite"))
	run := w.start(t, w.alice, "go")
	call := run.MustDispatched(t, w.store, journal.EffectEffect)
	b := w.tab(t, w.alice).open("/calls/"+call).page().want(http.StatusOK, "Started, no result yet", "No output was captured so far.")
	var offset int64
	for i := range 40 {
		var text strings.Builder
		for n := range 100 {
			fmt.Fprintf(&text, "%04d \x1b[31mred\x1b[0m <img src=x onerror=alert(1)> \x1b]8;;http://evil.example\x1b\\%s\n", i*100+n, strings.Repeat("y", 200))
		}
		storetest.MustAppend(t, w.store, run.Claim, "", &journal.CallOutput{CallID: call, Stream: "stdout", Offset: offset, Text: journal.T(text.String())})
		offset += int64(text.Len())
	}
	shown := func() []string {
		b.page().want(http.StatusOK)
		if b.doc.Find("main img, main script, main a[href^='http']").Length() != 0 {
			t.Error("output became markup")
		}
		return strings.Split(strings.TrimSpace(b.doc.Find(`#output [data-testid="output-last"]`).Text()), "\n")
	}
	for _, want := range []int{200, 400, 600} {
		b.open(b.path)
		if got := shown(); len(got) != want || !strings.HasPrefix(got[len(got)-1], "3999 red <img src=x onerror=alert(1)> \\x1b]8;;") {
			t.Errorf("%s shows %d lines, want %d, the last is %.80q", b.path, len(got), want, got[len(got)-1])
		}
		b.path = b.doc.Find(`#output [data-testid="output-more"]`).AttrOr("href", "")
	}
	b.open("/calls/" + call + "?lines=999999")
	if got := shown(); len(got) > 2000 || len(b.doc.Find("#output").Text()) > 300<<10 {
		t.Errorf("%d lines, %d bytes are shown", len(got), len(b.doc.Find("#output").Text()))
	}
	if b.doc.Find(".ansi-red").Length() == 0 {
		t.Error("the colours are gone")
	}
}

// A form about a request to a model comes back with what was typed and what is wrong.
func TestPages_AttemptFormComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	th := w.things(t, w.alice)
	b := w.tab(t, w.alice).open("/sessions/" + th.session).page()
	b.submit(`[data-testid="attempt-form"]`, vals("evidence", "the bill", "then", "stay")).page().want(http.StatusUnprocessableEntity, "Choose what shall become of it")
	if got := b.doc.Find(`[data-testid="attempt-form"] textarea`).Text(); got != "the bill" || b.doc.Find(`#errors a`).AttrOr("href", "") != "#"+th.attempt+"-o0" {
		t.Errorf("the text became %q; the summary leads to %q", got, b.doc.Find(`#errors a`).AttrOr("href", ""))
	}
	b.submit(`[data-testid="attempt-form"]`, vals("outcome", "abandon", "then", "stay")).follow().want(http.StatusOK, "Recorded")
	w.tab(t, w.mallory).post("/attempts/"+th.attempt+"/resolution", vals("then", "stay")).page().want(http.StatusNotFound)
}

// Who says what becomes of a message after somebody did is told who that was, when, and
// what they chose; who sends the same twice, that it is recorded. What they knew stands
// beside it.
func TestPages_AnAttemptIsResolvedOnce(t *testing.T) {
	// proves ATT-6 CAL-8 JRN-5
	onEach(t, func(t *testing.T, w *world) {
		th := w.things(t, w.alice)
		path := "/attempts/" + th.attempt + "/resolution"
		b := w.tab(t, w.alice).open("/sessions/" + th.session).page()
		send := func(outcome, evidence string) *tab {
			return b.post(path, vals("outcome", outcome, "evidence", evidence, "then", "stay", "idempotency_key", newKey()))
		}
		send("abandon", "the <b>bill").follow().page().want(http.StatusOK, "Recorded as entry #", "You chose not to send the message again", "the <b>bill")
		send("abandon", "the <b>bill").follow().page().want(http.StatusOK, "ecorded as entry #")
		refused := send("retry", "").page()
		refused.want(http.StatusConflict, "What becomes of this message was chosen already", "You chose not to send the message again, at ", "Your answer was not recorded")
		if n := storetest.CountKind(storetest.Events(t, w.store, th.session), journal.KindAttemptResolved); n != 1 {
			t.Errorf("%d answers are recorded", n)
		}
	})
}
