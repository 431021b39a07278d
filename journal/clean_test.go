package journal

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// Whatever is cleaned after a secret was learnt lacks it, whoever cleans meanwhile.
//
// proves OWN-3 JRN-8
func TestCleaner_LearnsWhileItCleans(t *testing.T) {
	t.Parallel()
	c := NewCleaner([]string{"the-first"})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 30 {
				secret := fmt.Sprintf("s3cr3t-%d-%d", i, n)
				c.Learn(secret, "")
				got := c.Text("a " + secret + ", the-first b")
				b, err := c.JSON([]byte(`{"x":"` + secret + `\u00e4"}`))
				if got != "a [hidden], [hidden] b" || err != nil || strings.Contains(string(b), secret) {
					t.Errorf("after learning: %s %s %v", got, b, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if c.Learn("another-one"); c.known.Load() != nil {
		t.Error("all that is known was put in order anew before it was needed: to learn many is quadratic")
	}
	if got := c.Bytes("s3cr3t-3-27\xff"); got != "[hidden]\xff" {
		t.Errorf("the bytes are %q", got)
	}
}

// What may be the start of a secret is undecided, and a text that is cut there and
// cleaned piece by piece shows none of a secret: whichever way it was cut.
//
// proves JRN-8 OWN-3
func TestCleaner_Undecided(t *testing.T) {
	t.Parallel()
	c := NewCleaner([]string{"abcdefgh", "efghabXY", "aaaaaaaa", "gehéimnis"})
	for text, want := range map[string]int{
		"": 0, "xyz": 3, "xyz a": 4, "xyz abcdefg": 4, "xyz abcdefgh": 4, "xyz gehéimnis": 14, "xyz geh\u00e9": 4,
		"abcdefghab": 0, // its end begins the second one, which begins inside the first
		"abcdefg ":   8,
	} {
		if got := c.Undecided(text); got != want {
			t.Errorf("of %q the first %d are decided, want %d", text, got, want)
		}
	}
	whole := "see abcdefgh and efghabXY, aaaaaaaaaaa! gehéimnis abcdefgX aaaa abcdefghabXY."
	for n := 1; n < len(whole); n++ {
		out, held := "", ""
		for from := 0; from < len(whole); from += n {
			held += whole[from:min(from+n, len(whole))]
			at := c.Undecided(held)
			out, held = out+c.Text(held[:at]), held[at:]
		}
		out += c.Text(held)
		for _, secret := range []string{"abcdefgh", "efghabXY", "aaaaaaaa", "gehéimnis"} {
			if strings.Contains(out, secret) {
				t.Fatalf("in pieces of %d it is %q", n, out)
			}
		}
	}
	if got := NewCleaner(nil).Undecided("abc"); got != 3 {
		t.Errorf("without secrets %d are decided", got)
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"plain-value": `plain-value`, `a"b/c\d`: `a"b/c\d|a\"b/c\\d|a\"b\/c\\d`, "with/slash": `with/slash|with\/slash`} {
		if got := strings.Join(Forms(value), "|"); got != want {
			t.Errorf("%s: %s", value, got)
		}
	}
}
