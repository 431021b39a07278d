package wire

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestParseUpdate(t *testing.T) {
	t.Parallel()
	text := func(s string) Block { return TextBlock{s} }
	for name, tt := range map[string]struct {
		update string
		want   Update
	}{
		"message of the agent":  {`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\u0000ü"},"messageId":"m"}`, Chunk{AgentMessage, text("a\x00ü"), "m"}},
		"thought":               {`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":""}}`, Chunk{AgentThought, text(""), ""}},
		"message of the person": {`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"a"},"messageId":null}`, Chunk{UserMessage, text("a"), ""}},
		"message id of a wrong type": {
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"},"messageId":5}`,
			Chunk{AgentMessage, text("a"), ""},
		},
		"plan": {
			`{"sessionUpdate":"plan","entries":[{"content":"a","priority":"high","status":"pending"},{"content":"b","priority":"urgent","status":5}]}`,
			Plan{[]PlanEntry{{"a", "high", "pending"}, {"b", "urgent", ""}}},
		},
		"empty plan": {`{"sessionUpdate":"plan","entries":[]}`, Plan{[]PlanEntry{}}},
		"commands": {
			`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"web","description":"d","input":{"hint":"h"}},{"name":"x"}]}`,
			Commands{[]Command{{"web", "d", &CommandInput{"h"}}, {"x", "", nil}}},
		},
		"mode": {`{"sessionUpdate":"current_mode_update","currentModeId":"plan"}`, CurrentMode{"plan"}},
		"options": {
			`{"sessionUpdate":"config_option_update","configOptions":[]}`,
			ConfigOptions{[]ConfigOption{}},
		},
		"session":        {`{"sessionUpdate":"session_info_update","title":"t"}`, SessionInfo{Title: ptr("t")}},
		"session, empty": {`{"sessionUpdate":"session_info_update"}`, SessionInfo{}},
		"usage":          {`{"sessionUpdate":"usage_update","used":9007199254740993,"size":200000,"cost":{"amount":0.10,"currency":"USD"}}`, UsageUpdate{9007199254740993, 200000, &Cost{"0.10", "USD"}}},
		"usage, no size": {`{"sessionUpdate":"usage_update","used":1,"size":null,"cost":{"amount":{}}}`, UsageUpdate{Used: 1}},
		"notice":         {`{"sessionUpdate":"notice","severity":"warning","title":"t","description":"d"}`, Notice{"warning", "t", "d"}},
		"compaction": {
			`{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed","summary":[{"type":"text","text":"s"}]}`,
			Compaction{CompactionID: "c", Status: "completed", Summary: []Block{text("s")}},
		},
		"chunk of a compaction": {`{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"s"}}`, CompactionChunk{"c", text("s")}},
		"the last of two members": {
			`{"sessionUpdate":"plan","sessionUpdate":"current_mode_update","currentModeId":"a","currentModeId":"b"}`,
			CurrentMode{"b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			session, got := ParseUpdate(json.RawMessage(`{"sessionId":"s","update":` + tt.update + `,"_meta":{}}`))
			if session != "s" || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("of session %q got\n%#v, want\n%#v", session, got, tt.want)
			}
		})
	}
}

