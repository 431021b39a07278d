package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"holdfast/journal"
)

// target is where projections are written: a method's transaction, or the
// scratch tables of verify.
type target interface {
	querier
	exec(ctx context.Context, q string, args ...any) (int64, error)
}

// blobs reads the journal's long texts while it is projected.
type blobs interface {
	get(ctx context.Context, dest any, q string, args ...any) error
}

// project applies one event to the state and to the tables derived from it, in
// the event's own transaction (JRN-3). It is the only code that writes them, and
// what verify runs over the journal to compare (JRN-4). Each change is
// conditional on the state that it leaves: conflict means that nothing may be
// written (CAL-8).
func project(ctx context.Context, t target, b blobs, st *journal.State, ev *journal.Event, body journal.Body) error {
	if err := st.Apply(ev, body); err != nil {
		return err
	}
	switch d := body.(type) {
	case *journal.PromptAdmitted:
		return projectAdmitted(ctx, t, b, ev, d)
	case *journal.PromptPromoted:
		return moveInput(ctx, t, d.PromptID, "UPDATE input SET state = 'promoted', promoted_seq = ?, message_id = ?, turn_id = ? WHERE id = ? AND session_id = ? AND state = 'admitted'",
			ev.Seq, d.MessageID, d.TurnID, d.PromptID, ev.SessionID)
	case *journal.PromptWithdrawn:
		return moveInput(ctx, t, d.PromptID, "UPDATE input SET state = 'withdrawn' WHERE id = ? AND session_id = ? AND state = 'admitted'", d.PromptID, ev.SessionID)
	case *journal.MessageDelta:
		return projectDelta(ctx, t, ev, d)
	case *journal.MessageCompleted:
		return projectMessage(ctx, t, b, ev, d)
	case *journal.CallProposed:
		return insertCall(ctx, t, journal.NewCall(ev, d))
	case *journal.CallOutput:
		return projectOutput(ctx, t, ev, d)
	case *journal.PermissionAsked:
		if err := insertRequest(ctx, t, journal.NewRequest(ev, d)); err != nil {
			return err
		}
		return moveCall(ctx, t, d.Tool.CallID, ev, body)
	case *journal.PermissionReplied:
		return moveRequest(ctx, t, d.ID, ev, body)
	case *journal.PermissionCancelled:
		return moveRequest(ctx, t, d.ID, ev, body)
	case *journal.StepRecovered:
		_, err := t.exec(ctx, "INSERT INTO recovery (session_id, execution_id, seq, phase) VALUES (?, ?, ?, ?)", ev.SessionID, d.ExecutionID, ev.Seq, string(d.Phase))
		return err
	}
	if d, ok := body.(*journal.CallDispatched); ok && d.N > 1 { // its offsets start again at 0
		if _, err := t.exec(ctx, "DELETE FROM call_output WHERE call_id = ? AND session_id = ?", d.CallID, ev.SessionID); err != nil {
			return err
		}
	}
	if id := journal.CallOf(body); id != "" {
		return moveCall(ctx, t, id, ev, body)
	}
	return projectAttempt(ctx, t, ev, body)
}

func moveInput(ctx context.Context, t target, id, q string, args ...any) error {
	n, err := t.exec(ctx, q, args...)
	if err != nil || n == 1 {
		return err
	}
	return journal.Errorf(journal.Conflict, "The message %s is not waiting any more.", id).Typed("prompt-state")
}

// fullText gives a text that may lie in a blob.
func fullText(ctx context.Context, b blobs, session string, text journal.Text) (string, error) {
	if text.Blob == "" {
		return text.S, nil
	}
	var data []byte
	if err := b.get(ctx, &data, "SELECT data FROM blob WHERE session_id = ? AND sha256 = ?", session, text.Blob); err != nil {
		return "", fmt.Errorf("read blob %s: %w", text.Blob, err)
	}
	return string(data), nil
}

func projectAdmitted(ctx context.Context, t target, b blobs, ev *journal.Event, d *journal.PromptAdmitted) error {
	text, err := fullText(ctx, b, ev.SessionID, d.Text)
	if err != nil {
		return err
	}
	_, err = t.exec(ctx, "INSERT INTO input (id, session_id, admitted_seq, delivery, text, folded, state, created_at) VALUES (?, ?, ?, ?, ?, ?, 'admitted', ?)",
		d.PromptID, ev.SessionID, ev.Seq, string(d.Delivery), text, fold(text), ev.Time)
	return err
}

