package components_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/views/components"
	"holdfast/views/internal/fixtures"
)

func window(t *testing.T, bodies ...journal.Body) components.Window {
	t.Helper()
	return fixtures.Window(bodies...)
}

// proves JRN-7
func TestEntries_EveryKind(t *testing.T) {
	t.Parallel()
	seen := map[journal.Kind]bool{}
	for _, tt := range fixtures.EveryKind() {
		seen[tt.Body.Kind()] = true
		w := window(t, tt.Body)
		w.Events[0].Actor = tt.Actor
		doc := render(t, components.JournalRow(components.Entries(w)[0], now))
		row := doc.Find("li#j-1")
		if got := text(row.Find(".body")); !strings.Contains(solid(got), solid(tt.Says)) {
			t.Errorf("%s: says %q, want %q", tt.Body.Kind(), got, tt.Says)
		}
		if _, hidden := row.Attr("hidden"); hidden {
			if tt.Says != "" {
				t.Errorf("%s: nothing is to be seen", tt.Body.Kind())
			}
			continue
		}
		if row.Find("svg.ico").Length() == 0 || row.Find(`a[href="#j-1"]`).Length() != 1 || row.Find("time[datetime]").Length() == 0 {
			t.Errorf("%s: the row has no shape, link or time", tt.Body.Kind())
		}
	}
	for kind := range journalKinds(t) {
		if !seen[kind] {
			t.Errorf("no row is drawn for %s", kind)
		}
	}
	strange := components.Entries(fixtures.Strange())
	for i, want := range []string{"weather.changed", "turn.ended (version 9)", "turn.ended"} {
		doc := render(t, components.JournalRow(strange[i], now))
		if got := text(doc.Find(".who")); !strings.Contains(got, want) || doc.Find("b").Length() != 0 {
			t.Errorf("an unknown entry says %q, want %q as an opaque row", got, want)
		}
	}
}

// Of what a row says in other words for each value, each value has a row, so that the
// gallery shows it.
func TestEntries_EveryNote(t *testing.T) {
	t.Parallel()
	var drawn strings.Builder
	for _, tt := range fixtures.EveryKind() {
		data, err := journal.Encode(tt.Body)
		if err != nil {
			t.Fatal(err)
		}
		drawn.Write(data)
	}
	for _, of := range []string{
		"Told", "Late", "AllowedByType", "Verdict", "Then", "BlockCause", "InterruptMode", "Reply", "Outcome", "TurnCause", "Part", "PlanState", "AgentMemory", "AgentOpening", "SettingOutcome", "AttemptVerdict",
	} {
		values := journalValues(t, of)
		if len(values) == 0 {
			t.Errorf("the journal has no values of %s", of)
		}
		for _, value := range values {
			if !strings.Contains(drawn.String(), `:"`+value+`"`) {
				t.Errorf("no row is drawn for the %s %q", of, value)
			}
		}
	}
}

// journalValues reads the named values of a type from where they are declared.
func journalValues(t *testing.T, of string) (out []string) {
	t.Helper()
	files, err := filepath.Glob("../../journal/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			name, named := spec.Type.(*ast.Ident)
			lit, text := spec.Values[0].(*ast.BasicLit)
			if named && text && name.Name == of && lit.Value != `""` {
				out = append(out, strings.Trim(lit.Value, `"`))
			}
			return true
		})
	}
	return out
}

// solid is a text without blanks: blocks that follow each other have none between them.
func solid(s string) string { return strings.ReplaceAll(s, " ", "") }

// journalKinds reads the kinds from their declaration, so that a new one can't be forgotten here.
func journalKinds(t *testing.T) map[journal.Kind]bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../../journal/bodies.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[journal.Kind]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Kind") {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
			out[journal.Kind(strings.Trim(lit.Value, `"`))] = true
		}
		return true
	})
	if len(out) < 30 {
		t.Fatalf("found %d kinds only", len(out))
	}
	return out
}

