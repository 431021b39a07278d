package handlers

import (
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/views/components"
)

var statuses = map[journal.Code]int{
	journal.Invalid: http.StatusBadRequest, journal.Unauthenticated: http.StatusUnauthorized, journal.Forbidden: http.StatusForbidden,
	journal.NotFound: http.StatusNotFound, journal.Conflict: http.StatusConflict, journal.Gone: http.StatusGone,
	journal.TooLarge: http.StatusRequestEntityTooLarge, journal.Unsupported: http.StatusUnsupportedMediaType,
	journal.Unprocessable: http.StatusUnprocessableEntity, journal.RateLimited: http.StatusTooManyRequests,
	journal.StaleClaim: http.StatusConflict, journal.Unavailable: http.StatusServiceUnavailable, journal.Internal: http.StatusInternalServerError,
}

// fail is fiber's one error handler: a problem document for programs, a page for people.
func (s *Server) fail(c *fiber.Ctx, err error) error {
	status, e := explain(err)
	e = sayAgain(c, e)
	setHeaders(c)            // fiber comes here without the middleware for what it refuses itself
	c.Response().ResetBody() // half a page may be in it
	switch status {
	case http.StatusRequestEntityTooLarge, http.StatusRequestHeaderFieldsTooLarge:
		linger(c)
	case http.StatusInternalServerError:
		s.log.Error("request failed", slog.String("request_id", requestID(c)), slog.String("method", c.Method()), slog.String("route", c.Route().Path), slog.Any("error", err))
	case http.StatusServiceUnavailable:
		if c.GetRespHeader(fiber.HeaderRetryAfter) == "" {
			c.Set(fiber.HeaderRetryAfter, "5")
		}
		s.log.Warn("not available", slog.String("request_id", requestID(c)), slog.String("route", c.Route().Path), slog.Any("error", err))
	case http.StatusUnauthorized:
		c.Set(fiber.HeaderWWWAuthenticate, "Bearer")
	}
	c.Status(status)
	if forProgram(c) {
		return problem(c, status, e)
	}
	if s.renderError != nil && c.Path() != "/readyz" {
		rerr := s.drawError(c, status, e)
		if rerr == nil {
			return nil
		}
		s.log.Error("draw an error page", slog.String("request_id", requestID(c)), slog.Any("error", rerr))
		c.Response().ResetBody()
	}
	c.Set(fiber.HeaderContentType, fiber.MIMETextPlainCharsetUTF8)
	return c.Status(status).SendString(e.Message + "\n")
}

// sayAgain adds to what the journal couldn't take how it is done again: the same
// key settles it (ADM-9); without one somebody has to look.
func sayAgain(c *fiber.Ctx, e *journal.Error) *journal.Error {
	said := *e
	program, form := len(c.Request().Header.Peek(keyHeader)) > 0, c.Request().PostArgs().Has("idempotency_key")
	switch e.Slug() {
	case "journal-unavailable", "commit-unknown":
		switch {
		case program:
			said.Message += " Send it again with the same key: it will not be recorded twice."
		case form:
			said.Message += " Send it again from this page: it will not be recorded twice."
		case e.Slug() == "commit-unknown":
			said.Message += " Look whether it was before you do it again."
		default:
			said.Message += " Try again in a moment."
		}
	}
	return &said
}

// drawError draws a page for an error. It is the last one who could panic: the
// middleware that recovers has returned by now.
func (s *Server) drawError(c *fiber.Ctx, status int, e *journal.Error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	return s.renderError(c, status, e)
}

// forProgram tells whether a program reads an error. Of a request that was
// refused before it was read nothing is known, not even its host; programs send
// most of those.
func forProgram(c *fiber.Ctx) bool { return isAPI(c) || len(c.Request().Header.Host()) == 0 }

// isAPI tells whether the address is one for programs.
func isAPI(c *fiber.Ctx) bool {
	return strings.HasPrefix(c.Path(), "/api/") || c.Path() == "/api"
}

