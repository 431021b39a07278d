package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"golang.org/x/text/unicode/norm"

	"holdfast/journal"
)

// PromptInput is what a person submits.
type PromptInput struct {
	Text     string
	Delivery journal.Delivery
	Stops    bool // the open turn is stopped for it, if there is one; then it steers
	// Turn is the one that may be stopped for it; "": any. It says under which condition
	// the prompt is taken, not what it is: the same key with another is the same prompt.
	Turn string
}

// recorded is the prompt as the journal takes it, from a form as from a program (ADM-3).
func (p PromptInput) recorded() PromptInput {
	p.Text = journal.LineEnds(p.Text)
	return p
}

func (p PromptInput) hash() string {
	delivery := string(p.Delivery)
	if p.Stops { // the same key without the stop is another payload (ADM-4)
		delivery = journal.DeliveryInterrupt
	}
	return journal.PayloadHash(norm.NFC.String, delivery, []string{}, p.Text)
}

type inputRow struct {
	ID          string        `db:"id"`
	SessionID   string        `db:"session_id"`
	AdmittedSeq int64         `db:"admitted_seq"`
	Delivery    string        `db:"delivery"`
	State       string        `db:"state"`
	PromotedSeq sql.NullInt64 `db:"promoted_seq"`
	CreatedAt   int64         `db:"created_at"`
}

const inputColumns = "id, session_id, admitted_seq, delivery, state, promoted_seq, created_at"

func (r *inputRow) receipt() journal.Receipt {
	return journal.Receipt{
		ID: r.ID, SessionID: r.SessionID, AdmittedSeq: r.AdmittedSeq, PromotedSeq: r.PromotedSeq.Int64,
		Delivery: journal.Delivery(r.Delivery), State: journal.InputState(r.State), CreatedAt: r.CreatedAt,
	}
}

// SubmitPrompt accepts a prompt for the owner's session: input, event and
// receipt in one transaction (ADM-1). key is the idempotency key, already
// checked. The same key with the same payload gives the first receipt, marked
// as a replay, and wakes the session again (ADM-3, ADM-5). With Stops the open turn's
// end is asked for in the same transaction (COO-4), once, and this prompt is what the
// turn is stopped for: it goes before the queue, and the end holds nothing (PRO-5).
// Without an open turn there is nothing to stop, and it is a steer like others.
// Codes: not_found, conflict (archived, 200 wait already, or another turn is open), unprocessable
// (the key was used for something else, ADM-4), unavailable.
func (s *Store) SubmitPrompt(ctx context.Context, owner, sessionID, key string, p PromptInput) (journal.Receipt, error) {
	if err := journal.CheckText(p.Text); err != nil {
		return journal.Receipt{}, err
	}
	p = p.recorded()
	var out journal.Receipt
	payload := p.hash()
	Crash("admit.begin")
	err := s.write(ctx, sessionID, func(ctx context.Context, t *tx) error {
		l, err := t.lockOwned(ctx, sessionID, owner)
		if err != nil {
			return err
		}
		id := NewID("inp")
		first, err := l.receipt(ctx, owner, journal.OpCreatePrompt, key, payload, id)
		if err != nil {
			return err
		}
		if !first {
			return errReplay
		}
		if err := l.admit(ctx, owner, id, p); err != nil {
			return err
		}
		Crash("admit.inserted")
		out = journal.Receipt{ID: id, SessionID: sessionID, AdmittedSeq: l.seq, Delivery: p.Delivery, State: journal.InputAdmitted, CreatedAt: l.now}
		if p.Stops && l.st.TurnOpen() {
			if err := l.isOpen(p.Turn); err != nil {
				return err
			}
			if err := l.interrupt(ctx, owner, &journal.InterruptRequested{By: owner, Mode: journal.InterruptNow, PromptID: id}); err != nil {
				return err
			}
		}
		l.wakeWork()
		err = l.flush(ctx)
		Crash("admit.before_commit")
		return err
	})
	Crash("admit.after_commit")
	if errors.Is(err, errReplay) {
		return s.replayPrompt(ctx, owner, sessionID, key, p)
	}
	return out, err
}

