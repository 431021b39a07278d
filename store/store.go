package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"holdfast/journal"
)

// Sizes of the pools. Readers of SQLite are cheap; Postgres' are shared by many servers.
const (
	readers       = 8
	groupWriters  = 4 // Postgres: sharded by session
	sqliteWriters = 1
)

var (
	errBadConn = driver.ErrBadConn
	// errReplay undoes a method that met its own receipt; the method turns it into the first answer.
	errReplay = errors.New("replay")
)

// Options say which journal to open, and how.
type Options struct {
	URL     string   // a file's path, or postgres://…
	Secrets []string // never journalled (OWN-3)
	Logger  *slog.Logger
	// Admin opens the journal beside a running server: it must have this build's schema
	// already and is not migrated.
	Admin bool
	// Clock is the host's clock, which counts on SQLite; nil: time.Now.
	Clock func() time.Time
	// Faulted hears of an fsync that failed: the process must end and open the file anew.
	Faulted func(error)
}

// Store is the journal in SQL. Every exported method is one transaction, or one
// consistent read. It is safe for use by several goroutines.
type Store struct {
	d       dialect
	url     string
	w, r    *sqlx.DB
	writers []*writer
	hub     *hub
	masks   masks
	log     *slog.Logger
	fault   func(error)
	skew    atomic.Int64
	refused atomic.Bool // the last write was refused by disk or database
	full    atomic.Bool // likewise, for want of room

	prepared sync.Map // by text: the statements of one

	base     context.Context
	cancel   context.CancelCauseFunc
	stop     chan struct{} // closed: writers take no more
	stopped  chan struct{} // closed: writers have ended
	wg       sync.WaitGroup
	stopOnce sync.Once
}

// Open opens the journal, creates or migrates it unless it is opened for an
// administrative command, and starts its writers. Close stops them and waits.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	s := &Store{url: o.URL, log: o.Logger, masks: masks{secrets: o.Secrets, base: journal.NewCleaner(o.Secrets)}, fault: o.Faulted, stop: make(chan struct{}), stopped: make(chan struct{})}
	s.d = dialect{name: "sqlite", clock: o.Clock, skew: s.skew.Load}
	if IsPostgres(o.URL) {
		s.d.name = "postgres"
	}
	// The writers outlive the context that opens them: what is queued is written at Close.
	s.base, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if err := s.open(ctx, o); err != nil {
		s.cancel(err)
		return nil, errors.Join(err, s.closePools())
	}
	s.start()
	return s, nil
}

// IsPostgres reports whether the URL names a Postgres database.
func IsPostgres(u string) bool {
	return strings.HasPrefix(u, "postgres://") || strings.HasPrefix(u, "postgresql://")
}

