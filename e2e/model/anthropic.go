package model

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
)

// anthropic is the Messages API.
type anthropic struct{}

func (anthropic) read(body []byte) (*request, error) {
	var in struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name   string `json:"name"`
			Schema schema `json:"input_schema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	q := &request{model: in.Model, stream: in.Stream, tools: map[string][]string{}}
	for _, m := range in.Messages {
		q.messages = append(q.messages, message{m.Role, blocks(m.Content)})
	}
	for _, t := range in.Tools {
		q.tools[t.Name] = t.Schema.keys()
	}
	return q, nil
}

func (anthropic) whole(q *request, text string) any {
	return anthropicMessage(q, []any{map[string]any{"type": "text", "text": text}})
}

func anthropicMessage(q *request, content []any) map[string]any {
	return map[string]any{
		"id": "msg_" + rand.Text(), "type": "message", "role": "assistant", "model": q.model, "content": content, "stop_reason": "end_turn",
		"usage": map[string]any{"input_tokens": 10, "output_tokens": 1},
	}
}

func (anthropic) stream(q *request, w io.Writer) stream {
	s := &anthropicStream{w: w}
	start := anthropicMessage(q, []any{})
	start["stop_reason"] = nil
	s.send("message_start", map[string]any{"message": start})
	return s
}

// anthropicStream is an answer in blocks.
type anthropicStream struct {
	w     io.Writer
	index int  // of the open block, or the next
	open  bool // there is one
}

func (s *anthropicStream) send(kind string, with map[string]any) {
	with["type"] = kind
	_, _ = fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", kind, text(with)) // who left doesn't read it
}

func (s *anthropicStream) begin(content map[string]any) {
	s.send("content_block_start", map[string]any{"index": s.index, "content_block": content})
	s.open = true
}

func (s *anthropicStream) delta(delta map[string]any) {
	s.send("content_block_delta", map[string]any{"index": s.index, "delta": delta})
}

func (s *anthropicStream) close() {
	if s.open {
		s.send("content_block_stop", map[string]any{"index": s.index})
		s.index, s.open = s.index+1, false
	}
}

func (s *anthropicStream) text(piece string) {
	if !s.open {
		s.begin(map[string]any{"type": "text", "text": ""})
	}
	s.delta(map[string]any{"type": "text_delta", "text": piece})
}

func (s *anthropicStream) call(name, input string) {
	s.close()
	s.begin(map[string]any{"type": "tool_use", "id": "toolu_" + rand.Text(), "name": name, "input": map[string]any{}})
	first, rest := halves(input)
	for _, half := range []string{first, rest} {
		s.delta(map[string]any{"type": "input_json_delta", "partial_json": half})
	}
	s.close()
}

func (s *anthropicStream) end(called bool) {
	s.close()
	reason := "end_turn"
	if called {
		reason = "tool_use"
	}
	s.send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": reason, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 5}})
	s.send("message_stop", map[string]any{})
}
