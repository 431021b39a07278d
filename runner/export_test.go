package runner

import (
	"context"
	"errors"
	"time"

	"holdfast/journal/policy"
	"holdfast/runner/tool"
)

// AtOnce is how many sessions a sweep recovers at once.
const AtOnce = atOnce

// SweepBatch is how many of a list a sweep reads at once.
const SweepBatch = sweepBatch

// Strays does the first half of a sweep of the shims, and gives the second.
func (r *Runner) Strays(ctx context.Context) (clearAll func(), err error) {
	strays, err := r.strays(ctx)
	return func() { r.clearAll(ctx, strays) }, err
}

// Masks is what of secrets is masked in the bytes that an agent's process writes.
func (s ProcessSpec) Masks(secrets []string) []string { return s.masks(secrets) }

// Rests reports whether no drain runs and no session waits for one.
func (r *Runner) Rests() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.runs) == 0 && len(r.queue) == 0
}

// Room tells it what the disk of its shims has left, in place of that; before it is started.
func (r *Runner) Room(has func(bytes int64) bool) { r.room = has }

// Unkillable has it find no process of an agent ended while that is so; before it is started.
func (r *Runner) Unkillable(so func() bool) {
	r.kill = func(ctx context.Context, callID string, n int, p tool.Process, grace time.Duration) (int, error) {
		if so() {
			return 0, errors.New("it can't be killed")
		}
		return tool.KillCall(ctx, callID, n, p, grace)
	}
}

// Judged is what rules judge of what a call would do.
func Judged(w Wish) []policy.Resource { return w.judged() }
