package journal

import (
	"errors"
	"fmt"
)

// Code says what kind of refusal an error is. Programs look at the code,
// people read the message.
type Code string

// The codes, each with the HTTP status that handlers answer for it.
const (
	Invalid         Code = "invalid"         // 400: malformed
	Unauthenticated Code = "unauthenticated" // 401
	Forbidden       Code = "forbidden"       // 403
	NotFound        Code = "not_found"       // 404: also another owner's (OWN-1)
	Conflict        Code = "conflict"        // 409: lost a race, or the wrong state
	Gone            Code = "gone"            // 410: ended, can't be answered any more
	TooLarge        Code = "too_large"       // 413
	Unsupported     Code = "unsupported"     // 415
	Unprocessable   Code = "unprocessable"   // 422
	RateLimited     Code = "rate_limited"    // 429
	StaleClaim      Code = "stale_claim"     // fenced: this execution holds the session no more (LEA-4)
	Unavailable     Code = "unavailable"     // 503: the journal can't be written, or a commit's outcome is unknown (ADM-9)
	Internal        Code = "internal"        // 500
)

// Error is a refusal that a person or a program can act on.
type Error struct {
	Code    Code
	Message string         // a sentence for people: what happened, what holds, what they can do
	Type    string         // a stable slug for programs; empty: made from the code
	Extra   map[string]any // further members of the problem document, such as the state
	Err     error          // the cause, never shown
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Slug is the stable name of this error for programs.
func (e *Error) Slug() string {
	if e.Type != "" {
		return e.Type
	}
	return string(e.Code)
}

// With returns e with one more member for the problem document.
func (e *Error) With(key string, value any) *Error {
	if e.Extra == nil {
		e.Extra = map[string]any{}
	}
	e.Extra[key] = value
	return e
}

// Typed returns e with its slug set.
func (e *Error) Typed(slug string) *Error {
	e.Type = slug
	return e
}

// Errorf makes an Error with a formatted message for people.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// CodeOf tells the code of err; anything that isn't an Error is internal.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}

// Is reports whether err carries the code.
func Is(err error, code Code) bool { return err != nil && CodeOf(err) == code }
