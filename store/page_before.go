package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"holdfast/journal"
)

// contradicted reads what agents had said of those of the calls of which they said
// something else once somebody was asked: the row of an intent is not rewritten by that.
func (p *SessionPage) contradicted(ctx context.Context, q querier, id string) error {
	p.Before = map[string]json.RawMessage{}
	since := int64(0)
	for _, c := range p.Calls {
		if c != nil && c.AttemptID != "" && (since == 0 || c.ProposedSeq < since) {
			since = c.ProposedSeq
		}
	}
	if since == 0 {
		return nil
	}
	var rows []eventRow
	if err := q.all(ctx, &rows, "SELECT "+eventColumns+" FROM event"+q.dialect().indexed("event_entry")+" WHERE session_id = ? AND seq > ? AND kind NOT IN ("+pieceKinds+") AND kind = 'call.contradicted' ORDER BY seq", id, since); err != nil {
		return err
	}
	for i := range rows {
		ev := rows[i].event()
		body, err := ev.Decode()
		b, ok := body.(*journal.CallContradicted)
		if err != nil || !ok || b.Late != journal.LateAsked {
			continue
		}
		c := p.Calls[b.CallID]
		if _, done := p.Before[b.CallID]; c == nil || done {
			continue
		}
		if p.Before[b.CallID], err = describedBefore(ctx, q, c, ev.Seq); err != nil {
			return err
		}
	}
	return nil
}

// describedBefore reads the last that an agent had said of a call before an event.
func describedBefore(ctx context.Context, q querier, c *journal.Call, seq int64) (json.RawMessage, error) {
	var data []byte
	err := q.get(ctx, &data, "SELECT data FROM event WHERE session_id = ? AND seq >= ? AND seq < ? AND kind IN ('call.proposed', 'call.described') AND data LIKE ? ORDER BY seq DESC LIMIT 1",
		c.SessionID, c.ProposedSeq, seq, `%"call_id":"`+c.ID+`"%`)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var said struct {
		Input       json.RawMessage `json:"input"`
		InputSHA256 string          `json:"input_sha256"`
	}
	if err := json.Unmarshal(data, &said); err != nil {
		return nil, nil //nolint:nilerr // a damaged one: verify says so
	}
	return whole(ctx, q, c.SessionID, said.Input, said.InputSHA256)
}
