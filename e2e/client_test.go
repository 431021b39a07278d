package e2e

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
	"testing"
	"time"
)

// The shapes of the API as another program would write them down: from the
// contract, not from the product's code.

type session struct {
	ID                 string `json:"id"`
	Title              string `json:"title"`
	State              string `json:"state"`
	LastSeq            int64  `json:"last_seq"`
	PendingPrompts     int    `json:"pending_prompts"`
	PendingPermissions int    `json:"pending_permissions"`
	UnknownCalls       int    `json:"unknown_calls"`
	Forgotten          *struct {
		How string `json:"how"`
	} `json:"forgotten"`
	Execution *struct {
		ID     string `json:"id"`
		Worker string `json:"worker"`
		Phase  string `json:"phase"`
	} `json:"execution"`
}

type receipt struct {
	ID          string `json:"id"`
	SessionID   string `json:"session_id"`
	AdmittedSeq int64  `json:"admitted_seq"`
	PromotedSeq *int64 `json:"promoted_seq"`
	Delivery    string `json:"delivery"`
	State       string `json:"state"`
	Replayed    bool   `json:"replayed"`
	CreatedAt   string `json:"created_at"`
}

type event struct {
	ID          string          `json:"id"`
	SessionID   string          `json:"session_id"`
	Seq         int64           `json:"seq"`
	Kind        string          `json:"kind"`
	Version     int             `json:"version"`
	Time        string          `json:"time"`
	ExecutionID *string         `json:"execution_id"`
	Data        json.RawMessage `json:"data"`
}

type call struct {
	ID         string `json:"id"`
	State      string `json:"state"`
	Effect     string `json:"effect"`
	ExitCode   *int   `json:"exit_code"`
	Resolution *struct {
		Outcome string `json:"outcome"`
		By      string `json:"by"`
	} `json:"resolution"`
}

type request struct {
	ID        string   `json:"id"`
	SessionID string   `json:"session_id"`
	State     string   `json:"state"`
	Digest    string   `json:"digest"`
	Resources []string `json:"resources"`
	Tool      struct {
		CallID string `json:"call_id"`
	} `json:"tool"`
	Answered *struct {
		Reply string `json:"reply"`
		By    string `json:"by"`
		At    string `json:"at"`
	} `json:"answered"`
}

type items[T any] struct {
	Items []T `json:"items"`
}

// client speaks to one server with the world's token.
type client struct {
	w     *world
	base  string
	token string
	http  *http.Client
}

// newClient uses a connection for each request: Go would send a request with an
// Idempotency-Key again by itself if a kept connection broke, and hide a fault.
func newClient(w *world, base string) *client {
	return &client{w: w, base: base, token: w.token, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
}

// with gives a client that uses another token; "" none.
func (c *client) with(token string) *client {
	other := *c
	other.token = token
	return &other
}

// answer is what a request was answered with.
type answer struct {
	what   string
	status int
	header http.Header
	body   []byte
}

// do sends a request. body may be nil, text, or something to be sent as JSON;
// headers are names and values in turn. An error means that there was no answer.
func (c *client) do(ctx context.Context, method, path string, body any, headers ...string) (answer, error) {
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return answer{}, err
		}
		reader = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, reader)
	if err != nil {
		return answer{}, err
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, err
	}
	return answer{method + " " + path, res.StatusCode, res.Header, raw}, nil
}

// must sends a request that will be answered.
func (c *client) must(method, path string, body any, headers ...string) answer {
	c.w.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.w.t.Context()), patience)
	defer cancel()
	a, err := c.do(ctx, method, path, body, headers...)
	if err != nil {
		c.w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (c *client) get(path string, headers ...string) answer {
	c.w.t.Helper()
	return c.must(http.MethodGet, path, nil, headers...)
}

func (c *client) post(path string, body any, headers ...string) answer {
	c.w.t.Helper()
	return c.must(http.MethodPost, path, body, headers...)
}

// want fails unless the answer has the status.
func (a answer) want(t testing.TB, status int) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("%s answered %d, want %d: %s", a.what, a.status, status, tail(string(a.body), 2000))
	}
	return a
}