func TestParseUpdate_Unknown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kind, update string }{
		{"subagent_update", `{"sessionUpdate":"subagent_update","x":[1]}`},
		{"agent_message_chunk", `{"sessionUpdate":"agent_message_chunk"}`},
		{"agent_message_chunk", `{"sessionUpdate":"agent_message_chunk","content":null}`},
		{"agent_message_chunk", `{"sessionUpdate":"agent_message_chunk","content":"text"}`},
		{"tool_call", `{"sessionUpdate":"tool_call","title":"t"}`},
		{"tool_call_update", `{"sessionUpdate":"tool_call_update","toolCallId":[5],"status":"completed"}`},
		{"plan", `{"sessionUpdate":"plan","entries":{}}`},
		{"plan", `{"sessionUpdate":"plan","entries":[{"content":"a"},{"content":5}]}`},
		{"plan", `{"sessionUpdate":"plan","entries":["a"]}`},
		{"available_commands_update", `{"sessionUpdate":"available_commands_update"}`},
		{"current_mode_update", `{"sessionUpdate":"current_mode_update","currentModeId":{}}`},
		{"config_option_update", `{"sessionUpdate":"config_option_update","configOptions":[{"name":"no id"}]}`},
		{"usage_update", `{"sessionUpdate":"usage_update","used":"12"}`},
		{"notice", `{"sessionUpdate":"notice"}`},
		{"compaction_update", `{"sessionUpdate":"compaction_update"}`},
		{"compaction_summary_chunk", `{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":[]}`},
		{"Agent_Message_Chunk", `{"sessionUpdate":"Agent_Message_Chunk","content":{"type":"text","text":"kinds are exact"}}`},
		{"", `{"sessionUpdate":7}`},
		{"", `{}`},
		{"", `"text"`},
		{"", `[]`},
	} {
		session, got := ParseUpdate(json.RawMessage(`{"sessionId":"s","update":` + tt.update + `}`))
		if want := (UnknownUpdate{tt.kind, json.RawMessage(tt.update)}); session != "s" || !reflect.DeepEqual(got, want) {
			t.Errorf("%s of %q\n got %+v\nwant %+v", tt.update, session, got, want)
		}
	}
	for _, params := range []string{`{}`, `[]`, `5`, `null`, ``, `{"sessionId":5}`, `{"update":null}`} {
		session, got := ParseUpdate(json.RawMessage(params))
		if want := (UnknownUpdate{Raw: json.RawMessage(params)}); session != "" || !reflect.DeepEqual(got, want) {
			t.Errorf("%s of %q\n got %+v\nwant %+v", params, session, got, want)
		}
	}
}

