package handlers

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"holdfast/journal"
	"holdfast/store"
)

// BuiltIn is where an agent is from that is no program.
const BuiltIn = "built in"

// AgentProgram is an agent of this server as it is at the moment of asking.
type AgentProgram struct {
	Name    string
	Command string // for people: what looks like a secret in it is hidden
	From    string // --agent, PATH or BuiltIn; "": it is known, but this server doesn't offer it
	File    string // that is run
	Reason  string // why it can't be started; "": it can
	Get     string // of one that isn't offered: how to get it
}

// Bounds of how many agents are looked at at once: each is a process or two, and some
// take half a gigabyte. One person has fewer, so that agents that hang keep nobody
// else's looks.
const (
	looksAtOnce  = 3
	looksOfOwner = 1
)

// agentLook is one look at an agent: its start and what was found, for who asked.
type agentLook struct {
	Began    int64 // ms
	Ended    int64 // 0: it goes on
	Findings []store.Finding
	Failed   string // the look itself came to nothing, in a sentence
}

// lookOf names the last look of one person at one agent: what is found may come of
// their own account with it.
type lookOf struct{ owner, agent string }

// agentLooks are the looks at the agents of this server. They are kept in memory: the
// last of each person at each agent.
type agentLooks struct {
	do  func(ctx context.Context, agent, ownerID string) ([]store.Finding, error)
	log *slog.Logger

	wg sync.WaitGroup

	mu      sync.Mutex
	stopped bool
	running map[string]runningLook // by agent
	last    map[lookOf]agentLook
}

type runningLook struct {
	owner string
	began int64
	done  chan struct{}
	stop  context.CancelCauseFunc
}

var errServerStops = errors.New("the server stops")

func newAgentLooks(do func(ctx context.Context, agent, ownerID string) ([]store.Finding, error), log *slog.Logger) *agentLooks {
	return &agentLooks{do: do, log: log, running: map[string]runningLook{}, last: map[lookOf]agentLook{}}
}

// begin starts a look, or joins the one that the same person has begun. It goes on when
// ctx has ended. The channel is closed when it has ended. Codes: conflict, unavailable.
func (l *agentLooks) begin(ctx context.Context, agent, owner string) (<-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was, running := l.running[agent]
	switch {
	case l.stopped:
		return nil, journal.Errorf(journal.Unavailable, "The server stops. Nothing was started. Look again once it is back.")
	case running && was.owner == owner:
		return was.done, nil
	case running:
		return nil, journal.Errorf(journal.Conflict, "Somebody else looks at this agent just now. Nothing was started. Look again in a minute or two.").Typed("look-running")
	case l.ownersLooks(owner) >= looksOfOwner:
		return nil, journal.Errorf(journal.Conflict, "You look at another agent just now, and one at a time is looked at for each person. Nothing was started. Look again when that has ended.").Typed("look-busy")
	case len(l.running) >= looksAtOnce:
		return nil, journal.Errorf(journal.Conflict, "%d agents are looked at just now, and no more at once. Nothing was started. Look again in a minute or two.", looksAtOnce).Typed("look-busy")
	}
	ctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	one := runningLook{owner: owner, began: time.Now().UnixMilli(), done: make(chan struct{}), stop: stop}
	l.running[agent] = one
	l.wg.Go(func() { l.run(ctx, agent, one) })
	return one.done, nil
}

// ownersLooks counts the looks of a person that go on. l.mu is held.
func (l *agentLooks) ownersLooks(owner string) int {
	n := 0
	for _, one := range l.running {
		if one.owner == owner {
			n++
		}
	}
	return n
}

// run does one look.
func (l *agentLooks) run(ctx context.Context, agent string, one runningLook) {
	out := agentLook{Began: one.began}
	defer one.stop(nil)
	defer close(one.done)
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("a look at an agent failed", slog.String("agent", agent), slog.Any("error", panicked(p)))
			out.Findings, out.Failed = nil, "The look came to nothing: something went wrong in the server, and stands in its log."
		}
		l.keep(agent, one.owner, out)
	}()
	found, err := l.do(ctx, agent, one.owner)
	out.Findings = found
	switch {
	case context.Cause(ctx) != nil:
		out.Findings, out.Failed = nil, "The look was ended, because the server stops."
	case err != nil:
		l.log.Warn("look at an agent", slog.String("agent", agent), slog.Any("error", err))
		out.Failed = "The look came to nothing: " + err.Error() + "."
	}
}

func (l *agentLooks) keep(agent, owner string, out agentLook) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out.Ended = time.Now().UnixMilli()
	delete(l.running, agent)
	l.last[lookOf{owner, agent}] = out
}

// of is the last look of a person at an agent, or the one that goes on. nil: there was
// none since the server was started.
func (l *agentLooks) of(agent, owner string) *agentLook {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one, ok := l.running[agent]; ok && one.owner == owner {
		return &agentLook{Began: one.began}
	}
	if out, ok := l.last[lookOf{owner, agent}]; ok {
		return &out
	}
	return nil
}

// end ends the looks that go on, and waits for them.
func (l *agentLooks) end() {
	l.mu.Lock()
	l.stopped = true
	for _, one := range l.running {
		one.stop(errServerStops)
	}
	l.mu.Unlock()
	l.wg.Wait()
}
