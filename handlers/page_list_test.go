package handlers

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// The list says how many sessions are in each group, and can be narrowed to one.
func TestPages_ListGroups(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		b := w.tab(t, w.alice).open("/").page().want(http.StatusOK, "No sessions yet. A session keeps working when you close this page.")
		if b.find("counts") != "" || b.doc.Find(`[data-testid="empty"] a`).AttrOr("href", "") != "/sessions/new" {
			t.Error("groups of nothing are counted, or there is no way on")
		}
		b.open("/needs-you").page().want(http.StatusOK, "Nothing needs you. No session is running.")
		w.start(t, w.alice, "go")
		b.open("/needs-you").page().want(http.StatusOK, "Nothing needs you. 1 session is running; the latest entry was", "s ago.")
		asking := w.start(t, w.alice, "go")
		asking.ask("make <b>deploy</b>")
		ready := w.start(t, w.alice, "go")
		ready.end(journal.TurnEnded{Outcome: journal.Completed})
		b.open("/").page().want(http.StatusOK)
		if got := b.find("counts"); got != "Needs you 1Running 1To look at 1All 3" {
			t.Errorf("the counts are %q", got)
		}
		for href, want := range map[string]string{"/?group=needs": "Needs you", "/?group=running": "Running", "/?group=review": "To look at"} {
			b.open(href).page().want(http.StatusOK)
			var groups []string
			b.doc.Find(`[data-testid="group"] h2`).Each(func(_ int, h *goquery.Selection) { groups = append(groups, h.Text()) })
			if got := strings.Join(groups, ","); got != want || b.doc.Find(`[data-testid="session-row"]`).Length() != 1 {
				t.Errorf("%s shows %s", href, got)
			}
			if got := b.doc.Find(`[data-testid="counts"] [aria-current=page]`); got.AttrOr("href", "") != href {
				t.Errorf("%s is said to be %q", href, got.AttrOr("href", ""))
			}
		}
		b.open("/?group=strange").page().want(http.StatusBadRequest)
		b.open("/?q=pg<b>x&state=running").page().want(http.StatusOK, "Nothing matches “pg<b>x” in Running.", "Search all states")
		if got := b.doc.Find(`[data-testid="empty"] a`).AttrOr("href", ""); got != "/?q=pg%3Cb%3Ex" {
			t.Errorf("all states are searched at %q", got)
		}
		b.open("/?group=running&q=nothing").page().want(http.StatusOK, "Nothing matches")
	})
}

// The inbox answers what can be read in its row, and nothing in bulk.
func TestPages_Inbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	w.start(t, w.alice, "go").ask("make deploy")
	w.start(t, w.alice, "go").ask("make one\nmake two\n")
	w.start(t, w.alice, "go").end(journal.TurnEnded{Outcome: journal.Failed, Reason: "It broke."})
	b := w.tab(t, w.alice).open("/needs-you").page().want(http.StatusOK, "2 things to answer", "2 lines", "Read and answer")
	if b.doc.Find(`[data-testid="row-decision"]`).Length() != 1 || b.doc.Find("main input[type=checkbox]").Length() != 0 {
		t.Error("what can't be read in its row can be answered there, or all at once")
	}
	if got := squeeze(b.doc.Find(`[data-testid="row-decision"] button`).First().Text()); got != "Allow once: “make deploy”" {
		t.Errorf("the button says %q", got)
	}
	if got := b.find("ready-row"); !strings.Contains(got, "Failed") || !strings.Contains(got, "the turn is not finished") {
		t.Errorf("what is to look at says %q", got)
	}
	// Without a script too the title counts, as the navigation does.
	for path, want := range map[string]string{"/needs-you": "(2) Needs you · Holdfast", "/settings": "(2) Settings · Holdfast"} {
		b.open(path).page().want(http.StatusOK)
		if title, count := b.doc.Find("title").Text(), b.doc.Find("#nav-count").Text(); title != want || count != "2" {
			t.Errorf("%s has the title %q beside %q", path, title, count)
		}
	}
	b.open("/needs-you").page()
	b.doc.Find("table").Each(func(_ int, tbl *goquery.Selection) {
		if tbl.AttrOr("role", "") != "table" || tbl.Find("tr:not([role=row]), td:not([role=cell]), th:not([role])").Length() != 0 || tbl.Find("caption").Length() != 1 {
			t.Error("a table loses what it is where it is drawn as cards")
		}
	})
}

