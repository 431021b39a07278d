package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"holdfast/journal"
	"holdfast/store"
)

// perSession is how many prompts wait in a session before the next one is
// taken: its state names each, so that a longer queue makes larger rows. The
// bound is 200 (ADM-10).
const perSession = 20

// promptText is what is submitted: nothing that would be run as a step.
const promptText = "Look at the import of last night: three of its files were rejected with an encoding that the log does not name. " +
	"Find out which one it is, and say what would have to change. Nothing is to be written yet."

// side is a database with an owner and sessions to submit to.
type side struct {
	db    *database
	owner string
	pool  pool
}

// pool gives sessions out, each for perSession prompts.
type pool struct {
	ids  []string
	next atomic.Int64
}

func (p *pool) take() (string, error) {
	i := int(p.next.Add(1)) - 1
	if i >= len(p.ids) {
		return "", errSpent
	}
	return p.ids[i], nil
}

// beside opens a side's journal as an administrative command does, for what is
// not measured.
func (s *side) beside(ctx context.Context, fn func(*store.Store) error) error {
	st, err := store.Open(ctx, store.Options{URL: s.db.url, Admin: true})
	if err != nil {
		return fmt.Errorf("open beside: %w", err)
	}
	return errors.Join(fn(st), st.Close())
}

// newSide makes the schema and the owner.
func (b *bench) newSide(ctx context.Context, e engine) (*side, error) {
	db, err := b.newDatabase(ctx, e)
	if err != nil {
		return nil, err
	}
	st, err := store.Open(ctx, store.Options{URL: db.url})
	if err != nil {
		return nil, errors.Join(err, db.drop(ctx))
	}
	u, err := st.AddUser(ctx, "bench@example.com", "")
	if err := errors.Join(err, st.Close()); err != nil {
		return nil, errors.Join(err, db.drop(ctx))
	}
	return &side{db: db, owner: u.ID}, nil
}

// refill makes as many new sessions as the next round may use up.
func (s *side) refill(ctx context.Context, n int) error {
	return s.beside(ctx, func(st *store.Store) error {
		ids := make([]string, n)
		err := each(ctx, n, func(ctx context.Context, i int) (err error) {
			ids[i], err = newSession(ctx, st, s.owner, nil)
			return err
		})
		if err != nil {
			return err
		}
		s.pool.ids = ids
		s.pool.next.Store(0)
		return nil
	})
}

func newSession(ctx context.Context, st *store.Store, owner string, prompt *store.PromptInput) (string, error) {
	se, _, err := st.CreateSession(ctx, owner, rand.Text(), store.NewSession{
		Title: "Measure", Agent: "runbook", Workspace: "/srv/work", WorkspaceID: "wsp_bench", Preset: "ask_writes", Prompt: prompt,
	})
	return se.ID, err
}

// states are what the column state holds after each admission to a session,
// taken from the store itself, so that the bare loop writes rows of that size.
func (s *side) states(ctx context.Context) ([]string, error) {
	driver, dsn := string(s.db.engine), s.db.url
	if s.db.engine == sqlite {
		dsn = sqliteDSN(s.db.url)
	}
	raw, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, err
	}
	defer func() { _ = raw.Close() }() // it was only asked
	out := make([]string, perSession)
	err = s.beside(ctx, func(st *store.Store) error {
		id, err := newSession(ctx, st, s.owner, nil)
		if err != nil {
			return err
		}
		for i := range out {
			if _, err := st.SubmitPrompt(ctx, s.owner, id, rand.Text(), store.PromptInput{Text: promptText, Delivery: journal.Queue}); err != nil {
				return err
			}
			if err := raw.QueryRowContext(ctx, "SELECT state FROM session WHERE id = '"+id+"'").Scan(&out[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// running is a session in which a call is being executed.
type running struct {
	owner string
	claim *journal.Claim
	call  string
	at    int64 // how much output it has
}

// newRunning brings a new session to where its run appends output.
func newRunning(ctx context.Context, st *store.Store, owner string) (*running, error) {
	id, err := newSession(ctx, st, owner, &store.PromptInput{Text: promptText, Delivery: journal.Queue})
	if err != nil {
		return nil, err
	}
	c, err := st.Claim(ctx, store.ClaimRequest{SessionID: id, WorkerID: "wrk_bench", StateFolderID: "fld_bench", Lease: time.Hour})
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, fmt.Errorf("no claim on %s", id)
	}
	evs, err := st.PromoteNext(ctx, c)
	if err != nil {
		return nil, err
	}
	body, err := evs[0].Decode()
	if err != nil {
		return nil, err
	}
	turn, ok := body.(*journal.TurnStarted)
	if !ok {
		return nil, fmt.Errorf("%s began with %s", id, evs[0].Kind)
	}
	r := &running{owner: owner, claim: c, call: store.NewID("cal")}
	return r, r.append(ctx, st,
		&journal.CallProposed{CallID: r.call, TurnID: turn.TurnID, Key: "bench/1", Tool: "shell", Input: []byte(`{"command":"make import"}`), InputSHA256: someHash, Effect: journal.EffectEffect},
		&journal.CallDispatched{CallID: r.call, N: 1, AllowedBy: journal.AllowedBy{Type: journal.AllowedByPreset, ID: "workspace", Text: "preset workspace"}})
}

func (r *running) append(ctx context.Context, st *store.Store, bodies ...journal.Body) error {
	drafts := make([]journal.Draft, len(bodies))
	for i, b := range bodies {
		drafts[i] = journal.Draft{ID: store.NewID("evt"), Actor: journal.Agent(), Body: b}
	}
	_, err := st.Append(ctx, r.claim, store.Append{Drafts: drafts})
	return err
}

// outputText is a piece of output of 200 bytes.
const outputText = "2026-01-31T04:17:23.118Z import: file 001842 of 220000: 18,244 rows read, 18,244 rows written, 0 rejected; " +
	"checksum 5f1d7a84e970abe5 verified against the manifest; next file in 0.8 s; eta 13 m"

// output is the next piece of the call's output.
func (r *running) output() *journal.CallOutput {
	o := &journal.CallOutput{CallID: r.call, Stream: "stdout", Offset: r.at, Text: journal.T(outputText)}
	r.at += int64(len(outputText))
	return o
}
