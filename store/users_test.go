package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// everything reads all values of the tables that hold secrets' hashes, as one text.
func everything(t *testing.T, raw *sql.DB, tables ...string) string {
	t.Helper()
	var b strings.Builder
	for _, table := range tables {
		rows, err := raw.QueryContext(t.Context(), "SELECT * FROM "+table)
		must(t, err)
		cols, err := rows.Columns()
		must(t, err)
		for rows.Next() {
			vals := make([]any, len(cols))
			for i := range vals {
				vals[i] = new(any)
			}
			must(t, rows.Scan(vals...))
			for _, v := range vals {
				switch v := (*v.(*any)).(type) {
				case []byte:
					b.Write(v)
				default:
					_, _ = fmt.Fprint(&b, v)
				}
				b.WriteByte('\n')
			}
		}
		must(t, rows.Err())
		must(t, rows.Close())
	}
	return b.String()
}

// proves OWN-3
func TestUsers_FirstUserAndLinks(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		raw := db.SQL(t)
		if has, err := s.HasUsers(t.Context()); err != nil || has {
			t.Fatalf("%v, %v", has, err)
		}
		stale, err := s.SetupLink(t.Context())
		must(t, err)
		code, err := s.SetupLink(t.Context()) // replaces the one before
		must(t, err)
		storetest.WantCode(t, s.SetupCode(t.Context(), stale), journal.Gone)
		must(t, s.SetupCode(t.Context(), code))
		_, err = s.FirstUser(t.Context(), stale, "a@example.org", "h")
		storetest.WantCode(t, err, journal.Gone)
		_, err = s.FirstUser(t.Context(), code, "no address", "h")
		storetest.WantCode(t, err, journal.Unprocessable)
		errs := together(6, func(i int) error {
			_, err := s.FirstUser(t.Context(), code, fmt.Sprintf("%d@example.org", i), "h")
			return err
		})
		made := 0
		for _, err := range errs {
			if err == nil {
				made++
				continue
			}
			storetest.WantCode(t, err, journal.Gone)
		}
		if made != 1 {
			t.Fatalf("%d first users", made)
		}
		storetest.WantCode(t, s.SetupCode(t.Context(), code), journal.Gone)
		again, err := s.SetupLink(t.Context())
		must(t, err)
		_, err = s.FirstUser(t.Context(), again, "late@example.org", "h")
		storetest.WantSlug(t, err, "setup-done")
		must(t, s.SetupCode(t.Context(), again)) // refused, so not spent

		users, err := s.Users(t.Context())
		must(t, err)
		link, err := s.UserLink(t.Context(), users[0].ID)
		must(t, err)
		if text := everything(t, raw, "sign_in_link"); strings.Contains(text, link) || strings.Contains(text, again) || !strings.Contains(text, journal.Hash(link)) {
			t.Error("links are stored as they are")
		}
		won := 0
		for _, err := range together(6, func(int) error { _, err := s.SpendLink(t.Context(), link); return err }) {
			if err == nil {
				won++
			} else {
				storetest.WantCode(t, err, journal.Gone)
			}
		}
		if won != 1 {
			t.Errorf("a link signed in %d times", won)
		}
		late, err := s.UserLink(t.Context(), users[0].ID)
		must(t, err)
		s.Skew(25 * time.Hour)
		_, err = s.SpendLink(t.Context(), late)
		storetest.WantCode(t, err, journal.Gone)
		_, err = s.SpendLink(t.Context(), again) // a setup code is no link
		storetest.WantCode(t, err, journal.Gone)
	})
}

