package handlers

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/PuerkitoBio/goquery"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

const hostile = "<img src=x onerror=alert(1)><script>alert(1)</script>\"'&lt;b&gt;</textarea></pre></title>\u202e\u200b\x1b[2J\r\nnext line"

// Text of people, agents and commands is text on every page that shows it.
func TestPages_HostileText(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		s, _, err := w.store.CreateSession(t.Context(), w.alice.user.ID, newKey(), store.NewSession{
			Title: hostile, Agent: "<b>agent</b>", Workspace: "/srv/<i>x</i>", WorkspaceID: "wsp_1", Preset: "<u>",
			Prompt: &store.PromptInput{Text: hostile, Delivery: journal.Queue},
		})
		if err != nil {
			t.Fatal(err)
		}
		run := w.pickUp(t, w.alice, s.ID)
		call := store.NewID("call")
		storetest.MustAppend(t, w.store, run.Claim, journal.PhaseUncertain, run.propose(call, hostile), &journal.CallDispatched{CallID: call, N: 1, AllowedBy: journal.AllowedBy{Type: journal.AllowedByRule, Text: hostile}})
		storetest.MustAppend(t, w.store, run.Claim, journal.PhaseSafe,
			&journal.CallOutput{CallID: call, Stream: "stdout", Text: journal.T(hostile)},
			&journal.CallSettled{CallID: call, State: journal.CallFailed, Reason: hostile, OutputBytes: int64(len(hostile))},
			&journal.MessageCompleted{MessageID: "msg_1", Part: journal.PartText, Text: journal.T(hostile)},
			&journal.PlanUpdated{Plan: []journal.PlanItem{{Key: "k", Title: hostile, State: journal.PlanRunning}}},
			&journal.StepStarted{TurnID: run.Turn, Step: journal.Step{Name: hostile, Index: 1, Of: 1}})
		_, request := run.ask(hostile)
		storetest.MustPrompt(t, w.store, w.alice.user.ID, s.ID, hostile, journal.Queue)
		b := w.tab(t, w.alice)
		for _, path := range []string{"/", "/?q=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E%E2%80%AE", "/sessions/" + s.ID, "/sessions/" + s.ID + "?auto=60", "/sessions/" + s.ID + "/stop", "/needs-you", "/permissions/" + request, "/calls/" + call + "/output", "/sessions/" + s.ID + "?notice=%3Cimg%3E&seq=%3Cimg%3E"} {
			b.open(path).page().want(http.StatusOK)
			if n := b.doc.Find("img, script:not([src^='/static/']), b b, i:not([class]), u").Length(); n != 0 {
				t.Errorf("%s: %d elements came out of text", path, n)
			}
			b.doc.Find("input").RemoveAttr("value") // what the viewer typed stays as it was typed
			if html, err := b.doc.Html(); err != nil || strings.ContainsAny(html, "\u202e\u200b\x1b") {
				t.Errorf("%s: a character that acts is in the page (%v)", path, err)
			}
		}
		b.open("/permissions/" + request)
		if got := strings.TrimSpace(b.doc.Find(`[data-testid="payload"]`).Text()); !strings.HasPrefix(got, "<img src=x onerror=alert(1)><script>") || !strings.Contains(got, `\u202e\u200b\x1b[2J`) {
			t.Errorf("the payload is shown as %q", got)
		}
		if b.find("hides") == "" || b.doc.Find("button[name=reply]").Length() != 2 {
			t.Error("it isn't said that characters hide, or it can't be answered on its own page")
		}
		if b.open("/sessions/"+s.ID).doc.Find(`[data-testid="decision-card"] button`).Length() != 0 {
			t.Error("a payload that hides characters can be allowed from the card")
		}
		// What was typed comes back as it was typed.
		b.open("/sessions/new").submit(`[data-testid="new-session-form"]`, vals("prompt", hostile, "workspace", "/etc")).page().want(http.StatusUnprocessableEntity, "none of the workspaces")
		if got := b.doc.Find("#prompt").Text(); got != "\n"+strings.ReplaceAll(hostile, "\r\n", "\n") && got != strings.ReplaceAll(hostile, "\r\n", "\n") {
			t.Errorf("the typed text became %q", got)
		}
	})
}

