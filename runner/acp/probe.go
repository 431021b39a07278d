package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/journal"
	"holdfast/runner/acp/wire"
)

// Probe is what an agent says of itself, and what was tried of it.
type Probe struct {
	Program string // the file that was started

	Init     wire.InitializeResult
	InitTook time.Duration

	SessionID string
	Session   wire.SessionState // of a session that nobody used: its models, modes and options
	Refused   *wire.Error       // why there is none
	OpenTook  time.Duration

	Idle   Try // told to stop while nothing runs, it answers what it is asked next
	GoOn   Try // another process of it goes on with the session
	Delete Try // it forgets the session

	Gone     bool          // it had ended before its stdin did
	Leaves   bool          // it ends by itself when its stdin does
	LeftIn   time.Duration // how soon
	Left     []int         // processes that could not be ended
	Rubbish  string        // what it wrote to its standard output that isn't ACP
	Complain string        // the end of its standard error
}

// Try is one try of what an agent may be able to do.
type Try struct {
	Method string // that was asked; "": it wasn't tried
	Took   time.Duration
	Err    error // it failed; a *wire.Error is what the agent answered
}

// tryWithin bounds what is tried of an agent that has opened a session.
const tryWithin = 30 * time.Second

// Probe starts the agent in a folder, has it open a session, tries what can be tried,
// and ends it: no model is asked for anything. extra is environment that it gets
// besides its own, whose values are secrets. All that it started has ended when Probe
// returns. The error says what stood in the way, with the agent's last words; what was
// learnt before is in the answer. The end of ctx ends it at once.
func (a *Agent) Probe(ctx context.Context, dir string, extra ...string) (Probe, error) {
	var p Probe
	var err error
	if p.Program, err = a.Program(); err != nil {
		return p, err
	}
	late, cancel := context.WithTimeoutCause(ctx, a.o.OpenWithin, errLate)
	defer cancel()
	letGo, err := a.first.wait(late)
	if err != nil {
		return p, err
	}
	defer letGo()
	one, err := a.look(ctx, dir, extra)
	if err != nil {
		return p, err
	}
	if err = one.open(late, a, dir, &p); ctx.Err() == nil {
		a.first.pass()
	}
	open := err == nil && p.Refused == nil
	if open {
		p.Idle = one.idle(late, dir, &p)
		if a.resuming(&p) == "" {
			p.Delete = one.forget(late, &p)
		}
	}
	started := time.Now()
	p.Gone = one.gone()
	p.Leaves = one.leave(ctx, a.o.ExitWithin) && !p.Gone
	p.LeftIn = time.Since(started)
	p.Left = one.end()
	p.Rubbish, p.Complain = one.wrote()
	if method := a.resuming(&p); open && method != "" {
		a.probeAgain(late, dir, extra, method, &p)
	}
	return p, err
}

// resuming is how another process goes on with a session: as opening.choose has it.
func (a *Agent) resuming(p *Probe) string {
	switch caps := p.Init.AgentCapabilities; {
	case bool(caps.SessionCapabilities.Resume):
		return wire.MethodSessionResume
	case caps.LoadSession:
		return wire.MethodSessionLoad
	}
	return ""
}

// probeAgain starts another process, which goes on with the session of the first.
func (a *Agent) probeAgain(ctx context.Context, dir string, extra []string, method string, p *Probe) {
	p.GoOn.Method = method
	two, err := a.look(ctx, dir, extra)
	if err != nil {
		p.GoOn.Err = err
		return
	}
	defer func() {
		two.leave(ctx, a.o.ExitWithin)
		p.Left = append(p.Left, two.end()...)
	}()
	started := time.Now()
	if _, _, err := two.initialize(ctx, a); err != nil {
		p.GoOn.Err = err
		return
	}
	p.GoOn = two.try(ctx, method, wire.SessionParams{SessionID: p.SessionID, Cwd: dir})
	p.GoOn.Took = time.Since(started)
	p.Delete = two.forget(ctx, p)
}

// initialize asks what the agent is and can.
func (l *looked) initialize(ctx context.Context, a *Agent) (wire.InitializeResult, time.Duration, error) {
	started := time.Now()
	m, err := l.ask(ctx, wire.MethodInitialize, a.introduction())
	if err != nil {
		return wire.InitializeResult{}, 0, err
	}
	if m.Err != nil {
		return wire.InitializeResult{}, 0, fmt.Errorf("it could not begin: %s", journal.Quote(words(m.Err), saidBytes))
	}
	out, err := wire.Decode[wire.InitializeResult](m.Result)
	if err != nil {
		return out, 0, fmt.Errorf("its first answer can't be read: %s", journal.Quote(err.Error(), saidBytes))
	}
	if out.ProtocolVersion != wire.ProtocolVersion {
		return out, 0, fmt.Errorf("it speaks version %d of ACP; this server speaks %d", out.ProtocolVersion, wire.ProtocolVersion)
	}
	return out, time.Since(started), nil
}

// open has the agent open a session.
func (l *looked) open(ctx context.Context, a *Agent, dir string, p *Probe) (err error) {
	if p.Init, p.InitTook, err = l.initialize(ctx, a); err != nil {
		return err
	}
	started := time.Now()
	m, err := l.ask(ctx, wire.MethodSessionNew, wire.SessionParams{Cwd: dir})
	if err != nil {
		return err
	}
	if p.OpenTook, p.Refused = time.Since(started), m.Err; p.Refused != nil {
		return nil //nolint:nilerr // a refusal is what was found
	}
	r, err := wire.Decode[wire.NewSessionResult](m.Result)
	if err != nil || r.SessionID == "" {
		return fmt.Errorf("it opened a session and didn't say which")
	}
	if why := untold(r.SessionID); why != "" {
		return errors.New("the id of its session " + why + ": it can't be told which session is meant")
	}
	p.SessionID, p.Session = r.SessionID, r.SessionState
	return nil
}

// idle tells it to stop although nothing runs, and asks it something harmless then.
func (l *looked) idle(ctx context.Context, dir string, p *Probe) Try {
	if err := l.tell(ctx, wire.MethodSessionCancel, wire.CancelParams{SessionID: p.SessionID}); err != nil {
		return Try{Method: wire.MethodSessionCancel, Err: err}
	}
	switch modes := p.Session.Modes; {
	case bool(p.Init.AgentCapabilities.SessionCapabilities.List):
		return l.try(ctx, wire.MethodSessionList, wire.ListParams{Cwd: dir})
	case modes != nil && modes.CurrentModeID != "":
		return l.try(ctx, wire.MethodSetMode, wire.SetModeParams{SessionID: p.SessionID, ModeID: modes.CurrentModeID})
	}
	return l.try(ctx, methodNone, struct{}{})
}

// methodNone is one that no agent knows: it is answered, if only with an error.
const methodNone = "_holdfast/are_you_there"

// forget has the agent forget the session, so that its own list is as it was.
func (l *looked) forget(ctx context.Context, p *Probe) Try {
	if !p.Init.AgentCapabilities.SessionCapabilities.Delete {
		return Try{}
	}
	return l.try(ctx, wire.MethodSessionDelete, wire.DeleteParams{SessionID: p.SessionID})
}

// try asks for something that need not work.
func (l *looked) try(ctx context.Context, method string, params any) Try {
	ctx, cancel := context.WithTimeoutCause(ctx, tryWithin, errLate)
	defer cancel()
	started := time.Now()
	m, err := l.ask(ctx, method, params)
	if err == nil && m.Err != nil {
		err = m.Err
	}
	return Try{Method: method, Took: cmp.Or(time.Since(started), 1), Err: err}
}
