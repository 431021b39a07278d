package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/lib/pq"
)

// listens checks that a wake-up that one connection sends reaches another: a
// pooler that hands connections out for each transaction loses it. The channel
// is this check's own, so that no server hears of it.
func (d *doctor) listens(ctx context.Context, address string) {
	if err := hears(ctx, d.s, address); err != nil {
		d.add("wake-ups", Wrong, "LISTEN doesn't work: "+err.Error(), "connect to Postgres itself, not to a pooler that shares connections between transactions")
		return
	}
	d.add("wake-ups", Healthy, "LISTEN and NOTIFY work", "")
}

func hears(ctx context.Context, s *Store, address string) error {
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	l := pq.NewListener(address, 100*time.Millisecond, doctorTime, nil)
	defer func() { _ = l.Close() }() // a second close is an error, and no harm
	// Listen waits for a connection, for ever if there is none; closing ends that.
	unblock := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer unblock()
	name := "holdfast_doctor_" + strings.ToLower(rand.Text())
	if err := l.Listen(name); err != nil {
		return err
	}
	if _, err := s.r.ExecContext(ctx, "SELECT pg_notify($1, '')", name); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("nothing was heard in %s", doctorTime)
		case n := <-l.Notify:
			if n != nil && n.Channel == name {
				return nil
			}
		}
	}
}
