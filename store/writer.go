package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"holdfast/journal"
)

// maxBatch bounds one group commit. A batch is what is queued, taken without
// waiting: an idle store commits at once, a busy one shares its fsync.
const maxBatch = 256

// writeTimeout bounds one batch. The context is the writer's own: a caller's
// that is cancelled would interrupt the statements of all others.
const writeTimeout = 30 * time.Second

// tx is one method's view of its writer's transaction. Statements are prepared
// once for the connection.
type tx struct {
	w      *writer
	conn   *sqlx.Conn
	events []journal.Event
	wakes  []Wake
	wrote  bool // a row was changed
}

// request is one method waiting for its turn in a batch.
type request struct {
	session string
	fn      func(context.Context, *tx) error
	done    chan error
	events  []journal.Event // that it has appended
	wakes   []Wake
	wrote   bool // it has changed something
	err     error
}

// writer owns one connection and commits what is queued in groups.
type writer struct {
	s     *Store
	queue chan *request
	conn  *sqlx.Conn
	stmts map[string]*sqlx.Stmt

	states states
}

func newWriter(s *Store) *writer {
	return &writer{s: s, queue: make(chan *request, maxBatch), stmts: map[string]*sqlx.Stmt{}, states: states{}}
}

// write runs fn as one transaction and answers after its commit. fn may run more
// than once (when its batch is rolled back for another's sake), so it assigns
// its results and never adds to them. The session decides which writer takes
// it; "" is for what belongs to none.
func (s *Store) write(ctx context.Context, session string, fn func(context.Context, *tx) error) error {
	r := &request{session: session, fn: fn, done: make(chan error, 1)}
	w := s.writers[int(hash32(session))%len(s.writers)]
	if ctx.Err() != nil { // below, chance would decide
		return ours(context.Cause(ctx))
	}
	select {
	case <-s.stop:
		return ours(sql.ErrConnDone)
	case <-ctx.Done():
		return ours(context.Cause(ctx))
	case w.queue <- r:
	}
	select {
	case err := <-r.done:
		return err
	case <-s.stopped:
	}
	select { // it may have been written just before the end
	case err := <-r.done:
		return err
	default:
		return ours(sql.ErrConnDone)
	}
}

func hash32(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h & 0x7fffffff
}

// run takes batches until the store stops. What is queued then is still written.
func (w *writer) run(wg *sync.WaitGroup) {
	defer wg.Done()
	defer w.drop()
	for {
		select {
		case r := <-w.queue:
			_ = w.commit(w.collect(r)) // all are answered
		case <-w.s.stop:
			for {
				select {
				case r := <-w.queue:
					_ = w.commit(w.collect(r)) // all are answered
				default:
					return
				}
			}
		}
	}
}

func (w *writer) collect(first *request) []*request {
	batch := []*request{first}
	for len(batch) < maxBatch {
		select {
		case r := <-w.queue:
			batch = append(batch, r)
			continue
		default:
		}
		break
	}
	// In one order in every process, else two batches deadlock on their sessions' rows.
	slices.SortStableFunc(batch, func(a, b *request) int { return cmp.Compare(a.session, b.session) })
	return batch
}

// commit writes a batch; if it fails as a whole, each of its requests by itself.
// It gives the error of a transaction that couldn't be opened, and nil else.
func (w *writer) commit(batch []*request) error {
	// What belongs to no session (a renewal) locks claims of many. On Postgres it
	// commits alone: held while the batch goes on to sessions' rows, its locks
	// would turn the order session, claim around, and two servers could deadlock.
	for !w.s.d.sqlite() && len(batch) > 1 && batch[0].session == "" {
		if err := w.commit(batch[:1]); err != nil {
			return w.unopened(batch[1:], err)
		}
		batch = batch[1:]
	}
	ctx, cancel := context.WithTimeout(w.s.base, writeTimeout)
	defer cancel()
	err := w.try(ctx, batch)
	var unknown *commitError
	var unopened *beginError
	switch {
	case err == nil:
		if slices.ContainsFunc(batch, func(r *request) bool { return r.wrote }) { // else it needed no room
			w.s.wrote()
		}
	case errors.As(err, &unknown):
		for _, r := range batch { // refusals too: they rest on what may not have been written
			r.err = unknownCommit(unknown.err)
		}
		w.s.faulted(unknown.err)
	case errors.As(err, &unopened):
		w.s.faulted(err)
		return w.unopened(batch, err)
	case len(batch) == 1:
		batch[0].err = ours(err)
		w.s.faulted(err)
	default:
		return w.commitEach(batch)
	}
	w.answer(batch)
	return nil
}

