package store

import "context"

// SessionGroup is where a list puts a session: by what it needs, then by what it does.
type SessionGroup string

// The groups, in the order of a list that has those first that need their owner.
const (
	GroupAny     SessionGroup = ""
	GroupNeeds   SessionGroup = "needs"
	GroupRunning SessionGroup = "running"
	GroupReview  SessionGroup = "review"
	GroupEarlier SessionGroup = "earlier"
)

// sessionGroups are the groups by needsRank.
var sessionGroups = []SessionGroup{GroupNeeds, GroupRunning, GroupReview, GroupEarlier}

// SessionCounts tells how many of the owner's sessions are in each group.
func (s *Store) SessionCounts(ctx context.Context, owner string) (map[SessionGroup]int, error) {
	out := map[SessionGroup]int{}
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
			out[sessionGroups[r.Rank]] = r.N
		}
		return nil
	})
	return out, err
}
