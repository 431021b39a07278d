package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"

	"holdfast/journal"
	"holdfast/migrations"
)

// scratch are the projections' tables in memory. They are SQLite's whatever the
// journal is kept in: both have the same columns, and one projector fills both.
type scratch struct {
	db *sqlx.DB
	w  *writer
}

func openScratch(ctx context.Context) (*scratch, error) {
	db, err := sqlx.Open("sqlite", ":memory:")
	if err != nil {
		return nil, fmt.Errorf("open scratch tables: %w", err)
	}
	db.SetMaxOpenConns(1) // each connection would have tables of its own
	s := &Store{d: dialect{name: "sqlite"}, w: db}
	sc := &scratch{db: db, w: newWriter(s)}
	tree, err := fs.Sub(migrations.FS, "sqlite")
	if err == nil {
		var p *goose.Provider
		if p, err = goose.NewProvider(goose.DialectSQLite3, db.DB, tree); err == nil {
			_, err = p.Up(ctx)
		}
	}
	if err == nil {
		sc.w.conn, err = db.Connx(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make scratch tables: %w", err), db.Close())
	}
	return sc, nil
}

func (s *scratch) tx() *tx { return &tx{w: s.w, conn: s.w.conn} }

func (s *scratch) begin(ctx context.Context) error { return s.w.raw(ctx, "BEGIN") }

func (s *scratch) rollback(ctx context.Context) error {
	return s.w.raw(context.WithoutCancel(ctx), "ROLLBACK")
}

func (s *scratch) close() error {
	var errs []error
	for _, st := range s.w.stmts {
		errs = append(errs, st.Close())
	}
	return errors.Join(append(errs, s.w.conn.Close(), s.db.Close())...)
}

// projected is a table that is derived from the journal alone.
type projected struct {
	name    string
	check   string
	key     []string // of a row within its session
	columns []string // the others
}

func split(s string) []string { return strings.Split(s, ", ") }

var projectedTables = []projected{
	{"input", CheckProjections, split("id"), split("admitted_seq, delivery, text, folded, state, promoted_seq, message_id, turn_id, created_at")},
	{"message", CheckProjections, split("id, part"), split("seq, role, text, complete")},
	{"call_output", CheckProjections, split("call_id, byte_offset, seq"), split("stream, bytes, dropped")},
	{"request", CheckProjections, split("id"), split("call_id, message_id, permission, resources, always, digest, metadata, state, asked_at, asked_seq, reason, reply, replied_by, replied_at, message")},
	{"attempt", CheckProjections, split("id"), split("turn_id, model, state, resolution, seq")},
	{"recovery", CheckRecoveries, split("execution_id"), split("seq, phase")},
	{"call", CheckCalls, split("id"), split("turn_id, call_key, tool, input, input_sha256, later, effect, attempt_id, state, n, exit_code, signal, reason, output_bytes, dropped_bytes, resolution, allowed_by, process, proposed_seq, dispatched_at, ended_at, since, evidence, feedback, adopted_at, adopted_by, ran_ms")},
}

// selects reads rows; a method of both a snapshot and the scratch tables.
type selects interface {
	QueryxContext(ctx context.Context, query string, args ...any) (*sqlx.Rows, error)
	Rebind(query string) string
}

func (o *verification) compareTables(ctx context.Context) error {
	if o.broken { // what the journal says isn't known to its end
		return nil
	}
	for _, p := range projectedTables {
		live, err := p.rows(ctx, o.q.tx, o.q.d, o.id)
		if err != nil {
			return err
		}
		rebuilt, err := p.rows(ctx, o.v.scratch.w.conn, &o.v.scratch.w.s.d, o.id)
		if err != nil {
			return err
		}
		o.v.checked(p.check, len(rebuilt))
		o.compare(p, live, rebuilt)
	}
	return nil
}

// tableRow is a row's values after its key, as text.
type tableRow []string

func (o *verification) compare(p projected, live, rebuilt map[string]tableRow) {
	for key, want := range rebuilt {
		have, ok := live[key]
		delete(live, key)
		if !ok {
			o.v.fault(p.check, "%s: %s %s is missing", o.id, p.name, key)
			continue
		}
		for i, column := range p.columns {
			if have[i] != want[i] {
				o.v.fault(p.check, "%s: %s %s: %s is %s; the journal says %s", o.id, p.name, key, column, shownCell(have[i]), shownCell(want[i]))
			}
		}
	}
	for key := range live {
		o.v.fault(p.check, "%s: %s %s isn't in the journal", o.id, p.name, key)
	}
}

// rows reads a session's rows of a table by pages of its key. Long values are
// kept as their hash: a session may hold many megabytes of them.
func (p projected) rows(ctx context.Context, db selects, d *dialect, session string) (map[string]tableRow, error) {
	collate := "" // the order of the pages must be that of the comparison
	if !d.sqlite() {
		collate = ` COLLATE "C"`
	}
	order := make([]string, len(p.key))
	for i, k := range p.key {
		order[i] = k
		if !slices.Contains([]string{"byte_offset", "seq"}, k) {
			order[i] += collate
		}
	}
	base := "SELECT " + strings.Join(append(slices.Clone(p.key), p.columns...), ", ") + " FROM " + p.name + " WHERE session_id = ?"
	next := " AND (" + strings.Join(order, ", ") + ") > (" + strings.TrimSuffix(strings.Repeat("?, ", len(p.key)), ", ") + ")"
	tail := " ORDER BY " + strings.Join(order, ", ") + " LIMIT 500"
	out := map[string]tableRow{}
	q, args := base+tail, []any{session}
	for {
		last, n, err := p.page(ctx, db, out, db.Rebind(q), args)
		if err != nil || n < 500 {
			return out, err
		}
		q, args = base+next+tail, append([]any{session}, last...)
	}
}

func (p projected) page(ctx context.Context, db selects, out map[string]tableRow, q string, args []any) (last []any, n int, err error) {
	rows, err := db.QueryxContext(ctx, q, args...)
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", p.name, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		values, err := rows.SliceScan()
		if err != nil {
			return nil, 0, fmt.Errorf("read %s: %w", p.name, err)
		}
		n++
		text := make([]string, len(values))
		for i, v := range values {
			text[i] = asText(v)
		}
		last = last[:0]
		for i := range p.key {
			if b, ok := values[i].([]byte); ok {
				values[i] = string(b)
			}
			last = append(last, values[i])
		}
		out[strings.Join(text[:len(p.key)], " ")] = text[len(p.key):]
	}
	return last, n, rows.Err()
}

// null is no value: not the text "null", for no text of a table has a NUL.
const null = "\x00null"

// shownCell bounds a value in a fault's text.
func shownCell(s string) string { return journal.Cut(strings.TrimPrefix(s, "\x00"), 80) }

// asText makes values of both drivers comparable.
func asText(v any) string {
	var s string
	switch v := v.(type) {
	case nil:
		return null
	case []byte:
		s = string(v)
	case string:
		s = v
	default:
		return fmt.Sprint(v)
	}
	if len(s) > 256 {
		return s[:64] + "… " + journal.Hash(s)
	}
	return s
}

var _ selects = (*sqlx.Tx)(nil)
