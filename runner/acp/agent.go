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
	OpenWithin   time.Duration // from its start to an open session, and to fall silent before it is told more: 2 min
	CancelWithin time.Duration // from session/cancel to the prompt's answer: 20 s
	ExitWithin   time.Duration // from the end of its stdin to its own: 5 s
	LastWords    time.Duration // that what a killed one has written is read: 2 s
	CalmWithin   time.Duration // for one that rested to fall silent, if it can go on in another process: 10 s
	SilentWithin time.Duration // after a line that may have been its answer: 10 min, and three times that while a call runs

	// Announces is how long it is left open whether an agent that says of a call that it runs
	// asks next whether it may. 0: 3 s, and 6 s for the first call of a process.
	Announces time.Duration

	// FlipPause is between two facts of what the agent offers while it says nothing else:
	// some change a setting to and fro. 0: 1 s.
	FlipPause time.Duration

	MaxLine   int // bytes of one line of what it says; 0: wire.MaxLine
	MaxPrompt int // bytes of the messages of people in one prompt, if it has several; 0: 8 MiB
}

// Agent runs a program that speaks ACP.
type Agent struct {
	o     Options
	first firstStart
}

// New makes one.
func New(o Options) *Agent {
	for d, fallback := range map[*time.Duration]time.Duration{
		&o.OpenWithin: 2 * time.Minute, &o.CancelWithin: 20 * time.Second, &o.ExitWithin: 5 * time.Second,
		&o.LastWords: 2 * time.Second, &o.CalmWithin: 10 * time.Second,
		&o.SilentWithin: 10 * time.Minute, &o.FlipPause: time.Second,
	} {
		if *d == 0 {
			*d = fallback
		}
	}
	if o.MaxPrompt == 0 {
		o.MaxPrompt = mostPrompt
	}
	return &Agent{o: o}
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
	return a.run(ctx, t, startsAgain)
}

// startsAgain is how often a program is started once more that was not there when it was
// to be executed, and is there now: it is being replaced, say. startPause is between.
const (
	startsAgain = 2
	startPause  = 300 * time.Millisecond
)

func (a *Agent) run(ctx context.Context, t *runner.Turn, again int) (runner.Result, error) {
	attempt, rests := t.Attempt(), t.State().Process != nil
	if result := concluded(t); attempt == "" && result != nil {
		return *result, nil
	}
	if f := t.State().Forgotten; f != nil { // known already, by a server that was lost before the turn had ended
		return runner.Result{Failed: f.Reason}, nil
	}
	heeding, stop := t.Heed(ctx)
	defer stop()
	begins := &beginning{a: a, t: t}
	defer begins.over()
	starting := ctx // a stop finds the process first, if it is to end what is in flight
	if attempt == "" {
		starting = heeding
	}
	p, err := a.process(starting, t, begins)
	if begins.err != nil {
		return runner.Result{}, begins.err
	}
	if errors.Is(err, runner.ErrNoRoom) {
		return noRoom(ctx, t)
	}
	if err != nil {
		return startFailed(starting, t, err)
	}
	defer p.Close()
	s := newSession(a, t, p)
	s.begins = begins.letGo != nil
	if err := s.faulty(); err != nil {
		return s.leave(ctx, heeding, err)
	}
	if err := p.Resend(heeding); err != nil {
		return s.leave(ctx, heeding, err)
	}
	if attempt == "" {
		if over, result, err := a.begin(ctx, heeding, s, rests, again); over {
			return result, err
		}
	}
	for {
		result, err := s.follow(heeding)
		if err == nil && (result.Parked || result.Failed != "" || !t.Rejected() && !t.Untold()) {
			return result, nil
		}
		if err == nil { // what a person said about a rejection is told at once, and what had no room
			err = s.again(heeding)
		}
		if err != nil {
			return s.leave(ctx, heeding, err)
		}
	}
}

