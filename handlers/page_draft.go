package handlers

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"

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

// maxDraft bounds a kept text; a longer one would not be taken as a message either.
const maxDraft = 2 * journal.MaxPromptBytes

// sentForm is what a form has sent: its fields by name, and their names in order.
type sentForm struct {
	values map[string]string
	names  []string
}

// newDraft keeps what a form of ours says; nil if there is nothing to keep.
func newDraft(path string, sent sentForm) *pages.Draft {
	k := formAt(path)
	if k == nil {
		return nil
	}
	out := &pages.Draft{Action: path, Lost: k.lost, For: sent.values["for"], Key: sent.values["idempotency_key"], Page: k.at(path)}
	for _, name := range sent.names {
		v := sent.values[name]
		if v == "" || !k.keeps(name) {
			continue
		}
		out.Fields = append(out.Fields, pages.Field{Name: name, Value: v})
		if name == "delivery" && v == journal.DeliveryInterrupt { // it may be another turn by then
			out.Again = components.StopAndSend
		}
	}
	switch text := sent.values[k.field]; { // without a field for it there is none
	case len(text) > maxDraft:
		return nil
	case text != "":
		out.Field, out.Text, out.Again = k.field, text, cmp.Or(out.Again, k.again)
		return out
	case k.refill == nil || len(out.Fields) == 0:
		return nil
	}
	return out
}

// formDraft reads the draft that a sign-in form carries. It is checked like one
// that comes from anywhere.
func formDraft(f form) *pages.Draft {
	path := f.text(pages.DraftAction)
	k := formAt(path)
	if k == nil {
		return nil
	}
	var more map[string]string
	if err := json.Unmarshal([]byte(f.text(pages.DraftMore)), &more); err != nil || more == nil {
		more = map[string]string{} // the text is what matters
	}
	if k.field != "" {
		more[k.field] = f.text(pages.DraftField)
	}
	return newDraft(path, sentForm{more, slices.Sorted(maps.Keys(more))})
}

// askSignIn asks for a sign-in, and remembers where the browser wanted to go, and
// what it sent. Of what was sent nothing is done, and the answer says so.
func (s *Server) askSignIn(c *fiber.Ctx) error {
	if k := formAt(c.Path()); k != nil && c.Method() == fiber.MethodPost {
		return s.refuseSignedOut(c, k)
	}
	to := "/login"
	if c.Method() == fiber.MethodGet && c.Path() != "/" {
		to = signInTo(c.OriginalURL())
	}
	if isScript(c) { // htmx would follow a redirect and put the page into a fragment
		c.Set("HX-Redirect", to)
		return c.SendStatus(http.StatusUnauthorized)
	}
	return c.Redirect(to, http.StatusSeeOther)
}

func signInTo(next string) string { return "/login?next=" + url.QueryEscape(next) }

// refuseSignedOut answers a form that comes from nobody: it says what was not done,
// and keeps what may be kept of it.
func (s *Server) refuseSignedOut(c *fiber.Ctx, k *signedOutForm) error {
	p := pages.SignIn{Frame: s.bareFrame("Sign in"), Next: k.at(c.Path()), Lost: k.lost}
	if f, err := parseForm(c); err == nil {
		sent := f.sent()
		p.Draft = newDraft(c.Path(), sent)
		if len(sent.values[k.field]) > maxDraft {
			p.Lost += " The text was too long to be kept, or to be sent."
		}
	}
	if p.Draft != nil && p.Draft.For == "" {
		p.Draft = nil // no form of a page of ours: whose it is can't be told
	}
	if isScript(c) { // what was typed and chosen stays where it is
		says := "You are signed out. " + p.Lost
		if p.Draft != nil && p.Draft.Text != "" {
			says = "You are signed out, so this was not sent. Your text is kept here."
		}
		return draw(c, http.StatusUnauthorized, components.SignedOutNotice(signInTo(p.Next), says))
	}
	p.Ended = s.endedSignIn(c)
	return draw(c, http.StatusUnauthorized, pages.SignInPage(p))
}

// afterSignIn leads who has just signed in to the next page, or shows them what
// they had typed and could not send.
func (s *Server) afterSignIn(c *fiber.Ctx, u store.User, p *pages.SignIn) error {
	switch d := p.Draft; {
	case d == nil:
		return seeOther(c, p.Next)
	case d.For != u.ID && d.Text != "": // the next page is where the other one was
		return seeOther(c, "/?notice="+string(noticeNotYours))
	case d.For != u.ID:
		return seeOther(c, "/")
	case d.Text != "":
		return s.offerDraft(c, u, *d)
	}
	c.Locals(keyIdentity, identity{User: u, Scope: store.ScopeAll})
	c.Locals(keyNotRecorded, components.Say("You were signed out when you sent this form. "+p.Draft.Lost+" What you chose is filled in again: look at it, and send it."))
	c.SetUserContext(s.masking(c.UserContext(), u.ID))
	return formAt(p.Draft.Action).refill(s, c, p.Draft)
}

// offerDraft shows what was not sent, to who has just signed in.
func (s *Server) offerDraft(c *fiber.Ctx, u store.User, d pages.Draft) error {
	c.Locals(keyIdentity, identity{User: u, Scope: store.ScopeAll})
	c.SetUserContext(s.masking(c.UserContext(), u.ID))
	d.Along = along(d.Fields)
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
