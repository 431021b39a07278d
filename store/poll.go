package store

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/lib/pq"
)

// pollTime is how often the heads of all followed sessions are read: the safety
// net under lost wake-ups. What was read counts for freshTime, so that one read
// may fail.
const (
	pollTime  = 2 * time.Second
	freshTime = 5 * time.Second
	pollPage  = 1000 // sessions of one statement
)

// reading is the database's clock when the journal was last read for followers.
type reading struct {
	at  time.Time
	now int64
}

// poll looks for all who follow a session whether they have missed something, so
// that they need not look by themselves.
func (s *Store) poll(ctx context.Context) {
	tick := time.NewTicker(pollTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.pollHeads(ctx); err != nil && ctx.Err() == nil {
			s.log.Debug("poll sessions", slog.Any("error", err)) // their heartbeats stop, and say so
		}
	}
}

func (s *Store) pollHeads(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, freshTime)
	defer cancel()
	s.hub.mu.Lock()
	ids := slices.Collect(maps.Keys(s.hub.topics))
	s.hub.mu.Unlock()
	for page := range slices.Chunk(ids, pollPage) {
		began := time.Now()
		heads, now, err := s.heads(ctx, page)
		if err != nil {
			return err
		}
		s.hub.raise(heads)
		s.hub.read.Store(&reading{began, now})
	}
	return nil
}

type headOf struct {
	ID  string `db:"id"`
	Seq int64  `db:"next_seq"`
	Now int64  `db:"now"`
}

// heads gives the last seqs of sessions, whosever they are: for the hub alone.
func (s *Store) heads(ctx context.Context, ids []string) (rows []headOf, now int64, err error) {
	list, q := any(pq.Array(ids)), "id = ANY(?)"
	if s.d.sqlite() {
		b, err := json.Marshal(ids)
		if err != nil {
			return nil, 0, err
		}
		list, q = string(b), "id IN (SELECT value FROM json_each(?))"
	}
	err = s.many(ctx, &rows, "SELECT id, next_seq, "+s.d.now()+" AS now FROM session WHERE "+q, s.d.nowArg(), list)
	if err == nil && len(rows) > 0 {
		return rows, rows[0].Now, nil
	}
	if err == nil { // none of them is there
		now, err = s.Now(ctx)
	}
	return nil, now, err
}

// raise wakes the readers of sessions that have more than they heard of. Where
// nobody heard anything yet, nobody has read by a Follower, and it is only noted.
func (h *hub) raise(heads []headOf) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, row := range heads {
		t := h.topics[row.ID]
		if t == nil || t.heard.CompareAndSwap(0, row.Seq) {
			continue
		}
		if row.Seq > t.heard.Load() {
			h.deliver(Wake{Session: row.ID, Seq: row.Seq})
		}
	}
}

// Pulse gives the session's last seq and the database's clock, without a read:
// as they were known at most 2 s ago, and what was heard since. Not ok: the
// journal could not be read lately, or the session wasn't found as the owner's.
func (f *Follower) Pulse() (head, now int64, ok bool) {
	r := f.s.hub.read.Load()
	if !f.allowed || r == nil || time.Since(r.at) > freshTime {
		return 0, 0, false
	}
	return f.topic.heard.Load(), r.now + time.Since(r.at).Milliseconds(), true
}
