package handlers

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/views/components"
	"holdfast/views/pages"
)

type pageLocal int

const (
	keyKept        pageLocal = iota
	keyNotRecorded           // what was not done, for the page that is drawn after a sign-in
)

// kept is what was typed into a form, so that a refusal doesn't lose it.
type kept struct {
	Text    string
	Action  string // where it can be sent again; "": it is only shown
	Field   string
	Key     string
	Session string        // to go back to
	Request string        // likewise
	Fields  []pages.Field // what goes along, and can't be typed
	Typed   []pages.Typed // what was typed besides the text
}

// keep remembers what was typed until the request is answered.
func keep(c *fiber.Ctx, k kept) { c.Locals(keyKept, k) }

// messageOf is what a person may read of an error.
func messageOf(err error) string {
	_, e := explain(err)
	return components.Curly(e.Message)
}

// slugOf is the stable name of an error, "" for none and for a foreign one.
func slugOf(err error) string {
	var e *journal.Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.Slug()
}

var headings = map[string]string{
	"already-answered":       "This request was answered already",
	"request-ended":          "This request has ended",
	"digest-differs":         "What you read is not what is waiting now",
	"idempotency-key-reused": "This form was already sent with other content",
	"already-resolved":       "This outcome was reconciled already",
	"session-archived":       "This session is archived",
	"link-ended":             "This link has ended",
	"setup-done":             "This server is set up already",
	"setup-needed":           "This server isn’t set up yet",
	"cross-site":             "Refused",
	"commit-unknown":         "It isn’t known whether this was recorded",
	"other-turn":             "Another turn is open now",
	"prompt-promoted":        "This message was delivered already",
	"drawn-for-another":      "Somebody else is signed in now",
	"method-not-allowed":     "Nothing to read here",
}

var statusHeadings = map[int]string{
	http.StatusBadRequest: "This could not be read", http.StatusUnauthorized: "Sign in first", http.StatusForbidden: "Not allowed",
	http.StatusNotFound: "Not found", http.StatusConflict: "That is not possible now", http.StatusGone: "This has ended",
	http.StatusRequestEntityTooLarge: "Too large", http.StatusUnprocessableEntity: "Not accepted", http.StatusTooManyRequests: "Too much at once",
	http.StatusInternalServerError: "Something went wrong", http.StatusServiceUnavailable: "Not recorded",
}

// showFailure draws the page of an error: what happened, what still holds, and
// what one can do, with the text that was typed (ux §11).
func (s *Server) showFailure(c *fiber.Ctx, status int, e *journal.Error) error {
	p := pages.Failure{Frame: s.failureFrame(c), Status: status, Message: components.Curly(e.Message), RequestID: requestID(c)}
	p.Heading = headingOf(status, e)
	p.Title, p.Problem = p.Heading, true
	k, _ := c.Locals(keyKept).(kept)
	p.Text, p.Typed = k.Text, k.Typed
	p.Details = failureDetails(e, p.Viewer)
	if p.Text != "" && p.Heading == statusHeadings[http.StatusServiceUnavailable] {
		p.Details = append(p.Details, components.Say("Your text is below; nothing was sent to the agent."))
	}
	p.Resend = resendOf(status, e, k)
	p.Links = failureLinks(status, e, k, p.Viewer)
	if e.Slug() == "method-not-allowed" && slices.Contains([]string{get, fiber.MethodHead}, c.Method()) {
		p.Message = onlyForms
		if form := formAt(c.Path()); form != nil {
			p.Links = slices.Insert(p.Links, 0, components.Link(form.at(c.Path()), "To the page with the form"))
		}
	}
	// The guard has ended the request's own context; templ draws nothing under an ended one.
	c.SetUserContext(context.WithoutCancel(c.UserContext()))
	return draw(c, status, pages.FailurePage(p))
}

// onlyForms is said to who opens an address that only forms are sent to: by its bar, or
// by a link that somebody took from there.
const onlyForms = "This address only takes what a form sends to it. Opening it did nothing: nothing was sent, and nothing was done again."

// failureFrame is a frame that needs no database: it may be what has failed.
// Where it can be asked, the page follows the viewer's preferences as any other.
func (s *Server) failureFrame(c *fiber.Ctx) pages.Frame {
	f := s.bareFrame("")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.UserContext()), time.Second)
	defer cancel()
	f.Viewer = viewerOf(c)
	if f.Viewer.ID == "" { // no route has asked who it is
		who, err := s.byCookie(ctx, c.Cookies(cookieName))
		if err != nil {
			return f
		}
		f.Viewer = components.Viewer{ID: who.User.ID, Email: who.User.Email}
	}
	if pref, err := s.store.Preferences(ctx, f.Viewer.ID); err == nil {
		f.KeysOff, f.Announce, f.Theme = pref.KeysOff, pref.Announce, pref.Theme
	}
	return f
}

