package handlers

import (
	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
)

// showHealth says that the process answers. It asks nothing of the database.
func (s *Server) showHealth(c *fiber.Ctx) error { return c.SendString("ok\n") }

// showReady says whether work may be sent here: the journal can be read and
// written, and the server isn't stopping. It doesn't need a user to exist.
func (s *Server) showReady(c *fiber.Ctx) error {
	if s.notReady.Load() {
		return journal.Errorf(journal.Unavailable, "This server is stopping and takes no new work. What was accepted goes on elsewhere, or after the restart.").Typed("stopping")
	}
	if err := s.store.Ready(c.UserContext()); err != nil {
		return &journal.Error{Code: journal.Unavailable, Type: "journal-unavailable", Err: err, Message: "The journal can't be read or written just now."}
	}
	return c.SendString("ready\n")
}