// receipt writes a key's first use; false means that it has been used.
func (l *locked) receipt(ctx context.Context, owner string, op journal.Operation, key, payload, subject string) (first bool, err error) {
	n, err := l.t.exec(ctx, "INSERT INTO receipt (owner_id, operation, idem_key, session_id, payload_sha256, subject_id, seq, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (owner_id, operation, idem_key) DO NOTHING",
		owner, string(op), key, l.row.ID, payload, subject, l.seq+1, l.now)
	return n == 1, err
}

func (l *locked) admit(ctx context.Context, owner, id string, p PromptInput) error {
	if l.st.Archived {
		return journal.Errorf(journal.Conflict, "This session is archived. Nothing was recorded. Start a new session for it.").Typed("session-archived").With("state", journal.StateClosed)
	}
	if len(l.st.Admitted) >= journal.MaxAdmitted {
		return journal.Errorf(journal.Conflict, "%d messages wait in this session already; no more are taken. Withdraw some, or wait until they were delivered.", journal.MaxAdmitted).Typed("queue-full").With("state", l.st.Base)
	}
	return l.append(ctx, journal.User(owner), &journal.PromptAdmitted{PromptID: id, Delivery: p.Delivery, Text: journal.T(p.Text)})
}

type receiptRow struct {
	Operation string `db:"operation"`
	SessionID string `db:"session_id"`
	Payload   string `db:"payload_sha256"`
	Subject   string `db:"subject_id"`
	Seq       int64  `db:"seq"`
	CreatedAt int64  `db:"created_at"`
}

const receiptColumns = "operation, session_id, payload_sha256, subject_id, seq, created_at"

func loadReceipt(ctx context.Context, q querier, owner string, op journal.Operation, key string) (receiptRow, error) {
	var r receiptRow
	err := q.get(ctx, &r, "SELECT "+receiptColumns+" FROM receipt WHERE owner_id = ? AND operation = ? AND idem_key = ?", owner, string(op), key)
	return r, err
}

// clash is ADM-4: the same key for something else.
func (r receiptRow) clash(sessionID, payload string) error {
	if r.Payload == payload && (sessionID == "" || r.SessionID == sessionID) {
		return nil
	}
	what := "with other content"
	if sessionID != "" && r.SessionID != sessionID {
		what = "for another session"
	}
	return journal.Errorf(journal.Unprocessable, "This key was used already, %s: it became entry #%d of %s. Nothing new was recorded. Use a new key to send this as well.", what, r.Seq, r.SessionID).
		Typed("idempotency-key-reused").With("session_id", r.SessionID).With("admitted_seq", r.Seq)
}

func (s *Store) replayPrompt(ctx context.Context, owner, sessionID, key string, p PromptInput) (journal.Receipt, error) {
	var out journal.Receipt
	var runnable bool
	err := s.read(ctx, func(q querier) error {
		r, err := loadReceipt(ctx, q, owner, journal.OpCreatePrompt, key)
		if err != nil {
			return err
		}
		if err := r.clash(sessionID, p.hash()); err != nil {
			return err
		}
		var row inputRow
		if err := q.get(ctx, &row, "SELECT "+inputColumns+" FROM input WHERE id = ?", r.Subject); err != nil {
			return err
		}
		out = row.receipt()
		out.Replayed = true
		return q.get(ctx, &runnable, "SELECT runnable_at IS NOT NULL FROM session WHERE id = ?", sessionID)
	})
	if err == nil && runnable { // ADM-5: a retry drains a prompt that nobody drained
		s.hub.publish(nil, []Wake{{Session: sessionID, Seq: out.AdmittedSeq, Work: true}})
	}
	return out, err
}

