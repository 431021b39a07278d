package store

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"holdfast/journal"
)

// SessionPage is all that the page of a session shows, on one snapshot (RDR-1).
type SessionPage struct {
	Session  Session
	Events   []journal.Event // of a window: its entries, without the pieces between them; else all after a seq
	Through  int64           // the last seq of a window; what isn't in Events up to there is a piece
	Writing  []Writing       // messages that nobody has said whole, the newest MaxWriting; of a window: all in it, with their text
	Queue    []QueuedPrompt
	Requests []*journal.Request       // pending, the oldest MaxPageRequests; Session.State.Pending names all
	Lost     map[string]*journal.Call // by the call of a request: the same call before, whose outcome was lost
	Asked    map[string]int           // how many are pending, by call, where not all of them are in Requests
	Unknown  []*journal.Call          // to be reconciled
	Calls    map[string]*journal.Call
	Before   map[string]json.RawMessage // of calls of which their agents said something else once somebody was asked: their inputs until then
	Texts    map[string]string          // of promoted prompts, by prompt; of messages that lie in a blob, by MessageKey; of what contradicts a call and lies in one, by its hash
	Outputs  map[string]OutputEnds
	Untold   []journal.Promoted // prompts that an agent with a conversation had not been told when their turns ended, the newest; see News
	Spans    []journal.Event    // the newest ones that say what the session did, whether in the window or not, with what components.Spans needs besides
	Seen     Seen
	Unsent   Unsent
	Summary  string                 // which the agent would be told if it started anew; "" unless it has forgotten the session
	Commands *journal.AgentCommands // nil: the agent has told none
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

// Writing is a message of the agent of which there are pieces only: it is being
// written, or was cut off.
type Writing struct {
	Message string       `db:"id"`
	Part    journal.Part `db:"part"`
	Seq     int64        `db:"seq"` // of its first piece, where it stands as an entry
	CutOff  bool         `db:"-"`   // what wrote it is lost, or its turn has ended
	Text    string       `db:"-"`   // so far: the end of it, at most MaxWritten bytes
	Through int64        `db:"-"`   // the seq up to which Text has its pieces
	Before  bool         `db:"-"`   // something of it stands before Text
}

// MessageKey tells the parts of a message apart.
func MessageKey(id string, part journal.Part) string { return id + "/" + string(part) }

// Bounds of what is read of messages that nobody has said whole.
const (
	MaxWriting = 8
	MaxWritten = 16 << 10
)

// pieceKinds are no entries: what they say is shown elsewhere. They are those that
// the index event_entry leaves out.
const pieceKinds = "'call.output', 'message.delta', 'call.described'"

// reachBack is how far an execution's last word is looked for.
const reachBack = 1000

// spanKinds are those of the index event_span.
const spanKinds = "'turn.started', 'turn.ended', 'continuation.requested', 'session.blocked', 'session.unblocked', 'permission.asked', 'permission.replied', 'permission.cancelled', 'step.recovered', 'call.unknown', 'call.resolved', 'attempt.unknown', 'attempt.resolved'"

// MaxPageRequests bounds the requests of a page: each has a card with its payload.
const MaxPageRequests = 100

// maxSpans bounds what the line of a session's life is drawn from.
const maxSpans = 200

// SessionPage reads a window of the newest limit entries before a seq (0: of all),
// with all that stands beside it. Pieces are no entries, so however many there are
// they fill no window (RDR-6). Code: not_found.
func (s *Store) SessionPage(ctx context.Context, owner, id string, before int64, limit int) (SessionPage, error) {
	return s.sessionPage(ctx, owner, id, func(q querier, p *SessionPage) error {
		p.Through = p.Session.LastSeq
		if before > 0 && before <= p.Through {
			p.Through = before - 1
		}
		var err error
		if p.Events, p.Writing, err = entriesThrough(ctx, q, id, p.Through, limit); err != nil {
			return err
		}
		for i := range p.Writing {
			if err := p.Writing[i].read(ctx, q, id, p.Session.LastSeq); err != nil {
				return err
			}
		}
		return nil
	})
}

// entriesThrough reads the newest entries up to a seq, in order, and which of them
// are messages that nobody has said whole.
func entriesThrough(ctx context.Context, q querier, id string, through int64, limit int) ([]journal.Event, []Writing, error) {
	limit = min(max(limit, 1), MaxEvents)
	var rows []eventRow
	if err := q.all(ctx, &rows, "SELECT "+eventColumns+" FROM event"+q.dialect().indexed("event_entry")+" WHERE session_id = ? AND seq <= ? AND kind NOT IN ("+pieceKinds+") ORDER BY seq DESC LIMIT ?", id, through, limit); err != nil {
		return nil, nil, err
	}
	open, err := writing(ctx, q, id, through, limit)
	if err != nil {
		return nil, nil, err
	}
	if len(open) > 0 {
		var begun []eventRow
		seqs := []any{id}
		for _, w := range open {
			seqs = append(seqs, w.Seq)
		}
		if err := q.all(ctx, &begun, "SELECT "+eventColumns+" FROM event WHERE session_id = ? AND seq IN ("+marks(len(open))+")", seqs...); err != nil {
			return nil, nil, err
		}
		rows = append(rows, begun...)
	}
	slices.SortFunc(rows, func(a, b eventRow) int { return cmp.Compare(a.Seq, b.Seq) })
	rows = rows[max(len(rows)-limit, 0):]
	open = slices.DeleteFunc(open, func(w Writing) bool { return len(rows) == 0 || w.Seq < rows[0].Seq })
	return events(rows), open, nil
}

// writing reads the newest messages up to a seq that nobody has said whole.
func writing(ctx context.Context, q querier, id string, through int64, limit int) ([]Writing, error) {
	var out []Writing
	err := q.all(ctx, &out, "SELECT id, part, seq FROM message"+q.dialect().indexed("message_open")+" WHERE session_id = ? AND complete = 0 AND seq <= ? ORDER BY seq DESC LIMIT ?", id, through, limit)
	return out, err
}

// ends finds where what wrote the message was lost, or its turn ended; 0: neither.
func (w *Writing) ends(ctx context.Context, q querier, id string) (seq int64, err error) {
	err = q.get(ctx, &seq, "SELECT coalesce(min(seq), 0) FROM event"+q.dialect().indexed("event_span")+" WHERE session_id = ? AND kind IN ("+spanKinds+") AND kind IN ('attempt.unknown', 'turn.ended') AND seq > ?", id, w.Seq)
	w.CutOff = seq > 0
	return seq, err
}

// read takes the end of what was written of a message up to the head.
func (w *Writing) read(ctx context.Context, q querier, id string, head int64) error {
	until, err := w.ends(ctx, q, id)
	if err != nil {
		return err
	}
	w.Through = head
	var pieces []string
	size := 0
	for before := cmp.Or(until, head+1); before > w.Seq; {
		var rows []eventRow
		if err := q.all(ctx, &rows, "SELECT "+eventColumns+" FROM event WHERE session_id = ? AND seq >= ? AND seq < ? AND kind = 'message.delta' ORDER BY seq DESC LIMIT 500", id, w.Seq, before); err != nil {
			return err
		}
		before = 0
		for i := range rows {
			text, err := w.piece(ctx, q, &rows[i])
			if err != nil {
				return err
			}
			pieces, size, before = append(pieces, text), size+len(text), rows[i].Seq
			if size > MaxWritten {
				before = 0
				break
			}
		}
	}
	slices.Reverse(pieces)
	w.Text = strings.Join(pieces, "")
	w.bound()
	return nil
}

// bound cuts what is too much of the text, between characters.
func (w *Writing) bound() {
	over := len(w.Text) - MaxWritten
	if over <= 0 {
		return
	}
	for over < len(w.Text) && !utf8.RuneStart(w.Text[over]) {
		over++
	}
	w.Text, w.Before = w.Text[over:], true
}

// piece is the text of an event if it is a piece of the message.
func (w *Writing) piece(ctx context.Context, q querier, row *eventRow) (string, error) {
	ev := row.event()
	body, err := ev.Decode()
	if err != nil {
		return "", err
	}
	d, ok := body.(*journal.MessageDelta)
	if !ok || d.MessageID != w.Message || d.Part != w.Part {
		return "", nil
	}
	return fullText(ctx, q, ev.SessionID, d.Text)
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
		if p.Events, err = eventsAfter(ctx, q, id, after, min(max(limit, 1), MaxEvents)); err != nil || len(p.Events) == 0 {
			return err
		}
		p.Through = p.Events[len(p.Events)-1].Seq
		if p.Writing, err = writing(ctx, q, id, p.Through, MaxWriting); err != nil {
			return err
		}
		for i := range p.Writing {
			if _, err := p.Writing[i].ends(ctx, q, id); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Store) sessionPage(ctx context.Context, owner, id string, window func(querier, *SessionPage) error) (SessionPage, error) {
	var p SessionPage
	err := s.read(ctx, func(q querier) error {
		p = SessionPage{Calls: map[string]*journal.Call{}, Lost: map[string]*journal.Call{}, Texts: map[string]string{}, Outputs: map[string]OutputEnds{}}
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
		if seq := p.Session.State.CommandsSeq; seq > 0 {
			if p.Commands, err = bodyAt[*journal.AgentCommands](ctx, q, id, seq); err != nil {
				return err
			}
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
		if err := wholeInputs(ctx, q, p.Unknown); err != nil {
			return err
		}
		if err := p.mine(ctx, q, owner, id); err != nil {
			return err
		}
		if err := p.untold(ctx, q, id); err != nil {
			return err
		}
		if err := p.beside(ctx, q, id); err != nil {
			return err
		}
		return p.contradicted(ctx, q, id)
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
	if st := &p.Session.State; st.Forgotten != nil && !st.TurnOpen() && !st.Archived {
		if p.Summary, err = summary(ctx, q, id, p.Session.LastSeq+1); err != nil {
			return err
		}
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
		if _, done := p.Lost[r.Tool.CallID]; done {
			continue
		}
		var err error
		if p.Lost[r.Tool.CallID], err = lostBefore(ctx, q, p.Calls[r.Tool.CallID]); err != nil {
			return err
		}
	}
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
		case *journal.CallContradicted:
			if ref, elsewhere := journal.InputBlob(b.Input, b.InputSHA256); elsewhere {
				said, err := whole(ctx, q, id, b.Input, b.InputSHA256)
				if err != nil {
					return err
				}
				if _, missing := journal.InputBlob(said, b.InputSHA256); !missing {
					p.Texts[ref.Blob] = string(said)
				}
			}
		case *journal.MessageCompleted:
			if b.Text.Blob == "" {
				continue
			}
			text, err := fullText(ctx, q, id, b.Text)
			if err != nil {
				return err
			}
			p.Texts[MessageKey(b.MessageID, b.Part)] = text
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
