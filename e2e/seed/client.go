package seed

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"holdfast/journal"
)

// client speaks to the server as any other program does.
type client struct{ base, token string }

// call sends a request and decodes the answer, if into isn't nil.
func (c *client) call(ctx context.Context, method, path string, body, into any) (err error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", rand.Text())
	if body == nil {
		req.Body = http.NoBody
		req.ContentLength = 0
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s was answered %d: %s", method, path, res.StatusCode, answer)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}

// view is what the API tells of a session.
type view struct {
	ID                 string                 `json:"id"`
	State              journal.ExecutionState `json:"state"`
	PendingPermissions int                    `json:"pending_permissions"`
	Execution          *struct{}              `json:"execution"`
}

// mission is a session to be made.
type mission struct {
	title  string
	folder string // in the workspaces; "": the first one
	asks   bool   // its commands ask
	prompt string // "": none
}

func (c *client) create(ctx context.Context, m mission) (id string, err error) {
	type rule struct {
		Permission string `json:"permission"`
		Pattern    string `json:"pattern"`
		Action     string `json:"action"`
	}
	body := map[string]any{"title": m.title, "agent": "runbook", "workspace": "."}
	if m.folder != "" {
		body["workspace"] = m.folder
	}
	body["preset"] = "ask_all"
	if !m.asks {
		body["preset"], body["rules"] = "workspace", []rule{{"shell", "*", "allow"}, {"edit", "*", "allow"}, {"read", "*", "allow"}}
	}
	if m.prompt != "" {
		body["prompt"] = map[string]string{"text": m.prompt}
	}
	var v view
	err = c.call(ctx, http.MethodPost, "/api/v1/sessions", body, &v)
	return v.ID, err
}

// prompt submits a message and gives its id.
func (c *client) prompt(ctx context.Context, id, text string) (string, error) {
	var r struct {
		ID string `json:"id"`
	}
	err := c.call(ctx, http.MethodPost, "/api/v1/sessions/"+id+"/prompts", map[string]string{"text": text, "delivery": "queue"}, &r)
	return r.ID, err
}

// settled waits until a session is in a state and nobody holds it.
func (c *client) settled(ctx context.Context, id string, state journal.ExecutionState) error {
	return c.watch(ctx, id, "it is "+string(state), func(v view) bool { return v.State == state && v.Execution == nil })
}

func (c *client) watch(ctx context.Context, id, what string, ok func(view) bool) error {
	var v view
	err := until(ctx, what, func() (bool, error) {
		v = view{}
		err := c.call(ctx, http.MethodGet, "/api/v1/sessions/"+id, nil, &v)
		return err == nil && ok(v), err
	})
	if err != nil {
		err = fmt.Errorf("session %s, which is %s: %w", id, v.State, err)
	}
	return err
}

// dispatched waits until a call of the session runs and has put out at least so
// much, and gives its id.
func (c *client) dispatched(ctx context.Context, id string, output int64) (call string, err error) {
	type item struct {
		ID          string            `json:"id"`
		State       journal.CallState `json:"state"`
		OutputBytes int64             `json:"output_bytes"`
	}
	err = until(ctx, "a call of "+id+" runs", func() (bool, error) {
		var list struct {
			Items []item `json:"items"`
		}
		if err := c.call(ctx, http.MethodGet, "/api/v1/sessions/"+id+"/calls", nil, &list); err != nil {
			return false, err
		}
		i := slices.IndexFunc(list.Items, func(i item) bool { return i.State == journal.CallIsDispatched && i.OutputBytes >= output })
		if i >= 0 {
			call = list.Items[i].ID
		}
		return i >= 0, nil
	})
	return call, err
}
