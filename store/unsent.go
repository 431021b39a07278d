package store

import (
	"context"
	"database/sql"
	"errors"

	"golang.org/x/text/unicode/norm"

	"holdfast/journal"
)

// NewMission is the place of what is typed for a session that doesn't exist yet.
const NewMission = "new"

// Unsent is text that its owner typed and did not send. It is never sent by
// itself, and it is no part of the journal: it is lost with the table.
type Unsent struct {
	Text      string
	UpdatedAt int64 // tells its versions apart, too
}

// UnsentForm is the form that a text stands in: one of several that may be open
// for a place, in several tabs or on several devices.
type UnsentForm struct {
	Key    string // its idempotency key
	KeptAt int64  // the version of the kept text that it was drawn with; 0: there was none
	Typing bool   // it is saved by itself while somebody types, and may come when it was sent already
	Again  bool   // of such a save: who types knows that it was sent, so it doesn't come late
}

// Kept is what became of a text that was to be kept.
type Kept struct {
	At    int64  // the version that is kept of it, greater than any before; 0: it isn't kept
	Other Unsent // another form's text, unseen by this one, which it replaced, or which stands
}

// KeepUnsent keeps what is typed at a place: the id of one of the owner's
// sessions, or NewMission. Text that is empty forgets it, as DropUnsent does. If a
// prompt or a session was made of this text under the form's key, it has been sent,
// and nothing is kept; nor is anything that is saved while it is typed, so that a
// save that comes late doesn't bring half of it back. Another text, as somebody
// writes who went back to the form, is kept under a key of its own. What is saved
// while it is typed replaces no text that another form keeps and that this one
// hasn't seen: that is a conflict, with the other text. Whoever keeps a text
// themselves replaces the other, and is given it. The form's key is checked already.
// Codes: not_found, conflict, unprocessable or too_large (text out of the bounds of
// a prompt), unavailable.
func (s *Store) KeepUnsent(ctx context.Context, owner, place string, form UnsentForm, text string) (Kept, error) {
	if text == "" {
		return Kept{}, s.DropUnsent(ctx, owner, place, form)
	}
	if err := journal.CheckText(text); err != nil {
		return Kept{}, err
	}
	var kept Kept
	err := s.write(ctx, place, func(ctx context.Context, t *tx) error {
		kept = Kept{}
		if place != NewMission {
			if _, _, err := head(ctx, t, owner, place); err != nil {
				return err
			}
		}
		key := form.Key
		sent, was, err := sentUnder(ctx, t, owner, place, key)
		switch {
		case err != nil:
			return err
		case sent && (form.Typing && !form.Again || t.sameText(owner, was, text)):
			return nil
		case sent:
			key = NewID("key")
		}
		kept, err = keepAs(ctx, t, owner, place, key, form, text)
		return err
	})
	return kept, err
}

// keepAs keeps a form's text under a key, unless it may not replace what stands there.
func keepAs(ctx context.Context, t *tx, owner, place, key string, form UnsentForm, text string) (Kept, error) {
	for {
		have, err := unsentAt(ctx, t, owner, place)
		if err != nil {
			return Kept{}, err
		}
		var kept Kept
		if have.unseenBy(form) {
			if have.Text == text { // it is what the other form says, too
				return Kept{At: have.UpdatedAt}, nil
			}
			kept.Other = have.unsent()
			if form.Typing {
				return kept, journal.Errorf(journal.Conflict, "This text is not kept: another tab or device keeps another text here, which stays. Keep the text yourself to replace that one.").Typed("unsent-elsewhere")
			}
		}
		d := t.dialect()
		err = t.get(ctx, &kept.At, "INSERT INTO unsent (owner_id, place, idem_key, text, updated_at) VALUES (?, ?, ?, ?, "+d.now()+") ON CONFLICT (owner_id, place) DO UPDATE SET idem_key = excluded.idem_key, text = excluded.text, updated_at = CASE WHEN excluded.updated_at > unsent.updated_at THEN excluded.updated_at ELSE unsent.updated_at + 1 END WHERE unsent.updated_at = ? RETURNING updated_at",
			owner, place, key, text, d.nowArg(), have.UpdatedAt)
		// Another server was faster. Its row is locked by now, so the next look is the last.
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		return kept, err
	}
}

// operationAt is what sends the text of a place.
func operationAt(place string) journal.Operation {
	if place == NewMission {
		return journal.OpCreateSession
	}
	return journal.OpCreatePrompt
}

// sentUnder tells whether something was sent from a place under a key, and its text
// as the journal has it; "" if that was nothing of the kind.
func sentUnder(ctx context.Context, q querier, owner, place, key string) (sent bool, text string, err error) {
	r, err := loadReceipt(ctx, q, owner, operationAt(place), key)
	if errors.Is(err, sql.ErrNoRows) {
		return false, "", nil
	}
	if err != nil {
		return false, "", err
	}
	seq := r.Seq
	if place == NewMission { // its first prompt stands behind it
		seq++
	} else if r.SessionID != place {
		return true, "", nil
	}
	err = q.get(ctx, &text, "SELECT text FROM input WHERE session_id = ? AND admitted_seq = ?", r.SessionID, seq)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return true, text, err
}

// sameText reports whether the journal has a text as this one (ADM-3, JRN-8).
func (t *tx) sameText(owner, recorded, text string) bool {
	return norm.NFC.String(recorded) == norm.NFC.String(t.w.s.Cleaner(owner).Text(journal.LineEnds(text)))
}

// DropUnsent forgets what was typed at a place, if it was kept from this form or
// is what the form was drawn with: what another one keeps is not this one's to
// forget. If nothing was kept, nothing happens. Code: unavailable.
func (s *Store) DropUnsent(ctx context.Context, owner, place string, form UnsentForm) error {
	return s.write(ctx, place, func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, "DELETE FROM unsent WHERE owner_id = ? AND place = ? AND (idem_key = ? OR updated_at = ?)", owner, place, form.Key, form.KeptAt)
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
	row, err := unsentAt(ctx, q, owner, place)
	return row.unsent(), err
}

// unsentRow is what is stored of a place; its version is 0 if nothing is.
type unsentRow struct {
	Key       string `db:"idem_key"`
	Text      string `db:"text"`
	UpdatedAt int64  `db:"updated_at"`
	Sent      bool   `db:"sent"` // under its key, even if whoever sent it never heard of that
}

func unsentAt(ctx context.Context, q querier, owner, place string) (unsentRow, error) {
	var row unsentRow
	err := q.get(ctx, &row, "SELECT idem_key, text, updated_at, EXISTS (SELECT 1 FROM receipt r WHERE r.owner_id = u.owner_id AND r.operation = ? AND r.idem_key = u.idem_key) AS sent FROM unsent u WHERE owner_id = ? AND place = ?", string(operationAt(place)), owner, place)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return row, err
}

// unsent is what a row keeps: nothing that was sent.
func (r unsentRow) unsent() Unsent {
	if r.Sent {
		return Unsent{}
	}
	return Unsent{Text: r.Text, UpdatedAt: r.UpdatedAt}
}

// unseenBy reports whether another form keeps a text that this one wasn't drawn with.
func (r unsentRow) unseenBy(form UnsentForm) bool {
	return r.unsent() != (Unsent{}) && r.Key != form.Key && r.UpdatedAt != form.KeptAt
}