func headingOf(status int, e *journal.Error) string {
	if h, ok := headings[e.Slug()]; ok {
		return h
	}
	if status == http.StatusServiceUnavailable && (e.Slug() == "stopping" || e.Slug() == string(journal.Unavailable)) {
		return "Not available just now"
	}
	if h, ok := statusHeadings[status]; ok {
		return h
	}
	return http.StatusText(status)
}

// failureDetails say who was first, when, and with what.
func failureDetails(e *journal.Error, v components.Viewer) []components.Phrase {
	if was, ok := e.Extra["resolution"].(*journal.Resolution); ok && was != nil {
		return []components.Phrase{components.Say(components.UpperFirst(v.Who(was.By))+" recorded “"+was.Outcome.Words()+"” at ", components.AtSecond(was.At), ".")}
	}
	if was, ok := e.Extra["resolution"].(map[string]any); ok { // of an attempt
		by, _ := was["by"].(string)
		at, _ := was["at"].(int64)
		outcome, _ := was["outcome"].(journal.AttemptVerdict)
		return []components.Phrase{components.Say(components.UpperFirst(v.Who(by))+" "+components.ChoseText(outcome)+", at ", components.AtSecond(at), ".")}
	}
	if seq, ok := e.Extra["admitted_seq"].(int64); ok && e.Slug() == "idempotency-key-reused" {
		if id, ok := e.Extra["session_id"].(string); ok {
			return []components.Phrase{components.Say("What was sent first became ", components.EntryOf(id, seq), ".")}
		}
	}
	was, ok := e.Extra["answered"].(map[string]any)
	if !ok {
		return nil
	}
	by, _ := was["by"].(string)
	at, _ := was["at"].(int64)
	did := "allowed this once at "
	if was["reply"] == journal.ReplyReject {
		did = "denied this at "
	}
	out := []components.Phrase{components.Say(components.UpperFirst(v.Who(by))+" "+did, components.AtSecond(at), ".")}
	if message, _ := was["message"].(string); message != "" {
		out = append(out, components.Say("The message with it: “"+components.Line(message, 500)+"”"))
	}
	return out
}

// resendOf offers to send the text again: with the same key where a repeat is
// what settles it, with a new one where it is something else.
func resendOf(status int, e *journal.Error, k kept) *pages.Resend {
	if k.Action == "" {
		return nil
	}
	r := &pages.Resend{Action: k.Action, Key: k.Key, Label: "Send it again", Field: k.Field, Fields: k.Fields}
	switch {
	case e.Slug() == "idempotency-key-reused":
		r.Key, r.Label = newKey(), "Send the new text as a separate message"
	case e.Slug() == "other-turn":
		r.Key, r.Label = newKey(), "Send it, and stop nothing"
		r.Fields = slices.DeleteFunc(slices.Clone(k.Fields), func(f pages.Field) bool { return f.Name == "delivery" || f.Name == turnField })
		return r
	case status == http.StatusServiceUnavailable, status == http.StatusTooManyRequests, status == http.StatusInternalServerError:
		// The same key: whatever became of the first, it is recorded once.
	case status == http.StatusUnprocessableEntity, status == http.StatusRequestEntityTooLarge, status == http.StatusBadRequest:
		r.Key, r.Label = newKey(), "Send it"
	default:
		return nil
	}
	if slices.Contains(k.Fields, pages.Field{Name: "delivery", Value: journal.DeliveryInterrupt}) {
		r.Label += ", and stop the turn"
	}
	return r
}

func failureLinks(status int, e *journal.Error, k kept, v components.Viewer) []components.Word {
	var out []components.Word
	if e.Slug() == "digest-differs" {
		out = append(out, components.Link("/permissions/"+k.Request, "Read the current request"))
	} else if k.Request != "" && status != http.StatusNotFound {
		out = append(out, components.Link("/permissions/"+k.Request, "To the request"))
	}
	if first, ok := e.Extra["session_id"].(string); ok && e.Slug() == "idempotency-key-reused" {
		to := "/sessions/" + first
		if seq, ok := e.Extra["admitted_seq"].(int64); ok {
			to += "#" + components.EntryID(seq)
		}
		out = append(out, components.Link(to, "Keep the first, and look at it"))
	} else if k.Session != "" && status != http.StatusNotFound {
		out = append(out, components.Link("/sessions/"+k.Session, "Back to the session"))
	}
	switch {
	case e.Slug() == "setup-needed": // nobody can, and the sign-in page leads here
		return out
	case v.ID == "":
		return append(out, components.Link("/login", "Sign in"))
	}
	return append(out, components.Link("/needs-you", "Needs you"), components.Link("/", "Sessions"))
}
