package components_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"holdfast/journal"
	"holdfast/views/components"
)

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

// proves JRN-6
func TestOutputBox(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text                  string
		failed                bool
		first, earlier, last  int
		leftOut, says, starts string
	}{
		"empty":                 {says: "0 bytes"},
		"one line":              {text: "ok\n", last: 1, says: "1 line, 3 bytes", starts: "ok"},
		"six":                   {text: numbered(6), last: 6, says: "6 lines", starts: "line 1 "},
		"seven":                 {text: numbered(7), earlier: 1, last: 6, says: "Last 6 of 7 lines", starts: "line 2 "},
		"two hundred":           {text: numbered(200), earlier: 194, last: 6, says: "Last 6 of 200 lines", starts: "line 195 "},
		"more":                  {text: numbered(1000), earlier: 194, last: 6, leftOut: "800 lines left out here", says: "Last 6 of 1000 lines", starts: "line 995 "},
		"few long lines":        {text: strings.Repeat(strings.Repeat("x", 1500)+"\n", 40), earlier: 15, last: 6, leftOut: "19 lines left out here", says: "Last 6 of 40 lines"},
		"failed, short":         {text: numbered(60), failed: true, last: 60, says: "60 lines", starts: "line 1 "},
		"failed":                {text: numbered(100), failed: true, first: 20, last: 40, leftOut: "40 lines left out here", says: "First 20 and last 40 of 100 lines", starts: "line 61 "},
		"failed, without lines": {text: strings.Repeat("x", 10<<20), failed: true, last: 1, says: "1 line, 10.0 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			doc := render(t, components.OutputBox(components.NewOutput("out-1", "call_1", "Output of make", allOf(tt.text), tt.failed)))
			lines := func(which string) int {
				return components.Lines(doc.Find(`[data-testid="output-` + which + `"]`).Text())
			}
			if lines("first") != tt.first || lines("earlier") != tt.earlier || lines("last") != tt.last {
				t.Errorf("%d first, %d folded and %d last lines, want %d, %d, %d", lines("first"), lines("earlier"), lines("last"), tt.first, tt.earlier, tt.last)
			}
			if got := text(doc.Find(".out-gap")); got != tt.leftOut {
				t.Errorf("left out: %q, want %q", got, tt.leftOut)
			}
			if got := text(doc.Find(".out-f")); !strings.HasPrefix(got, tt.says) {
				t.Errorf("says %q, want %q", got, tt.says)
			}
			if got := text(doc.Find(`[data-testid="output-last"]`)); !strings.HasPrefix(got+" ", tt.starts) {
				t.Errorf("the open lines start with %.40q, want %q", got, tt.starts)
			}
			if n := len(doc.Find("pre").Text()); n > 33<<10 {
				t.Errorf("%d bytes are shown", n)
			}
			labels := map[string]bool{}
			doc.Find("pre").Each(func(_ int, pre *goquery.Selection) {
				label := pre.AttrOr("aria-label", "")
				if pre.AttrOr("tabindex", "") != "0" || pre.AttrOr("role", "") != "region" || !strings.HasPrefix(label, "Output of make, ") || labels[label] {
					t.Errorf("a part that isn't a region with a name of its own: %q", label)
				}
				labels[label] = true
			})
		})
	}
}

// A line that is too long is cut between two characters, never in a colour.
func TestOutputBox_LongLines(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ in, ends string }{
		"a million":        {strings.Repeat("x", 1<<20), "… 1022 KB more on this line"},
		"two thousand":     {strings.Repeat("ä", 2000), "ä"},
		"wide":             {strings.Repeat("漢", 3000), "… 3 KB more on this line"},
		"cut in a colour":  {strings.Repeat("x", 1998) + "\x1b[31mred\x1b[0m", "x… 12 bytes more on this line"},
		"a cut emoji":      {strings.Repeat("x", 1999) + "\xf0\x9f\x92", "\ufffd"},
		"joined by colour": {"\x1b[31m" + strings.Repeat("y", 4000), "… 2 KB more on this line"},
	} {
		doc := render(t, components.OutputBox(components.NewOutput("out-1", "call_1", "Output", allOf(tt.in), false)))
		got := strings.TrimPrefix(doc.Find("pre").Text(), "\n")
		if !strings.HasSuffix(got, tt.ends) || strings.Contains(got, `\x1b`) || len([]rune(got)) > 2040 {
			t.Errorf("%s: %d characters, ends with %q, want %q", name, len([]rune(got)), got[max(len(got)-60, 0):], tt.ends)
		}
	}
}

