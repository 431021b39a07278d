//go:build !dev

package handlers

// devRoutes: a build to ship has none (page_dev.go).
func (*Server) devRoutes() []route { return nil }
