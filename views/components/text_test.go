package components_test

import (
	"strings"
	"testing"

	"holdfast/views/components"
)

func TestSegments(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain":                 "plain",
		"two\nlines\tand":       "two\nlines\tand",
		"crlf\r\nis a line":     "crlf\nis a line",
		"a\rb":                  `a[\x0d]b`,
		"\x1b[31mred":           `[\x1b][31mred`,
		"a\u202eb\u2066c":       `a[\u202e]b[\u2066]c`,
		"zero\u200bwidth\ufeff": `zero[\u200b]width[\ufeff]`,
		"tag\U000e0041":         `tag[\U000e0041]`,
		"line\u2028sep":         `line[\u2028]sep`,
		"👩\u200d💻 ok":           "👩\u200d💻 ok",
		"שלום ä 漢字":             "שלום ä 漢字",
		"\u007f":                `[\x7f]`,
		"":                      "",
		"already \\x1b as text": `already \x1b as text`,
		"\u202e\u202e":          `[\u202e][\u202e]`,
	} {
		var b strings.Builder
		for _, s := range components.Segments(in) {
			if s.Escape {
				b.WriteString("[" + s.Text + "]")
			} else {
				b.WriteString(s.Text)
			}
		}
		if b.String() != want {
			t.Errorf("%q: got %s, want %s", in, b.String(), want)
		}
		if components.Hides(in) != strings.Contains(want, "[") && !strings.Contains(in, "[") {
			t.Errorf("%q: hides %v", in, components.Hides(in))
		}
	}
}

func TestText_IsNeverMarkup(t *testing.T) {
	t.Parallel()
	hostile := "<img src=x onerror=alert(1)>\n<script>alert(1)</script>\"'&amp;\u202e</pre></textarea>"
	for name, doc := range map[string]string{
		"text":  "<pre>" + draw(t, hostile, false) + "</pre>",
		"typed": "<textarea>" + draw(t, hostile, true) + "</textarea>",
	} {
		if strings.Contains(doc, "<img") || strings.Contains(doc, "<script") || strings.Contains(doc, "</pre></textarea>") {
			t.Errorf("%s: markup got through: %s", name, doc)
		}
	}
}

func draw(t *testing.T, s string, typed bool) string {
	t.Helper()
	var b strings.Builder
	c := components.Pre(s)
	if typed {
		c = components.Typed(s)
	}
	if err := c.Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestHeadTail(t *testing.T) {
	t.Parallel()
	lines := strings.Split(strings.TrimSuffix(strings.Repeat("x\n", 100), "\n"), "\n")
	for i := range lines {
		lines[i] = "line"
	}
	first, last, left := components.HeadTail(strings.Join(lines, "\n")+"\n", 20, 40)
	if components.Lines(first) != 20 || components.Lines(last) != 40 || left != 40 {
		t.Errorf("got %d, %d and %d left out of 100", components.Lines(first), components.Lines(last), left)
	}
	if first, last, left := components.HeadTail("a\nb\n", 20, 40); first != "a\nb" || last != "" || left != 0 {
		t.Errorf("a short text: %q %q %d", first, last, left)
	}
	if first, _, _ := components.HeadTail(strings.Repeat("y", 10_000), 20, 40); len(first) > 2100 || !strings.HasSuffix(first, "more on this line") {
		t.Errorf("a long line has %d bytes", len(first))
	}
	if got := components.Uncoloured("\x1b[1;31mred\x1b[0m \x1b[2J"); got != "red \x1b[2J" {
		t.Errorf("colours: %q", got)
	}
}

func TestStamp(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ms      int64
		seconds bool
		want    string
	}{
		{now - 240_000, false, "13:22"},
		{now - 240_000, true, "13:22:00"},
		{now - 24*3600_000, false, "28 Nov 13:26"},
		{now - 365*24*3600_000, false, "29 Nov 2025 13:26"},
	} {
		if got := components.Stamp(tt.ms, now, tt.seconds); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	for ms, want := range map[int64]string{40: "less than 0.1 s", 4100: "4.1 s", 45_000: "45 s", 240_000: "4 min", 11_280_000: "3 h 8 min", 187_200_000: "2 d 4 h", 3_600_000: "1 h", -5: "0 s"} {
		if got := components.Took(ms); got != want {
			t.Errorf("%d ms: got %q, want %q", ms, got, want)
		}
	}
	if got := components.Ago(-3000); got != "0 s" {
		t.Errorf("a time ahead is %q ago", got)
	}
}

func TestOrdinal(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 112: "112th"} {
		if got := components.Ordinal(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

func TestBrief(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("very ", 40)
	for in, want := range map[string]string{
		"":                            "",
		"The step “test” failed.":     "The step “test” failed.",
		"It failed":                   "It failed.",
		"It failed. See v1.2. Go on.": "It failed.",
		"Version 1.2 is wrong..":      "Version 1.2 is wrong.",
		"What now? Nothing.":          "What now?",
		`The agent has no memory of this conversation any more: Resource not found: 7b68 ({"uri":"7b68"}). Nothing was sent.`: "The agent has no memory of this conversation any more: Resource not found: 7b68…",
		"It refused the whole of the conversation that was sent: " + long + "end.":                                            "It refused the whole of the conversation that was sent…",
		long:                     strings.TrimSpace(strings.Repeat("very ", 24)) + "…",
		strings.Repeat("x", 200): strings.Repeat("x", 120) + "…",
		// What stands in quotes somebody else wrote: it ends no sentence, and is cut within them.
		"The agent answered with an error: “All is well. Go home.”. Nothing was sent.":           "The agent answered with an error: “All is well. Go home.”.",
		"The agent answered with an error: “" + strings.TrimSpace(long) + "”. Nothing was sent.": "The agent answered with an error: “" + strings.TrimSpace(strings.Repeat("very ", 16)) + "…”",
		"The agent said “" + strings.TrimSpace(long) + "”. Nothing was sent.":                    "The agent said “" + strings.TrimSpace(strings.Repeat("very ", 20)) + "…”",
	} {
		if got := components.Brief(in); got != want {
			t.Errorf("%q is brief as %q, want %q", in, got, want)
		}
	}
}
