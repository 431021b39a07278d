package store

import (
	"context"
	"database/sql"
	"errors"

	"golang.org/x/text/unicode/norm"

	"holdfast/journal"
)

func settingsHash(list []journal.Setting) string {
	return journal.PayloadHash(norm.NFC.String, list)
}

// ChooseSettings records what an owner wants of a session's agent from the next
// prompt on, and gives the seq of that event. key is the idempotency key, already
// checked, or "". Under the same key the same settings give the first answer, marked
// as a replay (ADM-3). What is wanted already, and so, writes nothing: seq is 0 then.
// Codes: not_found, conflict (archived), unprocessable (malformed, or the key was
// used for something else, ADM-4), unavailable.
func (s *Store) ChooseSettings(ctx context.Context, owner, sessionID, key string, list []journal.Setting) (seq int64, replayed bool, err error) {
	if err := journal.CheckSettings(nil, list, nil); err != nil {
		return 0, false, err
	}
	if err := s.checkKept(owner, NewSession{Settings: list}); err != nil {
		return 0, false, err
	}
	err = s.write(ctx, sessionID, func(ctx context.Context, t *tx) error {
		seq = 0
		l, err := t.lockOwned(ctx, sessionID, owner)
		if err != nil {
			return err
		}
		if key != "" {
			first, err := l.receipt(ctx, owner, journal.OpChooseSettings, key, settingsHash(list), sessionID)
			if err != nil {
				return err
			}
			if !first {
				return errReplay
			}
		}
		if l.st.Archived {
			return journal.Errorf(journal.Conflict, "This session is archived. Nothing was recorded. Start a new session with other settings.").Typed("session-archived").With("state", journal.StateClosed)
		}
		if key == "" && wanted(&l.st, list) {
			return nil
		}
		if err := l.append(ctx, journal.User(owner), &journal.SettingsChosen{By: owner, Settings: list}); err != nil {
			return err
		}
		seq = l.seq
		return l.flush(ctx)
	})
	if errors.Is(err, errReplay) {
		seq, err = s.replaySettings(ctx, owner, sessionID, key, list)
		return seq, err == nil, err
	}
	return seq, false, err
}

// wanted reports whether a choice changes nothing: all of it is wanted, and is so.
func wanted(st *journal.State, list []journal.Setting) bool {
	for _, w := range list {
		if v, _ := st.Wants(w.ID); v != w.Value {
			return false
		}
		if o := st.Option(w.ID); w.Value != "" && (o == nil || o.Current != w.Value) {
			return false
		}
	}
	return true
}

// ChosenBefore gives the answer to settings that were chosen under a key, for a retry
// that would be refused by now. again is false if nothing was.
// Code: unprocessable (ADM-4).
func (s *Store) ChosenBefore(ctx context.Context, owner, sessionID, key string, list []journal.Setting) (seq int64, again bool, err error) {
	if key == "" {
		return 0, false, nil
	}
	seq, err = s.replaySettings(ctx, owner, sessionID, key, list)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return seq, err == nil, err
}

func (s *Store) replaySettings(ctx context.Context, owner, sessionID, key string, list []journal.Setting) (seq int64, err error) {
	err = s.read(ctx, func(q querier) error {
		r, err := loadReceipt(ctx, q, owner, journal.OpChooseSettings, key)
		seq = r.Seq
		if err != nil {
			return err
		}
		return r.clash(sessionID, settingsHash(list))
	})
	return seq, err
}

// OffersOf gives what the agent of an owner's session offers, whole, with what is
// set; nil: it has offered nothing so far. Code: not_found.
func (s *Store) OffersOf(ctx context.Context, owner, sessionID string) ([]journal.AgentOption, error) {
	var out []journal.AgentOption
	err := s.read(ctx, func(q querier) error {
		out = nil
		one, err := loadSession(ctx, q, owner, sessionID)
		if err != nil || one.State.OptionsSeq == 0 {
			return err
		}
		b, err := bodyAt[*journal.AgentOptions](ctx, q, sessionID, one.State.OptionsSeq)
		if err != nil || b == nil {
			return err
		}
		out = b.Options
		for i := range out { // a new process has what it says, and no more
			out[i].Current = ""
			if now := one.State.Option(out[i].ID); now != nil {
				out[i].Current = now.Current
			}
		}
		return nil
	})
	return out, err
}

// bodyAt reads the event at a seq; the zero body if it is of another kind, or damaged.
func bodyAt[B journal.Body](ctx context.Context, q querier, sessionID string, seq int64) (body B, err error) {
	events, err := eventsAfter(ctx, q, sessionID, seq-1, 1)
	if err != nil || len(events) == 0 || events[0].Seq != seq {
		return body, err
	}
	decoded, err := events[0].Decode()
	if err != nil {
		return body, nil //nolint:nilerr // verify names it; the page stays readable
	}
	body, _ = decoded.(B)
	return body, nil
}
