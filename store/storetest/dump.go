package storetest

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// Contains tells whether a text stands anywhere in the database, as it is: on SQLite in
// the bytes of its files, on Postgres in any column of any row.
func (db *DB) Contains(t testing.TB, text string) bool {
	t.Helper()
	if db.Name == "sqlite" {
		for _, path := range []string{db.URL, db.URL + "-wal"} {
			raw, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if bytes.Contains(raw, []byte(text)) {
				return true
			}
		}
		return false
	}
	raw := db.SQL(t)
	for _, table := range tables {
		found, err := rowContains(t, raw, table, text)
		if err != nil {
			t.Fatalf("read %s: %v", table, err)
		}
		if found {
			return true
		}
	}
	return false
}

func rowContains(t testing.TB, raw *sql.DB, table, text string) (found bool, err error) {
	t.Helper()
	rows, err := raw.QueryContext(context.WithoutCancel(t.Context()), "SELECT x::text FROM "+table+" x")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var row string
		if err := rows.Scan(&row); err != nil {
			return false, err
		}
		found = found || strings.Contains(row, text) || strings.Contains(row, hex.EncodeToString([]byte(text)))
	}
	return found, rows.Err()
}
