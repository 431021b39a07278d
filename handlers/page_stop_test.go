package handlers

import (
	"net/http"
	"strings"
	"testing"

	"holdfast/journal"
)

// The form that stops a turn says what a stop comes to in the state that it finds.
func TestPages_StopSaysWhatItDoes(t *testing.T) {
	// proves COO-4 CAL-6
	onEach(t, func(t *testing.T, w *world) {
		b := w.tab(t, w.alice)
		buttons := func() int { return b.doc.Find(`[data-testid="stop-form"] button`).Length() }

		runs := w.start(t, w.alice, "go")
		b.open("/sessions/"+runs.Session+"/stop").page().want(http.StatusOK, "What runs now is finished first. Nothing is left uncertain.", "Back, and let it run")
		if buttons() != 2 {
			t.Errorf("a turn that runs has %d ways to stop it", buttons())
		}

		lost := w.start(t, w.alice, "go")
		lost.MustUnknown(t, w.store)
		b.open("/sessions/" + lost.Session).page().wantState(journal.StateUncertain)
		b.open("/sessions/"+lost.Session+"/stop").page().want(http.StatusOK, "One outcome is not known", "it waits for your word", "the turn ends at once")
		if got := b.main(); strings.Contains(got, "Nothing is left uncertain") || strings.Contains(got, "let it run") || buttons() != 1 {
			t.Errorf("of a turn that doesn't run it says %q", got)
		}
		b.submit(`[data-testid="stop-form"]`, vals("mode", "boundary")).follow().page().wantState(journal.StateUncertain).want(http.StatusOK, "Stopping was asked for as entry #")

		asks := w.start(t, w.alice, "go")
		asks.ask("make deploy")
		b.open("/sessions/"+asks.Session+"/stop").page().want(http.StatusOK, "the turn ends at once", "An open decision is cancelled, and nothing is run because of it.")
		b.submit(`[data-testid="stop-form"]`, vals("mode", "boundary")).follow().page().wantState(journal.StateStopped)

		// It is archived once nothing waits in it.
		waits := w.start(t, w.alice, "go")
		b.open("/sessions/"+waits.Session).submit(`[data-testid="composer"]`, vals("text", "and then", "delivery", "queue")).follow().want(http.StatusOK)
		waits.end(journal.TurnEnded{Outcome: journal.Stopped, Reason: "interrupted"})
		b.open("/sessions/"+waits.Session).page().want(http.StatusOK, "can be archived when no message waits in it")
		if b.find("archive") != "" {
			t.Error("it is offered to archive what can't be archived")
		}
		b.submit(`[data-testid="queue"] form`, nil).follow().page()
		if b.find("archive") == "" || b.find("archive-waits") != "" {
			t.Errorf("with nothing that waits it can't be archived:\n%s", b.main())
		}
	})
}
