package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	modernc "modernc.org/sqlite"

	"holdfast/handlers"
	"holdfast/journal"
	"holdfast/store"
)

// written are the sessions that events are committed to, in turn, when each
// stream has a session of its own.
const written = 4

// streamCounts are how many streams are open.
var streamCounts = []int{100, 1000}

// wakes is B4: from the commit of an event to its last byte at the subscriber,
// against a bare fiber stream of the same bytes that waits for a channel. Each
// side is one process: server, subscribers and who commits. One event is under
// way at a time.
func (b *bench) wakes(ctx context.Context) error {
	rows := [][]string{{"streams", "events", "p50 ms", "p99 ms", "bare p50 ms", "p99 ms", "ratio of p50", "ratio of p99", "to reach"}}
	for _, f := range feeds {
		for _, n := range streamCounts {
			for _, shared := range []bool{false, true} {
				row, err := b.wake(ctx, f, n, shared)
				if err != nil {
					return fmt.Errorf("%s, %d streams: %w", f.name, n, err)
				}
				rows = append(rows, row)
			}
		}
	}
	end, err := b.commitEnd(ctx)
	if err != nil {
		return err
	}
	b.out.title("B4: commit of an event to its bytes at the subscribers, SQLite in memory, HTTP over loopback")
	b.out.table(rows)
	b.out.line("\nFrom SQLite's commit hook until the append has returned, while nobody reads: p50 %.3f ms. All but its last step is in Holdfast's figures.", p50(end))
	return nil
}

// commitEnd is how long a commit takes after its hook, from which on B4 measures.
func (b *bench) commitEnd(ctx context.Context) (_ sample, err error) {
	p, err := b.newLive(ctx, written, false)
	if err != nil {
		return sample{}, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	var took []time.Duration
	begin := time.Now()
	for turn := 0; time.Since(begin) < b.slice || turn < 4*written; turn++ {
		_, from, err := p.commit(ctx, turn)
		if err != nil {
			return sample{}, err
		}
		took = append(took, time.Since(from))
	}
	return newSample(took, time.Since(begin))
}

func (b *bench) wake(ctx context.Context, f feed, n int, shared bool) (_ []string, err error) {
	p, err := b.newLive(ctx, n, shared)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	message, err := p.sample(ctx, f)
	if err != nil {
		return nil, err
	}
	loop, err := newBareStreams(ctx, n, shared, message)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, loop.close()) }()
	pairs, err := b.rounds(ctx,
		func(ctx context.Context) (out sample, err error) {
			if err := p.serve(ctx); err != nil {
				return out, err
			}
			defer func() { err = errors.Join(err, p.endServe(ctx)) }() // with its streams, which would go on for a while
			return b.deliver(ctx, n, shared, func(ctx context.Context, i int) (*subscriber, error) { return p.open(ctx, f, i) }, p.commit)
		},
		func(ctx context.Context) (sample, error) { return b.deliver(ctx, n, shared, loop.open, loop.commit) })
	if err != nil {
		return nil, err
	}
	where := fmt.Sprintf("a session each, %d written", written)
	if shared {
		where = "all on one session"
	}
	of := func(value func(pair) float64) spread { return spreadOf(pairs, value) }
	return []string{
		fmt.Sprintf("%d %s, %s", n, f.name, where), of(func(p pair) float64 { return float64(p.product.n) }).count(),
		of(func(p pair) float64 { return p50(p.product) }).short(), of(func(p pair) float64 { return p99(p.product) }).short(),
		of(func(p pair) float64 { return p50(p.bare) }).short(), of(func(p pair) float64 { return p99(p.bare) }).short(),
		of(func(p pair) float64 { return p50(p.product) / p50(p.bare) }).ratio(), of(func(p pair) float64 { return p99(p.product) / p99(p.bare) }).ratio(), "≤ 2.00",
	}, nil
}

// arrival is a message that has come, whole.
type arrival struct {
	seq int64
	at  time.Time
	err error
}

