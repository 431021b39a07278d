package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jmoiron/sqlx"

	"holdfast/journal"
)

// Publish gives a finished copy its name.
var Publish = publish

// Tx is a method's transaction, for tests that put statements of their own between those of others.
type Tx struct{ t *tx }

// Exec runs a statement.
func (x Tx) Exec(ctx context.Context, q string, args ...any) error {
	_, err := x.t.exec(ctx, q, args...)
	return err
}

// Raw runs a statement without preparing it, such as a PRAGMA.
func (x Tx) Raw(ctx context.Context, q string) error { return x.t.w.raw(ctx, q) }

// Wake asks for a wake-up.
func (x Tx) Wake(session string) { x.t.wake(session, 1, true) }

// Write runs fn as a method of the store.
func (s *Store) Write(ctx context.Context, session string, fn func(context.Context, Tx) error) error {
	return s.write(ctx, session, func(ctx context.Context, t *tx) error { return fn(ctx, Tx{t}) })
}

// Writers tells how many group writers there are.
func (s *Store) Writers() int { return len(s.writers) }

// WriterOf tells which of them takes a session.
func (s *Store) WriterOf(session string) int { return int(hash32(session)) % len(s.writers) }

// Get reads one value.
func (x Tx) Get(ctx context.Context, dest any, q string, args ...any) error {
	return x.t.get(ctx, dest, q, args...)
}

// LoseDatabase ends the writer's connection and lets no other come, counting
// the tries; back undoes that, while nothing is written.
func (x Tx) LoseDatabase(tries *atomic.Int32) (back func(), err error) {
	w := x.t.w
	was := w.s.w
	away := sqlx.NewDb(sql.OpenDB(nobody{tries}), was.DriverName())
	w.s.w = away
	err = w.conn.Raw(func(any) error { return driver.ErrBadConn })
	return func() { w.s.w = was; _ = away.Close() }, err
}

type nobody struct{ tries *atomic.Int32 }

func (n nobody) Connect(context.Context) (driver.Conn, error) {
	n.tries.Add(1)
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

func (nobody) Driver() driver.Driver { return nil }

// Unavailable reports errors that mean: later.
func Unavailable(err error) bool { return unavailable(err) }

// Checksum is what the journal keeps beside an event.
func Checksum(ev *journal.Event) int64 { return checksum(ev) }

// AwaitQueued returns when n requests wait for the writer of a session.
func (s *Store) AwaitQueued(session string, n int) {
	for w := s.writers[s.WriterOf(session)]; len(w.queue) < n; {
		runtime.Gosched()
	}
}

// CheckDurable reads the settings of a SQLite file back, as Open does.
func CheckDurable(ctx context.Context, dsn string) error {
	db, err := sqlx.Open("sqlite", dsn)
	if err != nil {
		return err
	}
	return errors.Join((&Store{w: db}).checkDurable(ctx), db.Close())
}

// Tails counts what is kept beside the journal: sessions, entries and bytes.
func (s *Store) Tails() (sessions, entries int, bytes int64) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for _, t := range s.hub.topics {
		if kept := t.tail.Load(); kept != nil {
			sessions, entries, bytes = sessions+1, entries+len(kept.entries), bytes+kept.bytes
		}
	}
	if bytes != s.hub.kept {
		panic(fmt.Sprintf("tails of %d bytes are counted as %d", bytes, s.hub.kept))
	}
	return sessions, entries, bytes
}

// Topics tells how many sessions somebody hears of.
func (s *Store) Topics() int {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return len(s.hub.topics)
}

// BoundTails bounds the bytes of all tails.
func (s *Store) BoundTails(most int64) { s.hub.most = most }

// LoseWakes does what a lost listener does.
func (s *Store) LoseWakes() { s.hub.everyone() }

// Bounds of one session's tail.
const (
	TailEvents = tailEvents
	TailSize   = tailSize
)

// Unhear does what a lost wake-up does: the hub has heard of a session up to a seq only.
func (s *Store) Unhear(session string, seq int64) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.hub.topics[session].heard.Store(seq)
}

// PollHeads looks for all followers, as is done every two seconds.
func (s *Store) PollHeads(ctx context.Context) error { return s.pollHeads(ctx) }

// AgeReading makes the last reading of the journal for followers older.
func (s *Store) AgeReading(d time.Duration) {
	r := *s.hub.read.Load()
	r.at = r.at.Add(-d)
	s.hub.read.Store(&r)
}

// PlanOfSameAsUnknown is how SQLite looks for what SameAsUnknown asks.
func PlanOfSameAsUnknown(ctx context.Context, s *Store) (string, error) {
	var plan struct {
		ID, Parent, NotUsed int
		Detail              string
	}
	err := s.r.GetContext(ctx, &plan, "EXPLAIN QUERY PLAN "+sameAsUnknown, "ses", "shell", "sum")
	return plan.Detail, err
}
