package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"holdfast/journal"
)

// User is somebody who can sign in.
type User struct {
	ID           string `db:"id"`
	Email        string `db:"email"`
	PasswordHash string `db:"password_hash"` // empty: by link only
	Disabled     bool   `db:"disabled"`
	CreatedAt    int64  `db:"created_at"`
}

const userColumns = "id, email, password_hash, disabled = 1 AS disabled, created_at"

// Email is the one spelling of an address under which a user is found. Code: unprocessable.
func Email(s string) (string, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	local, domain, _ := strings.Cut(s, "@")
	odd := func(r rune) bool {
		return unicode.IsSpace(r) || hides(r) || strings.ContainsRune("<>\",;", r)
	}
	if local == "" || domain == "" || strings.Contains(domain, "@") || len(s) > 254 || strings.ContainsFunc(s, odd) {
		return "", journal.Errorf(journal.Unprocessable, "That is not an email address.").Typed("bad-email")
	}
	return s, nil
}

// hides tells of what can't be read in a list, or does something to who reads it.
// What was no UTF-8 has become the last one, wherever it was decoded.
func hides(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }

// TokenName is what a token may be called: one line that can be read. Code: unprocessable.
func TokenName(s string) (string, error) {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > 200 || strings.ContainsFunc(s, hides) {
		return "", journal.Errorf(journal.Unprocessable, "A token's name says in up to 200 bytes of one line what it is for.").Typed("bad-token-name")
	}
	return s, nil
}

// Users lists all users.
func (s *Store) Users(ctx context.Context) ([]User, error) {
	var out []User
	err := s.read(ctx, func(q querier) error {
		return q.all(ctx, &out, "SELECT "+userColumns+" FROM users ORDER BY created_at, id")
	})
	return out, err
}

// HasUsers tells whether anybody can sign in yet.
func (s *Store) HasUsers(ctx context.Context) (bool, error) {
	var n int
	err := s.read(ctx, func(q querier) error { return q.get(ctx, &n, "SELECT count(*) FROM users") })
	return n > 0, err
}

// UserByEmail finds a user. Code: not_found.
func (s *Store) UserByEmail(ctx context.Context, email string) (User, error) {
	return s.user(ctx, "email = ?", email)
}

// UserByID finds a user that isn't disabled. Code: not_found.
func (s *Store) UserByID(ctx context.Context, id string) (User, error) {
	return s.user(ctx, "id = ? AND disabled = 0", id)
}

func (s *Store) user(ctx context.Context, where string, arg string) (User, error) {
	var u User
	err := s.read(ctx, func(q querier) error {
		err := q.get(ctx, &u, "SELECT "+userColumns+" FROM users WHERE "+where, arg)
		if errors.Is(err, sql.ErrNoRows) {
			return noUser()
		}
		return err
	})
	return u, err
}

// AddUser makes a user. passwordHash may be empty: then only links sign in. Code: conflict if the address is taken.
func (s *Store) AddUser(ctx context.Context, email, passwordHash string) (User, error) {
	email, err := Email(email)
	if err != nil {
		return User{}, err
	}
	var u User
	err = s.write(ctx, "", func(ctx context.Context, t *tx) error {
		var err error
		u, err = t.addUser(ctx, email, passwordHash)
		return err
	})
	return u, err
}

func (t *tx) addUser(ctx context.Context, email, passwordHash string) (User, error) {
	d := t.dialect()
	var u User
	err := t.get(ctx, &u, "INSERT INTO users (id, email, password_hash, created_at) VALUES (?, ?, ?, "+d.now()+") ON CONFLICT (email) DO NOTHING RETURNING "+userColumns,
		NewID("usr"), email, passwordHash, d.nowArg())
	if errors.Is(err, sql.ErrNoRows) {
		return u, journal.Errorf(journal.Conflict, "There is a user with this address already.").Typed("email-taken")
	}
	return u, err
}

// FirstUser makes the first user with the setup code, in one transaction. Codes:
// gone if there is a user already, or the code was used or is another; unprocessable; conflict.
func (s *Store) FirstUser(ctx context.Context, code, email, passwordHash string) (User, error) {
	email, err := Email(email)
	if err != nil {
		return User{}, err
	}
	var u User
	err = s.write(ctx, "", func(ctx context.Context, t *tx) error {
		if err := t.spendLink(ctx, code, "user_id IS NULL"); err != nil {
			return err
		}
		var n int
		if err := t.get(ctx, &n, "SELECT count(*) FROM users"); err != nil {
			return err
		}
		if n > 0 {
			return journal.Errorf(journal.Gone, "There is a user already. Sign in, or have the operator run holdfast user link EMAIL.").Typed("setup-done")
		}
		var err error
		u, err = t.addUser(ctx, email, passwordHash)
		return err
	})
	return u, err
}

