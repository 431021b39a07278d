package model

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

const prompt = `SAY(one two)\nRUN(echo \"hi\")\nSAY(three)\nEDIT(/tmp/x, hello there)`

// Each API: what it is asked after so many results of tools, and what it answers.
var spoken = map[string]struct {
	path  string
	asks  [3]string
	wants [3][]string
}{
	"anthropic": {
		"/v1/messages",
		[3]string{
			`{"stream": true, "tools": [{"name": "Bash"}], "messages": [{"role": "user", "content": [{"type": "text", "text": "PROMPT"}, {"type": "text", "text": "<system-reminder>SAY(no)"}]}]}`,
			`{"stream": true, "tools": [{"name": "Write", "input_schema": {"properties": {"file_path": {}}}}], "messages": [{"role": "user", "content": "PROMPT"}, {"role": "assistant", "content": []}, {"role": "user", "content": [{"type": "tool_result"}]}]}`,
			`{"stream": true, "messages": [{"role": "user", "content": "PROMPT"}]}`,
		},
		[3][]string{{`"text":"one "`, `"text":"two"`, `"name":"Bash"`, `"tool_use"`, "message_stop"}, {`"text":"three"`, `"name":"Write"`, `file_path`, "message_stop"}, {`"text":"A "`, `"end_turn"`}},
	},
	"openai": {
		"/v1/chat/completions",
		[3]string{
			`{"stream": true, "tools": [{"function": {"name": "bash"}}], "messages": [{"role": "system", "content": "SAY(no)"}, {"role": "user", "content": "PROMPT"}]}`,
			`{"stream": true, "tools": [{"function": {"name": "write", "parameters": {"properties": {"filePath": {}}}}}], "messages": [{"role": "user", "content": [{"type": "text", "text": "PROMPT"}]}, {"role": "assistant", "content": null}, {"role": "tool", "content": "hi"}]}`,
			`{"stream": true, "messages": [{"role": "user", "content": "PROMPT"}]}`,
		},
		[3][]string{{`"content":"one "`, `"content":"two"`, `"name":"bash"`, `"finish_reason":"tool_calls"`, "data: [DONE]"}, {`"content":"three"`, `"name":"write"`, `filePath`, "data: [DONE]"}, {`"content":"A "`, `"finish_reason":"stop"`}},
	},
}

func TestModel_SpeaksBoth(t *testing.T) {
	t.Parallel()
	for name, c := range spoken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := New()
			defer m.Close()
			for i, ask := range c.asks {
				got := post(t, m, c.path, strings.ReplaceAll(ask, "PROMPT", prompt))
				at := 0
				for _, want := range c.wants[i] {
					n := strings.Index(got[at:], want)
					if n < 0 {
						t.Fatalf("request %d has no %s in its place:\n%s", i, want, got)
					}
					at += n
				}
				for line := range strings.Lines(got) {
					if data, ok := strings.CutPrefix(line, "data: "); ok && !json.Valid([]byte(data)) && data != "[DONE]\n" {
						t.Errorf("no JSON: %s", data)
					}
				}
			}
			asked := m.Asked()
			if len(asked) != 2 || asked[0].API != name || asked[0].Step != 0 || asked[1].Step != 1 || asked[0].Conversation == asked[1].Conversation {
				t.Errorf("it was asked %s", m)
			}
		})
	}
}

func TestModel_Waits(t *testing.T) {
	t.Parallel()
	m := New()
	defer m.Close()
	done := make(chan string)
	go func() {
		done <- post(t, m, "/v1/chat/completions", `{"stream": true, "tools": [{"function": {"name": "bash"}}], "messages": [{"role": "user", "content": "SAY(a)\nWAIT(x)\nSAY(b)"}]}`)
	}()
	<-m.Reached("x")
	select {
	case got := <-done:
		t.Fatalf("it answered %s", got)
	default:
	}
	m.GoOn("x")
	if got := <-done; !strings.Contains(got, `"content":"b"`) {
		t.Errorf("it answered %s", got)
	}
	if words := m.Asked()[0].Words; !slices.Equal(words, []Word{{"SAY", "a"}, {"WAIT", "x"}, {"SAY", "b"}}) {
		t.Errorf("it read %v", words)
	}
}

func TestModel_Learns(t *testing.T) {
	t.Parallel()
	m := New()
	defer m.Close()
	m.Teach("Tidy up", `SAY(one\ntwo)`)
	got := post(t, m, "/v1/messages", `{"stream": true, "tools": [{"name": "Bash"}], "messages": [{"role": "user", "content": "Tidy up, please"}]}`)
	if !strings.Contains(got, `"text":"one\ntwo"`) {
		t.Errorf("it answered %s", got)
	}
}

func post(t *testing.T, m *Model, path, body string) string {
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, m.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return ""
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("%s answered %s: %v", path, res.Status, err)
	}
	return string(raw)
}
