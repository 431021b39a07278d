package store

import (
	"context"
	"fmt"
)

// belonging are the tables whose rows belong to a session, with the check that
// tells of rows whose session isn't there.
func belonging() map[string]string {
	out := map[string]string{"event": CheckState, "blob": CheckBlobs, "receipt": CheckReceipts, "claim": CheckClaims, "spool": CheckSpools, "agent_process": CheckSpools}
	for _, p := range projectedTables {
		out[p.name] = p.check
	}
	return out
}

// ownersIn lists which sessions a table has rows of, a page after a position. An
// index that begins with the session is skipped through, one step for each
// session; inputs have none, and are read through, since they are few.
func ownersIn(table string) string {
	const there = "EXISTS (SELECT 1 FROM session s WHERE s.id = "
	if table == "input" {
		return "SELECT i.id AS position, i.session_id AS id, " + there + "i.session_id) AS there FROM input i WHERE i.id > ? ORDER BY i.id LIMIT 500"
	}
	return fmt.Sprintf("WITH RECURSIVE ids (id) AS (SELECT min(session_id) FROM %[1]s WHERE session_id > ? "+
		"UNION ALL SELECT (SELECT min(session_id) FROM %[1]s WHERE session_id > ids.id) FROM ids WHERE ids.id IS NOT NULL) "+
		"SELECT id AS position, id, "+there+"ids.id) AS there FROM ids WHERE id IS NOT NULL LIMIT 500", table)
}

// orphans reports what is left of sessions that aren't there: who walks from the
// sessions never meets it. Each page is a snapshot of its own.
func (v *verifier) orphans(ctx context.Context) error {
	gone := map[string]bool{}
	for table, check := range belonging() {
		told := map[string]bool{}
		for after, more := "", true; more; {
			var rows []struct {
				Position string `db:"position"`
				ID       string `db:"id"`
				There    bool   `db:"there"`
			}
			err := v.s.read(ctx, func(q querier) error {
				rows = nil
				return q.all(ctx, &rows, ownersIn(table), after)
			})
			if err != nil {
				return err
			}
			for _, r := range rows {
				after = r.Position
				if !r.There && !told[r.ID] {
					told[r.ID], gone[r.ID] = true, true
					v.orphan(table, check, r.ID)
				}
			}
			more = len(rows) == 500
		}
	}
	v.checked(CheckState, len(gone))
	return nil
}

func (v *verifier) orphan(table, check, session string) {
	v.fault(check, "%s: there are rows of it in %s, and the session isn't there", session, table)
}

// remains is orphans for one session, and reports whether anything is left of it.
func (v *verifier) remains(ctx context.Context, session string) (found bool, err error) {
	err = v.s.read(ctx, func(q querier) error {
		for table, check := range belonging() {
			var n int
			if err := q.get(ctx, &n, "SELECT count(*) FROM "+table+" WHERE session_id = ?", session); err != nil {
				return err
			}
			if n > 0 {
				found = true
				v.orphan(table, check, session)
			}
		}
		return nil
	})
	return found, err
}