// Pieces of one output stand together once, at the row where the call ended; each has a row all the same.
func TestEntries_OutputStandsOnce(t *testing.T) {
	t.Parallel()
	var bodies []journal.Body
	var all strings.Builder
	for i := range 100 {
		line := fmt.Sprintf("line %d\n", i)
		bodies = append(bodies, &journal.CallOutput{CallID: "call_1", Offset: int64(all.Len()), Text: journal.T(line)})
		all.WriteString(line)
	}
	zero := 0
	w := window(t, append(bodies, &journal.CallSettled{CallID: "call_1", State: journal.CallSucceeded, ExitCode: &zero, OutputBytes: int64(all.Len())})...)
	w.Outputs = map[string]components.Ends{"call_1": allOf(all.String())}
	list := components.Entries(w)
	if len(list) != 101 {
		t.Fatalf("got %d rows, want one for each event", len(list))
	}
	for i, e := range list {
		if last := i == len(list)-1; (e.Output != nil) != last || e.Piece == last {
			t.Errorf("row %d of %d: output %v, a piece %v", i, len(list), e.Output != nil, e.Piece)
		}
	}
	out := render(t, components.JournalRow(list[100], now)).Find(`[data-testid="output"]`)
	if got := text(out.Find(`[data-testid="output-last"]`)); !strings.HasPrefix(got, "line 94 ") || !strings.HasSuffix(got, "line 99") {
		t.Errorf("what stands open is %q, want the last 6 lines", got)
	}
	folded := out.Find("details:not([open])")
	if got := text(folded); strings.Count(folded.Find("pre").Text(), "line ") != 94 || !strings.HasPrefix(got, "Show 94 lines before these") {
		t.Errorf("folded is %q, want the first 94 lines", got)
	}
	if !strings.Contains(text(out), "Last 6 of 100 lines, 790 bytes") || out.Find(`a[href="/calls/call_1/output"]`).Length() != 1 || out.Find(`a[href="/calls/call_1/output?download=1"]`).Length() != 1 {
		t.Errorf("it isn't said how much there is and where all of it is: %s", text(out))
	}
	if out.Find("pre[tabindex='0'][aria-label]").Length() != 2 {
		t.Error("the output can't be reached by keyboard")
	}
}

// Each number of the journal stands at a row: a piece at the one that shows it (RDR-4).
func TestEntries_NameThePiecesBetweenThem(t *testing.T) {
	t.Parallel()
	out := func() journal.Body {
		return &journal.CallOutput{CallID: "call_1", Stream: "stdout", Text: journal.Text{S: "x\n"}}
	}
	w := window(t, &journal.TurnStarted{TurnID: "trn_1"}, out(), &journal.CallSettled{CallID: "call_1", State: journal.CallSucceeded}, &journal.TurnEnded{TurnID: "trn_1", Outcome: journal.Completed}, out(), out(), &journal.TurnStarted{TurnID: "trn_2"})
	first := w.Events[0].Seq
	num := func(n int64) string { return components.Number(first + n) }
	windows := map[string]components.Window{"every event": w}
	w.Events = slices.DeleteFunc(slices.Clone(w.Events), func(ev journal.Event) bool { return ev.Kind == journal.KindCallOutput })
	windows["without the pieces"] = w
	for name, w := range windows {
		var got []string
		for _, e := range components.Entries(w) {
			if doc := render(t, components.JournalRow(e, now)); !e.Piece {
				got = append(got, text(doc.Find(".rail .with")))
			}
		}
		if want := []string{"", "with " + num(1), "", "with " + num(4) + " to " + num(5)}; !slices.Equal(got, want) {
			t.Errorf("%s: the rows say %q, want %q", name, got, want)
		}
	}
}

// proves JRN-6
func TestEntries_LongTextIsBounded(t *testing.T) {
	t.Parallel()
	w := window(t, &journal.PromptPromoted{PromptID: "inp_1", Delivery: journal.Queue})
	w.Texts["inp_1"] = strings.Repeat("ä", 128<<10)
	doc := render(t, components.JournalRow(components.Entries(w)[0], now))
	prose := doc.Find(".prose").Text()
	if len(prose) > 17<<10 || strings.Contains(prose, "\ufffd") {
		t.Errorf("%d bytes are shown", len(prose))
	}
	if got := text(doc.Find(".body")); !strings.Contains(got, "240 KB more stand in the export") {
		t.Errorf("it isn't said that text is left out")
	}
}

// A call that never began wasn't ended.
func TestEntries_CancelledBeforeItStarted(t *testing.T) {
	t.Parallel()
	gate := window(t, &journal.CallSettled{CallID: "call_1", State: journal.CallCancelled, Reason: journal.ReasonNotStarted})
	gate.Calls["call_1"].DispatchedAt = now
	if got := text(render(t, components.JournalRow(components.Entries(gate)[0], now)).Find(".body")); !strings.Contains(got, "It never began: the server stopped, or was lost, between its dispatch and its start. Nothing of it ran.") {
		t.Errorf("dispatched, and its gate never opened: says %q", got)
	}
	for started, want := range map[int64]string{0: "It was not started.", now: "It was ended, because a stop was asked for."} {
		w := window(t, &journal.CallSettled{CallID: "call_1", State: journal.CallCancelled, Reason: "interrupted"})
		w.Calls["call_1"].DispatchedAt = started
		if got := text(render(t, components.JournalRow(components.Entries(w)[0], now)).Find(".body")); !strings.Contains(got, want) {
			t.Errorf("started at %d: says %q, want %q", started, got, want)
		}
	}
}
