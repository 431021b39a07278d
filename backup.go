package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/views/components"
)

type backupCmd struct {
	File string `arg:"" help:"Where to put the copy. It must not be there yet."`
}

// Run copies a SQLite journal, also while it is served. Of a Postgres one it
// says who can.
func (b *backupCmd) Run(ctx context.Context, c *common, s streams) error {
	database, err := c.databaseURL()
	if err != nil {
		return err
	}
	if store.IsPostgres(database) {
		return usageError{"this journal is in Postgres, which has tools of its own for that:\n\n\t" + dumpCommand(database, b.File) +
			"\n\nThe password comes from PGPASSFILE or PGPASSWORD; pg_restore reads the file back."}
	}
	// What has been copied so far is removed when somebody gives up waiting.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = with(ctx, c, s, func(st *store.Store) error {
		size, err := st.Backup(ctx, b.File)
		if journal.Is(err, journal.Conflict) {
			return usageError{plain(err).Error()}
		}
		if err == nil {
			s.say("%s: %s, whole and on the disk. To check it: holdfast verify --database %s\n", b.File, components.Bytes(size), quoteShell(b.File))
		}
		return err
	})
	if ctx.Err() != nil && err != nil {
		return fmt.Errorf("given up by a signal; nothing was left behind: %w", err)
	}
	return err
}

// dumpCommand is what copies a Postgres journal consistently, while it is served.
func dumpCommand(database, file string) string {
	if u, err := url.Parse(database); err == nil {
		if u.User != nil {
			u.User = url.User(u.User.Username())
		}
		q := u.Query()
		q.Del("password")
		u.RawQuery = q.Encode()
		database = u.String()
	} else {
		database = "postgres://…"
	}
	return "pg_dump --format=custom --no-owner --file=" + quoteShell(file) + " --dbname=" + quoteShell(database)
}

// quoteShell is one word of a command that somebody may paste.
func quoteShell(s string) string {
	plain := func(r rune) bool { return strings.ContainsRune("/._-", r) || unicode.IsLetter(r) || unicode.IsDigit(r) }
	if s != "" && strings.TrimFunc(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
