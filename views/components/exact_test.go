package components_test

import (
	"strings"
	"testing"

	"github.com/a-h/templ"

	"holdfast/journal"
	"holdfast/views/components"
)

func drawn(t *testing.T, c templ.Component) string {
	t.Helper()
	var b strings.Builder
	if err := c.Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What has no ink of its own is seen in a command, and what stands first in it is drawn
// first, whatever script it is of.
// proves PER-1
func TestExact(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{ // in pairs: tools differ on how wide some letters are
		{"rm -rf ./a b", "rm -rf ./a b"},
		{"two\n\tlines\r\nand", "two\n\tlines\nand"},
		{"naïve 漢字 é", "naïve 漢字 é"},
		{"<b>", "&lt;b&gt;"},
		{"a\u00a0b\u3000c\u2007d", `a[\xa0]b[\u3000]c[\u2007]d`},
		{"a\u2800b\u034fc\u00add", `a[\u2800]b[\u034f]c[\xad]d`},
		{"a\ufe0fb\ufe00c\U000e0100", `a[\ufe0f]b[\ufe00]c[\U000e0100]`},
		{"a\u115fb\u1160c\u3164d\uffa0\u180b\u17b4", `a[\u115f]b[\u1160]c[\u3164]d[\uffa0][\u180b][\u17b4]`},
		{"a\U000e0041\U000e0001\U000e0fff", `a[\U000e0041][\U000e0001][\U000e0fff]`},
		{"a\u200db\u200cc\u2028d\u202ee", `a[\u200d]b[\u200c]c[\u2028]d[\u202e]e`},
		{"echo الع rm ا 123", "echo {الع} rm {ا} 123"},
		{"ا/ب ١-٢ שָׁ!", "{ا}/{ب} {١}-{٢} {שָׁ}!"},
	} {
		in, want := c[0], c[1]
		got := strings.NewReplacer(`<span class="esc">`, "[", "</span>", "]", "<bdi>", "{", "</bdi>", "}").Replace(drawn(t, components.Exact(in)))
		if got != want {
			t.Errorf("%q is drawn as %s, want %s", in, got, want)
		}
		if components.HidesExact(in) != strings.Contains(want, "[") {
			t.Errorf("%q: hides %v", in, components.HidesExact(in))
		}
		if got := components.PlainExact(in); got != strings.NewReplacer("[", "", "]", "", "{", "", "}", "", "&lt;", "<", "&gt;", ">").Replace(want) {
			t.Errorf("%q is %q in plain", in, got)
		}
	}
	// Prose keeps what its emoji and its sentences need.
	for _, in := range []string{"❤\ufe0f", "10\u00a0%", "👩\u200d💻", "الع ا 123"} {
		if got := drawn(t, components.Text(in)); got != in {
			t.Errorf("%q is drawn as %q in prose", in, got)
		}
	}
}

// A command with such a character can't be answered where it isn't said, and stands in
// rows and titles as it is.
// proves PER-1
func TestExact_OnCards(t *testing.T) {
	t.Parallel()
	const command = "rm -rf /srv/\u00a0data"
	p := components.NewPayload([]byte(`{"command":"` + command + `"}`))
	if !p.Hidden() || p.Short() || p.Row() {
		t.Errorf("hidden %v, short %v, in a row %v", p.Hidden(), p.Short(), p.Row())
	}
	if got := drawn(t, components.Sentence(components.Say("Ran ", components.Code(p.Title())), now)); got != `Ran <code>rm -rf /srv/<span class="esc">\xa0</span>data</code>` {
		t.Errorf("a row has %s", got)
	}
}

// In a sentence of ours the words of others stand apart: their letters change the order
// of none of ours, and a quote that a cut has left open holds the rest.
// proves JRN-1
func TestSentence_QuotesAreSomebodyElses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"It said " + journal.Quote("a”. You allowed “b", 40) + ".": `It said <bdi class="quoted">“a&#34;. You allowed &#34;b”</bdi>.`,
		"It said “a” and “b":                                       `It said <bdi class="quoted">“a”</bdi> and <bdi class="quoted">“b</bdi>`,
		"none":                                                     "none",
	} {
		if got := drawn(t, components.Sentence(components.Say(in), now)); got != want {
			t.Errorf("%q is drawn as %s, want %s", in, got, want)
		}
	}
	if got := components.Curly("It isn't “it isn't” so, isn't it"); got != "It isn’t “it isn't” so, isn’t it" {
		t.Errorf("it becomes %q", got)
	}
	if got := components.Told("It said "+journal.Quote(strings.Repeat("x", 50), 50)+".", 30); !strings.HasSuffix(got, "…”") {
		t.Errorf("what is cut is %q", got)
	}
}
