package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"holdfast/journal"
)

// The checks of a report, in its order.
const (
	CheckSequence    = "sequence"    // seqs 1, 2, 3, … up to the session's, no gap (JRN-2)
	CheckEvents      = "events"      // each as it was written, and such that it can follow what stands before it (JRN-1)
	CheckIntents     = "intents"     // no call dispatched without an intent (CAL-1)
	CheckState       = "state"       // a session's row equals the fold of its journal (JRN-4)
	CheckCalls       = "calls"       // so do its calls
	CheckProjections = "projections" // and the other tables
	CheckRecoveries  = "recoveries"  // one row for each step.recovered (REC-4)
	CheckReceipts    = "receipts"    // each names an event that is there and says the same; none is missing (ADM-1)
	CheckBlobs       = "blobs"       // none missing, changed or left over (JRN-6)
	CheckClaims      = "claims"      // claim and execution id are one fact (LEA-10); nothing is in the air without one; one that follows what is adopted is uncertain (LEA-1)
	CheckSpools      = "spools"      // each is of a dispatch of its session; what is adopted has one (REC-10)
)

func checkNames() []string {
	return []string{
		CheckSequence, CheckEvents, CheckIntents, CheckState, CheckCalls, CheckProjections, CheckRecoveries, CheckReceipts, CheckBlobs, CheckClaims, CheckSpools,
	}
}

// VerifyOptions bound a verification.
type VerifyOptions struct {
	Session   string // one session; "": all
	MaxFaults int    // that are spelled out for each check; 0: 20
}

// Check is what one check found.
type Check struct {
	Name    string
	Checked int      // things that were looked at
	Faults  []string // at most MaxFaults of them
	Found   int      // all of them
}

// Report is what Verify found.
type Report struct {
	Sessions int
	Events   int
	Checks   []Check
}

// OK reports whether the journal is whole.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Found > 0 })
}

// Check gives one check by its name.
func (r *Report) Check(name string) Check {
	i := slices.IndexFunc(r.Checks, func(c Check) bool { return c.Name == name })
	if i < 0 {
		return Check{Name: name}
	}
	return r.Checks[i]
}

// Verify checks a journal without writing to it, also while it is served
// (JRN-4): it folds each session's events anew into scratch tables in memory and
// compares. Nothing is woken or scheduled by that. Each session is read on one
// short snapshot, and different sessions on different ones. Faults are in the
// report; an error means that the journal couldn't be read. Code: not_found for
// a session that isn't there, unavailable.
func (s *Store) Verify(ctx context.Context, o VerifyOptions) (Report, error) {
	if o.MaxFaults <= 0 {
		o.MaxFaults = 20
	}
	sc, err := openScratch(ctx)
	if err != nil {
		return Report{}, err
	}
	v := &verifier{s: s, o: o, scratch: sc, checks: map[string]*Check{}}
	for _, name := range checkNames() {
		v.checks[name] = &Check{Name: name}
	}
	if o.Session != "" {
		err = v.only(ctx, o.Session)
	} else if err = v.all(ctx); err == nil {
		err = v.orphans(ctx)
	}
	err = errors.Join(err, sc.close())
	for _, name := range checkNames() {
		v.report.Checks = append(v.report.Checks, *v.checks[name])
	}
	return v.report, err
}

// verifier holds what one verification knows.
type verifier struct {
	s       *Store
	o       VerifyOptions
	scratch *scratch
	checks  map[string]*Check
	report  Report
}

func (v *verifier) fault(check, format string, args ...any) {
	c := v.checks[check]
	c.Found++
	if len(c.Faults) < v.o.MaxFaults {
		c.Faults = append(c.Faults, fmt.Sprintf(format, args...))
	}
}

func (v *verifier) checked(check string, n int) { v.checks[check].Checked += n }

// only verifies one session, or what is left of it.
func (v *verifier) only(ctx context.Context, id string) error {
	err := v.session(ctx, id)
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if found, err := v.remains(ctx, id); found || err != nil {
		return err
	}
	return journal.Errorf(journal.NotFound, "There is no session %s.", id).Typed("no-such-session")
}

// all verifies each session, a page of ids at a time.
func (v *verifier) all(ctx context.Context) error {
	for after := ""; ; {
		var ids []string
		err := v.s.read(ctx, func(q querier) error {
			return q.all(ctx, &ids, "SELECT id FROM session WHERE id > ? ORDER BY id LIMIT 500", after)
		})
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := v.session(ctx, id); err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			after = id
		}
		if len(ids) < 500 {
			return nil
		}
	}
}

// session verifies one session on one snapshot.
func (v *verifier) session(ctx context.Context, id string) error {
	if err := v.scratch.begin(ctx); err != nil {
		return err
	}
	err := v.s.read(ctx, func(q querier) error {
		one := &verification{v: v, q: q.(reader), id: id, proposed: map[string]bool{}, digests: map[string]string{}, blobs: map[string]bool{}}
		return one.run(ctx)
	})
	return errors.Join(err, v.scratch.rollback(ctx))
}