// A tool call is what is new: absent and null are unchanged, and an empty list is none.
func TestParseUpdate_ToolCall(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		raw  string
		want ToolCall
	}{
		"new": {
			`{"sessionUpdate":"tool_call","toolCallId":"c","title":"bash","kind":"execute","status":"pending","rawInput":{"n":9007199254740993},"locations":[{"path":"/a","line":3},{"path":"/b","line":"x"}],"name":"Bash"}`,
			ToolCall{
				Kind: NewToolCall, ToolCallID: "c", Title: ptr("bash"), ToolKind: ptr("execute"), Status: ptr("pending"), Name: ptr("Bash"),
				RawInput: json.RawMessage(`{"n":9007199254740993}`), Locations: []Location{{"/a", ptr[int64](3)}, {"/b", nil}},
			},
		},
		"only meta":      {`{"sessionUpdate":"tool_call_update","toolCallId":"c","_meta":{"x":1}}`, ToolCall{Kind: ToolCallChange, ToolCallID: "c"}},
		"null":           {`{"sessionUpdate":"tool_call_update","toolCallId":"c","title":null,"content":null,"locations":null,"rawInput":null,"status":null}`, ToolCall{Kind: ToolCallChange, ToolCallID: "c"}},
		"empty":          {`{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"","content":[],"locations":[],"rawOutput":""}`, ToolCall{Kind: ToolCallChange, ToolCallID: "c", Title: ptr(""), Content: []ToolContent{}, Locations: []Location{}, RawOutput: json.RawMessage(`""`)}},
		"unknown words":  {`{"sessionUpdate":"tool_call","toolCallId":"c","kind":"teleport","status":"cancelled"}`, ToolCall{Kind: NewToolCall, ToolCallID: "c", ToolKind: ptr("teleport"), Status: ptr("cancelled")}},
		"of wrong types": {`{"sessionUpdate":"tool_call","toolCallId":"c","title":5,"kind":[],"content":"x","locations":[5],"status":"failed"}`, ToolCall{Kind: NewToolCall, ToolCallID: "c", Status: ptr("failed")}},
		"content": {
			`{"sessionUpdate":"tool_call","toolCallId":"c","content":[{"type":"content","content":{"type":"text","text":"o"}},{"type":"diff","path":"/p","oldText":"a","newText":"b"},{"type":"diff","path":"/n","oldText":null,"newText":""},{"type":"terminal","terminalId":"t"},{"type":"hologram","x":1},{"type":"diff","path":"/p"}]}`,
			ToolCall{Kind: NewToolCall, ToolCallID: "c", Content: []ToolContent{
				ToolBlock{TextBlock{"o"}},
				Diff{"/p", ptr("a"), "b"},
				Diff{"/n", nil, ""},
				Terminal{"t"},
				UnknownToolContent{"hologram", json.RawMessage(`{"type":"hologram","x":1}`)},
				UnknownToolContent{"diff", json.RawMessage(`{"type":"diff","path":"/p"}`)},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.want.Raw = json.RawMessage(tt.raw)
			_, got := ParseUpdate(json.RawMessage(`{"sessionId":"s","update":` + tt.raw + `}`))
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got\n%#v, want\n%#v", got, tt.want)
			}
		})
	}
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		raw  string
		want Block
	}{
		{`{"type":"text","text":"a","annotations":{"audience":["user"]}}`, TextBlock{"a"}},
		{`{"type":"text","text":"\ud83d\ude42 \ud83d"}`, TextBlock{"🙂 \ufffd"}},
		{`{"type":"image","data":"aa","mimeType":"image/png","uri":"u"}`, ImageBlock{"aa", "image/png", "u"}},
		{`{"type":"audio","data":"aa","mimeType":5}`, AudioBlock{"aa", ""}},
		{`{"type":"resource_link","uri":"file:///a","name":"a","title":"t","description":"d","mimeType":"m","size":5}`, LinkBlock{"file:///a", "a", "t", "d", "m", ptr[int64](5)}},
		{`{"type":"resource_link","uri":"u","size":"big"}`, LinkBlock{URI: "u"}},
		{`{"type":"resource","resource":{"uri":"u","text":"t"}}`, ResourceBlock{Resource{URI: "u", Text: ptr("t")}}},
		{`{"type":"resource","resource":{"uri":"u","blob":"b","mimeType":"m"}}`, ResourceBlock{Resource{URI: "u", MIMEType: "m", Blob: ptr("b")}}},
		{`{"type":"resource","resource":{"text":"t"}}`, UnknownBlock{"resource", json.RawMessage(`{"type":"resource","resource":{"text":"t"}}`)}},
		{`{"type":"text","text":5}`, UnknownBlock{"text", json.RawMessage(`{"type":"text","text":5}`)}},
		{`{"type":"video","data":"aa"}`, UnknownBlock{"video", json.RawMessage(`{"type":"video","data":"aa"}`)}},
		{`{"text":"no type"}`, UnknownBlock{"", json.RawMessage(`{"text":"no type"}`)}},
	} {
		got, err := Decode[Block](json.RawMessage(tt.raw))
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s\n got %#v, %v\nwant %#v", tt.raw, got, err, tt.want)
		}
	}
}

// What is of another form than it should be is missing, and known to be so.
func TestToolCall_Misread(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		`{"toolCallId":"c"}`:                 false,
		`{"toolCallId":"c","title":null}`:    false,
		`{"toolCallId":"c","title":""}`:      false,
		`{"toolCallId":"c","content":[]}`:    false,
		`{"toolCallId":"c","title":["a"]}`:   true,
		`{"toolCallId":"c","status":5}`:      true,
		`{"toolCallId":"c","content":"x"}`:   true,
		`{"toolCallId":"c","locations":[5]}`: true,
	} {
		c, err := Decode[ToolCall](json.RawMessage(raw))
		if err != nil || c.Misread() != want {
			t.Errorf("%s: %v, %v", raw, c.Misread(), err)
		}
	}
}