const insertMessage = "INSERT INTO message (session_id, id, seq, role, part, text, complete) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (session_id, id, part) DO "

// projectDelta notes that a message has begun. Its text stays in its events until
// it is whole: a row that every piece is added to is written anew each time, all of it.
func projectDelta(ctx context.Context, t target, ev *journal.Event, d *journal.MessageDelta) error {
	_, err := t.exec(ctx, insertMessage+"NOTHING", ev.SessionID, d.MessageID, ev.Seq, d.Role, string(d.Part), "", boolInt(false))
	return err
}

func projectMessage(ctx context.Context, t target, b blobs, ev *journal.Event, d *journal.MessageCompleted) error {
	text, err := fullText(ctx, b, ev.SessionID, d.Text)
	if err != nil {
		return err
	}
	_, err = t.exec(ctx, insertMessage+"UPDATE SET text = excluded.text, complete = excluded.complete",
		ev.SessionID, d.MessageID, ev.Seq, d.Role, string(d.Part), text, boolInt(true))
	return err
}

// projectOutput notes where a piece of output stands. It is the most frequent
// event, so the call that it needs is looked for in the same statement.
func projectOutput(ctx context.Context, t target, ev *journal.Event, d *journal.CallOutput) error {
	n, err := t.exec(ctx, "INSERT INTO call_output (call_id, byte_offset, seq, session_id, stream, bytes, dropped) "+
		"SELECT id, CAST(? AS BIGINT), CAST(? AS BIGINT), session_id, CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT) FROM call WHERE id = ? AND session_id = ? AND (state = 'dispatched' OR state = 'waiting' AND n > 0 AND attempt_id IS NOT NULL)",
		d.Offset, ev.Seq, d.Stream, int64(len(d.Text.S))+d.Text.Bytes, d.Dropped, d.CallID, ev.SessionID)
	if err != nil || n == 1 {
		return err
	}
	return journal.Errorf(journal.Conflict, "The call %s isn't running, so it has no output to add.", d.CallID).Typed("call-state")
}

type callRow struct {
	ID           string         `db:"id"`
	SessionID    string         `db:"session_id"`
	TurnID       string         `db:"turn_id"`
	Key          string         `db:"call_key"`
	Tool         string         `db:"tool"`
	Input        string         `db:"input"`
	InputSHA256  string         `db:"input_sha256"`
	Later        string         `db:"later"`
	Effect       string         `db:"effect"`
	AttemptID    sql.NullString `db:"attempt_id"`
	State        string         `db:"state"`
	N            int            `db:"n"`
	ExitCode     sql.NullInt64  `db:"exit_code"`
	Signal       string         `db:"signal"`
	Reason       string         `db:"reason"`
	OutputBytes  int64          `db:"output_bytes"`
	DroppedBytes int64          `db:"dropped_bytes"`
	Resolution   sql.NullString `db:"resolution"`
	AllowedBy    sql.NullString `db:"allowed_by"`
	Process      sql.NullString `db:"process"`
	ProposedSeq  int64          `db:"proposed_seq"`
	DispatchedAt int64          `db:"dispatched_at"`
	EndedAt      int64          `db:"ended_at"`
	RanMS        sql.NullInt64  `db:"ran_ms"`
	Since        int64          `db:"since"`
	Evidence     sql.NullString `db:"evidence"`
	Feedback     string         `db:"feedback"`
	AdoptedAt    int64          `db:"adopted_at"`
	AdoptedBy    string         `db:"adopted_by"`
}

const callColumns = "id, session_id, turn_id, call_key, tool, input, input_sha256, later, effect, attempt_id, state, n, exit_code, signal, reason, output_bytes, dropped_bytes, resolution, allowed_by, process, proposed_seq, dispatched_at, ended_at, since, evidence, feedback, adopted_at, adopted_by, ran_ms"

