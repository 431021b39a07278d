package runner

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"holdfast/store"
)

// trust is how long a drain may act on its lease without asking (LEA-5).
type trust struct {
	mu      sync.Mutex
	until   time.Time     // by the monotonic clock
	renewed chan struct{} // closed and replaced at each renewal
}

func newTrust(started time.Time, lease time.Duration) *trust {
	return &trust{until: trustedUntil(started, lease), renewed: make(chan struct{})}
}

// trustedUntil counts from the start of the round trip that granted the lease:
// the database may have granted it at any moment after that.
func trustedUntil(started time.Time, lease time.Duration) time.Time {
	return started.Add(lease - lease/6)
}

func (t *trust) renew(started time.Time, lease time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u := trustedUntil(started, lease); u.After(t.until) {
		t.until = u
	}
	close(t.renewed)
	t.renewed = make(chan struct{})
}

// wait returns once the lease is trusted, or the cause of the context. A worker
// that was suspended past its window waits here for its keeper to renew, or to
// learn that it is lost.
func (t *trust) wait(ctx context.Context) error {
	for {
		t.mu.Lock()
		ok, renewed := time.Now().Before(t.until), t.renewed
		t.mu.Unlock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-renewed:
		}
	}
}

// interruptPoll is how soon the holder of a claim hears of an interrupt whose wake-up was lost (COO-4).
const interruptPoll = 2 * time.Second

// keep renews the claims of the drains that run here until the runner has stopped.
func (r *Runner) keep(ctx context.Context) {
	renew := time.NewTicker(r.o.Renew)
	defer renew.Stop()
	poll := time.NewTicker(interruptPoll)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-renew.C:
			r.renew(ctx)
		case <-poll.C:
			r.pokeInterrupted(ctx)
		}
	}
}

func (r *Runner) renew(ctx context.Context) {
	holdings := r.claimed()
	ids := make([]string, 0, len(holdings))
	for id := range holdings {
		ids = append(ids, id)
	}
	started := time.Now()
	if len(ids) > 0 {
		store.Crash("renew.before")
		held, err := r.store.RenewClaims(ctx, r.o.WorkerID, ids, r.o.Lease)
		if err != nil {
			// The trust window ends by itself; the claim may still be renewed later.
			r.log.Warn("renew the leases", slog.Any("error", err))
			return
		}
		store.Crash("renew.after")
		for id, h := range holdings {
			if held[id] {
				h.trust.renew(started, r.o.Lease)
			} else if h.run.lose(id) {
				r.log.Warn("session execution claim lost: "+id, slog.String("session", h.run.session)) //nolint:sloglint // the words are the contract's (LEA-3)
			}
		}
	}
	r.see(ctx)
}

func (r *Runner) pokeInterrupted(ctx context.Context) {
	var sessions []string
	byID := map[string]*run{}
	for _, h := range r.claimed() {
		sessions = append(sessions, h.run.session)
		byID[h.run.session] = h.run
	}
	if len(sessions) == 0 {
		return
	}
	hit, err := r.store.Interrupted(ctx, sessions)
	if err != nil {
		r.log.Warn("look for interrupts", slog.Any("error", err))
		return
	}
	for _, id := range hit {
		if run := byID[id]; run != nil {
			run.interrupt()
		}
	}
}