// problem fails unless the answer is a problem document with status and type, and gives it.
func (a answer) problem(t testing.TB, status int, slug string) map[string]any {
	t.Helper()
	a.want(t, status)
	doc := decode[map[string]any](t, a)
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("%s: content type %q", a.what, got)
	}
	if slug != "" && doc["type"] != slug {
		t.Errorf("%s: type %v, want %s: %s", a.what, doc["type"], slug, a.body)
	}
	return doc
}

// decode reads the answer's JSON.
func decode[T any](t testing.TB, a answer) T {
	t.Helper()
	var out T
	if err := json.Unmarshal(a.body, &out); err != nil {
		t.Fatalf("%s: %v in %s", a.what, err, tail(string(a.body), 2000))
	}
	return out
}

// newKey is an idempotency key.
func newKey() string { return rand.Text() }

// allowAll are rules by which no command asks.
var allowAll = []map[string]string{
	{"permission": "shell", "pattern": "*", "action": "allow"},
	{"permission": "edit", "pattern": "*", "action": "allow"},
	{"permission": "read", "pattern": "*", "action": "allow"},
}

// newSession is the body that makes a session whose commands all may run; an
// empty prompt makes one without a prompt.
func (w *world) newSession(prompt string) map[string]any {
	body := map[string]any{"workspace": w.work, "agent": "runbook", "preset": "workspace", "rules": allowAll}
	if prompt != "" {
		body["prompt"] = map[string]string{"text": prompt}
	}
	return body
}

// mission makes a session with a prompt and gives its id.
func (c *client) mission(prompt string, with ...func(map[string]any)) string {
	c.w.t.Helper()
	body := c.w.newSession(prompt)
	for _, f := range with {
		f(body)
	}
	a := c.post("/api/v1/sessions", body, "Idempotency-Key", newKey()).want(c.w.t, http.StatusCreated)
	s := decode[session](c.w.t, a)
	c.w.remember(s.ID)
	return s.ID
}

// asking makes a mission's commands ask.
func asking(body map[string]any) { body["preset"], body["rules"] = "ask_all", nil }

// remember notes a session that was acknowledged (I1).
func (w *world) remember(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sessions = append(w.sessions, id)
}

// acknowledged notes a receipt (I1, I4).
func (w *world) acknowledged(r receipt) receipt {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked = append(w.acked, r)
	return r
}

// prompt submits a prompt under a key of its own.
func (c *client) prompt(id, text, delivery string) receipt {
	c.w.t.Helper()
	return c.promptAs(newKey(), id, text, delivery)
}

// promptAs submits a prompt under a key.
func (c *client) promptAs(key, id, text, delivery string) receipt {
	c.w.t.Helper()
	a := c.post("/api/v1/sessions/"+id+"/prompts", map[string]string{"text": text, "delivery": delivery}, "Idempotency-Key", key)
	return c.w.acknowledged(decode[receipt](c.w.t, a.want(c.w.t, http.StatusAccepted)))
}

// session reads a session.
func (c *client) session(id string) session {
	c.w.t.Helper()
	return decode[session](c.w.t, c.get("/api/v1/sessions/"+id).want(c.w.t, http.StatusOK))
}

// calls lists the calls of a session, in the order of proposal.
func (c *client) calls(id string) []call {
	c.w.t.Helper()
	return decode[items[call]](c.w.t, c.get("/api/v1/sessions/"+id+"/calls").want(c.w.t, http.StatusOK)).Items
}

// pending lists the requests of a session that wait for an answer.
func (c *client) pending(id string) []request {
	c.w.t.Helper()
	return decode[items[request]](c.w.t, c.get("/api/v1/permissions?state=pending&session="+id).want(c.w.t, http.StatusOK)).Items
}

// decide answers a request.
func (c *client) decide(id, reply, message string) answer {
	c.w.t.Helper()
	return c.post("/api/v1/permissions/"+id+"/decision", map[string]string{"reply": reply, "message": message})
}

// resolve says what became of an unknown call.
func (c *client) resolve(id, outcome, then string) answer {
	c.w.t.Helper()
	return c.post("/api/v1/calls/"+id+"/resolution", map[string]string{"outcome": outcome, "evidence": "looked at the file", "then": then})
}

// interrupt stops the open turn.
func (c *client) interrupt(id string) {
	c.w.t.Helper()
	c.post("/api/v1/sessions/"+id+"/interruption", nil).want(c.w.t, http.StatusAccepted)
}

