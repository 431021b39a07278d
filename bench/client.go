package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// client is the timed side of HTTP: one connection for each caller, kept alive.
// It shares the cores with the server, so it does as little as it can.
type client struct {
	http  fasthttp.HostClient
	token string
	keys  atomic.Int64

	cookie string // of a browser that has signed in
}

func newClient(sv *server, callers int) *client {
	return &client{http: fasthttp.HostClient{Addr: sv.address, MaxConns: callers, MaxIdemponentCallAttempts: 1}, token: sv.token}
}

// signIn makes the client a browser of who owns the link's code.
func (c *client) signIn(code string) error {
	req, res := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(res)
	req.Header.SetMethod(http.MethodPost)
	req.SetRequestURI("http://" + c.http.Addr + "/login")
	req.Header.SetContentType("application/x-www-form-urlencoded")
	req.SetBodyString("code=" + url.QueryEscape(code))
	if err := c.http.Do(req, res); err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	for _, value := range res.Header.Cookies() {
		c.cookie, _, _ = strings.Cut(string(value), ";")
	}
	if res.StatusCode() != http.StatusSeeOther || c.cookie == "" {
		return fmt.Errorf("sign in: %d: %s", res.StatusCode(), res.Body())
	}
	return nil
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

// read asks for a path, as a program or, with a cookie, as a browser, and gives
// how many bytes came.
func (c *client) read(path string) (int, error) {
	req, res := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(res)
	req.SetRequestURI("http://" + c.http.Addr + path)
	if c.cookie != "" {
		req.Header.Set("Cookie", c.cookie)
	} else {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if err := c.http.Do(req, res); err != nil {
		return 0, fmt.Errorf("read %s: %w", path, err)
	}
	if res.StatusCode() != http.StatusOK {
		return 0, fmt.Errorf("read %s: %d: %s", path, res.StatusCode(), res.Body())
	}
	return len(res.Body()), nil
}