// A session that asks more than its page has room for says so, with the true
// number, and shows the next as they are answered (R6, PER-1).
func TestPages_MoreRequestsThanStandThere(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		r := w.start(t, w.alice, "go")
		call := r.MustCall(t, w.store, journal.EffectEffect)
		var asks []journal.Body
		for range store.MaxPageRequests + 2 {
			asks = append(asks, storetest.Ask(store.NewID("per"), call))
		}
		storetest.MustAppend(t, w.store, r.Claim, "", asks...)
		b := w.tab(t, w.alice).open("/sessions/" + r.Session).page().want(http.StatusOK)
		want := fmt.Sprintf("These are the oldest %d of %d requests.", store.MaxPageRequests, len(asks))
		if n := b.doc.Find(`[data-testid="decision-card"]`).Length(); n != store.MaxPageRequests || !strings.Contains(b.find("requests-rest"), want) || b.doc.Find(`[data-testid="requests-rest"] a[href="/needs-you"]`).Length() != 1 {
			t.Errorf("%d cards, and the page says %q", n, b.find("requests-rest"))
		}
		if got := b.doc.Find(`[data-testid="place"]`).First().Text(); !strings.HasPrefix(got, fmt.Sprintf("1 of %d requests for this command: the agent asked for the same more than once.", len(asks))) {
			t.Errorf("the first card says %q", got)
		}
		for _, ask := range asks[:2] {
			if _, err := w.store.Decide(t.Context(), w.alice.user.ID, ask.(*journal.PermissionAsked).ID, store.Decision{Reply: journal.ReplyOnce, Key: newKey()}); err != nil {
				t.Fatal(err)
			}
		}
		b.open("/sessions/" + r.Session).page().want(http.StatusOK)
		if b.doc.Find(`[data-testid="decision-card"]`).Length() != store.MaxPageRequests || b.find("requests-rest") != "" {
			t.Errorf("with room for all the page says %q", b.find("requests-rest"))
		}
	})
}

// Two permissions of one command are told apart wherever they stand: by what
// each is for, in headings, in the tab's title, and in the names of buttons.
func TestPages_TwoPermissionsOfACommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	a := w.start(t, w.alice, "go")
	const command = "echo hello >> /srv/motd"
	call, ids := store.NewID("call"), []string{store.NewID("per"), store.NewID("per")}
	meta, err := journal.Encode(map[string]any{"tool": "shell", "command": command, "command_bytes": len(command), "directory": "/srv/shop"})
	if err != nil {
		t.Fatal(err)
	}
	asked := func(i int, permission, resource string) *journal.PermissionAsked {
		return &journal.PermissionAsked{
			ID: ids[i], Tool: journal.ToolRef{CallID: call}, Permission: permission, Resources: []string{resource}, Always: []string{}, Digest: "d", Metadata: meta,
		}
	}
	storetest.MustAppend(t, w.store, a.Claim, "", a.propose(call, command))
	storetest.MustAppend(t, w.store, a.Claim, journal.PhaseSafe, asked(0, "shell", command), asked(1, "external_directory", "/srv"))
	a.park()

	b := w.tab(t, w.alice)
	for _, path := range []string{"/sessions/" + a.Session, "/needs-you"} {
		b.open(path).page().want(http.StatusOK, "1 of 2 for this command", "2 of 2 for this command")
		names := map[string]bool{}
		found := b.doc.Find("#needs-list h3, #needs-list button, [data-testid=inbox-row] button, [data-testid=inbox-row] th")
		found.Each(func(_ int, s *goquery.Selection) { names[squeeze(s.Text())] = true })
		if found.Length() != 6 || len(names) != 6 {
			t.Errorf("%s: %d things have the names %q", path, found.Length(), slices.Sorted(maps.Keys(names)))
		}
	}
	for i, want := range []string{"run this command, “" + command + "”, 1 of 2 for this command", "reach outside its workspace, “/srv”, 2 of 2 for this command"} {
		b.open("/permissions/" + ids[i]).page().want(http.StatusOK)
		if got := squeeze(b.doc.Find("title").Text()); !strings.HasPrefix(got, "(2) Decision needed: "+want+": ") || strings.Count(strings.ToLower(got), "decision") != 1 {
			t.Errorf("the title is %q, want it to say once that a decision is needed, then %q", got, want)
		}
		if got := squeeze(b.doc.Find("h1").Text()); !strings.Contains(got, fmt.Sprintf("%d of 2", i+1)) {
			t.Errorf("the heading is %q", got)
		}
	}
	// One answer is not all that is needed, and the page says so.
	allow := func(id string) string {
		b.open("/sessions/"+a.Session).submit("#"+id+` [data-testid="decision-form"]`, vals("reply", "once")).follow().page()
		return b.find("notice")
	}
	if got := allow(ids[0]); !strings.Contains(got, "Nothing was run yet: another request for the same command waits for your answer.") {
		t.Errorf("with another request waiting the notice says %q", got)
	}
	if got := allow(ids[1]); strings.Contains(got, "Nothing was run yet") {
		t.Errorf("with all answered the notice says %q", got)
	}
}

