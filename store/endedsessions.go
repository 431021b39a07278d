package store

import (
	"context"
	"database/sql"
	"errors"
)

// EndedSessions reads signed-in browsers whose time is over and that were not
// cleared away yet. Nobody is signed in by it: it tells who comes back what ended.
type EndedSessions struct{ WebSessions }

// EndedSessions gives the store of browsers that were signed in.
func (s *Store) EndedSessions() EndedSessions { return EndedSessions{s.WebSessions()} }

// FindCtx reads the data of a session that has expired.
func (w EndedSessions) FindCtx(ctx context.Context, token string) (data []byte, found bool, err error) {
	err = w.s.read(ctx, func(q querier) error {
		d := q.dialect()
		err := q.get(ctx, &data, "SELECT data FROM web_session WHERE token = ? AND expires_at <= "+d.now(), token, d.nowArg())
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		found = err == nil
		return err
	})
	return data, found, err
}

// Find is the older face of FindCtx, which scs demands; nothing calls it.
func (w EndedSessions) Find(token string) ([]byte, bool, error) {
	return w.FindCtx(w.s.base, token)
}