// deliver is one side's round: it opens the streams, and commits one event after
// the other, each once all who read its session have it.
func (b *bench) deliver(ctx context.Context, n int, shared bool, open func(context.Context, int) (*subscriber, error), commit func(context.Context, int) (int64, time.Time, error)) (_ sample, err error) {
	subs := make([]*subscriber, n)
	arrived := make(chan arrival, n)
	readers := atomic.Int64{}
	defer func() {
		err = errors.Join(err, closeAll(subs))
		for readers.Load() > 0 { // each says that its stream has ended
			if a := <-arrived; a.err != nil {
				readers.Add(-1)
			}
		}
	}()
	err = each(ctx, n, func(ctx context.Context, i int) (err error) {
		subs[i], err = open(ctx, i)
		return err
	})
	if err != nil {
		return sample{}, err
	}
	for _, s := range subs {
		readers.Add(1)
		go func() {
			for {
				seq, _, err := s.next()
				arrived <- arrival{seq, time.Now(), err}
				if err != nil {
					return
				}
			}
		}()
	}
	expected := 1
	if shared {
		expected = n
	}
	var took []time.Duration
	begin := time.Now()
	for turn := 0; time.Since(begin) < b.slice || turn < 4*written; turn++ {
		seq, from, err := commit(ctx, turn%written)
		if err != nil {
			return sample{}, err
		}
		for range expected {
			a := <-arrived
			if a.err != nil {
				readers.Add(-1)
				return sample{}, fmt.Errorf("a stream ended: %w", a.err)
			}
			if a.seq != seq {
				return sample{}, fmt.Errorf("entry %d came instead of %d", a.seq, seq)
			}
			if turn >= 2*written { // before, the streams are still cold
				took = append(took, a.at.Sub(from))
			}
		}
	}
	return newSample(took, time.Since(begin))
}

// live is the product's side: its server and its store in this process.
type live struct {
	dir      string
	store    *store.Store
	web      *handlers.Server
	served   chan error
	viewer   viewer
	sessions []string // of the streams
	runs     []*running
}

// newLive serves n sessions, or one that all streams read.
func (b *bench) newLive(ctx context.Context, n int, shared bool) (_ *live, err error) {
	p := &live{served: make(chan error, 1)}
	if p.dir, err = os.MkdirTemp(inMemory(b.dir), "holdfast-bench-"); err != nil {
		return nil, err
	}
	file := p.dir + "/live.db"
	committed.watch(file)
	if p.store, err = store.Open(ctx, store.Options{URL: file}); err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.dir))
	}
	if err = p.fill(ctx, n, shared); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// inMemory is where files are kept in memory, if the system has such a place: an
// fsync to a disk that others use would be most of what is measured.
func inMemory(otherwise string) string {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); err == nil && info.IsDir() {
		return shm
	}
	return otherwise
}

func (p *live) fill(ctx context.Context, n int, shared bool) (err error) {
	owner, err := p.store.AddUser(ctx, "bench@example.com", "")
	if err != nil {
		return err
	}
	p.viewer.token, err = p.token(ctx, owner.ID)
	if err != nil {
		return err
	}
	runs := written
	if shared {
		runs = 1
	}
	if p.runs, err = manyRunning(ctx, p.store, owner.ID, runs); err != nil {
		return err
	}
	p.sessions = make([]string, n)
	return each(ctx, n, func(ctx context.Context, i int) (err error) {
		switch {
		case shared:
			p.sessions[i] = p.runs[0].claim.SessionID
		case i < len(p.runs):
			p.sessions[i] = p.runs[i].claim.SessionID
		default:
			p.sessions[i], err = newSession(ctx, p.store, owner.ID, nil)
		}
		return err
	})
}

func (p *live) token(ctx context.Context, owner string) (string, error) {
	_, secret, err := p.store.AddToken(ctx, owner, "bench", store.ScopeAll, time.Hour)
	return secret, err
}

func (p *live) serve(ctx context.Context) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p.web = handlers.New(handlers.Options{Store: p.store}) //nolint:contextcheck // each request has its own
	go func() { p.served <- p.web.Serve(ln) }()
	users, err := p.store.Users(ctx)
	if err != nil {
		return err
	}
	code, err := p.store.UserLink(ctx, users[0].ID)
	if err != nil {
		return err
	}
	p.viewer, err = newViewer(&server{address: ln.Addr().String(), token: p.viewer.token}, code)
	return err
}

func (p *live) endServe(ctx context.Context) error {
	return errors.Join(p.web.Shutdown(context.WithoutCancel(ctx)), <-p.served)
}

func (p *live) close() error { return errors.Join(p.store.Close(), os.RemoveAll(p.dir)) }

func (p *live) open(ctx context.Context, f feed, i int) (*subscriber, error) {
	head, _, err := p.store.Head(ctx, p.runs[0].owner, p.sessions[i])
	if err != nil {
		return nil, err
	}
	return p.viewer.open(ctx, f, p.sessions[i], head)
}