func (s *Store) open(ctx context.Context, o Options) error {
	var err error
	if s.d.sqlite() {
		err = s.openSQLite(ctx, o)
	} else {
		err = s.openPostgres(ctx)
	}
	if err != nil {
		return err
	}
	if o.Admin {
		return s.checkSchema(ctx)
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	if s.d.sqlite() {
		return s.checkDurable(ctx)
	}
	return nil
}

func (s *Store) openSQLite(ctx context.Context, o Options) error {
	if err := checkFileSystem(o.URL, o.Admin); err != nil {
		return err
	}
	pragmas := url.Values{"_pragma": {
		"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "wal_autocheckpoint(1000)",
		"journal_size_limit(67108864)", "trusted_schema(0)", "temp_store(2)",
	}}
	dsn := sqliteURL(o.URL) + "?" + pragmas.Encode()
	w, err := sqlx.Open("sqlite", dsn+"&_txlock=immediate")
	if err != nil {
		return fmt.Errorf("open %s: %w", o.URL, err)
	}
	w.SetMaxOpenConns(1)
	s.w = w
	if err := w.PingContext(ctx); err != nil {
		return fmt.Errorf("open %s: %w", o.URL, err)
	}
	r, err := sqlx.Open("sqlite", dsn+"&_pragma=query_only(1)&_txlock=deferred")
	if err != nil {
		return fmt.Errorf("open %s for reading: %w", o.URL, err)
	}
	r.SetMaxOpenConns(readers)
	r.SetMaxIdleConns(readers)
	s.r = r
	return nil
}

// sqliteURL is a file's path as the driver takes it, parameters may follow.
func sqliteURL(path string) string {
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()
}

// connector makes each connection from the URL anew, so that a password file
// (PGPASSFILE, ?passfile=) is read again at each connect (STO-1).
type connector struct {
	url  string
	idle time.Duration // how long a transaction may wait for its client
}

// A writer that is frozen inside a transaction must not block a takeover for
// long (LEA-9). A reader holds no lock, and verify computes between its reads.
const (
	writerIdle = 5 * time.Second
	readerIdle = time.Minute
)

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	pc, err := pq.NewConnector(c.url)
	if err != nil {
		return nil, fmt.Errorf("read the database's address: %w", err)
	}
	conn, err := pc.Connect(ctx)
	if err != nil {
		return nil, err
	}
	ex, ok := conn.(driver.ExecerContext)
	if !ok {
		return nil, errors.New("the Postgres driver can't execute")
	}
	settings := fmt.Sprintf("SET lock_timeout = '1s'; SET idle_in_transaction_session_timeout = %d; SET statement_timeout = '30s'; SET synchronous_commit = on", c.idle.Milliseconds())
	if _, err := ex.ExecContext(ctx, settings, nil); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func (c connector) Driver() driver.Driver { return pq.Driver{} }

func (s *Store) openPostgres(ctx context.Context) error {
	s.w = sqlx.NewDb(sql.OpenDB(connector{s.url, writerIdle}), "postgres")
	s.w.SetMaxOpenConns(groupWriters + 1)
	s.r = sqlx.NewDb(sql.OpenDB(connector{s.url, readerIdle}), "postgres")
	s.r.SetMaxOpenConns(readers)
	s.r.SetMaxIdleConns(readers)
	s.r.SetConnMaxIdleTime(5 * time.Minute)
	if err := s.w.PingContext(ctx); err != nil {
		return fmt.Errorf("reach the database: %w", err)
	}
	return nil
}

// checkDurable reads back what a receipt's promise rests on and refuses to go on without it.
func (s *Store) checkDurable(ctx context.Context) error {
	var sync int
	var mode string
	if err := s.w.GetContext(ctx, &sync, "PRAGMA synchronous"); err != nil {
		return fmt.Errorf("read synchronous: %w", err)
	}
	if err := s.w.GetContext(ctx, &mode, "PRAGMA journal_mode"); err != nil {
		return fmt.Errorf("read journal_mode: %w", err)
	}
	if sync != 2 || mode != "wal" {
		return fmt.Errorf("the database isn't durable: journal_mode=%s, synchronous=%d; a receipt needs wal and 2 (FULL)", mode, sync)
	}
	return nil
}

// Durable says in words how commits are kept, for the line that a server prints.
func (s *Store) Durable() string {
	if s.d.sqlite() {
		return "WAL, synchronous=FULL"
	}
	return "Postgres, synchronous_commit=on"
}

func (s *Store) start() {
	n := sqliteWriters
	if !s.d.sqlite() {
		n = groupWriters
	}
	s.hub = newHub(!s.d.sqlite())
	for range n {
		s.writers = append(s.writers, newWriter(s))
	}
	var wg sync.WaitGroup
	for _, w := range s.writers {
		wg.Add(1)
		go w.run(&wg)
	}
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		wg.Wait()
		close(s.stopped)
	}()
	s.spawn("poll", s.poll)
	if !s.d.sqlite() {
		s.spawn("notify", s.notify)
		s.spawn("listen", s.listen)
	}
}

// Close writes what is queued, stops all goroutines of the store and closes its
// connections. Whoever calls a method afterwards hears unavailable.
func (s *Store) Close() error {
	s.stopOnce.Do(func() { close(s.stop) })
	<-s.stopped
	s.cancel(errors.New("store closed"))
	s.wg.Wait()
	return s.closePools()
}