// proves RDR-6
func TestPages_NewestWindow(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		run := w.start(t, w.alice, "go")
		for range 20 {
			var bodies []journal.Body
			for range 100 {
				bodies = append(bodies, &journal.PlanUpdated{})
			}
			storetest.MustAppend(t, w.store, run.Claim, "", bodies...)
		}
		b := w.tab(t, w.alice).open("/sessions/" + run.Session).page()
		rows := func() (first, last string, n int) {
			li := b.doc.Find(`ol.journal > li`)
			return li.First().AttrOr("id", ""), li.Last().AttrOr("id", ""), li.Length()
		}
		if first, last, n := rows(); first != "j-1955" || last != "j-2004" || n != 50 {
			t.Fatalf("%d rows from %s to %s, want the newest 50 of 2004", n, first, last)
		}
		seen := 50
		for {
			next := b.doc.Find(`[data-testid="earlier"]`).AttrOr("href", "")
			if next == "" {
				break
			}
			b.open(next).page()
			_, _, n := rows()
			seen += n
		}
		if first, _, _ := rows(); seen != 2004 || first != "j-1" {
			t.Errorf("walking back showed %d entries down to %s, want each of 2004 once", seen, first)
		}
	})
}

// Every page of every state is whole, and nobody else's.
func TestPages_EveryState(t *testing.T) {
	// proves OWN-1 RDR-1
	onEach(t, func(t *testing.T, w *world) {
		states := map[journal.ExecutionState]string{}
		states[journal.StateIdle] = w.session(t, w.alice)
		states[journal.StateRunning] = w.start(t, w.alice, "go").Session
		waiting := w.start(t, w.alice, "go")
		_, request := waiting.ask("make deploy")
		states[journal.StateWaiting] = waiting.Session
		uncertain := w.start(t, w.alice, "go")
		call := uncertain.MustUnknown(t, w.store)
		states[journal.StateUncertain] = uncertain.Session
		for outcome, state := range map[journal.Outcome]journal.ExecutionState{journal.Completed: journal.StateReady, journal.Failed: journal.StateFailed, journal.Interrupted: journal.StateStopped, journal.LimitReach: journal.StateLimitReached} {
			run := w.start(t, w.alice, "go")
			run.end(journal.TurnEnded{Outcome: outcome, Reason: "because", Limit: "steps"})
			states[state] = run.Session
		}
		queued, _, err := w.store.CreateSession(t.Context(), w.alice.user.ID, newKey(), store.NewSession{Title: "Later", Agent: runbook, Workspace: "/srv/x", WorkspaceID: "w", Preset: "ask_all", Prompt: &store.PromptInput{Text: "x", Delivery: journal.Queue}})
		if err != nil {
			t.Fatal(err)
		}
		states[journal.StateQueued] = queued.ID

		b, stranger := w.tab(t, w.alice), w.tab(t, w.mallory)
		for state, id := range states {
			path := "/sessions/" + id
			b.open(path).page().wantState(state)
			if head := storetest.MustState(t, w.store, id); head.Title != "" && !strings.Contains(b.main(), "End of the journal, entry #") {
				t.Errorf("%s doesn't say which entry it shows", state)
			}
			stranger.open(path).page().want(http.StatusNotFound)
			b.open("/?state=" + string(state)).page().want(http.StatusOK)
			if n := b.doc.Find(`[data-testid="session-row"]`).Length(); n != 1 {
				t.Errorf("%d sessions are %s, want 1", n, state)
			}
		}
		b.open("/").page()
		if n := b.doc.Find(`[data-testid="session-row"]`).Length(); n != len(states) {
			t.Errorf("%d rows, want %d", n, len(states))
		}
		if got := squeeze(b.doc.Find(`[data-testid="group"] h2`).First().Text()); got != "Needs you" {
			t.Errorf("the first group is %q", got)
		}
		if got := squeeze(b.doc.Find(`[data-testid="nav-needs"]`).Text()); got != "Needs you 2" {
			t.Errorf("the navigation says %q", got)
		}
		b.open("/needs-you").page().want(http.StatusOK, "2 things to answer", "To look at")
		for _, path := range []string{"/sessions/new", "/help", "/permissions/" + request, "/calls/" + call + "/output"} {
			b.open(path).page().want(http.StatusOK)
		}
		stranger.open("/").page().want(http.StatusOK, "No sessions yet")
		stranger.open("/needs-you").page().want(http.StatusOK, "Nothing needs you")
		stranger.open("/?q=go").page().want(http.StatusOK, "Nothing matches")
		if b.open("/sessions/ses_0").want(http.StatusNotFound).main() == "" {
			t.Error("an empty page")
		}
		nobody, foreign := stranger.open("/sessions/ses_0").find("failure"), stranger.open("/sessions/"+states[journal.StateIdle]).find("failure")
		if cut(nobody) != cut(foreign) {
			t.Errorf("another owner's is told from nobody's:\n%s\n%s", nobody, foreign)
		}
	})
}

