package handlers

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
)

// Sizes of one piece of a call's output, in bytes.
const (
	outputDefault = 64 << 10
	outputMax     = 1 << 20
)

// apiCalls: GET /api/v1/sessions/{id}/calls.
func (s *Server) apiCalls(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "ses")
	if err != nil {
		return err
	}
	items := []callJSON{}
	err = eachCall(c.UserContext(), s.store, current(c).User.ID, id, func(call *journal.Call) { items = append(items, newCallJSON(call)) })
	if err != nil {
		return err
	}
	return sendJSON(c, http.StatusOK, itemsJSON[callJSON]{items})
}

// eachCall gives all calls of a session in the order of proposal, read by pages.
func eachCall(ctx context.Context, st *store.Store, owner, session string, give func(*journal.Call)) error {
	for after := int64(0); ; {
		page, err := st.Calls(ctx, owner, session, after)
		if err != nil {
			return err
		}
		for _, call := range page {
			give(call)
			after = call.ProposedSeq
		}
		if len(page) < store.MaxCalls {
			return nil
		}
	}
}

// sendOutput answers with a piece of a call's output; API and page share it.
// The answer says whether the bytes are text.
func (s *Server) sendOutput(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "call")
	if err != nil {
		return err
	}
	offset, err := queryInt(c, "offset", 0)
	if err != nil {
		return err
	}
	limit, err := queryLimit(c, outputDefault, outputMax)
	if err != nil {
		return err
	}
	out, err := s.store.CallOutput(c.UserContext(), current(c).User.ID, id, offset, limit)
	if err != nil {
		return err
	}
	c.Set("X-Total-Bytes", strconv.FormatInt(out.Total, 10))
	c.Set("X-Next-Offset", strconv.FormatInt(out.Next, 10)) // after a gap, where the middle was dropped
	c.Set(fiber.HeaderContentType, fiber.MIMEOctetStream)
	if isText(out.Data) {
		c.Set(fiber.HeaderContentType, "text/plain; charset=utf-8")
	}
	text, err := s.maskedPiece(c, id, offset, string(out.Data), out.Next)
	if err != nil {
		return err
	}
	return c.SendString(text)
}

// isText tells whether a piece is UTF-8, but for characters that its ends cut.
func isText(b []byte) bool {
	for n := 1; n < utf8.UTFMax && len(b) > 0 && !utf8.RuneStart(b[0]); n++ {
		b = b[1:]
	}
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				b = b[:len(b)-n]
			}
			break
		}
	}
	return utf8.Valid(b)
}

// resolutionInput is what a person found out about an unknown outcome.
type resolutionInput struct {
	Outcome  string       `json:"outcome"`
	Evidence string       `json:"evidence"`
	Then     journal.Then `json:"then"`
}

// check names all that is missing or wrong, if that is more than one thing; a single
// one the store refuses by itself. The error is of the type of the first. needed: an
// outcome other than cannot_tell needs evidence. Code: unprocessable.
func (in *resolutionInput) check(needed bool, outcomes ...string) error {
	last := len(outcomes) - 1
	slug, wrong := "", []string(nil)
	say := func(of, what string) {
		slug = cmp.Or(slug, of)
		wrong = append(wrong, what)
	}
	if !slices.Contains(outcomes, in.Outcome) {
		say("unknown-outcome", "outcome must be "+strings.Join(outcomes[:last], ", ")+" or "+outcomes[last])
	}
	if needed && in.Outcome != string(journal.CannotTell) && strings.TrimSpace(in.Evidence) == "" {
		say("evidence-missing", "evidence must say how you know, unless the outcome is cannot_tell")
	}
	if in.Then != journal.ThenContinue && in.Then != journal.ThenStay {
		say("unknown-then", "then must be continue or stay")
	}
	if len(wrong) < 2 {
		return nil
	}
	return refuse(slug, strings.Join(wrong, "; ")+".")
}

// apiResolveCall: POST /api/v1/calls/{id}/resolution.
func (s *Server) apiResolveCall(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "call")
	if err != nil {
		return err
	}
	var in resolutionInput
	var call *journal.Call
	if err = readJSON(c, &in); err == nil {
		err = in.check(true, string(journal.Happened), string(journal.DidNotHappen), string(journal.InPart), string(journal.CannotTell))
	}
	if err == nil {
		r := store.CallResolution{Outcome: journal.Verdict(in.Outcome), Evidence: in.Evidence, Then: in.Then}
		call, err = s.store.ResolveCall(c.UserContext(), current(c).User.ID, id, r)
	}
	if err != nil {
		return orHidden(err, func() error {
			_, herr := s.store.Call(c.UserContext(), current(c).User.ID, id)
			return herr
		})
	}
	return sendJSON(c, http.StatusOK, newCallJSON(call))
}

// apiResolveAttempt: POST /api/v1/attempts/{id}/resolution.
func (s *Server) apiResolveAttempt(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "att")
	if err != nil {
		return err
	}
	var in resolutionInput
	var attempt *journal.Attempt
	if err = readJSON(c, &in); err == nil {
		err = in.check(false, string(journal.AttemptRetry), string(journal.AttemptAbandon))
	}
	if err == nil {
		r := store.AttemptResolution{Outcome: journal.AttemptVerdict(in.Outcome), Evidence: in.Evidence, Then: in.Then}
		attempt, err = s.store.ResolveAttempt(c.UserContext(), current(c).User.ID, id, r)
	}
	if err != nil {
		return orHidden(err, func() error {
			_, herr := s.store.Attempt(c.UserContext(), current(c).User.ID, id)
			return herr
		})
	}
	return sendJSON(c, http.StatusOK, newAttemptJSON(attempt))
}
