package handlers

import (
	"net/http"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/views/pages"
)

// showRunning: GET /running, the commands that a restart of the server doesn't
// end: the viewer's own, and how many there are of others.
func (s *Server) showRunning(c *fiber.Ctx) error {
	list, err := s.store.RunningCalls(c.UserContext(), current(c).User.ID)
	if err != nil {
		return err
	}
	running, _, err := s.store.Sessions(c.UserContext(), current(c).User.ID, store.SessionQuery{Group: journal.GroupRunning, Limit: store.MaxRunning})
	if err != nil {
		return err
	}
	f, err := s.frame(c, "Running commands", "", list.Now)
	if err != nil {
		return err
	}
	p := pages.Running{Frame: f, More: list.More, Others: list.Others}
	p.Items = each(list.Items, func(one store.RunningCall) pages.RunningCommand {
		out := pages.RunningCommand{S: sessionView(&one.Session, f.Viewer), Call: one.Call, Followed: one.Followed()}
		if one.Worker != nil {
			out.Worker = one.Worker.Host
		}
		return out
	})
	for i := range running {
		if one := sessionView(&running[i], f.Viewer); one.AgentWorks() {
			p.Agents = append(p.Agents, one)
		}
	}
	return draw(c, http.StatusOK, pages.RunningPage(p))
}
