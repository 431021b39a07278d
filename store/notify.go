package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lib/pq"

	"holdfast/journal"
)

// Wake says that something was committed. It is a hint: who hears it reads the
// journal, and no decision is made from it.
type Wake struct {
	Session string
	Seq     int64
	Work    bool // a runner may have something to do
}

// channel is the Postgres channel of all wake-ups.
const channel = "holdfast"

// coalesce is how long notifications gather before one statement sends them.
// Inside the write transaction a NOTIFY would cost 4 to 10 times the rate.
const coalesce = 10 * time.Millisecond

// hub spreads wake-ups inside this process, and keeps the tails of the sessions
// that somebody follows.
type hub struct {
	mu     sync.Mutex
	topics map[string]*topic // by session
	kept   int64             // bytes of all tails,
	most   int64             // and how many they may be
	read   atomic.Pointer[reading]
	work   map[*WorkSub]struct{}
	outbox map[string]Wake // for other processes; nil on SQLite
	origin string          // names this process: it has heard of its own commits already
	kick   chan struct{}
}

func newHub(remote bool) *hub {
	h := &hub{topics: map[string]*topic{}, most: tailsSize, work: map[*WorkSub]struct{}{}, origin: rand.Text(), kick: make(chan struct{}, 1)}
	if remote {
		h.outbox = map[string]Wake{}
	}
	return h
}

// WorkSub hears which sessions may have work.
type WorkSub struct {
	h       *hub
	c       chan struct{}
	pending map[string]struct{}
	resync  bool
}

// C is signalled when Take has something to give.
func (w *WorkSub) C() <-chan struct{} { return w.c }

// Take gives the sessions that were named since the last call. resync means
// that wake-ups may have been lost: sweep.
func (w *WorkSub) Take() (sessions []string, resync bool) {
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	for id := range w.pending {
		sessions = append(sessions, id)
	}
	resync = w.resync
	w.pending, w.resync = map[string]struct{}{}, false
	return sessions, resync
}

// Close ends the subscription.
func (w *WorkSub) Close() {
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	delete(w.h.work, w)
}

// SubscribeWork hears of work in any session, from any process.
func (s *Store) SubscribeWork() *WorkSub {
	w := &WorkSub{h: s.hub, c: make(chan struct{}, 1), pending: map[string]struct{}{}}
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.hub.work[w] = struct{}{}
	return w
}

// Subscribe hears of commits in one session. The channel holds one signal: a
// full one means "already told". Subscribe first, then read: no commit is missed.
func (s *Store) Subscribe(session string) (c <-chan struct{}, cancel func()) {
	t, sb := s.hub.subscribe(session)
	return sb.c, func() { s.hub.unsubscribe(session, t, sb, false) }
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// publish tells this process of a commit, and puts the wakes out for the others.
// The events are there before who is woken looks for them.
func (h *hub) publish(events []journal.Event, wakes []Wake) {
	if len(wakes) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keep(events)
	for _, w := range wakes {
		h.deliver(w)
		if h.outbox != nil {
			was := h.outbox[w.Session]
			h.outbox[w.Session] = Wake{w.Session, max(w.Seq, was.Seq), w.Work || was.Work}
			signal(h.kick)
		}
	}
}

func (h *hub) deliver(w Wake) {
	if t := h.topics[w.Session]; t != nil {
		t.heard.Store(max(t.heard.Load(), w.Seq)) // before the signal: who is woken reads it
		for sb := range t.subs {
			signal(sb.c)
		}
	}
	if !w.Work {
		return
	}
	for sub := range h.work {
		sub.pending[w.Session] = struct{}{}
		signal(sub.c)
	}
}

// everyone is told when wake-ups may have been lost.
func (h *hub) everyone() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.topics {
		for sb := range t.subs {
			sb.lost.Store(true)
			signal(sb.c)
		}
	}
	for sub := range h.work {
		sub.resync = true
		signal(sub.c)
	}
}

func (h *hub) takeOutbox() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]string, 0, len(h.outbox))
	for _, w := range h.outbox {
		work := "r"
		if w.Work {
			work = "w"
		}
		out = append(out, fmt.Sprintf("%s:%d:%s:%s", w.Session, w.Seq, work, h.origin))
	}
	clear(h.outbox)
	return out
}

// notify sends what was put out, coalesced, outside any write transaction.
func (s *Store) notify(ctx context.Context) {
	timer := time.NewTimer(coalesce)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.hub.kick:
		}
		timer.Reset(coalesce)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if out := s.hub.takeOutbox(); len(out) > 0 {
			// A lost notification loses nothing: everybody polls as well.
			if _, err := s.r.ExecContext(ctx, "SELECT pg_notify('"+channel+"', p) FROM unnest($1::text[]) p", pq.Array(out)); err != nil && ctx.Err() == nil {
				s.log.Warn("send wake-ups", slog.Any("error", err))
			}
		}
	}
}

// listen hears the other processes. A nil notification means that the
// connection was lost for a while: everybody reads again.
func (s *Store) listen(ctx context.Context) {
	l := pq.NewListener(s.url, 100*time.Millisecond, 10*time.Second, nil)
	defer func() { _ = l.Close() }() // a second close is an error, and no harm
	// Listen waits for a connection, for ever if there is none; closing ends that.
	unblock := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer unblock()
	if err := l.Listen(channel); err != nil && ctx.Err() == nil {
		s.log.Warn("listen for wake-ups; polling goes on", slog.Any("error", err))
	}
	ping := time.NewTicker(30 * time.Second)
	defer ping.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-l.Notify:
			if n == nil {
				s.hub.everyone()
				continue
			}
			s.heard(n.Extra)
		case <-ping.C:
			if err := l.Ping(); err != nil {
				s.log.Debug("ping listener", slog.Any("error", err))
			}
		}
	}
}

func (s *Store) heard(payload string) {
	parts := strings.Split(payload, ":")
	if len(parts) != 4 || parts[3] == s.hub.origin {
		return
	}
	seq, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return
	}
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.hub.deliver(Wake{parts[0], seq, parts[2] == "w"})
}

// spawn starts one of the store's own goroutines; Close waits for it.
func (s *Store) spawn(name string, fn func(context.Context)) {
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("store goroutine died", slog.String("name", name), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			}
		}()
		fn(s.base)
	}()
}