// resume continues what is held.
func (c *client) resume(id string) answer {
	c.w.t.Helper()
	return c.post("/api/v1/sessions/"+id+"/continuation", nil)
}

type page struct {
	Events  []event `json:"events"`
	LastSeq int64   `json:"last_seq"`
	HasMore bool    `json:"has_more"`
}

// after reads the events after a seq; with wait it waits for one for so long.
func (c *client) after(id string, seq int64, wait string) page {
	c.w.t.Helper()
	return decode[page](c.w.t, c.get(fmt.Sprintf("/api/v1/sessions/%s/events?after=%d&limit=1000&wait=%s", id, seq, wait)).want(c.w.t, http.StatusOK))
}

// events reads the whole journal of a session.
func (c *client) events(id string) journal {
	c.w.t.Helper()
	var all journal
	for {
		p := c.after(id, all.last(), "0s")
		all = append(all, p.Events...)
		if !p.HasMore {
			return all
		}
	}
}

// until follows the journal by long polls until a condition holds, and gives it.
func (c *client) until(id, what string, ok func(journal) bool) journal {
	c.w.t.Helper()
	all := c.events(id)
	for deadline := time.Now().Add(patience); !ok(all); {
		if time.Now().After(deadline) {
			c.w.t.Fatalf("waited in vain until %s; %s\n%s", what, c.session(id).State, all.dump())
		}
		all = append(all, c.after(id, all.last(), "5s").Events...)
	}
	return all
}

// untilKind waits for the n-th event of a kind.
func (c *client) untilKind(id, kind string, n int) journal {
	c.w.t.Helper()
	return c.until(id, fmt.Sprintf("there are %d %s", n, kind), func(j journal) bool { return j.count(kind) >= n })
}

// untilState waits until a session is in a state. What ends a lease is no event,
// so it looks again after each short poll.
func (c *client) untilState(id string, states ...string) session {
	c.w.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		s := c.session(id)
		if slices.Contains(states, s.State) {
			return s
		}
		if time.Now().After(deadline) {
			c.w.t.Fatalf("waited in vain until %s is %v; it is %s\n%s", id, states, s.State, c.events(id).dump())
		}
		c.after(id, s.LastSeq, "250ms")
	}
}

// untilQuiet waits until a session is in a state and nobody holds it.
func (c *client) untilQuiet(id string, states ...string) session {
	c.w.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		s := c.untilState(id, states...)
		if s.Execution == nil {
			return s
		}
		if time.Now().After(deadline) {
			c.w.t.Fatalf("waited in vain until nobody holds %s", id)
		}
		c.after(id, s.LastSeq, "250ms")
	}
}

// journal is the events of a session from the first on.
type journal []event

func (j journal) last() int64 {
	if len(j) == 0 {
		return 0
	}
	return j[len(j)-1].Seq
}

func (j journal) count(kind string) int {
	n := 0
	for i := range j {
		if j[i].Kind == kind {
			n++
		}
	}
	return n
}

// of gives the events of a kind.
func (j journal) of(kind string) journal {
	var out journal
	for i := range j {
		if j[i].Kind == kind {
			out = append(out, j[i])
		}
	}
	return out
}

// at gives the index of the first event of a kind that satisfies a condition, or -1.
func (j journal) at(kind string, ok func(event) bool) int {
	return slices.IndexFunc(j, func(e event) bool { return e.Kind == kind && (ok == nil || ok(e)) })
}

// str gives a text member of an event's data; "" if it isn't one.
func (e *event) str(name string) string {
	var m map[string]json.RawMessage
	var s string
	if json.Unmarshal(e.Data, &m) != nil || json.Unmarshal(m[name], &s) != nil {
		return ""
	}
	return s
}

// output puts together what a call printed.
func (j journal) output(callID string) string {
	var b strings.Builder
	for i := range j {
		if j[i].Kind == "call.output" && (callID == "" || j[i].str("call_id") == callID) {
			b.WriteString(j[i].str("text"))
		}
	}
	return b.String()
}

// dump is the end of a journal, for the message of a test that fails.
func (j journal) dump() string {
	var b strings.Builder
	for i := max(0, len(j)-80); i < len(j); i++ {
		fmt.Fprintf(&b, "%d %s %s\n", j[i].Seq, j[i].Kind, tail(string(j[i].Data), 200))
	}
	return b.String()
}
