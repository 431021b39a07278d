package store

import (
	"context"

	"holdfast/journal"
)

// SessionCounts tells how many of the owner's sessions are in each group.
func (s *Store) SessionCounts(ctx context.Context, owner string) (map[journal.Group]int, error) {
	out, groups := map[journal.Group]int{}, journal.Groups()
	err := s.read(ctx, func(q querier) error {
		clear(out)
		var rows []struct {
			Rank int `db:"r"`
			N    int `db:"n"`
		}
		if err := q.all(ctx, &rows, "SELECT "+needsRank+" AS r, count(*) AS n FROM session s LEFT JOIN claim c ON c.session_id = s.id WHERE s.owner_id = ? GROUP BY 1", owner); err != nil {
			return err
		}
		for _, r := range rows {
			out[groups[r.Rank]] = r.N
		}
		return nil
	})
	return out, err
}