func (t *tx) spendLink(ctx context.Context, code, which string) error {
	d := t.dialect()
	n, err := t.exec(ctx, "UPDATE sign_in_link SET used_at = "+d.now()+" WHERE hash = ? AND used_at IS NULL AND expires_at > "+d.now()+" AND "+which,
		d.nowArg(), journal.Hash(code), d.nowArg())
	if err == nil && n != 1 {
		return journal.Errorf(journal.Gone, "This link was used already, or has ended. Ask for a new one: holdfast user link EMAIL.").Typed("link-ended")
	}
	return err
}

// SetupLink makes the code that the first start prints, replacing earlier ones
// that were not used. It is valid once.
func (s *Store) SetupLink(ctx context.Context) (code string, err error) {
	code = NewSecret()
	err = s.write(ctx, "", func(ctx context.Context, t *tx) error {
		if _, err := t.exec(ctx, "DELETE FROM sign_in_link WHERE user_id IS NULL"); err != nil {
			return err
		}
		return t.addLink(ctx, code, nil, 365*24*time.Hour)
	})
	return code, err
}

func (t *tx) addLink(ctx context.Context, code string, userID *string, life time.Duration) error {
	d := t.dialect()
	_, err := t.exec(ctx, "INSERT INTO sign_in_link (hash, user_id, created_at, expires_at) VALUES (?, ?, "+d.now()+", "+d.now()+" + ?)",
		journal.Hash(code), userID, d.nowArg(), d.nowArg(), life.Milliseconds())
	return err
}

// SetupCode tells whether a setup code can still be used.
func (s *Store) SetupCode(ctx context.Context, code string) error {
	var n, users int
	err := s.read(ctx, func(q querier) error {
		if err := q.get(ctx, &users, "SELECT count(*) FROM users"); err != nil {
			return err
		}
		return q.get(ctx, &n, "SELECT count(*) FROM sign_in_link WHERE hash = ? AND user_id IS NULL AND used_at IS NULL", journal.Hash(code))
	})
	switch {
	case err != nil || n > 0:
		return err
	case users > 0:
		return journal.Errorf(journal.Gone, "There is a user already. Sign in, or have the operator run holdfast user link EMAIL.").Typed("setup-done")
	}
	return journal.Errorf(journal.Gone, "This link was used already, or has ended. Start the server again to get a new one.").Typed("link-ended")
}

// UserLink makes a link that signs a user in once, within 24 hours. Codes:
// not_found, conflict if the user is disabled.
func (s *Store) UserLink(ctx context.Context, userID string) (code string, err error) {
	code = NewSecret()
	err = s.write(ctx, "", func(ctx context.Context, t *tx) error {
		if err := t.maySignIn(ctx, userID); err != nil {
			return err
		}
		return t.addLink(ctx, code, &userID, 24*time.Hour)
	})
	return code, err
}

// maySignIn refuses to make what could never sign in. Codes: not_found, conflict.
func (t *tx) maySignIn(ctx context.Context, userID string) error {
	var disabled bool
	err := t.get(ctx, &disabled, "SELECT disabled = 1 FROM users WHERE id = ?", userID)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return noUser()
	case err == nil && disabled:
		return journal.Errorf(journal.Conflict, "This user is disabled: a link or token could sign nobody in, so none was made.").Typed("user-disabled")
	}
	return err
}

func noUser() error {
	return journal.Errorf(journal.NotFound, "There is no such user.").Typed("no-such-user")
}

// SpendLink signs in by a link, once. Code: gone.
func (s *Store) SpendLink(ctx context.Context, code string) (User, error) {
	var u User
	err := s.write(ctx, "", func(ctx context.Context, t *tx) error {
		if err := t.spendLink(ctx, code, "user_id IS NOT NULL"); err != nil {
			return err
		}
		err := t.get(ctx, &u, "SELECT "+userColumns+" FROM users WHERE disabled = 0 AND id = (SELECT user_id FROM sign_in_link WHERE hash = ?)", journal.Hash(code))
		if errors.Is(err, sql.ErrNoRows) {
			return journal.Errorf(journal.Gone, "This account is disabled.").Typed("link-ended")
		}
		return err
	})
	return u, err
}

// SetPassword gives a user another password.
func (s *Store) SetPassword(ctx context.Context, userID, passwordHash string) error {
	return s.write(ctx, "", func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, "UPDATE users SET password_hash = ? WHERE id = ?", passwordHash, userID)
		return err
	})
}

