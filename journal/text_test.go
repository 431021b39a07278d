package journal

import (
	"encoding/json"
	"strings"
	"testing"
)

// proves ADM-2
func TestCheckKey(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"a": "a", `"quoted"`: "quoted", "a~!b": "a~!b", strings.Repeat("k", 255): strings.Repeat("k", 255)} {
		if got, err := CheckKey(in); err != nil || got != want {
			t.Errorf("%.20q: %q, %v", in, got, err)
		}
	}
	for _, bad := range []string{"", `""`, "a b", "a\tb", "é", "a\x00", "a\n", strings.Repeat("k", 256), " a"} {
		if got, err := CheckKey(bad); !Is(err, Invalid) {
			t.Errorf("%.20q: %q, %v; want invalid", bad, got, err)
		}
	}
}

// proves ADM-10
func TestCheckText(t *testing.T) {
	t.Parallel()
	for text, code := range map[string]Code{
		"x": "", strings.Repeat("x", MaxPromptBytes): "", " \n": "", strings.Repeat("\r\n", MaxPromptBytes): "",
		"": Unprocessable, "a\x00b": Unprocessable, "a\xffb": Unprocessable, strings.Repeat("x", MaxPromptBytes+1): TooLarge,
	} {
		if got := CodeOf(CheckText(text)); got != code {
			t.Errorf("%.10q (%d bytes): %q, want %q", text, len(text), got, code)
		}
	}
}

// proves ADM-3
func TestLineEnds(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "a\nb": "a\nb", "a\r\nb\r\n": "a\nb\n", "\r\n": "\n", "a\rb": "a\rb", "a\r": "a\r", "a\r\nb\r": "a\nb\r", "a\r\r\nb": "a\nb",
		strings.Repeat("\r", 1<<20) + "\n": "\n",
	} {
		if got := LineEnds(in); got != want || LineEnds(got) != got {
			t.Errorf("%.20q: got %.20q, want %.20q", in, got, want)
		}
	}
}

// proves ADM-3
func TestPayloadHash(t *testing.T) {
	t.Parallel()
	norm := func(s string) string { return strings.ReplaceAll(s, "e\u0301", "\u00e9") }
	same := PayloadHash(norm, "queue", "caf\u00e9\nx")
	if PayloadHash(norm, "queue", "cafe\u0301\r\nx") != same {
		t.Error("line ends or composition count")
	}
	for _, other := range [][]any{{"steer", "caf\u00e9\nx"}, {"queue", "caf\u00e9\nx "}, {"queue", " caf\u00e9\nx"}, {"queue", "cafe\nx"}} {
		if PayloadHash(norm, other...) == same {
			t.Errorf("%q has the same hash", other)
		}
	}
}

// proves JRN-8 OWN-3
func TestCleaner(t *testing.T) {
	t.Parallel()
	c := NewCleaner([]string{"hunter22", `qu"ote\secret`, "hunter22-longer", ""})
	for in, want := range map[string]string{
		"a hunter22 b": "a [hidden] b", "hunter22-longer": "[hidden]", "nul\x00bad\xff": "nulbad\uFFFD", `x qu"ote\secret y`: "x [hidden] y", "clean": "clean",
	} {
		if got := c.Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		b, err := Encode(map[string]any{"list": []any{in}, "n": json.Number("12345678901234567890")})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.JSON(b)
		if err != nil || strings.Contains(string(got), "hunter22") || strings.Contains(string(got), "secret") || strings.Contains(string(got), `\u0000`) {
			t.Errorf("%s: %s, %v", b, got, err)
		}
		if !strings.Contains(string(got), "12345678901234567890") {
			t.Errorf("a number was changed: %s", got)
		}
	}
	if b, err := c.JSON([]byte(`{"z":"<a>","a":1}`)); err != nil || string(b) != `{"z":"<a>","a":1}` {
		t.Errorf("a clean value was changed: %s, %v", b, err)
	}
}

// proves JRN-7
func TestDecode_UnknownIsOpaque(t *testing.T) {
	t.Parallel()
	for _, ev := range []Event{{Kind: "later.invented", Version: 1, Data: []byte(`{"x":1}`)}, {Kind: KindTurnEnded, Version: 2, Data: []byte(`{"turn_id":5}`)}} {
		b, err := ev.Decode()
		if o, ok := b.(*Opaque); err != nil || !ok || o.Kind() != ev.Kind {
			t.Errorf("%s v%d: %v, %v; want opaque", ev.Kind, ev.Version, b, err)
		}
		if err := new(State).Apply(&ev, b); err != nil {
			t.Errorf("folding it: %v", err)
		}
	}
}

// Every kind has a body that encodes and decodes, with the bound of its texts.
//
// proves JRN-1 JRN-6
func TestBodies(t *testing.T) {
	t.Parallel()
	for kind, mk := range bodies {
		b := mk()
		if b.Kind() != kind {
			t.Errorf("the body of %s says that it is %s", kind, b.Kind())
		}
		data, err := Encode(b)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		ev := Event{Kind: kind, Version: 1, Data: data}
		if _, err := ev.Decode(); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	ref := Text{Blob: "ab", Bytes: 7}
	data, err := Encode(ref)
	if err != nil || string(data) != `{"blob":"ab","bytes":7}` {
		t.Errorf("a long text is written as %s, %v", data, err)
	}
	var back Text
	if err := json.Unmarshal(data, &back); err != nil || back != ref {
		t.Errorf("read back %+v, %v", back, err)
	}
	if got := Cut("aé", 2); got != "a…" {
		t.Errorf("cut inside a character: %q", got)
	}
}

// proves COO-5
func TestLimits_Raise(t *testing.T) {
	t.Parallel()
	l := DefaultLimits().Raise(&Limits{Steps: 5})
	if l.Steps != 5 || l.WallS != DefaultLimits().WallS {
		t.Errorf("raised to %+v", l)
	}
	for _, bad := range []Limits{{Steps: -1}, {WallS: -1}, {Tokens: -1}, {CostUSD: -1}, {Steps: 1 << 30}} {
		if !Is(bad.Check(), Unprocessable) {
			t.Errorf("%+v was taken", bad)
		}
	}
}
