package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"holdfast/journal"
)

// MaxEvents bounds one page of events.
const MaxEvents = 1000

type eventRow struct {
	SessionID   string         `db:"session_id"`
	Seq         int64          `db:"seq"`
	ID          string         `db:"id"`
	Kind        string         `db:"kind"`
	Version     int            `db:"version"`
	Time        int64          `db:"time"`
	ActorType   string         `db:"actor_type"`
	ActorID     sql.NullString `db:"actor_id"`
	ExecutionID sql.NullString `db:"execution_id"`
	Data        []byte         `db:"data"`
}

const eventColumns = "session_id, seq, id, kind, version, time, actor_type, actor_id, execution_id, data"

func (r *eventRow) event() journal.Event {
	return journal.Event{
		ID: r.ID, SessionID: r.SessionID, Seq: r.Seq, Kind: journal.Kind(r.Kind), Version: r.Version, Time: r.Time,
		Actor:       journal.Actor{Type: journal.ActorType(r.ActorType), ID: r.ActorID.String},
		ExecutionID: r.ExecutionID.String, Data: json.RawMessage(r.Data),
	}
}

func events(rows []eventRow) []journal.Event {
	out := make([]journal.Event, len(rows))
	for i := range rows {
		out[i] = rows[i].event()
	}
	return out
}

func eventsAfter(ctx context.Context, q querier, sessionID string, after int64, limit int) ([]journal.Event, error) {
	var rows []eventRow
	if err := q.all(ctx, &rows, "SELECT "+eventColumns+" FROM event WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ?", sessionID, after, limit); err != nil {
		return nil, err
	}
	return events(rows), nil
}

// Page is a piece of a journal and the head at the moment it was read.
type Page struct {
	Events []journal.Event
	Head   int64
	Now    int64
}

// EventsAfter gives the events of the owner's session after a seq, in order, at
// most limit (RDR-2). Codes: not_found; invalid if after is beyond the head.
func (s *Store) EventsAfter(ctx context.Context, owner, sessionID string, after int64, limit int) (Page, error) {
	var rows []struct {
		eventRow
		Head int64 `db:"head"`
		Now  int64 `db:"now"`
	}
	// Streams ask this at every wake and poll, so it is one prepared statement: to
	// parse several took more than to run them.
	err := s.many(ctx, &rows, "SELECT s.next_seq AS head, "+s.d.now()+" AS now, coalesce(e.session_id, '') AS session_id, coalesce(e.seq, 0) AS seq, coalesce(e.id, '') AS id, coalesce(e.kind, '') AS kind, "+
		"coalesce(e.version, 0) AS version, coalesce(e.time, 0) AS time, coalesce(e.actor_type, '') AS actor_type, e.actor_id, e.execution_id, coalesce(e.data, '') AS data "+
		"FROM session s LEFT JOIN (SELECT "+eventColumns+" FROM event WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ?) e ON 1 = 1 WHERE s.id = ? AND s.owner_id = ? ORDER BY e.seq",
		s.d.nowArg(), sessionID, after, min(max(limit, 1), MaxEvents), sessionID, owner)
	if err != nil {
		return Page{}, err
	}
	if len(rows) == 0 {
		return Page{}, noSession()
	}
	p := Page{Head: rows[0].Head, Now: rows[0].Now}
	if err := checkCursor(after, p.Head); err != nil {
		return p, err
	}
	if rows[0].Seq == 0 { // the session without an event
		return p, nil
	}
	p.Events = make([]journal.Event, len(rows))
	for i := range rows {
		p.Events[i] = rows[i].event()
	}
	return p, nil
}

func checkCursor(after, head int64) error {
	if after >= 0 && after <= head {
		return nil
	}
	return journal.Errorf(journal.Invalid, "The cursor %d is not in this session: its last entry is #%d.", after, head).Typed("cursor-beyond-head").With("last_seq", head)
}

// EventsBefore gives the newest events of the owner's session before a seq (0:
// the newest of all), in order (RDR-6).
func (s *Store) EventsBefore(ctx context.Context, owner, sessionID string, before int64, limit int) (Page, error) {
	var p Page
	err := s.read(ctx, func(q querier) error {
		var err error
		p, err = eventsBefore(ctx, q, owner, sessionID, before, limit)
		return err
	})
	return p, err
}

