package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// WebSessions keeps signed-in browsers for scs: the context-aware face of its
// stores. The token is hashed by scs before it comes here. Reads use the reader
// pool, so that they don't wait behind a run's commits.
type WebSessions struct{ s *Store }

// WebSessions gives the store of signed-in browsers.
func (s *Store) WebSessions() WebSessions { return WebSessions{s} }

// FindCtx reads the data of a session that hasn't expired.
func (w WebSessions) FindCtx(ctx context.Context, token string) (data []byte, found bool, err error) {
	err = w.s.read(ctx, func(q querier) error {
		d := q.dialect()
		err := q.get(ctx, &data, "SELECT data FROM web_session WHERE token = ? AND expires_at > "+d.now(), token, d.nowArg())
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		found = err == nil
		return err
	})
	return data, found, err
}

// CommitCtx writes a session.
func (w WebSessions) CommitCtx(ctx context.Context, token string, data []byte, expiry time.Time) error {
	return w.s.write(ctx, "", func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, "INSERT INTO web_session (token, data, expires_at) VALUES (?, ?, ?) ON CONFLICT (token) DO UPDATE SET data = excluded.data, expires_at = excluded.expires_at",
			token, data, expiry.UnixMilli())
		return err
	})
}

// DeleteCtx ends a session, and clears away those that have expired.
func (w WebSessions) DeleteCtx(ctx context.Context, token string) error {
	return w.s.write(ctx, "", func(ctx context.Context, t *tx) error {
		d := t.dialect()
		_, err := t.exec(ctx, "DELETE FROM web_session WHERE token = ? OR expires_at <= "+d.now(), token, d.nowArg())
		return err
	})
}

// Find is the older face of FindCtx, which scs demands; nothing calls it.
func (w WebSessions) Find(token string) ([]byte, bool, error) {
	return w.FindCtx(w.s.base, token)
}

// Commit is the older face of CommitCtx.
func (w WebSessions) Commit(token string, data []byte, expiry time.Time) error {
	return w.CommitCtx(w.s.base, token, data, expiry)
}

// Delete is the older face of DeleteCtx.
func (w WebSessions) Delete(token string) error { return w.DeleteCtx(w.s.base, token) }