// commitEach commits each request by itself, so that the one that failed hurts no other.
func (w *writer) commitEach(batch []*request) error {
	for i := range batch {
		if err := w.commit(batch[i : i+1]); err != nil {
			return w.unopened(batch[i+1:], err)
		}
	}
	return nil
}

// unopened answers requests that nobody tried, because no transaction could be
// opened. It is no fault of one of them, and one by one each would wait as long
// for a database that is away.
func (w *writer) unopened(batch []*request, err error) error {
	for _, r := range batch {
		r.err = ours(err)
	}
	w.answer(batch)
	return err
}

func (w *writer) answer(batch []*request) {
	for _, r := range batch {
		if r.err == nil {
			w.s.hub.publish(r.events, r.wakes)
		}
		r.done <- r.err
	}
}

type commitError struct{ err error }

func (e *commitError) Error() string { return "commit: " + e.err.Error() }
func (e *commitError) Unwrap() error { return e.err }

type beginError struct{ err error }

func (e *beginError) Error() string { return "begin: " + e.err.Error() }
func (e *beginError) Unwrap() error { return e.err }

// try runs the batch in one transaction. A refusal undoes its own request only;
// any other error undoes the batch and is returned.
func (w *writer) try(ctx context.Context, batch []*request) (err error) {
	if err := w.begin(ctx); err != nil {
		return &beginError{err}
	}
	at := none
	if len(batch) == 1 {
		at = alone
	}
	for _, r := range batch {
		r.err, r.events, r.wakes, r.wrote = nil, nil, nil, false
		if at, err = w.one(ctx, r, at); err != nil {
			w.rollback()
			return err
		}
	}
	if len(batch) == 1 && batch[0].err != nil {
		w.rollback()
		return nil //nolint:nilerr // the request has its own error
	}
	if err := w.raw(ctx, "COMMIT"); err != nil {
		w.rollback()
		w.drop()
		return &commitError{err}
	}
	return nil
}

// savepoint is how the one savepoint of a batch stands between two requests.
type savepoint int

const (
	alone savepoint = iota // there is none: the transaction is one request's
	none                   // not made yet
	clean                  // nothing was written since
	used                   // the last request has written, and stays
)

// mark makes the savepoint of the next request. On Postgres both statements go
// in one message; SQLite keeps them prepared.
func (w *writer) mark(ctx context.Context, at savepoint) error {
	switch at {
	case none:
		return w.save(ctx, "SAVEPOINT m")
	case used:
		if !w.s.d.sqlite() {
			return w.raw(ctx, "RELEASE SAVEPOINT m; SAVEPOINT m")
		}
		if err := w.save(ctx, "RELEASE SAVEPOINT m"); err != nil {
			return err
		}
		return w.save(ctx, "SAVEPOINT m")
	case alone, clean:
	}
	return nil
}

func (w *writer) save(ctx context.Context, q string) error {
	if !w.s.d.sqlite() {
		return w.raw(ctx, q)
	}
	_, err := (&tx{w: w, conn: w.conn}).exec(ctx, q)
	return err
}

// one runs a request behind a savepoint, and tells how that stands then.
func (w *writer) one(ctx context.Context, r *request, at savepoint) (savepoint, error) {
	if err := w.mark(ctx, at); err != nil {
		return at, err
	}
	t := &tx{w: w, conn: w.conn}
	if err := w.guarded(ctx, r, t); err != nil {
		if !refusal(err) {
			return at, err
		}
		r.err = err
		if at == alone { // all is rolled back
			return alone, nil
		}
		return clean, w.raw(ctx, "ROLLBACK TO SAVEPOINT m")
	}
	r.events, r.wakes, r.wrote = t.events, t.wakes, t.wrote
	if at == alone {
		return alone, nil
	}
	return used, nil
}

// guarded turns a panic of one method into its error: the writer serves all others.
func (w *writer) guarded(ctx context.Context, r *request, t *tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &journal.Error{Code: journal.Internal, Message: "Internal error", Err: fmt.Errorf("panic in a transaction: %v", p)}
		}
	}()
	return r.fn(ctx, t)
}

