package handlers

import (
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
)

// form is the body of a submitted form.
type form struct{ c *fiber.Ctx }

// parseForm reads a form's body: application/x-www-form-urlencoded, valid UTF-8.
// Each field is there once: of two answers in one form neither is taken for the other.
// Codes: unsupported, invalid, unprocessable.
func parseForm(c *fiber.Ctx) (form, error) {
	if len(c.Request().Body()) == 0 {
		return form{c}, nil
	}
	kind, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	if err != nil || kind != fiber.MIMEApplicationForm || c.Get(fiber.HeaderContentEncoding) != "" {
		return form{}, journal.Errorf(journal.Unsupported, "A form must be sent as application/x-www-form-urlencoded. Nothing was recorded.").Typed("unsupported-media-type")
	}
	ok, names, twice := true, map[string]bool{}, false
	for k, v := range c.Request().PostArgs().All() {
		ok = ok && utf8.Valid(k) && utf8.Valid(v)
		twice = twice || names[string(k)]
		names[string(k)] = true
	}
	if !ok {
		return form{}, journal.Errorf(journal.Invalid, "The form isn't valid UTF-8. Nothing was recorded.").Typed("not-utf8")
	}
	if twice {
		return form{}, refuse("field-twice", "The form has one of its fields twice, so it can't be told what is meant. Go back, and send it from its page.")
	}
	return form{c}, nil
}

// text gives a field as it was sent, "" if it is missing. Browsers send CRLF for
// a line's end.
func (f form) text(name string) string {
	return journal.LineEnds(string(f.c.Request().PostArgs().Peek(name)))
}

// has reports whether the form has sent a field of this name.
func (f form) has(name string) bool { return f.c.Request().PostArgs().Has(name) }

// formField is a field as it was sent.
type formField struct{ name, value string }

// fields gives those whose names have a prefix, in the order of the form.
func (f form) fields(prefix string) []formField {
	var out []formField
	for k, v := range f.c.Request().PostArgs().All() {
		if strings.HasPrefix(string(k), prefix) {
			out = append(out, formField{string(k), string(v)})
		}
	}
	return out
}

// sent are all fields.
func (f form) sent() sentForm {
	out := sentForm{values: map[string]string{}}
	for k, v := range f.c.Request().PostArgs().All() {
		name := string(k)
		if _, again := out.values[name]; !again {
			out.values[name] = journal.LineEnds(string(v))
			out.names = append(out.names, name)
		}
	}
	return out
}

// word gives a field without the blanks around it.
func (f form) word(name string) string { return strings.TrimSpace(f.text(name)) }

// key gives the form's idempotency key (ADM-2). Code: invalid.
func (f form) key() (string, error) { return journal.CheckKey(f.text("idempotency_key")) }

// newKey is the idempotency key of a form that is rendered now.
func newKey() string { return store.NewSecret()[:26] }

// seeOther sends the browser on after a form was taken.
func seeOther(c *fiber.Ctx, to string) error { return c.Redirect(to, http.StatusSeeOther) }
