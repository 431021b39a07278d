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
func (s *Server) routes() []route { return slices.Concat(s.apiRoutes(), s.pageRoutes()) }

// apiRoutes are the routes for programs (docs: http).
func (s *Server) apiRoutes() []route {
	return []route{
		{get, "/healthz", public, read, s.showHealth},
		{get, "/readyz", public, read, s.showReady},
	}
}
