package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	_ "github.com/lib/pq"  // the drivers that the names below mean
	_ "modernc.org/sqlite" // likewise
)

// engine is one of the two databases.
type engine string

const (
	sqlite   engine = "sqlite"
	postgres engine = "postgres"
)

// database is one that was made for a side of a measurement.
type database struct {
	engine engine
	url    string
	drop   func(context.Context) error
}

// newDatabase makes an empty one.
func (b *bench) newDatabase(ctx context.Context, e engine) (*database, error) {
	name := "bench_" + strings.ToLower(rand.Text())
	if e == sqlite {
		return &database{e, filepath.Join(b.dir, name+".db"), func(context.Context) error { return nil }}, nil
	}
	admin := func(ctx context.Context, q string) error {
		db, err := sql.Open("postgres", b.postgres)
		if err != nil {
			return err
		}
		defer func() { _ = db.Close() }() // it was only asked
		if _, err := db.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
		return nil
	}
	u, err := url.Parse(b.postgres)
	if err != nil {
		return nil, fmt.Errorf("read TEST_POSTGRES_URL: %w", err)
	}
	u.Path = "/" + name
	d := &database{e, u.String(), func(ctx context.Context) error {
		return admin(context.WithoutCancel(ctx), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	}}
	return d, admin(ctx, "CREATE DATABASE "+name)
}

func postgresVersion(ctx context.Context, url string) (string, error) {
	db, err := sql.Open("postgres", url)
	if err != nil {
		return "", err
	}
	defer func() { _ = db.Close() }() // it was only asked
	var version, fsync, commit string
	err = db.QueryRowContext(ctx, "SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit')").Scan(&version, &fsync, &commit)
	if err != nil {
		return "", fmt.Errorf("ask the server: %w", err)
	}
	return fmt.Sprintf("%s, fsync=%s, synchronous_commit=%s", version, fsync, commit), nil
}

// sqliteDSN has the pragmas that the store sets on its writer's connection.
func sqliteDSN(path string) string {
	pragmas := url.Values{"_pragma": {
		"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "wal_autocheckpoint(1000)",
		"journal_size_limit(67108864)", "trusted_schema(0)", "temp_store(2)",
	}}
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + pragmas.Encode() + "&_txlock=immediate"
}

// postgresSettings are those of the store's connections.
const postgresSettings = "SET lock_timeout = '1s'; SET idle_in_transaction_session_timeout = '5s'; SET statement_timeout = '30s'; SET synchronous_commit = on"
