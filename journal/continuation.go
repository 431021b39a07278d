package journal

// MayContinue tells whether *continue* is taken as the session stands now, or with
// anew the start of a new conversation (PRO-6). The store refuses by it, and pages
// offer by it, so that nothing is offered that must fail. Code: conflict.
func (s *State) MayContinue(anew bool) error {
	lifts := s.Blocked != nil && s.Blocked.Cause.Lifted()
	refuse := func(slug, message string) error {
		return Errorf(Conflict, "%s", message).Typed(slug).With("state", s.Base)
	}
	switch {
	case s.Unknowns() > 0:
		return refuse("outcome-unknown", "An outcome is unknown. Say first what became of it; that answer can continue the session.")
	case s.Archived, !s.Held && !lifts:
		return refuse("nothing-held", "Nothing is held here, so there is nothing to continue.")
	case anew && s.Forgotten == nil:
		return refuse("not-forgotten", "The agent has not forgotten this conversation, so it is not started anew. It can be continued.")
	case !anew && s.Forgotten != nil && !s.Forgotten.MayPass:
		return refuse("agent-forgot", "The agent has forgotten this conversation: to continue it would fail again. Start it anew, with a summary (anew); or archive the session.")
	}
	return nil
}
