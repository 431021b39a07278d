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
	return s.orNoSession(c, id, s.keepUnsent(c, f, id, "text", "/sessions/"+id+"?notice="+string(noticeKept)+"#composer-h"))
}

// submitUnsentMission: POST /sessions/new/unsent keeps what is typed for a new session.
func (s *Server) submitUnsentMission(c *fiber.Ctx) error {
	f, err := parseForm(c)
	if err != nil {
		return err
	}
	keep(c, kept{Text: unsentText(f, "prompt"), Typed: typedMission(f)})
	return s.keepUnsent(c, f, store.NewMission, "prompt", "/sessions/new?notice="+string(noticeKept))
}

// unsentText is the text of a form: the script of a page names it text, the form's
// own button by its field.
func unsentText(f form, field string) string {
	return cmp.Or(f.text("text"), f.text(field))
}

// keepUnsent keeps the text of a form.
func (s *Server) keepUnsent(c *fiber.Ctx, f form, place, field, to string) error {
	key, err := f.key()
	if err == nil {
		err = s.limit(c)
	}
	var at int64
	if err == nil {
		at, err = s.store.KeepUnsent(c.UserContext(), current(c).User.ID, place, unsentForm(f, key), unsentText(f, field))
	}
	if err != nil {
		return err
	}
	if isScript(c) {
		if at > 0 {
			c.Set(keptHeader, strconv.FormatInt(at, 10))
		}
		return c.SendStatus(http.StatusNoContent)
	}
	return seeOther(c, to)
}

// keptHeader tells a script which version of the text is kept now; without it
// nothing is, since the text is empty or was sent.
const keptHeader = "X-Holdfast-Kept"

// unsentForm says which form a text stands in, by its key.
func unsentForm(f form, key string) store.UnsentForm {
	return store.UnsentForm{Key: key, KeptAt: keptVersion(f), Typing: f.text("typing") != ""}
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
	Needs   int    `json:"needs"`   // what needs the person, over all sessions
	Changed int    `json:"changed"` // sessions that changed since
	Icon    string `json:"icon"`    // what the tab shall show
	For     string `json:"for"`     // who is signed in: a page of somebody else's covers itself
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
		Changed: changed, Icon: static.Path(icon), For: who,
	})
}