// verification is that of one session.
type verification struct {
	v        *verifier
	q        reader
	id       string
	row      verifiedRow
	st       journal.State
	last     int64 // the last seq
	proposed map[string]bool
	created  int64                       // when the session was
	receipts map[int64][]verifiedReceipt // by seq, until their event came
	digests  map[string]string           // of the requests, as they were asked
	blobs    map[string]bool             // by sum: named by an event
	broken   bool                        // an event couldn't be applied: there is nothing to compare
}

type verifiedRow struct {
	sessionRow
	Base        string        `db:"base"`
	Needs       string        `db:"needs"`
	Interrupted int64         `db:"interrupted"`
	RunnableAt  sql.NullInt64 `db:"runnable_at"`
	Title       string        `db:"title"`
	TitleFolded string        `db:"title_folded"`
	Agent       string        `db:"agent"`
	Workspace   string        `db:"workspace"`
}

func (o *verification) run(ctx context.Context) error {
	err := o.q.get(ctx, &o.row, "SELECT "+sessionColumns+", base, needs, interrupted, runnable_at, title, title_folded, agent, workspace FROM session WHERE id = ?", o.id)
	if err != nil {
		return err
	}
	o.v.report.Sessions++
	for _, step := range []func(context.Context) error{o.loadReceipts, o.loadBlobs, o.replay, o.compareTables, o.compareClaim, o.compareSpools} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	o.compareState()
	o.leftOverReceipts()
	o.leftOverBlobs()
	return nil
}

// compareState compares the session's row with the fold.
func (o *verification) compareState() {
	o.v.checked(CheckState, 1)
	if o.broken {
		return
	}
	state, err := journal.Encode(&o.st)
	if err != nil {
		o.v.fault(CheckState, "%s: the fold can't be encoded: %v", o.id, err)
		return
	}
	at := runnable(&o.st)
	want := sql.NullInt64{Valid: at != nil, Int64: o.st.RunnableAt}
	o.compareColumns([]column{
		{"state", o.row.State, string(state)},
		{"base", o.row.Base, string(o.st.Base)},
		{"needs", o.row.Needs, string(o.st.Needs())},
		{"interrupted", o.row.Interrupted, interrupted(&o.st)},
		{"runnable_at", o.row.RunnableAt, want},
		{"title", o.row.Title, o.st.Title},
		{"title_folded", o.row.TitleFolded, fold(o.st.Title)},
		{"agent", o.row.Agent, o.st.Agent},
		{"workspace", o.row.Workspace, o.st.Workspace},
		{"updated_at", o.row.UpdatedAt, o.st.UpdatedAt},
	})
}

// firstRules is the version of the rules that a session is made with. No event of
// this build changes them, so it is that of every session.
const firstRules = 1

// compareCreated compares what the row has of the session's creation.
func (o *verification) compareCreated(c *journal.SessionCreated) error {
	rules, err1 := journal.Encode(c.Rules)
	policy, err2 := journal.Encode(c.Policy)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("encode the rules of %s: %w", o.id, err)
	}
	o.compareColumns([]column{
		{"owner_id", o.row.OwnerID, c.OwnerID},
		{"workspace_id", o.row.WorkspaceID, cmp.Or(c.WorkspaceID, o.row.WorkspaceID)}, // an older build didn't journal it
		{"preset", o.row.Preset, c.Preset},
		{"rules", o.row.Rules, string(rules)},
		{"policy", o.row.Policy, string(policy)},
		{"rules_version", o.row.RulesVersion, int64(firstRules)},
	})
	return nil
}

// column is a value of a session's row and what its journal makes of it.
type column struct {
	name      string
	have, got any
}

func (o *verification) compareColumns(columns []column) {
	for _, c := range columns {
		if c.have != c.got {
			o.v.fault(CheckState, "%s: %s is %v; its journal says %v", o.id, c.name, shown(c.have), shown(c.got))
		}
	}
}

// compareClaim holds the claim's row against the session's execution id.
func (o *verification) compareClaim(ctx context.Context) error {
	o.v.checked(CheckClaims, 1)
	c, err := loadClaim(ctx, o.q, o.id)
	if err != nil {
		return err
	}
	have := ""
	if c != nil {
		have = c.ExecutionID
	}
	if have != o.row.ExecutionID.String {
		o.v.fault(CheckClaims, "%s: its execution is %s, its claim's %s", o.id, orNone(o.row.ExecutionID.String), orNone(have))
	}
	switch {
	case o.broken:
	case c != nil:
		o.compareAdopted(c)
	case o.st.InFlight() && !goesOnAlone(&o.st):
		o.v.fault(CheckClaims, "%s: something is dispatched and not settled, and nobody holds a claim", o.id)
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// shown bounds a value in a fault's text.
func shown(v any) any {
	if n, ok := v.(sql.NullInt64); ok {
		if !n.Valid {
			return "null"
		}
		return n.Int64
	}
	if s, ok := v.(string); ok {
		return journal.Cut(s, 400)
	}
	return v
}