// commit appends a piece of output, as a run does, and tells when that was committed.
func (p *live) commit(ctx context.Context, i int) (int64, time.Time, error) {
	r := p.runs[i%len(p.runs)]
	evs, err := p.store.Append(ctx, r.claim, store.Append{Drafts: []journal.Draft{{ID: store.NewID("evt"), Actor: journal.Agent(), Body: r.output()}}})
	if err != nil {
		return 0, time.Time{}, err
	}
	return evs[0].Seq, committed.last(), nil
}

// sample is a message as the feed writes it, without its id.
func (p *live) sample(ctx context.Context, f feed) (_ string, err error) {
	if err := p.serve(ctx); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, p.endServe(ctx)) }()
	s, err := p.open(ctx, f, 0)
	if err != nil {
		return "", err
	}
	_, _, err = p.commit(ctx, 0)
	if err != nil {
		return "", errors.Join(err, s.close())
	}
	seq, message, err := s.next()
	return strings.Replace(message, "id: "+strconv.FormatInt(seq, 10)+"\n", "", 1), errors.Join(err, s.close())
}

// commits tells when a database was last committed to.
type commits struct {
	file atomic.Pointer[string]
	at   atomic.Pointer[time.Time]
}

var committed commits

// watch has each connection that will be made to a file note its commits: before
// their pages are synced, which is nothing in memory. It is the product's side
// that this counts against.
func (c *commits) watch(file string) {
	if c.file.Swap(&file) != nil {
		return
	}
	modernc.RegisterConnectionHook(func(conn modernc.ExecQuerierContext, dsn string) error {
		if hooks, ok := conn.(modernc.HookRegisterer); ok && strings.Contains(dsn, *c.file.Load()) {
			hooks.RegisterCommitHook(func() int32 {
				now := time.Now()
				c.at.Store(&now)
				return 0
			})
		}
		return nil
	})
}

func (c *commits) last() time.Time { return *c.at.Load() }

// bareStreams is a fiber server whose streams wait for a channel each and write
// one message.
type bareStreams struct {
	app     *fiber.App
	address string
	served  chan error
	stop    chan struct{}
	shared  bool
	message string // without its id
	seq     int64

	mu    sync.Mutex
	wakes []chan int64 // of the streams
}

func newBareStreams(ctx context.Context, n int, shared bool, message string) (*bareStreams, error) {
	b := &bareStreams{served: make(chan error, 1), stop: make(chan struct{}), shared: shared, message: message, wakes: make([]chan int64, n)}
	b.app = fiber.New(fiber.Config{DisableStartupMessage: true})
	b.app.Get("/:i", b.stream)
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b.address = ln.Addr().String()
	go func() { b.served <- b.app.Listener(ln) }()
	return b, nil
}

func (b *bareStreams) stream(c *fiber.Ctx) error {
	i, err := c.ParamsInt("i")
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, "text/event-stream")
	c.Context().SetConnectionClose()
	wake := b.register(i)
	c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
		if _, err := w.WriteString("retry: 1000\n\n"); err != nil || w.Flush() != nil {
			return
		}
		for {
			select {
			case <-b.stop:
				return
			case seq, ok := <-wake:
				if !ok {
					return
				}
				_, err := w.WriteString("id: " + strconv.FormatInt(seq, 10) + "\n" + b.message)
				if err != nil || w.Flush() != nil {
					return
				}
			}
		}
	})
	return nil
}

// register gives a stream its channel, and ends the one before it.
func (b *bareStreams) register(i int) <-chan int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.wakes[i] != nil {
		close(b.wakes[i])
	}
	b.wakes[i] = make(chan int64, 1)
	return b.wakes[i]
}

func (b *bareStreams) open(ctx context.Context, i int) (*subscriber, error) {
	return subscribe(ctx, b.address, "/"+strconv.Itoa(i), "X-Bench: 1")
}

// commit wakes the streams of a session.
func (b *bareStreams) commit(_ context.Context, i int) (int64, time.Time, error) {
	b.seq++
	wakes := b.wakes[i : i+1]
	if b.shared {
		wakes = b.wakes
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	at := time.Now()
	for _, c := range wakes {
		c <- b.seq
	}
	return b.seq, at, nil
}

func (b *bareStreams) close() error {
	close(b.stop)
	return errors.Join(b.app.ShutdownWithTimeout(5*time.Second), <-b.served)
}
