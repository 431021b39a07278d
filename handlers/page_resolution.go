package handlers

import (
	"errors"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/views/components"
	"holdfast/views/pages"
)

// submitCallResolution: POST /calls/:id/resolution.
func (s *Server) submitCallResolution(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "call")
	if err != nil {
		return err
	}
	f, err := parseForm(c)
	if err != nil {
		return err
	}
	r := store.CallResolution{Outcome: journal.Verdict(f.word("outcome")), Evidence: f.text("evidence"), Then: journal.Then(f.word("then"))}
	keep(c, kept{Text: r.Evidence})
	call, err := s.store.ResolveCall(c.UserContext(), current(c).User.ID, id, r)
	switch {
	case slugOf(err) == "already-resolved" && sameResolution(err, r, current(c).User.ID):
		if call, err = s.store.Call(c.UserContext(), current(c).User.ID, id); err != nil {
			return err
		}
	case journal.Is(err, journal.Unprocessable):
		return s.redrawResolution(c, id, r, err)
	case err != nil:
		return err
	}
	seq := s.recordedAs(c, call.SessionID, func(b journal.Body) bool {
		resolved, ok := b.(*journal.CallResolved)
		return ok && resolved.CallID == id
	})
	return toSession(c, call.SessionID, noticeRecorded, seq)
}

// sameResolution reports whether what is recorded is what the form says: then it
// was sent twice.
func sameResolution(err error, r store.CallResolution, by string) bool {
	var e *journal.Error
	if !errors.As(err, &e) {
		return false
	}
	was, ok := e.Extra["resolution"].(*journal.Resolution)
	return ok && was.Outcome == r.Outcome && was.Evidence == r.Evidence && was.By == by
}

// sameAttemptResolution is sameResolution for a request to a model.
func sameAttemptResolution(err error, r store.AttemptResolution, by string) bool {
	var e *journal.Error
	if !errors.As(err, &e) {
		return false
	}
	was, ok := e.Extra["resolution"].(map[string]any)
	return ok && was["outcome"] == r.Outcome && was["evidence"] == journal.LineEnds(r.Evidence) && was["by"] == by
}

// redrawResolution shows the session again, with what was typed and what is wrong with it.
func (s *Server) redrawResolution(c *fiber.Ctx, id string, r store.CallResolution, problem error) error {
	call, err := s.store.Call(c.UserContext(), current(c).User.ID, id)
	if err != nil {
		return err
	}
	p, err := s.sessionPage(c, call.SessionID, 0)
	if err != nil {
		return err
	}
	field, anchor := resolutionField(id, problem)
	text := messageOf(problem)
	if r.Outcome == "" {
		text = "Choose what you found, then record it"
	}
	for i := range p.Unknown {
		if u := &p.Unknown[i]; u.Call.ID == id {
			u.Outcome, u.Evidence, u.Problem, u.Field = string(r.Outcome), r.Evidence, text, field
			p.Problems = []components.Problem{{Field: anchor, Text: text}}
			return draw(c, http.StatusUnprocessableEntity, pages.SessionPage(p))
		}
	}
	return problem // it isn't unknown any more
}

// resolutionField names the field that is wrong, and where it stands.
func resolutionField(id string, problem error) (field, anchor string) {
	switch slugOf(problem) {
	case "evidence-missing", "bad-evidence":
		return "evidence", id + "-ev"
	}
	return "outcome", id + "-o0"
}

// redrawAttempt is redrawResolution for a request to a model.
func (s *Server) redrawAttempt(c *fiber.Ctx, id string, r store.AttemptResolution, problem error) error {
	attempt, err := s.store.Attempt(c.UserContext(), current(c).User.ID, id)
	if err != nil {
		return err
	}
	p, err := s.sessionPage(c, attempt.SessionID, 0)
	if err != nil {
		return err
	}
	field, anchor := resolutionField(id, problem)
	text := messageOf(problem)
	if r.Outcome == "" {
		text = "Choose what shall become of it, then record it"
	}
	for i := range p.Attempts {
		if a := &p.Attempts[i]; a.ID == id {
			a.Outcome, a.Evidence, a.Problem, a.Field = string(r.Outcome), r.Evidence, text, field
			p.Problems = []components.Problem{{Field: anchor, Text: text}}
			return draw(c, http.StatusUnprocessableEntity, pages.SessionPage(p))
		}
	}
	return problem // it isn't unknown any more
}

// submitAttemptResolution: POST /attempts/:id/resolution.
func (s *Server) submitAttemptResolution(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "att")
	if err != nil {
		return err
	}
	f, err := parseForm(c)
	if err != nil {
		return err
	}
	r := store.AttemptResolution{Outcome: journal.AttemptVerdict(f.word("outcome")), Evidence: f.text("evidence"), Then: journal.Then(f.word("then"))}
	keep(c, kept{Text: r.Evidence})
	attempt, err := s.store.ResolveAttempt(c.UserContext(), current(c).User.ID, id, r)
	switch {
	case slugOf(err) == "already-resolved" && sameAttemptResolution(err, r, current(c).User.ID):
		if attempt, err = s.store.Attempt(c.UserContext(), current(c).User.ID, id); err != nil {
			return err
		}
	case journal.Is(err, journal.Unprocessable):
		return s.redrawAttempt(c, id, r, err)
	case err != nil:
		return orHidden(err, func() error {
			_, herr := s.store.Attempt(c.UserContext(), current(c).User.ID, id)
			return herr
		})
	}
	seq := s.recordedAs(c, attempt.SessionID, func(b journal.Body) bool {
		resolved, ok := b.(*journal.AttemptResolved)
		return ok && resolved.AttemptID == id
	})
	return toSession(c, attempt.SessionID, noticeRecorded, seq)
}
