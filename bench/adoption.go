package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// adoption is part of B8: a server is killed while many commands run, and
// started again on the same state folder; it follows all of them.
func (b *bench) adoption(ctx context.Context) error {
	rows := [][]string{{"database", "commands", "ready after ms", "all followed after ms", "unknown", "to reach"}}
	for _, e := range b.engines() {
		row, err := b.adoptOn(ctx, e)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	b.out.title("Commands that outlive a killed server, from its next start")
	b.out.table(rows)
	return nil
}

func (b *bench) adoptOn(ctx context.Context, e engine) (row []string, err error) {
	s, err := b.newSide(ctx, e)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.db.drop(ctx)) }()
	many := "--max-running=" + strconv.Itoa(b.commands)
	// Should this fail, nobody follows them any more.
	orphan := "--orphan=2m"
	sv, err := b.startServer(ctx, s, many, orphan)
	if err != nil {
		return nil, err
	}
	gate := filepath.Join(sv.work, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		return nil, errors.Join(err, sv.stop())
	}
	for i := range b.commands {
		if err := sv.post(ctx, "/api/v1/sessions", "adopted-"+strconv.Itoa(i), mission(sv.work, "```sh\ncat gate\n```\n")); err != nil {
			return nil, errors.Join(err, sv.stop())
		}
	}
	if err := sv.until(ctx, s, "SELECT count(*) FROM call WHERE state = 'dispatched'", b.commands); err != nil {
		return nil, errors.Join(err, sv.stop())
	}
	if err := sv.stop(); err != nil {
		return nil, err
	}
	begin := time.Now()
	again, err := b.startAgain(ctx, s, sv, many, orphan)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, again.stop()) }()
	const followed = "SELECT count(*) FROM call c JOIN claim k ON k.session_id = c.session_id WHERE c.state = 'dispatched' AND c.adopted_at > 0 AND k.phase = 'uncertain'"
	if err := again.until(ctx, s, followed, b.commands); err != nil {
		return nil, err
	}
	took := time.Since(begin)
	var wg sync.WaitGroup
	defer wg.Wait()
	done := make(chan struct{})
	defer close(done)
	wg.Go(func() { release(gate, done) })
	if err := again.until(ctx, s, "SELECT count(*) FROM call WHERE state = 'succeeded'", b.commands); err != nil {
		return nil, err
	}
	return []string{string(e), strconv.Itoa(b.commands), fmt.Sprintf("%.0f", ms(again.ready)), fmt.Sprintf("%.0f", ms(took)), "0", "≤ 5000"}, nil
}

func mission(work, text string) map[string]any {
	return map[string]any{
		"workspace": work, "agent": "runbook", "title": "Run",
		"rules":  []map[string]string{{"permission": "shell", "pattern": "*", "action": "allow"}, {"permission": "edit", "pattern": "*", "action": "allow"}},
		"prompt": map[string]string{"text": text},
	}
}

// release lets those end that read a FIFO, also the ones that come to it late.
func release(fifo string, done <-chan struct{}) {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		if f, err := os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil { // else nobody reads
			_ = f.Close()
		}
		select {
		case <-done:
			return
		case <-again.C:
		}
	}
}

// until looks every few milliseconds until the journal counts so many.
func (sv *server) until(ctx context.Context, s *side, query string, want int) error {
	driver, dsn := string(s.db.engine), s.db.url
	if s.db.engine == sqlite {
		dsn = sqliteDSN(s.db.url)
	}
	raw, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = raw.Close() }() // it was only asked
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for n := -1; ; {
		if err := raw.QueryRowContext(ctx, query).Scan(&n); err != nil {
			return fmt.Errorf("%q gives %d, not %d: %w; the server says: %s", query, n, want, err, sv.errs.String())
		}
		if n == want {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("%q gives %d, not %d; the server says: %s", query, n, want, sv.errs.String())
		}
	}
}
