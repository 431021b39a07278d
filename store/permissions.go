package store

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"golang.org/x/text/unicode/norm"

	"holdfast/journal"
)

func requestsWhere(ctx context.Context, q querier, where string, args ...any) ([]*journal.Request, error) {
	var rows []requestRow
	if err := q.all(ctx, &rows, "SELECT "+requestColumns+" FROM request WHERE "+where, args...); err != nil {
		return nil, err
	}
	out := make([]*journal.Request, 0, len(rows))
	for i := range rows {
		r, err := rows[i].request()
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// RequestQuery filters a list of requests.
type RequestQuery struct {
	State   journal.RequestState // "": any
	Session string               // "": any
	Cursor  string
	Limit   int
}

// Requests lists the owner's requests over all sessions, oldest first, and gives the cursor of the next page.
func (s *Store) Requests(ctx context.Context, owner string, f RequestQuery) (out []*journal.Request, next string, err error) {
	f.Limit = pageLimit(f.Limit)
	err = s.read(ctx, func(q querier) error {
		where := []string{"session_id IN (SELECT id FROM session WHERE owner_id = ?)"}
		args := []any{owner}
		if f.Session != "" {
			if _, _, err := head(ctx, q, owner, f.Session); err != nil {
				return err
			}
			where, args = append(where, "session_id = ?"), append(args, f.Session)
		}
		if f.State != "" {
			where, args = append(where, "state = ?"), append(args, string(f.State))
		}
		if f.Cursor != "" {
			if !strings.HasPrefix(f.Cursor, "per_") {
				return badCursor()
			}
			where, args = append(where, "id > ?"), append(args, f.Cursor)
		}
		args = append(args, f.Limit+1)
		if out, err = requestsWhere(ctx, q, strings.Join(where, " AND ")+" ORDER BY id LIMIT ?", args...); err != nil {
			return err
		}
		next = ""
		if len(out) > f.Limit {
			out = out[:f.Limit]
			next = out[f.Limit-1].ID
		}
		return nil
	})
	return out, next, err
}

// RequestPage is a request with what stands around it.
type RequestPage struct {
	Request  *journal.Request
	Call     *journal.Call
	Asked    *journal.Call // the call as it was when it was asked; nil: it isn't at hand
	Lost     *journal.Call // the same call before, whose outcome was lost; nil: none
	Session  Session
	Nr, Of   int  // which of its call's pending requests it is, in the order in which they were asked; 0: none
	Replayed bool // the answer was recorded before, under the same key
}

// Request reads one request of the owner's. Code: not_found.
func (s *Store) Request(ctx context.Context, owner, id string) (RequestPage, error) {
	var p RequestPage
	err := s.read(ctx, func(q querier) error {
		var err error
		if p.Request, err = loadRequest(ctx, q, id); err != nil {
			return err
		}
		if p.Session, err = loadSession(ctx, q, owner, p.Request.SessionID); err != nil {
			if journal.Is(err, journal.NotFound) {
				return noRequest()
			}
			return err
		}
		if p.Call, err = loadCall(ctx, q, p.Request.Tool.CallID); err != nil {
			return err
		}
		if p.Lost, err = lostBefore(ctx, q, p.Call); err != nil {
			return err
		}
		if p.Nr, p.Of, err = placeOf(ctx, q, p.Request); err != nil {
			return err
		}
		if p.Asked, err = askedCall(ctx, q, p.Request, p.Call); err != nil {
			return err
		}
		return wholeInput(ctx, q, p.Call)
	})
	return p, err
}

// askedCall is a request's call as it was when it was asked: with all that its agent
// had told of it until then, whatever it told afterwards; nil: that isn't at hand.
func askedCall(ctx context.Context, q querier, r *journal.Request, c *journal.Call) (*journal.Call, error) {
	if c == nil {
		return nil, nil //nolint:nilnil // none of what isn't at hand
	}
	var asked struct {
		InputSHA256 string `json:"input_sha256"`
	}
	_ = json.Unmarshal(r.Metadata, &asked) // an older one doesn't say it: then it was the last that was told
	var rows []eventRow
	if err := q.all(ctx, &rows, "SELECT "+eventColumns+" FROM event WHERE session_id = ? AND seq BETWEEN ? AND ? AND kind IN ('call.proposed', 'call.described', 'call.contradicted') ORDER BY seq DESC", r.SessionID, c.ProposedSeq, r.AskedSeq); err != nil {
		return nil, err
	}
	told := events(rows)
	for i := range told {
		body, err := told[i].Decode()
		if err != nil { // damaged: verify says so
			continue
		}
		d := description(body)
		if d == nil || d.CallID != c.ID || d.Late == journal.LateDispatched || asked.InputSHA256 != "" && d.InputSHA256 != asked.InputSHA256 {
			continue
		}
		was := *c
		was.Input, was.InputSHA256, was.Later = d.Input, d.InputSHA256, nil
		return &was, wholeInput(ctx, q, &was)
	}
	return nil, nil //nolint:nilnil // as above
}

// description is what an event tells of what a call would do.
func description(body journal.Body) *journal.CallDescribed {
	switch b := body.(type) {
	case *journal.CallProposed:
		return &journal.CallDescribed{CallID: b.CallID, Input: b.Input, InputSHA256: b.InputSHA256}
	case *journal.CallDescribed:
		return b
	case *journal.CallContradicted:
		return (*journal.CallDescribed)(b)
	}
	return nil
}

// placeOf tells which of its call's pending requests one is, and of how many.
func placeOf(ctx context.Context, q querier, r *journal.Request) (nr, of int, err error) {
	if r.State != journal.RequestPending {
		return 0, 0, nil
	}
	var row struct {
		Nr  int `db:"nr"`
		All int `db:"n"`
	}
	err = q.get(ctx, &row, "SELECT count(CASE WHEN asked_seq <= ? THEN 1 END) AS nr, count(*) AS n FROM request WHERE session_id = ? AND call_id = ? AND state = 'pending'", r.AskedSeq, r.SessionID, r.Tool.CallID)
	return row.Nr, row.All, err
}

// askedByCall counts requests by their call.
func askedByCall(ctx context.Context, q querier, where string, args ...any) (map[string]int, error) {
	var rows []struct {
		Call string `db:"call_id"`
		N    int    `db:"n"`
	}
	err := q.all(ctx, &rows, "SELECT call_id, count(*) AS n FROM request WHERE "+where+" GROUP BY call_id", args...)
	out := map[string]int{}
	for _, r := range rows {
		out[r.Call] = r.N
	}
	return out, err
}

// Decision is a person's answer to a request.
type Decision struct {
	Reply      journal.Reply
	Message    string
	Digest     string
	NeedDigest bool   // a form must say what was read
	Key        string // optional
}

func (d Decision) hash() string {
	return journal.PayloadHash(norm.NFC.String, string(d.Reply), d.Message, d.Digest)
}

// Check refuses what can't be an answer. Code: unprocessable.
func (d Decision) Check() error {
	switch d.Reply {
	case journal.ReplyOnce, journal.ReplyReject:
	case journal.ReplyAlways:
		return journal.Errorf(journal.Unprocessable, "Remembered answers are not available yet. Nothing was recorded; answer once, or reject.").Typed("always-not-available")
	default:
		return journal.Errorf(journal.Unprocessable, "reply must be once, always or reject. Nothing was recorded.").Typed("unknown-reply")
	}
	if !fitsBeside(d.Message) {
		return journal.Errorf(journal.Unprocessable, "The message must be at most 16 KiB of text without NUL; a control character counts as three bytes. Nothing was recorded.").Typed("bad-message")
	}
	return nil
}

// fitsBeside tells whether what a person writes beside an answer can be taken: 16
// KiB, which may be twice as much in JSON. Control characters are six times as much there.
func fitsBeside(text string) bool {
	const most = 16 << 10
	b, err := journal.Encode(text)
	return err == nil && len(text) <= most && len(b)-len(`""`) <= 2*most && !strings.ContainsRune(text, 0)
}

// Decide answers a request of the owner's, once: the first answer wins (PER-2),
// committed before the agent hears it (PER-4). Codes: not_found; conflict naming
// the first answer; gone if the request has ended; unprocessable if what was
// read isn't what waits, or for always.
func (s *Store) Decide(ctx context.Context, owner, id string, d Decision) (RequestPage, error) {
	d.Message = journal.LineEnds(d.Message)
	session, err := s.sessionOf(ctx, owner, "request", id, "request")
	if err != nil {
		return RequestPage{}, err
	}
	err = s.write(ctx, session, func(ctx context.Context, t *tx) error {
		l, err := t.lockOwned(ctx, session, owner)
		if err != nil {
			return err
		}
		if d.Key != "" {
			first, err := l.receipt(ctx, owner, journal.OpDecide, d.Key, d.hash(), id)
			if err != nil {
				return err
			}
			if !first {
				return errReplay
			}
		}
		err = l.decide(ctx, owner, id, d)
		Crash("decide.before_commit")
		return err
	})
	Crash("decide.after_commit")
	replayed := errors.Is(err, errReplay)
	if replayed {
		err = s.replayDecision(ctx, owner, id, d)
	}
	if err != nil {
		return RequestPage{}, err
	}
	p, err := s.Request(ctx, owner, id)
	p.Replayed = replayed
	return p, err
}

func (s *Store) replayDecision(ctx context.Context, owner, id string, d Decision) error {
	return s.read(ctx, func(q querier) error {
		r, err := loadReceipt(ctx, q, owner, journal.OpDecide, d.Key)
		if err != nil {
			return err
		}
		if r.Subject != id {
			return journal.Errorf(journal.Unprocessable, "This key was used already, to answer another request. Nothing was recorded.").Typed("idempotency-key-reused")
		}
		return r.clash("", d.hash())
	})
}

func (l *locked) decide(ctx context.Context, owner, id string, d Decision) error {
	r, err := loadRequest(ctx, l.t, id)
	if err != nil {
		return err
	}
	reply := &journal.PermissionReplied{ID: id, Reply: d.Reply, Message: d.Message, By: owner, Patterns: []string{}}
	would := *r
	if err := would.Apply(&journal.Event{Time: l.now}, reply); err != nil {
		return err // 409 and 410 come before 422: what is over can't be stale
	}
	if err := d.Check(); err != nil {
		return err
	}
	if d.Digest != r.Digest && (d.Digest != "" || d.NeedDigest) {
		return journal.Errorf(journal.Unprocessable, "What you read is not what is waiting now. Nothing was recorded. Read the request as it is now, then answer it.").
			Typed("digest-differs").With("digest", r.Digest)
	}
	if reply.Reply == journal.ReplyOnce {
		if err := l.t.get(ctx, &reply.Others, "SELECT count(*) FROM request WHERE session_id = ? AND call_id = ? AND state = 'pending' AND id <> ?", l.row.ID, r.Tool.CallID, id); err != nil {
			return err
		}
	}
	if err := l.append(ctx, journal.User(owner), reply); err != nil {
		return err
	}
	if d.Reply == journal.ReplyReject {
		if err := l.reject(ctx, owner, r, d); err != nil {
			return err
		}
	}
	l.wakeWork()
	if l.row.ExecutionID.Valid { // who follows an agent tells it what is decided, also while other requests wait (PER-4)
		l.t.wake(l.row.ID, l.seq, true)
	}
	return l.flush(ctx)
}

// reject refuses the call, or of one that was let run before what is asked now; without a message it ends the turn as well (PER-3).
// Something else in the air is for the execution that holds it to end.
func (l *locked) reject(ctx context.Context, owner string, r *journal.Request, d Decision) error {
	for _, id := range l.st.Pending { // the call's other requests can't be allowed any more (PER-6)
		other, err := loadRequest(ctx, l.t, id)
		if err != nil {
			return err
		}
		if other.Tool.CallID == r.Tool.CallID {
			if err := l.append(ctx, journal.Server(), &journal.PermissionCancelled{ID: id, Reason: "the call was refused"}); err != nil {
				return err
			}
		}
	}
	c, err := loadCall(ctx, l.t, r.Tool.CallID)
	if err != nil {
		return err
	}
	announced, err := l.onlyAnnounced(ctx, c)
	if err != nil {
		return err
	}
	if announced || !c.Began() { // else its agent says how it ends, or nobody knows
		if err := l.append(ctx, journal.User(owner), &journal.CallSettled{CallID: c.ID, State: journal.CallIsRefused, Reason: "rejected"}); err != nil {
			return err
		}
	}
	if d.Message != "" {
		return nil
	}
	if (l.row.ExecutionID.Valid && l.st.InFlight()) || l.st.Adopts() {
		return l.interrupt(ctx, owner, &journal.InterruptRequested{By: owner, Mode: journal.InterruptNow, Reason: journal.ReasonRejected})
	}
	return l.endTurn(ctx, journal.User(owner), journal.TurnEnded{Outcome: journal.Stopped, Reason: journal.ReasonRejected})
}

// NeedsCount counts what needs the owner: decisions, unknown outcomes, blocked sessions, work ready for review.
func (s *Store) NeedsCount(ctx context.Context, owner string) (map[journal.Needs]int, error) {
	var out map[journal.Needs]int
	err := s.read(ctx, func(q querier) (err error) {
		out, err = needsCount(ctx, q, owner)
		return err
	})
	return out, err
}

func needsCount(ctx context.Context, q querier, owner string) (map[journal.Needs]int, error) {
	var rows []struct {
		Needs string `db:"needs"`
		N     int    `db:"n"`
	}
	if err := q.all(ctx, &rows, "SELECT needs, count(*) AS n FROM session WHERE owner_id = ? AND needs <> 'none' GROUP BY needs", owner); err != nil {
		return nil, err
	}
	out := map[journal.Needs]int{}
	for _, r := range rows {
		out[journal.Needs(r.Needs)] = r.N
	}
	return out, nil
}
