package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"holdfast/handlers"
	"holdfast/journal"
	"holdfast/store"
)

// openAdmin opens the journal beside a running server: no lock is taken and
// nothing is migrated. For a command that makes something, a journal that isn't
// there yet is made, which takes the lock that no server then holds; a command
// that only looks says that there is none.
func openAdmin(ctx context.Context, c *common, s streams, makes bool) (*store.Store, error) {
	database, err := c.databaseURL()
	if err != nil {
		return nil, err
	}
	o := store.Options{URL: database, Secrets: secretsOf(database, nil), Logger: c.logger(s.err), Admin: true}
	st, err := store.Open(ctx, o)
	switch missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrNoJournal); {
	case missing && makes:
		return makeJournal(ctx, c, o)
	case missing:
		return nil, fmt.Errorf("there is no journal at %s; name one with --database or --state", shown(database))
	case err != nil:
		return nil, fmt.Errorf("open the journal at %s: %w", shown(database), err)
	}
	return st, nil
}

// shown is a database's address without its password.
func shown(database string) string {
	u, err := url.Parse(database)
	if err != nil || !store.IsPostgres(database) {
		return database
	}
	if q := u.Query(); q.Has("password") { // the driver takes it there, too
		q.Set("password", "xxxxx")
		u.RawQuery = q.Encode()
	}
	return u.Redacted()
}

// makeJournal creates or migrates the journal while no server owns it.
func makeJournal(ctx context.Context, c *common, o store.Options) (*store.Store, error) {
	dir, err := c.stateDir()
	if err != nil {
		return nil, err
	}
	if !store.IsPostgres(o.URL) {
		lock, _, err := store.LockState(dir) // makes the folder, too
		if err != nil {
			return nil, err
		}
		defer release(o.Logger, lock)
		if lock, err = store.LockJournal(o.URL); err != nil {
			return nil, err
		}
		defer release(o.Logger, lock)
	}
	o.Admin = false
	return store.Open(ctx, o)
}

func release(logger *slog.Logger, l *store.Lock) {
	if err := l.Close(); err != nil {
		logger.Debug("release a lock", slog.Any("error", err))
	}
}

// with opens the journal for one administrative command that looks at it, or changes what is there.
func with(ctx context.Context, c *common, s streams, fn func(*store.Store) error) error {
	return withJournal(ctx, c, s, false, fn)
}

func withJournal(ctx context.Context, c *common, s streams, makes bool, fn func(*store.Store) error) (err error) {
	st, err := openAdmin(ctx, c, s, makes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	return plain(fn(st))
}

// notFound says of what isn't in the journal what it was, where it was looked for, and
// what to do. Any other error stays as it is.
func (c *common) notFound(err error, what, do string) error {
	if !journal.Is(err, journal.NotFound) {
		return err
	}
	database, derr := c.databaseURL()
	if derr != nil {
		return derr
	}
	return fmt.Errorf("there is no %s in the journal at %s, so nothing was done. %s", legible(what), shown(database), do)
}

const (
	listUsers  = "holdfast user list shows who is; --database or --state name another journal."
	listTokens = "holdfast token list shows which are; --database or --state name another journal."
	findID     = "A session's id ends the address of its page; --database or --state name another journal."
)

// plain shows only the message of a domain error: its code is for programs. Who
// runs a command looks after the journal, so why it can't be used is said as well.
func plain(err error) error {
	var je *journal.Error
	if !errors.As(err, &je) || je.Code == journal.Internal {
		return err
	}
	if je.Code == journal.Unavailable && je.Err != nil {
		again := "Run the command again once that has ended."
		if je.Slug() == "commit-unknown" {
			again = "Look at the list before you run the command again."
		}
		return fmt.Errorf("%s %s The cause: %w", je.Message, again, je.Err)
	}
	return errors.New(je.Message)
}

type migrateCmd struct{}

// Run brings the schema up to date. A journal that is served isn't touched.
func (*migrateCmd) Run(ctx context.Context, c *common, s streams) error {
	database, err := c.databaseURL()
	if err != nil {
		return err
	}
	o := store.Options{URL: database, Logger: c.logger(s.err), Admin: true}
	st, err := store.Open(ctx, o)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrNoJournal) || errors.Is(err, store.ErrSchema) {
		st, err = makeJournal(ctx, c, o)
	}
	if err != nil {
		return err
	}
	s.say("The journal is up to date.\n")
	return st.Close()
}

