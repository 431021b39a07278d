package acp

import (
	"context"
	"sync"

	"holdfast/runner"
)

// firstStart has the first process that a server starts of an agent be alone until it
// has begun. Some agents make what their processes share, such as a database, when they
// begin for the first time, and fail if several do so at once. The zero value is ready.
type firstStart struct {
	mu    sync.Mutex
	begun bool          // one has begun, or could not: nobody waits any more
	alone chan struct{} // one begins; closed when it lets go
}

// ask lets one begin, or gives what is closed when it is to ask again. letGo may be
// called more than once.
func (f *firstStart) ask() (letGo func(), other <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.begun:
		return func() {}, nil
	case f.alone != nil:
		return nil, f.alone
	}
	mine := make(chan struct{})
	f.alone = mine
	return func() { f.release(mine) }, nil
}

// pass has nobody wait any more.
func (f *firstStart) pass() {
	f.mu.Lock()
	mine := f.alone
	f.begun = true
	f.mu.Unlock()
	f.release(mine)
}

func (f *firstStart) release(mine chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if mine != nil && f.alone == mine {
		f.alone = nil
		close(mine)
	}
}

// wait lets one begin, when it may, unless ctx ends before.
func (f *firstStart) wait(ctx context.Context) (letGo func(), err error) {
	for {
		letGo, other := f.ask()
		if other == nil {
			return letGo, nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// beginning is the part of one run in that: whether it may start a process.
type beginning struct {
	a     *Agent
	t     *runner.Turn
	letGo func() // nil: it has asked for none
	err   error  // what the run ends with, instead
}

// may waits while the agent's first process begins. What ends the run ends the wait:
// nothing of it runs.
//
// The wait keeps the place of its session (COO-3). Who gave it away would need one again
// after it, when others may have them all: to go on without is to run more than N at
// once; to let the session go and queue it anew is to have it behind those that came
// later, and the claims of all that wait for this agent taken and released for nothing,
// again at each sweep. The wait is as short as one start.
func (b *beginning) may(heeding context.Context) error {
	for b.letGo == nil {
		letGo, other := b.a.first.ask()
		if other == nil {
			b.letGo = letGo
			return nil
		}
		if b.err = b.t.Await(heeding, other); b.err != nil {
			return b.err
		}
	}
	return nil
}

// over has nobody wait for this run any more.
func (b *beginning) over() {
	if b.letGo != nil {
		b.letGo()
	}
}
