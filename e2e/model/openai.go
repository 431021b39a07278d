package model

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
)

// openai is the Chat Completions API, which models of many makers are offered by.
type openai struct{}

func (openai) read(body []byte) (*request, error) {
	var in struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name       string `json:"name"`
				Parameters schema `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	q := &request{model: in.Model, stream: in.Stream, tools: map[string][]string{}}
	for _, m := range in.Messages {
		if m.Role == "tool" {
			q.messages = append(q.messages, message{"user", []block{{Type: toolResult}}})
			continue
		}
		q.messages = append(q.messages, message{m.Role, blocks(m.Content)})
	}
	for _, t := range in.Tools {
		q.tools[t.Function.Name] = t.Function.Parameters.keys()
	}
	return q, nil
}

func (openai) whole(q *request, text string) any {
	return openaiMessage(q, "chat.completion", map[string]any{
		"index": 0, "message": map[string]any{"role": "assistant", "content": text}, "finish_reason": "stop",
	})
}

func openaiMessage(q *request, object string, choices ...any) map[string]any {
	return map[string]any{
		"id": "chatcmpl-" + rand.Text(), "object": object, "created": 1, "model": q.model, "choices": append([]any{}, choices...),
		"usage": map[string]any{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
	}
}

func (openai) stream(q *request, w io.Writer) stream {
	s := &openaiStream{w: w, chunk: openaiMessage(q, "chat.completion.chunk")}
	s.usage = s.chunk["usage"]
	delete(s.chunk, "usage")
	s.delta(map[string]any{"role": "assistant", "content": ""})
	return s
}

// openaiStream is an answer in chunks that differ in their choice alone.
type openaiStream struct {
	w     io.Writer
	chunk map[string]any
	usage any
}

func (s *openaiStream) send(choices ...any) {
	s.chunk["choices"] = append([]any{}, choices...)
	_, _ = fmt.Fprintf(s.w, "data: %s\n\n", text(s.chunk)) // who left doesn't read it
}

func (s *openaiStream) delta(delta map[string]any) {
	s.send(map[string]any{"index": 0, "delta": delta, "finish_reason": nil})
}

func (s *openaiStream) text(piece string) { s.delta(map[string]any{"content": piece}) }

func (s *openaiStream) call(name, input string) {
	first, rest := halves(input)
	s.delta(map[string]any{"tool_calls": []any{map[string]any{
		"index": 0, "id": "call_" + rand.Text(), "type": "function", "function": map[string]any{"name": name, "arguments": first},
	}}})
	s.delta(map[string]any{"tool_calls": []any{map[string]any{"index": 0, "function": map[string]any{"arguments": rest}}}})
}

func (s *openaiStream) end(called bool) {
	reason := "stop"
	if called {
		reason = "tool_calls"
	}
	s.send(map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": reason})
	s.chunk["usage"] = s.usage
	s.send()
	_, _ = io.WriteString(s.w, "data: [DONE]\n\n")
}