type userCmd struct {
	Add     userAddCmd     `cmd:"" help:"Add a user; prints a sign-in link that is valid once for 24 h, unless a password is given."`
	List    userListCmd    `cmd:"" help:"List the users."`
	Disable userDisableCmd `cmd:"" help:"End a user's sign-ins and tokens; the sessions stay."`
	Link    userLinkCmd    `cmd:"" help:"Print a new sign-in link, valid once for 24 h."`
}

// linkFlags say under which address a printed link is reached.
type linkFlags struct {
	Addr      string `help:"Where the server listens." default:"127.0.0.1:8080" env:"HOLDFAST_ADDR"`
	PublicURL string `help:"The address that browsers see, behind a proxy." env:"HOLDFAST_PUBLIC_URL" name:"public-url" placeholder:"URL"`
}

// Validate is called by kong before anything is done: a link that leads nowhere
// would be spent for nothing.
func (l linkFlags) Validate() error { return checkPublicURL(l.PublicURL) }

func (l linkFlags) print(s streams, code string) {
	s.say("%s/login?code=%s\n", baseURL(l.PublicURL, l.Addr), code)
}

// checkPublicURL refuses what is no address at whose root a browser can find a
// server: cookies, the check of origins and printed links are made of it.
func checkPublicURL(raw string) error {
	u, err := url.Parse(raw)
	if raw == "" || err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		strings.EqualFold(strings.TrimSuffix(raw, "/"), u.Scheme+"://"+u.Host) {
		return nil
	}
	return usageError{fmt.Sprintf("--public-url %q must be a scheme and a host, such as https://holdfast.example", raw)}
}

// baseURL is what printed links begin with.
func baseURL(public, addr string) string {
	if public != "" {
		return strings.TrimSuffix(public, "/")
	}
	return "http://" + addr
}

type userAddCmd struct {
	Email         string `arg:"" help:"The address that the user signs in with."`
	PasswordStdin bool   `help:"Read the password from the first line of standard input."`
	linkFlags
}

// Run adds a user.
func (u *userAddCmd) Run(ctx context.Context, c *common, s streams) error {
	hash := ""
	if u.PasswordStdin {
		line, err := bufio.NewReader(s.in).ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			return errors.New("standard input ended without a line that could be the password, so no user was added")
		}
		if err != nil && line == "" {
			return fmt.Errorf("read the password: %w", err)
		}
		if hash, err = hashPassword(strings.TrimRight(line, "\r\n")); err != nil {
			return err
		}
	}
	return withJournal(ctx, c, s, true, func(st *store.Store) error {
		user, err := st.AddUser(ctx, u.Email, hash)
		switch {
		case journal.Is(err, journal.Conflict):
			return fmt.Errorf("there is a user %s already, and nothing was changed. holdfast user link prints a new sign-in link", legible(u.Email))
		case journal.Is(err, journal.Unprocessable):
			return fmt.Errorf("%q is not an email address, so no user was added", u.Email)
		case err != nil:
			return err
		}
		if hash != "" {
			s.say("%s can sign in.\n", user.Email)
			return nil
		}
		code, err := st.UserLink(ctx, user.ID)
		if err == nil {
			u.print(s, code)
		}
		return err
	})
}

func hashPassword(p string) (string, error) {
	if utf8.RuneCountInString(p) < handlers.MinPassword || len(p) > handlers.MaxPassword {
		return "", fmt.Errorf("a password has at least %d characters and at most %d bytes", handlers.MinPassword, handlers.MaxPassword)
	}
	return handlers.HashPassword(p)
}

type userListCmd struct{}

// Run lists the users.
func (*userListCmd) Run(ctx context.Context, c *common, s streams) error {
	return with(ctx, c, s, func(st *store.Store) error {
		users, err := st.Users(ctx)
		if err != nil {
			return err
		}
		w := s.table("EMAIL", "ID", "SINCE", "STATE")
		for _, u := range users {
			state := "active"
			if u.Disabled {
				state = "disabled"
			}
			w.row(u.Email, u.ID, date(u.CreatedAt), state)
		}
		return w.flush()
	})
}

