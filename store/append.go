package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"holdfast/journal"
)

// sessionRow is a row of the table session.
type sessionRow struct {
	ID           string         `db:"id"`
	OwnerID      string         `db:"owner_id"`
	WorkspaceID  string         `db:"workspace_id"`
	Preset       string         `db:"preset"`
	Rules        string         `db:"rules"`
	Policy       string         `db:"policy"`
	RulesVersion int64          `db:"rules_version"`
	NextSeq      int64          `db:"next_seq"`
	Epoch        int64          `db:"epoch"`
	ExecutionID  sql.NullString `db:"execution_id"`
	UpdatedAt    int64          `db:"updated_at"`
	State        string         `db:"state"`
}

const sessionColumns = "id, owner_id, workspace_id, preset, rules, policy, rules_version, next_seq, epoch, execution_id, updated_at, state"

func (r *sessionRow) state() (journal.State, error) {
	var st journal.State
	if err := json.Unmarshal([]byte(r.State), &st); err != nil {
		return st, fmt.Errorf("read the state of %s: %w", r.ID, err)
	}
	st.UpdatedAt = r.UpdatedAt
	return st, nil
}

// locked is a session whose row this transaction has locked. Events are
// appended to it in memory and in the journal; flush writes the row back.
type locked struct {
	t      *tx
	row    sessionRow
	st     journal.State
	exec   string // the execution that appends, or ""
	now    int64  // the database's clock when the row was locked
	seq    int64  // the last seq given out
	events []journal.Event
}

func newLocked(t *tx, row sessionRow, now int64) (*locked, error) {
	st, err := t.w.states.of(&row)
	if err != nil {
		return nil, err
	}
	return &locked{t: t, row: row, st: st, now: now, seq: row.NextSeq}, nil
}

// maxStates bounds what a writer remembers.
const maxStates = 256

// states are what a writer has read out of its latest sessions' rows: a state
// that is as it was written isn't parsed again. The text in the row decides, so
// that what was rolled back, or written elsewhere, is never taken from here.
// They are shared: State.Apply copies what it changes.
type states map[string]knownState

type knownState struct {
	text string
	st   journal.State
}

func (s states) of(row *sessionRow) (journal.State, error) {
	if known, ok := s[row.ID]; ok && known.text == row.State {
		known.st.UpdatedAt = row.UpdatedAt
		return known.st, nil
	}
	st, err := row.state()
	if err == nil {
		s.keep(row.ID, row.State, st)
	}
	return st, err
}

func (s states) keep(id, text string, st journal.State) {
	if _, known := s[id]; !known && len(s) >= maxStates {
		clear(s)
	}
	s[id] = knownState{text, st}
}

func noSession() error {
	return journal.Errorf(journal.NotFound, "There is no such session, or it is not shared with you.").Typed("no-such-session")
}

// lockOwned takes the row's lock for a person's door: only its owner finds it (OWN-1).
// It doesn't write the row, which flush does; on Postgres it reads row and clock
// anew if it had to wait for somebody who wrote.
func (t *tx) lockOwned(ctx context.Context, id, owner string) (*locked, error) {
	d := t.dialect()
	row, err := t.lockedRow(ctx, "SELECT "+sessionColumns+", "+d.now()+" FROM session WHERE id = ? AND owner_id = ?"+d.lock(), d.nowArg(), id, owner)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, noSession()
	}
	if err != nil {
		return nil, err
	}
	return newLocked(t, row.sessionRow, row.Now)
}

// lockedRow is a session's row with the clock as it was once the row was locked:
// after the wait, so that times of one journal don't go back because of it.
type lockedRow struct {
	sessionRow
	Now int64
}

// lockedRow runs a statement that locks one session and answers with
// sessionColumns and the clock. Every write begins with it, so it is read
// without sqlx's search for the fields.
func (t *tx) lockedRow(ctx context.Context, q string, args ...any) (r lockedRow, err error) {
	st, err := t.stmt(ctx, q)
	if err != nil {
		return r, err
	}
	err = st.QueryRowContext(ctx, args...).Scan(&r.ID, &r.OwnerID, &r.WorkspaceID, &r.Preset, &r.Rules, &r.Policy, &r.RulesVersion,
		&r.NextSeq, &r.Epoch, &r.ExecutionID, &r.UpdatedAt, &r.State, &r.Now)
	if err != nil {
		err = fmt.Errorf("lock %q: %w", journal.Cut(q, 60), err)
	}
	return r, err
}