// WithdrawPrompt takes an admitted prompt back (ADM-8); a repeat is the same answer.
// Codes: not_found, conflict once it was promoted.
func (s *Store) WithdrawPrompt(ctx context.Context, owner, promptID string) (journal.Receipt, error) {
	var out journal.Receipt
	session, err := s.sessionOf(ctx, owner, "input", promptID, "message")
	if err != nil {
		return out, err
	}
	err = s.write(ctx, session, func(ctx context.Context, t *tx) error {
		l, err := t.lockOwned(ctx, session, owner)
		if err != nil {
			return err
		}
		var row inputRow
		if err := t.get(ctx, &row, "SELECT "+inputColumns+" FROM input WHERE id = ?", promptID); err != nil {
			return err
		}
		out = row.receipt()
		switch out.State {
		case journal.InputWithdrawn:
			out.Replayed = true
			return nil
		case journal.InputPromoted:
			return journal.Errorf(journal.Conflict, "A turn has this message already, since entry #%d. It can't be withdrawn; you can send another that corrects it, or stop the turn.", out.PromotedSeq).
				Typed("prompt-promoted").With("state", out.State)
		case journal.InputAdmitted:
		}
		if err := l.append(ctx, journal.User(owner), &journal.PromptWithdrawn{PromptID: promptID}); err != nil {
			return err
		}
		out.State = journal.InputWithdrawn
		return l.flush(ctx)
	})
	return out, err
}

// sessionOf finds the session of a thing that the owner may see. A session never
// changes its owner, so a method may look for it before it locks it.
func (s *Store) sessionOf(ctx context.Context, owner, table, id, word string) (session string, err error) {
	err = s.read(ctx, func(q querier) error {
		session, err = sessionOf(ctx, q, owner, table, id, word)
		return err
	})
	return session, err
}

func sessionOf(ctx context.Context, q querier, owner, table, id, word string) (session string, err error) {
	err = q.get(ctx, &session, "SELECT x.session_id FROM "+table+" x JOIN session s ON s.id = x.session_id WHERE x.id = ? AND s.owner_id = ?", id, owner)
	if errors.Is(err, sql.ErrNoRows) {
		err = journal.Errorf(journal.NotFound, "There is no such %s, or it is not shared with you.", word).Typed("no-such-" + word)
	}
	return session, err
}

// ReceiptItem is what was made under a key (ADM-9).
type ReceiptItem struct {
	Operation journal.Operation
	Receipt   journal.Receipt
	State     string
}

// Receipts tells what became of a key of the owner's. Code: not_found if nothing was made so far.
func (s *Store) Receipts(ctx context.Context, owner, key string) ([]ReceiptItem, error) {
	var out []ReceiptItem
	err := s.read(ctx, func(q querier) error {
		out = nil
		var rows []receiptRow
		if err := q.all(ctx, &rows, "SELECT "+receiptColumns+" FROM receipt WHERE owner_id = ? AND idem_key = ? ORDER BY operation", owner, key); err != nil {
			return err
		}
		for _, r := range rows {
			item, err := receiptItem(ctx, q, r)
			if err != nil {
				return err
			}
			out = append(out, item)
		}
		if len(out) == 0 {
			return journal.Errorf(journal.NotFound, "Nothing was recorded under this key so far. Only sending it again with the same key settles that.").Typed("no-such-key")
		}
		return nil
	})
	return out, err
}

func receiptItem(ctx context.Context, q querier, r receiptRow) (ReceiptItem, error) {
	item := ReceiptItem{Operation: journal.Operation(r.Operation), Receipt: journal.Receipt{ID: r.Subject, SessionID: r.SessionID, AdmittedSeq: r.Seq, CreatedAt: r.CreatedAt}}
	switch item.Operation {
	case journal.OpCreatePrompt:
		var row inputRow
		if err := q.get(ctx, &row, "SELECT "+inputColumns+" FROM input WHERE id = ?", r.Subject); err != nil {
			return item, err
		}
		item.Receipt = row.receipt()
		item.State = row.State
	case journal.OpDecide:
		req, err := loadRequest(ctx, q, r.Subject)
		if err != nil {
			return item, err
		}
		item.State = string(req.State)
	default:
		err := q.get(ctx, &item.State, "SELECT base FROM session WHERE id = ?", r.SessionID)
		return item, err
	}
	return item, nil
}

