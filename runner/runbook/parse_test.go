package runbook

import (
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
