package browser

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// api brings sessions into a state by the JSON API: what a test looks at in the
// browser need not be typed there.
type api struct {
	w    *world
	base string
}

// api gives the world's user's way into a server.
func (s *server) api() *api {
	s.w.t.Helper()
	if s.w.token == "" {
		s.w.token = strings.TrimSpace(s.w.mustRun("", "token", "new", s.w.email, "--name", "browser", "--scope", "all"))
	}
	return &api{w: s.w, base: s.base}
}

type session struct {
	ID        string          `json:"id"`
	State     string          `json:"state"`
	LastSeq   int64           `json:"last_seq"`
	Execution json.RawMessage `json:"execution"`
}

type request struct {
	ID   string `json:"id"`
	Tool struct {
		CallID string `json:"call_id"`
	} `json:"tool"`
}

type call struct {
	ID    string `json:"id"`
	State string `json:"state"`
}

// allowAll are rules by which no command asks.
var allowAll = []map[string]string{
	{"permission": "shell", "pattern": "*", "action": "allow"},
	{"permission": "edit", "pattern": "*", "action": "allow"},
	{"permission": "read", "pattern": "*", "action": "allow"},
}

// asking makes a mission's commands ask.
func asking(body map[string]any) { body["preset"], body["rules"] = "ask_all", nil }

// titled names a mission.
func titled(title string) func(map[string]any) {
	return func(body map[string]any) { body["title"] = title }
}

// send sends a request, decodes its answer into out unless that is nil, and fails
// unless the status is one of 200 to 202.
func (a *api) send(method, path string, body, out any) {
	a.w.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.w.t.Context()), patience)
	defer cancel()
	raw, err := json.Marshal(body)
	if err != nil {
		a.w.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(raw))
	if err != nil {
		a.w.t.Fatal(err)
	}
	if body == nil {
		req.Body, req.ContentLength = nil, 0
	}
	req.Close = true
	req.Header.Set("Authorization", "Bearer "+a.w.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", rand.Text())
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		a.w.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode > http.StatusAccepted {
		a.w.t.Fatalf("%s %s answered %d: %s %v", method, path, res.StatusCode, tail(string(answer), 2000), err)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			a.w.t.Fatalf("%s %s: %v", method, path, err)
		}
	}
}

// mission makes a session whose commands all may run, and gives its id; an empty
// prompt makes one without a prompt.
func (a *api) mission(prompt string, with ...func(map[string]any)) string {
	a.w.t.Helper()
	body := map[string]any{"workspace": a.w.work, "agent": "runbook", "preset": "workspace", "rules": allowAll}
	if prompt != "" {
		body["prompt"] = map[string]string{"text": prompt}
	}
	for _, f := range with {
		f(body)
	}
	var s session
	a.send(http.MethodPost, "/api/v1/sessions", body, &s)
	return s.ID
}

// prompt submits a prompt.
func (a *api) prompt(id, text, delivery string) {
	a.w.t.Helper()
	a.send(http.MethodPost, "/api/v1/sessions/"+id+"/prompts", map[string]string{"text": text, "delivery": delivery}, nil)
}

// decide answers a request.
func (a *api) decide(id, reply string) {
	a.w.t.Helper()
	a.send(http.MethodPost, "/api/v1/permissions/"+id+"/decision", map[string]string{"reply": reply}, nil)
}

// pending gives the requests of a session that wait for an answer.
func (a *api) pending(id string) []request {
	a.w.t.Helper()
	var list struct {
		Items []request `json:"items"`
	}
	a.send(http.MethodGet, "/api/v1/permissions?state=pending&session="+id, nil, &list)
	return list.Items
}

// calls gives the calls of a session, in the order of proposal.
func (a *api) calls(id string) []call {
	a.w.t.Helper()
	var list struct {
		Items []call `json:"items"`
	}
	a.send(http.MethodGet, "/api/v1/sessions/"+id+"/calls", nil, &list)
	return list.Items
}

// session reads a session.
func (a *api) session(id string) session {
	a.w.t.Helper()
	var s session
	a.send(http.MethodGet, "/api/v1/sessions/"+id, nil, &s)
	return s
}

// until waits until a session is in one of the states. What ends a lease is no
// event, so it looks again after each short poll.
func (a *api) until(id string, states ...string) session {
	a.w.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		s := a.session(id)
		if slices.Contains(states, s.State) {
			return s
		}
		if time.Now().After(deadline) {
			a.w.t.Fatalf("waited in vain until %s is %v; it is %s", id, states, s.State)
		}
		a.send(http.MethodGet, fmt.Sprintf("/api/v1/sessions/%s/events?after=%d&wait=250ms", id, s.LastSeq), nil, nil)
	}
}

// untilQuiet waits until a session is in a state and nobody holds it.
func (a *api) untilQuiet(id string, states ...string) {
	a.w.t.Helper()
	eventually(a.w.t, "nobody holds "+id, func() bool { return string(a.until(id, states...).Execution) == "null" })
}
