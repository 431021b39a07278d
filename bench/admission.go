package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// callerCounts are how many people or programs submit at once.
var callerCounts = []int{1, 8, 64, 256}

// admission is B1 and B2: a prompt submitted to the built binary over HTTP and
// answered after its commit, against the same rows written by the bare loop.
// Nothing runs: a mission holds the server's only place.
func (b *bench) admission(ctx context.Context, id string, e engine) (err error) {
	product, err := b.newSide(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, product.db.drop(ctx)) }()
	other, err := b.newSide(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.db.drop(ctx)) }()
	states, err := other.states(ctx)
	if err != nil {
		return err
	}
	loop, err := openBare(ctx, other.db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, loop.close()) }()
	sv, err := b.startServer(ctx, product)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sv.stop()) }()
	if err := sv.take(ctx); err != nil {
		return err
	}
	rows := [][]string{versusHead("callers", "prompts/s")}
	for _, callers := range b.callers {
		pairs, err := b.admit(ctx, callers, product, sv, other, loop, states)
		if err != nil {
			return fmt.Errorf("%d callers: %w", callers, err)
		}
		target := "–"
		if callers == 64 {
			target = "≥ 0.50"
		}
		rows = append(rows, versus(strconv.Itoa(callers), pairs, target))
	}
	b.out.title("%s: admission of a prompt, %s, over HTTP, durable", id, e)
	b.out.table(rows)
	return b.serverMemory(sv, "after that")
}

func (b *bench) admit(ctx context.Context, callers int, product *side, sv *server, other *side, loop *bare, states []string) ([]pair, error) {
	c := newClient(sv, callers)
	defer c.http.CloseIdleConnections()
	body, err := json.Marshal(map[string]string{"text": promptText, "delivery": "queue"})
	if err != nil {
		return nil, err
	}
	base := c.keys.Load()
	c.keys.Store(base + int64(callers)<<32) // each count of callers has keys of its own
	submit := func(_ context.Context, session string, _ int) error { return c.submit(session, body) }
	write := func(_ context.Context, session string, n int) error {
		key := "bench-" + strconv.FormatInt(c.keys.Add(1), 10) + "-0123456789abcdef"
		a := bareAdmission{owner: other.owner, session: session, key: key, text: promptText, state: states[n]}
		return loop.do(session, a.write)
	}
	return b.rounds(ctx,
		func(ctx context.Context) (sample, error) { return b.submitting(ctx, callers, product, submit) },
		func(ctx context.Context) (sample, error) { return b.submitting(ctx, callers, other, write) })
}

// submitting is one side's round: each caller fills one session after the other.
func (b *bench) submitting(ctx context.Context, callers int, s *side, submit func(ctx context.Context, session string, n int) error) (sample, error) {
	const fastest = 12_000 // a second; if it is faster the round is shorter
	if err := s.refill(ctx, callers+int(fastest*b.slice.Seconds())*min(callers, 16)/16/perSession); err != nil {
		return sample{}, err
	}
	type at struct {
		session string
		n       int
	}
	where := make([]at, callers)
	return slice(ctx, callers, b.slice, func(ctx context.Context, caller int) (err error) {
		w := &where[caller]
		if w.session == "" || w.n == perSession {
			w.n = 0
			if w.session, err = s.pool.take(); err != nil {
				return err
			}
		}
		w.n++
		return submit(ctx, w.session, w.n-1)
	})
}

// serverMemory prints what the process holds now.
func (b *bench) serverMemory(sv *server, when string) error {
	now, err := sv.memory("VmRSS")
	if err != nil {
		return err
	}
	peak, err := sv.memory("VmHWM")
	if err != nil {
		return err
	}
	b.out.line("\nThe server's memory %s: %.0f MB resident, %.0f MB at its peak.", when, now, peak)
	return nil
}
