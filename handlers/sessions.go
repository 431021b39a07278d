package handlers

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/journal/policy"
	"holdfast/store"
	"holdfast/views/components"
)

// Bounds of what a session is made of.
const (
	maxTitle     = 200 // characters
	maxRules     = 200
	maxRuleBytes = 32 << 10 // of all, in JSON: beside the longest path they fit into the event session.created
	maxWorkspace = 4096
	titleCut     = 80 // bytes of a title that is taken from the prompt
)

// sessionInput is what a form or a program asks for when it makes a session.
type sessionInput struct {
	Workspace string          `json:"workspace"`
	Agent     string          `json:"agent"`
	Title     string          `json:"title"`
	Preset    string          `json:"preset"`
	Rules     []journal.Rule  `json:"rules"`
	Policy    *journal.Policy `json:"policy"`
	Limits    *limitsInput    `json:"limits"`
	Prompt    *promptText     `json:"prompt"`

	Settings []journal.Setting `json:"settings"` // of the agent, from the first prompt on
}

type promptText struct {
	Text string `json:"text"`
}

// createSession checks what is asked for and makes the session, with its first
// prompt if there is one; form and API share it (ADM-2, ADM-6). key and limits are
// checked already. Codes: unprocessable, too_large, those of Prepare and of
// store.CreateSession.
func (s *Server) createSession(ctx context.Context, ownerID, key string, in sessionInput, limits *journal.Limits) (out store.Session, replayed bool, err error) {
	if err := in.check(); err != nil {
		return out, false, err
	}
	n := store.NewSession{Title: in.title(), Agent: in.Agent, Given: in.Workspace, Preset: in.Preset, Rules: in.Rules, Limits: limits, Settings: in.Settings}
	if in.Policy != nil {
		n.Policy = *in.Policy
	}
	if in.Prompt != nil {
		n.Prompt = &store.PromptInput{Text: in.Prompt.Text, Delivery: journal.Queue}
	}
	// A retry is answered first: its agent or folder may be gone by now (ADM-3).
	if out, found, err := s.store.CreatedBefore(ctx, ownerID, key, n); found || err != nil {
		return out, found, err
	}
	if err := s.checkAgent(ctx, in.Agent); err != nil {
		return out, false, err
	}
	if err := s.checkSettings(ctx, ownerID, in.Agent, in.Settings, nil); err != nil {
		return out, false, err
	}
	if n.Workspace, n.WorkspaceID, err = s.opts.Prepare(ctx, in.Workspace); err != nil {
		return out, false, err
	}
	return s.store.CreateSession(ctx, ownerID, key, n)
}

// check refuses what no session is made of, and fills in the default preset.
func (in *sessionInput) check() error {
	if in.Prompt != nil {
		if err := journal.CheckText(in.Prompt.Text); err != nil {
			return err
		}
	}
	if in.Preset == "" {
		in.Preset = string(policy.AskWrites)
	}
	switch _, known := policy.ParsePreset(in.Preset); {
	case in.Workspace == "":
		return refuse("workspace-missing", "Say in which workspace the agent works: a folder under one of the server's workspaces.")
	case len(in.Workspace) > maxWorkspace, strings.ContainsRune(in.Workspace, 0):
		return refuse("bad-workspace", "That can't be the path of a folder.")
	case in.Agent == "":
		return refuse("agent-missing", "Say which agent works; GET /api/v1/agents lists them.")
	case utf8.RuneCountInString(in.Title) > maxTitle, strings.ContainsFunc(in.Title, isControl):
		return refuse("bad-title", "A title has at most 200 characters, on one line.")
	case !known:
		return refuse("unknown-preset", "preset must be ask_all, ask_writes or workspace.")
	case len(in.Rules) > maxRules:
		return refuse("too-many-rules", "A session takes at most 200 rules.")
	}
	for i, r := range in.Rules {
		if err := (policy.Rule{Permission: r.Permission, Pattern: r.Pattern, Action: policy.Action(r.Action)}).Validate(); err != nil {
			// Validate speaks to who wrote the rule.
			return journal.Errorf(journal.Unprocessable, "Rule %d can't be taken: %s. Nothing was recorded.", i+1, journal.Cut(err.Error(), 300)).Typed("bad-rule").With("rule", i)
		}
	}
	return checkRuleBytes(in.Rules)
}

