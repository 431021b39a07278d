package handlers

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/views/components"
	"holdfast/views/pages"
)

// lookWait is how long the answer to a form waits for what is found: most agents need
// less. The page of one that needs longer says that the look goes on.
const lookWait = 10 * time.Second

// agentsPath is the page of all agents.
const agentsPath = "/settings/agents"

// programs are the agents of this server as they are just now.
func (s *Server) programs() []AgentProgram {
	if s.opts.Agents == nil {
		return []AgentProgram{{Name: runbook, From: BuiltIn}}
	}
	return s.opts.Agents()
}

// showAgents: GET /settings/agents, what this server has of agents, and what others have.
func (s *Server) showAgents(c *fiber.Ctx) error {
	now, err := s.store.Now(c.UserContext())
	if err != nil {
		return err
	}
	f, err := s.frame(c, "Agents", "settings", now)
	if err != nil {
		return err
	}
	p := pages.Agents{Frame: f}
	programs := s.programs()
	for _, one := range programs {
		row := agentView(one)
		if look := s.looks.of(one.Name, f.Viewer.ID); look != nil && look.Ended > 0 {
			row.LookedAt, row.Found = look.Ended, lookView(look).Result()
		}
		if one.From == "" {
			p.Known = append(p.Known, row)
		} else {
			p.Offered = append(p.Offered, row)
		}
	}
	elsewhere, err := s.elsewhere(c.UserContext())
	if err != nil {
		return err
	}
	for _, a := range elsewhere {
		if !slices.ContainsFunc(programs, func(one AgentProgram) bool { return one.Name == a.Name && one.From != "" }) {
			p.Elsewhere = append(p.Elsewhere, pages.Agent{Name: a.Name, Reason: a.Reason})
		}
	}
	return draw(c, http.StatusOK, pages.AgentsPage(p))
}

func agentView(a AgentProgram) pages.Agent {
	return pages.Agent{Name: a.Name, Command: a.Command, From: a.From, File: a.File, Reason: a.Reason, Get: a.Get, BuiltIn: a.From == BuiltIn, Elsewhere: a.From == otherServer}
}

// elsewhere are the agents that other servers of this journal offer.
func (s *Server) elsewhere(ctx context.Context) ([]store.Agent, error) {
	workers, err := s.store.Workers(ctx)
	var out []store.Agent
	for _, w := range workers {
		if w.ID == s.opts.WorkerID {
			continue
		}
		for _, a := range w.Agents {
			if !slices.ContainsFunc(out, func(b store.Agent) bool { return a.Name == b.Name }) {
				out = append(out, a)
			}
		}
	}
	return out, err
}

// otherServer is where an agent is from that this server doesn't offer, and another does.
const otherServer = "another server"

// program finds an agent that a server offers, by the name in the address. Code: not_found.
func (s *Server) program(c *fiber.Ctx) (AgentProgram, error) {
	name, err := url.PathUnescape(c.Params("name"))
	if err != nil {
		name = ""
	}
	for _, one := range s.programs() {
		if one.Name == name && one.From != "" {
			return one, nil
		}
	}
	others, err := s.elsewhere(c.UserContext())
	for _, a := range others {
		if a.Name == name {
			return AgentProgram{Name: a.Name, From: otherServer, Reason: a.Reason}, err
		}
	}
	if err == nil {
		err = journal.Errorf(journal.NotFound, "No server here offers an agent of that name. The page Agents, in the settings, lists those that there are.").Typed("unknown-agent")
	}
	return AgentProgram{}, err
}

// showAgent: GET /settings/agents/:name, what was found at the last look.
func (s *Server) showAgent(c *fiber.Ctx) error {
	one, err := s.program(c)
	if err != nil {
		return err
	}
	return s.drawAgent(c, http.StatusOK, one, nil)
}

func (s *Server) drawAgent(c *fiber.Ctx, status int, one AgentProgram, problems []components.Problem) error {
	now, err := s.store.Now(c.UserContext())
	if err != nil {
		return err
	}
	f, err := s.frame(c, "Agent "+components.Line(one.Name, 60), "settings", now)
	if err != nil {
		return err
	}
	f.Problems = problems
	p := pages.AgentPage{Frame: f, Agent: agentView(one), Key: newKey()}
	if look := s.looks.of(one.Name, f.Viewer.ID); look != nil {
		p.Look = lookView(look)
	}
	return draw(c, status, pages.OneAgentPage(p))
}

func lookView(look *agentLook) *pages.AgentLook {
	out := &pages.AgentLook{Began: look.Began, Ended: look.Ended, Failed: look.Failed}
	for _, found := range look.Findings {
		out.Findings = append(out.Findings, pages.AgentFinding{Subject: found.Check, Health: string(found.Health), Found: found.Found, Do: found.Do})
	}
	return out
}

// submitLook: POST /settings/agents/:name/probe, starts the agent and looks at it. Sent
// twice it joins what goes on.
func (s *Server) submitLook(c *fiber.Ctx) error {
	one, err := s.program(c)
	if err != nil {
		return err
	}
	if _, err := parseForm(c); err != nil {
		return err
	}
	if err := s.limit(c); err != nil {
		return err
	}
	switch {
	case one.From == otherServer:
		return journal.Errorf(journal.Conflict, "Another server offers the agent %s. Nothing was started here. Look at it from a page of that server.", one.Name).Typed("other-server")
	case one.From == BuiltIn || s.opts.LookAt == nil:
		return journal.Errorf(journal.Conflict, "The agent %s is built in: there is nothing to start.", one.Name).Typed("built-in")
	}
	done, err := s.looks.begin(c.UserContext(), one.Name, current(c).User.ID)
	if journal.Is(err, journal.Conflict) {
		return s.drawAgent(c, http.StatusConflict, one, []components.Problem{{Text: messageOf(err)}})
	}
	if err != nil {
		return err
	}
	patience := time.NewTimer(lookWait)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
	}
	return seeOther(c, components.AgentPath(one.Name))
}