func eventsBefore(ctx context.Context, q querier, owner, sessionID string, before int64, limit int) (Page, error) {
	var p Page
	var err error
	if p.Head, p.Now, err = head(ctx, q, owner, sessionID); err != nil {
		return p, err
	}
	if before <= 0 || before > p.Head {
		before = p.Head + 1
	}
	var rows []eventRow
	if err := q.all(ctx, &rows, "SELECT "+eventColumns+" FROM event WHERE session_id = ? AND seq < ? ORDER BY seq DESC LIMIT ?", sessionID, before, min(max(limit, 1), MaxEvents)); err != nil {
		return p, err
	}
	slices.Reverse(rows)
	p.Events = events(rows)
	return p, nil
}

type headRow struct {
	Seq int64 `db:"next_seq"`
	Now int64 `db:"now"`
}

func headSQL(d *dialect) string {
	return "SELECT next_seq, " + d.now() + " AS now FROM session WHERE id = ? AND owner_id = ?"
}

func head(ctx context.Context, q querier, owner, sessionID string) (seq, now int64, err error) {
	d := q.dialect()
	var row headRow
	err = q.get(ctx, &row, headSQL(d), d.nowArg(), sessionID, owner)
	if errors.Is(err, sql.ErrNoRows) {
		err = noSession()
	}
	return row.Seq, row.Now, err
}

// Head gives the last seq of the owner's session and the database's clock. Code: not_found.
func (s *Store) Head(ctx context.Context, owner, sessionID string) (seq, now int64, err error) {
	var row headRow
	err = s.one(ctx, &row, headSQL(&s.d), s.d.nowArg(), sessionID, owner)
	if errors.Is(err, sql.ErrNoRows) {
		err = noSession()
	}
	return row.Seq, row.Now, err
}

// notFolded kinds are left out of a fold: they may be many. Of outputs a decision needs how
// much of them there is, which is counted.
const notFolded = " AND kind NOT IN ('call.output', 'message.delta', 'message.completed', 'plan.updated')"

// Fold reads what a drain must know of its session, on one snapshot: its state
// and the chain of turns that the open one continues.
func (s *Store) Fold(ctx context.Context, sessionID string) (*journal.Fold, SessionRules, error) {
	var f *journal.Fold
	var rules SessionRules
	err := s.read(ctx, func(q querier) error {
		var row sessionRow
		err := q.get(ctx, &row, "SELECT "+sessionColumns+" FROM session WHERE id = ?", sessionID)
		if errors.Is(err, sql.ErrNoRows) {
			return journal.Errorf(journal.NotFound, "session not found: %s", sessionID)
		}
		if err != nil {
			return err
		}
		st, err := row.state()
		if err != nil {
			return err
		}
		if rules, err = row.rules(); err != nil {
			return err
		}
		f = journal.NewFold(st, row.NextSeq)
		if err := foldChain(ctx, q, f, sessionID); err != nil {
			return err
		}
		return liveOutput(ctx, q, f.Calls)
	})
	return f, rules, err
}

func foldChain(ctx context.Context, q querier, f *journal.Fold, sessionID string) error {
	if f.State.ChainSeq == 0 {
		return nil
	}
	for after := f.State.ChainSeq - 1; ; {
		var rows []eventRow
		if err := q.all(ctx, &rows, "SELECT "+eventColumns+" FROM event WHERE session_id = ? AND seq > ? AND seq <= ?"+notFolded+" ORDER BY seq LIMIT 500", sessionID, after, f.Seq); err != nil {
			return err
		}
		for i := range rows {
			ev := rows[i].event()
			if err := f.Chained(&ev); err != nil {
				return err
			}
			after = ev.Seq
		}
		if len(rows) < 500 {
			return nil
		}
	}
}

// Missed gives the events between two seqs of a session, for a drain to which
// somebody else's were added.
func (s *Store) Missed(ctx context.Context, sessionID string, after, before int64) ([]journal.Event, error) {
	var out []journal.Event
	err := s.read(ctx, func(q querier) error {
		var err error
		out, err = eventsAfter(ctx, q, sessionID, after, int(max(0, min(before-after-1, MaxEvents))))
		return err
	})
	return out, err
}

// Since gives the events of a session after a seq, for its drain.
func (s *Store) Since(ctx context.Context, sessionID string, after int64) ([]journal.Event, error) {
	var out []journal.Event
	err := s.read(ctx, func(q querier) error {
		var err error
		out, err = eventsAfter(ctx, q, sessionID, after, MaxEvents)
		return err
	})
	return out, err
}

