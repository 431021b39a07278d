package handlers

import (
	"net/http"
	"slices"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
)

var requestStates = []journal.RequestState{
	journal.RequestPending, journal.RequestApprovedOnce, journal.RequestApprovedAlways, journal.RequestRejected,
	journal.RequestRejectedWithFeedback, journal.RequestExpired, journal.RequestCancelled, journal.RequestSuperseded,
}

// apiPermissions: GET /api/v1/permissions.
func (s *Server) apiPermissions(c *fiber.Ctx) error {
	var q store.RequestQuery
	state, err := queryText(c, "state")
	if err != nil {
		return err
	}
	if q.State = journal.RequestState(state); state != "" && !slices.Contains(requestStates, q.State) {
		return badParam("state", "isn't a state of a permission request")
	}
	if q.Session, err = queryText(c, "session"); err != nil {
		return err
	}
	if q.Cursor, err = queryText(c, "cursor"); err != nil {
		return err
	}
	if q.Limit, err = queryLimit(c, listDefault, listMax); err != nil {
		return err
	}
	list, next, err := s.store.Requests(c.UserContext(), current(c).User.ID, q)
	if err != nil {
		return err
	}
	return sendJSON(c, http.StatusOK, listJSON[requestJSON]{each(list, newRequestJSON), journal.OrNil(next)})
}

// decisionInput is a person's answer as a program sends it. Scope and patterns
// belong to always.
type decisionInput struct {
	Reply    journal.Reply `json:"reply"`
	Message  string        `json:"message"`
	Scope    string        `json:"scope"`
	Patterns []string      `json:"patterns"`
	Digest   string        `json:"digest"`
}

// apiDecide: POST /api/v1/permissions/{id}/decision.
func (s *Server) apiDecide(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "per")
	if err != nil {
		return err
	}
	p, err := s.decideJSON(c, id)
	if err != nil {
		return orHidden(err, func() error {
			_, herr := s.store.Request(c.UserContext(), current(c).User.ID, id)
			return herr
		})
	}
	markReplay(c, p.Replayed)
	return sendJSON(c, http.StatusOK, newRequestJSON(p.Request))
}

func (s *Server) decideJSON(c *fiber.Ctx, id string) (store.RequestPage, error) {
	key, err := optionalKey(c)
	if err != nil {
		return store.RequestPage{}, err
	}
	var in decisionInput
	if err := readJSON(c, &in); err != nil {
		return store.RequestPage{}, err
	}
	switch in.Scope {
	case "", "session", "workspace", "owner":
	default:
		return store.RequestPage{}, refuse("unknown-scope", "scope must be session, workspace or owner.")
	}
	d := store.Decision{Reply: in.Reply, Message: in.Message, Digest: in.Digest, Key: key}
	return s.store.Decide(c.UserContext(), current(c).User.ID, id, d)
}
