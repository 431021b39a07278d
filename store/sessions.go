package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"holdfast/journal"
)

// NewSession is what a person asks for. Workspace and WorkspaceID come from who
// has looked at the folder (WSP-1).
type NewSession struct {
	Title       string
	Agent       string
	Given       string // the workspace as the person wrote it, by which a retry is known; "": Workspace
	Workspace   string
	WorkspaceID string
	Preset      string
	Rules       []journal.Rule
	Policy      journal.Policy
	Limits      *journal.Limits // nil: the default ones
	Settings    []journal.Setting
	Prompt      *PromptInput
}

func (n NewSession) hash() string {
	prompt := ""
	if n.Prompt != nil {
		prompt = n.Prompt.hash()
	}
	parts := []any{n.Title, n.Agent, cmp.Or(n.Given, n.Workspace), n.Preset, n.Rules, n.Policy, prompt}
	if n.Limits != nil { // what was hashed before there were any stays the same
		parts = append(parts, *n.Limits)
	}
	if len(n.Settings) > 0 {
		parts = append(parts, n.Settings)
	}
	return journal.PayloadHash(norm.NFC.String, parts...)
}

// SessionRules is what decides the calls of a session, and the version of it (CAL-9).
type SessionRules struct {
	OwnerID string // of the session
	Preset  string
	Rules   []journal.Rule
	Policy  journal.Policy
	Version int64
}

func (r *sessionRow) rules() (SessionRules, error) {
	out := SessionRules{OwnerID: r.OwnerID, Preset: r.Preset, Version: r.RulesVersion}
	return out, errors.Join(json.Unmarshal([]byte(r.Rules), &out.Rules), json.Unmarshal([]byte(r.Policy), &out.Policy))
}

// Session is a session as its owner sees it, on one snapshot.
type Session struct {
	ID        string
	OwnerID   string
	State     journal.State
	Rules     SessionRules
	LastSeq   int64
	Claim     *journal.Claim
	UpdatedAt int64
	Now       int64 // the database's clock when this was read
	Position  int   // in the queue, from 1; 0: not queued
	Host      string
	PID       int
	Kept      int // its commands that run under shims, and so outlive their server
}

// Execution is the first reading (semantics §11).
func (s *Session) Execution() (journal.ExecutionState, int64) {
	return s.State.Execution(s.Claim, s.Now)
}

// Group is where a list puts the session.
func (s *Session) Group() journal.Group { return s.State.Group(s.Claim, s.Now) }

// CreateSession makes a session, with its first prompt if there is one, in one
// transaction under one key (ADM-6). A replay gives the first answer.
// Codes: unprocessable (key used otherwise, ADM-4; bad text; something that would
// not be the same in the journal), unavailable.
func (s *Store) CreateSession(ctx context.Context, owner, key string, n NewSession) (out Session, replayed bool, err error) {
	if err := s.checkKept(owner, n); err != nil {
		return out, false, err
	}
	if n.Prompt != nil {
		if err := journal.CheckText(n.Prompt.Text); err != nil {
			return out, false, err
		}
		prompt := n.Prompt.recorded()
		n.Prompt = &prompt
	}
	if n.Limits != nil {
		if err := n.Limits.Check(); err != nil {
			return out, false, err
		}
	}
	if err := journal.CheckSettings(nil, n.Settings, nil); err != nil {
		return out, false, err
	}
	if n.Rules == nil {
		n.Rules = []journal.Rule{}
	}
	id := NewID("ses")
	err = s.write(ctx, id, func(ctx context.Context, t *tx) error {
		l, err := t.newSession(ctx, id, owner, n)
		if err != nil {
			return err
		}
		first, err := l.receipt(ctx, owner, journal.OpCreateSession, key, n.hash(), id)
		if err != nil {
			return err
		}
		if !first {
			return errReplay
		}
		created := &journal.SessionCreated{Title: n.Title, Agent: n.Agent, Workspace: n.Workspace, WorkspaceID: n.WorkspaceID, Preset: n.Preset, Rules: n.Rules, Policy: n.Policy, OwnerID: owner, Limits: n.Limits, Settings: n.Settings}
		if err := l.append(ctx, journal.User(owner), created); err != nil {
			return err
		}
		if n.Prompt != nil {
			if err := l.admit(ctx, owner, NewID("inp"), *n.Prompt); err != nil {
				return err
			}
		}
		l.wakeWork()
		return l.flush(ctx)
	})
	if errors.Is(err, errReplay) {
		replayed = true
		id, err = s.replaySession(ctx, owner, key, n)
	}
	if err != nil {
		return out, false, err
	}
	out, err = s.Session(ctx, owner, id)
	return out, replayed, err
}

