package handlers

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net"
	"net/url"
	"runtime/debug"
	"strings"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
)

// csp allows nothing that a page of ours doesn't need: no inline script or
// style, no other origin, no frame around it.
const csp = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

type localKey int

// Keys of what a request carries.
const (
	keyRequestID localKey = iota
	keyIdentity
	keySession
)

// requestID names the request in answers and logs.
func requestID(c *fiber.Ctx) string {
	id, ok := c.Locals(keyRequestID).(string)
	if !ok { // refused before the router saw it
		id = rand.Text()
		c.Locals(keyRequestID, id)
	}
	return id
}

// secure is in front of every route: request id, headers, the cross-site check,
// and the end of panics.
func (s *Server) secure(c *fiber.Ctx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	setHeaders(c)
	if err := checkFraming(c); err != nil {
		return err
	}
	if err := s.checkOrigin(c); err != nil {
		return err
	}
	return c.Next()
}

// panicked makes an error of a panic, for the log alone: people never read the
// text of an error that isn't ours.
func panicked(p any) error { return fmt.Errorf("panic: %v\n%s", p, debug.Stack()) }

// setHeaders sets what every answer carries. Handlers may loosen Cache-Control.
func setHeaders(c *fiber.Ctx) {
	c.Set("X-Request-ID", requestID(c)) // a client's own is never echoed
	c.Set(fiber.HeaderContentSecurityPolicy, csp)
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderXFrameOptions, "DENY")
	// no-referrer would make browsers send Origin: null with our own forms.
	c.Set(fiber.HeaderReferrerPolicy, "same-origin")
	if trustworthy(c) { // elsewhere browsers ignore it, and complain
		c.Set("Cross-Origin-Opener-Policy", "same-origin")
	}
	c.Set("Cross-Origin-Resource-Policy", "same-origin")
	c.Set(fiber.HeaderPermissionsPolicy, "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
	c.Set(fiber.HeaderCacheControl, "no-store")
}

// checkFraming refuses a request that says twice where it ends. A proxy that
// believes the other one sends what follows as somebody else's request. The
// header as it was parsed keeps only one of them.
func checkFraming(c *fiber.Ctx) error {
	lengths, encodings := 0, 0
	for line := range bytes.Lines(c.Request().Header.RawHeaders()) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(name, []byte(fiber.HeaderContentLength)):
			lengths++
		case bytes.EqualFold(name, []byte(fiber.HeaderTransferEncoding)):
			encodings++
		}
	}
	if lengths+encodings < 2 {
		return nil
	}
	c.Context().SetConnectionClose() // where the next request begins isn't known either
	return journal.Errorf(journal.Invalid, "The request has both Content-Length and Transfer-Encoding, so it isn't sure where it ends. Nothing was recorded.").Typed("bad-request")
}

// trustworthy reports whether browsers take the address for one: TLS, here or
// before a proxy, or this machine.
func trustworthy(c *fiber.Ctx) bool {
	host := c.Hostname()
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return c.Context().IsTLS() || c.Get(fiber.HeaderXForwardedProto) == "https" || host == "localhost" || (ip != nil && ip.IsLoopback())
}

// checkOrigin refuses what another site made a browser send (OWN-2): the rules
// of net/http.CrossOriginProtection. A program sends neither header and passes;
// it also holds for requests with a token.
func (s *Server) checkOrigin(c *fiber.Ctx) error {
	switch c.Method() {
	case fiber.MethodGet, fiber.MethodHead, fiber.MethodOptions:
		return nil
	}
	switch c.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return nil
	case "":
	default:
		return crossSite()
	}
	origin := c.Get(fiber.HeaderOrigin)
	switch {
	case origin == "":
		return nil
	case s.origin != "":
		if !strings.EqualFold(origin, s.origin) {
			return crossSite()
		}
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || !strings.EqualFold(u.Host, c.Get(fiber.HeaderHost)) {
		return crossSite()
	}
	return nil
}

func crossSite() error {
	return journal.Errorf(journal.Forbidden, "This was sent by another site, so it was refused. Nothing was recorded. Do it from a page of this server; behind a proxy, --public-url must be the address that browsers see.").Typed("cross-site")
}
