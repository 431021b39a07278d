package store

import (
	"context"
	"slices"

	"holdfast/journal"
)

// SessionPage is all that the page of a session shows, on one snapshot (RDR-1).
type SessionPage struct {
	Session  Session
	Events   []journal.Event
	Queue    []QueuedPrompt
	Requests []*journal.Request // pending
	Unknown  []*journal.Call    // to be reconciled
	Calls    map[string]*journal.Call
	Texts    map[string]string // of promoted prompts, by prompt
	Spans    []journal.Event   // the newest ones that say what the session did, whether in the window or not
	Seen     Seen
	Unsent   Unsent
}

// maxSpans bounds what the line of a session's life is drawn from.
const maxSpans = 200

// SessionPage reads a window of at most limit events before a seq (0: the
// newest), with all that stands beside it. Code: not_found.
func (s *Store) SessionPage(ctx context.Context, owner, id string, before int64, limit int) (SessionPage, error) {
	return s.sessionPage(ctx, owner, id, func(q querier, p *SessionPage) error {
		page, err := eventsBefore(ctx, q, owner, id, before, limit)
		p.Events = page.Events
		return err
	})
}

// SessionAfter is SessionPage for who has the events up to a seq already: a
// stream, or a page that wakes up. Codes: not_found; invalid if after is beyond
// the head.
func (s *Store) SessionAfter(ctx context.Context, owner, id string, after int64, limit int) (SessionPage, error) {
	return s.sessionPage(ctx, owner, id, func(q querier, p *SessionPage) error {
		if err := checkCursor(after, p.Session.LastSeq); err != nil {
			return err
		}
		var err error
		p.Events, err = eventsAfter(ctx, q, id, after, min(max(limit, 1), MaxEvents))
		return err
	})
}

func (s *Store) sessionPage(ctx context.Context, owner, id string, window func(querier, *SessionPage) error) (SessionPage, error) {
	var p SessionPage
	err := s.read(ctx, func(q querier) error {
		p = SessionPage{Calls: map[string]*journal.Call{}, Texts: map[string]string{}}
		var err error
		if p.Session, err = loadSession(ctx, q, owner, id); err != nil {
			return err
		}
		if err := window(q, &p); err != nil {
			return err
		}
		if p.Queue, err = admitted(ctx, q, id); err != nil {
			return err
		}
		if p.Requests, err = requestsWhere(ctx, q, "session_id = ? AND state = 'pending' ORDER BY asked_seq LIMIT 100", id); err != nil {
			return err
		}
		if p.Unknown, err = callsWhere(ctx, q, "session_id = ? AND state = 'unknown' AND resolution IS NULL", id); err != nil {
			return err
		}
		if err := p.mine(ctx, q, owner, id); err != nil {
			return err
		}
		return p.beside(ctx, q, id)
	})
	return p, err
}

// mine reads what the viewer keeps beside the journal, and the line of the session's life.
func (p *SessionPage) mine(ctx context.Context, q querier, owner, id string) error {
	var err error
	if p.Seen, err = seen(ctx, q, owner, id); err != nil {
		return err
	}
	if p.Unsent, err = unsent(ctx, q, owner, id); err != nil {
		return err
	}
	var rows []eventRow
	// The kinds are those of the index event_span.
	if err := q.all(ctx, &rows, "SELECT "+eventColumns+" FROM event WHERE session_id = ? AND kind IN ('turn.started', 'turn.ended', 'permission.asked', 'permission.replied', 'permission.cancelled', 'step.recovered', 'call.resolved', 'attempt.resolved') ORDER BY seq DESC LIMIT ?", id, maxSpans); err != nil {
		return err
	}
	slices.Reverse(rows)
	p.Spans = events(rows)
	return nil
}

// beside reads the calls and prompt texts that the window's events name.
func (p *SessionPage) beside(ctx context.Context, q querier, id string) error {
	for i := range p.Events {
		body, err := p.Events[i].Decode()
		if err != nil {
			return err
		}
		call := journal.CallOf(body)
		switch b := body.(type) {
		case *journal.CallProposed:
			call = b.CallID
		case *journal.PermissionAsked:
			call = b.Tool.CallID
		case *journal.PromptPromoted:
			var text string
			if err := q.get(ctx, &text, "SELECT text FROM input WHERE id = ? AND session_id = ?", b.PromptID, id); err != nil {
				return err
			}
			p.Texts[b.PromptID] = text
		}
		if call == "" || p.Calls[call] != nil {
			continue
		}
		if p.Calls[call], err = loadCall(ctx, q, call); err != nil {
			return err
		}
	}
	return nil
}

