package tool

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// pass sends text through a filter in pieces of n bytes.
func pass(secrets []string, text string, n int) string {
	f := NewFilter(secrets)
	var out strings.Builder
	for len(text) > n {
		out.WriteString(f.Write([]byte(text[:n])))
		text = text[n:]
	}
	out.WriteString(f.Write([]byte(text)))
	out.WriteString(f.Flush())
	return out.String()
}

// proves JRN-8, OWN-3: whatever the cuts, the same clean, masked text.
func TestFilter_MasksHoweverTheStreamIsCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 4093)
	for _, tt := range []struct {
		name, in, want string
		secrets        []string
	}{
		{"plain", "a\na\n", "a\na\n", nil},
		{"once", "key=hunter2-hunter2!", "key=[hidden]!", []string{"hunter2-hunter2"}},
		{"twice in a row", "abcdefghabcdefgh", "[hidden][hidden]", []string{"abcdefgh"}},
		{"two lines stay two", "abcdefgh\nabcdefgh\n", "[hidden]\n[hidden]\n", []string{"abcdefgh"}},
		{"across 4 KiB", long + "abcdefgh.", long + "[hidden].", []string{"abcdefgh"}},
		{"longest wins", "abcdefghijkl abcdefghij.", "[hidden] [hidden]ij.", []string{"abcdefgh", "abcdefghijkl"}},
		{"overlapping ones leave nothing", "xxabcdefgh", "[hidden]", []string{"xxabcdef", "abcdefgh"}},
		{"only a start", "abc", "abc", []string{"abcdefgh"}},
		{"all but its end", "x abcdefg", "x [hidden]", []string{"abcdefgh"}},
		{"one and less than half of the next", "xxabcdefgh1", "xx[hidden]1", []string{"abcdefgh", "gh123456"}},
		{"one that ends in more than half of the next", "abcdefgh12", "[hidden]", []string{"abcdefgh", "efgh1234"}},
		{"a start, then whole", "abcabcdefgh", "abc[hidden]", []string{"abcdefgh"}},
		{"of one letter", strings.Repeat("a", 5000) + "b", "[hidden]b", []string{"aaaaaaaa"}},
		{"with NULs around", "\x00abcdefgh\x00.", "\x00[hidden]\x00.", []string{"abcdefgh"}},
		{"with an ending newline in its file", "abcdefgh!", "[hidden]!", []string{"abcdefgh\n"}},
		{"with wide characters", "pässwörter€", "[hidden]", []string{"pässwörter€"}},
		{"three bytes", "10 €\n", "10 €\n", []string{"abcdefgh"}},
		{"garbage", "\xff\xfea\xe2\x82b\x00\xf0\x9f", "\xff\xfea\xe2\x82b\x00\xf0\x9f", nil},
		{"empty secret", "abc", "abc", []string{"", " "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, n := range []int{1, 2, 3, 5, 7, 4096, 1 << 20} {
				if got := pass(tt.secrets, tt.in, n); got != tt.want {
					t.Errorf("in pieces of %d: got %q, want %q", n, got, tt.want)
				}
			}
		})
	}
}

// proves JRN-8: only what may be a secret waits, so that a prompt without a
// newline is seen.
func TestFilter_HoldsBackNoMoreThanItMust(t *testing.T) {
	t.Parallel()
	f := NewFilter([]string{"abcdefgh"})
	if got, want := f.Write([]byte("Continue? ab")), "Continue? "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := f.Write([]byte("acus")), "abacus"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	f = NewFilter([]string{"aaaaaaaa"})
	for range 1000 {
		f.Write([]byte(strings.Repeat("a", 1000)))
		if len(f.held) >= len("aaaaaaaa") {
			t.Fatalf("held %d bytes", len(f.held))
		}
	}
}

// proves JRN-8
func FuzzFilter_CutsDontMatter(f *testing.F) {
	f.Add("xabcdefghabcd\x00efgh\xe2\x82\xac", uint8(1))
	f.Add("aaaaaaaaaaaaabababababab", uint8(3))
	secrets := []string{"abcdefgh", "aaaa", "abab", "baba", "€abab"}
	f.Fuzz(func(t *testing.T, in string, n uint8) {
		got, want := pass(secrets, in, int(n)+1), pass(secrets, in, 1<<20)
		if got != want {
			t.Errorf("in pieces of %d: got %q, want %q", int(n)+1, got, want)
		}
		if utf8.ValidString(in) && !utf8.ValidString(got) {
			t.Errorf("got %q, which isn't text any more", got)
		}
		for _, s := range secrets {
			if strings.Contains(got, s) {
				t.Errorf("got %q with the secret %q", got, s)
			}
		}
	})
}

func BenchmarkFilter(b *testing.B) {
	chunk := []byte(strings.Repeat("a line of ordinary output of a build\n", 900))
	var secrets []string
	for c := range 20 {
		secrets = append(secrets, strings.Repeat(string(rune('a'+c)), 8)+"-secret-value")
	}
	f := NewFilter(secrets)
	b.SetBytes(int64(len(chunk)))
	for b.Loop() {
		f.Write(chunk)
	}
}
