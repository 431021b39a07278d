package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"holdfast/migrations"
)

func (s *Store) provider() (*goose.Provider, error) {
	tree, err := fs.Sub(migrations.FS, s.d.name)
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	if s.d.sqlite() {
		return goose.NewProvider(goose.DialectSQLite3, s.w.DB, tree)
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300)) // each second, for five minutes
	if err != nil {
		return nil, fmt.Errorf("make the migration lock: %w", err)
	}
	return goose.NewProvider(goose.DialectPostgres, s.w.DB, tree, goose.WithSessionLocker(locker))
}

// migrate brings the schema up to date, and refuses one that is newer. Several
// processes may try at once: a lock lets one do it, the file's beside SQLite,
// the session's in Postgres. Where nothing is to be done, nothing is locked.
func (s *Store) migrate(ctx context.Context) error {
	if s.checkSchema(ctx) == nil {
		return nil
	}
	if s.d.sqlite() {
		l := flock.New(s.url + ".migrate")
		if err := l.Lock(); err != nil {
			return fmt.Errorf("lock the migration: %w", err)
		}
		defer func() {
			if err := l.Unlock(); err != nil {
				s.log.Warn("unlock the migration", slog.Any("error", err))
			}
		}()
	}
	p, err := s.provider()
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate the journal: %w", err)
	}
	if s.d.sqlite() {
		if err := syncDir(filepath.Dir(s.url)); err != nil {
			return err
		}
	}
	return s.checkSchema(ctx)
}

// ErrSchema says that a journal has another schema than this build's.
var ErrSchema = errors.New("the journal has another schema version than this build of holdfast; use the build that serves it, or run holdfast migrate while no server runs")

// ErrNoJournal says that the database holds no journal at all.
var ErrNoJournal = errors.New("there is no journal in this database yet")

// checkSchema refuses a journal whose schema isn't this build's.
func (s *Store) checkSchema(ctx context.Context) error {
	var have sql.NullInt64
	if err := s.r.GetContext(ctx, &have, "SELECT max(version_id) FROM goose_db_version WHERE "+s.isApplied()); err != nil {
		return fmt.Errorf("%w (%w)", ErrNoJournal, err)
	}
	p, err := s.provider()
	if err != nil {
		return err
	}
	sources := p.ListSources()
	if want := sources[len(sources)-1].Version; have.Int64 != want {
		return fmt.Errorf("%w: it has %d, this build %d", ErrSchema, have.Int64, want)
	}
	return nil
}

func (s *Store) isApplied() string {
	if s.d.sqlite() {
		return "is_applied = 1"
	}
	return "is_applied"
}

// syncDir makes a new file's name durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open %s: %w", dir, err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// checkFileSystem refuses a file that isn't there for an administrative command, and network file systems.
func checkFileSystem(path string, mustExist bool) error {
	if _, err := os.Stat(path); err != nil {
		if mustExist || !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("open the journal: %w", err)
		}
	}
	if name := networkFileSystem(filepath.Dir(path)); name != "" {
		return fmt.Errorf("the journal %s lies on a network file system (%s), whose locks and fsync can't be relied on; put it on a local disk, or use Postgres", path, name)
	}
	return nil
}