// What is shown is bounded before it is drawn: the size of the whole costs next to nothing.
func TestOutputBox_BoundedBeforeDrawing(t *testing.T) {
	for name, text := range map[string]string{
		"10 MiB of lines": strings.Repeat("line\n", 2<<20), "10 MiB of newlines": strings.Repeat("\n", 10<<20), "10 MiB in a line": strings.Repeat("x", 10<<20),
		"10 MiB of colours": strings.Repeat("\x1b[31mx\x1b[32my", 1<<20), "10 MiB of NUL": strings.Repeat("\x00", 10<<20), "10 MiB of returns": strings.Repeat("x\r", 5<<20),
	} {
		began := time.Now()
		doc := render(t, components.OutputBox(components.NewOutput("out-1", "call_1", "Output", allOf(text), false)))
		took := time.Since(began)
		t.Logf("%-18s %s", name, took.Round(time.Millisecond))
		if html, _ := doc.Html(); len(html) > 1<<20 {
			t.Errorf("%s: %d bytes of markup", name, len(html))
		}
	}
}

func allOf(s string) components.Ends { return components.Ends{Head: s, Total: int64(len(s))} }

// Of an output whose middle isn't at hand both ends are shown, and how much is left out.
func TestOutputBox_Ends(t *testing.T) {
	t.Parallel()
	ends := components.Ends{Head: "first\nsecond", Tail: "rest of a line\n" + numbered(50), Total: 10 << 20}
	doc := render(t, components.OutputBox(components.NewOutput("out-1", "call_1", "Output", ends, false)))
	if got := text(doc.Find(".out-f")); !strings.HasPrefix(got, "Last 6, 10.0 MB") {
		t.Errorf("says %q", got)
	}
	if got := text(doc.Find("pre")); strings.Contains(got, "rest of a line") || strings.Contains(got, "first") || !strings.HasSuffix(got, "line 50") {
		t.Errorf("shows %q", got)
	}
	doc = render(t, components.OutputBox(components.NewOutput("out-1", "call_1", "Output", ends, true)))
	if got := text(doc.Find(`[data-testid="output-first"]`)); got != "first second" {
		t.Errorf("begins with %q", got)
	}
	if got := text(doc.Find(".out-gap")); !strings.HasSuffix(got, "MB left out here") {
		t.Errorf("left out: %q", got)
	}
}

// A running call's box stands in the row of its start; its end empties it and
// has one of its own. Pieces are rows without text.
//
// proves RDR-4
func TestEntries_OutputOfARunningCall(t *testing.T) {
	t.Parallel()
	w := window(t, &journal.CallDispatched{CallID: "call_1", N: 1}, &journal.CallOutput{CallID: "call_1", Text: journal.Text{S: "hi\n"}})
	w.Calls["call_1"].State, w.Calls["call_1"].N = journal.CallIsDispatched, 1
	w.Outputs = map[string]components.Ends{"call_1": allOf("hi\n")}
	es := components.Entries(w)
	doc := render(t, components.JournalRow(es[0], now))
	if got := text(doc.Find("#live-call_1 pre")); got != "hi" {
		t.Errorf("the box says %q", got)
	}
	doc = render(t, components.JournalRow(es[1], now))
	li := doc.Find("li[data-seq]")
	if _, hidden := li.Attr("hidden"); !hidden || text(li) != "" || li.AttrOr("id", "") != components.EntryID(es[1].Seq) {
		t.Error("a piece of output is no empty row")
	}
	w.Calls["call_1"].State = journal.CallSucceeded
	doc = render(t, components.LiveOutputs([]components.LiveOutput{components.NewLiveOutput(w.Calls["call_1"], w.Outputs["call_1"])}))
	if box := doc.Find("#live-call_1[hx-swap-oob]"); box.Length() != 1 || text(box) != "" {
		t.Error("the end of a call doesn't empty its box")
	}
	zero := 0
	end := window(t, &journal.CallSettled{CallID: "call_1", State: journal.CallSucceeded, ExitCode: &zero})
	end.Outputs = w.Outputs
	end.Calls["call_1"].OutputBytes = 3
	doc = render(t, components.JournalRow(components.Entries(end)[0], now))
	if got := text(doc.Find("pre")); got != "hi" {
		t.Errorf("the end shows %q", got)
	}
}