// checkKept refuses what the journal would not have as it was given, since a
// secret is masked there, where it isn't only shown but used again: the folder
// would not be found, and the rule would match something else (OWN-3). The title
// is only shown. Code: unprocessable.
func (s *Store) checkKept(owner string, n NewSession) error {
	clean := s.Cleaner(owner)
	type used struct{ slug, what, text, remedy string }
	all := []used{
		{"workspace", "The workspace " + clean.Text(n.Workspace), n.Workspace, "Rename the folder, or choose another one"},
		{"agent", "The agent's name", n.Agent, "Choose another agent"},
		{"preset", "The preset's name", n.Preset, "Choose another preset"},
	}
	for i, r := range n.Rules {
		all = append(all, used{"rule", fmt.Sprintf("Rule %d", i+1), r.Pattern, "Write the rule without it, with * in its place"})
	}
	for _, set := range n.Settings {
		for _, text := range []string{set.ID, set.Value} {
			all = append(all, used{"setting", "The setting " + clean.Text(set.ID), text, "Choose another value"})
		}
	}
	for _, u := range all {
		if clean.Text(u.text) == u.text {
			continue
		}
		if !utf8.ValidString(u.text) || strings.ContainsRune(u.text, 0) {
			return journal.Errorf(journal.Unprocessable, "%s isn't text that can be kept: it isn't valid UTF-8, or holds a NUL. Nothing was recorded. %s.", u.what, u.remedy).Typed(u.slug + "-not-text")
		}
		return journal.Errorf(journal.Unprocessable, "%s holds the value of a secret: of one of your credentials, or of this server's (a variable of its environment, or the database's password). "+
			"No secret is written down: %s would stand in its place, and what is kept would not be what you gave. Nothing was recorded. %s, or give that secret another value.",
			u.what, journal.Hidden, u.remedy).Typed(u.slug + "-holds-secret")
	}
	return nil
}

// CreatedBefore gives the session that was made under a key, for a retry that can't
// be made anew: its folder or agent may be gone since. found is false if nothing
// was made so far. Code: unprocessable (ADM-4).
func (s *Store) CreatedBefore(ctx context.Context, owner, key string, n NewSession) (out Session, found bool, err error) {
	if n.Rules == nil {
		n.Rules = []journal.Rule{}
	}
	id, err := s.replaySession(ctx, owner, key, n)
	if errors.Is(err, sql.ErrNoRows) {
		return out, false, nil
	}
	if err != nil {
		return out, false, err
	}
	out, err = s.Session(ctx, owner, id)
	return out, err == nil, err
}

func (t *tx) newSession(ctx context.Context, id, owner string, n NewSession) (*locked, error) {
	rules, err1 := journal.Encode(n.Rules)
	policy, err2 := journal.Encode(n.Policy)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("encode the rules: %w", err)
	}
	d := t.dialect()
	var row sessionRow
	err := t.get(ctx, &row, "INSERT INTO session (id, owner_id, workspace_id, preset, rules, policy, updated_at, state, base, needs, title, title_folded, agent, workspace) VALUES (?, ?, ?, ?, ?, ?, "+d.now()+", '{}', 'idle', 'none', '', '', '', '') RETURNING "+sessionColumns,
		id, owner, n.WorkspaceID, n.Preset, string(rules), string(policy), d.nowArg())
	if err != nil {
		return nil, err
	}
	return newLocked(t, row, row.UpdatedAt)
}

func (s *Store) replaySession(ctx context.Context, owner, key string, n NewSession) (string, error) {
	var id string
	err := s.read(ctx, func(q querier) error {
		r, err := loadReceipt(ctx, q, owner, journal.OpCreateSession, key)
		if err != nil {
			return err
		}
		id = r.SessionID
		return r.clash("", n.hash())
	})
	if err == nil { // ADM-5
		s.hub.publish(nil, []Wake{{Session: id, Work: true}})
	}
	return id, err
}

// Session reads one session of the owner's. Code: not_found.
func (s *Store) Session(ctx context.Context, owner, id string) (Session, error) {
	var out Session
	err := s.read(ctx, func(q querier) error {
		var err error
		out, err = loadSession(ctx, q, owner, id)
		return err
	})
	return out, err
}

type sessionView struct {
	sessionRow
	Now       int64          `db:"now"`
	Execution sql.NullString `db:"c_execution_id"`
	Worker    sql.NullString `db:"c_worker_id"`
	Folder    sql.NullString `db:"c_state_folder_id"`
	Phase     sql.NullString `db:"c_phase"`
	ClaimedAt sql.NullInt64  `db:"c_claimed_at"`
	ExpiresAt sql.NullInt64  `db:"c_expires_at"`
	LeaseMS   sql.NullInt64  `db:"c_lease_ms"`
	AliveAt   sql.NullInt64  `db:"c_alive_at"`
	Host      sql.NullString `db:"w_host"`
	PID       sql.NullInt64  `db:"w_pid"`
	Position  int            `db:"position"`
	Kept      int            `db:"kept"`
	Rank      int64          `db:"list_rank"` // of a list whose first are those that need their owner
	RankAt    int64          `db:"list_at"`
}

