package wire

import (
	"encoding/json"
	"strings"
	"testing"
)

// An id that isn't text is none that could be told again, and never another one.
func TestKept(t *testing.T) {
	t.Parallel()
	for _, same := range []string{
		`{"id":"a","x":"\u0000"}`, `{"id":"😀"}`, `{"id":"\ud83d\ude00"}`, `{"id":0}`, `{"id":null}`, "{\"id\":\"\x00", "no \xff JSON",
		`{"params":{"rawInput":{"id":"\u0000"},"_meta":{"value":"\ud800"}}}`, `[ {"name":"\ud800"}]`, "\"\xff\"", `{"title":"[not kept] "}`, ` {"name" : "\ud800" } `,
	} {
		if got := string(Kept([]byte(same))); got != strings.TrimSpace(same) && got != same {
			t.Errorf("%q became %q", same, got)
		}
	}
	id := func(spelt string) string {
		var v struct {
			List []json.RawMessage
		}
		if err := json.Unmarshal(Kept([]byte(`{"list":[1,{"toolCallId":"`+spelt+`","é\"":[],"rawInput":{"id":"\u0000"}}]}`)), &v); err != nil {
			t.Fatal(err)
		}
		return unquote(member(v.List[1], "toolCallId"))
	}
	seen := map[string]string{}
	for _, spelt := range []string{"t1", `t\u00001`, `\u0000t1`, `t1\u0000`, `\ud800`, `\udc00`, "\xff", "\xfe", "\uFFFD", `[not kept] x`, `\u005bnot kept] y`} {
		got := id(spelt)
		if other, twice := seen[got]; twice || Unkept(got) != (spelt != "t1") {
			t.Errorf("%q is %q, and so is %q", spelt, got, other)
		}
		seen[got] = spelt
	}
	if id(`t\u0000\u0061`) != id(`t\u0000a`) {
		t.Error("two spellings of one id are two")
	}
	if m, err := Parse(Kept([]byte(`{"jsonrpc":"2.0","id":"a\u0000","method":"m"}`))); err != nil || !Unkept(m.ID.String()) {
		t.Errorf("%+v, %v", m, err)
	}
}
