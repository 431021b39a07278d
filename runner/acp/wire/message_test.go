package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParse(t *testing.T) {
	t.Parallel()
	id := func(raw string) ID { return ID{raw} }
	for name, tt := range map[string]struct {
		line string
		want Message
	}{
		"request":                {`{"jsonrpc":"2.0","id":7,"method":"a/b","params":{"x":1}}`, Message{Kind: KindRequest, ID: id("7"), Method: "a/b", Params: []byte(`{"x":1}`)}},
		"request with id 0":      {`{"jsonrpc":"2.0","id":0,"method":"a"}`, Message{Kind: KindRequest, ID: id("0"), Method: "a"}},
		"request with a text id": {`{"id":"a\u0062<","method":"a"}`, Message{Kind: KindRequest, ID: id(`"a\u0062<"`), Method: "a"}},
		"request with a big id":  {`{"id":9007199254740993,"method":"a"}`, Message{Kind: KindRequest, ID: id("9007199254740993"), Method: "a"}},
		"request with id null":   {`{"id":null,"method":"a"}`, Message{Kind: KindRequest, ID: id("null"), Method: "a"}},
		"notification":           {`{"jsonrpc":"2.0","method":"a","params":[1, 2]}`, Message{Kind: KindNotification, Method: "a", Params: []byte(`[1, 2]`)}},
		"params null":            {`{"method":"a","params":null}`, Message{Kind: KindNotification, Method: "a"}},
		"params of any type":     {`{"method":"a","params":5}`, Message{Kind: KindNotification, Method: "a", Params: []byte(`5`)}},
		"result":                 {`{"jsonrpc":"2.0","id":1,"result":{}}`, Message{Kind: KindResponse, ID: id("1"), Result: []byte(`{}`)}},
		"result before id":       {`{"result":[],"id":1}`, Message{Kind: KindResponse, ID: id("1"), Result: []byte(`[]`)}},
		"result null":            {`{"id":1,"result":null}`, Message{Kind: KindResponse, ID: id("1"), Result: []byte(`null`)}},
		"result, error null":     {`{"id":1,"result":5,"error":null}`, Message{Kind: KindResponse, ID: id("1"), Result: []byte(`5`)}},
		"both null":              {`{"id":1,"result":null,"error":null}`, Message{Kind: KindResponse, ID: id("1"), Result: []byte(`null`)}},
		"method null":            {`{"id":1,"method":null,"result":5}`, Message{Kind: KindResponse, ID: id("1"), Result: []byte(`5`)}},
		"error": {
			`{"id":1,"error":{"code":-32603,"message":"no","data":{"n":9007199254740993}}}`,
			Message{Kind: KindResponse, ID: id("1"), Err: &Error{Code: CodeInternal, Message: "no", Data: []byte(`{"n":9007199254740993}`)}},
		},
		"error, result null":      {`{"id":1,"result":null,"error":{"code":1,"message":"m"}}`, Message{Kind: KindResponse, ID: id("1"), Err: &Error{Code: 1, Message: "m"}}},
		"error without id":        {`{"id":null,"error":{"code":-32700,"message":"m"}}`, Message{Kind: KindResponse, ID: id("null"), Err: &Error{Code: CodeParse, Message: "m"}}},
		"error of wrong types":    {`{"id":1,"error":{"code":"E","message":5,"data":[1]}}`, Message{Kind: KindResponse, ID: id("1"), Err: &Error{Data: []byte(`[1]`)}}},
		"error that is a text":    {`{"id":1,"error":"no"}`, Message{Kind: KindResponse, ID: id("1"), Err: &Error{Data: []byte(`"no"`)}}},
		"the last of two members": {`{"id":1,"method":"a","id":2,"method":"b","params":{},"params":[]}`, Message{Kind: KindRequest, ID: id("2"), Method: "b", Params: []byte(`[]`)}},
		"names are exact":         {`{"ID":1,"Method":"x","method":"a"}`, Message{Kind: KindNotification, Method: "a"}},
		"a method of odd bytes":   {"{\"method\":\"a\xff\"}", Message{Kind: KindNotification, Method: "a\ufffd"}},
		"names with escapes":      {`{"\u006dethod":"\u0061\n"}`, Message{Kind: KindNotification, Method: "a\n"}},
		"blanks":                  {" {\t\"id\" : 1 , \"method\" : \"a\" , \"params\" : { \"x\" : [ ] } } \r", Message{Kind: KindRequest, ID: id("1"), Method: "a", Params: []byte(`{ "x" : [ ] }`)}},
		"braces in texts":         {`{"method":"a","params":{"s":"}],\"{\\"},"id":3}`, Message{Kind: KindRequest, ID: id("3"), Method: "a", Params: []byte(`{"s":"}],\"{\\"}`)}},
		"unknown members":         {`{"method":"a","_meta":{"method":"b"},"z":[{"id":5}]}`, Message{Kind: KindNotification, Method: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse([]byte(tt.line))
			tt.want.Raw = []byte(tt.line)
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%s\n got %+v, %v\nwant %+v", tt.line, got, err, tt.want)
			}
		})
	}
}

