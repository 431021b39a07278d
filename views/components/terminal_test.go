package components_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"holdfast/views/components"
)

// markup is what a component writes.
func markup(t *testing.T, h components.SafeHTML) string {
	t.Helper()
	var b strings.Builder
	if err := h.Component().Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ in, want string }{
		"plain":              {"two\nlines\tand  blanks  \n", "two\nlines\tand  blanks  \n"},
		"empty":              {"", ""},
		"empty lines":        {"a\n\n\nb", "a\n\n\nb"},
		"red":                {"\x1b[31mred\x1b[0m plain", `<span class="ansi-red">red</span> plain`},
		"short reset":        {"\x1b[1;32mok\x1b[m.", `<span class="ansi-green ansi-bold">ok</span>.`},
		"over lines":         {"\x1b[33ma\nb\x1b[39mc", "<span class=\"ansi-yellow\">a</span>\n<span class=\"ansi-yellow\">b</span>c"},
		"bright":             {"\x1b[94mx\x1b[90my", `<span class="ansi-blue">x</span><span class="ansi-dim">y</span>`},
		"weights":            {"\x1b[2ma\x1b[22;3mb\x1b[23;4mc\x1b[24;9md", `<span class="ansi-dim">a</span><span class="ansi-italic">b</span><span class="ansi-underline">c</span><span class="ansi-strike">d</span>`},
		"of 256":             {"\x1b[38;5;9ma\x1b[38;5;46mb\x1b[38;5;244mc\x1b[38;5;255md", `<span class="ansi-red">a</span><span class="ansi-green">b</span><span class="ansi-dim">c</span>d`},
		"of 16 million":      {"\x1b[38;2;250;20;10ma\x1b[38:2::20:30:250mb", `<span class="ansi-red">a</span><span class="ansi-blue">b</span>`},
		"background":         {"\x1b[41;31mred on red\x1b[48;5;3;1mx", `<span class="ansi-red">red on red</span><span class="ansi-red ansi-bold">x</span>`},
		"concealed":          {"\x1b[8msecret", "secret"},
		"blinking":           {"\x1b[5mx\x1b[6my", "xy"},
		"broken colour":      {"\x1b[38;5mx\x1b[99999999999999999999my", "xy"},
		"unended":            {"end \x1b[31", `end <span class="esc">\x1b</span>[31`},
		"endless numbers":    {"\x1b[" + strings.Repeat("1;", 60) + "m", `<span class="esc">\x1b</span>[` + strings.Repeat("1;", 60) + "m"},
		"erase":              {"rm -rf /\x1b[2K\x1b[1Gls", `rm -rf /<span class="esc">\x1b</span>[2K<span class="esc">\x1b</span>[1Gls`},
		"cursor":             {"\x1b[99999;99999H\x1b[5A\x1bMx", `<span class="esc">\x1b</span>[99999;99999H<span class="esc">\x1b</span>[5A<span class="esc">\x1b</span>Mx`},
		"private":            {"\x1b[?1049h", `<span class="esc">\x1b</span>[?1049h`},
		"link":               {"\x1b]8;;http://evil.example\x1b\\here\x1b]8;;\x1b\\", `<span class="esc">\x1b</span>]8;;http://evil.example<span class="esc">\x1b</span>\here<span class="esc">\x1b</span>]8;;<span class="esc">\x1b</span>\`},
		"image":              {"\x1b]1338;url=http://evil.example/x.png\a", `<span class="esc">\x1b</span>]1338;url=http://evil.example/x.png<span class="esc">\x07</span>`},
		"time of buildkite":  {"\x1b_bk;t=1\a", `<span class="esc">\x1b</span>_bk;t=1<span class="esc">\x07</span>`},
		"single byte":        {"\u009b31mx", `<span class="esc">\x9b</span>31mx`},
		"nul and backspace":  {"a\x00b\bc", `a<span class="esc">\x00</span>b<span class="esc">\x08</span>c`},
		"bidirectional":      {"a\u202eb", `a<span class="esc">\u202e</span>b`},
		"escape in a colour": {"\x1b[31ma\x00b", `<span class="ansi-red">a</span><span class="esc">\x00</span><span class="ansi-red">b</span>`},
		"carriage returns":   {"10%\r100%\r\nnext\r\r\nlast", "10%\n100%\nnext\nlast"},
		"markup":             {`<img src=x onerror=alert(1)></pre><script>x</script>&amp;"'`, `&lt;img src=x onerror=alert(1)&gt;&lt;/pre&gt;&lt;script&gt;x&lt;/script&gt;&amp;amp;&#34;&#39;`},
		"classes as text":    {`<span class="esc">\x1b</span>`, `&lt;span class=&#34;esc&#34;&gt;\x1b&lt;/span&gt;`},
		"cut emoji":          {"ok \xf0\x9f\x92", "ok \ufffd"},
		"emoji":              {"👩\u200d💻 漢字", "👩\u200d💻 漢字"},
	} {
		if got := markup(t, components.Terminal(tt.in)); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tt.want)
		}
	}
}

// All of a line is drawn, whatever its length, and each piece joins the next.
func TestTerminal_LongLine(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("ab ", 5000) + "end"
	if got := markup(t, components.Terminal(line)); got != line {
		t.Errorf("%d bytes became %d", len(line), len(got))
	}
	coloured := strings.NewReplacer(`<span class="ansi-red">`, "", "</span>", "").Replace(markup(t, components.Terminal("\x1b[31m"+line)))
	if coloured != line {
		t.Errorf("%d bytes in a colour became %d", len(line), len(coloured))
	}
}

// What a command writes bounds neither memory nor time by itself.
func TestTerminal_HostileIsCheap(t *testing.T) {
	const size = 10 << 20
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for name, in := range map[string]string{
		"one line": fill("x"), "newlines": fill("\n"), "cursor down": fill("\x1b[9999B\nx"), "cursor right": fill("\x1b[9999Cx"), "colours": fill("\x1b[31mx\x1b[32my"),
		"256 colours": fill("\x1b[38;5;123mx"), "open link": "\x1b]8;;http://x" + fill("y"), "open sequence": "\x1b[" + fill("1;"), "escapes": fill("\x1b"), "nul": fill("\x00"), "markup": fill("<b>"), "reverse": fill("\u202e"),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		got := markup(t, components.Terminal(in))
		took := time.Since(began)
		runtime.ReadMemStats(&after)
		t.Logf("%-14s %8s of markup, %s allocated, %s", name, components.Bytes(int64(len(got))), components.Bytes(int64(after.TotalAlloc-before.TotalAlloc)), took.Round(time.Millisecond))
		if alloc := after.TotalAlloc - before.TotalAlloc; alloc > raced*(256<<20) {
			t.Errorf("%s: allocated %s", name, components.Bytes(int64(alloc)))
		}
		if len(got) > 64*(256<<10) {
			t.Errorf("%s: %d bytes of markup", name, len(got))
		}
	}
}

func FuzzTerminal(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m <b>\x00")
	f.Fuzz(func(t *testing.T, s string) {
		got := markup(t, components.Terminal(s))
		for i, part := range strings.Split(got, "<") {
			if i > 0 && !strings.HasPrefix(part, `span class="`) && !strings.HasPrefix(part, "/span>") && !strings.HasPrefix(part, "span>") {
				t.Errorf("%q became %s", s, got)
			}
		}
		if components.Hides(got) {
			t.Errorf("%q: an acting character stays in %s", s, fmt.Sprintf("%q", got))
		}
	})
}