// refusal reports errors that are the request's own.
func refusal(err error) bool {
	var je *journal.Error
	if errors.As(err, &je) {
		return true
	}
	return isConstraint(err) || errors.Is(err, errReplay)
}

// begin opens the transaction. A connection that was lost since the last one is
// made anew, once: nothing has been sent on it that could be done twice.
func (w *writer) begin(ctx context.Context) error {
	q := "BEGIN"
	if w.s.d.sqlite() {
		q = "BEGIN IMMEDIATE"
	}
	had := w.conn != nil
	for {
		if err := w.connect(ctx); err != nil {
			return err
		}
		err := w.raw(ctx, q)
		if err == nil {
			return nil
		}
		w.drop()
		if !had || ctx.Err() != nil {
			return err
		}
		had = false
	}
}

func (w *writer) connect(ctx context.Context) error {
	if w.conn != nil {
		return nil
	}
	c, err := w.s.w.Connx(ctx)
	if err != nil {
		return err
	}
	w.conn = c
	return nil
}

func (w *writer) raw(ctx context.Context, q string) error {
	_, err := w.conn.ExecContext(ctx, q)
	return err
}

// rollback uses a context of its own: the batch's may have ended.
func (w *writer) rollback() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.s.base), 5*time.Second)
	defer cancel()
	if err := w.raw(ctx, "ROLLBACK"); err != nil && !noTransaction(err) {
		w.drop()
	}
}

// drop gives the connection up: its transaction's state isn't known.
func (w *writer) drop() {
	if w.conn == nil {
		return
	}
	for _, st := range w.stmts {
		if err := st.Close(); err != nil {
			w.s.log.Debug("close statement", slog.Any("error", err))
		}
	}
	// ErrBadConn tells the pool to close the connection, not to hand it out again.
	if err := w.conn.Raw(func(any) error { return errBadConn }); err != nil && !errors.Is(err, errBadConn) {
		w.s.log.Debug("drop connection", slog.Any("error", err))
	}
	if err := w.conn.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
		w.s.log.Debug("close connection", slog.Any("error", err))
	}
	w.conn, w.stmts = nil, map[string]*sqlx.Stmt{}
}

func (t *tx) stmt(ctx context.Context, q string) (*sqlx.Stmt, error) {
	if st := t.w.stmts[q]; st != nil {
		return st, nil
	}
	st, err := t.conn.PreparexContext(ctx, t.conn.Rebind(q))
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", journal.Cut(q, 60), err)
	}
	t.w.stmts[q] = st
	return st, nil
}

// exec runs a statement and tells how many rows it changed.
func (t *tx) exec(ctx context.Context, q string, args ...any) (int64, error) {
	st, err := t.stmt(ctx, q)
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(ctx, args...)
	if err != nil {
		return 0, fmt.Errorf("exec %q: %w", journal.Cut(q, 60), err)
	}
	n, err := res.RowsAffected()
	t.wrote = t.wrote || n > 0
	return n, err
}

// get reads one row; no row is sql.ErrNoRows.
func (t *tx) get(ctx context.Context, dest any, q string, args ...any) error {
	st, err := t.stmt(ctx, q)
	if err != nil {
		return err
	}
	if err := st.GetContext(ctx, dest, args...); err != nil {
		return fmt.Errorf("get %q: %w", journal.Cut(q, 60), err)
	}
	return nil
}

// all reads all rows.
func (t *tx) all(ctx context.Context, dest any, q string, args ...any) error {
	st, err := t.stmt(ctx, q)
	if err != nil {
		return err
	}
	if err := st.SelectContext(ctx, dest, args...); err != nil {
		return fmt.Errorf("select %q: %w", journal.Cut(q, 60), err)
	}
	return nil
}

func (t *tx) dialect() *dialect { return &t.w.s.d }

// wake asks for a wake-up after the commit.
func (t *tx) wake(session string, seq int64, work bool) {
	t.wakes = append(t.wakes, Wake{Session: session, Seq: seq, Work: work})
}

// querier reads, inside a method's transaction or in a reader's snapshot.
type querier interface {
	get(ctx context.Context, dest any, q string, args ...any) error
	all(ctx context.Context, dest any, q string, args ...any) error
	dialect() *dialect
}
