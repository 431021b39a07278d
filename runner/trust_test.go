package runner

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// proves LEA-5
func TestTrust_EndsBeforeTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lease = 30 * time.Second
		started := time.Now()
		tr := newTrust(started, lease)
		if err := tr.wait(t.Context()); err != nil {
			t.Fatalf("a fresh lease isn't trusted: %v", err)
		}
		<-time.After(lease - lease/6) // the bubble's clock, not ours
		ctx, cancel := context.WithCancelCause(t.Context())
		waited := make(chan error, 1)
		go func() { waited <- tr.wait(ctx) }()
		synctest.Wait()
		select {
		case err := <-waited:
			t.Fatalf("past its window the lease is trusted: %v", err)
		default:
		}
		// A renewal counts from when it was started, however late its answer came.
		tr.renew(started, lease)
		synctest.Wait()
		select {
		case err := <-waited:
			t.Fatalf("an old renewal restored trust: %v", err)
		default:
		}
		tr.renew(time.Now(), lease)
		if err := <-waited; err != nil {
			t.Fatalf("a renewal in time doesn't restore trust: %v", err)
		}
		<-time.After(lease)
		cancel(ErrLeaseLost)
		if err := tr.wait(ctx); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("a lost lease: %v, want the cause", err)
		}
	})
}