// begin brings the session into its process and sends the turn's prompt. over: the run
// ends with what it gives, as one in another process perhaps.
func (a *Agent) begin(ctx, heeding context.Context, s *session, rests bool, again int) (over bool, result runner.Result, err error) {
	err = s.open(heeding)
	if s.begins && heeding.Err() == nil { // it has begun, or can't; one that was stopped tells nothing
		a.first.pass()
	}
	if err != nil {
		result, err = s.leave(ctx, heeding, err)
		if err != nil || !s.absent || again == 0 {
			return true, result, err
		}
		select {
		case <-heeding.Done():
			result, err = s.leave(ctx, heeding, context.Cause(heeding))
		case <-time.After(startPause):
			result, err = a.run(ctx, s.t, again-1)
		}
		return true, result, err
	}
	within := a.o.OpenWithin
	if rests && s.resumes() {
		within = a.o.CalmWithin
	}
	err = s.catchUp(heeding, within)
	unfit := ""
	switch {
	case rests && s.resumes() && errors.Is(err, errRestless):
		unfit = reasonRestless
	case rests && errors.Is(err, errMute):
		unfit = reasonMute
	}
	if unfit != "" {
		if err := s.end(heeding, unfit); err != nil {
			result, err = s.stays()
			return true, result, err
		}
	}
	if unfit != "" || rests && errors.Is(err, errEnded) { // it is gone since nobody needed it: another goes on
		if err := s.rest(ctx, nil); err != nil && !s.deaf {
			return true, runner.Result{}, err
		}
		if err := s.gone(ctx); err != nil {
			return true, runner.Result{}, err
		}
		if cause := context.Cause(heeding); cause != nil {
			return true, runner.Result{}, s.t.Parted(cause)
		}
		result, err = a.run(ctx, s.t, again)
		return true, result, err
	}
	if err == nil {
		err = s.configure(heeding)
	}
	if err == nil {
		err = s.prompt(heeding)
	}
	if err != nil {
		result, err = s.leave(ctx, heeding, err)
		return true, result, err
	}
	return false, runner.Result{}, nil
}

// process gives the session's process. One that rests and was started with other
// credentials than it would get now is ended, and another goes on in its place, unless
// the agent can't go on in another: then it keeps those that it has. The end of ctx ends
// also the wait for its end: it is left as it is, or killed at once.
func (a *Agent) process(ctx context.Context, t *runner.Turn, begins *beginning) (*runner.Process, error) {
	first, err := a.initialize()
	if err != nil {
		return nil, err
	}
	spec := runner.ProcessSpec{Script: script(a.o.Command), Env: a.o.Env, Shape: shape}
	if t.Attempt() != "" {
		return t.Process(ctx, spec, [][]byte{first})
	}
	spec.May = begins.may
	if p := t.State().Process; p != nil && !p.Opened { // an earlier server has begun it, and not to its end
		if err := begins.may(ctx); err != nil {
			return nil, err
		}
	}
	p, err := t.Process(ctx, spec, [][]byte{first})
	if err != nil {
		return nil, err
	}
	outdated, err := t.Outdated(ctx)
	reason := ""
	switch was := t.State().Process; {
	case err != nil:
	case outdated && (was.Resumes || !was.Opened):
		reason = "its credentials were changed"
	case halfRead(p, was):
		reason = "it was not opened to its end, and what it had answered isn't kept"
	default:
		return p, nil
	}
	if err == nil {
		s := newSession(a, t, p)
		s.deaf = !t.State().Process.Opened
		if err = s.retire(ctx, reason); err == nil {
			err = context.Cause(ctx)
		}
	}
	p.Close()
	if err != nil {
		return nil, err
	}
	return t.Process(ctx, spec, [][]byte{first})
}

// halfRead reports whether a process can't be opened by who comes, since the room of what it
// answered was given back: it said much before it was open. It was sent nothing.
func halfRead(p *runner.Process, was *journal.AgentProcess) bool {
	readTo, _ := p.At()
	return !was.Opened && readTo > 0
}

// noRoom parks the session until there is room on the disk: nothing of the prompt was sent.
func noRoom(ctx context.Context, t *runner.Turn) (runner.Result, error) {
	return runner.Result{Parked: true}, t.Record(ctx, runner.Seen(&journal.SessionBlocked{
		Cause: journal.BlockDisk, Detail: "The disk on which the server keeps the processes of agents is full." + nothingSent, UnblockedBy: "room on that disk, or continue",
	}))
}

// startFailed says that the agent can't be started: nothing was sent to anybody.
func startFailed(ctx context.Context, t *runner.Turn, err error) (runner.Result, error) {
	switch cause := context.Cause(ctx); {
	case errors.Is(err, t.Stays()): // an earlier one may still run
		return runner.Result{}, err
	case errors.Is(cause, runner.ErrInterrupted):
		return runner.Result{}, cause
	case cause != nil, journal.Is(err, journal.StaleClaim):
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
