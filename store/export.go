package store

import (
	"context"
	"strings"

	"holdfast/journal"
)

// EventsBetween gives the events of the owner's session after one seq and up to
// another, in order, at most limit of them: of the kinds alone, if any are named.
// The answer is the same however much is appended meanwhile. Code: not_found.
func (s *Store) EventsBetween(ctx context.Context, owner, sessionID string, after, through int64, kinds []journal.Kind, limit int) ([]journal.Event, error) {
	where, args := "session_id = ? AND seq > ? AND seq <= ?", []any{sessionID, after, through}
	if len(kinds) > 0 {
		where += " AND kind IN (?" + strings.Repeat(", ?", len(kinds)-1) + ")"
		for _, k := range kinds {
			args = append(args, string(k))
		}
	}
	args = append(args, min(max(limit, 1), MaxEvents))
	var out []journal.Event
	err := s.read(ctx, func(q querier) error {
		if _, _, err := head(ctx, q, owner, sessionID); err != nil {
			return err
		}
		var rows []eventRow
		if err := q.all(ctx, &rows, "SELECT "+eventColumns+" FROM event WHERE "+where+" ORDER BY seq LIMIT ?", args...); err != nil {
			return err
		}
		out = events(rows)
		return nil
	})
	return out, err
}

// OutputThrough counts what the owner's call had put out by a seq, and how much
// of it was dropped. A call that isn't there has put out nothing.
func (s *Store) OutputThrough(ctx context.Context, owner, callID string, through int64) (bytes, dropped int64, err error) {
	var row struct {
		Bytes   int64 `db:"bytes"`
		Dropped int64 `db:"dropped"`
	}
	err = s.read(ctx, func(q querier) error {
		return q.get(ctx, &row, "SELECT coalesce(max(o.byte_offset + o.bytes), 0) AS bytes, CAST(coalesce(sum(o.dropped), 0) AS BIGINT) AS dropped "+
			"FROM call_output o JOIN session s ON s.id = o.session_id WHERE o.call_id = ? AND o.seq <= ? AND s.owner_id = ?", callID, through, owner)
	})
	return row.Bytes, row.Dropped, err
}