func (r *callRow) call() (*journal.Call, error) {
	c := &journal.Call{
		ID: r.ID, SessionID: r.SessionID, TurnID: r.TurnID, Key: r.Key, Tool: r.Tool, Input: json.RawMessage(r.Input), InputSHA256: r.InputSHA256,
		Effect: journal.Effect(r.Effect), AttemptID: r.AttemptID.String, State: journal.CallState(r.State), N: r.N, Signal: r.Signal, Reason: r.Reason,
		OutputBytes: r.OutputBytes, DroppedBytes: r.DroppedBytes, ProposedSeq: r.ProposedSeq, DispatchedAt: r.DispatchedAt, EndedAt: r.EndedAt,
		Since: r.Since, Feedback: r.Feedback, AdoptedAt: r.AdoptedAt, AdoptedBy: r.AdoptedBy,
	}
	if r.Later != "" {
		c.Later = json.RawMessage(r.Later)
	}
	if r.ExitCode.Valid {
		code := int(r.ExitCode.Int64)
		c.ExitCode = &code
	}
	if r.RanMS.Valid {
		c.RanMS = &r.RanMS.Int64
	}
	return c, errors.Join(fromJSON(r.Resolution, &c.Resolution), fromJSON(r.AllowedBy, &c.AllowedBy), fromJSON(r.Process, &c.Process), fromJSON(r.Evidence, &c.Evidence))
}

func fromJSON(s sql.NullString, v any) error {
	if !s.Valid {
		return nil
	}
	return json.Unmarshal([]byte(s.String), v)
}

// toJSON gives null for nil, so that an absent value is absent in SQL too.
func toJSON(v any) (any, error) {
	b, err := journal.Encode(v)
	if err != nil || string(b) == "null" {
		return nil, err
	}
	return string(b), nil
}

func insertCall(ctx context.Context, t target, c *journal.Call) error {
	_, err := t.exec(ctx, "INSERT INTO call (id, session_id, turn_id, call_key, tool, input, input_sha256, effect, attempt_id, state, n, signal, reason, output_bytes, dropped_bytes, proposed_seq, dispatched_at, ended_at, since, feedback) "+
		"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, '', '', 0, 0, ?, 0, 0, 0, '')",
		c.ID, c.SessionID, c.TurnID, c.Key, c.Tool, string(c.Input), c.InputSHA256, string(c.Effect), journal.OrNil(c.AttemptID), string(c.State), c.ProposedSeq)
	return err
}

func loadCall(ctx context.Context, q querier, id string) (*journal.Call, error) {
	var row callRow
	err := q.get(ctx, &row, "SELECT "+callColumns+" FROM call WHERE id = ?", id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, noCall()
	}
	if err != nil {
		return nil, err
	}
	return row.call()
}

func noCall() error {
	return journal.Errorf(journal.NotFound, "There is no such call, or it is not shared with you.").Typed("no-such-call")
}

// moveCall applies an event to a call's row, on condition that the row is still in the state that was read.
func moveCall(ctx context.Context, t target, id string, ev *journal.Event, body journal.Body) error {
	c, err := loadCall(ctx, t, id)
	if err != nil {
		return err
	}
	if c.SessionID != ev.SessionID {
		return noCall()
	}
	if err := mayDispatch(ctx, t, c, body); err != nil {
		return err
	}
	was := c.State
	if err := c.Apply(ev, body); err != nil {
		return err
	}
	resolution, err1 := toJSON(c.Resolution)
	allowed, err2 := toJSON(c.AllowedBy)
	process, err3 := toJSON(c.Process)
	evidence, err4 := toJSON(c.Evidence)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return fmt.Errorf("encode call %s: %w", id, err)
	}
	if c.State == journal.CallIsUnknown && was != c.State { // nobody counted its output: the index has
		if c.OutputBytes, c.DroppedBytes, err = countOutput(ctx, t, c.ID); err != nil {
			return err
		}
	}
	n, err := t.exec(ctx, "UPDATE call SET state = ?, n = ?, exit_code = ?, signal = ?, reason = ?, output_bytes = ?, dropped_bytes = ?, resolution = ?, allowed_by = ?, process = ?, dispatched_at = ?, ended_at = ?, since = ?, evidence = ?, feedback = ?, adopted_at = ?, adopted_by = ?, ran_ms = ? WHERE id = ? AND state = ?",
		string(c.State), c.N, c.ExitCode, c.Signal, c.Reason, c.OutputBytes, c.DroppedBytes, resolution, allowed, process, c.DispatchedAt, c.EndedAt, c.Since, evidence, c.Feedback, c.AdoptedAt, c.AdoptedBy, c.RanMS, id, string(was))
	if err == nil && n != 1 {
		return journal.Errorf(journal.Conflict, "The call %s has moved on.", id).Typed("call-state")
	}
	switch body.(type) {
	case *journal.CallDescribed, *journal.CallContradicted:
		if err != nil {
			break
		}
		_, err = t.exec(ctx, "UPDATE call SET input = ?, input_sha256 = ?, later = ?, effect = ? WHERE id = ?", string(c.Input), c.InputSHA256, string(c.Later), string(c.Effect), id)
	}
	return err
}

