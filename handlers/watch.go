package handlers

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// watchers is how many credentials are checked at once.
const watchers = 4

// track remembers an open stream: for the watch, which the first one starts, and
// for Shutdown, which ends a flush that waits for a reader who takes nothing.
func (s *Server) track(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[st] = struct{}{}
	if len(s.open) > 1 {
		return
	}
	ctx, cancel := context.WithCancel(st.ctx)
	s.endWatch = cancel
	if !s.closed { // else this stream ends at once, and nobody would wait
		s.watching.Go(func() { s.watch(ctx) })
	}
}

// untrack forgets a stream. The last one ends the watch.
func (s *Server) untrack(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, st)
	if len(s.open) == 0 {
		s.endWatch()
	}
}

// watch ticks for all open streams, and checks their readers' right to read
// before (RDR-7): once for all streams of a token or a cookie. A stream that did
// so by itself would need a timer, and a stack that a read of the database fits in.
func (s *Server) watch(ctx context.Context) {
	defer s.recovered()
	// Two ticks make a heartbeat, so that a sign-out is seen well before RDR-7 wants it.
	tick := time.NewTicker(s.opts.Heartbeat / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.stop:
			return
		case <-tick.C:
			s.tick(ctx)
		}
	}
}

// tick checks each credential that open streams came by, and tells those streams.
func (s *Server) tick(ctx context.Context) {
	groups := make(chan []*stream)
	var wg sync.WaitGroup
	for range watchers {
		wg.Go(func() {
			for group := range groups {
				s.check(ctx, group)
			}
		})
	}
	for _, group := range s.byCredential() {
		groups <- group
	}
	close(groups)
	wg.Wait()
}

func (s *Server) byCredential() map[[2]string][]*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	groups := map[[2]string][]*stream{}
	for st := range s.open {
		k := [2]string{st.who.bearer, st.who.cookie}
		groups[k] = append(groups[k], st)
	}
	return groups
}

// check ticks the streams of one credential. If it couldn't be checked they miss
// this one.
func (s *Server) check(ctx context.Context, group []*stream) {
	defer s.recovered()
	ctx, cancel := context.WithTimeout(ctx, readDeadline)
	defer cancel()
	gone, err := s.still(ctx, group[0].who)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Warn("streams wait for the check of their readers", slog.Int("streams", len(group)), slog.Any("error", err))
		}
		return
	}
	for _, st := range group {
		st.tick(gone)
	}
}

// tick leaves word for a stream, which may be writing. The last word counts.
func (st *stream) tick(gone string) {
	select {
	case <-st.ticks:
	default:
	}
	select {
	case st.ticks <- gone:
	default: // a watch that is ending was faster
	}
}

// recovered reports a panic of the watch, which would end the whole process.
func (s *Server) recovered() {
	if p := recover(); p != nil {
		s.log.Error("watch of streams panicked", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
	}
}
