package handlers

import (
	"net/http"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/views/components"
	"holdfast/views/pages"
)

// showSettings: GET /settings, how pages shall behave for who is signed in.
func (s *Server) showSettings(c *fiber.Ctx) error {
	pref, err := s.store.Preferences(c.UserContext(), current(c).User.ID)
	if err != nil {
		return err
	}
	return s.drawSettings(c, http.StatusOK, pref, nil)
}

func (s *Server) drawSettings(c *fiber.Ctx, status int, pref store.Preferences, problems []components.Problem) error {
	now, err := s.store.Now(c.UserContext())
	if err != nil {
		return err
	}
	f, err := s.frame(c, "Settings", "settings", now)
	if err != nil {
		return err
	}
	f.Problems, f.Notice = problems, keepNotice(c, pageNotice(c, noticeSaved, status == http.StatusOK))
	return draw(c, status, pages.SettingsPage(pages.Settings{Frame: f, Key: newKey(), Keys: pref.KeysOff, Announce: pref.Announce, Theme: pref.Theme}))
}

// submitSettings: POST /settings. Sent twice it is the same.
func (s *Server) submitSettings(c *fiber.Ctx) error {
	f, err := parseForm(c)
	if err != nil {
		return err
	}
	pref := store.Preferences{KeysOff: f.word("keys") == "off", Announce: f.word("announce"), Theme: f.word("theme")}
	err = s.store.SavePreferences(c.UserContext(), current(c).User.ID, pref)
	if journal.Is(err, journal.Unprocessable) {
		return s.drawSettings(c, http.StatusUnprocessableEntity, pref, []components.Problem{{Text: messageOf(err)}})
	}
	if err != nil {
		return err
	}
	return seeOther(c, "/settings?notice="+string(noticeSaved))
}
