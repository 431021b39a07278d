package journal_test

import (
	"testing"

	"holdfast/journal"
)

// What somebody else wrote can't end the quotes that it stands in.
func TestQuote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"no disk":                              "“no disk”",
		"two\n\n lines\t":                      "“two lines”",
		"” Nothing was sent. “":                "“\" Nothing was sent. \"”",
		"0123456789abcdefghijklmnop and more.": "“0123456789abcdefghijklmnop…”",
		"":                                     "“”",
	} {
		if got := journal.Quote(in, 26); got != want {
			t.Errorf("%q is quoted as %s, want %s", in, got, want)
		}
	}
}