// explain gives the status of an error, and an error whose message may be shown.
func explain(err error) (int, *journal.Error) {
	var fe *fiber.Error
	if errors.As(err, &fe) {
		return explainFiber(fe)
	}
	var je *journal.Error
	if !errors.As(err, &je) || je.Code == journal.Internal {
		return http.StatusInternalServerError, journal.Errorf(journal.Internal, "Something went wrong inside the server. It was written to its log, under the id of this request. What was accepted before is kept.")
	}
	status, ok := statuses[je.Code]
	if !ok {
		status = http.StatusInternalServerError
	}
	return status, je
}

// explainFiber gives our words for what fiber refuses by itself.
func explainFiber(fe *fiber.Error) (int, *journal.Error) {
	switch fe.Code {
	case http.StatusNotFound:
		return fe.Code, journal.Errorf(journal.NotFound, "There is nothing at this address, or it is not shared with you.").Typed("not_found")
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return http.StatusMethodNotAllowed, journal.Errorf(journal.Invalid, "This address doesn't take that method.").Typed("method-not-allowed")
	case http.StatusRequestEntityTooLarge:
		return fe.Code, journal.Errorf(journal.TooLarge, "The request is larger than %d bytes, so it was not read. Nothing was recorded.", bodyLimit).Typed("body-too-large")
	case http.StatusRequestHeaderFieldsTooLarge:
		return fe.Code, journal.Errorf(journal.Invalid, "The headers of the request are larger than %d bytes. Nothing was recorded.", headerLimit).Typed("headers-too-large")
	case http.StatusRequestTimeout, http.StatusBadGateway:
		return http.StatusRequestTimeout, journal.Errorf(journal.Invalid, "The request didn't arrive in time. Nothing was recorded.").Typed("request-timeout")
	case http.StatusInternalServerError:
		return fe.Code, journal.Errorf(journal.Internal, "Something went wrong inside the server.")
	}
	return http.StatusBadRequest, journal.Errorf(journal.Invalid, "The request isn't well-formed HTTP. Nothing was recorded.").Typed("bad-request")
}

// problem writes a problem document (RFC 9457).
func problem(c *fiber.Ctx, status int, e *journal.Error) error {
	doc := map[string]any{}
	for k, v := range e.Extra {
		doc[k] = shown(v)
	}
	maps.Copy(doc, map[string]any{
		"type": e.Slug(), "title": http.StatusText(status), "status": status, "detail": e.Message, "request_id": requestID(c),
	})
	b, err := journal.Encode(doc)
	if err == nil {
		b, err = maskedProblem(components.Mask(c.UserContext()), doc, b)
	}
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, "application/problem+json")
	return c.Send(b)
}

// maskedProblem hides an owner's secrets in what an error says; its other members are
// the server's own.
func maskedProblem(clean *journal.Cleaner, doc map[string]any, encoded []byte) ([]byte, error) {
	if clean == nil {
		return encoded, nil
	}
	for _, name := range []string{"detail", "answered", "resolution"} {
		switch v := doc[name].(type) {
		case string:
			doc[name] = clean.Text(v)
		case map[string]any:
			for _, said := range []string{"message", "evidence"} {
				if text, ok := v[said].(string); ok {
					v[said] = clean.Text(text)
				}
			}
		case *resolution:
			said := *v
			said.Evidence = clean.Text(said.Evidence)
			doc[name] = &said
		}
	}
	return journal.Encode(doc)
}

// shown puts the times inside a member of a problem document into the form of
// all times in JSON.
func shown(v any) any {
	switch v := v.(type) {
	case *journal.Resolution:
		return newResolution(v)
	case map[string]any:
		out := maps.Clone(v)
		if at, ok := out["at"].(int64); ok {
			out["at"] = timeJSON(at)
		}
		return out
	}
	return v
}
