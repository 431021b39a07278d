package store

import (
	"cmp"
	"context"
	"slices"
	"unicode/utf8"

	"holdfast/journal"
)

// SessionPage is all that the page of a session shows, on one snapshot (RDR-1).
type SessionPage struct {
	Session  Session
	Events   []journal.Event
	Queue    []QueuedPrompt
	Requests []*journal.Request // pending, the oldest MaxPageRequests; Session.State.Pending names all
	Asked    map[string]int     // how many are pending, by call, where not all of them are in Requests
	Unknown  []*journal.Call    // to be reconciled
	Calls    map[string]*journal.Call
	Texts    map[string]string // of promoted prompts, by prompt
	Outputs  map[string]OutputEnds
	Spans    []journal.Event // the newest ones that say what the session did, whether in the window or not, with what components.Spans needs besides
	Seen     Seen
	Unsent   Unsent
}

// OutputEnds are the beginning and the end of a call's output as it stands in
// the journal. Tail is empty if Head is all of it.
type OutputEnds struct {
	Head, Tail []byte
	Total      int64
}

// Sizes of the ends of an output that a page shows.
const (
	headBytes = 8 << 10
	tailBytes = 24 << 10
)

// Pieces of output are rows without anything to read, so a window that holds
// few other entries reaches further back for them, but never far.
const (
	wantedEntries = 20
	reachBack     = 1000
)

// spanKinds are those of the index event_span.
const spanKinds = "'turn.started', 'turn.ended', 'continuation.requested', 'session.blocked', 'session.unblocked', 'permission.asked', 'permission.replied', 'permission.cancelled', 'step.recovered', 'call.unknown', 'call.resolved', 'attempt.unknown', 'attempt.resolved'"

// MaxPageRequests bounds the requests of a page: each has a card with its payload.
const MaxPageRequests = 100

// maxSpans bounds what the line of a session's life is drawn from.
const maxSpans = 200

// SessionPage reads a window of at most limit events before a seq (0: the
// newest), with all that stands beside it. Code: not_found.
func (s *Store) SessionPage(ctx context.Context, owner, id string, before int64, limit int) (SessionPage, error) {
	return s.sessionPage(ctx, owner, id, func(q querier, p *SessionPage) error {
		page, err := eventsBefore(ctx, q, owner, id, before, limit)
		if err != nil {
			return err
		}
		p.Events, err = reach(ctx, q, id, page.Events, min(limit, wantedEntries))
		return err
	})
}

