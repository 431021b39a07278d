package handlers

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// The form of a new session offers what was used last, and gives everything back with what is wrong.
func TestPages_NewSession(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		b := w.tab(t, w.alice).open("/sessions/new").page().want(http.StatusOK, "What each preset allows", "No worker is running", "Empty: 100.", "Empty: 4.")
		if b.doc.Find("input[name=preset]").Length() != 3 || b.doc.Find("input[name=tokens], input[name=cost_usd]").Length() != 0 {
			t.Error("a preset is missing, or a limit is asked that means nothing for a runbook")
		}
		if b.doc.Find("input[name=workspace]").AttrOr("value", "") != "." || b.doc.Find("#workspaces option").Length() != 0 {
			t.Error("a workspace is offered before there is one")
		}
		typed := vals("prompt", "# do <b>\n\n  it", "workspace", "/srv/shop", "preset", "workspace", "steps", "many", "wall_h", "-1")
		b.submit(`[data-testid="new-session-form"]`, typed).page().want(http.StatusUnprocessableEntity, "The number of steps must be a number above 0", "The hours of running time must be a number above 0")
		if got := b.doc.Find("textarea").Text(); got != "# do <b>\n\n  it" {
			t.Errorf("the text became %q", got)
		}
		for selector, want := range map[string]string{"input[name=workspace]": "/srv/shop", "input[name=steps]": "many", "input[name=wall_h]": "-1", "input[name=preset][checked]": "workspace", "input[name=agent][checked]": runbook} {
			if got := b.doc.Find(selector).AttrOr("value", ""); got != want {
				t.Errorf("%s: %q, want %q", selector, got, want)
			}
		}
		summary := b.doc.Find("#errors")
		if _, focused := summary.Attr("autofocus"); !focused || summary.AttrOr("tabindex", "") != "-1" || summary.Find("a[href='#limit-steps'], a[href='#limit-wall_h']").Length() != 2 || b.doc.Find(".limits .problem").Length() != 2 {
			t.Error("the summary isn't focused, doesn't lead to the fields, or they don't say what is wrong")
		}
		if !strings.HasPrefix(b.doc.Find("title").Text(), "Error: ") {
			t.Errorf("the title is %q", b.doc.Find("title").Text())
		}
		b.submit(`[data-testid="new-session-form"]`, vals("steps", "7", "wall_h", "")).follow().wantState(journal.StateQueued)
		id := strings.TrimPrefix(strings.Split(b.path, "?")[0], "/sessions/")
		if created := storetest.Body[*journal.SessionCreated](t, storetest.Events(t, w.store, id)); created.Limits == nil || *created.Limits != (journal.Limits{Steps: 7}) {
			t.Errorf("the limits were recorded as %+v", created.Limits)
		}
		b.open("/sessions/new").page()
		if b.doc.Find("input[name=workspace]").AttrOr("value", "") != "/srv/shop" || b.doc.Find("#workspaces option").Length() != 1 {
			t.Error("what was used last isn't offered")
		}
		// What allows more than the default is never chosen by itself, and what allows less is.
		if got := b.doc.Find("input[name=preset][checked]").AttrOr("value", ""); got != "ask_writes" || !strings.Contains(b.find("wider-before"), "Your last session had “Work freely inside the workspace”.") {
			t.Errorf("after a session with the widest preset %q is chosen, and it says %q", got, b.find("wider-before"))
		}
		b.submit(`[data-testid="new-session-form"]`, vals("prompt", "again", "preset", "ask_all")).follow()
		b.open("/sessions/new").page()
		if got := b.doc.Find("input[name=preset][checked]").AttrOr("value", ""); got != "ask_all" || b.find("wider-before") != "" {
			t.Errorf("after a session with the strictest preset %q is chosen, and it says %q", got, b.find("wider-before"))
		}
		w.tab(t, w.mallory).open("/sessions/new").page()
		if strings.Contains(w.tab(t, w.mallory).open("/sessions/new").page().main(), "/srv/shop") {
			t.Error("another owner's workspace is offered")
		}
	})
}

