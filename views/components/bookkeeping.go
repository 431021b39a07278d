package components

import (
	"github.com/a-h/templ"

	"holdfast/journal"
)

// bookkeeping reports whether an entry tells of how the work is carried on and nothing
// that a person has to read: a page shows the first of a run of them, and the others
// when it is asked to. It is decided by the entry alone, so that a page that is watched
// shows the same rows as one that is opened later. What went wrong is never one.
func bookkeeping(body journal.Body) bool {
	switch b := body.(type) {
	case *journal.TurnStarted, *journal.AgentStarted, *journal.AgentOpened, *journal.AgentCommands,
		*journal.AttemptPrepared, *journal.AttemptDispatched, *journal.AttemptReceiving:
		return true
	case *journal.StepStarted: // a step of an agent's has no name
		return b.Step.Of == 0 && b.Step.Name == ""
	case *journal.AgentOptions: // what it changed, or was told to, counts
		return len(b.Changed) == 0
	case *journal.AgentSetting:
		return b.Outcome == journal.SettingTold
	case *journal.AgentEnded:
		return b.Signal == "" && (b.ExitCode == nil || *b.ExitCode == 0)
	case *journal.AttemptSettled:
		return settledAsItShould(b)
	}
	return false
}

// folds tells the stylesheet that the row is bookkeeping.
func (e Entry) folds() templ.Attributes {
	if !e.Bookkeeping {
		return nil
	}
	return templ.Attributes{"class": "bookkeeping"}
}
