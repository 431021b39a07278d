package handlers

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/journal/policy"
	"holdfast/store"
	"holdfast/views/components"
	"holdfast/views/pages"
)

func presetTitle(name string) string {
	p, ok := policy.ParsePreset(name)
	if !ok {
		return "Ask before everything"
	}
	return p.Title()
}

// listSessions: GET /. Those that need the viewer come first.
func (s *Server) listSessions(c *fiber.Ctx) error {
	q, err := sessionQuery(c)
	if err != nil {
		return err
	}
	q.NeedsFirst, q.Limit = true, listDefault
	list, next, err := s.store.Sessions(c.UserContext(), current(c).User.ID, q)
	if err != nil {
		return err
	}
	now, err := s.store.Now(c.UserContext())
	if err != nil {
		return err
	}
	f, err := s.frame(c, "Sessions", "sessions", now)
	if err != nil {
		return err
	}
	p := pages.Sessions{
		Frame: f, Items: each(list, func(one store.Session) components.Session { return sessionView(&one, f.Viewer) }),
		State: string(q.State), Query: q.Text, Filtered: q.State != "" || q.Text != "", Later: q.Cursor != "",
	}
	if next != "" {
		p.More = "/?" + url.Values{"state": {p.State}, "q": {p.Query}, "cursor": {next}}.Encode()
	}
	return draw(c, http.StatusOK, pages.SessionsPage(p))
}

// newSession: GET /sessions/new.
func (s *Server) newSession(c *fiber.Ctx) error {
	p := pages.NewSession{Key: newKey(), Workspace: ".", Agent: runbook, Preset: string(policy.AskWrites)}
	last, _, err := s.store.Sessions(c.UserContext(), current(c).User.ID, store.SessionQuery{Limit: 1})
	if err != nil {
		return err
	}
	if len(last) > 0 {
		p.Workspace, p.Agent, p.Preset = last[0].State.Workspace, last[0].State.Agent, last[0].Rules.Preset
	}
	return s.drawNewSession(c, http.StatusOK, p)
}

// recentWorkspaces are where the owner's last sessions work, each once.
func (s *Server) recentWorkspaces(ctx context.Context, ownerID string) ([]string, error) {
	list, _, err := s.store.Sessions(ctx, ownerID, store.SessionQuery{Limit: listDefault})
	var out []string
	for i := range list {
		if w := list[i].State.Workspace; !slices.Contains(out, w) && !components.Hides(w) {
			out = append(out, w)
		}
	}
	return out, err
}

// drawNewSession draws the form with what p has of it.
func (s *Server) drawNewSession(c *fiber.Ctx, status int, p pages.NewSession) error {
	problems := p.Problems
	now, err := s.store.Now(c.UserContext())
	if err != nil {
		return err
	}
	if p.Frame, err = s.frame(c, "New session", "new", now); err != nil {
		return err
	}
	p.Problems = problems
	agents, err := s.agents(c.UserContext())
	if err != nil {
		return err
	}
	p.Agents = each(agents, func(a store.Agent) components.Agent {
		return components.Agent{Name: a.Name, Kind: a.Kind, Available: a.Available, Reason: a.Reason}
	})
	workers, err := s.store.Workers(c.UserContext())
	if err != nil {
		return err
	}
	p.Workers = len(workers)
	if !slices.ContainsFunc(p.Agents, func(a components.Agent) bool { return a.Name == p.Agent && a.Available }) {
		p.Agent = runbook
	}
	if p.Recent, err = s.recentWorkspaces(c.UserContext(), p.Viewer.ID); err != nil {
		return err
	}
	return draw(c, status, pages.NewSessionPage(p))
}

// submitSession: POST /sessions, by the same path as the API.
func (s *Server) submitSession(c *fiber.Ctx) error {
	f, err := parseForm(c)
	if err != nil {
		return err
	}
	in := sessionInput{Workspace: f.word("workspace"), Agent: f.word("agent"), Preset: f.word("preset"), Prompt: &promptText{Text: f.text("prompt")}}
	p := pages.NewSession{Key: f.text("idempotency_key"), Text: in.Prompt.Text, Workspace: in.Workspace, Agent: in.Agent, Preset: in.Preset, Limits: map[string]string{}}
	k := kept{
		Text: p.Text, Action: "/sessions", Field: "prompt", Key: p.Key,
		Fields: []pages.Field{{Name: "workspace", Value: p.Workspace}, {Name: "agent", Value: p.Agent}, {Name: "preset", Value: p.Preset}},
	}
	for _, name := range limitFields {
		if p.Limits[name] = f.word(name); p.Limits[name] != "" {
			k.Fields = append(k.Fields, pages.Field{Name: name, Value: p.Limits[name]})
		}
	}
	keep(c, k)
	key, err := f.key()
	if err != nil {
		return err
	}
	if err := s.limit(c); err != nil {
		return err
	}
	_, bad := readLimits(f)
	for _, name := range limitFields {
		if bad[name] != nil {
			p.Problems = append(p.Problems, components.Problem{Field: "limit-" + name, Text: messageOf(bad[name])})
		}
	}
	if len(p.Problems) > 0 {
		return s.drawNewSession(c, http.StatusUnprocessableEntity, p)
	}
	one, replayed, err := s.createSession(c.UserContext(), current(c).User.ID, key, in)
	if field := sessionField(err); field != "" {
		p.Problems = []components.Problem{{Field: field, Text: messageOf(err)}}
		return s.drawNewSession(c, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	n := noticeRecorded
	if replayed {
		n = noticeAlready
	}
	return toSession(c, one.ID, n, 2)
}

// sessionField names the field of the form that an error is about; "" if it is about none.
func sessionField(err error) string {
	if !journal.Is(err, journal.Unprocessable) {
		return ""
	}
	switch slug := slugOf(err); {
	case slug == "idempotency-key-reused":
		return ""
	case strings.Contains(slug, "agent"):
		return "agent-0"
	case strings.Contains(slug, "preset"):
		return "preset-0"
	case strings.Contains(slug, "text"):
		return "prompt"
	}
	return "workspace"
}
