package main

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"holdfast/journal"
	"holdfast/store"
)

// What one admission and one append leave in the tables, written as directly
// as it can be: the ids are made, all else is known before.

const (
	insertEvent   = "INSERT INTO event (session_id, seq, id, kind, version, time, actor_type, actor_id, execution_id, data, checksum) VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?)"
	insertReceipt = "INSERT INTO receipt (owner_id, operation, idem_key, session_id, payload_sha256, subject_id, seq, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (owner_id, operation, idem_key) DO NOTHING"
	insertInput   = "INSERT INTO input (id, session_id, admitted_seq, delivery, text, folded, state, created_at) VALUES (?, ?, ?, ?, ?, ?, 'admitted', ?)"
	insertOutput  = "INSERT INTO call_output (call_id, byte_offset, seq, session_id, stream, bytes, dropped) VALUES (?, ?, ?, ?, ?, ?, 0)"

	admitSession = "UPDATE session SET next_seq = next_seq + 1, state = ?, base = 'queued', needs = 'none', interrupted = 0, runnable_at = coalesce(runnable_at, ?), updated_at = ? WHERE id = ? AND owner_id = ? RETURNING next_seq"
	fenceSession = "UPDATE session SET next_seq = next_seq + 1 WHERE id = ? AND execution_id = ? RETURNING next_seq"
)

const (
	someHash     = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	someChecksum = int64(0x1e6f_02c4_9b7a_5d31)
)

// bareAdmission is an admission of a prompt. state is the session's after it.
type bareAdmission struct {
	owner, session, key, text, state string
}

func (a bareAdmission) write(ctx context.Context, c *bareConn) error {
	now := time.Now().UnixMilli()
	id := store.NewID("inp")
	data, err := json.Marshal(&journal.PromptAdmitted{PromptID: id, Delivery: journal.Queue, Text: journal.T(a.text)})
	if err != nil {
		return err
	}
	seq, err := c.next(ctx, admitSession, a.state, now, now, a.session, a.owner)
	if err != nil {
		return err
	}
	if err := c.one(ctx, insertReceipt, a.owner, string(journal.OpCreatePrompt), a.key, a.session, someHash, id, seq, now); err != nil {
		return err
	}
	if err := c.one(ctx, insertEvent, a.session, seq, store.NewID("evt"), string(journal.KindPromptAdmitted), now, "user", a.owner, nil, string(data), someChecksum^seq); err != nil {
		return err
	}
	return c.one(ctx, insertInput, id, a.session, seq, string(journal.Queue), a.text, a.text, now)
}

// bareOutput is an append of one piece of a call's output.
type bareOutput struct {
	session, execution, call string
	offset                   int64
	text                     string
}

func (o bareOutput) write(ctx context.Context, c *bareConn) error {
	data := `{"call_id":"` + o.call + `","stream":"stdout","offset":` + strconv.FormatInt(o.offset, 10) + `,"text":"` + o.text + `"}`
	seq, err := c.next(ctx, fenceSession, o.session, o.execution)
	if err != nil {
		return err
	}
	if err := c.one(ctx, insertEvent, o.session, seq, store.NewID("evt"), string(journal.KindCallOutput), time.Now().UnixMilli(), "agent", nil, o.execution, data, someChecksum^seq); err != nil {
		return err
	}
	return c.one(ctx, insertOutput, o.call, o.offset, seq, o.session, "stdout", int64(len(o.text)))
}