// cut leaves the request's id out.
func cut(s string) string { s, _, _ = strings.Cut(s, "Request "); return s }

// A page that reloads by itself has nothing that typed text could be lost from.
func TestPages_AutoRefresh(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	run := w.start(t, w.alice, "go")
	run.ask("make deploy")
	path := "/sessions/" + run.Session
	b := w.tab(t, w.alice).open(path).page()
	if b.doc.Find("meta[http-equiv=refresh]").Length() != 0 || b.find("auto-on") == "" {
		t.Error("it refreshes unasked, or can't be asked to")
	}
	b.open(path + "?auto=60").page()
	if got := b.doc.Find("meta[http-equiv=refresh]").AttrOr("content", ""); got != "60" {
		t.Errorf("it refreshes after %q", got)
	}
	if n := b.doc.Find("main form, main textarea").Length(); n != 0 || b.find("composer-link") == "" || b.find("auto-off") == "" {
		t.Errorf("%d forms are in the way of a reload", n)
	}
	if b.open(path+"?auto=1").doc.Find("meta[http-equiv=refresh]").Length() != 0 {
		t.Error("any other time is taken")
	}
}

func TestPages_Output(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		run := w.start(t, w.alice, "go")
		call := run.MustDispatched(t, w.store, journal.EffectEffect)
		var want strings.Builder
		var offset int64
		write := func(text string, dropped int64) {
			offset += dropped
			storetest.MustAppend(t, w.store, run.Claim, "", &journal.CallOutput{CallID: call, Stream: "stdout", Offset: offset, Text: journal.T(text), Dropped: dropped})
			offset += int64(len(text))
			want.WriteString(text)
		}
		for i := range 40 {
			write(fmt.Sprintf("%04d %s\n", i, strings.Repeat("ä", 1024)), 0)
		}
		write("after the gap\n", 5000)
		write(strings.Repeat("z", 40<<10), 0) // a blob
		b := w.tab(t, w.alice)
		var got strings.Builder
		pages := 0
		for path := "/calls/" + call + "/output"; path != ""; path = b.doc.Find(`[data-testid="next"]`).AttrOr("href", "") {
			b.open(path).page().want(http.StatusOK)
			piece := b.doc.Find(`pre[data-testid="output"]`).Text()
			if !utf8.ValidString(piece) {
				t.Errorf("%s ends in the middle of a character", path)
			}
			got.WriteString(piece)
			if pages++; pages > 20 {
				t.Fatal("the pages don't end")
			}
		}
		if got.String() != want.String() {
			t.Errorf("%d pages gave %d bytes, want %d, each once", pages, got.Len(), want.Len())
		}
		a := w.do(t, get, "/calls/"+call+"/output?download=1", browser(w.alice))
		if string(a.body) != want.String() || a.header.Get("Content-Type") != "text/plain; charset=utf-8" || !strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment;") {
			t.Errorf("the download has %d bytes of %s, %s", len(a.body), a.header.Get("Content-Type"), a.header.Get("Content-Disposition"))
		}
		b.open("/calls/" + call + "/output?offset=-1").page().want(http.StatusBadRequest)
		w.tab(t, w.mallory).open("/calls/" + call + "/output?download=1").page().want(http.StatusNotFound)
		b.open(b.path)
		if a := w.do(t, get, "/sessions/"+run.Session+"/export.json", browser(w.alice)); a.status != http.StatusOK || !strings.Contains(string(a.body), run.Session) {
			t.Errorf("the export: %d %.80s", a.status, a.body)
		}
	})
}