// Which of how many permissions a request is, is said with the true number wherever
// it stands, however many there are.
func TestPages_PlaceAmongMany(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		r := w.start(t, w.alice, "go")
		call := store.NewID("call")
		storetest.MustAppend(t, w.store, r.Claim, "", r.propose(call, "make deploy"))
		var asks []journal.Body
		for range listMax + 1 {
			asks = append(asks, storetest.Ask(store.NewID("per"), call))
		}
		storetest.MustAppend(t, w.store, r.Claim, journal.PhaseSafe, asks...)
		r.park()
		b := w.tab(t, w.alice)
		for i, nr := range map[int]int{0: 1, 1: 2, listMax: listMax + 1} {
			want := fmt.Sprintf("%d of %d for this command", nr, len(asks))
			b.open("/permissions/"+asks[i].(*journal.PermissionAsked).ID).page().want(http.StatusOK, want)
			if got := b.doc.Find("title").Text(); !strings.Contains(got, want) {
				t.Errorf("the title is %q, want %q in it", got, want)
			}
		}
		b.open("/needs-you").page().want(http.StatusOK, fmt.Sprintf("1 of %d for this command", len(asks)))
	})
}

// What has no room in the inbox is counted, and is found from there; the oldest have it.
func TestPages_InboxRest(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		r := w.start(t, w.alice, "go")
		call := store.NewID("call")
		storetest.MustAppend(t, w.store, r.Claim, "", r.propose(call, "make deploy"))
		var asks []journal.Body
		for range store.MaxInbox + 50 {
			asks = append(asks, storetest.Ask(store.NewID("per"), call))
		}
		storetest.MustAppend(t, w.store, r.Claim, journal.PhaseSafe, asks...)
		r.park()
		b := w.tab(t, w.alice).open("/needs-you").page().want(http.StatusOK, "150 things to answer in 1 session, oldest first", "These are the oldest 100 of 150 decisions. All of them: the sessions that need you.")
		if n := b.doc.Find(`[data-testid="inbox-row"]`).Length(); n != store.MaxInbox {
			t.Errorf("%d rows", n)
		}
		rest := b.doc.Find(`[data-testid="inbox-rest"] a`).AttrOr("href", "")
		b.open(rest).page().want(http.StatusOK)
		if b.doc.Find(`[data-testid="session-row"]`).Length() != 1 {
			t.Errorf("%s doesn't lead to the rest", rest)
		}
	})
}

// What is ready for review is called so in the lists, as on its own page, and no page
// says that nothing needs its owner while it waits for a look.
func TestPages_ReadyForReviewEverywhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	w.start(t, w.alice, "go").end(journal.TurnEnded{Outcome: journal.Completed})
	b := w.tab(t, w.alice).open("/needs-you").page().want(http.StatusOK, "Nothing waits for your answer. To look at, below: 1 session. No session is running.", "ready for review")
	if strings.Contains(b.main(), "Nothing needs you") {
		t.Error("nothing is said to need its owner")
	}
	b.open("/").page().want(http.StatusOK, "ready for review")
}