// lockFenced is the run's door: one statement fences by the execution id, takes
// the row's lock and allocates n seqs (LEA-4). No row: this execution is over.
func (t *tx) lockFenced(ctx context.Context, c *journal.Claim, n int) (*locked, error) {
	d := t.dialect()
	var row lockedRow
	var err error
	if n > 0 { // most appends, such as output, change nothing else of the row: flush then has nothing to write
		err = t.get(ctx, &row, "UPDATE session SET next_seq = next_seq + ?, updated_at = "+d.now()+" WHERE id = ? AND execution_id = ? RETURNING "+sessionColumns+", updated_at AS now",
			n, d.nowArg(), c.SessionID, c.ExecutionID)
	} else {
		err = t.get(ctx, &row, "UPDATE session SET next_seq = next_seq WHERE id = ? AND execution_id = ? RETURNING "+sessionColumns+", "+d.now()+" AS now",
			c.SessionID, c.ExecutionID, d.nowArg())
	}
	if errors.Is(err, sql.ErrNoRows) {
		return nil, staleClaim(c.ExecutionID)
	}
	if err != nil {
		return nil, err
	}
	l, err := newLocked(t, row.sessionRow, row.Now)
	if err != nil {
		return nil, err
	}
	l.exec, l.seq = c.ExecutionID, row.NextSeq-int64(n)
	return l, nil
}

func staleClaim(executionID string) error {
	return journal.Errorf(journal.StaleClaim, "session execution claim lost: %s", executionID)
}

// lockSelect takes the row's lock without writing it: for methods that may find nothing to do.
func (t *tx) lockSelect(ctx context.Context, id, lock string) (*locked, error) {
	d := t.dialect()
	row, err := t.lockedRow(ctx, "SELECT "+sessionColumns+", "+d.now()+" FROM session WHERE id = ?"+lock, d.nowArg(), id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, journal.Errorf(journal.NotFound, "session not found: %s", id)
	}
	if err != nil {
		return nil, err
	}
	return newLocked(t, row.sessionRow, row.Now)
}

// append writes one event and all that it changes.
func (l *locked) append(ctx context.Context, actor journal.Actor, body journal.Body) error {
	return l.appendDraft(ctx, journal.Draft{ID: NewID("evt"), Actor: actor, Body: body})
}

func (l *locked) appendDraft(ctx context.Context, d journal.Draft) error {
	if b, ok := d.Body.(*journal.CallUnknown); ok && b.Since == 0 { // it may have been dispatched in this very batch
		c, err := loadCall(ctx, l.t, b.CallID)
		if err != nil {
			return err
		}
		since := *b
		since.Since, d.Body = c.DispatchedAt, &since
	}
	d.Body = l.sinceHeard(d.Body)
	data, err := l.encode(ctx, d.Body)
	if err != nil {
		return err
	}
	ev := journal.Event{
		ID: d.ID, SessionID: l.row.ID, Seq: l.seq + 1, Kind: d.Body.Kind(), Version: 1, Time: l.now,
		Actor: d.Actor, ExecutionID: l.exec, Data: data,
	}
	// The projector sees what the journal holds, after cleaning, never what was meant.
	body, err := ev.Decode()
	if err != nil {
		return err
	}
	if err := l.insert(ctx, &ev); err != nil {
		return err
	}
	if err := project(ctx, l.t, l.t, &l.st, &ev, body); err != nil {
		return err
	}
	l.seq = ev.Seq
	l.events = append(l.events, ev)
	l.t.events = append(l.t.events, ev)
	return nil
}

// soon is how late a beginning may be written down and still count as written at once.
const soon = time.Second

// sinceHeard has a dispatch say when its agent was heard to begin, if that is well before.
// How long ago it was is told by the clock of who heard it, when it was by the journal's.
func (l *locked) sinceHeard(body journal.Body) journal.Body {
	b, ok := body.(*journal.CallDispatched)
	if !ok || b.Heard.IsZero() {
		return body
	}
	ago := time.Since(b.Heard)
	if ago <= soon {
		return body
	}
	since := *b
	since.Since = l.now - ago.Milliseconds()
	return &since
}

func (l *locked) insert(ctx context.Context, ev *journal.Event) error {
	_, err := l.t.exec(ctx, "INSERT INTO event (session_id, seq, id, kind, version, time, actor_type, actor_id, execution_id, data, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		ev.SessionID, ev.Seq, ev.ID, string(ev.Kind), ev.Version, ev.Time, string(ev.Actor.Type), journal.OrNil(ev.Actor.ID), journal.OrNil(ev.ExecutionID), string(ev.Data), checksum(ev))
	return err
}

// checksum is by what verify sees that a row of the journal was changed after it
// was written: 64 bits over all that it says. It guards against accidents and
// stray hands, not against somebody who computes it anew.
func checksum(ev *journal.Event) int64 {
	h := sha256.New()
	for _, s := range []string{
		ev.SessionID, strconv.FormatInt(ev.Seq, 10), ev.ID, string(ev.Kind), strconv.Itoa(ev.Version), strconv.FormatInt(ev.Time, 10),
		string(ev.Actor.Type), ev.Actor.ID, ev.ExecutionID, string(ev.Data),
	} {
		h.Write([]byte(s))
		h.Write([]byte{0}) // no text of the journal has one
	}
	return int64(binary.BigEndian.Uint64(h.Sum(nil)))
}

// encode cleans a body, moves long texts into blobs and bounds the rest (JRN-6, JRN-8).
func (l *locked) encode(ctx context.Context, body journal.Body) ([]byte, error) {
	if t, ok := body.(journal.Texter); ok {
		for _, text := range t.Texts() {
			if err := l.blob(ctx, text); err != nil {
				return nil, err
			}
		}
	}
	body, moved, err := l.withInput(ctx, body)
	if err != nil {
		return nil, err
	}
	data, err := journal.Encode(body)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", body.Kind(), err)
	}
	if data, err = l.clean().Typed(body, data, moved...); err != nil {
		return nil, fmt.Errorf("clean %s: %w", body.Kind(), err)
	}
	if len(data) > journal.MaxEventBody {
		return nil, journal.Errorf(journal.TooLarge, "The event %s would have %d bytes; at most %d are taken.", body.Kind(), len(data), journal.MaxEventBody)
	}
	return data, nil
}

