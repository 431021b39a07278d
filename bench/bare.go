package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
)

// The store's own numbers: how much a group commit takes at most, and how many
// connections write.
const (
	maxBatch        = 256
	postgresWriters = 4
)

// bare is group commit with nothing around it: each connection takes what is
// queued, without waiting for more, and writes it in one transaction. There is
// no savepoint, and an error ends the measurement.
type bare struct {
	engine engine
	db     *sql.DB
	conns  []*bareConn
	wg     sync.WaitGroup
}

type bareConn struct {
	engine engine
	conn   *sql.Conn
	queue  chan *bareWrite
	stmts  map[string]*sql.Stmt
}

type bareWrite struct {
	fn   func(context.Context, *bareConn) error
	done chan error
}

func openBare(ctx context.Context, d *database) (*bare, error) {
	b := &bare{engine: d.engine}
	dsn, n := d.url, postgresWriters
	if d.engine == sqlite {
		dsn, n = sqliteDSN(d.url), 1
	}
	var err error
	if b.db, err = sql.Open(string(d.engine), dsn); err != nil {
		return nil, fmt.Errorf("open for the bare loop: %w", err)
	}
	b.db.SetMaxOpenConns(n)
	for range n {
		c := &bareConn{engine: d.engine, queue: make(chan *bareWrite, maxBatch), stmts: map[string]*sql.Stmt{}}
		if c.conn, err = b.db.Conn(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("connect the bare loop: %w", err), b.close())
		}
		b.conns = append(b.conns, c)
		if err := c.check(ctx); err != nil {
			return nil, errors.Join(err, b.close())
		}
	}
	for _, c := range b.conns {
		b.wg.Add(1)
		go func() {
			defer b.wg.Done()
			c.run(ctx)
		}()
	}
	return b, nil
}

// check reads back that this side keeps the promise that the other one keeps.
func (c *bareConn) check(ctx context.Context) error {
	if c.engine == postgres {
		_, err := c.conn.ExecContext(ctx, postgresSettings)
		return err
	}
	var sync, mode, keys string
	err := c.conn.QueryRowContext(ctx, "SELECT (SELECT synchronous FROM pragma_synchronous), (SELECT journal_mode FROM pragma_journal_mode), (SELECT foreign_keys FROM pragma_foreign_keys)").Scan(&sync, &mode, &keys)
	if err == nil && (sync != "2" || mode != "wal" || keys != "1") {
		err = fmt.Errorf("the bare loop isn't durable: synchronous=%s, journal_mode=%s, foreign_keys=%s", sync, mode, keys)
	}
	return err
}

// close ends the loops. Nobody may call do any more.
func (b *bare) close() error {
	for _, c := range b.conns {
		close(c.queue)
	}
	b.wg.Wait()
	return b.db.Close()
}

// do has fn written by the connection of a session, and returns once it is committed.
func (b *bare) do(session string, fn func(context.Context, *bareConn) error) error {
	h := fnv.New32a()
	_, _ = h.Write([]byte(session)) // never fails
	w := &bareWrite{fn, make(chan error, 1)}
	b.conns[int(h.Sum32()&0x7fffffff)%len(b.conns)].queue <- w
	return <-w.done
}

func (c *bareConn) run(ctx context.Context) {
	for first := range c.queue {
		batch := []*bareWrite{first}
	more:
		for len(batch) < maxBatch {
			select {
			case w, ok := <-c.queue:
				if !ok {
					break more
				}
				batch = append(batch, w)
			default:
				break more
			}
		}
		err := c.commit(ctx, batch)
		for _, w := range batch {
			w.done <- err
		}
	}
}

func (c *bareConn) commit(ctx context.Context, batch []*bareWrite) error {
	begin := "BEGIN"
	if c.engine == sqlite {
		begin = "BEGIN IMMEDIATE"
	}
	if _, err := c.conn.ExecContext(ctx, begin); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	for _, w := range batch {
		if err := w.fn(ctx, c); err != nil {
			_, undo := c.conn.ExecContext(ctx, "ROLLBACK")
			return errors.Join(err, undo)
		}
	}
	if _, err := c.conn.ExecContext(ctx, "COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// stmt prepares a statement once for the connection.
func (c *bareConn) stmt(ctx context.Context, q string) (*sql.Stmt, error) {
	if st := c.stmts[q]; st != nil {
		return st, nil
	}
	text := q
	if c.engine == postgres {
		text = numbered(q)
	}
	st, err := c.conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", q, err)
	}
	c.stmts[q] = st
	return st, nil
}

// numbered turns ? into $1, $2, …; no statement here has one in a literal.
func numbered(q string) string {
	var out strings.Builder
	n := 0
	for _, r := range q {
		if r == '?' {
			n++
			out.WriteString("$" + strconv.Itoa(n))
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

// one runs a statement that must change one row.
func (c *bareConn) one(ctx context.Context, q string, args ...any) error {
	st, err := c.stmt(ctx, q) //nolint:sqlclosecheck // kept for the next one, and closed with its connection
	if err != nil {
		return err
	}
	res, err := st.ExecContext(ctx, args...)
	if err != nil {
		return fmt.Errorf("exec %q: %w", q, err)
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("exec %q changed %d rows: %w", q, n, err)
	}
	return nil
}

// next runs the statement that locks a session and gives out a seq.
func (c *bareConn) next(ctx context.Context, q string, args ...any) (seq int64, err error) {
	st, err := c.stmt(ctx, q) //nolint:sqlclosecheck // kept for the next one, and closed with its connection
	if err != nil {
		return 0, err
	}
	if err = st.QueryRowContext(ctx, args...).Scan(&seq); err != nil {
		err = fmt.Errorf("query %q: %w", q, err)
	}
	return seq, err
}