// checkRuleBytes bounds the rules together, in the bytes in which they are kept.
func checkRuleBytes(rules []journal.Rule) error {
	b, err := journal.Encode(rules)
	if err == nil && len(b) > maxRuleBytes {
		err = journal.Errorf(journal.TooLarge, "The rules have %d bytes as JSON, all together; at most %d are taken. Nothing was recorded. Give fewer rules, or shorter patterns: a * stands for many.", len(b), maxRuleBytes).Typed("rules-too-large")
	}
	return err
}

func refuse(slug, what string) error {
	return journal.Errorf(journal.Unprocessable, "%s Nothing was recorded.", what).Typed(slug)
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' }

// title is the one that was given, or the prompt's first line that says anything.
func (in *sessionInput) title() string {
	if t := strings.TrimSpace(in.Title); t != "" {
		return t
	}
	if in.Prompt != nil {
		for line := range strings.Lines(in.Prompt.Text) {
			line = strings.TrimSpace(strings.Map(printable, line))
			if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
				continue // a fence says nothing; the heading, or else the first command, does
			}
			if line = strings.TrimSpace(strings.TrimLeft(line, "#")); line != "" {
				return journal.Cut(line, titleCut)
			}
		}
	}
	return "Untitled"
}

func printable(r rune) rune {
	if isControl(r) {
		return ' '
	}
	return r
}

// runbook is the agent that every server has.
const runbook = components.Runbook

