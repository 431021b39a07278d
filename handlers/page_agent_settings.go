package handlers

import (
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/views/components"
	"holdfast/views/pages"
)

// showAgentSettings: GET /sessions/:id/settings.
func (s *Server) showAgentSettings(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "ses")
	if err != nil {
		return err
	}
	return s.drawAgentSettings(c, http.StatusOK, id, pages.AgentSettings{Key: newKey()})
}

func (s *Server) drawAgentSettings(c *fiber.Ctx, status int, id string, p pages.AgentSettings) error {
	ctx, who := c.UserContext(), current(c).User.ID
	one, err := s.store.Session(ctx, who, id)
	if err != nil {
		return err
	}
	if p.Options, err = s.store.OffersOf(ctx, who, id); err != nil {
		return err
	}
	if p.Frame, err = s.frame(c, "Settings of the agent", "sessions", one.Now); err != nil {
		return err
	}
	p.S = sessionView(&one, p.Viewer)
	if p.Problem != "" {
		p.Problems = []components.Problem{{Field: "set-0", Text: p.Problem}}
	}
	return draw(c, status, pages.AgentSettingsPage(p))
}

// submitAgentSettings: POST /sessions/:id/settings, by the same path as the API.
func (s *Server) submitAgentSettings(c *fiber.Ctx) error {
	id, f, err := s.sessionForm(c)
	if err != nil {
		return err
	}
	sent := f.fields("set:")
	keep(c, kept{Session: id, Action: "/sessions/" + id + "/settings", Key: f.text("idempotency_key"), Fields: keptFields(sent)})
	key, err := f.key()
	if err != nil {
		return s.orNoSession(c, id, err)
	}
	list, err := settingsOf(sent, "set:")
	var seq int64
	if err == nil {
		seq, _, err = s.chooseSettings(c.UserContext(), current(c).User.ID, id, key, list)
	}
	if journal.Is(err, journal.Unprocessable) && slugOf(err) != "idempotency-key-reused" {
		return s.orNoSession(c, id, s.redrawAgentSettings(c, id, f, sent, err))
	}
	if err != nil {
		return s.orNoSession(c, id, err)
	}
	return toSession(c, id, noticeSet, seq)
}

func (s *Server) redrawAgentSettings(c *fiber.Ctx, id string, f form, sent []formField, problem error) error {
	p := pages.AgentSettings{Key: f.text("idempotency_key"), Chosen: map[string]string{}, Problem: messageOf(problem)}
	for _, one := range sent {
		p.Chosen[one.name] = one.value
	}
	return s.drawAgentSettings(c, http.StatusUnprocessableEntity, id, p)
}

// settingsOf are the settings that fields under a prefix have sent, in their order.
// Code: unprocessable (what no field sends).
func settingsOf(sent []formField, prefix string) ([]journal.Setting, error) {
	var out []journal.Setting
	for _, f := range sent {
		id, mine := strings.CutPrefix(f.name, prefix)
		if !mine {
			continue
		}
		value, changes, ok := components.ReadSetting(f.value)
		if !ok {
			return nil, refuse("bad-setting", "The form names no value of the setting "+components.Line(id, 60)+".")
		}
		if changes {
			out = append(out, journal.Setting{ID: id, Value: value})
		}
	}
	return out, nil
}

func keptFields(sent []formField) []pages.Field {
	return each(sent, func(f formField) pages.Field { return pages.Field{Name: f.name, Value: f.value} })
}