// An agent that can't run is there to be read, with its reason, and not to be chosen.
func TestPages_NewSessionAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	agents := []store.Agent{{Name: runbook, Kind: "builtin", Available: true}, {Name: "opencode", Kind: "acp", Reason: "opencode was not found <in> PATH"}}
	if err := w.store.SeeWorker(t.Context(), store.Worker{ID: "w1", StateFolderID: "f1", Host: "h", Agents: agents}); err != nil {
		t.Fatal(err)
	}
	b := w.tab(t, w.alice).open("/sessions/new").page().want(http.StatusOK, "Can’t be chosen: opencode was not found <in> PATH", "1 worker running")
	if _, off := b.doc.Find("input[name=agent][value=opencode]").Attr("disabled"); !off || b.doc.Find("input[name=tokens]").Length() != 1 || b.doc.Find("input[name=cost_usd]").Length() != 1 {
		t.Error("it can be chosen, or its limits can't be set")
	}
}

// What was chosen and isn't offered stands in the form that is refused, as what it
// is, with what is wrong: nothing else is chosen in its place without a word.
func TestPages_NewSessionKeepsWhatWasChosen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	agents := []store.Agent{{Name: runbook, Kind: "builtin", Available: true}, {Name: "opencode", Kind: "acp", Reason: "not found"}}
	if err := w.store.SeeWorker(t.Context(), store.Worker{ID: "w1", StateFolderID: "f1", Host: "h", Agents: agents}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, agent, preset string
		more                []string
		problems            []string
	}{
		{"a bad limit, an agent of another server", "else<b>", "ask_all", []string{"steps", "many"}, []string{"#limit-steps", "#agent-0"}},
		{"no text, an agent that is missing now", "opencode", "ask_all", []string{"prompt", ""}, []string{"#prompt", "#agent-0"}},
		{"no such agent", "else", "ask_all", nil, []string{"#agent-0"}},
		{"no such preset", runbook, "all<b>", nil, []string{"#preset-0"}},
		{"neither, and no folder", "else", "all", []string{"workspace", ""}, []string{"#workspace", "#agent-0", "#preset-0"}},
		{"no agent and a bad limit", "", "ask_all", []string{"steps", "many"}, []string{"#limit-steps", "#agent-0"}},
	} {
		b := w.tab(t, w.alice).open("/sessions/new").page()
		_, fields := b.fields(`[data-testid="new-session-form"]`, vals(append([]string{"prompt", "go", "workspace", "/srv/x", "agent", tt.agent, "preset", tt.preset}, tt.more...)...))
		b.post("/sessions", fields).page().want(http.StatusUnprocessableEntity)
		var got []string
		b.doc.Find("#errors a").Each(func(_ int, a *goquery.Selection) { got = append(got, a.AttrOr("href", "")) })
		if !slices.Equal(got, tt.problems) || b.doc.Find("form .problem").Length() != len(got) {
			t.Errorf("%s: the problems are %v at %d fields, want %v", tt.name, got, b.doc.Find("form .problem").Length(), tt.problems)
		}
		for field, want := range map[string]string{"agent": tt.agent, "preset": tt.preset} {
			chosen := b.doc.Find("input[name=" + field + "][checked]")
			_, off := chosen.Attr("disabled")
			if chosen.AttrOr("value", "") != want || off != (field == "agent" && want != runbook && want != "") {
				t.Errorf("%s: the form has the %s %q, which can't be chosen: %v", tt.name, field, chosen.AttrOr("value", ""), off)
			}
		}
		// Sent again as it stands, it is refused again for each choice that isn't one.
		b.submit(`[data-testid="new-session-form"]`, vals("prompt", "go", "workspace", "/srv/x", "steps", "")).page().want(http.StatusUnprocessableEntity)
		for _, field := range tt.problems {
			if choice := field == "#agent-0" || field == "#preset-0"; choice && b.doc.Find("#errors a[href='"+field+"']").Length() != 1 {
				t.Errorf("%s: sent again as it stands, the problems are %q, without %s", tt.name, b.find("error-summary"), field)
			}
		}
	}
	if list, _, err := w.store.Sessions(t.Context(), w.alice.user.ID, store.SessionQuery{}); err != nil || len(list) != 0 {
		t.Errorf("%d sessions were made, %v", len(list), err)
	}
}