// viewColumns and viewFrom read a session with its claim and worker. The place in the queue is computed here (http.md).
const (
	viewColumns = "s.id, s.owner_id, s.workspace_id, s.preset, s.rules, s.policy, s.rules_version, s.next_seq, s.epoch, s.execution_id, s.updated_at, s.state, " +
		"c.execution_id AS c_execution_id, c.worker_id AS c_worker_id, c.state_folder_id AS c_state_folder_id, c.phase AS c_phase, c.claimed_at AS c_claimed_at, c.expires_at AS c_expires_at, c.lease_ms AS c_lease_ms, c.alive_at AS c_alive_at, " +
		"w.host AS w_host, w.pid AS w_pid, " +
		"CASE WHEN s.base = 'queued' AND s.execution_id IS NULL THEN (SELECT count(*) FROM session o WHERE o.runnable_at IS NOT NULL AND o.execution_id IS NULL AND (o.runnable_at < s.runnable_at OR (o.runnable_at = s.runnable_at AND o.id <= s.id))) ELSE 0 END AS position, " +
		"(SELECT count(*) FROM spool p JOIN call k ON k.id = p.call_id AND k.n = p.n WHERE p.session_id = s.id AND k.state = 'dispatched' AND (p.execution_id = s.execution_id OR k.adopted_by = p.state_folder_id)) AS kept, "
	viewFrom = " AS now FROM session s LEFT JOIN claim c ON c.session_id = s.id LEFT JOIN worker w ON w.id = c.worker_id "
)

func (r *sessionView) session() (Session, error) {
	st, err := r.state()
	if err != nil {
		return Session{}, err
	}
	rules, err := r.rules()
	out := Session{
		ID: r.ID, OwnerID: r.OwnerID, State: st, Rules: rules, LastSeq: r.NextSeq, UpdatedAt: r.UpdatedAt, Now: r.Now,
		Position: r.Position, Host: r.Host.String, PID: int(r.PID.Int64), Kept: r.Kept,
	}
	if r.Execution.Valid {
		out.Claim = &journal.Claim{
			SessionID: r.ID, ExecutionID: r.Execution.String, WorkerID: r.Worker.String, StateFolderID: r.Folder.String, Phase: journal.Phase(r.Phase.String),
			ClaimedAt: r.ClaimedAt.Int64, ExpiresAt: r.ExpiresAt.Int64, LeaseMS: r.LeaseMS.Int64, AliveAt: r.AliveAt.Int64, Epoch: r.Epoch,
		}
	}
	return out, err
}

func loadSession(ctx context.Context, q querier, owner, id string) (Session, error) {
	d := q.dialect()
	var row sessionView
	err := q.get(ctx, &row, "SELECT "+viewColumns+d.now()+viewFrom+"WHERE s.id = ? AND s.owner_id = ?", d.nowArg(), id, owner)
	if errors.Is(err, sql.ErrNoRows) {
		return Session{}, noSession()
	}
	if err != nil {
		return Session{}, err
	}
	return row.session()
}

// SessionQuery filters a list of sessions.
type SessionQuery struct {
	State      journal.ExecutionState
	Group      journal.Group
	Text       string // in titles and prompts, in any case
	NeedsFirst bool   // those that need their owner first, then the latest; else the newest first
	Cursor     string // what the last page gave
	Limit      int
}

// executionSQL is State.Execution in SQL, for filters; a test compares the two.
const executionSQL = "CASE WHEN s.base IN ('closed', 'uncertain', 'stopping') OR c.session_id IS NULL THEN s.base " +
	"WHEN c.expires_at - %s < c.lease_ms / 3 THEN 'unconfirmed' " +
	"WHEN s.base = 'waiting' AND NOT EXISTS (SELECT 1 FROM call k WHERE k.session_id = s.id AND k.state = 'dispatched') THEN s.base ELSE 'running' END"

// needsRank is State.Group in SQL: the place in journal.Groups. The same test compares the two.
const needsRank = "CASE WHEN s.needs IN ('reconcile', 'decision', 'blocked') THEN 0" +
	" WHEN s.base IN ('stopping', 'running', 'retrying', 'queued') OR (c.session_id IS NOT NULL AND s.base <> 'closed') THEN 1" +
	" WHEN s.needs = 'review' THEN 2 ELSE 3 END"

