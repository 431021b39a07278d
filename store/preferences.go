package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"holdfast/journal"
)

// Preferences are how a person wants pages to behave, on every device.
type Preferences struct {
	KeysOff  bool   `json:"keys_off"` // no single-key shortcuts (WCAG 2.1.4)
	Announce string `json:"announce"` // all, off, or "" for milestones
	Theme    string `json:"theme"`    // light, dark, or "" as the system says
}

// Preferences gives the owner's, or none.
func (s *Store) Preferences(ctx context.Context, owner string) (Preferences, error) {
	var out Preferences
	var data string
	err := s.one(ctx, &data, "SELECT data FROM preference WHERE owner_id = ?", owner)
	if errors.Is(err, sql.ErrNoRows) {
		return out, nil
	}
	if err == nil {
		if err = json.Unmarshal([]byte(data), &out); err != nil {
			err = fmt.Errorf("read the preferences of %s: %w", owner, err)
		}
	}
	return out, err
}

// SavePreferences replaces the owner's. Codes: unprocessable (a value that isn't one), unavailable.
func (s *Store) SavePreferences(ctx context.Context, owner string, p Preferences) error {
	switch {
	case p.Announce != "" && p.Announce != "all" && p.Announce != "off":
		return journal.Errorf(journal.Unprocessable, "Announcements are of milestones, all or off. Nothing was changed.").Typed("bad-preference")
	case p.Theme != "" && p.Theme != "light" && p.Theme != "dark":
		return journal.Errorf(journal.Unprocessable, "A theme is light, dark, or as the system says. Nothing was changed.").Typed("bad-preference")
	}
	data, err := journal.Encode(p)
	if err != nil {
		return fmt.Errorf("encode the preferences: %w", err)
	}
	return s.write(ctx, "", func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, "INSERT INTO preference (owner_id, data) VALUES (?, ?) ON CONFLICT (owner_id) DO UPDATE SET data = excluded.data", owner, string(data))
		return err
	})
}
