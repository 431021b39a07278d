package journal

import (
	"strings"
	"testing"
)

// Of a protocol's message the protocol's own words and numbers are left alone, and
// elsewhere nothing is.
//
// proves OWN-3 JRN-8
func TestCleaner_Shaped(t *testing.T) {
	t.Parallel()
	shape := &Shape{Names: map[string]bool{"stopReason": true, "rawInput": true}, Words: map[string][]string{"stopReason": {"end_turn"}}, Free: map[string]bool{"rawInput": true}}
	c := NewCleaner([]string{"end_turn", "stopReason", "rawInput", "12345678"})
	for in, want := range map[string]string{
		`{"stopReason":"end_turn","n":12345678}`:                      `{"stopReason":"end_turn","n":12345678}`,
		`{"stopReason":"an end_turn","n":1}`:                          `{"stopReason":"an [hidden]","n":1}`,
		`{"title":"end_turn"}`:                                        `{"title":"[hidden]"}`,
		`{"title":["stopReason"],"x":{"stopReason":"\u0065nd_turn"}}`: `{"title":["[hidden]"],"x":{"stopReason":"\u0065nd_turn"}}`,
		`{"rawInput":{"stopReason":"end_turn","n":[12345678,9.5]}}`:   `{"rawInput":{"[hidden]":"[hidden]","n":["[hidden]",9.5]}}`,
	} {
		if got, err := c.Shaped([]byte(in), shape); err != nil || string(got) != want {
			t.Errorf("%s became %s, %v; want %s", in, got, err, want)
		}
	}
	if got, err := c.JSON([]byte(`{"pin":12345678}`)); err != nil || string(got) != `{"pin":"[hidden]"}` {
		t.Errorf("a number became %s, %v", got, err)
	}
	if !shape.Holds("d_tur") || !shape.Holds("Reason") || shape.Holds("end_turns") {
		t.Error("what is a part of a word isn't known")
	}
}

// Bodies of events keep their names, ids, digests and enumerations, whatever is secret.
//
// proves OWN-3 JRN-8
func TestCleaner_Typed(t *testing.T) {
	t.Parallel()
	c := NewCleaner([]string{"completed", "turn_id", "trn_1234", "deadbeef", "an agent's", "agent_session_id", "secret-1", "usr_1234", "interrupted", "12345678", "assistant"})
	sum := strings.Repeat("deadbeef", 8)
	for _, tt := range []struct {
		body Body
		made []string
		want string
	}{
		{&TurnEnded{TurnID: "trn_1234", Outcome: Completed, Reason: "secret-1 completed"}, nil, `{"outcome":"completed","reason":"[hidden] [hidden]","turn_id":"trn_1234"}`},
		{&TurnEnded{TurnID: "trn_1234", Outcome: Interrupted, Reason: ReasonInterrupted}, nil, `{"turn_id":"trn_1234","outcome":"interrupted","reason":"interrupted"}`},
		{&MessageCompleted{MessageID: "m", Role: "assistant", Part: "text", Text: T("secret-1")}, nil, `{"message_id":"m","part":"text","role":"assistant","text":"[hidden]"}`},
		{&MessageCompleted{MessageID: "m", Role: "assistant", Part: "text", Text: Text{Blob: sum, Bytes: 3}}, nil, `{"message_id":"m","role":"assistant","part":"text","text":{"blob":"` + sum + `","bytes":3}}`},
		{&AgentOpened{ProcessID: "trn_1234", AgentSessionID: "secret-1", How: AgentNew, Name: "completed"}, nil, `{"agent_session_id":"[hidden]","how":"new","name":"[hidden]","process_id":"trn_1234","resumes":false,"version":""}`},
		{&CallDescribed{CallID: "trn_1234", Input: []byte(`{"turn_id":"completed","n":12345678}`), InputSHA256: sum}, nil, `{"call_id":"trn_1234","input":{"[hidden]":"[hidden]","n":"[hidden]"},"input_sha256":"` + sum + `"}`},
		{&CallDescribed{CallID: "c", Input: []byte(`{"blob":"` + sum + `"}`)}, []string{"input"}, `{"call_id":"c","input":{"blob":"` + sum + `"},"input_sha256":""}`},
		{&CallDispatched{CallID: "c", N: 12345678, AllowedBy: AllowedBy{Type: AllowedByPerson, ID: "usr_1234", Text: "usr_1234"}}, nil, `{"allowed_by":{"id":"usr_1234","text":"[hidden]","type":"person"},"call_id":"c","n":12345678}`},
		{&SettingsChosen{By: "usr_1234", Settings: []Setting{{ID: "completed", Value: "secret-1"}}}, nil, `{"by":"usr_1234","settings":[{"id":"[hidden]","value":"[hidden]"}]}`},
		{&PermissionAsked{ID: "trn_1234", Tool: ToolRef{CallID: "trn_1234"}, Resources: []string{"cat secret-1"}, Digest: sum, Metadata: []byte(`{"x":"completed"}`)}, nil, `{"always":null,"digest":"` + sum + `","id":"trn_1234","metadata":{"x":"[hidden]"},"permission":"","resources":["cat [hidden]"],"tool":{"call_id":"trn_1234","message_id":null}}`},
	} {
		data, err := Encode(tt.body)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Typed(tt.body, data, tt.made...); err != nil || string(got) != tt.want {
			t.Errorf("%s became\n%s, %v; want\n%s", data, got, err, tt.want)
		}
	}
}

// Of secrets that overlap no part stays, whichever is longer.
//
// proves OWN-3
func TestCleaner_Overlaps(t *testing.T) {
	t.Parallel()
	c := NewCleaner([]string{"abcdefgh", "efghijkl", "xxxx", "abcdefghabcdefgh"})
	for in, want := range map[string]string{
		"1 abcdefghijkl 2":      "1 [hidden] 2",
		"abcdefghabcdefghijkl":  "[hidden]",
		"abcdefghxxxx":          "[hidden][hidden]",
		"xxxxxxx":               "[hidden]",
		"efghijklmabcdefgh\xff": "[hidden]m[hidden]\xff",
		"abcdefg efghijk xxx":   "abcdefg efghijk xxx",
	} {
		if got := c.Bytes(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
