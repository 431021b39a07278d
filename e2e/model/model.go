// Package model is a language model for tests with real agents. It speaks Anthropic
// Messages and OpenAI Chat Completions, streamed, and says and does what its prompt
// asks for, a word a line:
//
//	SAY(text)         streams it, a blank ends a piece
//	WAIT(name)        streams nothing until GoOn
//	RUN(command)      calls the shell
//	EDIT(path, text)  calls the tool that writes files
//
// In these \n and \t are a line break and a tab. A prompt for people to look at has
// its words from Teach.
// An answer ends with the call of a tool, or with the last word. The next request,
// which has the tool's result, is answered from there. So it keeps nothing: what it
// answers depends on its request alone, and a request that is sent twice is answered
// twice and counted twice.
package model

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Unasked is what it says when it is asked for nothing in particular.
const Unasked = "Nothing in particular."

// Model is one that listens on loopback until Close.
type Model struct {
	server *httptest.Server

	mu     sync.Mutex
	calls  []Call
	taught map[string]string
	waits  map[string]*wait
}

// Call is a request that the model got.
type Call struct {
	API          string // anthropic or openai
	Sum          string // of its body
	Conversation string // the sum of what people and tools say in it
	Step         int    // the results of tools that it holds since its prompt
	Words        []Word
	Aside        bool // the agent asks for itself, such as for a title: no tools are offered
}

type wait struct{ reached, open chan struct{} }

// New starts one.
func New() *Model {
	m := &Model{taught: map[string]string{}, waits: map[string]*wait{}}
	m.server = httptest.NewServer(m)
	return m
}

// Close ends it, and what waits in it.
func (m *Model) Close() {
	m.server.CloseClientConnections()
	m.server.Close()
}

// URL is its address. That of OpenAI, and of Anthropic for those who don't add it
// themselves, is /v1 below it.
func (m *Model) URL() string { return m.server.URL }

func (m *Model) wait(name string) *wait {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waits[name] == nil {
		m.waits[name] = &wait{make(chan struct{}, 100), make(chan struct{})}
	}
	return m.waits[name]
}

// Reached tells each time that an answer begins to wait there.
func (m *Model) Reached(name string) <-chan struct{} { return m.wait(name).reached }

// GoOn lets those go on that wait there, now or later. Once.
func (m *Model) GoOn(name string) { close(m.wait(name).open) }

// Teach has it take a script, of words, for prompts that hold a text.
func (m *Model) Teach(prompt, script string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taught[prompt] = script
}

// Asked gives its requests in order, but the asides.
func (m *Model) Asked() []Call {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.calls), func(c Call) bool { return c.Aside })
}

// String lists its requests, a line each.
func (m *Model) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	for _, c := range m.calls {
		fmt.Fprintf(&b, "%s %.12s, conversation %.12s, after %d results, aside %v: %v\n", c.API, c.Sum, c.Conversation, c.Step, c.Aside, c.Words)
	}
	return b.String()
}

// api is a way to speak with a model.
type api interface {
	// read reads the body of a request.
	read(body []byte) (*request, error)
	// whole answers at once.
	whole(q *request, text string) any
	// stream begins an answer that comes in pieces.
	stream(q *request, w io.Writer) stream
}

// stream is such an answer.
type stream interface {
	text(piece string)
	// call calls a tool; input is JSON.
	call(name, input string)
	end(called bool)
}

var apis = map[string]struct {
	name string
	api  api
}{
	"/v1/messages":         {"anthropic", anthropic{}},
	"/v1/chat/completions": {"openai", openai{}},
}

// ServeHTTP answers the requests of agents.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // who asked has left
	}
	if strings.HasSuffix(r.URL.Path, "/count_tokens") {
		writeJSON(w, map[string]any{"input_tokens": 1})
		return
	}
	spoken, ok := apis[r.URL.Path]
	if !ok || r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	q, err := spoken.api.read(raw)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	c := q.call(m.taught)
	c.API, c.Sum = spoken.name, sum(raw)
	m.calls = append(m.calls, c)
	m.mu.Unlock()
	words := c.now()
	if c.Aside {
		words = []Word{{"SAY", "A title"}}
	}
	if !q.stream {
		writeJSON(w, spoken.api.whole(q, "A title"))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	m.answer(r.Context(), q, words, spoken.api.stream(q, flushed{w}))
}

// answer says and does the words.
func (m *Model) answer(ctx context.Context, q *request, words []Word, to stream) {
	said, called := false, false
	for _, w := range words {
		switch w.What {
		case "SAY":
			for piece := range strings.SplitAfterSeq(w.Arg, " ") {
				if piece != "" {
					to.text(piece)
					said = true
				}
			}
		case "WAIT":
			at := m.wait(w.Arg)
			at.reached <- struct{}{}
			select {
			case <-at.open:
			case <-ctx.Done():
				return // who asked has left
			}
		default:
			to.call(q.calls(w))
			called = true
		}
	}
	if !said && !called {
		to.text("Done.")
	}
	to.end(called)
}

// flushed sends at once what is written.
type flushed struct{ w http.ResponseWriter }

func (f flushed) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if to, ok := f.w.(http.Flusher); ok {
		to.Flush()
	}
	return n, err
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // who left doesn't read it
}

// text gives JSON of what can always be written so.
func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of texts and numbers
	}
	return string(raw)
}

// halves parts a text in its middle, between two characters.
func halves(s string) (first, rest string) {
	at := len(s) / 2
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return s[:at], s[at:]
}
