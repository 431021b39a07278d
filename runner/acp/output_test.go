package acp

import (
	"math/rand/v2"
	"strings"
	"testing"

	"holdfast/journal"
)

const outputSecret = "sk-verysecret-0123456789"

// journalled is what stands in the journal of an output that was told so.
func journalled(clean *journal.Cleaner, told []string) string {
	c, out := &toolCall{}, ""
	for _, now := range told {
		out += c.heard(clean.Text(now), clean)
	}
	return out + c.waited(clean)
}

// What of an output might begin a secret is given out when something else follows, or
// nothing: no letter of it is lost.
//
// proves JRN-5 JRN-8 OWN-3
func TestOutput_LosesNoLetter(t *testing.T) {
	t.Parallel()
	clean, open := journal.NewCleaner([]string{outputSecret}), journal.NewCleaner(nil)
	for _, c := range []struct {
		told []string
		want string
	}{
		{[]string{"files", "other sk-very", "third", "fourths", "end"}, "files\nother sk-very\nthird\nfourths\nend"},
		{[]string{"s", "s", "sk", "so"}, "sk\nso"},
		{[]string{"a sk-very", "a " + outputSecret + " b"}, "a [hidden] b"},
		{[]string{"a s", "a sk-very", "a sk-verysecret-01", "a " + outputSecret}, "a [hidden]"},
		{[]string{"a sk-verysecret-01", "b"}, "a [hidden]\nb"},
		{[]string{"a sk-verysecret-01", "a sk-verysecret-01", "a sk-verysecret-01 or so"}, "a sk-verysecret-01 or so"},
		{[]string{"a sk-verysecret-01`", "a " + outputSecret + "` b"}, "a [hidden]` b"},
		{[]string{"a sk-verysecret-01"}, "a [hidden]"},
		{[]string{"ssk-", "s" + outputSecret}, "s[hidden]"},
		{[]string{strings.Repeat("line\n", 20) + "sk", strings.Repeat("line\n", 19) + outputSecret + " on"}, strings.Repeat("line\n", 20) + "[hidden] on"},
	} {
		if got := journalled(clean, c.told); got != c.want {
			t.Errorf("%q gave %q, want %q", c.told, got, c.want)
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	words := []string{"s", "sk", "sk-", "sk-very", "files", "\n", " ", "ö", "a", "-"}
	for range 20_000 {
		var told []string
		text := ""
		for range r.IntN(12) {
			if r.IntN(4) == 0 {
				text = "" // it tells something else
			}
			for range r.IntN(3) {
				text += words[r.IntN(len(words))]
			}
			told = append(told, text)
		}
		if got, want := journalled(clean, told), journalled(open, told); got != want && !strings.Contains(got, journal.Hidden) {
			t.Fatalf("%q gave %q, want %q", told, got, want)
		}
	}
}

// However an output grows, it stands in the journal as if it had been told at once.
//
// proves JRN-5 JRN-8 OWN-3
func FuzzOutput_CutsDontMatter(f *testing.F) {
	f.Add("one sk-sk-verysecret-0123456789 two sk-verysecret-0123456789", uint64(1))
	f.Add("sk-verysecret-0123456789sk-verysecret-0123456789 files", uint64(2))
	f.Add("files of sk-verysecret-012345678", uint64(3))
	clean := journal.NewCleaner([]string{outputSecret, "ghost-0123"})
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		text = strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
		r := rand.New(rand.NewPCG(seed, 1))
		var told []string
		for at := 0; at < len(text); {
			at += 1 + r.IntN(min(len(text)-at, 9))
			told = append(told, strings.ToValidUTF8(text[:at], ""))
		}
		got, want := journalled(clean, append(told, text)), clean.Unended(text)
		if got != want && clean.Unended(got) != want && !strings.Contains(text, journal.Hidden) {
			t.Errorf("%q gave %q, want %q", told, got, want)
		}
		if strings.Contains(got, outputSecret) {
			t.Errorf("%q gave %q", told, got)
		}
	})
}
