//go:build agents

package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// model is a server of the Anthropic Messages API which says and does what its
// prompt asks for, a word a line:
//
//	SAY(text)         streams it, a blank ends a piece
//	WAIT(name)        streams nothing until the test lets it go on, see reached
//	RUN(command)      calls the shell
//	EDIT(path, text)  calls the tool that writes files
//
// An answer ends with the call of a tool, or with the last word. The next request,
// which has the tool's result, is answered from there. So it keeps nothing: what it
// answers depends on its request alone, and a request that is sent twice is answered
// twice and counted twice.
type model struct {
	t    *testing.T
	base string

	mu    sync.Mutex
	calls []modelCall
	waits map[string]*modelWait
}

// modelCall is a request that the model got.
type modelCall struct {
	sum   string // of its body
	convo string // of the conversation that it holds
	step  int    // the results of tools that it holds since its prompt
	words []word
	aside bool // the agent asks for itself, such as for a title: no tools are offered
}

type modelWait struct{ reached, open chan struct{} }

// word is one line of a prompt.
type word struct{ what, arg string }

func (w word) isTool() bool { return w.what == "RUN" || w.what == "EDIT" }

var wordLine = regexp.MustCompile(`(?m)^(SAY|WAIT|RUN|EDIT)\((.*)\)$`)

// unasked is what it says when it is asked for nothing in particular.
const unasked = "Nothing in particular."

func newModel(t *testing.T) *model {
	m := &model{t: t, waits: map[string]*modelWait{}}
	server := httptest.NewServer(m)
	m.base = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		if t.Failed() {
			t.Logf("the model was asked:\n%s", m.dump())
		}
	})
	return m
}

// wait is where the model and the test meet.
func (m *model) wait(name string) *modelWait {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waits[name] == nil {
		m.waits[name] = &modelWait{make(chan struct{}, 100), make(chan struct{})}
	}
	return m.waits[name]
}

// reached waits until the model waits there.
func (m *model) reached(name string) {
	m.t.Helper()
	select {
	case <-m.wait(name).reached:
	case <-time.After(patience):
		m.t.Fatalf("the model was never asked to wait at %s", name)
	}
}

// goOn lets the model go on there, also those that come later.
func (m *model) goOn(name string) { close(m.wait(name).open) }

// asked gives its requests but the asides.
func (m *model) asked() []modelCall {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.calls), func(c modelCall) bool { return c.aside })
}

// want fails unless the model was asked n times, each time something else.
func (m *model) want(n int) {
	m.t.Helper()
	calls := m.asked()
	if len(calls) != n {
		m.t.Errorf("the model was asked %d times, want %d", len(calls), n)
	}
	seen := map[string]bool{}
	for _, c := range calls {
		if seen[c.sum] || seen[c.convo] {
			m.t.Errorf("the model was asked twice for %v", c.words)
		}
		seen[c.sum], seen[c.convo] = true, true
	}
}

func (m *model) dump() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	for _, c := range m.calls {
		fmt.Fprintf(&b, "%.12s, conversation %.12s, after %d results, aside %v: %v\n", c.sum, c.convo, c.step, c.aside, c.words)
	}
	return b.String()
}

// modelRequest is what is read of a request.
type modelRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name   string `json:"name"`
		Schema struct {
			Properties map[string]any `json:"properties"`
		} `json:"input_schema"`
	} `json:"tools"`
}

// ServeHTTP answers the requests of agents.
func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	var q modelRequest
	if err != nil || r.Method != http.MethodPost || json.Unmarshal(raw, &q) != nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/count_tokens") {
		writeJSON(w, map[string]any{"input_tokens": 1})
		return
	}
	c := q.read()
	c.sum = sum(raw)
	m.mu.Lock()
	m.calls = append(m.calls, c)
	m.mu.Unlock()
	a := modelAnswer{m: m, w: w, q: &q, ctx: r.Context()}
	switch {
	case !q.Stream:
		writeJSON(w, a.message([]any{map[string]any{"type": "text", "text": "A title"}}))
	case c.aside:
		a.stream([]word{{"SAY", "A title"}})
	default:
		a.stream(c.now())
	}
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // who left doesn't read it
}

// block is a part of a message.
type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func blocks(content json.RawMessage) []block {
	var text string
	var out []block
	if json.Unmarshal(content, &text) == nil {
		return []block{{"text", text}}
	}
	_ = json.Unmarshal(content, &out) // what can't be read says nothing
	return out
}

// read finds the newest prompt in a request, and how much of it has been done. What
// agents add for themselves, and messages of another role, is no prompt.
func (q *modelRequest) read() modelCall {
	c := modelCall{aside: len(q.Tools) == 0}
	var convo strings.Builder
	for _, message := range q.Messages {
		if message.Role != "user" {
			fmt.Fprintf(&convo, "%s\n", message.Role)
			continue
		}
		for _, b := range blocks(message.Content) {
			fmt.Fprintf(&convo, "%s %s\n", b.Type, b.Text)
			switch {
			case b.Type == "tool_result":
				c.step++
			case b.Type == "text" && !strings.HasPrefix(b.Text, "<system-reminder>"):
				c.step, c.words = 0, nil // agents put several prompts into one message
				for _, found := range wordLine.FindAllStringSubmatch(b.Text, -1) {
					c.words = append(c.words, word{found[1], found[2]})
				}
			}
		}
	}
	c.convo = sum([]byte(convo.String()))
	return c
}

