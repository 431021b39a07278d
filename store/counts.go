package store

import (
	"context"

	"holdfast/journal"
)

// SessionCounts tells how many of the owner's sessions are in each group.
func (s *Store) SessionCounts(ctx context.Context, owner string) (map[journal.Group]int, error) {
	var out map[journal.Group]int
	err := s.read(ctx, func(q querier) (err error) {
		out, err = groupCounts(ctx, q, owner)
		return err
	})
	return out, err
}

func groupCounts(ctx context.Context, q querier, owner string) (map[journal.Group]int, error) {
	var rows []struct {
		Rank int `db:"r"`
		N    int `db:"n"`
	}
	err := q.all(ctx, &rows, "SELECT "+needsRank+" AS r, count(*) AS n FROM session s LEFT JOIN claim c ON c.session_id = s.id WHERE s.owner_id = ? GROUP BY 1", owner)
	out, groups := map[journal.Group]int{}, journal.Groups()
	for _, r := range rows {
		out[groups[r.Rank]] = r.N
	}
	return out, err
}

// SessionList is a page of the owner's sessions with what there is of them all, on
// one snapshot.
type SessionList struct {
	Sessions []Session
	Next     string                // the cursor of the next page, or ""
	Groups   map[journal.Group]int // as SessionCounts gives them
	Needs    map[journal.Needs]int // as NeedsCount gives them
	Now      int64
}

// SessionList reads it (RDR-1). Code: invalid (cursor).
func (s *Store) SessionList(ctx context.Context, owner string, f SessionQuery) (SessionList, error) {
	var out SessionList
	err := s.read(ctx, func(q querier) (err error) {
		d := q.dialect()
		if err := q.get(ctx, &out.Now, "SELECT "+d.now(), d.nowArg()); err != nil {
			return err
		}
		if out.Sessions, out.Next, err = sessionsOf(ctx, q, owner, f); err != nil {
			return err
		}
		if out.Groups, err = groupCounts(ctx, q, owner); err != nil {
			return err
		}
		out.Needs, err = needsCount(ctx, q, owner)
		return err
	})
	return out, err
}