// DisableUser ends a user's sign-ins and tokens; the sessions stay. Code: not_found.
func (s *Store) DisableUser(ctx context.Context, email string) error {
	return s.write(ctx, "", func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, "UPDATE users SET disabled = 1 WHERE email = ?", email)
		if err == nil && n == 0 {
			return noUser()
		}
		return err
	})
}

// Scope is what a token may do.
type Scope string

// The scopes of a token.
const (
	ScopeAll    Scope = "all"
	ScopePrompt Scope = "prompt" // all but decide and resolve
	ScopeRead   Scope = "read"
)

// Token is an API token; the token itself is only known to who holds it.
type Token struct {
	ID        string        `db:"id"`
	UserID    string        `db:"user_id"`
	Email     string        `db:"email"`
	Name      string        `db:"name"`
	Scope     Scope         `db:"scope"`
	CreatedAt int64         `db:"created_at"`
	ExpiresAt sql.NullInt64 `db:"expires_at"`
	UsedAt    sql.NullInt64 `db:"used_at"`
	RevokedAt sql.NullInt64 `db:"revoked_at"`
}

// AddToken makes a token for a user; secret is shown once and stored as its hash (OWN-3). life 0: it doesn't end.
// Codes: unprocessable (TokenName), not_found, conflict if the user is disabled.
func (s *Store) AddToken(ctx context.Context, userID, name string, scope Scope, life time.Duration) (t Token, secret string, err error) {
	if name, err = TokenName(name); err != nil {
		return t, "", err
	}
	secret = "hft_" + NewSecret()
	id := NewID("tok")
	err = s.write(ctx, "", func(ctx context.Context, tx *tx) error {
		if err := tx.maySignIn(ctx, userID); err != nil {
			return err
		}
		d := tx.dialect()
		var expires any
		if life > 0 {
			var now int64
			if err := tx.get(ctx, &now, "SELECT "+d.now(), d.nowArg()); err != nil {
				return err
			}
			expires = now + life.Milliseconds()
		}
		return tx.get(ctx, &t, "INSERT INTO token (id, user_id, hash, name, scope, created_at, expires_at) VALUES (?, ?, ?, ?, ?, "+d.now()+", ?) RETURNING id, user_id, '' AS email, name, scope, created_at, expires_at, used_at, revoked_at",
			id, userID, journal.Hash(secret), name, string(scope), d.nowArg(), expires)
	})
	return t, secret, err
}

// Tokens lists all tokens.
func (s *Store) Tokens(ctx context.Context) ([]Token, error) {
	var out []Token
	err := s.read(ctx, func(q querier) error {
		return q.all(ctx, &out, "SELECT t.id, t.user_id, u.email, t.name, t.scope, t.created_at, t.expires_at, t.used_at, t.revoked_at FROM token t JOIN users u ON u.id = t.user_id ORDER BY t.created_at, t.id")
	})
	return out, err
}

// RevokeToken ends a token. Code: not_found.
func (s *Store) RevokeToken(ctx context.Context, id string) error {
	return s.write(ctx, "", func(ctx context.Context, t *tx) error {
		d := t.dialect()
		n, err := t.exec(ctx, "UPDATE token SET revoked_at = coalesce(revoked_at, "+d.now()+") WHERE id = ?", d.nowArg(), id)
		if err == nil && n == 0 {
			return journal.Errorf(journal.NotFound, "There is no such token.").Typed("no-such-token")
		}
		return err
	})
}

// TokenUser finds who holds a token that is valid now. Every request of a
// program asks it, so it is one prepared statement. Code: unauthenticated.
func (s *Store) TokenUser(ctx context.Context, secret string) (User, Token, error) {
	var row struct {
		Token
		User User `db:"u"`
	}
	err := s.one(ctx, &row, "SELECT t.id, t.user_id, u.email, t.name, t.scope, t.created_at, t.expires_at, t.used_at, t.revoked_at, "+
		`u.id AS "u.id", u.email AS "u.email", u.password_hash AS "u.password_hash", u.disabled = 1 AS "u.disabled", u.created_at AS "u.created_at" `+
		"FROM token t JOIN users u ON u.id = t.user_id WHERE t.hash = ? AND t.revoked_at IS NULL AND u.disabled = 0 AND (t.expires_at IS NULL OR t.expires_at > "+s.d.now()+")",
		journal.Hash(secret), s.d.nowArg())
	if errors.Is(err, sql.ErrNoRows) {
		return User{}, Token{}, journal.Errorf(journal.Unauthenticated, "This token is not valid, or has ended.").Typed("bad-token")
	}
	return row.User, row.Token, err
}
