package store

import (
	"context"
	"database/sql"
	"errors"

	"holdfast/journal"
)

// Seen is the last entry of a session that its owner had on their screen, and
// when; Seq 0: none yet.
type Seen struct {
	Seq int64 `db:"seq"`
	At  int64 `db:"at"`
}

// MarkSeen notes that the owner has seen a session up to an entry. It only goes
// forward: a page that is behind another one takes nothing back. Codes:
// not_found; invalid if the session has no such entry yet; unavailable.
func (s *Store) MarkSeen(ctx context.Context, owner, sessionID string, seq int64) error {
	return s.write(ctx, sessionID, func(ctx context.Context, t *tx) error {
		last, _, err := head(ctx, t, owner, sessionID)
		if err != nil {
			return err
		}
		if seq < 1 || seq > last {
			return journal.Errorf(journal.Invalid, "This session has no entry #%d: its last one is #%d. Nothing was recorded.", seq, last).Typed("no-such-entry").With("last_seq", last)
		}
		d := t.dialect()
		_, err = t.exec(ctx, "INSERT INTO seen (owner_id, session_id, seq, at) VALUES (?, ?, ?, "+d.now()+") ON CONFLICT (owner_id, session_id) DO UPDATE SET seq = excluded.seq, at = excluded.at WHERE seen.seq <= excluded.seq",
			owner, sessionID, seq, d.nowArg())
		return err
	})
}

func seen(ctx context.Context, q querier, owner, sessionID string) (Seen, error) {
	var out Seen
	err := q.get(ctx, &out, "SELECT seq, at FROM seen WHERE owner_id = ? AND session_id = ?", owner, sessionID)
	if errors.Is(err, sql.ErrNoRows) {
		return Seen{}, nil
	}
	return out, err
}

// ChangedSince counts the owner's sessions that changed after a time, 100 at most.
func (s *Store) ChangedSince(ctx context.Context, owner string, since int64) (int, error) {
	var n int
	err := s.one(ctx, &n, "SELECT count(*) FROM (SELECT 1 FROM session WHERE owner_id = ? AND updated_at > ? LIMIT 100) changed", owner, since)
	return n, err
}
