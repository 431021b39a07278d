package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"holdfast/journal"
)

// Spool says how far the output of a call's n-th dispatch has been read: whole
// frames of what its shim keeps in a state folder.
type Spool struct {
	CallID        string
	N             int
	StateFolderID string
	ReadTo        int64
}

// readTo writes the offset down, in the transaction of the events that were made
// of what was read, so that nothing of it is journalled twice or left out. There
// is one row for each call: a new dispatch begins a new spool in it. Of one
// dispatch the offset never goes back. Code: conflict.
func (l *locked) readTo(ctx context.Context, sp Spool) error {
	n, err := l.t.exec(ctx, "INSERT INTO spool (call_id, n, session_id, state_folder_id, read_to, execution_id) "+
		"SELECT id, n, session_id, CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS TEXT) FROM call WHERE id = ? AND session_id = ? AND n = ? "+
		"ON CONFLICT (call_id) DO UPDATE SET n = excluded.n, state_folder_id = excluded.state_folder_id, read_to = excluded.read_to, execution_id = excluded.execution_id "+
		"WHERE spool.n < excluded.n OR (spool.n = excluded.n AND spool.state_folder_id = excluded.state_folder_id AND spool.read_to <= excluded.read_to)",
		sp.StateFolderID, sp.ReadTo, l.exec, sp.CallID, l.row.ID, sp.N)
	if err != nil || n == 1 {
		return err
	}
	return journal.Errorf(journal.Conflict, "The output of dispatch %d of the call %s was read further than %d already, or is not what is read now.", sp.N, sp.CallID, sp.ReadTo).Typed("spool-state")
}

// hasSpool reports whether the last dispatch of a call is kept by a state folder.
func hasSpool(ctx context.Context, q querier, callID, folder string) (bool, error) {
	var n int
	err := q.get(ctx, &n, "SELECT count(*) FROM spool s JOIN call c ON c.id = s.call_id WHERE s.call_id = ? AND s.n = c.n AND s.state_folder_id = ?", callID, folder)
	return n > 0, err
}

// SpoolOffset tells up to where the output of a call's n-th dispatch is in the
// journal. Code: not_found if none was ever noted.
func (s *Store) SpoolOffset(ctx context.Context, callID string, n int) (int64, error) {
	var at int64
	err := s.one(ctx, &at, "SELECT read_to FROM spool WHERE call_id = ? AND n = ?", callID, n)
	if errors.Is(err, sql.ErrNoRows) {
		err = journal.Errorf(journal.NotFound, "No output of dispatch %d of the call %s is kept.", n, callID).Typed("no-such-spool")
	}
	return at, err
}

// SpoolRow is a spool with what its keeper must know of the call: whether to
// follow it, to end it, to testify of it or to remove it.
type SpoolRow struct {
	SessionID     string            `db:"session_id"`
	CallID        string            `db:"call_id"`
	N             int               `db:"n"`
	ReadTo        int64             `db:"read_to"`
	State         journal.CallState `db:"state"`
	CallN         int               `db:"call_n"`     // more than N: the call was dispatched again
	AdoptedBy     string            `db:"adopted_by"` // the folder whose workers follow it
	DispatchedAt  int64             `db:"dispatched_at"`
	Claimed       bool              `db:"claimed"` // its session is, live or expired
	ClaimedFolder string            `db:"claimed_folder"`
	Testified     bool              `db:"-"` // the call has its exit record as evidence already
}

// Spools lists what a state folder keeps, by call. after is the last call of the page before.
func (s *Store) Spools(ctx context.Context, folder, after string, limit int) ([]SpoolRow, error) {
	var out []SpoolRow
	err := s.read(ctx, func(q querier) error {
		var rows []struct {
			SpoolRow
			Evidence sql.NullString `db:"evidence"`
		}
		out = nil
		err := q.all(ctx, &rows, "SELECT s.session_id, s.call_id, s.n, s.read_to, c.state, c.n AS call_n, c.adopted_by, c.dispatched_at, c.evidence, "+
			"k.session_id IS NOT NULL AS claimed, coalesce(k.state_folder_id, '') AS claimed_folder "+
			"FROM spool s JOIN call c ON c.id = s.call_id LEFT JOIN claim k ON k.session_id = s.session_id "+
			"WHERE s.state_folder_id = ? AND s.call_id > ? ORDER BY s.call_id LIMIT ?", folder, after, limit)
		if err != nil {
			return err
		}
		for _, r := range rows {
			var evidence []journal.Evidence
			if err := fromJSON(r.Evidence, &evidence); err != nil {
				return err
			}
			r.Testified = slices.ContainsFunc(evidence, func(e journal.Evidence) bool { return e.Type == journal.EvidenceExitRecord })
			out = append(out, r.SpoolRow)
		}
		return nil
	})
	return out, err
}

// ForgetSpool removes the row of a call's n-th dispatch, before its keeper
// removes what it keeps. One that isn't there is forgotten already. Code:
// conflict while that dispatch is neither settled nor unknown.
func (s *Store) ForgetSpool(ctx context.Context, callID string, n int) error {
	var session string
	err := s.one(ctx, &session, "SELECT session_id FROM spool WHERE call_id = ? AND n = ?", callID, n)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.write(ctx, session, func(ctx context.Context, t *tx) error {
		if _, err := t.lockSelect(ctx, session, t.dialect().lock()); err != nil {
			return err
		}
		c, err := loadCall(ctx, t, callID)
		if err != nil {
			return err
		}
		if c.State == journal.CallIsDispatched && c.N == n {
			return journal.Errorf(journal.Conflict, "The call %s is dispatched and not settled: what it prints is still needed.", callID).Typed("call-state")
		}
		_, err = t.exec(ctx, "DELETE FROM spool WHERE call_id = ? AND n = ?", callID, n)
		return err
	})
}
