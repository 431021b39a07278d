package handlers

import (
	"net/http"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"holdfast/journal"
	"holdfast/store/storetest"
	"holdfast/views/components"
)

// prefixes are what stands before a page's title for each need.
var prefixes = map[journal.Needs][]string{
	journal.NeedsReconcile: {"(1) To reconcile: "}, journal.NeedsDecision: {"(1) Decision needed: "}, journal.NeedsBlocked: {"Something is missing: ", "To continue: "},
	journal.NeedsReview: {"Ready for review: ", "To look at: "}, journal.NeedsNone: {"Try it"},
}

// Of one state the list, the session's page, its title, the inbox and the API
// tell the same, whatever state it is (semantics §11).
func TestPages_ReadingsAgree(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		made := storetest.States(t, w.store, w.alice.user.ID)
		check := func() {
			t.Helper()
			b := w.tab(t, w.alice)
			rows := listRows(t, b)
			open, ready := inboxSessions(b)
			for _, ids := range made {
				for _, id := range ids {
					one, err := w.store.Session(t.Context(), w.alice.user.ID, id)
					if err != nil {
						t.Fatal(err)
					}
					is, _ := one.Execution()
					needs, name := one.State.Needs(), string(is)+" that needs "+string(one.State.Needs())
					view := sessionView(&one, components.Viewer{ID: w.alice.user.ID})
					if got := rows[id]; got.group != string(view.Group()) || got.state != string(is) || got.words != view.Execution().Words {
						t.Errorf("%s: the list has it as %+v, want %s", name, got, view.Group())
					}
					b.open("/sessions/" + id).page().wantState(is)
					if got := b.doc.Find("#reading-needs").AttrOr("data-state", ""); got != string(needs) {
						t.Errorf("%s: the register says it needs %s", name, got)
					}
					if !startsWithAny(b.doc.Find("title").Text(), prefixes[needs]) {
						t.Errorf("%s: the title is %q", name, b.doc.Find("title").Text())
					}
					if open[id] != needs.Urgent() || ready[id] != (needs == journal.NeedsReview) {
						t.Errorf("%s: in the inbox: to answer %v, to look at %v", name, open[id], ready[id])
					}
					api := w.do(t, get, "/api/v1/sessions/"+id, as(w.alice)).want(t, http.StatusOK)
					if api["state"] != string(is) {
						t.Errorf("%s: the API says %v", name, api["state"])
					}
				}
			}
		}
		check()
		w.store.Skew(storetest.StatesLease * 5 / 6) // two of three renewals failed to come
		check()
	})
}

type listRow struct{ group, state, words string }

// listRows are the rows of the list over all its pages, by session.
func listRows(t *testing.T, b *tab) map[string]listRow {
	t.Helper()
	out := map[string]listRow{}
	for path := "/"; path != ""; {
		b.open(path).page().want(http.StatusOK)
		b.doc.Find(`[data-testid="group"]`).Each(func(_ int, g *goquery.Selection) {
			g.Find(`[data-testid="session-row"]`).Each(func(_ int, row *goquery.Selection) {
				id := strings.TrimPrefix(row.Find("a").AttrOr("href", ""), "/sessions/")
				out[id] = listRow{g.Find("h2").Text(), row.AttrOr("data-state", ""), squeeze(row.Find(".srow-mark").Text())}
			})
		})
		path = b.doc.Find(`[data-testid="more"]`).AttrOr("href", "")
	}
	return out
}

// inboxSessions are the sessions that the inbox has something of.
func inboxSessions(b *tab) (open, ready map[string]bool) {
	b.t.Helper()
	b.open("/needs-you").page().want(http.StatusOK)
	in := func(rows string) map[string]bool {
		out := map[string]bool{}
		b.doc.Find(rows + ` a[href^="/sessions/"]`).Each(func(_ int, a *goquery.Selection) {
			id, _, _ := strings.Cut(strings.TrimPrefix(a.AttrOr("href", ""), "/sessions/"), "#")
			out[id] = true
		})
		return out
	}
	return in(`[data-testid="inbox-row"]`), in(`[data-testid="ready-row"]`)
}

func startsWithAny(s string, list []string) bool {
	for _, one := range list {
		if strings.HasPrefix(s, one) {
			return true
		}
	}
	return false
}

// What runs on under a shim hides nothing that is missing (REC-10).
func TestPages_MissingBesideWhatRuns(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		r := w.run(t, w.alice)
		call := r.MustSpooled(t, w.store, journal.EffectEffect)
		storetest.MustAppend(t, w.store, r.Claim, "", &journal.SessionBlocked{Cause: journal.BlockAgent, Detail: "No worker has it."})
		r.MustAdopt(t, w.store, call)
		if got := storetest.MustState(t, w.store, r.Session); got.Needs() != journal.NeedsBlocked || got.Base != journal.StateRunning {
			t.Fatalf("%s needs %s", got.Base, got.Needs())
		}
		b := w.tab(t, w.alice).open("/needs-you").page().want(http.StatusOK, "1 thing to answer", "No worker has it.", "Waiting for an agent")
		if b.find("empty") != "" {
			t.Error("what needs the viewer is counted and not shown")
		}
	})
}

// Of a stop that can't be confirmed the page says what is known and what can be done, and
// the session is among those that need its owner.
//
// proves LEA-12 COO-4
func TestPages_AProcessThatMayStillRun(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		r := w.run(t, w.alice)
		r.MustSpooled(t, w.store, journal.EffectEffect)
		if err := w.store.RequestInterrupt(t.Context(), w.alice.user.ID, r.Session, journal.InterruptNow); err != nil {
			t.Fatal(err)
		}
		const says = "it may still be running on build-2 as pid 7"
		storetest.MustAppend(t, w.store, r.Claim, "", &journal.SessionBlocked{Cause: journal.BlockProcess, Detail: "Since 12:00 " + says + ". You can end it on that host."})
		b := w.tab(t, w.alice).open("/sessions/" + r.Session).page().wantState(journal.StateStopping)
		if got := b.find("blocked"); !strings.Contains(got, "Waiting for the agent’s process to end") || !strings.Contains(got, says) || !strings.Contains(got, "once that process has ended") {
			t.Errorf("the page says %q", got)
		}
		if got := b.doc.Find("#reading-execution").Text(); !strings.Contains(got, "may still be running") {
			t.Errorf("how it stops is told as %q", got)
		}
		if got := b.doc.Find("title").Text(); !strings.HasPrefix(got, "A process to end: ") {
			t.Errorf("the title is %q", got)
		}
		w.tab(t, w.alice).open("/needs-you").page().want(http.StatusOK, "1 thing to answer", says)
	})
}
