package handlers

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
)

// checkSettings refuses what an agent surely doesn't offer; of one that has offered
// an owner nothing so far anything is taken. Code: unprocessable.
func (s *Server) checkSettings(ctx context.Context, ownerID, agent string, list []journal.Setting, wanted []journal.Wish) error {
	if len(list) == 0 {
		return nil
	}
	if agent == runbook {
		return journal.CheckSettings([]journal.AgentOption{}, list, wanted)
	}
	offers, err := s.store.AgentOffers(ctx, ownerID)
	if err != nil {
		return err
	}
	return journal.CheckSettings(offers[agent].Options, list, wanted)
}

// chooseSettings records what is wanted of a session's agent; form and API share
// it. key is checked already. Codes as store.ChooseSettings.
func (s *Server) chooseSettings(ctx context.Context, ownerID, id, key string, list []journal.Setting) (seq int64, replayed bool, err error) {
	if len(list) == 0 {
		return 0, false, refuse("no-setting", "Name at least one setting, by its id and its value.")
	}
	one, err := s.store.Session(ctx, ownerID, id)
	if err != nil {
		return 0, false, err
	}
	known, err := s.store.OffersOf(ctx, ownerID, id)
	if err != nil {
		return 0, false, err
	}
	if known == nil { // it hasn't begun yet
		err = s.checkSettings(ctx, ownerID, one.State.Agent, list, one.State.Wanted)
	} else {
		err = journal.CheckSettings(known, list, one.State.Wanted)
	}
	if err != nil {
		// A retry is answered as it was: what is offered may be something else by now (ADM-3).
		if seq, again, rerr := s.store.ChosenBefore(ctx, ownerID, id, key, list); again || rerr != nil {
			return seq, again, rerr
		}
		return 0, false, err
	}
	return s.store.ChooseSettings(ctx, ownerID, id, key, list)
}

// apiChooseSettings: POST /api/v1/sessions/{id}/settings.
func (s *Server) apiChooseSettings(c *fiber.Ctx) error {
	var in struct {
		Settings []journal.Setting `json:"settings"`
	}
	return s.onSession(c, &in, func(ctx context.Context, ownerID, id string) error {
		key, err := optionalKey(c)
		if err != nil {
			return err
		}
		_, replayed, err := s.chooseSettings(ctx, ownerID, id, key, in.Settings)
		markReplay(c, replayed)
		return err
	})
}