// mayDispatch refuses to dispatch a call that somebody was asked about and that
// isn't allowed by all who were (PER-1, PER-4).
func mayDispatch(ctx context.Context, t target, c *journal.Call, body journal.Body) error {
	if _, ok := body.(*journal.CallDispatched); !ok || c.State != journal.CallIsWaiting {
		return nil
	}
	states := "'pending', 'rejected', 'rejected_with_feedback'"
	if c.Began() { // what was rejected of it then is no answer to what its agent asks now
		states = "'pending'"
	}
	var n int
	err := t.get(ctx, &n, "SELECT count(*) FROM request WHERE session_id = ? AND call_id = ? AND state IN ("+states+")", c.SessionID, c.ID)
	if err == nil && n > 0 {
		return journal.Errorf(journal.Conflict, "The call %s is not allowed: %d of its requests are open or rejected.", c.ID, n).Typed("call-not-allowed")
	}
	return err
}

// countOutput tells how much a call has written so far, and how much of that was not kept.
func countOutput(ctx context.Context, q querier, callID string) (bytes, dropped int64, err error) {
	var n struct {
		Bytes   int64 `db:"bytes"`
		Dropped int64 `db:"dropped"`
	}
	err = q.get(ctx, &n, "SELECT coalesce(max(byte_offset + bytes), 0) AS bytes, CAST(coalesce(sum(dropped), 0) AS BIGINT) AS dropped FROM call_output WHERE call_id = ?", callID)
	return n.Bytes, n.Dropped, err
}

type requestRow struct {
	ID         string         `db:"id"`
	SessionID  string         `db:"session_id"`
	CallID     string         `db:"call_id"`
	MessageID  sql.NullString `db:"message_id"`
	Permission string         `db:"permission"`
	Resources  string         `db:"resources"`
	Always     string         `db:"always"`
	Digest     string         `db:"digest"`
	Metadata   string         `db:"metadata"`
	State      string         `db:"state"`
	AskedAt    int64          `db:"asked_at"`
	AskedSeq   int64          `db:"asked_seq"`
	Reason     string         `db:"reason"`
	Reply      string         `db:"reply"`
	By         string         `db:"replied_by"`
	At         int64          `db:"replied_at"`
	Message    string         `db:"message"`
}

const requestColumns = "id, session_id, call_id, message_id, permission, resources, always, digest, metadata, state, asked_at, asked_seq, reason, reply, replied_by, replied_at, message"

func (r *requestRow) request() (*journal.Request, error) {
	q := &journal.Request{
		ID: r.ID, SessionID: r.SessionID, Tool: journal.ToolRef{CallID: r.CallID}, Permission: r.Permission, Digest: r.Digest,
		Metadata: json.RawMessage(r.Metadata), State: journal.RequestState(r.State), AskedAt: r.AskedAt, AskedSeq: r.AskedSeq,
		Reason: r.Reason, Reply: journal.Reply(r.Reply), By: r.By, At: r.At, Message: r.Message,
	}
	if r.MessageID.Valid {
		q.Tool.MessageID = &r.MessageID.String
	}
	return q, errors.Join(json.Unmarshal([]byte(r.Resources), &q.Resources), json.Unmarshal([]byte(r.Always), &q.Always))
}

func insertRequest(ctx context.Context, t target, r *journal.Request) error {
	resources, err1 := journal.Encode(r.Resources)
	always, err2 := journal.Encode(r.Always)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("encode request %s: %w", r.ID, err)
	}
	_, err := t.exec(ctx, "INSERT INTO request (id, session_id, call_id, message_id, permission, resources, always, digest, metadata, state, asked_at, asked_seq, reason, reply, replied_by, replied_at, message) "+
		"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', '', '', 0, '')",
		r.ID, r.SessionID, r.Tool.CallID, r.Tool.MessageID, r.Permission, string(resources), string(always), r.Digest, string(r.Metadata), string(r.State), r.AskedAt, r.AskedSeq)
	return err
}

