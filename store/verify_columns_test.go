package store_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"holdfast/store"
	"holdfast/store/storetest"
)

// unverified are columns of the journal and its projections that this test
// doesn't change. Each has its reason, beside every table's session_id.
var unverified = map[string]string{
	"session.id":       "a key to which the other tables point",
	"session.epoch":    "it counts the claims, too, which aren't journalled",
	"event.seq":        "a key; TestVerify_NamesEachDamage makes a gap",
	"receipt.idem_key": "only who made it knows it",
}

// swapped are the columns that take some values only: they change places.
var swapped = map[string][2]string{
	"input.delivery": {"queue", "steer"}, "input.state": {"admitted", "withdrawn"}, "call.effect": {"read", "effect"}, "attempt.state": {"settled", "failed"},
}

// A column that is added later is verified, or stands above with its reason: each
// is changed, one after the other, and that must be noticed.
//
// proves JRN-1 JRN-4 ADM-1
func TestVerify_NoticesEachColumn(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.OpenUnchecked(t)
		r := rich(t, s)
		raw := db.SQL(t)
		for _, table := range []string{"session", "event", "blob", "receipt", "input", "message", "call", "call_output", "request", "attempt", "recovery"} {
			for _, c := range columnsOf(t, raw, table) {
				name := table + "." + c.Name()
				if _, known := unverified[name]; known || c.Name() == "session_id" {
					continue
				}
				there, back := spoil(name, c, r.Owner, storetest.MustUser(t, s).ID)
				key := map[bool]string{true: "id", false: "session_id"}[table == "session"]
				change := func(sets []string) (n int64) {
					for _, set := range sets {
						n += db.MustExec(t, raw, "UPDATE "+table+" SET "+set, r.Session)
					}
					return n
				}
				fill := func(set string) string { return strings.ReplaceAll(set, "{where}", key+" = ?") }
				for i := range there {
					there[i], back[i] = fill(there[i]), fill(back[i])
				}
				if change(there) == 0 {
					t.Errorf("%s: nothing was changed", name)
				}
				report, err := s.Verify(t.Context(), store.VerifyOptions{Session: r.Session})
				if err == nil && report.OK() {
					t.Errorf("%s was changed, and nothing noticed", name)
				}
				change(back)
			}
		}
		report, err := s.Verify(t.Context(), store.VerifyOptions{})
		must(t, err)
		if !report.OK() {
			t.Errorf("it isn't as it was: %+v", report)
		}
	})
}

func columnsOf(t *testing.T, raw *sql.DB, table string) []*sql.ColumnType {
	t.Helper()
	rows, err := raw.QueryContext(t.Context(), "SELECT * FROM "+table+" LIMIT 1")
	must(t, err)
	defer func() { must(t, rows.Close()) }()
	types, err := rows.ColumnTypes()
	must(t, err)
	must(t, rows.Err())
	return types
}

// spoil gives what changes a column in a session's rows, and what undoes it.
func spoil(name string, c *sql.ColumnType, owner, other string) (there, back []string) {
	col := c.Name()
	swap := func(a, b string) []string {
		return []string{fmt.Sprintf("%[1]s = CASE %[1]s WHEN '%[2]s' THEN '%[3]s' WHEN '%[3]s' THEN '%[2]s' ELSE %[1]s END WHERE {where}", col, a, b)}
	}
	if v, ok := swapped[name]; ok {
		return swap(v[0], v[1]), swap(v[0], v[1])
	}
	switch kind := c.DatabaseTypeName(); {
	case col == "owner_id":
		return swap(owner, other), swap(owner, other)
	case kind == "BIGINT" || kind == "INT8":
		return []string{col + " = " + col + " + 1 WHERE {where}", col + " = 4711 WHERE " + col + " IS NULL AND {where}"},
			[]string{col + " = NULL WHERE " + col + " = 4711 AND {where}", col + " = " + col + " - 1 WHERE {where}"}
	default:
		return []string{col + " = " + col + " || 'x' WHERE {where}", col + " = 'null' WHERE " + col + " IS NULL AND {where}"},
			[]string{col + " = NULL WHERE " + col + " = 'null' AND {where}", col + " = substr(" + col + ", 1, length(" + col + ") - 1) WHERE {where}"}
	}
}