func date(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

type userDisableCmd struct {
	Email string `arg:"" help:"Whom to disable."`
}

// Run disables a user.
func (u *userDisableCmd) Run(ctx context.Context, c *common, s streams) error {
	return with(ctx, c, s, func(st *store.Store) error {
		return c.notFound(st.DisableUser(ctx, strings.ToLower(u.Email)), "user "+u.Email, listUsers)
	})
}

type userLinkCmd struct {
	Email string `arg:"" help:"Whose link."`
	linkFlags
}

// Run prints a new sign-in link.
func (u *userLinkCmd) Run(ctx context.Context, c *common, s streams) error {
	return with(ctx, c, s, func(st *store.Store) error {
		user, err := st.UserByEmail(ctx, strings.ToLower(u.Email))
		if err != nil {
			return c.notFound(err, "user "+u.Email, listUsers)
		}
		code, err := st.UserLink(ctx, user.ID)
		if err == nil {
			u.print(s, code)
		}
		return err
	})
}

type tokenCmd struct {
	New    tokenNewCmd    `cmd:"" help:"Make a token and print it once, alone on standard output."`
	List   tokenListCmd   `cmd:"" help:"List the tokens."`
	Revoke tokenRevokeCmd `cmd:"" help:"End a token."`
}

type tokenNewCmd struct {
	Email   string `arg:"" help:"Whose token."`
	Name    string `help:"What it is for." required:""`
	Scope   string `help:"What it may do: all; prompt, all but decide and reconcile; read." enum:"all,prompt,read" default:"all"`
	Expires string `help:"When it ends, such as 90d or 12h; 0: never." default:"90d"`
}

// Run makes a token.
func (t *tokenNewCmd) Run(ctx context.Context, c *common, s streams) error {
	life, err := days(t.Expires)
	if err != nil {
		return err
	}
	if _, err := store.TokenName(t.Name); err != nil {
		return usageError{"--name: " + plain(err).Error()}
	}
	return with(ctx, c, s, func(st *store.Store) error {
		user, err := st.UserByEmail(ctx, strings.ToLower(t.Email))
		if err != nil {
			return c.notFound(err, "user "+t.Email, listUsers)
		}
		_, secret, err := st.AddToken(ctx, user.ID, t.Name, store.Scope(t.Scope), life)
		if err == nil {
			s.say("%s\n", secret)
		}
		return err
	})
}

// days reads a duration that may be in days.
func days(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	if n, ok := strings.CutSuffix(text, "d"); ok {
		d, err := time.ParseDuration(n + "h")
		if err == nil && d > 0 && d < 4000*time.Hour {
			return 24 * d, nil
		}
	} else if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return d, nil
	}
	return 0, usageError{fmt.Sprintf("--expires %s is not a time such as 90d or 12h", text)}
}

type tokenListCmd struct{}

// Run lists the tokens.
func (*tokenListCmd) Run(ctx context.Context, c *common, s streams) error {
	return with(ctx, c, s, func(st *store.Store) error {
		tokens, err := st.Tokens(ctx)
		if err != nil {
			return err
		}
		w := s.table("ID", "EMAIL", "NAME", "SCOPE", "SINCE", "ENDS")
		for _, t := range tokens {
			ends := "never"
			if t.ExpiresAt.Valid {
				ends = date(t.ExpiresAt.Int64)
			}
			if t.RevokedAt.Valid {
				ends = "revoked " + date(t.RevokedAt.Int64)
			}
			w.row(t.ID, t.Email, t.Name, string(t.Scope), date(t.CreatedAt), ends)
		}
		return w.flush()
	})
}

type tokenRevokeCmd struct {
	ID string `arg:"" help:"The token's id, as token list shows it."`
}

// Run ends a token.
func (t *tokenRevokeCmd) Run(ctx context.Context, c *common, s streams) error {
	return with(ctx, c, s, func(st *store.Store) error {
		return c.notFound(st.RevokeToken(ctx, t.ID), "token "+t.ID, listTokens)
	})
}
