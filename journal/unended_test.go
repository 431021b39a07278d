package journal

import (
	"encoding/json"
	"strings"
	"testing"
)

// A text that is told while it grows shows fewer than eight characters of a secret, and
// fewer than half of a short one, wherever it ends, whatever stands behind its end.
//
// proves JRN-8 OWN-3
func TestCleaner_Unended(t *testing.T) {
	t.Parallel()
	const long, short, odd = "sk-ant-0123456789-abcdef", "pass-w0rd", `gehéim/"nis-0123456`
	c := NewCleaner([]string{long, short, odd})
	for _, secret := range []string{long, short, odd} {
		most := min(7, len([]rune(secret))/2)
		for n := 1; n <= len(secret); n++ {
			for _, behind := range []string{"", "`", `"}`, "…", "\n```", "...'"} {
				got := c.Unended("echo " + secret[:n] + behind)
				if shown := []rune(got)[5:]; strings.HasPrefix(got, "echo "+secret[:len(string([]rune(secret)[:most+1]))]) {
					t.Errorf("%q shows %q of a secret", secret[:n]+behind, string(shown))
				}
			}
		}
	}
	for in, want := range map[string]string{
		"": "", "echo": "echo", "echo sk-ant-": "echo sk-ant-", "echo sk-ant-0": "echo [hidden]", "echo `sk-ant-0`": "echo `[hidden]`",
		"sk-ant-0 and more": "sk-ant-0 and more", "see " + long: "see [hidden]", "a pass": "a pass", "a pass-": "a [hidden]",
	} {
		if got := c.Unended(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got := NewCleaner(nil).Unended("echo sk-ant-012345"); got != "echo sk-ant-012345" {
		t.Errorf("without secrets it is %q", got)
	}
}

// In a line the ends of all texts are such, at any depth, except of what is told whole.
//
// proves JRN-8 OWN-3
func TestCleaner_LineUnended(t *testing.T) {
	t.Parallel()
	c := NewCleaner([]string{`sk-"ant-0123456789`})
	shape := &Shape{Names: map[string]bool{"id": true, "free": true, "title": true, "text": true, "kind": true}, Words: map[string][]string{"kind": {`sk-"ant-01`}}, Free: map[string]bool{"free": true}, Whole: map[string]bool{"id": true, "text": true}}
	for in, want := range map[string]string{
		`{"title":"a sk-\"ant-01"}`:                                                       `{"title":"a [hidden]"}`,
		`{"title":"a \u0073k-\"ant-01"}`:                                                  `{"title":"a [hidden]"}`,
		`{"id":"sk-\"ant-01","text":"sk-\"ant-0","kind":"sk-\"ant-01"}`:                   `{"id":"sk-\"ant-01","text":"sk-\"ant-0","kind":"sk-\"ant-01"}`,
		`{"free":{"id":"x sk-\"ant-01","text":["sk-\"ant-01"],"n":12345678901234567890}}`: `{"free":{"id":"x [hidden]","text":["[hidden]"],"n":12345678901234567890}}`,
		`{"title":"sk-\"ant"}`:                                                            `{"title":"sk-\"ant"}`,
		`no JSON: sk-"ant-01`:                                                             `no JSON: [hidden]`,
		`{"title":"sk-\"ant-01 b"}`:                                                       `{"title":"sk-\"ant-01 b"}`,
	} {
		if got := string(c.Line([]byte(in), shape)); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
	if got := string(c.Line(json.RawMessage(`{"id":"sk-\"ant-01"}`), nil)); got != `{"id":"[hidden]"}` {
		t.Errorf("without a protocol it became %s", got)
	}
}
