package storetest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"holdfast/migrations"
)

// Making and dropping a Postgres database costs seconds, emptying one
// milliseconds. So databases are kept as slots, named after the schema and a
// number, and used again by later tests, also of other packages. Who uses a
// slot holds its advisory lock, which ends with the process.

// pool is what this process knows of the server.
type pool struct {
	mu     sync.Mutex
	admin  *sql.DB
	conn   *sql.Conn // holds the slots' locks; for life
	schema string
	free   []int
	next   int
}

var slots pool

const maxSlots = 64

// takeSlot gives the URL of an empty database, until the test ends.
func takeSlot(t testing.TB) string {
	t.Helper()
	// The test's own context ends before its cleanups run, and the pool outlives the test.
	ctx := context.WithoutCancel(t.Context())
	n, err := slots.take(ctx)
	if err != nil {
		t.Fatalf("make a database: %v", err)
	}
	t.Cleanup(func() { slots.give(n) })
	name := slots.name(n)
	if err := emptied(ctx, name); err != nil {
		t.Fatalf("empty the database %s: %v", name, err)
	}
	return urlOf(name)
}

func (p *pool) name(n int) string { return fmt.Sprintf("holdfast_test_%s_%d", p.schema, n) }

func (p *pool) give(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, n)
}

func (p *pool) take(ctx context.Context) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil {
		if err := p.connect(ctx); err != nil {
			return 0, err
		}
	}
	if len(p.free) > 0 {
		n := p.free[len(p.free)-1]
		p.free = p.free[:len(p.free)-1]
		return n, nil
	}
	for ; p.next < maxSlots; p.next++ {
		var mine bool
		if err := p.conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock(hashtext($1))", p.name(p.next)).Scan(&mine); err != nil {
			return 0, err
		}
		if mine {
			n := p.next
			p.next++
			return n, p.ensure(ctx, p.name(n))
		}
	}
	return 0, fmt.Errorf("all %d slots are in use", maxSlots)
}

func (p *pool) connect(ctx context.Context) error {
	h := sha256.New()
	err := fs.WalkDir(migrations.FS, "postgres", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := migrations.FS.ReadFile(path)
		h.Write(b)
		return err
	})
	if err != nil {
		return err
	}
	p.schema = hex.EncodeToString(h.Sum(nil))[:8]
	if p.admin, err = sql.Open("postgres", os.Getenv(PostgresURL)); err != nil {
		return err
	}
	p.conn, err = p.admin.Conn(ctx)
	return err
}

func (p *pool) ensure(ctx context.Context, name string) error {
	var n int
	if err := p.conn.QueryRowContext(ctx, "SELECT count(*) FROM pg_database WHERE datname = $1", name).Scan(&n); err != nil || n == 1 {
		return err
	}
	_, err := p.conn.ExecContext(ctx, "CREATE DATABASE "+name)
	return err
}

// emptied removes whatever an earlier test left behind.
func emptied(ctx context.Context, name string) (err error) {
	db, err := sql.Open("postgres", urlOf(name))
	if err != nil {
		return err
	}
	defer func() {
		if cerr := db.Close(); err == nil {
			err = cerr
		}
	}()
	if _, err := db.ExecContext(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()", name); err != nil {
		return err
	}
	var have int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public' AND tablename = 'event'").Scan(&have); err != nil || have == 0 {
		return err // new: the first store that opens it makes the schema
	}
	_, err = db.ExecContext(ctx, "TRUNCATE "+strings.Join(tables, ", "))
	return err
}

func urlOf(name string) string {
	u, err := url.Parse(os.Getenv(PostgresURL))
	if err != nil {
		return ""
	}
	u.Path = "/" + name
	return u.String()
}

func emptyPostgres(t testing.TB) string {
	t.Helper()
	admin, err := sql.Open("postgres", os.Getenv(PostgresURL))
	if err != nil {
		t.Fatalf("open %s: %v", PostgresURL, err)
	}
	name := "holdfast_test_" + strings.ToLower(rand.Text()[:16])
	ctx := context.WithoutCancel(t.Context())
	if _, err := admin.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
		t.Fatalf("make a database: %v", err)
	}
	t.Cleanup(func() {
		if _, err := admin.ExecContext(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("drop the database %s: %v", name, err)
		}
		if err := admin.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return urlOf(name)
}
