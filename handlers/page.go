package handlers

import (
	"context"
	"strconv"
	"time"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/static"
	"holdfast/store"
	"holdfast/views/components"
	"holdfast/views/pages"
)

// draw answers with a page. A page that fails while it is drawn becomes an error page.
func draw(c *fiber.Ctx, status int, page templ.Component) error {
	c.Status(status).Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
	ctx := components.DrawnFor(c.UserContext(), viewerOf(c).ID)
	if c.Method() == fiber.MethodPost {
		ctx = components.AnswersForm(ctx)
	}
	return page.Render(ctx, c.Response().BodyWriter())
}

// frame is what stands around a page. now is the snapshot's time.
func (s *Server) frame(c *fiber.Ctx, title, here string, now int64) (pages.Frame, error) {
	f, err := s.frameFor(c.UserContext(), viewerOf(c), title, now)
	f.Current, f.Notice = here, noticeOf(c)
	return f, err
}

// frameFor is the frame for a viewer, also where no request is at hand.
func (s *Server) frameFor(ctx context.Context, v components.Viewer, title string, now int64) (pages.Frame, error) {
	f := s.bareFrame(title)
	f.Now, f.Viewer = now, v
	needs, err := s.store.NeedsCount(ctx, v.ID)
	if err != nil {
		return f, err
	}
	for need, n := range needs {
		if need.Urgent() {
			f.Needs += n
		}
	}
	f.Icon = iconOf(needs)
	pref, err := s.store.Preferences(ctx, v.ID)
	f.KeysOff, f.Announce, f.Theme = pref.KeysOff, pref.Announce, pref.Theme
	return f, err
}

// iconOf is what the tab shows of all sessions: what comes first in ux §4.3.
func iconOf(needs map[journal.Needs]int) string {
	switch {
	case needs[journal.NeedsReconcile] > 0:
		return "reconcile"
	case needs[journal.NeedsDecision]+needs[journal.NeedsBlocked] > 0:
		return "decision"
	case needs[journal.NeedsReview] > 0:
		return "review"
	}
	return ""
}

// bareFrame is the frame of a page for nobody in particular.
func (s *Server) bareFrame(title string) pages.Frame {
	return pages.Frame{
		Title: title, Stylesheet: static.StylesheetPath(), Version: s.opts.Version, Notices: s.opts.Notices,
		Now: time.Now().UnixMilli(), SignOut: newKey(),
	}
}

// viewerOf is who looks at the page; nobody if no guard has asked.
func viewerOf(c *fiber.Ctx) components.Viewer {
	id, ok := c.Locals(keyIdentity).(identity)
	if !ok {
		return components.Viewer{}
	}
	return components.Viewer{ID: id.User.ID, Email: id.User.Email}
}

// notice is what a page says after a form was taken. Only these words can be
// asked for by an address: it carries the name of one, and a number.
type notice string

const (
	noticeRecorded  notice = "recorded"
	noticeAlready   notice = "already"
	noticeWithdrawn notice = "withdrawn"
	noticeStopping  notice = "stopping"
	noticeStopped   notice = "stopped"
	noticeContinued notice = "continued"
	noticeArchived  notice = "archived"
	noticeKept      notice = "kept"
	noticeSaved     notice = "saved"
)

var noticeWords = map[notice]string{
	noticeRecorded: "Recorded", noticeAlready: "Already recorded", noticeWithdrawn: "Withdrawn",
	noticeStopping: "Stopping was asked for", noticeStopped: "The turn has ended already; nothing is left to stop",
	noticeContinued: "The session goes on", noticeArchived: "Archived",
	noticeKept: "Your text is kept. It was not sent", noticeSaved: "Saved",
}

// noticeOf reads the notice that an address asks for; anything else is none.
func noticeOf(c *fiber.Ctx) components.Phrase {
	words, ok := noticeWords[notice(c.Query("notice"))]
	if !ok {
		return nil
	}
	seq, err := strconv.ParseInt(c.Query("seq"), 10, 64)
	if err != nil || seq < 1 {
		return components.Say(words + ".")
	}
	return components.Say(words+" as ", components.EntryLink(seq), ".")
}

// toSession sends the browser to a session's page with a notice.
func toSession(c *fiber.Ctx, id string, n notice, seq int64) error {
	to := "/sessions/" + id + "?notice=" + string(n)
	if seq > 0 {
		to += "&seq=" + strconv.FormatInt(seq, 10)
	}
	return seeOther(c, to)
}

// recordedAs finds the newest entry that says what was just recorded; 0 if it
// isn't among the last ones any more. It is for a notice only.
func (s *Server) recordedAs(c *fiber.Ctx, session string, says func(journal.Body) bool) int64 {
	p, err := s.store.EventsBefore(c.UserContext(), current(c).User.ID, session, 0, 50)
	if err != nil { // what was recorded stays so; the notice has no number then
		return 0
	}
	for i := len(p.Events) - 1; i >= 0; i-- {
		if body, err := p.Events[i].Decode(); err == nil && says(body) {
			return p.Events[i].Seq
		}
	}
	return 0
}

// showAsset serves an embedded file; its name changes with its content.
func showAsset(c *fiber.Ctx) error {
	a, ok := static.Find(c.Params("name"))
	if !ok {
		return fiber.ErrNotFound
	}
	c.Set(fiber.HeaderContentType, a.Type)
	c.Set(fiber.HeaderCacheControl, "public, max-age=31536000, immutable")
	c.Set(fiber.HeaderVary, fiber.HeaderAcceptEncoding)
	data, encoding := a.Encoded(c.Get(fiber.HeaderAcceptEncoding))
	if encoding != "" {
		c.Set(fiber.HeaderContentEncoding, encoding)
	}
	return c.Send(data)
}

// showHelp: GET /help.
func (s *Server) showHelp(c *fiber.Ctx) error {
	f := s.bareFrame("Help and words")
	if id, err := s.identify(c); err == nil { // for the navigation; help is for everybody
		c.Locals(keyIdentity, id)
		if f, err = s.frame(c, f.Title, "", f.Now); err != nil {
			return err
		}
	}
	return draw(c, fiber.StatusOK, pages.HelpPage(pages.Help{Frame: f}))
}

// sessionView is a session as components show it.
func sessionView(s *store.Session, v components.Viewer) components.Session {
	return components.Session{
		ID: s.ID, State: s.State, Claim: s.Claim, Now: s.Now, Position: s.Position, Host: s.Host, Kept: s.Kept, LastSeq: s.LastSeq,
		Preset: presetTitle(s.Rules.Preset), Viewer: v,
	}
}
