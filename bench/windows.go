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

// windows is B6: the newest 50 events of a session of 100,000, against those of
// one of 100, over HTTP from the built binary: as JSON, and as the page.
func (b *bench) windows(ctx context.Context) (err error) {
	s, err := b.newSide(ctx, sqlite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.db.drop(ctx)) }()
	var small, large, code string
	err = s.beside(ctx, func(st *store.Store) error {
		var err1, err2, err3 error
		small, err1 = filled(ctx, st, s.owner, shortSession)
		large, err2 = filled(ctx, st, s.owner, b.long)
		code, err3 = st.UserLink(ctx, s.owner)
		return errors.Join(err1, err2, err3)
	})
	if err != nil {
		return err
	}
	sv, err := b.startServer(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sv.stop()) }()
	program, browser := newClient(sv, 1), newClient(sv, 1)
	defer program.http.CloseIdleConnections()
	defer browser.http.CloseIdleConnections()
	if err := browser.signIn(code); err != nil {
		return err
	}
	newest := func(session string, events int64) string {
		return fmt.Sprintf("/api/v1/sessions/%s/events?after=%d&limit=%d", session, events-window, window)
	}
	rows := [][]string{{"", fmt.Sprintf("session of %d: p50 ms", b.long), "p99 ms", fmt.Sprintf("session of %d: p50 ms", shortSession), "p99 ms", "ratio of p50", "to reach"}}
	for _, v := range []struct {
		what         string
		c            *client
		large, small string
	}{
		{"as JSON", program, newest(large, b.long), newest(small, shortSession)},
		{"as the page", browser, "/sessions/" + large, "/sessions/" + small},
	} {
		pairs, err := b.rounds(ctx,
			func(context.Context) (sample, error) { return b.open(v.c, v.large) },
			func(context.Context) (sample, error) { return b.open(v.c, v.small) })
		if err != nil {
			return err
		}
		rows = append(rows, opened(v.what, pairs))
	}
	b.out.title("B6: the newest %d events, SQLite, over HTTP", window)
	b.out.table(rows)
	return b.replay(program, sv, large)
}

func opened(what string, pairs []pair) []string {
	of := func(value func(pair) float64) spread { return spreadOf(pairs, value) }
	return []string{
		what,
		of(func(p pair) float64 { return p50(p.product) }).short(), of(func(p pair) float64 { return p99(p.product) }).short(),
		of(func(p pair) float64 { return p50(p.bare) }).short(), of(func(p pair) float64 { return p99(p.bare) }).short(),
		of(func(p pair) float64 { return p50(p.product) / p50(p.bare) }).ratio(), "≤ 1.30",
	}
}

// open reads a window again and again.
func (b *bench) open(c *client, path string) (sample, error) {
	took := make([]time.Duration, b.opens)
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
	for after := int64(0); after < b.long; after += store.MaxEvents {
		n, err := c.read(fmt.Sprintf("/api/v1/sessions/%s/events?after=%d&limit=%d", session, after, store.MaxEvents))
		if err != nil {
			return err
		}
		bytes += n
	}
	took := time.Since(begin)
	b.out.line("\nReading all %d events from the start, %d at a time: %.2f s, %.0f events/s, %.1f MB.",
		b.long, store.MaxEvents, took.Seconds(), float64(b.long)/took.Seconds(), float64(bytes)/1e6)
	return b.serverMemory(sv, fmt.Sprintf("after it served those %d events", b.long))
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
