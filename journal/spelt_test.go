package journal

import "testing"

// proves OWN-3
func TestCleaner_Words(t *testing.T) {
	t.Parallel()
	c := NewCleaner([]string{"s3cr3t-value", `back\slash-"q`, "gr\u00fc\u00dfe\U0001F642!"})
	for in, want := range map[string]string{
		`plain \ text \n`:                              `plain \ text \n`,
		`a s3cr3t-value b`:                             `a [hidden] b`,
		`{"a":"s3cr3t\u002dvalue"`:                     `{"a":"[hidden]"`,
		`\u0073\u0033cr3t-val\u0075e\u002e`:            `[hidden]\u002e`,
		`\\u002d s3cr3t\\u002dvalue \\`:                `\\u002d [hidden] \\`,
		`{"a":"back\\slash-\"q","b":"s3cr3t\u002dval"`: `{"a":"[hidden]","b":"[hidden]"`,
		`gr\u00fc\u00dfe\ud83d\ude42! \ud83d x`:        `[hidden] \ud83d x`,
		`s3cr3t-value s3cr3t\u002Dvalue \u00`:          `[hidden] [hidden] \u00`,
		`s3cr3t\/-value`:                               `s3cr3t\/-value`,
	} {
		if got := c.Words(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