// now gives the words of this step: up to the next tool.
func (c *modelCall) now() []word {
	words := c.words
	if len(words) == 0 {
		return []word{{"SAY", unasked}}
	}
	for range c.step {
		if i := slices.IndexFunc(words, word.isTool); i >= 0 {
			words = words[i+1:]
		} else {
			words = nil
		}
	}
	if i := slices.IndexFunc(words, word.isTool); i >= 0 {
		words = words[:i+1]
	}
	return words
}

// modelAnswer is the stream that answers a request.
type modelAnswer struct {
	m     *model
	w     http.ResponseWriter
	q     *modelRequest
	ctx   context.Context
	index int  // of the open block, or the next
	open  bool // it is a text
}

func (a *modelAnswer) message(content []any) map[string]any {
	return map[string]any{
		"id": "msg_" + newKey(), "type": "message", "role": "assistant", "model": a.q.Model, "content": content, "stop_reason": "end_turn",
		"usage": map[string]any{"input_tokens": 10, "output_tokens": 1},
	}
}

func (a *modelAnswer) send(kind string, with map[string]any) {
	with["type"] = kind
	raw, err := json.Marshal(with)
	if err != nil {
		panic(err) // a map of texts and numbers
	}
	_, _ = fmt.Fprintf(a.w, "event: %s\ndata: %s\n\n", kind, raw)
	if f, ok := a.w.(http.Flusher); ok {
		f.Flush()
	}
}

func (a *modelAnswer) stream(words []word) {
	a.w.Header().Set("Content-Type", "text/event-stream")
	start := a.message([]any{})
	start["stop_reason"] = nil
	a.send("message_start", map[string]any{"message": start})
	reason := "end_turn"
	for _, w := range words {
		switch w.what {
		case "SAY":
			a.say(w.arg)
		case "WAIT":
			if !a.await(w.arg) {
				return // who asked has left
			}
		default:
			a.call(w)
			reason = "tool_use"
		}
	}
	if a.index == 0 && !a.open && reason == "end_turn" {
		a.say("Done.")
	}
	a.endBlock()
	a.send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": reason, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 5}})
	a.send("message_stop", map[string]any{})
}

func (a *modelAnswer) await(name string) bool {
	w := a.m.wait(name)
	w.reached <- struct{}{}
	select {
	case <-w.open:
		return true
	case <-a.ctx.Done():
		return false
	}
}

func (a *modelAnswer) begin(content map[string]any) {
	a.send("content_block_start", map[string]any{"index": a.index, "content_block": content})
}

func (a *modelAnswer) delta(delta map[string]any) {
	a.send("content_block_delta", map[string]any{"index": a.index, "delta": delta})
}

func (a *modelAnswer) endBlock() {
	if a.open {
		a.send("content_block_stop", map[string]any{"index": a.index})
		a.index, a.open = a.index+1, false
	}
}

func (a *modelAnswer) say(text string) {
	if !a.open {
		a.begin(map[string]any{"type": "text", "text": ""})
		a.open = true
	}
	for _, piece := range strings.SplitAfter(text, " ") {
		if piece != "" {
			a.delta(map[string]any{"type": "text_delta", "text": piece})
		}
	}
}

// call calls a tool of the agent, by the names that this agent has for it and for
// what it takes.
func (a *modelAnswer) call(w word) {
	a.endBlock()
	name, input := "Bash", map[string]string{"command": w.arg, "description": "Run it"}
	if w.what == "EDIT" {
		path, text, _ := strings.Cut(w.arg, ", ")
		name, input = "Write", map[string]string{"content": text}
		for _, key := range []string{"file_path", "filePath"} {
			if a.takes(name, key) {
				input[key] = path
			}
		}
	}
	raw, err := json.Marshal(input)
	if err != nil {
		panic(err) // a map of texts
	}
	a.begin(map[string]any{"type": "tool_use", "id": "toolu_" + newKey(), "name": a.tool(name), "input": map[string]any{}})
	for half := range slices.Chunk(raw, len(raw)/2+1) {
		a.delta(map[string]any{"type": "input_json_delta", "partial_json": string(half)})
	}
	a.open = true
	a.endBlock()
}

// tool gives a tool's name as the agent spells it.
func (a *modelAnswer) tool(name string) string {
	for _, t := range a.q.Tools {
		if strings.EqualFold(t.Name, name) {
			return t.Name
		}
	}
	return name
}

func (a *modelAnswer) takes(tool, key string) bool {
	for _, t := range a.q.Tools {
		if strings.EqualFold(t.Name, tool) {
			_, ok := t.Schema.Properties[key]
			return ok
		}
	}
	return false
}
