package wire

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// decodes reports what is read of raw, without what is kept raw at its top.
func decodes[T any](t *testing.T, raw string, want T) {
	t.Helper()
	got, err := Decode[T](json.RawMessage(raw))
	if f := reflect.ValueOf(&got).Elem().FieldByName("Raw"); f.IsValid() {
		if string(f.Bytes()) != raw && raw != "null" && raw != "" {
			t.Errorf("kept %s of %s", f.Bytes(), raw)
		}
		f.SetZero()
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s\n got %+v, %v\nwant %+v", raw, got, err, want)
	}
}

// refuses reports an error that is not ErrNotACP, or doesn't name the member.
func refuses[T any](t *testing.T, raw, names string) {
	t.Helper()
	if got, err := Decode[T](json.RawMessage(raw)); !errors.Is(err, ErrNotACP) || !strings.Contains(err.Error(), names) {
		t.Errorf("%s: got %+v, %v, want ErrNotACP that names %s", raw, got, err, names)
	}
}

func TestDecode_Initialize(t *testing.T) {
	t.Parallel()
	decodes(t, `{"protocolVersion":1}`, InitializeResult{ProtocolVersion: 1})
	decodes(t, `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true,"embeddedContext":true},"mcpCapabilities":{"http":true,"sse":true},"sessionCapabilities":{"close":{},"fork":{},"list":{"x":1},"resume":{},"delete":null,"additionalDirectories":false}},"authMethods":[{"id":"a","name":"n","description":"d"}],"agentInfo":{"name":"OpenCode","version":"1.18.33"}}`,
		InitializeResult{
			ProtocolVersion: 1,
			AgentCapabilities: AgentCapabilities{
				LoadSession: true, PromptCapabilities: PromptCapabilities{Image: true, EmbeddedContext: true}, MCPCapabilities: MCPCapabilities{HTTP: true, SSE: true},
				SessionCapabilities: SessionCapabilities{Close: true, Fork: true, List: true, Resume: true},
			},
			AuthMethods: []AuthMethod{{ID: "a", Name: "n", Description: "d", Raw: json.RawMessage(`{"id":"a","name":"n","description":"d"}`)}},
			AgentInfo:   &Implementation{Name: "OpenCode", Version: "1.18.33"},
		})
	decodes(t, `{"protocolVersion":2,"agentCapabilities":{"loadSession":"yes","sessionCapabilities":[]},"authMethods":[{}],"agentInfo":null}`, InitializeResult{ProtocolVersion: 2})
	refuses[InitializeResult](t, `{}`, "protocolVersion")
	refuses[InitializeResult](t, `{"protocolVersion":"2024-01-01"}`, "protocolVersion")
	refuses[InitializeResult](t, `null`, "protocolVersion")
	refuses[InitializeResult](t, `[]`, "not an object")
	decodes(t, `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true},"terminal":true}}`,
		InitializeParams{ProtocolVersion: 1, ClientCapabilities: ClientCapabilities{FS: FSCapabilities{ReadTextFile: true}, Terminal: true}})
}

func TestDecode_Session(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`{"sessionId":"s","modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"A"}]},"models":{"currentModelId":"m","availableModels":[{"modelId":"m","name":"M","description":"d"}]}}`)
	got, err := Decode[NewSessionResult](raw)
	want := NewSessionResult{"s", SessionState{
		Modes:  &Modes{"a", []Mode{{ID: "a", Name: "A"}}},
		Models: &Models{"m", []Model{{"m", "M", "d"}}},
		Raw:    raw,
	}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	refuses[NewSessionResult](t, `{"modes":null}`, "sessionId")
	refuses[NewSessionResult](t, `null`, "sessionId")
	decodes(t, `null`, SessionState{})
	decodes(t, ``, SessionState{})
	decodes(t, `{"modes":{"availableModes":[]},"configOptions":"none","models":5}`, SessionState{})
	refuses[SessionState](t, `5`, "not an object")
	decodes(t, `{"cwd":"/w","mcpServers":[{"name":"x"}],"sessionId":"s"}`, SessionParams{SessionID: "s", Cwd: "/w", MCPServers: MCPServers{json.RawMessage(`{"name":"x"}`)}})
}

