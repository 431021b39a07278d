package journal

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// escapedAll spells a text by the numbers of its characters.
func escapedAll(s string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

// shows gives the longest piece of a secret, from its beginning or its end, that stands in
// a text, however it is spelt.
func shows(text, secret string) (piece string) {
	plain, _ := unescaped(text)
	for n := 1; n < len(secret); n++ {
		for _, p := range []string{secret[:n], secret[len(secret)-n:]} {
			if len(p) > len(piece) && (strings.Contains(text, p) || strings.Contains(plain, p)) {
				piece = p
			}
		}
	}
	return piece
}

// Words that begin or end within a secret, wherever, show fewer than eight characters of it.
//
// proves JRN-8 OWN-3
func TestCleaner_WordsBrokenOff(t *testing.T) {
	t.Parallel()
	const secret = "sk-verysecret-0123456789"
	c := NewCleaner([]string{secret, "another-one"})
	for _, spelt := range []string{secret, escapedAll(secret)} {
		text := "first words " + spelt + " last words"
		for at := range len(text) {
			for _, words := range []string{text[:at], text[:at] + "\n", text[:at] + "'.\r\n", text[at:]} {
				if got := c.Words(words); len(shows(got, secret)) >= ShortestSecret && !strings.Contains(text[at:], `\`) {
					t.Errorf("%q became %q, which shows %q", words, got, shows(got, secret))
				}
			}
		}
	}
}

// The last words of a program show no secret, and no piece of one that matters, however
// they come and wherever their beginning is dropped.
//
// proves JRN-8 OWN-3
func TestLastWords(t *testing.T) {
	t.Parallel()
	const secret = "sk-verysecret-0123456789"
	c := NewCleaner([]string{secret})
	r := rand.New(rand.NewPCG(1, 2))
	spellings := []string{secret, escapedAll(secret), "\x1b[1m" + secret[:9] + "\x1b[0m" + secret[9:]}
	colours := regexp.MustCompile(`\x1b(\[[0-9]*(m|$)|$)`)
	plain := func(s string) string { return colours.ReplaceAllString(s, "") }
	for range 3000 {
		l := LastWords{Most: 60}
		text := ""
		for range r.IntN(60) {
			text += strings.Repeat("w ", r.IntN(20)) + spellings[r.IntN(len(spellings))]
		}
		text = text[:r.IntN(len(text)+1)]
		for rest := text; rest != ""; {
			n := min(1+r.IntN(90), len(rest))
			l.Add(c, rest[:n])
			rest = rest[n:]
		}
		got := l.Text(c, plain)
		if piece := shows(got, secret); len(piece) >= ShortestSecret || len(got) > 60 || len(l.raw) > 4*(60+24*len(secret)) {
			t.Fatalf("%q gave %q (%d bytes kept), which shows %q", text, got, len(l.raw), piece)
		}
	}
	l := LastWords{Most: 5}
	if l.Add(NewCleaner(nil), "one two\n"); l.Text(NewCleaner(nil), plain) != "e two" {
		t.Errorf("got %q", l.Text(NewCleaner(nil), plain))
	}
}