// agents lists what the live workers offer, by name; available is what one of
// them can run. Those of this server are asked now, the others have written it down.
func (s *Server) agents(ctx context.Context) ([]store.Agent, error) {
	workers, err := s.store.Workers(ctx)
	if err != nil {
		return nil, err
	}
	here := map[string]AgentProgram{}
	for _, p := range s.programs() {
		if p.From != "" {
			here[p.Name] = p
		}
	}
	byName := map[string]store.Agent{runbook: {Name: runbook, Kind: "builtin", Available: true, Steer: "boundary"}}
	for _, w := range workers {
		for _, a := range w.Agents {
			if p, ok := here[a.Name]; ok && w.ID == s.opts.WorkerID {
				a.Available, a.Reason = p.Reason == "", p.Reason
			}
			if was, ok := byName[a.Name]; !ok || (a.Available && !was.Available) {
				byName[a.Name] = a
			}
		}
	}
	out := make([]store.Agent, 0, len(byName))
	for _, a := range byName {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b store.Agent) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (s *Server) checkAgent(ctx context.Context, name string) error {
	if name == runbook {
		return nil
	}
	agents, err := s.agents(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(agents, func(a store.Agent) bool { return a.Name == name }) {
		return journal.Errorf(journal.Unprocessable, "No server here offers the agent %q. Nothing was recorded. GET /api/v1/agents lists those that there are.", journal.Cut(name, 60)).Typed("unknown-agent")
	}
	return nil
}

// apiAgents: GET /api/v1/agents.
func (s *Server) apiAgents(c *fiber.Ctx) error {
	agents, err := s.agents(c.UserContext())
	if err != nil {
		return err
	}
	offers, err := s.store.AgentOffers(c.UserContext(), current(c).User.ID)
	if err != nil {
		return err
	}
	items := each(agents, func(a store.Agent) agentJSON { return newAgentJSON(a, offers) })
	return sendJSON(c, http.StatusOK, itemsJSON[agentJSON]{items})
}

// apiCreateSession: POST /api/v1/sessions.
func (s *Server) apiCreateSession(c *fiber.Ctx) error {
	key, err := apiKey(c)
	if err != nil {
		return err
	}
	var in sessionInput
	if err := readJSON(c, &in); err != nil {
		return err
	}
	if err := s.limit(c); err != nil {
		return err
	}
	limits, err := in.Limits.limits()
	if err != nil {
		return err
	}
	one, replayed, err := s.createSession(c.UserContext(), current(c).User.ID, key, in, limits)
	if err != nil {
		return err
	}
	markReplay(c, replayed)
	c.Location("/api/v1/sessions/" + one.ID)
	return sendJSON(c, http.StatusCreated, newSessionJSON(&one))
}

// markReplay says that this answer was given before (ADM-3).
func markReplay(c *fiber.Ctx, replayed bool) {
	if replayed {
		c.Set("Idempotent-Replayed", "true")
	}
}

// apiSessions: GET /api/v1/sessions.
func (s *Server) apiSessions(c *fiber.Ctx) error {
	q, err := sessionQuery(c)
	if err != nil {
		return err
	}
	list, next, err := s.store.Sessions(c.UserContext(), current(c).User.ID, q)
	if err != nil {
		return err
	}
	items := each(list, func(one store.Session) sessionJSON { return newSessionJSON(&one) })
	return sendJSON(c, http.StatusOK, listJSON[sessionJSON]{items, journal.OrNil(next)})
}

// sessionQuery reads the filters of a list of sessions. Code: invalid.
func sessionQuery(c *fiber.Ctx) (store.SessionQuery, error) {
	var q store.SessionQuery
	state, err := queryText(c, "state")
	if err != nil {
		return q, err
	}
	if q.State = journal.ExecutionState(state); state != "" && !slices.Contains(journal.States(), q.State) {
		return q, badParam("state", "isn't a state of a session")
	}
	if q.Text, err = queryText(c, "q"); err != nil {
		return q, err
	}
	if q.Cursor, err = queryText(c, "cursor"); err != nil {
		return q, err
	}
	q.Limit, err = queryLimit(c, listDefault, listMax)
	return q, err
}

// apiSession: GET /api/v1/sessions/{id}.
func (s *Server) apiSession(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "ses")
	if err != nil {
		return err
	}
	return s.sendSession(c, http.StatusOK, id)
}

func (s *Server) sendSession(c *fiber.Ctx, status int, id string) error {
	one, err := s.store.Session(c.UserContext(), current(c).User.ID, id)
	if err != nil {
		return err
	}
	return sendJSON(c, status, newSessionJSON(&one))
}

// onSession runs what a person asks of a session and answers 202 with the
// session as it is then. in is the body's struct; the body may be empty.
func (s *Server) onSession(c *fiber.Ctx, in any, do func(ctx context.Context, ownerID, id string) error) error {
	id, err := pathID(c, "id", "ses")
	if err != nil {
		return err
	}
	if err = readOptionalJSON(c, in); err == nil {
		err = do(c.UserContext(), current(c).User.ID, id)
	}
	if err != nil {
		return s.orNoSession(c, id, err)
	}
	return s.sendSession(c, http.StatusAccepted, id)
}

// orNoSession lets not found go before what is wrong with the request: about
// another's session nothing else is said.
func (s *Server) orNoSession(c *fiber.Ctx, id string, err error) error {
	return orHidden(err, func() error {
		_, _, herr := s.store.Head(c.UserContext(), current(c).User.ID, id)
		return herr
	})
}

func orHidden(err error, exists func() error) error {
	switch journal.CodeOf(err) {
	case journal.Invalid, journal.Unprocessable, journal.Unsupported, journal.TooLarge:
		if hidden := exists(); journal.Is(hidden, journal.NotFound) {
			return hidden
		}
	default:
	}
	return err
}

// apiInterrupt: POST /api/v1/sessions/{id}/interruption.
func (s *Server) apiInterrupt(c *fiber.Ctx) error {
	var in struct {
		Mode   string `json:"mode"`
		TurnID string `json:"turn_id"`
	}
	return s.onSession(c, &in, func(ctx context.Context, ownerID, id string) error {
		mode, err := parseMode(in.Mode)
		if err != nil {
			return err
		}
		return s.store.InterruptTurn(ctx, ownerID, id, in.TurnID, mode)
	})
}

// parseMode reads the mode of an interrupt; empty is now. Code: unprocessable.
func parseMode(mode string) (journal.InterruptMode, error) {
	switch m := journal.InterruptMode(mode); m {
	case "":
		return journal.InterruptNow, nil
	case journal.InterruptNow, journal.InterruptBoundary:
		return m, nil
	}
	return "", refuse("unknown-mode", "mode must be now or boundary.")
}

// apiContinue: POST /api/v1/sessions/{id}/continuation.
func (s *Server) apiContinue(c *fiber.Ctx) error {
	var in struct {
		Limits *limitsInput `json:"limits"`
		Anew   bool         `json:"anew"`
	}
	return s.onSession(c, &in, func(ctx context.Context, ownerID, id string) error {
		limits, err := in.Limits.limits()
		switch {
		case err != nil:
			return err
		case in.Anew:
			return s.store.StartAnew(ctx, ownerID, id, limits)
		}
		return s.store.Continue(ctx, ownerID, id, limits)
	})
}

// apiArchive: POST /api/v1/sessions/{id}/archive.
func (s *Server) apiArchive(c *fiber.Ctx) error {
	var in struct{}
	return s.onSession(c, &in, s.store.Archive)
}
