package handlers

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/views/components"
	"holdfast/views/pages"
)

// A text that was sent after its sender's sign-in had ended is kept by the
// sign-in form itself: nothing of a stranger's is stored. After the sign-in it is
// shown with the form that it was meant for, and sent by nobody but a person. It
// is shown to that person only for whom its form was drawn (OWN-1): who signs in on
// the same browser may be somebody else. The field that says so is no proof, and
// needn't be one: who writes it by hand can only show themselves what they sent.

// draftForms are the forms whose text is kept, with the text's field, where the
// form stands, and what may go along when it is sent again. An answer may not: it
// is given anew, where what it answers can be read.
var draftForms = []struct {
	path   *regexp.Regexp
	field  string
	page   string // $1 is the id
	fields []string
	again  string // the label of the button; "": it is only shown
}{
	{regexp.MustCompile(`^/sessions$`), "prompt", "/sessions/new", []string{"workspace", "agent", "preset", "steps", "wall_h", "tokens", "cost_usd", keptField}, "Start session"},
	{regexp.MustCompile(`^/sessions/(ses_[0-9a-z]{1,64})/prompts$`), "text", "/sessions/$1", []string{"delivery", keptField}, "Send it now"},
	{regexp.MustCompile(`^/permissions/(per_[0-9a-z]{1,64})/decision$`), "message", "/permissions/$1", nil, ""},
	{regexp.MustCompile(`^/calls/(call_[0-9a-z]{1,64})/resolution$`), "evidence", "/calls/$1", nil, ""},
	{regexp.MustCompile(`^/attempts/(att_[0-9a-z]{1,64})/resolution$`), "evidence", "/needs-you", nil, ""},
}

// maxDraft bounds a kept text; a longer one would not be taken as a message either.
const maxDraft = 2 * journal.MaxPromptBytes

// newDraft keeps what a form of ours says; nil if there is nothing to keep.
func newDraft(path string, value func(string) string) *pages.Draft {
	for _, d := range draftForms {
		if !d.path.MatchString(path) {
			continue
		}
		text := value(d.field)
		if text == "" || len(text) > maxDraft {
			return nil
		}
		out := &pages.Draft{Action: path, Field: d.field, Text: text, For: value("for"), Key: value("idempotency_key"), Again: d.again, Page: d.path.ReplaceAllString(path, d.page)}
		for _, name := range d.fields {
			if v := value(name); v != "" {
				out.Fields = append(out.Fields, pages.Field{Name: name, Value: journal.Cut(v, maxWorkspace)})
			}
		}
		return out
	}
	return nil
}

// formDraft reads the draft that a sign-in form carries. It is checked like one
// that comes from anywhere.
func formDraft(f form) *pages.Draft {
	text := f.text(pages.DraftField)
	if text == "" {
		return nil
	}
	var more map[string]string
	if err := json.Unmarshal([]byte(f.text(pages.DraftMore)), &more); err != nil {
		more = nil // the text is what matters
	}
	path := f.text(pages.DraftAction)
	for _, d := range draftForms {
		if d.path.MatchString(path) {
			return newDraft(path, func(name string) string {
				if name == d.field {
					return text
				}
				return more[name]
			})
		}
	}
	return nil
}

// askSignIn asks for a sign-in, and remembers where the browser wanted to go, and
// what it sent.
func (s *Server) askSignIn(c *fiber.Ctx) error {
	next := ""
	if c.Method() == fiber.MethodGet && c.Path() != "/" {
		next = c.OriginalURL()
	}
	var draft *pages.Draft
	if f, err := parseForm(c); err == nil && c.Method() == fiber.MethodPost {
		draft = newDraft(c.Path(), f.text)
	}
	if draft != nil && draft.For == "" {
		draft = nil // no form of a page of ours: whose it is can't be told
	}
	if draft != nil {
		next = draft.Page
	}
	to := "/login"
	if next != "" {
		to += "?next=" + url.QueryEscape(next)
	}
	inPlace := c.Get("HX-Request") == "true" // htmx would follow a redirect and put the page into a fragment
	switch {
	case inPlace && draft != nil: // the text stays where it was typed
		return draw(c, http.StatusUnauthorized, components.SignedOutNotice(to))
	case inPlace:
		c.Set("HX-Redirect", to)
		return c.SendStatus(http.StatusUnauthorized)
	case draft != nil:
		p := pages.SignIn{Frame: s.bareFrame("Sign in"), Next: next, Draft: draft, Ended: s.endedSignIn(c)}
		return draw(c, http.StatusUnauthorized, pages.SignInPage(p))
	}
	return c.Redirect(to, http.StatusSeeOther)
}

// afterSignIn leads who has just signed in to the next page, or shows them what
// they had typed and could not send.
func (s *Server) afterSignIn(c *fiber.Ctx, u store.User, p *pages.SignIn) error {
	switch {
	case p.Draft == nil:
		return seeOther(c, p.Next)
	case p.Draft.For != u.ID: // the next page is where the other one was
		return seeOther(c, "/?notice="+string(noticeNotYours))
	}
	return s.offerDraft(c, u, *p.Draft)
}

// offerDraft shows what was not sent, to who has just signed in.
func (s *Server) offerDraft(c *fiber.Ctx, u store.User, d pages.Draft) error {
	c.Locals(keyIdentity, identity{User: u, Scope: store.ScopeAll})
	now, err := s.store.Now(c.UserContext())
	if err != nil {
		return err
	}
	f, err := s.frame(c, "Your text was not sent", "", now)
	if err != nil {
		return err
	}
	if _, err := journal.CheckKey(d.Key); err != nil {
		d.Key = newKey()
	}
	return draw(c, http.StatusOK, pages.DraftPage(pages.Unsent{Frame: f, Draft: d}))
}

// endedSignIn tells who shows the cookie of a sign-in that has ended by itself when
// that was, and what goes on. It is for the page only: whatever fails, it is silent.
func (s *Server) endedSignIn(c *fiber.Ctx) *pages.EndedSignIn {
	cookie := c.Cookies(cookieName)
	if cookie == "" {
		return nil
	}
	ctx := c.UserContext()
	old := newSessions(s.store.EndedSessions(), s.origin)
	loaded, err := old.Load(ctx, cookie)
	if err != nil {
		return nil
	}
	id := old.GetString(loaded, sessUser)
	if id == "" {
		return nil
	}
	counts, err := s.store.SessionCounts(ctx, id)
	if err != nil {
		return nil
	}
	return &pages.EndedSignIn{At: old.Deadline(loaded).UnixMilli(), Running: counts[journal.GroupRunning]}
}
