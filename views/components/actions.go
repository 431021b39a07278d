package components

// Stoppable reports whether a turn is open that isn't being stopped at once already.
func (s Session) Stoppable() bool {
	return s.State.TurnOpen() && !s.State.Interrupt.AtOnce()
}

// Archivable reports whether the session can be closed.
func (s Session) Archivable() bool { return s.archivable() && len(s.State.Admitted) == 0 }

// ArchiveWaits reports whether nothing but messages that would never be delivered
// keeps the session from being closed.
func (s Session) ArchiveWaits() bool { return s.archivable() && len(s.State.Admitted) > 0 }

// ArchiveWaitsFor says what would let a session be closed in which messages wait.
func (s Session) ArchiveWaitsFor() string {
	if s.Continuable() {
		return "This session can be archived when no message waits in it: withdraw what waits, or continue."
	}
	return "This session can be archived when no message waits in it: withdraw what waits, or let it be delivered."
}

func (s Session) archivable() bool {
	return !s.State.Archived && !s.State.TurnOpen() && s.Claim == nil && s.State.Unknowns() == 0
}

// Resting reports whether a turn is open and nothing of it is being done: stopping
// it then ends it at once, in whichever way that is asked for (COO-4).
func (s Session) Resting() bool { return s.State.TurnOpen() && s.Claim == nil && !s.State.Adopts() }

// StopsAtOnce reports whether both ways to stop the turn come to the same: nothing of it
// runs, or its agent only waits for a person.
func (s Session) StopsAtOnce() bool { return s.Resting() || s.State.OnlyWaits() }

// Ends reports whether stopping the turn ends no more than the turn: nothing of it runs,
// and an outcome is unknown.
func (s Session) Ends() bool { return s.Resting() && s.State.Unknowns() > 0 }

// Continuable reports whether the session goes on at its owner's word: by *continue*,
// or anew (PRO-6).
func (s Session) Continuable() bool { return s.State.MayContinue(false) == nil || s.Anewable() }

// Anewable reports whether the agent has forgotten the session, so that it can be
// started anew.
func (s Session) Anewable() bool { return s.State.MayContinue(true) == nil }
