package journal

import (
	"strings"
	"testing"
)

// A secret is hidden however what leaves is cut.
//
// proves OWN-3
func TestCleaner_WriterAndPiece(t *testing.T) {
	t.Parallel()
	c := NewCleaner([]string{"secret-one", "one-two-three"})
	const text = "a secret-one b secret-one-two-three c secret-on"
	const want = "a [hidden] b [hidden] c secret-on"
	for size := 1; size <= len(text); size++ {
		var out strings.Builder
		w := c.Writer(&out)
		for from := 0; from < len(text); from += size {
			if _, err := w.Write([]byte(text[from:min(len(text), from+size)])); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil || out.String() != want {
			t.Errorf("in pieces of %d: %q, %v", size, out.String(), err)
		}
	}
	n := c.Longest()
	for from := range len(text) {
		for to := from; to <= len(text); to++ {
			got := c.Piece(text[max(0, from-n):from], text[from:to], text[to:min(len(text), to+n)])
			for _, part := range []string{"secre", "e-two", "three"} {
				if strings.Contains(strings.TrimSuffix(got, "secret-on"), part) && to < 38 {
					t.Errorf("from %d to %d: %q", from, to, got)
				}
			}
		}
	}
	if got := c.Piece("", text, ""); got != want {
		t.Errorf("whole: %q", got)
	}
}