func TestUsers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		u, err := s.AddUser(t.Context(), " Jane@Example.ORG ", "hash")
		must(t, err)
		if u.Email != "jane@example.org" || u.PasswordHash != "hash" || u.Disabled || u.CreatedAt == 0 {
			t.Errorf("got %+v", u)
		}
		_, err = s.AddUser(t.Context(), "jane@example.org", "")
		storetest.WantSlug(t, err, "email-taken")
		must(t, s.SetPassword(t.Context(), u.ID, "other"))
		got, err := s.UserByEmail(t.Context(), "jane@example.org")
		must(t, err)
		if got.PasswordHash != "other" || got.ID != u.ID {
			t.Errorf("got %+v", got)
		}
		_, err = s.UserByEmail(t.Context(), "x@example.org")
		storetest.WantCode(t, err, journal.NotFound)
		link, err := s.UserLink(t.Context(), u.ID)
		must(t, err)
		_, secret, err := s.AddToken(t.Context(), u.ID, "ci", store.ScopeAll, 0)
		must(t, err)

		must(t, s.DisableUser(t.Context(), u.Email))
		storetest.WantCode(t, s.DisableUser(t.Context(), "x@example.org"), journal.NotFound)
		_, err = s.UserByID(t.Context(), u.ID)
		storetest.WantCode(t, err, journal.NotFound)
		_, err = s.UserLink(t.Context(), u.ID)
		storetest.WantSlug(t, err, "user-disabled")
		_, _, err = s.AddToken(t.Context(), u.ID, "late", store.ScopeAll, 0)
		storetest.WantSlug(t, err, "user-disabled")
		for _, name := range []string{"", " ", "two\nlines", "\x1b[2J", "turned \u202e", "not UTF-8 \xff", strings.Repeat("x", 201)} {
			_, _, err = s.AddToken(t.Context(), u.ID, name, store.ScopeAll, 0)
			storetest.WantSlug(t, err, "bad-token-name")
		}
		_, _, err = s.AddToken(t.Context(), "usr_0", "nobody's", store.ScopeAll, 0)
		storetest.WantSlug(t, err, "no-such-user")
		if tokens, err := s.Tokens(t.Context()); err != nil || len(tokens) != 1 {
			t.Errorf("%d tokens, %v", len(tokens), err)
		}
		_, err = s.SpendLink(t.Context(), link)
		storetest.WantCode(t, err, journal.Gone)
		_, _, err = s.TokenUser(t.Context(), secret)
		storetest.WantCode(t, err, journal.Unauthenticated)
	})
}

// proves OWN-3
func TestTokens(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		u := storetest.MustUser(t, s)
		forever, one, err := s.AddToken(t.Context(), u.ID, "ci", store.ScopePrompt, 0)
		must(t, err)
		short, two, err := s.AddToken(t.Context(), u.ID, "laptop", store.ScopeRead, time.Hour)
		must(t, err)
		if forever.ExpiresAt.Valid || short.ExpiresAt.Int64 != short.CreatedAt+time.Hour.Milliseconds() && short.ExpiresAt.Int64-short.CreatedAt > time.Hour.Milliseconds() {
			t.Errorf("got %+v and %+v", forever, short)
		}
		if text := everything(t, db.SQL(t), "token", "users", "meta"); strings.Contains(text, one) || !strings.Contains(text, journal.Hash(one)) {
			t.Error("tokens are stored as they are")
		}
		got, tk, err := s.TokenUser(t.Context(), two)
		must(t, err)
		if got.ID != u.ID || tk.Scope != store.ScopeRead || tk.Email != u.Email || tk.ID != short.ID {
			t.Errorf("got %+v, %+v", got, tk)
		}
		for _, bad := range []string{"", "hft_x", one + "x", journal.Hash(one)} {
			_, _, err := s.TokenUser(t.Context(), bad)
			storetest.WantCode(t, err, journal.Unauthenticated)
		}
		s.Skew(2 * time.Hour)
		_, _, err = s.TokenUser(t.Context(), two)
		storetest.WantCode(t, err, journal.Unauthenticated)
		_, _, err = s.TokenUser(t.Context(), one)
		must(t, err)
		for range 2 {
			must(t, s.RevokeToken(t.Context(), forever.ID))
		}
		storetest.WantCode(t, s.RevokeToken(t.Context(), "tok_none"), journal.NotFound)
		_, _, err = s.TokenUser(t.Context(), one)
		storetest.WantCode(t, err, journal.Unauthenticated)
		list, err := s.Tokens(t.Context())
		must(t, err)
		if len(list) != 2 || list[0].Name != "ci" || !list[0].RevokedAt.Valid || list[1].Email != u.Email {
			t.Errorf("got %+v", list)
		}
	})
}

func TestWebSessions(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		web := s.WebSessions()
		ctx := context.Background()
		now := time.Now()
		must(t, web.CommitCtx(ctx, "one", []byte("a"), now.Add(time.Hour)))
		must(t, web.CommitCtx(ctx, "one", []byte{0, 255}, now.Add(2*time.Hour)))
		must(t, web.Commit("two", []byte("b"), now.Add(time.Hour)))
		data, found, err := web.FindCtx(ctx, "one")
		if err != nil || !found || string(data) != "\x00\xff" {
			t.Errorf("got %q, %v, %v", data, found, err)
		}
		if _, found, err := web.Find("none"); err != nil || found {
			t.Errorf("%v, %v", found, err)
		}
		s.Skew(90 * time.Minute)
		if _, found, err := web.FindCtx(ctx, "two"); err != nil || found {
			t.Errorf("one that expired: %v, %v", found, err)
		}
		must(t, web.Delete("one"))
		s.Skew(0)
		for _, token := range []string{"one", "two"} {
			if _, found, err := web.FindCtx(ctx, token); err != nil || (found && token == "one") {
				t.Errorf("%s: %v, %v", token, found, err)
			}
		}
	})
}
