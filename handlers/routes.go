package handlers

import (
	"slices"

	"github.com/gofiber/fiber/v2"

	"holdfast/store"
)

// access says who may use a route.
type access int

const (
	public access = iota // anybody
	owner                // who has signed in, or brings a token
)

// route is one line of the table of routes. GET answers HEAD as well.
type route struct {
	method string
	path   string
	access access
	need   store.Scope // what a token must at least be for; sign-in by cookie is for all
	handle fiber.Handler
}

// Short forms, so that the tables read as tables.
const (
	get    = fiber.MethodGet
	post   = fiber.MethodPost
	del    = fiber.MethodDelete
	read   = store.ScopeRead
	prompt = store.ScopePrompt
	all    = store.ScopeAll
)

// routes is the table of all routes: those of programs, and those of pages.
func (s *Server) routes() []route {
	return slices.Concat(s.apiRoutes(), s.pageRoutes(), s.devRoutes())
}

// apiRoutes are the routes for programs (docs: http).
func (s *Server) apiRoutes() []route {
	return []route{
		{get, "/healthz", public, read, s.showHealth},
		{get, "/readyz", public, read, s.showReady},

		{get, "/api/v1/agents", owner, read, s.apiAgents},
		{get, "/api/v1/sessions", owner, read, s.apiSessions},
		{post, "/api/v1/sessions", owner, prompt, s.apiCreateSession},
		{get, "/api/v1/sessions/:id", owner, read, s.apiSession},
		{get, "/api/v1/sessions/:id/events", owner, read, s.apiEvents},
		{get, "/api/v1/sessions/:id/calls", owner, read, s.apiCalls},
		{get, "/api/v1/sessions/:id/export", owner, read, s.apiExport},
		{post, "/api/v1/sessions/:id/prompts", owner, prompt, s.apiCreatePrompt},
		{post, "/api/v1/sessions/:id/interruption", owner, prompt, s.apiInterrupt},
		{post, "/api/v1/sessions/:id/continuation", owner, prompt, s.apiContinue},
		{post, "/api/v1/sessions/:id/settings", owner, prompt, s.apiChooseSettings},
		{post, "/api/v1/sessions/:id/archive", owner, prompt, s.apiArchive},
		{get, "/api/v1/receipts/:key", owner, read, s.apiReceipts},
		{del, "/api/v1/prompts/:id", owner, prompt, s.apiWithdraw},
		{get, "/api/v1/permissions", owner, read, s.apiPermissions},
		{post, "/api/v1/permissions/:id/decision", owner, all, s.apiDecide},
		{get, "/api/v1/calls/:id/output", owner, read, s.sendOutput},
		{post, "/api/v1/calls/:id/resolution", owner, all, s.apiResolveCall},
		{post, "/api/v1/attempts/:id/resolution", owner, all, s.apiResolveAttempt},
	}
}