// admitted lists the prompts of a session that wait, in the order of admission.
func admitted(ctx context.Context, q querier, sessionID string) ([]QueuedPrompt, error) {
	var rows []struct {
		inputRow
		Text string `db:"text"`
	}
	if err := q.all(ctx, &rows, "SELECT "+inputColumns+", text FROM input WHERE session_id = ? AND state = 'admitted' ORDER BY admitted_seq", sessionID); err != nil {
		return nil, err
	}
	out := make([]QueuedPrompt, 0, len(rows))
	for _, r := range rows {
		out = append(out, QueuedPrompt{Receipt: r.receipt(), Text: r.Text})
	}
	return out, nil
}

// QueuedPrompt is an admitted prompt with its text.
type QueuedPrompt struct {
	Receipt journal.Receipt
	Text    string
}

// PromoteNext opens a turn with the oldest admitted steer, else the oldest
// queued prompt (PRO-1, PRO-2). For the execution that holds the claim. No
// prompt, or an open turn: no event, no error. Codes: stale_claim.
func (s *Store) PromoteNext(ctx context.Context, c *journal.Claim) ([]journal.Event, error) {
	return s.promote(ctx, c, false, func(st *journal.State) []journal.Waiting {
		first := max(0, slices.IndexFunc(st.Admitted, journal.Waiting.Steers))
		return st.Admitted[first : first+1]
	})
}

// PromoteSteers promotes, at a boundary of the open turn, all steers that are
// admitted, in the order of admission (PRO-1, PRO-3). No steer, or no open
// turn: no event, no error. Codes: stale_claim.
func (s *Store) PromoteSteers(ctx context.Context, c *journal.Claim) ([]journal.Event, error) {
	return s.promote(ctx, c, true, func(st *journal.State) []journal.Waiting {
		return slices.DeleteFunc(slices.Clone(st.Admitted), func(w journal.Waiting) bool { return !w.Steers() })
	})
}

func (s *Store) promote(ctx context.Context, c *journal.Claim, inTurn bool, pick func(*journal.State) []journal.Waiting) ([]journal.Event, error) {
	var out []journal.Event
	err := s.write(ctx, c.SessionID, func(ctx context.Context, t *tx) error {
		out = nil
		l, err := t.lockFenced(ctx, c, 0)
		if err != nil {
			return err
		}
		st := &l.st
		if st.TurnOpen() != inTurn || len(st.Admitted) == 0 || st.Interrupt != nil || st.Archived || st.Held || st.Blocked != nil || st.Unknowns() > 0 {
			return nil
		}
		turn := NewID("trn")
		opens := !st.TurnOpen()
		if !opens {
			turn = st.Turn.ID
		}
		for i, w := range pick(st) {
			if opens && i == 0 {
				if err := l.append(ctx, journal.Server(), &journal.TurnStarted{TurnID: turn, Cause: journal.CausePrompt}); err != nil {
					return err
				}
			}
			promoted := &journal.PromptPromoted{PromptID: w.ID, Delivery: w.Delivery, MessageID: NewID("msg"), TurnID: turn, Begins: opens && i == 0 && w.Delivery == journal.Steer}
			if err := l.append(ctx, journal.Server(), promoted); err != nil {
				return err
			}
		}
		out = l.events
		err = l.flush(ctx)
		Crash("promote.before_commit")
		return err
	})
	if len(out) > 0 {
		Crash("promote.after_commit")
	}
	return out, err
}

// PromptTexts gives the texts of prompts of one session, by id.
func (s *Store) PromptTexts(ctx context.Context, sessionID string, ids []string) (map[string]string, error) {
	out := map[string]string{}
	err := s.read(ctx, func(q querier) error {
		for _, id := range ids {
			var text string
			if err := q.get(ctx, &text, "SELECT text FROM input WHERE id = ? AND session_id = ?", id, sessionID); err != nil {
				return err
			}
			out[id] = text
		}
		return nil
	})
	return out, err
}

// HasMessage tells whether a message of a session is in the journal.
func (s *Store) HasMessage(ctx context.Context, sessionID, id string) (bool, error) {
	var n int
	err := s.read(ctx, func(q querier) error {
		return q.get(ctx, &n, "SELECT count(*) FROM message WHERE session_id = ? AND id = ?", sessionID, id)
	})
	return n > 0, err
}
