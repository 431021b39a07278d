package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestEncode(t *testing.T) {
	t.Parallel()
	line := func(b []byte, err error) string {
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	id := func(raw string) ID {
		m, err := Parse([]byte(`{"method":"m","id":` + raw + `}`))
		if err != nil {
			t.Fatal(err)
		}
		return m.ID
	}
	for name, tt := range map[string]struct{ got, want string }{
		"request":             {line(Request(0, "m", map[string]int{"a": 1})), `{"jsonrpc":"2.0","id":0,"method":"m","params":{"a":1}}`},
		"request, no params":  {line(Request(1, "m", nil)), `{"jsonrpc":"2.0","id":1,"method":"m"}`},
		"notification":        {line(Notify("m", CancelParams{"s"})), `{"jsonrpc":"2.0","method":"m","params":{"sessionId":"s"}}`},
		"result":              {line(Result(id("0"), Cancelled())), `{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"cancelled"}}}`},
		"result, selected":    {line(Result(id("1"), Selected("once"))), `{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"selected","optionId":"once"}}}`},
		"result null":         {line(Result(id("1"), nil)), `{"jsonrpc":"2.0","id":1,"result":null}`},
		"error":               {line(ErrorAnswer(id(`"x"`), CodeMethodNotFound, "no <m>\n")), `{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"no <m>\n"}}`},
		"id is echoed":        {line(Result(id(`"\u0061<&>\/"`), 1)), `{"jsonrpc":"2.0","id":"\u0061<&>\/","result":1}`},
		"id with odd bytes":   {line(Result(id("\"\xff\u2028\""), 1)), "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\u2028\",\"result\":1}"},
		"big id":              {line(Result(id("123456789012345678901234567890"), 1)), `{"jsonrpc":"2.0","id":123456789012345678901234567890,"result":1}`},
		"id null":             {line(Result(id("null"), 1)), `{"jsonrpc":"2.0","id":null,"result":1}`},
		"no HTML escapes":     {line(Notify("m", map[string]string{"a": "<b> & ü\u2029"})), `{"jsonrpc":"2.0","method":"m","params":{"a":"<b> & ü\u2029"}}`},
		"raw JSON, many rows": {line(Notify("m", json.RawMessage("{\n \"a\": [\n1,\r\n2] }"))), `{"jsonrpc":"2.0","method":"m","params":{"a":[1,2]}}`},
		"a prompt": {
			line(Request(3, MethodSessionPrompt, PromptParams{"s", []Block{TextBlock{""}, TextBlock{"a <b>\n"}, LinkBlock{URI: "file:///x", Name: "x"}, UnknownBlock{"new", []byte(`{"type":"new","n":1}`)}}})),
			`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":""},{"type":"text","text":"a <b>\n"},{"type":"resource_link","uri":"file:///x","name":"x"},{"type":"new","n":1}]}}`,
		},
		"other blocks": {
			line(Notify("m", []Block{ImageBlock{Data: "aa", MIMEType: "image/png"}, AudioBlock{"bb", "audio/wav"}, ResourceBlock{Resource{URI: "u", Text: ptr("")}}})),
			`{"jsonrpc":"2.0","method":"m","params":[{"type":"image","data":"aa","mimeType":"image/png"},{"type":"audio","data":"bb","mimeType":"audio/wav"},{"type":"resource","resource":{"uri":"u","text":""}}]}`,
		},
		"initialize": {
			line(Request(0, MethodInitialize, InitializeParams{ProtocolVersion: ProtocolVersion, ClientInfo: &Implementation{Name: "n", Version: "1"}})),
			`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false},"clientInfo":{"name":"n","version":"1"}}}`,
		},
		"a new session":  {line(Request(1, MethodSessionNew, SessionParams{Cwd: "/w"})), `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`},
		"an old session": {line(Request(1, MethodSessionLoad, SessionParams{SessionID: "s", Cwd: "/w", MCPServers: MCPServers{json.RawMessage(`{"name":"x"}`)}})), `{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/w","mcpServers":[{"name":"x"}]}}`},
		"a setting":      {line(Request(1, MethodSetConfigOption, SetConfigParams{SessionID: "s", ConfigID: "c", Value: "v"})), `{"jsonrpc":"2.0","id":1,"method":"session/set_config_option","params":{"sessionId":"s","configId":"c","value":"v"}}`},
	} {
		if tt.got != tt.want+"\n" {
			t.Errorf("%s\n got %q\nwant %q", name, tt.got, tt.want+"\n")
		}
	}
}

func ptr[T any](v T) *T { return &v }

func TestEncode_Fails(t *testing.T) {
	t.Parallel()
	for _, bad := range []any{func() {}, json.RawMessage("{")} {
		if line, err := Request(1, "m", bad); err == nil || line != nil || !strings.Contains(err.Error(), "request m") {
			t.Errorf("got %q, %v", line, err)
		}
	}
}

// What is written is read as what it was, and is one line for Lines.
func TestEncode_IsOneLine(t *testing.T) {
	t.Parallel()
	line, err := Request(5, "m", []string{"\n\r\u0085\u2028\x00\xff"})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Count(line, []byte{'\n'}) != 1 || line[len(line)-1] != '\n' {
		t.Errorf("got %q", line)
	}
	var l Lines
	lines, err := l.Feed(line)
	if err != nil || len(lines) != 1 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	if m, err := Parse(lines[0].Bytes); err != nil || m.ID != NumberID(5) {
		t.Errorf("got %+v, %v", m, err)
	}
}
