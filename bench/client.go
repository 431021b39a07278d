package main

import (
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// client is the timed side of HTTP: one connection for each caller, kept alive.
// It shares the cores with the server, so it does as little as it can.
type client struct {
	http  fasthttp.HostClient
	token string
	keys  atomic.Int64
}

func newClient(sv *server, callers int) *client {
	return &client{http: fasthttp.HostClient{Addr: sv.address, MaxConns: callers, MaxIdemponentCallAttempts: 1}, token: sv.token}
}

// submit sends a prompt and waits for its receipt.
func (c *client) submit(session string, body []byte) error {
	req, res := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(res)
	req.Header.SetMethod(http.MethodPost)
	req.SetRequestURI("http://" + c.http.Addr + "/api/v1/sessions/" + session + "/prompts")
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Idempotency-Key", "bench-"+strconv.FormatInt(c.keys.Add(1), 10)+"-0123456789abcdef")
	req.Header.SetContentType("application/json")
	req.SetBodyRaw(body)
	if err := c.http.Do(req, res); err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	if res.StatusCode() != http.StatusAccepted {
		return fmt.Errorf("submit: %d: %s", res.StatusCode(), res.Body())
	}
	return nil
}

// read asks for a path and gives how many bytes came.
func (c *client) read(path string) (int, error) {
	req, res := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(res)
	req.SetRequestURI("http://" + c.http.Addr + path)
	req.Header.Set("Authorization", "Bearer "+c.token)
	if err := c.http.Do(req, res); err != nil {
		return 0, fmt.Errorf("read %s: %w", path, err)
	}
	if res.StatusCode() != http.StatusOK {
		return 0, fmt.Errorf("read %s: %d: %s", path, res.StatusCode(), res.Body())
	}
	return len(res.Body()), nil
}
