//go:build dev

package handlers

import (
	"net/http"

	"github.com/gofiber/fiber/v2"

	"holdfast/static"
	"holdfast/views/gallery"
)

// devRoutes are the routes that builds for development have besides.
func (s *Server) devRoutes() []route {
	return []route{{get, "/dev/components", owner, read, showComponents}}
}

// showComponents: GET /dev/components?theme=, every component in every state.
func showComponents(c *fiber.Ctx) error {
	return draw(c, http.StatusOK, gallery.Page(static.StylesheetPath(), c.Query("theme")))
}
