package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/lib/pq"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"holdfast/journal"
)

// dialect holds all that differs between SQLite and Postgres.
type dialect struct {
	name  string // "sqlite" or "postgres"; the folder of its migrations
	clock func() time.Time
	skew  func() int64 // milliseconds added to the clock, for tests
}

func (d *dialect) sqlite() bool { return d.name == "sqlite" }

// now is the expression for the clock that grants and expires leases, in Unix
// milliseconds (LEA-5): the host's on SQLite, the server's on Postgres. It has
// one placeholder, for nowArg.
func (d *dialect) now() string {
	if d.sqlite() {
		return "CAST(? AS INTEGER)"
	}
	// clock_timestamp, not now: now is when the transaction began, old after a wait for a lock.
	return "((extract(epoch FROM clock_timestamp()) * 1000)::bigint + ?::bigint)"
}

func (d *dialect) nowArg() int64 {
	if d.sqlite() {
		return d.clock().UnixMilli() + d.skew()
	}
	return d.skew()
}

// lock is what makes a SELECT take the row's lock; SQLite's writer has the whole file.
func (d *dialect) lock() string {
	if d.sqlite() {
		return ""
	}
	return " FOR NO KEY UPDATE"
}

// lockOrSkip is lock for the sweeper: a row that is locked belongs to somebody who writes, so is alive.
func (d *dialect) lockOrSkip() string {
	if d.sqlite() {
		return ""
	}
	return " FOR NO KEY UPDATE SKIP LOCKED"
}

// indexed makes SQLite use an index that it would not choose without statistics:
// a partial one whose condition stands in the query. Postgres chooses by itself.
func (d *dialect) indexed(name string) string {
	if d.sqlite() {
		return " INDEXED BY " + name
	}
	return ""
}

// number is a whole number in a column of JSON. Neither argument comes from outside.
func (d *dialect) number(column, field string) string {
	if d.sqlite() {
		return "CAST(json_extract(" + column + ", '$." + field + "') AS INTEGER)"
	}
	return "((" + column + "::json ->> '" + field + "')::bigint)"
}

// isConstraint reports any violated constraint: the fault of one request, not of its batch.
func isConstraint(err error) bool {
	var pe *pq.Error
	if errors.As(err, &pe) {
		return pe.Code.Class() == "23"
	}
	var se *sqlite.Error
	if errors.As(err, &se) {
		return se.Code()&0xff == sqlite3.SQLITE_CONSTRAINT
	}
	return false
}

// fsyncFailed reports the one error after which the file must be opened anew:
// an fsync that failed is never repeated, since the kernel may have dropped the pages.
func fsyncFailed(err error) bool {
	var se *sqlite.Error
	return errors.As(err, &se) && (se.Code() == sqlite3.SQLITE_IOERR_FSYNC || se.Code() == sqlite3.SQLITE_IOERR_DIR_FSYNC)
}

// noTransaction reports that a ROLLBACK found nothing to undo: SQLite undoes a
// transaction by itself when the disk is full. The connection is good.
func noTransaction(err error) bool {
	var se *sqlite.Error
	return errors.As(err, &se) && se.Code() == sqlite3.SQLITE_ERROR
}

// NoRoom reports errors that mean: the disk takes no more. SQLite says of a file
// that may not grow only that it couldn't be written.
func NoRoom(err error) bool {
	var pe *pq.Error
	if errors.As(err, &pe) {
		return pe.Code == "53100"
	}
	var se *sqlite.Error
	if errors.As(err, &se) {
		switch se.Code() {
		case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE:
			return true
		}
		return false
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// unavailable reports errors that mean: the journal can't be used now, though it may later.
func unavailable(err error) bool {
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return true
	}
	var pe *pq.Error
	if errors.As(err, &pe) {
		switch pe.Code.Class() {
		case "08", "28", "40", "53", "55", "57", "58", "25": // connection, sign-in (a password that ended), rollback, resources, locks, operator, system, transaction state
			return true
		}
		return false
	}
	var se *sqlite.Error
	if errors.As(err, &se) {
		switch se.Code() & 0xff {
		case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM,
			sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
			return true
		}
		return false
	}
	// What is neither of ours came from the network below the driver.
	var ne net.Error
	return errors.As(err, &ne) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// ours turns a driver's error of a write into one of the domain; it and unread
// are the only places that do.
func ours(err error) error {
	if isOurs(err) || !unavailable(err) {
		return err
	}
	return &journal.Error{Code: journal.Unavailable, Type: "journal-unavailable", Err: err, Message: "The journal can't be written just now. " +
		"What was accepted before is kept, and reading goes on working."}
}

// unread is ours for a read, which had nothing to record. A pool that was closed
// has no error of its own in database/sql, so closed says so.
func unread(err error, closed bool) error {
	if isOurs(err) || errors.Is(err, sql.ErrNoRows) || !closed && !unavailable(err) {
		return err
	}
	return &journal.Error{Code: journal.Unavailable, Type: "journal-unavailable", Err: err, Message: "The journal can't be read just now. " +
		"What was accepted before is kept."}
}

func isOurs(err error) bool {
	var je *journal.Error
	return err == nil || errors.As(err, &je)
}

// unknownCommit says nothing of keys, which not all have: who asked is told what
// settles it where that is known (ADM-9).
func unknownCommit(err error) error {
	return &journal.Error{Code: journal.Unavailable, Type: "commit-unknown", Err: err, Message: "It isn't known whether this was recorded: " +
		"the answer to the commit was lost."}
}

// like escapes s for LIKE ... ESCAPE '\'.
func like(s string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s) + "%"
}
