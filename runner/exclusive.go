package runner

import (
	"context"
	"sync"
)

// exclusive has one at a time deal with what has a name. The zero value is ready.
type exclusive struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when it is let go
}

// try takes a name if nobody has it. Whoever has taken it lets it go, once.
func (e *exclusive) try(name string) (letGo func(), ok bool) {
	letGo, other := e.ask(name)
	return letGo, other == nil
}

// take waits until it can take the name. When ctx ends, its cause is the error.
func (e *exclusive) take(ctx context.Context, name string) (letGo func(), err error) {
	for {
		letGo, other := e.ask(name)
		if other == nil {
			return letGo, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-other:
		}
	}
}

// ask takes the name, or tells what is closed when whoever has it lets go.
func (e *exclusive) ask(name string) (letGo func(), other <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if other := e.held[name]; other != nil {
		return nil, other
	}
	if e.held == nil {
		e.held = map[string]chan struct{}{}
	}
	mine := make(chan struct{})
	e.held[name] = mine
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.held, name)
		close(mine)
	}, nil
}