func loadRequest(ctx context.Context, q querier, id string) (*journal.Request, error) {
	var row requestRow
	err := q.get(ctx, &row, "SELECT "+requestColumns+" FROM request WHERE id = ?", id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, noRequest()
	}
	if err != nil {
		return nil, err
	}
	return row.request()
}

func noRequest() error {
	return journal.Errorf(journal.NotFound, "There is no such request, or it is not shared with you.").Typed("no-such-request")
}

// moveRequest applies an event to a request's row and to its call: the first answer wins by the condition on the state (PER-2).
func moveRequest(ctx context.Context, t target, id string, ev *journal.Event, body journal.Body) error {
	r, err := loadRequest(ctx, t, id)
	if err != nil {
		return err
	}
	if r.SessionID != ev.SessionID {
		return noRequest()
	}
	was := r.State
	if err := r.Apply(ev, body); err != nil {
		return err
	}
	n, err := t.exec(ctx, "UPDATE request SET state = ?, reason = ?, reply = ?, replied_by = ?, replied_at = ?, message = ? WHERE id = ? AND state = ?",
		string(r.State), r.Reason, string(r.Reply), r.By, r.At, r.Message, id, string(was))
	if err != nil {
		return err
	}
	if n != 1 {
		return journal.Errorf(journal.Conflict, "The request %s has moved on.", id).Typed("request-state")
	}
	return moveCall(ctx, t, r.Tool.CallID, ev, body)
}

func projectAttempt(ctx context.Context, t target, ev *journal.Event, body journal.Body) error {
	var id string
	switch d := body.(type) {
	case *journal.AttemptPrepared:
		_, err := t.exec(ctx, "INSERT INTO attempt (id, session_id, turn_id, model, state, resolution, seq) VALUES (?, ?, ?, ?, 'prepared', '', ?)", d.AttemptID, ev.SessionID, d.TurnID, d.Model, ev.Seq)
		return err
	case *journal.AttemptDispatched:
		id = d.AttemptID
	case *journal.AttemptReceiving:
		id = d.AttemptID
	case *journal.AttemptSettled:
		id = d.AttemptID
	case *journal.AttemptFailed:
		id = d.AttemptID
	case *journal.AttemptUnknown:
		id = d.AttemptID
	case *journal.AttemptResolved:
		id = d.AttemptID
	default:
		return nil
	}
	a, err := loadAttempt(ctx, t, id)
	if err != nil {
		return err
	}
	if a.SessionID != ev.SessionID {
		return noAttempt()
	}
	was := a.State
	if err := a.Apply(ev, body); err != nil {
		return err
	}
	n, err := t.exec(ctx, "UPDATE attempt SET state = ?, resolution = ? WHERE id = ? AND state = ?", string(a.State), string(a.Resolution), id, string(was))
	if err != nil || n == 1 {
		return err
	}
	return journal.Errorf(journal.Conflict, "The attempt %s has moved on.", id).Typed("attempt-state")
}

func noAttempt() error {
	return journal.Errorf(journal.NotFound, "There is no such attempt, or it is not shared with you.").Typed("no-such-attempt")
}

func loadAttempt(ctx context.Context, q querier, id string) (*journal.Attempt, error) {
	var row struct {
		ID         string `db:"id"`
		SessionID  string `db:"session_id"`
		TurnID     string `db:"turn_id"`
		Model      string `db:"model"`
		State      string `db:"state"`
		Resolution string `db:"resolution"`
		Seq        int64  `db:"seq"`
	}
	err := q.get(ctx, &row, "SELECT id, session_id, turn_id, model, state, resolution, seq FROM attempt WHERE id = ?", id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, noAttempt()
	}
	if err != nil {
		return nil, err
	}
	return &journal.Attempt{
		ID: row.ID, SessionID: row.SessionID, TurnID: row.TurnID, Model: row.Model,
		State: journal.AttemptState(row.State), Resolution: journal.AttemptVerdict(row.Resolution), Seq: row.Seq,
	}, nil
}
