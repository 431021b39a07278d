package runner

import "context"

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
