package runbook

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"holdfast/journal"
)

func TestParse(t *testing.T) {
	t.Parallel()
	blocks, err := parse(strings.Join([]string{
		"# Set up", "words", "```sh", "echo one", "echo two", "```",
		"```python", "print(1)", "```", "```", "no language", "```",
		"## Build *it*", "~~~bash name=\"two words\" effect=read timeout=90s on-error=continue", "x=1", "~~~",
		"1. in a list", "   ```sh effect=idempotent", "   cd a", "     ls", "   ```", "", "    indented, not fenced",
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []block{
		{Shell: "sh", Script: "echo one\necho two\n", Name: "Set up", Effect: journal.EffectEffect},
		{Shell: "bash", Script: "x=1\n", Name: "two words", Effect: journal.EffectRead, Timeout: 90 * time.Second, Continue: true},
		{Shell: "sh", Script: "cd a\n  ls\n", Name: "Build it", Effect: journal.EffectIdempotent},
	}
	if len(blocks) != len(want) {
		t.Fatalf("%d blocks %+v, want %d", len(blocks), blocks, len(want))
	}
	for i := range want {
		if blocks[i] != want[i] {
			t.Errorf("block %d\n got %+v\nwant %+v", i+1, blocks[i], want[i])
		}
	}
}

func TestParse_NamesAStepWithoutHeading(t *testing.T) {
	t.Parallel()
	blocks, err := parse("```sh\na\n```\n```sh\nb\n```\n")
	if err != nil || len(blocks) != 2 || blocks[1].Name != "Step 2" {
		t.Errorf("blocks %+v, %v", blocks, err)
	}
}

func TestParse_RefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, info := range []string{"effect=none", "effect=", "timeout=5", "timeout=0s", "timeout=-1m", "timeout=soon", "on-error=maybe", "retries=3", "name=\"open", "typo"} {
		blocks, err := parse("```sh\nfine\n```\n\n```sh " + info + "\nx\n```\n")
		if err == nil || !strings.Contains(err.Error(), "Block 2") {
			t.Errorf("sh %s: %+v, %v; want an error that names block 2", info, blocks, err)
		}
	}
}

func TestParse_Nothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "just words", "```\nplain\n```", "```shell\nx\n```", "```SH\nx\n```", "<pre>sh</pre>"} {
		if blocks, err := parse(text); err != nil || len(blocks) != 0 {
			t.Errorf("%q: %+v, %v; want no step", text, blocks, err)
		}
	}
}

// A text that is made to be slow is read at once, or refused.
func TestParse_HostileTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("*a_ ", 50_000), strings.Repeat("![](", 60_000), strings.Repeat("[", 200_000), strings.Repeat("`a", 100_000), strings.Repeat("- ", 30_000)} {
		if blocks, err := parse(text); err != nil || len(blocks) != 0 {
			t.Errorf("%.10q: %d blocks, %v", text, len(blocks), err)
		}
	}
	for _, text := range []string{strings.Repeat("- ", 30_000) + "a", strings.Repeat(">", 60_000), strings.Repeat("1. ", 20_000) + "a"} {
		if _, err := parse(text); err == nil {
			t.Errorf("%.10q: nested too deeply, and taken", text)
		}
	}
	for _, text := range []string{strings.Repeat("-", 200), strings.Repeat("* ", 100), strings.Repeat("-- ", 100)} {
		if _, err := parse(text + "\n\n```sh\na\n```\n"); err != nil {
			t.Errorf("%.10q is a rule: %v", text, err)
		}
	}
}

// What the journal hides isn't what was handed over: it must not run.
//
// proves CAL-1 OWN-3
func TestParse_RefusesAMaskedStep(t *testing.T) {
	t.Parallel()
	if blocks, err := parse("about " + journal.Hidden + "\n\n```sh\necho fine\n```\n"); err != nil || len(blocks) != 1 {
		t.Errorf("words beside a step: %v, %v", blocks, err)
	}
	if _, err := parse("```sh\nrm -f " + journal.Hidden + "\n```\n"); err == nil || !strings.Contains(err.Error(), "Block 1") {
		t.Errorf("a masked step: %v, want it refused", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("# a\n```sh name=\"b\"\nc\n```")
	f.Add("```sh timeout=\n")
	f.Fuzz(func(t *testing.T, text string) {
		blocks, err := parse(text)
		if err != nil {
			return
		}
		for _, b := range blocks {
			if b.Name == "" || (b.Shell != "sh" && b.Shell != "bash") {
				t.Errorf("block %+v of %q", b, text)
			}
		}
	})
}

// Nothing that fits into a message takes long to read: it can't be stopped.
func TestParse_BoundedWork(t *testing.T) {
	const size = 256 << 10
	fill := func(s, with string) string { return s + strings.Repeat(with, (size-len(s))/len(with)) }
	stairs := func(step, mark string) string { // each line deeper than the one before
		var b strings.Builder
		for i := range 98 {
			b.WriteString(strings.Repeat(step, i) + mark + "a\n")
		}
		return b.String()
	}
	spread := strings.Repeat(" ", 98) + strings.Repeat("- ", 49) + "a\n"
	for name, text := range map[string]string{
		"one deep line, then blank ones": fill(strings.Repeat("- ", 49)+"a\n", "\n"),
		"stairs of lists":                fill(stairs("  ", "- "), "\n"),
		"stairs with tabs":               fill(stairs("\t", "- "), "\n"),
		"stairs of numbers":              fill(stairs("   ", "1. "), "\n"),
		"indented and deep":              fill(strings.Repeat(spread, 40), "\n"),
		"quotes":                         fill(strings.Repeat(">", 49)+"a\n", "\n"),
		"quotes, lazily":                 fill(strings.Repeat("> ", 49)+"a\n", "a\n"),
		"mixed":                          fill(strings.Repeat("> - ", 24)+"a\n", "> \n"),
		"lists of one line each":         fill("", "- a\n"),
		"many lists, ten deep":           fill("", strings.Repeat("- ", 10)+"a\n"),
		"fences":                         fill("", "```sh\n"),
		"headings":                       fill("", "# a\n"),
	} {
		t.Run(name, func(t *testing.T) { // one at a time: what is allocated is counted for the process
			before := allocated()
			blocks, err := parse(text)
			if took := allocated() - before; took > 1<<30 {
				t.Errorf("%d MB were allocated for %d blocks, %v", took>>20, len(blocks), err)
			}
		})
	}
	if _, err := parse(strings.Repeat("- a\n  - b\n    - c\n\n", 300) + "```sh\ntrue\n```\n" + strings.Repeat("text\n", 3000)); err != nil {
		t.Errorf("an honest mission is refused: %v", err)
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
