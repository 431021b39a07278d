package handlers

import (
	"context"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
)

// promptInput is a prompt as a program or a form sends it.
type promptInput struct {
	Text     string `json:"text"`
	Delivery string `json:"delivery"`
	TurnID   string `json:"turn_id"` // the turn that may be stopped for it; "": any
}

// createPrompt submits a prompt; form and API share it (ADM-1 to ADM-5). key is
// checked already. Codes as store.SubmitPrompt, and unprocessable for a delivery
// that isn't known.
func (s *Server) createPrompt(ctx context.Context, ownerID, sessionID, key string, in promptInput) (journal.Receipt, error) {
	d, stops, err := journal.ParseDelivery(in.Delivery)
	if err != nil {
		return journal.Receipt{}, err
	}
	r, err := s.store.SubmitPrompt(ctx, ownerID, sessionID, key, store.PromptInput{Text: in.Text, Delivery: d, Stops: stops, Turn: in.TurnID})
	store.Crash("admit.before_reply")
	return r, err
}

// apiCreatePrompt: POST /api/v1/sessions/{id}/prompts.
func (s *Server) apiCreatePrompt(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "ses")
	if err != nil {
		return err
	}
	r, err := s.submitJSON(c, id)
	if err != nil {
		return s.orNoSession(c, id, err)
	}
	markReplay(c, r.Replayed)
	return sendJSON(c, http.StatusAccepted, newReceiptJSON(&r))
}

func (s *Server) submitJSON(c *fiber.Ctx, id string) (journal.Receipt, error) {
	key, err := apiKey(c)
	if err != nil {
		return journal.Receipt{}, err
	}
	var in promptInput
	if err := readJSON(c, &in); err != nil {
		return journal.Receipt{}, err
	}
	if err := s.limit(c); err != nil {
		return journal.Receipt{}, err
	}
	return s.createPrompt(c.UserContext(), current(c).User.ID, id, key, in)
}

// apiWithdraw: DELETE /api/v1/prompts/{id}.
func (s *Server) apiWithdraw(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "inp")
	if err != nil {
		return err
	}
	r, err := s.store.WithdrawPrompt(c.UserContext(), current(c).User.ID, id)
	if err != nil {
		return err
	}
	markReplay(c, r.Replayed)
	return sendJSON(c, http.StatusOK, newReceiptJSON(&r))
}

type receiptItem struct {
	Operation journal.Operation `json:"operation"`
	Receipt   receiptJSON       `json:"receipt"`
	State     string            `json:"state" mask:"-"`
}

// apiReceipts: GET /api/v1/receipts/{key}. The key is percent-encoded there.
func (s *Server) apiReceipts(c *fiber.Ctx) error {
	key, err := pathText(c, "key")
	if err != nil {
		return err
	}
	if key, err = journal.CheckKey(key); err != nil {
		return err
	}
	list, err := s.store.Receipts(c.UserContext(), current(c).User.ID, key)
	if err != nil {
		return err
	}
	items := each(list, func(r store.ReceiptItem) receiptItem {
		return receiptItem{r.Operation, newReceiptJSON(&r.Receipt), r.State}
	})
	return sendJSON(c, http.StatusOK, itemsJSON[receiptItem]{items})
}
