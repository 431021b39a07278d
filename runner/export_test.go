package runner

// AtOnce is how many sessions a sweep recovers at once.
const AtOnce = atOnce

// SweepBatch is how many of a list a sweep reads at once.
const SweepBatch = sweepBatch
