package acp

import (
	"context"
	"errors"
	"fmt"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp/wire"
)

// unfitError says that the journal refuses what lines of the agent would become, and
// would refuse it again however often they were read.
type unfitError struct{ err error }

func (e *unfitError) Error() string {
	return "what the agent says can't be recorded: " + e.err.Error()
}

// Bounds of what is kept of lines that don't fit.
const (
	unfitLines = 20
	unfitBytes = 2000 // of each
)

// faulty tells why the process is to be ended, as the journal has it: the server that
// wrote that was lost before it had ended it. nil: it isn't.
func (s *session) faulty() error {
	p := s.t.State().Process
	if p == nil || p.ID != s.conn.p.ID() {
		return nil
	}
	switch p.Fault {
	case journal.FaultHiddenID:
		return cantBeAnswered(idHidden)
	case journal.FaultUnkeptID:
		return cantBeAnswered(idUnkept)
	case journal.FaultUnrecordable:
		s.deaf = true
		return &unfitError{errors.New("the journal says so")}
	}
	return nil
}

// unfit decides what becomes of lines that could not be recorded. If it is the facts
// that are impossible, to read the lines again would end in the same: then they are
// passed over, their beginnings stand in the journal, nothing that the process says is
// made a fact any more, and an unfitError tells that it must be ended. Any other error
// is given back: the lines are read again by whoever comes.
func (s *session) unfit(ctx context.Context, lines []wire.Line, err error) error {
	var refused *journal.Error
	if !errors.As(err, &refused) || refused.Slug() == "agent-state" {
		return err
	}
	switch refused.Code {
	case journal.Conflict, journal.Unprocessable, journal.TooLarge, journal.NotFound:
	default:
		return err
	}
	s.deaf, s.held, s.last = true, nil, nil
	s.drafts, s.frames, s.asks, s.answers = nil, nil, nil, nil
	s.offers = offers{}
	keep := runner.Commit{Drafts: []journal.Draft{runner.Seen(&journal.MessageCompleted{
		MessageID: runner.NewID("msg"), Role: journal.RoleServer, Part: journal.PartNote,
		Text: journal.T(fmt.Sprintf("What the agent said next doesn't fit what the journal has, so its process was ended: %s What it said stands beside, as far as there is room.", refused.Message)),
	})}}
	if len(lines) == 0 { // also then it must be known after a restart
		keep.Drafts = append(keep.Drafts, runner.Said(&journal.AgentEvent{ProcessID: s.conn.p.ID(), Ends: journal.FaultUnrecordable}))
	}
	for _, l := range lines[:min(len(lines), unfitLines)] {
		keep.Drafts = append(keep.Drafts, runner.Said(&journal.AgentEvent{
			ProcessID: s.conn.p.ID(), Raw: journal.T(journal.Cut(s.whole(l.Bytes), unfitBytes)), Ends: journal.FaultUnrecordable,
		}))
	}
	var last *wire.Line
	if len(lines) > 0 {
		last = &lines[len(lines)-1]
	}
	if err := s.conn.commit(ctx, last, keep); err != nil {
		return err
	}
	return &unfitError{refused}
}