// Who waits longest for their owner comes first; elsewhere the latest does.
const needsOrder = "CASE WHEN s.needs IN ('reconcile', 'decision', 'blocked') THEN s.updated_at ELSE -s.updated_at END"

// Sessions lists the owner's sessions, and gives the cursor of the next page, or "".
func (s *Store) Sessions(ctx context.Context, owner string, f SessionQuery) (out []Session, next string, err error) {
	err = s.read(ctx, func(q querier) (err error) {
		out, next, err = sessionsOf(ctx, q, owner, f)
		return err
	})
	return out, next, err
}

func sessionsOf(ctx context.Context, q querier, owner string, f SessionQuery) (out []Session, next string, err error) {
	f.Limit = pageLimit(f.Limit)
	query, args, err := f.build(q.dialect(), owner)
	if err != nil {
		return nil, "", err
	}
	var rows []sessionView
	if err := q.all(ctx, &rows, query, args...); err != nil {
		return nil, "", err
	}
	for i := range rows {
		if i == f.Limit {
			next = f.cursor(&rows[i-1])
			break
		}
		one, err := rows[i].session()
		if err != nil {
			return nil, "", err
		}
		out = append(out, one)
	}
	return out, next, nil
}

// cursor names the last row of a page by what the list goes by: a row that comes,
// goes or moves meanwhile takes no other one's place.
func (f SessionQuery) cursor(last *sessionView) string {
	if !f.NeedsFirst {
		return last.ID
	}
	return fmt.Sprintf("%d.%d.%s", last.Rank, last.RankAt, last.ID)
}

// readNeedsCursor reads what cursor has written. Code: invalid.
func readNeedsCursor(cursor string) (rank, at int64, id string, err error) {
	parts := strings.SplitN(cursor, ".", 3)
	if len(parts) != 3 || !strings.HasPrefix(parts[2], "ses_") {
		return 0, 0, "", badCursor()
	}
	rank, err1 := strconv.ParseInt(parts[0], 10, 8)
	at, err2 := strconv.ParseInt(parts[1], 10, 64)
	if err1 != nil || err2 != nil {
		return 0, 0, "", badCursor()
	}
	return rank, at, parts[2], nil
}

func (f SessionQuery) build(d *dialect, owner string) (string, []any, error) {
	args := []any{d.nowArg(), owner}
	where := []string{"s.owner_id = ?"}
	add := func(cond string, more ...any) {
		where = append(where, cond)
		args = append(args, more...)
	}
	if f.State != "" {
		add(fmt.Sprintf(executionSQL, d.now())+" = ?", d.nowArg(), string(f.State))
	}
	if i := slices.Index(journal.Groups(), f.Group); i >= 0 {
		add(needsRank+" = ?", i)
	}
	if f.Text != "" {
		p := like(fold(f.Text))
		add(`(s.title_folded LIKE ? ESCAPE '\' OR EXISTS (SELECT 1 FROM input i WHERE i.session_id = s.id AND i.folded LIKE ? ESCAPE '\'))`, p, p)
	}
	columns, order, err := viewColumns, "s.id DESC", error(nil)
	if f.NeedsFirst {
		columns += needsRank + " AS list_rank, " + needsOrder + " AS list_at, "
		order = needsRank + ", " + needsOrder + ", s.id"
	}
	switch {
	case f.Cursor == "":
	case f.NeedsFirst:
		var rank, at int64
		var id string
		rank, at, id, err = readNeedsCursor(f.Cursor)
		add("("+needsRank+", "+needsOrder+", s.id) > (?, ?, ?)", rank, at, id)
	case !strings.HasPrefix(f.Cursor, "ses_"):
		err = badCursor()
	default:
		add("s.id < ?", f.Cursor)
	}
	q := "SELECT " + columns + d.now() + viewFrom + "WHERE " + strings.Join(where, " AND ") + " ORDER BY " + order + fmt.Sprintf(" LIMIT %d", f.Limit+1)
	return q, args, err
}

func badCursor() error {
	return journal.Errorf(journal.Invalid, "This cursor isn't one that a list gave. Start again without it.").Typed("bad-cursor")
}

// pageLimit is the size of one page of a list: 20 unless it is said, 100 at most.
func pageLimit(n int) int {
	if n <= 0 {
		return 20
	}
	return min(n, 100)
}

// OwnerOf tells whose a session is, for administrative commands. Code: not_found.
func (s *Store) OwnerOf(ctx context.Context, id string) (string, error) {
	var owner string
	err := s.read(ctx, func(q querier) error {
		err := q.get(ctx, &owner, "SELECT owner_id FROM session WHERE id = ?", id)
		if errors.Is(err, sql.ErrNoRows) {
			return noSession()
		}
		return err
	})
	return owner, err
}
