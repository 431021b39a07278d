package handlers

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store/storetest"
)

// What a page says was recorded is in that session's journal, and named; an
// address that somebody made up says nothing.
func TestPages_NoticeSaysWhatIsSo(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		a := w.start(t, w.alice, "go")
		other := w.start(t, w.alice, "go")
		_, request := a.ask("make deploy")
		b := w.tab(t, w.alice).open("/sessions/" + a.Session)
		b.submit(`[data-testid="decision-form"]`, vals("reply", "once")).follow().page()
		asked, replied := lastOf(t, w, a.Session, journal.KindPermissionAsked), lastOf(t, w, a.Session, journal.KindPermissionReplied)
		b.want(http.StatusOK, fmt.Sprintf("Recorded as entry #%04d: you allowed what entry #%04d asked, once.", replied, asked))
		if got := b.doc.Find(`[data-testid="notice"]`).AttrOr("data-of", ""); got != request {
			t.Errorf("the notice is about %q, want the request", got)
		}

		seq := func(n int64) string { return fmt.Sprintf("&seq=%d", n) }
		for _, path := range []string{
			"/sessions/" + a.Session + "?notice=recorded" + seq(asked),
			"/sessions/" + a.Session + "?notice=recorded" + seq(999),
			"/sessions/" + a.Session + "?notice=recorded",
			"/sessions/" + a.Session + "?notice=withdrawn" + seq(replied),
			"/sessions/" + a.Session + "?notice=withdrawn",
			"/sessions/" + a.Session + "?notice=archived",
			"/sessions/" + a.Session + "?notice=stopped",
			"/sessions/" + a.Session + "?notice=continued",
			"/sessions/" + a.Session + "?notice=kept",
			"/sessions/" + a.Session + "?notice=saved",
			"/sessions/" + other.Session + "?notice=recorded" + seq(replied),
			"/?notice=archived", "/needs-you?notice=recorded" + seq(replied), "/sessions/new?notice=kept", "/settings?notice=archived",
		} {
			if got := b.open(path).page().find("notice"); got != "" {
				t.Errorf("%s says %q", path, got)
			}
		}
		// To a script the same words, and the same tie.
		ans := w.do(t, get, "/sessions/"+a.Session+"?notice=recorded"+seq(replied), browser(w.alice), header("HX-Request", "true"))
		if said := ans.header.Get("X-Holdfast-Said"); !strings.Contains(said, "you allowed what entry") || ans.header.Get("X-Holdfast-Of") != request {
			t.Errorf("a script is told %q of %q", said, ans.header.Get("X-Holdfast-Of"))
		}
	})
}

// What a notice says of the session is so now: its address stays while that moves on.
func TestPages_NoticeMovesOn(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		a := w.start(t, w.alice, "go")
		if err := w.store.RequestInterrupt(t.Context(), w.alice.user.ID, a.Session, journal.InterruptBoundary); err != nil {
			t.Fatal(err)
		}
		stopping := fmt.Sprintf("/sessions/%s?notice=stopping&seq=%d", a.Session, lastOf(t, w, a.Session, journal.KindInterruptRequested))
		b := w.tab(t, w.alice).open(stopping).page().want(http.StatusOK, "Stopping was asked for as entry #")
		if strings.Contains(b.find("notice"), "ended") {
			t.Errorf("it has not ended, and the notice says %q", b.find("notice"))
		}
		a.end(journal.TurnEnded{Outcome: journal.Stopped})
		if got := b.open(stopping).page().find("notice"); !strings.HasSuffix(got, "The turn has ended.") {
			t.Errorf("it has ended, and the notice says %q", got)
		}
		if err := w.store.Continue(t.Context(), w.alice.user.ID, a.Session, nil); err != nil {
			t.Fatal(err)
		}
		continued := fmt.Sprintf("/sessions/%s?notice=continued&seq=%d", a.Session, lastOf(t, w, a.Session, journal.KindContinuation))
		if got := b.open(continued).page().find("notice"); !strings.HasPrefix(got, "The session goes on as entry #") {
			t.Errorf("it goes on, and the notice says %q", got)
		}
		w.pickUp(t, w.alice, a.Session).end(journal.TurnEnded{Outcome: journal.Failed, Reason: "x"})
		if got := b.open(continued).page().find("notice"); !strings.HasPrefix(got, "The session was continued as entry #") || !strings.HasSuffix(got, "Its turn has ended since.") {
			t.Errorf("it has ended, and the notice says %q", got)
		}
	})
}

// lastOf is the seq of the last entry of a kind.
func lastOf(t *testing.T, w *world, session string, kind journal.Kind) (seq int64) {
	t.Helper()
	for _, ev := range storetest.Events(t, w.store, session) {
		if ev.Kind == kind {
			seq = ev.Seq
		}
	}
	return seq
}
