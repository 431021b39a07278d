package acp

import (
	"context"
	"errors"
	"time"
)

// How what an agent says is heard when it isn't followed through its turn.

// quiet is how long an agent that rests says nothing, so that all it said is heard.
const quiet = 100 * time.Millisecond

// errRestless says that an agent which has nothing to do doesn't stop talking.
var errRestless = errors.New("the agent did not fall silent")

// catchUp takes what the agent said since its last turn: none of it is an answer to
// what it is told next. errRestless: it hasn't stopped talking within that time.
func (s *session) catchUp(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, errRestless)
	defer cancel()
	for {
		if ctx.Err() != nil { // also of one that always has something to say
			return context.Cause(ctx)
		}
		select {
		case h, ok := <-s.conn.p.Heard():
			if !ok {
				return errEnded
			}
			lines, err := s.conn.take(h)
			s.hold(lines)
			if err == nil && s.onlyOptions() {
				continue
			}
			if rerr := s.rest(ctx, nil); rerr != nil {
				return rerr
			}
			if err != nil {
				return err
			}
		case <-time.After(quiet):
			if err := s.settleDown(ctx); err != nil || !s.conn.p.IsMute() {
				return err
			}
			return errMute
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// settleDown makes facts of all that is heard.
func (s *session) settleDown(ctx context.Context) error {
	if err := s.restAll(ctx); err != nil {
		return err
	}
	s.complete()
	if len(s.drafts) == 0 && !s.offers.pending() {
		return nil
	}
	return s.unfit(ctx, nil, s.flush(ctx, nil))
}

// until waits for the answer to the prompt until a time.
func (s *session) until(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d, errLate)
	defer cancel()
	for s.result == nil {
		lines, err := s.hear(ctx)
		if rerr := s.rest(ctx, lines); rerr != nil {
			return rerr
		}
		if err != nil {
			return err
		}
	}
	return nil
}