func (s *Store) closePools() error {
	var errs []error
	s.prepared.Range(func(_, st any) bool {
		errs = append(errs, st.(*sqlx.Stmt).Close())
		return true
	})
	for _, db := range []*sqlx.DB{s.w, s.r} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// wrote notes that a write was taken.
func (s *Store) wrote() {
	s.refused.Store(false)
	s.full.Store(false)
}

// Full reports that the last write was refused for want of room: nothing is
// accepted until one is taken again, which the servers' own writes try all the time.
func (s *Store) Full() bool { return s.full.Load() }

// faulted reports errors that this process must not survive.
func (s *Store) faulted(err error) {
	s.refused.Store(unavailable(err))
	s.full.Store(NoRoom(err))
	if fsyncFailed(err) && s.fault != nil {
		s.fault(err)
	}
}

// Skew moves the store's clock, for tests.
func (s *Store) Skew(d time.Duration) { s.skew.Store(d.Milliseconds()) }

// NewID makes an id: a prefix and a sortable random part.
func NewID(prefix string) string {
	u, err := uuid.NewV7()
	if err != nil { // no random source: nothing can go on
		panic(err)
	}
	return prefix + "_" + strings.ReplaceAll(u.String(), "-", "")
}

// NewSecret makes 256 random bits as text.
func NewSecret() string { return rand.Text() + rand.Text() }

// reader is a snapshot that reads.
type reader struct {
	tx *sqlx.Tx
	d  *dialect
}

func (r reader) get(ctx context.Context, dest any, q string, args ...any) error {
	if err := r.tx.GetContext(ctx, dest, r.tx.Rebind(q), args...); err != nil {
		return fmt.Errorf("get %q: %w", journal.Cut(q, 60), err)
	}
	return nil
}

func (r reader) all(ctx context.Context, dest any, q string, args ...any) error {
	if err := r.tx.SelectContext(ctx, dest, r.tx.Rebind(q), args...); err != nil {
		return fmt.Errorf("select %q: %w", journal.Cut(q, 60), err)
	}
	return nil
}

func (r reader) dialect() *dialect { return r.d }

// read runs fn on one consistent snapshot (RDR-1). No network write may happen in it.
func (s *Store) read(ctx context.Context, fn func(q querier) error) error {
	opts := &sql.TxOptions{ReadOnly: true}
	if !s.d.sqlite() {
		opts.Isolation = sql.LevelRepeatableRead
	}
	t, err := s.r.BeginTxx(ctx, opts)
	if err != nil && unavailable(err) && ctx.Err() == nil {
		// Its connection may have ended since it was last used: nothing was asked on it yet.
		t, err = s.r.BeginTxx(ctx, opts)
	}
	if err != nil {
		return s.unread(fmt.Errorf("begin to read: %w", err))
	}
	err = fn(reader{t, &s.d})
	// Nothing was written: a failed rollback leaves nothing behind but a connection, which the pool replaces.
	if rerr := t.Rollback(); rerr != nil && !errors.Is(rerr, sql.ErrTxDone) && err == nil {
		err = rerr
	}
	return s.unread(err)
}

// unread turns the error of a read into one of the domain.
func (s *Store) unread(err error) error {
	select {
	case <-s.stop:
		return unread(err, true)
	default:
		return unread(err, false)
	}
}

// one reads one row by one statement, which is a snapshot by itself. It is
// prepared once for each connection: q is a constant. No row is sql.ErrNoRows.
func (s *Store) one(ctx context.Context, dest any, q string, args ...any) error {
	return s.prepare(ctx, q, func(st *sqlx.Stmt) error { return st.GetContext(ctx, dest, args...) })
}

// many is one for several rows.
func (s *Store) many(ctx context.Context, dest any, q string, args ...any) error {
	return s.prepare(ctx, q, func(st *sqlx.Stmt) error { return st.SelectContext(ctx, dest, args...) })
}

func (s *Store) prepare(ctx context.Context, q string, ask func(*sqlx.Stmt) error) error {
	try := func() error {
		st, err := s.statement(ctx, q)
		if err != nil {
			return err
		}
		return ask(st)
	}
	err := try()
	if err != nil && unavailable(err) && ctx.Err() == nil {
		err = try() // its connection may have ended since it was last used
	}
	if err != nil {
		return s.unread(fmt.Errorf("ask %q: %w", journal.Cut(q, 60), err))
	}
	return nil
}

func (s *Store) statement(ctx context.Context, q string) (*sqlx.Stmt, error) {
	if st, ok := s.prepared.Load(q); ok {
		return st.(*sqlx.Stmt), nil
	}
	st, err := s.r.PreparexContext(ctx, s.r.Rebind(q))
	if err != nil {
		return nil, err
	}
	if first, loaded := s.prepared.LoadOrStore(q, st); loaded { // somebody was faster
		return first.(*sqlx.Stmt), st.Close() //nolint:sqlclosecheck // this one is not used
	}
	return st, nil
}

// Now reads the clock that grants and expires leases, in Unix milliseconds.
func (s *Store) Now(ctx context.Context) (int64, error) {
	var now int64
	err := s.r.GetContext(ctx, &now, s.r.Rebind("SELECT "+s.d.now()), s.d.nowArg())
	if err != nil {
		return 0, s.unread(fmt.Errorf("read the clock: %w", err))
	}
	return now, nil
}

// Ping tells whether the journal can be read.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.Now(ctx)
	return err
}

// Ready tells whether work may be given to this journal: it can be read, and its
// last write was taken, or one of ours is now.
func (s *Store) Ready(ctx context.Context) error {
	if err := s.Ping(ctx); err != nil || !s.refused.Load() {
		return err
	}
	return s.write(ctx, "", func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, "INSERT INTO meta (key, value) VALUES ('writable', '1') ON CONFLICT (key) DO UPDATE SET value = excluded.value")
		return err
	})
}