func TestParse_NotACP(t *testing.T) {
	t.Parallel()
	for line, why := range map[string]string{
		"":                                    "not JSON",
		"npm warn deprecated":                 "not JSON",
		`{"id":1,"method":"a"`:                "not JSON",
		`{"id":1,"method":"a"}}`:              "not JSON",
		`{"id":1,"method":"a"} {}`:            "not JSON",
		"\xef\xbb\xbf{\"method\":\"a\"}":      "not JSON",
		strings.Repeat("[", 20_000):           "not JSON",
		`[]`:                                  "not a JSON object",
		`[{"id":1,"method":"a"}]`:             "not a JSON object",
		`"text"`:                              "not a JSON object",
		`5`:                                   "not a JSON object",
		`null`:                                "not a JSON object",
		`{}`:                                  "neither a method",
		`{"level":"info","msg":"started"}`:    "neither a method",
		`{"id":1}`:                            "neither a method",
		`{"id":1,"error":null}`:               "neither a method",
		`{"result":5}`:                        "without an id",
		`{"error":{"code":1,"message":"m"}}`:  "without an id",
		`{"id":1,"result":5,"error":{}}`:      "both a result and an error",
		`{"id":1,"method":"a","result":5}`:    "both a request and an answer",
		`{"id":1,"method":"a","error":{}}`:    "both a request and an answer",
		`{"id":1,"method":5}`:                 "method is not a text",
		`{"id":true,"method":"a"}`:            "its id",
		`{"id":[1],"method":"a"}`:             "its id",
		`{"id":{},"result":1}`:                "its id",
		`{"jsonrpc":"1.0","method":"a"}`:      "jsonrpc",
		`{"jsonrpc":2.0,"method":"a","id":1}`: "jsonrpc",
	} {
		m, err := Parse([]byte(line))
		if !errors.Is(err, ErrNotACP) || !strings.Contains(err.Error(), why) {
			t.Errorf("%.60q: got %+v, %v, want ErrNotACP that says %q", line, m, err, why)
		}
	}
}

func TestParse_ErrorMayBeShown(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"\x1b[31mred\x1b[0m\x00\u202e", strings.Repeat("€", 1<<20), "\xe2\x82" + strings.Repeat("\xff", 500), strings.Repeat("\a", 5000)} {
		_, err := Parse([]byte(line))
		if err == nil {
			t.Fatalf("%.20q was taken", line)
		}
		s := err.Error()
		if len(s) > 300 || !utf8.ValidString(s) || strings.ContainsAny(s, "\x00\x1b\a\n\u202e\ufffd") {
			t.Errorf("%.20q: the error is %q", line, s)
		}
	}
}