func TestDecode_ConfigOptions(t *testing.T) {
	t.Parallel()
	raw := []string{
		`{"id":"model","name":"Model","category":"model","type":"select","currentValue":"p/a","options":[{"value":"p/a","name":"A"},{"value":"p/b","name":"B","description":"d"}]}`,
		`{"id":"grouped","type":"select","currentValue":"x","options":[{"group":"g1","name":"One","options":[{"value":"x","name":"X"}]},{"value":"y","name":"Y"},{"group":"g2","name":"Two","options":[]}]}`,
		`{"id":"fast","name":"Fast","type":"boolean","currentValue":true}`,
		`{"id":"new","type":"slider","currentValue":{"at":0.5},"options":{"min":0}}`,
		`{"id":"half","type":"select","options":[{"value":"a"},{"name":"no value"}]}`,
	}
	want := []ConfigOption{
		{ID: "model", Name: "Model", Category: "model", Type: "select", CurrentValue: json.RawMessage(`"p/a"`), Options: ConfigChoices{{Value: "p/a", Name: "A"}, {Value: "p/b", Name: "B", Description: "d"}}},
		{ID: "grouped", Type: "select", CurrentValue: json.RawMessage(`"x"`), Options: ConfigChoices{{Value: "x", Name: "X", Group: "One"}, {Value: "y", Name: "Y"}}},
		{ID: "fast", Name: "Fast", Type: "boolean", CurrentValue: json.RawMessage(`true`)},
		{ID: "new", Type: "slider", CurrentValue: json.RawMessage(`{"at":0.5}`)},
		{ID: "half", Type: "select"},
	}
	for i := range want {
		decodes(t, raw[i], want[i])
		want[i].Raw = json.RawMessage(raw[i])
	}
	got, err := Decode[ConfigOptions](json.RawMessage(`{"configOptions":[` + strings.Join(raw, ",") + `]}`))
	if err != nil || !reflect.DeepEqual(got.ConfigOptions, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestDecode_Prompt(t *testing.T) {
	t.Parallel()
	decodes(t, `{"stopReason":"end_turn"}`, PromptResult{StopReason: StopEndTurn})
	decodes(t, `{"stopReason":"bored","usage":{"inputTokens":5,"outputTokens":"many","totalTokens":0,"cachedReadTokens":null}}`,
		PromptResult{StopReason: "bored", Usage: &Usage{InputTokens: ptr[int64](5), TotalTokens: ptr[int64](0)}})
	refuses[PromptResult](t, `{"usage":{}}`, "stopReason")
	refuses[PromptResult](t, `null`, "stopReason")
	decodes(t, `{"sessionId":"s","prompt":[{"type":"text","text":"a"}]}`, PromptParams{"s", []Block{TextBlock{"a"}}})
	refuses[PromptParams](t, `{"sessionId":"s","prompt":["a"]}`, "prompt")
}

func TestDecode_Permission(t *testing.T) {
	t.Parallel()
	call := `{"toolCallId":"c","title":"Edit","rawInput":{"n":1e400}}`
	decodes(t, `{"sessionId":"s","toolCall":`+call+`,"options":[{"optionId":"once","name":"Allow","kind":"allow_once"},{"optionId":"x","kind":"ask_mother"}]}`,
		PermissionParams{
			SessionID: "s",
			ToolCall:  ToolCall{ToolCallID: "c", Title: ptr("Edit"), RawInput: json.RawMessage(`{"n":1e400}`), Raw: json.RawMessage(call)},
			Options:   []PermissionOption{{"once", "Allow", AllowOnce}, {"x", "", "ask_mother"}},
		})
	decodes(t, `{"toolCall":{"toolCallId":-5},"options":[]}`, PermissionParams{ // no session, and an id that is a number
		ToolCall: ToolCall{ToolCallID: "-5", Raw: json.RawMessage(`{"toolCallId":-5}`)}, Options: []PermissionOption{},
	})
	refuses[PermissionParams](t, `{"toolCall":{"toolCallId":"c"},"options":[{"optionId":1}]}`, "optionId")
	refuses[PermissionParams](t, `{"sessionId":"s","toolCall":{},"options":[]}`, "toolCall: toolCallId")
	refuses[PermissionParams](t, `{"sessionId":"s","toolCall":{"toolCallId":"c"}}`, "options")
	refuses[PermissionParams](t, `{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"name":"x"}]}`, "options: optionId")
	decodes(t, `{"outcome":{"outcome":"selected","optionId":"o"}}`, Selected("o"))
	decodes(t, `{"outcome":{"outcome":"cancelled"}}`, Cancelled())
}

func TestDecode_Cancel(t *testing.T) {
	t.Parallel()
	decodes(t, `{"requestId":0}`, CancelRequestParams{NumberID(0)})
	decodes(t, `{"requestId":"a"}`, CancelRequestParams{ID{`"a"`}})
	refuses[CancelRequestParams](t, `{"requestId":{}}`, "requestId")
	refuses[CancelRequestParams](t, `{}`, "requestId")
	decodes(t, `{"sessionId":"s"}`, CancelParams{"s"})
}
