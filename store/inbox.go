package store

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"holdfast/journal"
)

// MaxInbox bounds each kind of thing in an inbox. Those that wait longest are in it.
const MaxInbox = 100

// Inbox is all that waits for an owner over all sessions, on one snapshot, each
// kind oldest first and at most MaxInbox of it.
type Inbox struct {
	Decisions  []*journal.Request
	Asked      map[string]int // how many are pending, by call, where not all of them are in Decisions
	Reconciles []Unresolved
	Missing    []Session // what blocks them must come back
	Ready      []Session // to be looked at
	Count      InboxCount
	Needs      map[journal.Needs]int // sessions by what they need, as NeedsCount gives them
	Sessions   map[string]Session    // of the decisions and reconciles
	Running    int                   // sessions of the group that runs
	Latest     int64                 // when the last entry of those was made
	Now        int64
}

// InboxCount tells how much there is of each kind, listed or not.
type InboxCount struct{ Decisions, Reconciles, Missing, Ready int }

// Open is how much there is to answer.
func (c InboxCount) Open() int { return c.Decisions + c.Reconciles + c.Missing }

// Unresolved is a call or an attempt whose outcome a person must tell (CAL-6).
type Unresolved struct {
	Call      *journal.Call // nil: an attempt
	AttemptID string
	SessionID string
	Since     int64
}

const pendingRequests = "state = 'pending' AND session_id IN (SELECT id FROM session WHERE owner_id = ?)"

// Inbox reads it.
func (s *Store) Inbox(ctx context.Context, owner string) (Inbox, error) {
	var out Inbox
	err := s.read(ctx, func(q querier) (err error) {
		out = Inbox{Sessions: map[string]Session{}}
		d := q.dialect()
		if err := q.get(ctx, &out.Now, "SELECT "+d.now(), d.nowArg()); err != nil {
			return err
		}
		if out.Decisions, err = requestsWhere(ctx, q, pendingRequests+" ORDER BY asked_at, id LIMIT ?", owner, MaxInbox); err != nil {
			return err
		}
		if out.Reconciles, err = unresolved(ctx, q, owner); err != nil {
			return err
		}
		since := d.number("s.state", "base_since")
		if out.Missing, err = sessionsWhere(ctx, q, "s.owner_id = ? AND s.needs = 'blocked' ORDER BY "+since+", s.id LIMIT ?", owner, MaxInbox); err != nil {
			return err
		}
		if out.Ready, err = sessionsWhere(ctx, q, "s.owner_id = ? AND s.needs = 'review' ORDER BY "+since+", s.id LIMIT ?", owner, MaxInbox); err != nil {
			return err
		}
		if err := out.counts(ctx, q, owner); err != nil {
			return err
		}
		return out.sessions(ctx, q, owner)
	})
	return out, err
}

const (
	// Only sessions that have something unknown are looked at: they are few, and their calls may be many.
	unknownCalls    = "state = 'unknown' AND resolution IS NULL AND session_id IN (SELECT id FROM session WHERE owner_id = ? AND base = 'uncertain')"
	unknownAttempts = "FROM attempt a JOIN session s ON s.id = a.session_id WHERE s.owner_id = ? AND s.base = 'uncertain' AND a.state = 'unknown' AND a.resolution = ''"
)

// unresolved reads what is to be reconciled. An attempt waits since its session does.
func unresolved(ctx context.Context, q querier, owner string) ([]Unresolved, error) {
	calls, err := callsWhere(ctx, q, unknownCalls+" ORDER BY ended_at, id LIMIT ?", owner, MaxInbox)
	if err != nil {
		return nil, err
	}
	var attempts []struct {
		ID      string `db:"id"`
		Session string `db:"session_id"`
		Since   int64  `db:"since"`
	}
	if err := q.all(ctx, &attempts, "SELECT a.id, a.session_id, "+q.dialect().number("s.state", "base_since")+" AS since "+unknownAttempts+" ORDER BY 3, a.id LIMIT ?", owner, MaxInbox); err != nil {
		return nil, err
	}
	var out []Unresolved
	for _, c := range calls {
		if err := wholeInput(ctx, q, c); err != nil {
			return nil, err
		}
		out = append(out, Unresolved{Call: c, SessionID: c.SessionID, Since: c.EndedAt})
	}
	for _, a := range attempts {
		out = append(out, Unresolved{AttemptID: a.ID, SessionID: a.Session, Since: a.Since})
	}
	slices.SortStableFunc(out, func(a, b Unresolved) int { return cmp.Compare(a.Since, b.Since) })
	return out[:min(len(out), MaxInbox)], nil
}

// counts tells how much there is, and what runs.
func (in *Inbox) counts(ctx context.Context, q querier, owner string) error {
	var calls, attempts int
	if err := q.get(ctx, &in.Count.Decisions, "SELECT count(*) FROM request WHERE "+pendingRequests, owner); err != nil {
		return err
	}
	if err := q.get(ctx, &calls, "SELECT count(*) FROM call WHERE "+unknownCalls, owner); err != nil {
		return err
	}
	if err := q.get(ctx, &attempts, "SELECT count(*) "+unknownAttempts, owner); err != nil {
		return err
	}
	in.Count.Reconciles = calls + attempts
	var err error
	if in.Needs, err = needsCount(ctx, q, owner); err != nil {
		return err
	}
	in.Count.Missing, in.Count.Ready = in.Needs[journal.NeedsBlocked], in.Needs[journal.NeedsReview]
	if len(in.Decisions) < in.Count.Decisions {
		if in.Asked, err = askedByCall(ctx, q, pendingRequests, owner); err != nil {
			return err
		}
	}
	var running struct {
		N      int   `db:"n"`
		Latest int64 `db:"latest"`
	}
	err = q.get(ctx, &running, "SELECT count(*) AS n, coalesce(max(s.updated_at), 0) AS latest FROM session s LEFT JOIN claim c ON c.session_id = s.id WHERE s.owner_id = ? AND "+needsRank+" = ?", owner, slices.Index(journal.Groups(), journal.GroupRunning))
	in.Running, in.Latest = running.N, running.Latest
	return err
}

// sessions reads the sessions of the things that are listed.
func (in *Inbox) sessions(ctx context.Context, q querier, owner string) error {
	var ids []any
	add := func(id string) {
		if !slices.Contains(ids, any(id)) {
			ids = append(ids, id)
		}
	}
	for _, r := range in.Decisions {
		add(r.SessionID)
	}
	for _, u := range in.Reconciles {
		add(u.SessionID)
	}
	if len(ids) == 0 {
		return nil
	}
	list, err := sessionsWhere(ctx, q, "s.owner_id = ? AND s.id IN ("+marks(len(ids))+")", append([]any{owner}, ids...)...)
	for i := range list {
		in.Sessions[list[i].ID] = list[i]
	}
	return err
}

// marks are n placeholders, for IN; n is at least 1.
func marks(n int) string { return strings.Repeat(", ?", n)[2:] }

func sessionsWhere(ctx context.Context, q querier, where string, args ...any) ([]Session, error) {
	d := q.dialect()
	var rows []sessionView
	if err := q.all(ctx, &rows, "SELECT "+viewColumns+d.now()+viewFrom+"WHERE "+where, append([]any{d.nowArg()}, args...)...); err != nil {
		return nil, err
	}
	out := make([]Session, 0, len(rows))
	for i := range rows {
		one, err := rows[i].session()
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}
