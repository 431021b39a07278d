package runner

import (
	"context"
	"errors"
)

// Agent works on a turn. It is a function of the journal: it may be run again
// from the top after every park, restart and resolution, in any process, and
// finds in the turn what has happened. It acts only through the turn.
type Agent interface {
	// Name is what a session names it by.
	Name() string
	// Kind is the family it belongs to, for people.
	Kind() string
	// Steer says when a steer reaches it (PRO-4).
	Steer() SteerMode
	// Run works until the turn is done, must wait for a person, or ends otherwise.
	// An error that a method of the turn gave is returned as it is.
	Run(ctx context.Context, t *Turn) (Result, error)
}

// startable is an agent that is a program, which may be missing. Unavailable says why
// it can't be started just now, in a few words without a full stop; "": nothing is
// known to stand in the way. It is asked often, and starts nothing.
type startable interface{ Unavailable() string }

// unavailable says why an agent can't be started just now, or "".
func unavailable(a Agent) string {
	if s, ok := a.(startable); ok {
		return s.Unavailable()
	}
	return ""
}

// SteerMode says when an agent takes a text that is sent while it works.
type SteerMode string

// The modes.
const (
	SteerAtBoundary SteerMode = "boundary"   // between two steps
	SteerAfterTurn  SteerMode = "after_turn" // not before the turn has ended
)

// Result says how an agent left the turn.
type Result struct {
	Parked bool   // a decision is needed: nothing waits in memory
	Failed string // a sentence of cause; empty: the work that was asked for is done
}

// Causes that end a run without its agent's doing. A method of the turn returns
// one of them; the drain concludes.
var (
	// ErrLeaseLost: another worker may own the session now; write nothing, end what runs.
	ErrLeaseLost = errors.New("the lease on the session is lost")
	// ErrShutdown: the server stops (COO-6).
	ErrShutdown = errors.New("the server stops")
	// ErrInterrupted: a person stops the turn (COO-4).
	ErrInterrupted = errors.New("a person stops the turn")
	// ErrParked: a person must decide first, or the workspace is gone.
	ErrParked = errors.New("a decision is needed")
	// errDraining: the server stops and nothing of the turn runs. It stays open and
	// goes on after the restart, or on another server: nothing of it is uncertain.
	errDraining = errors.New("the server stops; the turn goes on later")
	// errDetached: the server stops and the command goes on under its shim. The
	// claim stays, unrenewed, for the next server of this state folder (COO-6).
	errDetached = errors.New("the server stops; the command goes on")
	// errLimit: the turn has reached a bound (COO-5).
	errLimit = errors.New("the turn has reached a bound")
	// errMoved: somebody else has moved the turn on (an answer ended it): fold again.
	errMoved = errors.New("the turn has moved on")
)

// parting is why a run of which nothing runs can't go on: a server that stops cuts
// nothing off then, as at a boundary (COO-6).
func parting(cause error) error {
	if errors.Is(cause, ErrShutdown) {
		return errDraining
	}
	return cause
}