func TestExcerpt(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"":                        "",
		"plain {\"a\": 'ä'} 🙂":    "plain {\"a\": 'ä'} 🙂",
		"a\n\tb\x00":              `a\u000a\u0009b\u0000`,
		"\x1b[31m\u202e\xff":      `\u001b[31m\u202e\xff`,
		strings.Repeat("€", 67):   strings.Repeat("€", 67),
		strings.Repeat("€", 70):   strings.Repeat("€", 67) + "…",
		strings.Repeat("x", 1000): strings.Repeat("x", 200) + "…",
	} {
		if got := Excerpt([]byte(raw)); got != want {
			t.Errorf("%.20q: got %q, want %q", raw, got, want)
		}
	}
}

func TestID(t *testing.T) {
	t.Parallel()
	seen := map[ID]string{}
	for _, raw := range []string{`0`, `1`, `1.0`, `"1"`, `-1`, `18446744073709551616`, `null`, `"a"`, `"\u0061"`, `""`} {
		m, err := Parse([]byte(`{"method":"m","id": ` + raw + ` }`))
		if err != nil || m.ID.String() != raw {
			t.Errorf("%s: got %s, %v", raw, m.ID, err)
		}
		if other, ok := seen[m.ID]; ok {
			t.Errorf("%s equals %s", raw, other)
		}
		seen[m.ID] = raw
	}
	if m, _ := Parse([]byte(`{"id":42,"result":0}`)); m.ID != NumberID(42) {
		t.Errorf("got %s, want the id of request 42", m.ID)
	}
	if (ID{}).String() != "null" {
		t.Errorf("no id is written as %s", ID{})
	}
}

// Ids that are written differently and read alike are one; no others are.
//
// proves PER-1
func TestID_Read(t *testing.T) {
	t.Parallel()
	read := func(raw string) ID {
		m, err := Parse([]byte(`{"method":"m","id": ` + raw + ` }`))
		if err != nil {
			t.Fatal(err)
		}
		return m.ID.Read()
	}
	for a, b := range map[string]string{`"x"`: `"\u0078"`, `"/"`: `"\/"`, `"é"`: `"\u00e9"`, `1`: `1.0`, `10`: `1e1`, `0`: `-0`, `"😀"`: `"\ud83d\ude00"`} {
		if read(a) != read(b) {
			t.Errorf("%s and %s read as %s and %s", a, b, read(a), read(b))
		}
	}
	seen := map[ID]string{}
	for _, raw := range []string{`1`, `"1"`, `1.5`, `"1.0"`, `-1`, `18446744073709551616`, `18446744073709551617`, `null`, `"a"`, `"A"`, `""`} {
		if other, ok := seen[read(raw)]; ok {
			t.Errorf("%s reads as %s", raw, other)
		}
		seen[read(raw)] = raw
	}
}