// clean is the cleaner of the session's owner.
func (l *locked) clean() *journal.Cleaner { return l.t.w.s.Cleaner(l.row.OwnerID) }

func (l *locked) blob(ctx context.Context, text *journal.Text) error {
	if !text.Long() {
		return nil
	}
	clean := l.clean().Text
	if text.Raw {
		clean = l.clean().Bytes
	}
	ref, err := l.putBlob(ctx, []byte(clean(text.S)))
	if err != nil {
		return err
	}
	// S stays: the method may be run again after its batch was rolled back.
	text.Blob, text.Bytes = ref.Blob, ref.Bytes
	return nil
}

// withInput moves the input of a call into a blob if it is long, and names the member
// that refers to it.
func (l *locked) withInput(ctx context.Context, body journal.Body) (_ journal.Body, moved []string, err error) {
	b, ok := body.(journal.Inputter)
	if !ok {
		return body, nil, nil
	}
	if input, _ := b.CallInput(); len(input) > journal.MaxField {
		input, err = l.blobInput(ctx, input)
		return b.WithInput(input), []string{"input"}, err
	}
	return body, nil, nil
}

func (l *locked) blobInput(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
	clean, err := l.clean().JSON(input)
	if err != nil {
		return nil, fmt.Errorf("clean the input: %w", err)
	}
	ref, err := l.putBlob(ctx, clean)
	if err != nil {
		return nil, err
	}
	return journal.Encode(ref)
}

func (l *locked) putBlob(ctx context.Context, data []byte) (journal.Text, error) {
	sum := journal.Hash(data)
	_, err := l.t.exec(ctx, "INSERT INTO blob (session_id, sha256, data) VALUES (?, ?, ?) ON CONFLICT (session_id, sha256) DO NOTHING", l.row.ID, sum, data)
	return journal.Text{Blob: sum, Bytes: int64(len(data))}, err
}

// flush writes the session's row back after appends and asks for the wake-ups.
func (l *locked) flush(ctx context.Context) error {
	state, err := journal.Encode(&l.st)
	if err != nil {
		return fmt.Errorf("encode the state: %w", err)
	}
	if string(state) != l.row.State || l.seq != l.row.NextSeq {
		_, err = l.t.exec(ctx, "UPDATE session SET next_seq = ?, state = ?, base = ?, needs = ?, interrupted = ?, runnable_at = ?, title = ?, title_folded = ?, agent = ?, workspace = ?, updated_at = ? WHERE id = ?",
			l.seq, string(state), string(l.st.Base), string(l.st.Needs()), interrupted(&l.st), runnable(&l.st),
			l.st.Title, fold(l.st.Title), l.st.Agent, l.st.Workspace, l.now, l.row.ID)
		if err != nil {
			return err
		}
		l.row.State, l.row.NextSeq = string(state), l.seq
		l.t.w.states.keep(l.row.ID, l.row.State, l.st)
	}
	l.t.wake(l.row.ID, l.seq, false)
	return nil
}

// wakeWork asks runners to look, if there is something to do for one.
func (l *locked) wakeWork() {
	if l.st.RunnableAt > 0 || l.st.Interrupt != nil {
		l.t.wake(l.row.ID, l.seq, true)
	}
}

func runnable(st *journal.State) *int64 {
	if st.RunnableAt == 0 {
		return nil
	}
	return &st.RunnableAt
}

// interruptedNow is what the column interrupted holds while an interrupt is to take effect at once.
const interruptedNow = 2

// interrupted is interruptedNow, 1 for an interrupt that waits for a boundary, or 0.
func interrupted(st *journal.State) int64 {
	switch {
	case !st.TurnOpen() || st.Interrupt == nil:
		return 0
	case st.Interrupt.AtOnce():
		return interruptedNow
	}
	return 1
}

func boolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// fold is how titles and prompts are searched in any case.
func fold(s string) string { return strings.ToLower(s) }
