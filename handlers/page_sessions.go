package handlers

import (
	"context"
	"fmt"
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

// listSessions: GET /?state=&q=&group=. Those that need the viewer come first.
func (s *Server) listSessions(c *fiber.Ctx) error {
	q, err := sessionQuery(c)
	if err != nil {
		return err
	}
	if q.Group, err = queryGroup(c); err != nil {
		return err
	}
	q.NeedsFirst, q.Limit = true, listDefault
	list, err := s.store.SessionList(c.UserContext(), current(c).User.ID, q)
	if err != nil {
		return err
	}
	f, err := s.frameOf(c.UserContext(), viewerOf(c), "Sessions", list.Now, list.Needs)
	if err != nil {
		return err
	}
	f.Current, f.Counts = "sessions", true
	f.Notice = pageNotice(c, noticeNotYours, true) // the sign-in that led here has said nothing else
	p := pages.Sessions{
		Frame: f, Items: each(list.Sessions, func(one store.Session) components.Session { return sessionView(&one, f.Viewer) }),
		State: string(q.State), Query: q.Text, Filtered: q.State != "" || q.Text != "" || q.Group != "", Later: q.Cursor != "",
		Group: string(q.Group), Counts: countLinks(list.Groups, q),
	}
	if list.Next != "" {
		p.More = "/?" + url.Values{"state": {p.State}, "q": {p.Query}, "group": {p.Group}, "cursor": {list.Next}}.Encode()
	}
	return draw(c, http.StatusOK, pages.SessionsPage(p))
}

// listGroups are the groups that a list can be narrowed to.
var listGroups = []struct {
	group journal.Group
	name  components.Group
}{
	{journal.GroupNeeds, components.GroupNeeds},
	{journal.GroupRunning, components.GroupRunning},
	{journal.GroupReview, components.GroupReview},
}

// queryGroup reads the group that a list is narrowed to. Code: invalid.
func queryGroup(c *fiber.Ctx) (journal.Group, error) {
	raw, err := queryText(c, "group")
	if err != nil || raw == "" {
		return "", err
	}
	for _, g := range listGroups {
		if raw == string(g.group) {
			return g.group, nil
		}
	}
	return "", badParam("group", "isn't a group of the list")
}

// countLinks are the groups with how many sessions they have; the page says which it shows.
func countLinks(counts map[journal.Group]int, q store.SessionQuery) []pages.Count {
	var out []pages.Count
	all := 0
	for _, n := range counts {
		all += n
	}
	if all == 0 {
		return nil
	}
	filtered := q.State != "" || q.Text != ""
	for _, g := range listGroups {
		out = append(out, pages.Count{Name: string(g.name), Href: "/?group=" + string(g.group), N: counts[g.group], Current: q.Group == g.group && !filtered})
	}
	return append(out, pages.Count{Name: "All", Href: "/", N: all, Current: q.Group == "" && !filtered})
}

// toSessions: GET /sessions, for who comes by the address of one and leaves out its id,
// or reloads what was sent there.
func toSessions(c *fiber.Ctx) error { return c.Redirect("/", http.StatusSeeOther) }

// newSession: GET /sessions/new.
func (s *Server) newSession(c *fiber.Ctx) error {
	p, err := s.blankSession(c)
	if err != nil {
		return err
	}
	unsent, err := s.store.Unsent(c.UserContext(), current(c).User.ID, store.NewMission)
	if err != nil {
		return err
	}
	p.Text, p.KeptAt, p.Version = unsent.Text, unsent.UpdatedAt, unsent.UpdatedAt
	return s.drawNewSession(c, http.StatusOK, p)
}

// blankSession is the form for a new session with the choices of the owner's last one,
// but for a preset that allows more than the default: that is chosen for each session.
func (s *Server) blankSession(c *fiber.Ctx) (pages.NewSession, error) {
	p := pages.NewSession{Key: newKey(), Workspace: ".", Agent: runbook, Preset: string(policy.AskWrites)}
	last, _, err := s.store.Sessions(c.UserContext(), current(c).User.ID, store.SessionQuery{Limit: 1})
	if err != nil || len(last) == 0 {
		return p, err
	}
	p.Agent = last[0].State.Agent
	if preset := policy.Preset(last[0].Rules.Preset); preset.Wider(policy.AskWrites) {
		p.Wider = preset.Title()
	} else {
		p.Preset = string(preset)
	}
	if w := last[0].State.Workspace; s.store.Cleaner(current(c).User.ID).Text(w) == w { // else no session begins there
		p.Workspace = w
	}
	return p, nil
}

// recentWorkspaces are where the owner's last sessions work, each once.
func (s *Server) recentWorkspaces(ctx context.Context, ownerID string) ([]string, error) {
	list, _, err := s.store.Sessions(ctx, ownerID, store.SessionQuery{Limit: listDefault})
	var out []string
	clean := s.store.Cleaner(ownerID)
	for i := range list {
		if w := list[i].State.Workspace; !slices.Contains(out, w) && !components.Hides(w) && clean.Text(w) == w {
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
	p.Problems, p.Notice = problems, keepNotice(c, pageNotice(c, noticeKept, p.KeptAt > 0))
	if p.Replaced != "" {
		p.Notice = replacedNotice()
	}
	agents, err := s.agents(c.UserContext())
	if err != nil {
		return err
	}
	p.Agents = each(agents, func(a store.Agent) components.Agent {
		return components.Agent{Name: a.Name, Kind: a.Kind, Available: a.Available, Reason: a.Reason}
	})
	offers, err := s.store.AgentOffers(c.UserContext(), p.Viewer.ID)
	if err != nil {
		return err
	}
	p.Offers = map[string]pages.Offer{}
	for name, o := range offers {
		p.Offers[name] = pages.Offer{Options: o.Options, Version: o.Version, At: o.At}
	}
	workers, err := s.store.Workers(c.UserContext())
	if err != nil {
		return err
	}
	p.Workers = len(workers)
	if status == http.StatusOK { // what was used last may not be offered any more
		p.OfferChoices(runbook, string(policy.AskWrites))
	} else {
		p.KeepChoices()
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
	p := typedSession(f)
	in := sessionInput{Workspace: p.Workspace, Agent: p.Agent, Preset: p.Preset, Prompt: &promptText{Text: p.Text}}
	chosen := f.fields("set:")
	keep(c, kept{
		Text: p.Text, Action: "/sessions", Field: "prompt", Key: p.Key, Typed: typedMission(f),
		Fields: append([]pages.Field{{Name: "agent", Value: p.Agent}, {Name: "preset", Value: p.Preset}, {Name: keptField, Value: f.text(keptField)}}, keptFields(chosen)...),
	})
	key, err := f.key()
	if err != nil {
		return err
	}
	if err := s.limit(c); err != nil {
		return err
	}
	if in.Settings, err = chosenFor(p.Agent, chosen); err != nil {
		p.Problems = append(p.Problems, components.Problem{Field: "agent-0", Text: messageOf(err)})
	}
	limits, bad := readLimits(f)
	for _, name := range limitFields {
		if bad[name] != nil {
			p.Problems = append(p.Problems, components.Problem{Field: "limit-" + name, Text: messageOf(bad[name])})
		}
	}
	if len(p.Problems) > 0 {
		return s.drawNewSession(c, http.StatusUnprocessableEntity, p)
	}
	one, replayed, err := s.createSession(c.UserContext(), current(c).User.ID, key, in, limits)
	if field := sessionField(err); field != "" {
		p.Problems = []components.Problem{{Field: field, Text: messageOf(err)}}
		return s.drawNewSession(c, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	s.forgetUnsent(c, f, key, store.NewMission)
	n := noticeRecorded
	if replayed {
		n = noticeAlready
	}
	return toSession(c, one.ID, n, 2)
}

// chosenFor are the settings that a form has chosen for its agent. What is chosen for
// another one would be dropped, and so is refused. Code: unprocessable.
func chosenFor(agent string, sent []formField) ([]journal.Setting, error) {
	prefix := pages.SettingFieldPrefix(agent)
	for _, f := range sent {
		_, changes, ok := components.ReadSetting(f.value)
		if strings.HasPrefix(f.name, prefix) || (ok && !changes) || agent == "" {
			continue
		}
		other, _, _ := strings.Cut(strings.TrimPrefix(f.name, "set:"), ":")
		return nil, refuse("setting-of-other-agent", fmt.Sprintf("You chose settings of %s, but the agent is %s. Choose one: the agent %[1]s, or its settings as the agent has them.", components.Line(other, 60), components.Line(agent, 60)))
	}
	return settingsOf(sent, prefix)
}

// typedSession is the form with what was typed and chosen in it.
func typedSession(f form) pages.NewSession {
	p := pages.NewSession{Key: f.text("idempotency_key"), Text: f.text("prompt"), Workspace: f.word("workspace"), Agent: f.word("agent"), Preset: f.word("preset"), Limits: map[string]string{}, Version: keptVersion(f)}
	for _, name := range limitFields {
		p.Limits[name] = f.word(name)
	}
	p.Settings = map[string]string{}
	for _, one := range f.fields("set:") {
		p.Settings[one.name] = one.value
	}
	return p
}

// typedMission is what was typed for a new session besides its text.
func typedMission(f form) []pages.Typed {
	workspace := pages.Typed{Field: pages.Field{Name: "workspace", Value: f.word("workspace")}, Label: "Workspace"}
	return append([]pages.Typed{workspace}, typedLimits(f)...)
}

// sessionField names the field of the form that an error is about; "" if it is about none.
func sessionField(err error) string {
	if !journal.Is(err, journal.Unprocessable) {
		return ""
	}
	switch slug := slugOf(err); {
	case slug == "idempotency-key-reused":
		return ""
	case strings.Contains(slug, "agent"), strings.Contains(slug, "setting"):
		return "agent-0"
	case strings.Contains(slug, "preset"):
		return "preset-0"
	case strings.Contains(slug, "text"):
		return "prompt"
	}
	return "workspace"
}