// A long line is not copied for what is in it: its parts are where they lie.
func TestParse_CopiesNothing(t *testing.T) { // alone: what is allocated is counted for the process
	line := []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + strings.Repeat("x", 12<<20) + `"}}}}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	_, u := ParseUpdate(m.Params)
	runtime.ReadMemStats(&after)
	if got := len(u.(Chunk).Content.(TextBlock).Text); got != 12<<20 {
		t.Errorf("the text has %d bytes", got)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 3*12<<20 { // the text itself, in two steps
		t.Errorf("%d MiB were allocated", took>>20)
	}
}

// A list that would take more memory than its line is refused: its elements may be
// much larger than their JSON.
func TestDecode_LongListsAreRefused(t *testing.T) {
	t.Parallel()
	list := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("{},", n), ",") + "]" }
	call, err := Decode[ToolCall]([]byte(`{"toolCallId":"c","content":` + list(maxElements) + `}`))
	if err != nil || len(call.Content) != maxElements {
		t.Errorf("got %d pieces, %v", len(call.Content), err)
	}
	call, err = Decode[ToolCall]([]byte(`{"toolCallId":"c","content":` + list(maxElements+1) + `}`))
	if err != nil || call.Content != nil {
		t.Errorf("got %d pieces, %v, want none", len(call.Content), err)
	}
}

// Whatever a line is, reading it ends without a panic, and the members that are found
// are those that encoding/json finds.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"o"}]}}`,
		`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","content":[{"type":"diff","path":"p","newText":"x"}]}}}`,
		`{"id":"x","result":{"sessionId":"s","configOptions":[{"id":"m","options":[{"name":"g","options":[{"value":"v"}]}]}]}}`,
		`{"id":1,"error":{"code":-1,"message":"m"}}`, `[`, `{"a`, `{"a":`, `{"a":1,}`, `{"a"\`, "\xff",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		decodeAll(line) // also what is no JSON at all
		wantMembers(t, line)
		m, err := Parse(line)
		if err != nil {
			if !errors.Is(err, ErrNotACP) || !utf8.ValidString(err.Error()) {
				t.Errorf("error %q", err)
			}
			return
		}
		if m.Kind == KindRequest {
			answer, err := Result(m.ID, nil)
			if again, err2 := Parse(answer); err != nil || err2 != nil || again.ID != m.ID {
				t.Errorf("id %s came back as %s: %v, %v", m.ID, again.ID, err, err2)
			}
		}
		decodeAll(m.Params)
		decodeAll(m.Result)
	})
}

// wantMembers compares with encoding/json.
func wantMembers(t *testing.T, line []byte) {
	t.Helper()
	var want map[string]json.RawMessage
	if json.Unmarshal(line, &want) != nil || want == nil {
		return
	}
	got := map[string]json.RawMessage{}
	isObject := eachMember(line, func(name string, value json.RawMessage) { got[name] = value })
	if !isObject || !reflect.DeepEqual(got, want) {
		t.Errorf("%q\n got %q\nwant %q", line, got, want)
	}
}

func decodeAll(raw []byte) {
	_, _ = ParseUpdate(raw)
	_, _ = Decode[InitializeResult](raw)
	_, _ = Decode[NewSessionResult](raw)
	_, _ = Decode[PromptResult](raw)
	_, _ = Decode[PromptParams](raw)
	_, _ = Decode[PermissionParams](raw)
	_, _ = Decode[CancelRequestParams](raw)
}

// proves COO-4
func TestEachLeaf(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a":"b" , "c" : [1,-2.5e3,true,null,{"d":"e,\"f\":"}],"":{}}`: `"b"|1|-2.5e3|true|null|"e,\"f\":"`,
		`"x"`: `"x"`, ` 5 `: `5`, `[]`: ``, ``: ``, `[[["a"]],"b"]`: `"a"|"b"`,
	} {
		var got []string
		EachLeaf([]byte(in), func(leaf json.RawMessage) bool { got = append(got, string(leaf)); return true })
		if strings.Join(got, "|") != want {
			t.Errorf("%s has %q, want %s", in, got, want)
		}
	}
}

// proves PER-1
func TestTwice(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		``: "", `{"a":1,"b":{"a":2},"c":[{"a":1},{"a":1}]}`: "", `["a","a"]`: "", `"a"`: "",
		`{"a":1,"b":2,"a":1}`: "a", `{"a":1,"\u0061":2}`: "a", `{"x":[{"a":{"b":1,"b":1}}]}`: "b", `{"x":{"y":1},"x":2}`: "x",
	} {
		if got, twice := Twice([]byte(raw)); got != want || twice != (want != "") {
			t.Errorf("%s: %q, %t", raw, got, twice)
		}
	}
	var many strings.Builder
	for i := range mostNames + 1 {
		fmt.Fprintf(&many, `,"m%d":1`, i)
	}
	if _, twice := Twice([]byte("{" + many.String()[1:] + "}")); !twice {
		t.Error("too many to tell are told")
	}
}
