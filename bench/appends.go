package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"holdfast/store"
)

// appends is B3: events of 200 bytes of output, one append in flight for each
// session, through the store's door in this process.
func (b *bench) appends(ctx context.Context) error {
	engines := []engine{sqlite}
	if b.postgres != "" {
		engines = append(engines, postgres)
	}
	rows := [][]string{versusHead("database, sessions", "rows/s")}
	for _, e := range engines {
		for _, sessions := range []int{1, 64} {
			pairs, err := b.append(ctx, e, sessions)
			if err != nil {
				return fmt.Errorf("%s, %d sessions: %w", e, sessions, err)
			}
			rows = append(rows, versus(string(e)+", "+strconv.Itoa(sessions), pairs, "≥ 0.60"))
		}
	}
	b.out.title("B3: append of an event by a run, durable")
	b.out.table(rows)
	return nil
}

func (b *bench) append(ctx context.Context, e engine, sessions int) (_ []pair, err error) {
	product, err := b.newSide(ctx, e)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, product.db.drop(ctx)) }()
	other, err := b.newSide(ctx, e)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, other.db.drop(ctx)) }()

	st, err := store.Open(ctx, store.Options{URL: product.db.url})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	mine, err := manyRunning(ctx, st, product.owner, sessions)
	if err != nil {
		return nil, err
	}
	var theirs []*running
	err = other.beside(ctx, func(st *store.Store) (err error) {
		theirs, err = manyRunning(ctx, st, other.owner, sessions)
		return err
	})
	if err != nil {
		return nil, err
	}
	loop, err := openBare(ctx, other.db)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, loop.close()) }()
	return b.rounds(ctx,
		func(ctx context.Context) (sample, error) {
			return slice(ctx, sessions, b.slice, func(ctx context.Context, i int) error {
				return mine[i].append(ctx, st, mine[i].output())
			})
		},
		func(ctx context.Context) (sample, error) {
			return slice(ctx, sessions, b.slice, func(_ context.Context, i int) error {
				r := theirs[i]
				o := r.output()
				w := bareOutput{session: r.claim.SessionID, execution: r.claim.ExecutionID, call: r.call, offset: o.Offset, text: outputText}
				return loop.do(w.session, w.write)
			})
		})
}

func manyRunning(ctx context.Context, st *store.Store, owner string, n int) ([]*running, error) {
	out := make([]*running, n)
	err := each(ctx, n, func(ctx context.Context, i int) (err error) {
		out[i], err = newRunning(ctx, st, owner)
		return err
	})
	return out, err
}
