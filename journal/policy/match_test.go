package policy

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value, pattern string
		want           bool
	}{
		// The table of the design, row by row (two spaces are the parser's: see TestShellResources).
		{"git push", "git push *", true},
		{"git pushx", "git push *", false},
		{"git pushx", "git push*", true},
		{"src/.env", ".env", false},
		{"src/.env", "*.env", true},
		{"a/b/c.ts", "a/*", true},
		{"foo baz", "foo * baz", false},
		{"git push --force; rm -rf /", "git push *", true}, // never asked as one: TestShellResources

		{"", "*", true},
		{"", "", true},
		{"", "?", false},
		{"a\nb", "a*b", true},
		{"a/b", "a?b", true},
		{"é", "?", true},
		{"e\u0301", "?", true},       // NFC: one character
		{"e\u0301", "é", true},       // and the same one
		{"é", "e\u0301", true},       // both ways
		{"Git push", "git *", false}, // case-sensitive
		{"git", "git *", true},
		{"git ", "git *", true},
		{"git push", "git ? *", false},
		{"a\x00b", "*", false}, // NUL is refused
		{"ab", "a\x00*", false},
		{"a\xffb", "*", false}, // so is what isn't UTF-8
		{"[a]", "[a]", true},   // no classes, no escapes
		{"a", "[a]", false},
		{`\*`, `\*`, true},
		{`\x`, `\*`, true},
		{"xay", "*a", false},
		{"aXbXc", "a*b*c", true},
		{"aXbXcd", "a*b*c", false},
		{"mississippi", "m*issip*", true},
		{"mississippi", "m*iss*iss*x", false},
	} {
		if got := Match(c.pattern, c.value); got != c.want {
			t.Errorf("Match(%q, %q) = %v, want %v", c.pattern, c.value, got, c.want)
		}
	}
}

func TestMatch_HostilePatternsAreBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pattern, value string }{
		{strings.Repeat("a*", 500) + "b", strings.Repeat("a", 5000)},
		{strings.Repeat("*a", 500) + "b", strings.Repeat("a", 5000)},
		{strings.Repeat("*?", 500) + "b", strings.Repeat("a", 5000)},
		{strings.Repeat("*", 1000) + "b", strings.Repeat("a", 5000)},
		{strings.Repeat("*ab", 300) + "c", strings.Repeat("ab", 3000)},
	} {
		p, v := []rune(c.pattern), []rune(c.value)
		matched, steps := wildcard(p, v)
		if matched {
			t.Errorf("%.20q matched", c.pattern)
		}
		if limit := (len(p) + 1) * (len(v) + 1); steps > limit {
			t.Errorf("%.20q took %d steps, want at most %d", c.pattern, steps, limit)
		}
	}
}

func TestOverlaps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"git*", "git push *", true},
		{"git*", "git push", true},
		{"echo*", "rm *", false},
		{"*.go", "*.env", false},
		{"*.e*", "*.env", true},
		{".e??", "*.env", true},
		{"", "*", true},
		{"", "a*", false},
		{"rm *", "rm", true},
		{"a\x00", "b", true}, // can't tell: taken to overlap
	} {
		if got := overlaps(c.a, c.b); got != c.want {
			t.Errorf("overlaps(%q, %q) = %v, want %v", c.a, c.b, got, c.want)
		}
		if got := overlaps(c.b, c.a); got != c.want {
			t.Errorf("overlaps(%q, %q) = %v, want %v", c.b, c.a, got, c.want)
		}
	}
}

// FuzzMatch holds the wildcard to its plain definition.
func FuzzMatch(f *testing.F) {
	f.Add("a*b?c", "aXXbYc")
	f.Add("git push *", "git push")
	f.Fuzz(func(t *testing.T, pattern, value string) {
		if len(pattern) > 12 || len(value) > 12 {
			return
		}
		p, okP := runes(pattern)
		v, okV := runes(value)
		want := okP && okV && slow(p, v)
		if short, ok := withoutTail(p); okP && okV && ok {
			want = want || slow(short, v)
		}
		if got := Match(pattern, value); got != want {
			t.Errorf("Match(%q, %q) = %v, want %v", pattern, value, got, want)
		}
	})
}

func slow(p, v []rune) bool {
	switch {
	case len(p) == 0:
		return len(v) == 0
	case p[0] == '*':
		return slow(p[1:], v) || len(v) > 0 && slow(p, v[1:])
	default:
		return len(v) > 0 && (p[0] == '?' || p[0] == v[0]) && slow(p[1:], v[1:])
	}
}