// reach puts earlier events before a window while it is missing entries besides
// pieces of output. The data of the pieces that are added is left out: nothing
// but their number is shown.
func reach(ctx context.Context, q querier, id string, window []journal.Event, missing int) ([]journal.Event, error) {
	for i := range window {
		if window[i].Kind != journal.KindCallOutput {
			missing--
		}
	}
	if missing <= 0 || len(window) == 0 || window[0].Seq == 1 {
		return window, nil
	}
	first := window[0].Seq
	var from []int64
	err := q.all(ctx, &from, "SELECT seq FROM event WHERE session_id = ? AND seq < ? AND seq >= ? AND kind <> 'call.output' ORDER BY seq DESC LIMIT ?", id, first, max(1, first-reachBack), missing)
	if err != nil || len(from) == 0 {
		return window, err
	}
	var rows []eventRow
	err = q.all(ctx, &rows, "SELECT session_id, seq, id, kind, version, time, actor_type, actor_id, execution_id, CASE WHEN kind = 'call.output' THEN '{}' ELSE data END AS data FROM event WHERE session_id = ? AND seq >= ? AND seq < ? ORDER BY seq", id, from[len(from)-1], first)
	return append(events(rows), window...), err
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
		p = SessionPage{Calls: map[string]*journal.Call{}, Texts: map[string]string{}, Outputs: map[string]OutputEnds{}}
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
		if p.Requests, err = requestsWhere(ctx, q, "session_id = ? AND state = 'pending' ORDER BY asked_seq LIMIT ?", id, MaxPageRequests); err != nil {
			return err
		}
		if len(p.Requests) < len(p.Session.State.Pending) {
			if p.Asked, err = askedByCall(ctx, q, "session_id = ? AND state = 'pending'", id); err != nil {
				return err
			}
		}
		if p.Unknown, err = callsWhere(ctx, q, "session_id = ? AND state = 'unknown' AND resolution IS NULL ORDER BY proposed_seq", id); err != nil {
			return err
		}
		for _, c := range p.Unknown {
			if err := wholeInput(ctx, q, c); err != nil {
				return err
			}
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
	p.Spans, err = spans(ctx, q, id)
	return err
}

// spans reads what the line of a session's life is drawn from.
func spans(ctx context.Context, q querier, id string) ([]journal.Event, error) {
	var rows []eventRow
	if err := q.all(ctx, &rows, "SELECT "+eventColumns+" FROM event"+q.dialect().indexed("event_span")+" WHERE session_id = ? AND kind IN ("+spanKinds+") ORDER BY seq DESC LIMIT ?", id, maxSpans); err != nil {
		return nil, err
	}
	lost, err := aroundRecoveries(ctx, q, id, events(rows))
	if err != nil {
		return nil, err
	}
	rows = append(rows, lost...)
	slices.SortFunc(rows, func(a, b eventRow) int { return cmp.Compare(a.Seq, b.Seq) })
	return events(rows), nil
}

// maxSettled bounds how many calls one recovery is taken to have settled: they
// stand behind it, in its transaction.
const maxSettled = 16

// aroundRecoveries reads what tells until when a lost execution's work is known:
// its last word before each step.recovered, without data, and the calls that were
// settled with it. The last word is the last event of any execution, since what a
// person sent meanwhile, or what was read from a spool afterwards, says nothing of
// it; it is looked for as far as reachBack. Kinds of spans are there already.
func aroundRecoveries(ctx context.Context, q querier, id string, spans []journal.Event) ([]eventRow, error) {
	var recovered, settled []any
	for i := range spans {
		if spans[i].Kind != journal.KindStepRecovered {
			continue
		}
		recovered = append(recovered, spans[i].Seq)
		for n := range int64(settledBy(&spans[i])) {
			settled = append(settled, spans[i].Seq+1+n)
		}
	}
	if len(recovered) == 0 {
		return nil, nil
	}
	const lastWord = "(SELECT e.seq FROM event e WHERE e.session_id = r.session_id AND e.seq < r.seq AND e.seq >= r.seq - ? AND e.execution_id IS NOT NULL ORDER BY e.seq DESC LIMIT 1)"
	in, args := "SELECT "+lastWord+" FROM event r WHERE r.session_id = ? AND r.seq IN ("+marks(len(recovered))+")", append([]any{reachBack, id}, recovered...)
	if len(settled) > 0 {
		in, args = in+" UNION SELECT seq FROM event WHERE session_id = ? AND kind = 'call.settled' AND seq IN ("+marks(len(settled))+")", append(append(args, id), settled...)
	}
	var rows []eventRow
	err := q.all(ctx, &rows, "SELECT session_id, seq, id, kind, version, time, actor_type, actor_id, execution_id, CASE WHEN kind = 'call.settled' THEN data ELSE '{}' END AS data FROM event WHERE session_id = ? AND kind NOT IN ("+spanKinds+") AND seq IN ("+in+")", append([]any{id}, args...)...)
	return rows, err
}

// settledBy tells how many events behind a step.recovered may be the ends of the
// calls that it names. A damaged one has none: verify says so.
func settledBy(ev *journal.Event) int {
	body, err := ev.Decode()
	b, ok := body.(*journal.StepRecovered)
	if err != nil || !ok || !slices.ContainsFunc(b.Calls, func(c journal.RecoveredCall) bool {
		return c.Became != journal.CallIsAdopted && c.Became != journal.CallIsUnknown
	}) {
		return 0
	}
	return min(len(b.Calls), maxSettled)
}

// beside reads the calls and prompt texts that the window's events name, and the
// calls of the requests that wait: their cards must not depend on the window.
func (p *SessionPage) beside(ctx context.Context, q querier, id string) error {
	for _, r := range p.Requests {
		if err := p.withCall(ctx, q, id, r.Tool.CallID); err != nil {
			return err
		}
	}
	for i := range p.Events {
		if p.Events[i].Kind == journal.KindCallOutput && string(p.Events[i].Data) == "{}" {
			continue // what reach left out
		}
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
		if err := p.withCall(ctx, q, id, call); err != nil {
			return err
		}
	}
	return nil
}

// withCall reads a call and the ends of its output, unless they are there or call is "".
func (p *SessionPage) withCall(ctx context.Context, q querier, id, call string) error {
	if call == "" || p.Calls[call] != nil {
		return nil
	}
	var err error
	if p.Calls[call], err = loadCall(ctx, q, call); err != nil {
		return err
	}
	if err := wholeInput(ctx, q, p.Calls[call]); err != nil {
		return err
	}
	p.Outputs[call], err = outputEnds(ctx, q, id, call)
	return err
}

// outputEnds reads both ends of a call's output, cut between characters (JRN-6).
func outputEnds(ctx context.Context, q querier, session, call string) (OutputEnds, error) {
	var out OutputEnds
	var err error
	if out.Total, err = outputTotal(ctx, q, call); err != nil || out.Total == 0 {
		return out, err
	}
	size := headBytes
	if out.Total <= headBytes+tailBytes {
		size = headBytes + tailBytes
	}
	var next int64
	if out.Head, next, err = outputFrom(ctx, q, session, call, 0, size); err != nil {
		return out, err
	}
	for len(out.Head) > 0 && next < out.Total && !endsWhole(out.Head) {
		out.Head = out.Head[:len(out.Head)-1]
	}
	if next >= out.Total {
		return out, nil
	}
	out.Tail, _, err = outputFrom(ctx, q, session, call, max(next, out.Total-tailBytes), tailBytes)
	for len(out.Tail) > 0 && !utf8.RuneStart(out.Tail[0]) {
		out.Tail = out.Tail[1:]
	}
	return out, err
}

// endsWhole reports whether the last character of b isn't cut off.
func endsWhole(b []byte) bool {
	for i := len(b) - 1; i >= max(0, len(b)-utf8.UTFMax); i-- {
		if utf8.RuneStart(b[i]) {
			return utf8.FullRune(b[i:])
		}
	}
	return true
}
