package runner

import (
	"context"
	"slices"
	"time"

	"holdfast/journal"
)

// What goes on and can't be followed is taken up again, since to give it up would end
// it or leave it without a keeper. A drain that fails each time must not do so without a
// rest: from the third failure in a row on there are pauses, each twice as long as the
// one before. What is followed goes on meanwhile; a stop ends it at once.

// pauseMost bounds a pause.
const pauseMost = 5 * time.Minute

// pause is that of a session whose drains have failed here.
type pause struct {
	failed int // in a row
	until  time.Time
}

// noteDrain notes whether a session's drain has failed.
func (r *Runner) noteDrain(session string, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !failed {
		delete(r.pauses, session)
		return
	}
	p := r.pauses[session]
	p.failed++
	if more := p.failed - journal.MaxRecoveries; more >= 0 {
		p.until = time.Now().Add(min(r.o.Sweep<<min(more, 10), max(pauseMost, r.o.Sweep)))
	}
	r.pauses[session] = p
}

// paused reports whether what goes on in a session is not to be taken up just now. The
// next sweep after the pause finds it.
func (r *Runner) paused(ctx context.Context, session string) (bool, error) {
	r.mu.Lock()
	p := r.pauses[session]
	r.mu.Unlock()
	if !time.Now().Before(p.until) {
		return false, nil
	}
	stops, err := r.store.Interrupted(ctx, []string{session})
	return err == nil && !slices.Contains(stops, session), err
}
