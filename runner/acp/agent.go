package acp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp/wire"
)

// kind is the family of these agents, for people.
const kind = "acp"

// Options say how an agent is run.
type Options struct {
	Name    string
	Command []string // its program and arguments
	Env     []string // complete
	Version string   // of Holdfast, as the agent is told

	// How long the agent may take; 0: as acp.md has it.
	OpenWithin   time.Duration // from its start to an open session: 2 min
	CancelWithin time.Duration // from session/cancel to the prompt's answer: 20 s
	ExitWithin   time.Duration // from the end of its stdin to its own: 5 s

	MaxLine int // bytes of one line of what it says; 0: wire.MaxLine
}

// Agent runs a program that speaks ACP.
type Agent struct{ o Options }

// New makes one.
func New(o Options) *Agent {
	for d, fallback := range map[*time.Duration]time.Duration{&o.OpenWithin: 2 * time.Minute, &o.CancelWithin: 20 * time.Second, &o.ExitWithin: 5 * time.Second} {
		if *d == 0 {
			*d = fallback
		}
	}
	return &Agent{o}
}

// Name is what a session names it by.
func (a *Agent) Name() string { return a.o.Name }

// Kind is acp.
func (a *Agent) Kind() string { return kind }

// Steer is after the turn: ACP takes no text in its middle.
func (a *Agent) Steer() runner.SteerMode { return runner.SteerAfterTurn }

// Run works on the turn until its prompts are answered. What is in flight, because
// another execution began it, is followed to its end first.
func (a *Agent) Run(ctx context.Context, t *runner.Turn) (runner.Result, error) {
	attempt, rests := t.Attempt(), t.State().Process != nil
	if result := concluded(t); attempt == "" && result != nil {
		return *result, nil
	}
	if f := t.State().Forgotten; f != nil { // known already, by a server that was lost before the turn had ended
		return runner.Result{Failed: f.Reason}, nil
	}
	first, err := a.initialize()
	if err != nil {
		return runner.Result{}, err
	}
	p, err := a.process(ctx, t, first)
	if err != nil {
		return startFailed(ctx, err)
	}
	defer p.Close()
	s := newSession(a, t, p)
	heeding, stop := t.Heed(ctx)
	defer stop()
	if err := p.Resend(heeding); err != nil {
		return s.leave(ctx, heeding, err)
	}
	if attempt == "" {
		if err := s.open(heeding); err != nil {
			return s.leave(ctx, heeding, err)
		}
		switch err := s.catchUp(heeding); {
		case rests && errors.Is(err, errEnded): // it died while nobody needed it: another goes on
			if err := errors.Join(s.rest(ctx, nil), s.gone(ctx)); err != nil {
				return runner.Result{}, err
			}
			return a.Run(ctx, t)
		case err != nil:
			return s.leave(ctx, heeding, err)
		}
		if err := s.configure(heeding); err != nil {
			return s.leave(ctx, heeding, err)
		}
		if err := s.prompt(heeding); err != nil {
			return s.leave(ctx, heeding, err)
		}
	}
	for {
		result, err := s.follow(heeding)
		if err == nil && (result.Parked || result.Failed != "" || feedback(t) == "") {
			return result, nil
		}
		if err == nil { // what a person said about a rejection is told at once
			err = s.again(heeding)
		}
		if err != nil {
			return s.leave(ctx, heeding, err)
		}
	}
}

// process gives the session's process. One that rests and was started with other
// credentials than it would get now is ended, and another goes on in its place, unless
// the agent can't go on in another: then it keeps those that it has.
func (a *Agent) process(ctx context.Context, t *runner.Turn, first []byte) (*runner.Process, error) {
	spec := runner.ProcessSpec{Script: script(a.o.Command), Env: a.o.Env, Shape: shape}
	p, err := t.Process(ctx, spec, [][]byte{first})
	if err != nil || t.Attempt() != "" {
		return p, err
	}
	outdated, err := t.Outdated(ctx)
	if was := t.State().Process; err == nil && outdated && (was.Resumes || !was.Opened) {
		err = newSession(a, t, p).retire(ctx, "its credentials were changed")
	} else if err == nil {
		return p, nil
	}
	p.Close()
	if err != nil {
		return nil, err
	}
	return t.Process(ctx, spec, [][]byte{first})
}

// startFailed says that the agent can't be started: nothing was sent to anybody.
func startFailed(ctx context.Context, err error) (runner.Result, error) {
	if cause := context.Cause(ctx); cause != nil || journal.Is(err, journal.StaleClaim) {
		return runner.Result{}, err
	}
	return runner.Result{Failed: fmt.Sprintf("The agent could not be started: %v. Nothing was sent.", err)}, nil
}

func (a *Agent) initialize() ([]byte, error) {
	return wire.Request(1, wire.MethodInitialize, a.introduction())
}

// introduction is what the agent is told of its client: it offers neither files nor
// terminals.
func (a *Agent) introduction() wire.InitializeParams {
	return wire.InitializeParams{ProtocolVersion: wire.ProtocolVersion, ClientInfo: &wire.Implementation{Name: "holdfast", Title: "Holdfast", Version: a.o.Version}}
}

// script makes a program and its arguments a script for sh.
func script(command []string) string {
	words := make([]string, 0, len(command))
	for _, w := range command {
		words = append(words, quoted(w))
	}
	return "exec " + strings.Join(words, " ")
}