func TestReadLimits(t *testing.T) {
	t.Parallel()
	for raw, want := range map[[2]string]journal.Limits{
		{"steps", "7"}: {Steps: 7}, {"steps", " 7 "}: {Steps: 7}, {"wall_h", "1.5"}: {WallS: 5400}, {"wall_h", "1,5"}: {WallS: 5400}, {"wall_h", "0.0001"}: {WallS: 1},
		{"wall_s", "60"}: {WallS: 60}, {"tokens", "1000000"}: {Tokens: 1_000_000}, {"cost_usd", "2.5"}: {CostUSD: 2.5},
		{"steps", "0"}: {}, {"steps", "-1"}: {}, {"steps", "1.5"}: {}, {"steps", "99999999999999999999"}: {}, {"steps", "2000000"}: {}, {"wall_h", "NaN"}: {}, {"wall_h", "Inf"}: {}, {"wall_h", "1e300"}: {},
		{"wall_h", "100001"}: {}, {"tokens", "9223372036854775807"}: {}, {"cost_usd", "0"}: {}, {"cost_usd", "-3"}: {}, {"cost_usd", "1e12"}: {}, {"cost_usd", "x"}: {},
	} {
		got, err := readLimit(raw[0], strings.TrimSpace(raw[1]))
		if err == nil {
			err = checkLimit(raw[0], got)
		}
		if (err == nil) != (want != journal.Limits{}) || err == nil && got != want {
			t.Errorf("%v: %+v, %v, want %+v", raw, got, err, want)
		}
	}
}

// Presets answer what is asked; an agent of its own program decides that itself, which
// is said where a preset is chosen, and where a session shows its own.
func TestPages_PresetsHoldForWhatIsAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	b := w.tab(t, w.alice).open("/sessions/new").page()
	if b.doc.Find(`[data-testid="presets-hold"]`).Length() != 0 || strings.Contains(b.main(), "Nothing runs before") {
		t.Error("the runbook is said to act unasked, or a preset promises what no preset can")
	}
	agents := []store.Agent{{Name: runbook, Kind: "builtin", Available: true}, {Name: "opencode", Kind: "acp", Available: true}}
	if err := w.store.SeeWorker(t.Context(), store.Worker{ID: "w1", StateFolderID: "f1", Host: "h", Agents: agents}); err != nil {
		t.Fatal(err)
	}
	b.open("/sessions/new").page()
	says := b.doc.Find(`[data-testid="presets-hold"]`)
	if !strings.Contains(says.Text(), "What it doesn’t ask for it does, under every preset") || says.Closest("details").Length() != 0 {
		t.Errorf("of an agent that decides itself what it asks it is said: %q", says.Text())
	}
	b.doc.Find("input[name=preset]").Each(func(_ int, radio *goquery.Selection) {
		if !strings.Contains(radio.AttrOr("aria-describedby", ""), "presets-hold") {
			t.Error("a preset isn't described by it")
		}
	})
	for agent, holds := range map[string]bool{runbook: false, "opencode": true} {
		b.post("/sessions", vals("prompt", "go", "workspace", "/srv/x", "agent", agent, "preset", "ask_all", "idempotency_key", newKey())).follow()
		if got := strings.Contains(b.doc.Find(".meta").Text(), "for what the agent asks; what it doesn’t ask for it does, and the journal says so"); got != holds {
			t.Errorf("%s: that its permissions hold for what it asks is said: %v", agent, got)
		}
		if n := b.doc.Find(".meta details").Length(); n == 1 != holds {
			t.Errorf("%s: where there is little room it stands in %d folds", agent, n)
		}
	}
}
