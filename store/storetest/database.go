package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "github.com/lib/pq"  // the driver that the names below mean
	_ "modernc.org/sqlite" // likewise

	"holdfast/store"
)

// PostgresURL is the environment variable that names a server on which
// databases may be made: a superuser's URL.
const PostgresURL = "TEST_POSTGRES_URL"

// DB is one test's database: with the schema, and without any row.
type DB struct {
	Name string // "sqlite" or "postgres"
	URL  string // what store.Options take
}

// Each runs body on each database, as parallel subtests named sqlite and
// postgres, with a store that is closed and checked at the end.
func Each(t *testing.T, body func(t *testing.T, s *store.Store)) {
	t.Helper()
	EachDB(t, func(t *testing.T, db *DB) {
		body(t, db.Open(t))
	})
}

// EachDB is Each for tests that open stores themselves: several on one
// database, one after the other, or with options of their own.
func EachDB(t *testing.T, body func(t *testing.T, db *DB)) {
	t.Helper()
	for _, name := range Databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body(t, New(t, name))
		})
	}
}

// Databases names those that this run tests.
func Databases() []string {
	if os.Getenv(PostgresURL) == "" {
		return []string{"sqlite"}
	}
	return []string{"sqlite", "postgres"}
}

// New makes a fresh database, which ends with the test.
func New(t testing.TB, name string) *DB {
	t.Helper()
	if name == "sqlite" {
		db := &DB{Name: name, URL: filepath.Join(t.TempDir(), "journal.db")}
		if err := os.WriteFile(db.URL, migrated(t), 0o600); err != nil {
			t.Fatalf("make a database: %v", err)
		}
		return db
	}
	return &DB{Name: name, URL: takeSlot(t)}
}

// Empty is New for tests of migrations: the database has no schema. It takes
// seconds on Postgres.
func Empty(t testing.TB, name string) *DB {
	t.Helper()
	if name == "sqlite" {
		return &DB{Name: name, URL: filepath.Join(t.TempDir(), "journal.db")}
	}
	return &DB{Name: name, URL: emptyPostgres(t)}
}

var (
	templateOnce sync.Once
	template     []byte
)

// migrated gives the bytes of a file that has the schema and nothing else.
func migrated(t testing.TB) []byte {
	t.Helper()
	templateOnce.Do(func() {
		path := filepath.Join(t.TempDir(), "template.db")
		s, err := store.Open(t.Context(), store.Options{URL: path})
		if err != nil {
			return
		}
		if s.Close() == nil { // the last connection writes the log back into the file
			template, _ = os.ReadFile(path)
		}
	})
	if len(template) == 0 {
		t.Fatal("make a database: no schema")
	}
	return template
}

// Open opens a store on the database. When the test ends, CheckInvariants is
// run, and the store closed; a test may close it earlier.
func (db *DB) Open(t testing.TB, with ...func(*store.Options)) *store.Store {
	t.Helper()
	s := db.OpenUnchecked(t, with...)
	t.Cleanup(func() {
		if s.Ping(context.WithoutCancel(t.Context())) == nil {
			CheckInvariants(t, s)
			return
		}
		again, err := store.Open(context.WithoutCancel(t.Context()), store.Options{URL: db.URL, Admin: true})
		if err != nil {
			t.Errorf("open the journal again: %v", err)
			return
		}
		CheckInvariants(t, again)
		if err := again.Close(); err != nil {
			t.Errorf("close the journal: %v", err)
		}
	})
	return s
}

// OpenUnchecked is Open for tests that damage the journal on purpose.
func (db *DB) OpenUnchecked(t testing.TB, with ...func(*store.Options)) *store.Store {
	t.Helper()
	o := store.Options{URL: db.URL}
	for _, f := range with {
		f(&o)
	}
	s, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("open the journal: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the journal: %v", err)
		}
	})
	return s
}

// SQL opens the database from outside of the store, to look at its tables or
// to damage them. Placeholders are the database's own.
func (db *DB) SQL(t testing.TB) *sql.DB {
	t.Helper()
	driver, dsn := "postgres", db.URL
	if db.Name == "sqlite" {
		driver, dsn = "sqlite", "file:"+db.URL+"?_pragma=busy_timeout(5000)"
	}
	raw, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatalf("open %s: %v", db.Name, err)
	}
	t.Cleanup(func() {
		if err := raw.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return raw
}

// MustExec changes the database from outside. ? stands for each argument.
func (db *DB) MustExec(t testing.TB, raw *sql.DB, query string, args ...any) int64 {
	t.Helper()
	res, err := raw.ExecContext(context.WithoutCancel(t.Context()), db.Rebind(query), args...)
	if err != nil {
		t.Fatalf("exec %s: %v", query, err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		t.Fatalf("exec %s: %v", query, err)
	}
	return n
}

// Count reads one number from outside. ? stands for each argument.
func (db *DB) Count(t testing.TB, raw *sql.DB, query string, args ...any) int64 {
	t.Helper()
	var n int64
	if err := raw.QueryRowContext(context.WithoutCancel(t.Context()), db.Rebind(query), args...).Scan(&n); err != nil {
		t.Fatalf("query %s: %v", query, err)
	}
	return n
}

// Rebind turns each ? into the database's own placeholder.
func (db *DB) Rebind(query string) string {
	if db.Name == "sqlite" {
		return query
	}
	var b strings.Builder
	n := 0
	for _, r := range query {
		if r != '?' {
			b.WriteRune(r)
			continue
		}
		n++
		fmt.Fprintf(&b, "$%d", n)
	}
	return b.String()
}

// tables are all that the journal's schema has, but for goose's.
var tables = []string{
	"meta", "users", "sign_in_link", "token", "web_session", "worker", "session", "event", "blob", "receipt", "claim", "unsent", "seen", "preference",
	"input", "message", "call", "call_output", "request", "attempt", "recovery", "spool",
	"agent_process", "agent_frame", "agent_ask", "agent_offers", "credential",
}

// RowCounts counts the rows of every table: equal before and after a refusal.
func (db *DB) RowCounts(t testing.TB, raw *sql.DB) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for _, name := range tables {
		out[name] = db.Count(t, raw, "SELECT count(*) FROM "+name)
	}
	return out
}
