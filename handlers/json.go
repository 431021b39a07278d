package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/views/components"
)

// readJSON decodes the body into a struct, strictly: one object, each member
// known and given once, valid UTF-8. Codes: unsupported (content type), invalid
// (malformed), unprocessable (an unknown member, or one of the wrong type).
func readJSON(c *fiber.Ctx, into any) error {
	body := c.Request().Body() // not c.Body, which would unpack a compressed one without a bound
	if err := checkJSONType(c); err != nil {
		return err
	}
	if !utf8.Valid(body) {
		return badJSON("not-utf8", "The body isn't valid UTF-8.")
	}
	if loneSurrogate(body) {
		return badJSON("not-utf8", "The body holds half of a surrogate pair, which is no character.")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if first := bytes.TrimLeft(body, " \t\r\n"); len(first) == 0 || first[0] != '{' {
		return badJSON("malformed-json", "The body must be a JSON object.")
	}
	if err := checkValue(dec, reflect.TypeOf(into), "", 0, false); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return badJSON("malformed-json", "Something follows after the JSON object.")
	}
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(body, into); {
	case errors.As(err, &wrong):
		return journal.Errorf(journal.Unprocessable, "%s can't be a JSON %s. Nothing was recorded.", orBody(wrong.Field), wrong.Value).Typed("wrong-type").With("member", wrong.Field)
	case err != nil:
		return badJSON("malformed-json", "The body isn't well-formed JSON.")
	}
	return nil
}

// loneSurrogate finds an escape that is half of a pair. encoding/json would make
// the same character of each, so that different texts became equal.
func loneSurrogate(body []byte) bool {
	for i := 0; i+1 < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		r := escaped(body[i:])
		switch {
		case r < 0:
			i++ // another escape, such as of a backslash
		case utf16.IsSurrogate(r):
			if i+6 > len(body) || utf16.DecodeRune(r, escaped(body[i+6:])) == utf8.RuneError {
				return true
			}
			i += 11
		default:
			i += 5
		}
	}
	return false
}

// escaped reads the \uXXXX at the start of b, or -1.
func escaped(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// readOptionalJSON is readJSON where no body at all says the same as {}.
func readOptionalJSON(c *fiber.Ctx, into any) error {
	if len(c.Request().Body()) == 0 {
		return nil
	}
	return readJSON(c, into)
}

func checkJSONType(c *fiber.Ctx) error {
	kind, params, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	charset := params["charset"]
	encoding := c.Get(fiber.HeaderContentEncoding)
	if err != nil || kind != fiber.MIMEApplicationJSON || (charset != "" && !strings.EqualFold(charset, "utf-8")) || (encoding != "" && !strings.EqualFold(encoding, "identity")) {
		return journal.Errorf(journal.Unsupported, "The body must be JSON in UTF-8, not compressed, with Content-Type: application/json. Nothing was recorded.").Typed("unsupported-media-type")
	}
	return nil
}

func badJSON(slug, what string) error {
	return journal.Errorf(journal.Invalid, "%s Nothing was recorded.", what).Typed(slug)
}

func orBody(field string) string {
	if field == "" {
		return "The body"
	}
	return field
}

// maxDepth bounds the nesting of a body; nothing that we take comes near it.
const maxDepth = 16

// checkValue walks one value beside the type that it will be decoded into. It
// finds what encoding/json lets pass: members given twice, or known in another
// spelling. listed: the value stands in a list, however deep.
func checkValue(dec *json.Decoder, t reflect.Type, at string, depth int, listed bool) error {
	tok, err := dec.Token()
	if err != nil {
		return badJSON("malformed-json", "The body isn't well-formed JSON.")
	}
	// A member that is null is as one that isn't there. What a list has is given whole.
	if tok == nil && listed {
		return wrongType(at, "null")
	}
	d, ok := tok.(json.Delim)
	if !ok {
		return nil
	}
	if depth == maxDepth {
		return badJSON("malformed-json", "The JSON is nested too deep.")
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if d == '[' {
		if t.Kind() != reflect.Slice {
			return wrongType(at, "array")
		}
		for dec.More() {
			if err := checkValue(dec, t.Elem(), at, depth+1, true); err != nil {
				return err
			}
		}
	} else if err := checkMembers(dec, t, at, depth, listed); err != nil {
		return err
	}
	if _, err := dec.Token(); err != nil { // the closing bracket
		return badJSON("malformed-json", "The body isn't well-formed JSON.")
	}
	return nil
}

func wrongType(at, what string) error {
	return journal.Errorf(journal.Unprocessable, "%s can't be a JSON %s. Nothing was recorded.", orBody(at), what).Typed("wrong-type").With("member", at)
}

func checkMembers(dec *json.Decoder, t reflect.Type, at string, depth int, listed bool) error {
	if t.Kind() != reflect.Struct {
		return wrongType(at, "object")
	}
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		name, ok := tok.(string)
		if err != nil || !ok {
			return badJSON("malformed-json", "The body isn't well-formed JSON.")
		}
		path := strings.TrimPrefix(at+"."+name, ".")
		if seen[name] {
			return badJSON("duplicate-member", "The member "+journal.Cut(path, 80)+" is given twice.")
		}
		seen[name] = true
		field, ok := memberType(t, name)
		if !ok {
			return journal.Errorf(journal.Unprocessable, "The member %s isn't known here. Nothing was recorded.", journal.Cut(path, 80)).Typed("unknown-member").With("member", journal.Cut(path, 80))
		}
		if err := checkValue(dec, field, path, depth+1, listed); err != nil {
			return err
		}
	}
	return nil
}

// memberType finds the field of a struct that a member is decoded into.
func memberType(t reflect.Type, name string) (reflect.Type, bool) {
	for f := range t.Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f.Type, true
		}
	}
	return nil, false
}

// sendJSON answers with a value, without HTML escaping and without what the secrets of
// who asks hide in it.
func sendJSON(c *fiber.Ctx, status int, v any) error {
	b, err := maskedJSON(components.Mask(c.UserContext()), v)
	if err != nil {
		return err
	}
	return sendEncoded(c, status, b)
}

// sendCleanJSON is sendJSON for what has been cleaned already, piece by piece.
func sendCleanJSON(c *fiber.Ctx, status int, v any) error {
	b, err := journal.Encode(v)
	if err != nil {
		return err
	}
	return sendEncoded(c, status, b)
}

func sendEncoded(c *fiber.Ctx, status int, b []byte) error {
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return c.Status(status).Send(b)
}

// maskedJSON is a value without the secrets that are known now (OWN-3).
func maskedJSON(clean *journal.Cleaner, v any) ([]byte, error) {
	b, err := journal.Encode(v)
	if err != nil || clean == nil {
		return b, err
	}
	return clean.Typed(v, b)
}

// timeJSON writes Unix milliseconds as RFC 3339 in UTC with milliseconds.
func timeJSON(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// timeOrNull is timeJSON, with null for no time.
func timeOrNull(ms int64) *string {
	if ms == 0 {
		return nil
	}
	s := timeJSON(ms)
	return &s
}