// Blob gives a long text of the owner's session. Code: not_found.
func (s *Store) Blob(ctx context.Context, owner, sessionID, sum string) ([]byte, error) {
	var data []byte
	err := s.read(ctx, func(q querier) error {
		err := q.get(ctx, &data, "SELECT b.data FROM blob b JOIN session s ON s.id = b.session_id WHERE b.session_id = ? AND b.sha256 = ? AND s.owner_id = ?", sessionID, sum, owner)
		if errors.Is(err, sql.ErrNoRows) {
			return journal.Errorf(journal.NotFound, "There is no such text, or it is not shared with you.").Typed("no-such-blob")
		}
		return err
	})
	return data, err
}

// Output is a bounded piece of a call's output.
type Output struct {
	Data  []byte
	Next  int64 // where the following piece begins
	Total int64 // where the last piece ends so far
}

// CallOutput gives at most limit bytes of the output of the owner's call from an
// offset on. It is that of the last dispatch; what an earlier one of a call that
// may be run again had written stays in the journal. Code: not_found. Offsets count what the command wrote; where its middle was dropped,
// the piece ends and the next offset is after the gap.
func (s *Store) CallOutput(ctx context.Context, owner, callID string, offset int64, limit int) (Output, error) {
	var out Output
	err := s.read(ctx, func(q querier) error {
		out = Output{}
		session, err := sessionOf(ctx, q, owner, "call", callID, "call")
		if err != nil {
			return err
		}
		if out.Total, err = outputTotal(ctx, q, callID); err != nil {
			return err
		}
		out.Data, out.Next, err = outputFrom(ctx, q, session, callID, max(offset, 0), limit)
		return err
	})
	return out, err
}

// outputTotal tells where the last piece of a call's output ends. Pieces only
// grow, so it looks at one row, however many there are.
func outputTotal(ctx context.Context, q querier, callID string) (total int64, err error) {
	err = q.get(ctx, &total, "SELECT coalesce((SELECT byte_offset + bytes FROM call_output WHERE call_id = ? ORDER BY byte_offset DESC, seq DESC LIMIT 1), 0)", callID)
	return total, err
}

// outputFrom reads up to a gap, and tells where the next piece begins.
func outputFrom(ctx context.Context, q querier, session, callID string, offset int64, limit int) (buf []byte, next int64, _ error) {
	next = offset
	for len(buf) < limit {
		var rows []struct {
			Offset int64  `db:"byte_offset"`
			Data   []byte `db:"data"`
		}
		// The piece that the offset stands in, or the one before the gap that it stands in: else all before it would be looked at.
		err := q.all(ctx, &rows, "SELECT o.byte_offset, e.data FROM call_output o JOIN event e ON e.session_id = o.session_id AND e.seq = o.seq WHERE o.call_id = ? AND o.byte_offset >= (SELECT coalesce(max(byte_offset), 0) FROM call_output WHERE call_id = ? AND byte_offset <= ?) AND o.byte_offset + o.bytes > ? ORDER BY o.byte_offset LIMIT 64",
			callID, callID, next, next)
		if err != nil || len(rows) == 0 {
			return buf, next, err
		}
		for _, r := range rows {
			if r.Offset > next && len(buf) > 0 {
				return buf, r.Offset, nil
			}
			var b journal.CallOutput
			if err := json.Unmarshal(r.Data, &b); err != nil {
				return nil, 0, fmt.Errorf("read the output of %s: %w", callID, err)
			}
			text, err := fullText(ctx, q, session, b.Text)
			if err != nil {
				return nil, 0, err
			}
			piece := []byte(text)
			if r.Offset < next {
				piece = piece[min(int64(len(piece)), next-r.Offset):]
			}
			buf = append(buf, piece...)
			next = r.Offset + int64(len(text))
			if over := len(buf) - limit; over >= 0 {
				return buf[:limit], next - int64(over), nil
			}
		}
	}
	return buf, next, nil
}

// evidenceTail is how much captured output stands beside a question.
const evidenceTail = 2000

// capturedOutput is the evidence that the journal itself has of a call.
func capturedOutput(ctx context.Context, q querier, session, callID string) ([]journal.Evidence, error) {
	total, err := outputTotal(ctx, q, callID)
	if err != nil {
		return nil, err
	}
	if total == 0 {
		return []journal.Evidence{{Type: journal.EvidenceOutput, Text: "No output was captured."}}, nil
	}
	tail, _, err := outputFrom(ctx, q, session, callID, max(0, total-evidenceTail), evidenceTail)
	if err != nil {
		return nil, err
	}
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) { // cut between characters (JRN-6)
		tail = tail[1:]
	}
	return []journal.Evidence{{Type: journal.EvidenceOutput, Text: fmt.Sprintf("%d bytes of output were captured; it ends:\n%s", total, tail)}}, nil
}
