package store

import (
	"context"
	"database/sql"
	"errors"

	"holdfast/journal"
)

// NewMission is the place of what is typed for a session that doesn't exist yet.
const NewMission = "new"

// Unsent is text that its owner typed and did not send. It is never sent by
// itself, and it is no part of the journal: it is lost with the table.
type Unsent struct {
	Text      string
	UpdatedAt int64
}

// KeepUnsent keeps what is typed at a place: the id of one of the owner's
// sessions, or NewMission. Text that is empty forgets it. key is the idempotency
// key of the form that it stands in: if a prompt or a session was made under it,
// the text has been sent, and nothing is kept, so that a save that comes late
// doesn't bring it back. Codes: not_found, unprocessable or too_large (text out
// of the bounds of a prompt), unavailable.
func (s *Store) KeepUnsent(ctx context.Context, owner, place, key, text string) error {
	if text == "" {
		return s.DropUnsent(ctx, owner, place)
	}
	if err := journal.CheckText(text); err != nil {
		return err
	}
	return s.write(ctx, place, func(ctx context.Context, t *tx) error {
		if place != NewMission {
			if _, _, err := head(ctx, t, owner, place); err != nil {
				return err
			}
		}
		sent, err := wasSent(ctx, t, owner, place, key)
		if err != nil || sent {
			return err
		}
		d := t.dialect()
		_, err = t.exec(ctx, "INSERT INTO unsent (owner_id, place, idem_key, text, updated_at) VALUES (?, ?, ?, ?, "+d.now()+") ON CONFLICT (owner_id, place) DO UPDATE SET idem_key = excluded.idem_key, text = excluded.text, updated_at = excluded.updated_at",
			owner, place, key, text, d.nowArg())
		return err
	})
}

// operationAt is what sends the text of a place.
func operationAt(place string) journal.Operation {
	if place == NewMission {
		return journal.OpCreateSession
	}
	return journal.OpCreatePrompt
}

func wasSent(ctx context.Context, q querier, owner, place, key string) (bool, error) {
	_, err := loadReceipt(ctx, q, owner, operationAt(place), key)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// DropUnsent forgets what was typed at a place; if nothing was, nothing happens.
// Code: unavailable.
func (s *Store) DropUnsent(ctx context.Context, owner, place string) error {
	return s.write(ctx, place, func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, "DELETE FROM unsent WHERE owner_id = ? AND place = ?", owner, place)
		return err
	})
}

// Unsent gives what the owner typed at a place; its text is empty if nothing is kept.
func (s *Store) Unsent(ctx context.Context, owner, place string) (Unsent, error) {
	var out Unsent
	err := s.read(ctx, func(q querier) error {
		var err error
		out, err = unsent(ctx, q, owner, place)
		return err
	})
	return out, err
}

func unsent(ctx context.Context, q querier, owner, place string) (Unsent, error) {
	var row struct {
		Text      string `db:"text"`
		UpdatedAt int64  `db:"updated_at"`
	}
	// What was sent under its key isn't unsent, even if whoever sent it never heard of that.
	err := q.get(ctx, &row, "SELECT text, updated_at FROM unsent u WHERE owner_id = ? AND place = ? AND NOT EXISTS (SELECT 1 FROM receipt r WHERE r.owner_id = u.owner_id AND r.operation = ? AND r.idem_key = u.idem_key)", owner, place, string(operationAt(place)))
	if errors.Is(err, sql.ErrNoRows) {
		return Unsent{}, nil
	}
	return Unsent(row), err
}