// What can't be recorded now comes back with its text, and is recorded once when it is sent again.
func TestPages_NotRecorded(t *testing.T) {
	t.Parallel()
	// proves ADM-9 ADM-10
	db := storetest.New(t, "sqlite")
	w := newWorld(t, db)
	session := w.session(t, w.alice)
	limited := w.start(t, w.alice, "go")
	limited.end(journal.TurnEnded{Outcome: journal.LimitReach, Limit: "steps"})
	held := w.tab(t, w.alice).open("/sessions/" + limited.Session)
	b := w.tab(t, w.alice).open("/sessions/" + session)
	raw := db.SQL(t)
	conn, err := raw.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil { // nobody else can write
		t.Fatal(err)
	}
	b.submit(`[data-testid="composer"]`, vals("text", "keep\nthis", "delivery", "queue")).page().want(http.StatusServiceUnavailable, "Not recorded", "Your text is below; nothing was sent to the agent.")
	if got := b.doc.Find("textarea").Text(); got != "keep\nthis" || b.header.Get("Retry-After") == "" {
		t.Errorf("the text became %q; Retry-After %q", got, b.header.Get("Retry-After"))
	}
	held.submit(`[data-testid="continuation-form"]`, vals("steps", "333")).page().want(http.StatusServiceUnavailable, "Not recorded")
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	held.submit(`[data-testid="resend-form"]`, nil).follow().want(http.StatusOK, "step limit now 333 steps")
	action, body := b.fields(`[data-testid="resend-form"]`, nil)
	b.post(action, body).follow().want(http.StatusOK, "ecorded as entry #0002", "keep this")
	b.post(action, body).follow().want(http.StatusOK, "Already recorded as entry #0002")

	tight := newWorld(t, storetest.New(t, "sqlite"), func(o *Options) { o.Rate, o.Burst = 0.001, 1 })
	session = tight.session(t, tight.alice)
	b = tight.tab(t, tight.alice).open("/sessions/" + session)
	b.submit(`[data-testid="composer"]`, vals("text", "one", "delivery", "queue")).follow()
	b.submit(`[data-testid="composer"]`, vals("text", "two", "delivery", "queue")).page().want(http.StatusTooManyRequests, "Too much at once", "two")
	if b.doc.Find(`[data-testid="resend-form"]`).Length() != 1 || b.header.Get("Retry-After") == "" {
		t.Error("no way to send it again, or it isn't said when")
	}
}

func TestPages_Assets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	href := w.tab(t, person{}).open("/login").doc.Find("link[rel=stylesheet]").AttrOr("href", "")
	plain := w.do(t, get, href)
	zipped := w.do(t, get, href, header("Accept-Encoding", "gzip"))
	if plain.status != http.StatusOK || plain.header.Get("Content-Type") != "text/css; charset=utf-8" || !strings.Contains(plain.header.Get("Cache-Control"), "immutable") || len(plain.body) == 0 {
		t.Errorf("the stylesheet: %d %v", plain.status, plain.header)
	}
	if zipped.header.Get("Content-Encoding") != "gzip" || len(zipped.body) >= len(plain.body)/2 {
		t.Errorf("compressed: %q, %d bytes of %d", zipped.header.Get("Content-Encoding"), len(zipped.body), len(plain.body))
	}
	for _, path := range []string{"/static/app.css", "/static/app.000000000000.css", "/static/..%2fstatic.go"} {
		if a := w.do(t, get, path); a.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, a.status)
		}
	}
}

// Links of the pages lead somewhere.
func TestPages_Links(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	run := w.start(t, w.alice, "go")
	run.ask("make deploy")
	lost := w.start(t, w.alice, "go")
	lost.MustUnknown(t, w.store)
	b := w.tab(t, w.alice)
	seen := map[string]bool{"": true}
	todo := []string{"/"}
	for len(todo) > 0 {
		path := todo[0]
		todo = todo[1:]
		bare, anchor, _ := strings.Cut(path, "#")
		if seen[path] {
			continue
		}
		seen[path] = true
		b.open(bare)
		if b.status != http.StatusOK {
			t.Errorf("%s: %d", path, b.status)
			continue
		}
		if !strings.HasPrefix(b.header.Get("Content-Type"), "text/html") {
			continue
		}
		if anchor != "" && b.doc.Find("[id='"+anchor+"']").Length() != 1 {
			t.Errorf("%s: there is no such place", path)
		}
		b.doc.Find("a[href], link[href^='/']").Each(func(_ int, a *goquery.Selection) {
			href := a.AttrOr("href", "")
			switch {
			case strings.HasPrefix(href, "#"):
				href = bare + href
			case strings.HasPrefix(href, "?"):
				at, _, _ := strings.Cut(bare, "?")
				href = at + href
			}
			if !strings.HasPrefix(href, "/") {
				t.Errorf("%s leads out, to %q", path, href)
				return
			}
			todo = append(todo, href)
		})
	}
	if len(seen) < 30 {
		t.Errorf("only %d links were seen", len(seen))
	}
}
