package handlers

import (
	"context"
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
	if err := page.Render(ctx, c.Response().BodyWriter()); err != nil {
		return err
	}
	if body, masked := components.MaskPage(ctx, c.Response().Body()); masked {
		c.Response().SetBody(body)
	}
	return nil
}

// frame is what stands around a page. now is the snapshot's time.
func (s *Server) frame(c *fiber.Ctx, title, here string, now int64) (pages.Frame, error) {
	f, err := s.frameFor(c.UserContext(), viewerOf(c), title, now)
	f.Current, f.Counts = here, true
	f.Notice = keepNotice(c, nil)
	return f, err
}

// frameFor is the frame for a viewer, also where no request is at hand.
func (s *Server) frameFor(ctx context.Context, v components.Viewer, title string, now int64) (pages.Frame, error) {
	needs, err := s.store.NeedsCount(ctx, v.ID)
	if err != nil {
		return s.bareFrame(title), err
	}
	return s.frameOf(ctx, v, title, now, needs)
}

// frameOf is frameFor with what needs the viewer, for a page whose snapshot has it.
func (s *Server) frameOf(ctx context.Context, v components.Viewer, title string, now int64, needs map[journal.Needs]int) (pages.Frame, error) {
	f := s.bareFrame(title)
	f.Now, f.Viewer = now, v
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
		Title: title, Stylesheet: static.StylesheetPath(), Version: s.opts.Version, Notices: s.opts.Notices, Full: s.store.Full(),
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
