package components_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"holdfast/journal"
	"holdfast/views/components"
	"holdfast/views/internal/fixtures"
)

// manyLines gives n lines, some of them changed.
func manyLines(n int, change map[int]string) string {
	var b strings.Builder
	for i := range n {
		if c, ok := change[i]; ok {
			b.WriteString(c)
			continue
		}
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func diffRows(box *goquery.Selection) string {
	var out []string
	box.Find("tr").Each(func(_ int, tr *goquery.Selection) { out = append(out, strings.TrimRight(tr.Text(), "\n")) })
	return strings.Join(out, "|")
}

func asked(c *journal.Call, permission string) components.DecisionCard {
	r := fixtures.Request("Edit src/round.go", map[string]any{"tool": c.Tool, "diff": "--- src/round.go\n+++ src/round.go\n- a\n+ b\n", "effect": "effect"})
	r.Permission, r.Resources = permission, []string{"src/round.go"}
	return components.NewDecisionCard(r, c, now, "key")
}

// An agent's change is read as lines that come and go, told by sign and word; what
// is far from a change is left out.
func TestDiffBox_Lines(t *testing.T) {
	t.Parallel()
	input := fixtures.AgentEdit("src/round.go", manyLines(40, nil), manyLines(40, map[int]string{5: "", 20: "new <b>\u202e\n"}))
	card := asked(fixtures.AgentCall("edit", input), "edit")
	doc := render(t, components.AskCard(card))
	if got := text(doc.Find("h3")); got != "Decision: write to a file src/round.go" {
		t.Errorf("the heading is %q", got)
	}
	got := diffRows(doc.Find(`[data-testid="diff"]`))
	want := "…2 unchanged lines| line 2| line 3| line 4|-removed: line 5| line 6| line 7| line 8|…8 unchanged lines| line 17| line 18| line 19|-removed: line 20|+added: new <b>\\u202e| line 21| line 22| line 23|…16 unchanged lines"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if doc.Find(`[data-testid="diff"] .num`).Text() != "+1 −2" || doc.Find("tr.d").Length() != 2 || doc.Find(`[data-testid="diff"] b`).Length() != 0 {
		t.Errorf("the box is %s", text(doc.Find(`[data-testid="diff"]`)))
	}
	if card.Answerable() || doc.Find(`[data-testid="hides"]`).Length() != 1 {
		t.Error("a change with a character that acts can be allowed in the card")
	}
}

// A long change is bounded in a row and in a card, and whole where it is answered.
//
// proves PER-1
func TestDiffBox_IsBounded(t *testing.T) {
	t.Parallel()
	call := fixtures.AgentCall("edit", fixtures.AgentEdit("src/long.go", "", manyLines(1000, nil)))
	card := asked(call, "edit")
	doc := render(t, components.AskCard(card))
	if n := doc.Find(`[data-testid="diff"] > .diff tr`).Length(); n != 60 || card.Answerable() {
		t.Errorf("%d lines stand open in the card, answerable %v", n, card.Answerable())
	}
	fold := doc.Find(`[data-testid="whole-change"]:not([open])`)
	if fold.Find("tr").Length() != 400 || text(fold.Find("summary")) != "Show the whole change, 1000 lines" || !strings.Contains(text(doc.Selection), "600 more lines of the change") {
		t.Errorf("the fold has %d lines: %q", fold.Find("tr").Length(), text(fold.Find("summary")))
	}
	card.Own = true
	doc = render(t, components.AskCard(card))
	if n := doc.Find(`[data-testid="diff"] > .diff tr`).Length(); n != 1000 || !card.Answerable() || doc.Find(`[data-testid="decision-form"]`).Length() != 1 {
		t.Errorf("%d lines stand on its own page, answerable %v", n, card.Answerable())
	}
	if raw := doc.Find(`[data-testid="raw-input"]:not([open]) pre`); !strings.Contains(raw.Text(), `"newString"`) {
		t.Errorf("what the agent gave its tool isn't there: %.60q", raw.Text())
	}
	att := "att_1"
	w := window(t, &journal.CallProposed{CallID: "call_1", AttemptID: &att, Tool: "edit", Input: call.Input})
	w.Calls["call_1"] = call
	if n := render(t, components.JournalRow(components.Entries(w)[0], now)).Find(`#what-call_1 [data-testid="diff"] > .diff tr`).Length(); n != 12 {
		t.Errorf("%d lines stand open in the row", n)
	}
}

// Where the call isn't at hand, the request's own words show the change, and it
// can't be answered there.
func TestDiffBox_OfTheRequestAlone(t *testing.T) {
	t.Parallel()
	card := components.NewDecisionCard(asked(fixtures.AgentCall("edit", nil), "edit").Request, nil, now, "key")
	if got := diffRows(render(t, components.AskCard(card)).Find(`[data-testid="diff"]`)); got != "-removed: a|+added: b" {
		t.Errorf("got %s", got)
	}
	if card.Answerable() || card.Payload.Row() || card.Payload.Title() != "Edit src/round.go" || card.Payload.Files != "src/round.go" {
		t.Errorf("it is %+v", card.Payload)
	}
}

// What an agent calls its own is named by its command, its files, or its words.
func TestCallTitle_OfAnAgent(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]*journal.Call{
		"go test ./...":     fixtures.AgentCall("execute", fixtures.AgentCommand("go test ./...")),
		"Edit src/round.go": fixtures.AgentCall("edit", fixtures.AgentEdit("src/round.go", "a", "b")),
		"Read src/round.go": fixtures.AgentCall("read", fixtures.AgentTool("read", "Read src/round.go", "src/round.go")),
		"think":             fixtures.AgentCall("think", []byte(`{"title":"","kind":"think"}`)),
	} {
		p := components.CallPayload(c)
		if got := components.NewCallTitle(c.Tool, p); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if !p.Known {
			t.Errorf("%s: it isn't known", want)
		}
	}
	p := components.CallPayload(fixtures.AgentCall("execute", []byte(`{"title":"Run the tests","kind":"execute","input":{"command":"go test","description":"all of them"}}`)))
	if p.Text != "go test" || len(p.Said) != 2 || p.Said[0] != (components.Fact{Name: "description", Value: "all of them"}) || p.Said[1].Value != "Run the tests" {
		t.Errorf("it is %+v", p)
	}
	p = components.CallPayload(fixtures.AgentCall("execute", []byte(`{"title":"all of them","kind":"execute","input":{"command":"go test","description":"all of them"}}`)))
	if len(p.Said) != 1 || p.Said[0].Name != "description" {
		t.Errorf("what it calls it and its description are the same, and stand there as %+v", p.Said)
	}
}

// What an agent writes whole is called new only if nothing was there when it was asked:
// else it is shown over what it would replace, with its size, or as what isn't known.
//
// proves PER-2
func TestDiffBox_SaysWhatWouldBeReplaced(t *testing.T) {
	t.Parallel()
	call := fixtures.AgentCall("edit", []byte(`{"title":"Write","kind":"edit","diffs":[{"path":"/w/x.txt","old":null,"new":"x\n"}]}`))
	for _, c := range []struct{ seen, counts, rows string }{
		{`[{"path":"/w/x.txt","state":"new"}]`, "new file, +1", "+added: x"},
		{`[{"path":"/w/x.txt","state":"exists","bytes":13,"text":"all\nthere is\n"}]`, "replaces a file of 13 bytes, +1 −2", "-removed: all|-removed: there is|+added: x"},
		{`[{"path":"/w/x.txt","state":"exists","bytes":0,"text":""}]`, "replaces a file of 0 bytes, +1 −0", "+added: x"},
		{`[{"path":"/w/x.txt","state":"exists","bytes":4096}]`, "replaces a file of 4 KB, which isn’t shown, +1", "+added: x"},
		{`[{"path":"/w/x.txt","state":"unknown"}]`, "not known whether the file exists, +1", "+added: x"},
		{`[{"path":"/w/y/x.txt","state":"new"}]`, "not known whether the file exists, +1", "+added: x"},
		{`null`, "not known whether the file exists, +1", "+added: x"},
	} {
		meta := map[string]any{"ask": 7, "command_bytes": 5, "diff": "--- x.txt\n+++ x.txt\n+ x\n", "seen": json.RawMessage(c.seen)}
		r := fixtures.Request("Write", meta)
		r.Permission = "edit"
		card := components.NewDecisionCard(r, call, now, "key")
		doc := render(t, components.AskCard(card))
		if got := doc.Find(`[data-testid="diff"] .num`).Text(); got != c.counts || diffRows(doc.Find(`[data-testid="diff"]`)) != c.rows {
			t.Errorf("%s: it says %q, with %s", c.seen, got, diffRows(doc.Find(`[data-testid="diff"]`)))
		}
		if !card.Answerable() || strings.Contains(text(doc.Selection), `"state"`) {
			t.Errorf("%s: it can't be answered, or shows what it is made of: %s", c.seen, text(doc.Selection))
		}
		alone := components.NewDecisionCard(r, nil, now, "key")
		if got := alone.Payload.Diff.Files[0].Counts(); c.seen != "null" && !strings.Contains(c.seen, "/y/") && !strings.HasPrefix(got, strings.Split(c.counts, ", +")[0]) {
			t.Errorf("%s: the request alone says %q", c.seen, got)
		}
	}
	if got := components.CallPayload(call).Diff.Files[0].Counts(); got != "whole file, +1" {
		t.Errorf("the call says %q", got)
	}
}

// A last newline that comes or goes is a change, and is said.
//
// proves PER-2
func TestDiffBox_LastNewline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, text, rows string }{
		{"a\nb", "a\nb\n", ` a|-removed: b|\No newline at end of file|+added: b`},
		{"a\nb\n", "a\nb", ` a|-removed: b|+added: b|\No newline at end of file`},
		{"a", "b\n", `-removed: a|\No newline at end of file|+added: b`},
		{"a", "b", `-removed: a|+added: b`},
		{"a", "", `-removed: a`},
		{"", "a", `+added: a`},
	} {
		p := components.CallPayload(fixtures.AgentCall("edit", fixtures.AgentEdit("x", c.old, c.text)))
		if got := diffRows(render(t, components.DiffBox(*p.WholeDiff("d"))).Selection); got != c.rows {
			t.Errorf("%q to %q: %s", c.old, c.text, got)
		}
	}
	r := fixtures.Request("Write", map[string]any{"command_bytes": 5, "diff": "--- x\n+++ x\n- b\n\\ No newline at end of file\n+ b\n"})
	if got := diffRows(render(t, components.DiffBox(*components.RequestPayload(r, nil).WholeDiff("d"))).Selection); got != `-removed: b|\No newline at end of file|+added: b` {
		t.Errorf("the request alone: %s", got)
	}
}
