package handlers

import (
	"cmp"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/static"
	"holdfast/store"
	"holdfast/views/components"
	"holdfast/views/pages"
)

// submitSeen: POST /sessions/:id/seen notes the last entry on the screen. A
// script sends it while a page is read; it changes nothing of the session.
func (s *Server) submitSeen(c *fiber.Ctx) error {
	id, f, err := s.sessionForm(c)
	if err != nil {
		return err
	}
	seq, err := strconv.ParseInt(f.word("seq"), 10, 64)
	if err != nil {
		return s.orNoSession(c, id, refuse("no-such-entry", "seq must be the number of an entry. Nothing was recorded."))
	}
	if err := s.store.MarkSeen(c.UserContext(), current(c).User.ID, id, seq); err != nil {
		return err
	}
	return c.SendStatus(http.StatusNoContent)
}

// submitUnsent: POST /sessions/:id/unsent keeps what is typed in the composer.
func (s *Server) submitUnsent(c *fiber.Ctx) error {
	id, f, err := s.sessionForm(c)
	if err != nil {
		return err
	}
	keep(c, kept{Text: unsentText(f, "text"), Session: id})
	out, err := s.keepUnsent(c, f, id, "text")
	if err != nil {
		return s.orNoSession(c, id, err)
	}
	if isScript(c) {
		return sendKept(c, out)
	}
	if out.Other.Text == "" {
		n := noticeKept
		if unsentText(f, "text") == "" {
			n = noticeNotKept
		}
		return seeOther(c, "/sessions/"+id+"?notice="+string(n)+"#composer-h")
	}
	p, err := s.sessionPage(c, id, 0)
	if err != nil {
		return err
	}
	p.Composer.Replaced, p.Notice = out.Other.Text, replacedNotice()
	return draw(c, http.StatusOK, pages.SessionPage(p))
}

// submitUnsentMission: POST /sessions/new/unsent keeps what is typed for a new session.
func (s *Server) submitUnsentMission(c *fiber.Ctx) error {
	f, err := parseForm(c)
	if err != nil {
		return err
	}
	keep(c, kept{Text: unsentText(f, "prompt"), Typed: typedMission(f)})
	out, err := s.keepUnsent(c, f, store.NewMission, "prompt")
	if err != nil {
		return err
	}
	if isScript(c) {
		return sendKept(c, out)
	}
	if out.Other.Text == "" {
		return seeOther(c, "/sessions/new?notice="+string(noticeKept))
	}
	p := typedSession(f)
	if !f.has("workspace") { // it comes from the page of a session that has ended
		if p, err = s.blankSession(c); err != nil {
			return err
		}
		p.Text = unsentText(f, "prompt")
	}
	p.Key, p.KeptAt, p.Version, p.Replaced = newKey(), out.At, out.At, out.Other.Text
	return s.drawNewSession(c, http.StatusOK, p)
}

// replacedNotice says that a text is kept, and took the place of another.
func replacedNotice() components.Phrase {
	return components.Say(noticeWords[noticeKept]+". It replaced ", components.Link("#unsent-replaced", "another text"), ", which is shown once.")
}

// unsentText is the text of a form: the script of a page names it text, the form's
// own button by its field.
func unsentText(f form, field string) string {
	return cmp.Or(f.text("text"), f.text(field))
}

// keepUnsent keeps the text of a form. On a conflict, the version of the text that
// stands goes along with the error.
func (s *Server) keepUnsent(c *fiber.Ctx, f form, place, field string) (store.Kept, error) {
	key, err := f.key()
	if err == nil {
		err = s.limit(c)
	}
	if err != nil {
		return store.Kept{}, err
	}
	out, err := s.store.KeepUnsent(c.UserContext(), current(c).User.ID, place, unsentForm(f, key), unsentText(f, field))
	if at := cmp.Or(out.At, out.Other.UpdatedAt); at > 0 {
		c.Set(keptHeader, strconv.FormatInt(at, 10))
	}
	return out, err
}

// sendKept tells a script what was kept, and shows it the text that was replaced.
func sendKept(c *fiber.Ctx, out store.Kept) error {
	if out.Other.Text == "" {
		return c.SendStatus(http.StatusNoContent)
	}
	return draw(c, http.StatusOK, components.ReplacedUnsent(out.Other.Text))
}

// keptHeader tells a script which version is kept now: of its text, or with 409 of
// another. Without it nothing is, since the text is empty or was sent.
const keptHeader = "X-Holdfast-Kept"

// unsentForm says which form a text stands in, by its key.
func unsentForm(f form, key string) store.UnsentForm {
	typing := f.text("typing")
	return store.UnsentForm{Key: key, KeptAt: keptVersion(f), Typing: typing != "", Again: typing == "again"}
}

// keptVersion is the version of the kept text that a form was drawn with; 0: it was
// drawn with none, or made by hand.
func keptVersion(f form) int64 {
	at, err := strconv.ParseInt(f.text(keptField), 10, 64)
	if err != nil {
		return 0
	}
	return at
}

// keptField is the field by which a form carries the version that it was drawn with.
const keptField = "kept_at"

// forgetUnsent drops what was kept of a text that has been sent now under a key. If
// that fails it stays, and the person can take it away.
func (s *Server) forgetUnsent(c *fiber.Ctx, f form, key, place string) {
	if err := s.store.DropUnsent(c.UserContext(), current(c).User.ID, place, unsentForm(f, key)); err != nil {
		s.log.Warn("forget what was kept of a sent text", slog.String("request_id", requestID(c)), slog.Any("error", err))
	}
}

type pulseJSON struct {
	Needs   int    `json:"needs"`         // what needs the person, over all sessions
	Changed int    `json:"changed"`       // sessions that changed since
	Icon    string `json:"icon" mask:"-"` // what the tab shall show
	Full    bool   `json:"full"`          // the journal's disk takes no more
	For     string `json:"for" mask:"-"`  // who is signed in: a page of somebody else's covers itself
}

// showPulse: GET /pulse?since=MS tells a page that stays open what changed.
func (s *Server) showPulse(c *fiber.Ctx) error {
	since, err := queryInt(c, "since", 0)
	if err != nil {
		return err
	}
	who := current(c).User.ID
	needs, err := s.store.NeedsCount(c.UserContext(), who)
	if err != nil {
		return err
	}
	changed, err := s.store.ChangedSince(c.UserContext(), who, since)
	if err != nil {
		return err
	}
	icon := "icon-plain.svg"
	if name := iconOf(needs); name != "" {
		icon = "icon-" + name + ".svg"
	}
	return sendJSON(c, http.StatusOK, pulseJSON{
		Needs:   needs[journal.NeedsReconcile] + needs[journal.NeedsDecision] + needs[journal.NeedsBlocked],
		Changed: changed, Icon: static.Path(icon), Full: s.store.Full(), For: who,
	})
}
