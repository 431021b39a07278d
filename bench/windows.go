package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/journal"
	"holdfast/store"
)

const (
	shortSession = 100
	window       = 50
)

// windows is B6 for programs: the newest 50 events of a session of 100,000,
// against those of one of 100, over HTTP from the built binary.
func (b *bench) windows(ctx context.Context) (err error) {
	s, err := b.newSide(ctx, sqlite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.db.drop(ctx)) }()
	var small, large string
	err = s.beside(ctx, func(st *store.Store) error {
		if small, err = filled(ctx, st, s.owner, shortSession); err != nil {
			return err
		}
		large, err = filled(ctx, st, s.owner, b.plan.long)
		return err
	})
	if err != nil {
		return err
	}
	sv, err := b.startServer(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sv.stop()) }()
	c := newClient(sv, 1)
	defer c.http.CloseIdleConnections()
	pairs, err := b.rounds(ctx,
		func(context.Context) (sample, error) { return b.open(c, large, b.plan.long) },
		func(context.Context) (sample, error) { return b.open(c, small, shortSession) })
	if err != nil {
		return err
	}
	b.out.title("B6: the newest %d events, SQLite, over HTTP", window)
	at := func(value func(sample) float64) []spread {
		return []spread{
			spreadOf(pairs, func(p pair) float64 { return value(p.product) }),
			spreadOf(pairs, func(p pair) float64 { return value(p.bare) }),
			spreadOf(pairs, func(p pair) float64 { return value(p.product) / value(p.bare) }),
		}
	}
	mid, tail := at(p50), at(p99)
	b.out.table([][]string{
		{"", fmt.Sprintf("session of %d", b.plan.long), fmt.Sprintf("session of %d", shortSession), "ratio", "to reach"},
		{"p50 ms", mid[0].short(), mid[1].short(), mid[2].ratio(), "≤ 1.30"},
		{"p99 ms", tail[0].short(), tail[1].short(), tail[2].ratio(), "–"},
	})
	return b.replay(c, sv, large)
}

// open reads the newest window again and again.
func (b *bench) open(c *client, session string, events int64) (sample, error) {
	path := fmt.Sprintf("/api/v1/sessions/%s/events?after=%d&limit=%d", session, events-window, window)
	took := make([]time.Duration, b.plan.opens)
	begin := time.Now()
	for i := range took {
		t := time.Now()
		if _, err := c.read(path); err != nil {
			return sample{}, err
		}
		took[i] = time.Since(t)
	}
	return newSample(took, time.Since(begin))
}

// replay reads the whole session as a program does that comes late, and tells
// what that leaves in the server's memory.
func (b *bench) replay(c *client, sv *server, session string) error {
	begin, bytes := time.Now(), 0
	for after := int64(0); after < b.plan.long; after += store.MaxEvents {
		n, err := c.read(fmt.Sprintf("/api/v1/sessions/%s/events?after=%d&limit=%d", session, after, store.MaxEvents))
		if err != nil {
			return err
		}
		bytes += n
	}
	took := time.Since(begin)
	b.out.line("\nReading all %d events from the start, %d at a time: %.2f s, %.0f events/s, %.1f MB.",
		b.plan.long, store.MaxEvents, took.Seconds(), float64(b.plan.long)/took.Seconds(), float64(bytes)/1e6)
	return b.serverMemory(sv, fmt.Sprintf("after it served those %d events", b.plan.long))
}

// filled makes a session with exactly so many events, most of them output.
func filled(ctx context.Context, st *store.Store, owner string, events int64) (string, error) {
	r, err := newRunning(ctx, st, owner)
	if err != nil {
		return "", err
	}
	id := r.claim.SessionID
	head, _, err := st.Head(ctx, owner, id)
	for err == nil && head < events {
		bodies := make([]journal.Body, min(200, events-head))
		for i := range bodies {
			bodies[i] = r.output()
		}
		err = r.append(ctx, st, bodies...)
		head += int64(len(bodies))
	}
	if err != nil {
		return "", fmt.Errorf("fill a session: %w", err)
	}
	return id, nil
}
