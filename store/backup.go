package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jmoiron/sqlx"

	"holdfast/journal"
)

// Backup writes a consistent copy of a SQLite journal to a file that isn't there
// yet, also while the journal is served, and gives its size. The copy appears
// under its name only when it is whole and on the disk; until then it grows
// beside it under another name, which is left behind if the process is killed.
//
// It is VACUUM INTO: one statement that reads one snapshot, so it neither waits
// for a server's writes nor makes them wait, and it ends, however much is
// written meanwhile. SQLite's online backup begins anew whenever another process
// has written between two of its steps, and a server writes all the time.
//
// Codes: conflict if the file is there, or its folder isn't; unsupported on Postgres.
func (s *Store) Backup(ctx context.Context, file string) (size int64, err error) {
	if !s.d.sqlite() {
		return 0, journal.Errorf(journal.Unsupported, "Only a SQLite journal is copied by this command.")
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = backupExists(file)
		}
		return 0, err
	}
	part, err := newPart(file)
	if err != nil {
		return 0, err
	}
	defer func() {
		if rerr := os.Remove(part); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}()
	if err := s.copyInto(ctx, part); err != nil {
		return 0, err
	}
	if size, err = syncFile(part); err != nil {
		return 0, err
	}
	if err := publish(part, file); err != nil {
		return 0, err
	}
	return size, syncDir(filepath.Dir(file))
}

func backupExists(file string) error {
	return journal.Errorf(journal.Conflict, "%s is there already, and is not overwritten. Name another file.", file).Typed("file-exists")
}

// newPart makes the empty file in which the copy grows: SQLite takes one that is
// empty, and leaves its mode as it is.
func newPart(file string) (string, error) {
	part := filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+"."+strings.ToLower(rand.Text()[:8])+".part")
	f, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return "", journal.Errorf(journal.Conflict, "There is no folder %s, so nothing was copied. Make it, or name another file.", filepath.Dir(file)).Typed("no-folder")
	}
	if err != nil {
		return "", fmt.Errorf("make the copy: %w", err)
	}
	return part, f.Close()
}

// copyInto uses a connection of its own: the writer's is the writer's, and the
// readers' may write nothing at all.
func (s *Store) copyInto(ctx context.Context, part string) (err error) {
	db, err := sqlx.Open("sqlite", sqliteURL(s.url)+"?_pragma=busy_timeout(5000)&_pragma=trusted_schema(0)&mode=ro")
	if err != nil {
		return fmt.Errorf("open %s: %w", s.url, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", part); err != nil {
		return fmt.Errorf("copy the journal: %w", err)
	}
	return nil
}

// syncFile makes a file's bytes durable: SQLite doesn't sync what it copies into.
func syncFile(path string) (size int64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, fmt.Errorf("sync the copy: %w", err)
	}
	err = f.Sync()
	info, serr := f.Stat()
	if serr == nil {
		size = info.Size()
	}
	if err = errors.Join(err, serr, f.Close()); err != nil {
		err = fmt.Errorf("sync the copy: %w", err)
	}
	return size, err
}

// publish gives a file its name, unless somebody has taken it meanwhile: a link
// is refused then, where a rename would overwrite. File systems without links
// are looked at once more, and renamed on.
func publish(part, file string) error {
	err := os.Link(part, file)
	if errors.Is(err, fs.ErrExist) {
		return backupExists(file)
	}
	if err == nil {
		return nil
	}
	if _, err := os.Lstat(file); err == nil {
		return backupExists(file)
	}
	if err := os.Rename(part, file); err != nil {
		return fmt.Errorf("give the copy its name: %w", err)
	}
	return nil
}
