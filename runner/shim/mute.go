package shim

import (
	"context"
	"errors"
	"time"
)

// endsWithin is how long a command that has closed its stdout has to end by itself: most
// do that at their end, which is told as such.
const endsWithin = 2 * time.Second

// watchStdout notes that the command lives on without its stdout: nothing that it has
// started has that any more, either.
func (p *process) watchStdout() {
	select {
	case <-p.cmd.Mute():
	case <-p.cmd.Ended():
		return
	}
	select {
	case <-p.cmd.Ended():
		return
	case <-time.After(endsWithin):
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.spool.end.Load()
	p.mute = &at
	close(p.muted)
}

// mutedAt is up to where the spool has what the command wrote on its stdout; nil: it has
// that still, as far as is known.
func (p *process) mutedAt() *int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mute
}

// Muted is what was known of Mute when the child was attached to.
func (c *Child) Muted() (at int64, muted bool) {
	if c.mute == nil {
		return 0, false
	}
	return *c.mute, true
}

// Mute waits until the command lives on without its stdout, and gives the offset of the
// spool behind all that it wrote there. False: nobody can tell, since it has ended, or its
// shim is of an older build.
func (c *Child) Mute(ctx context.Context) (at int64, muted bool, err error) {
	got, ended, err := c.call(ctx, request{Op: opMute}, nil)
	var old *refusal
	switch {
	case ended || errors.As(err, &old):
		return 0, false, nil
	case err != nil || got.Mute == nil:
		return 0, false, wrap(err, "learn whether %s has its stdout", c.id)
	}
	return *got.Mute, true, nil
}
