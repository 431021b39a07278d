package main

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// footprint is B11 without the build's time: what the binary weighs, how soon
// it answers, what it holds while nothing happens.
func (b *bench) footprint(ctx context.Context) error {
	info, err := os.Stat(b.binary)
	if err != nil {
		return fmt.Errorf("find the binary: %w", err)
	}
	var ready, idle []float64
	for range b.starts {
		if err := b.oneStart(ctx, &ready, &idle); err != nil {
			return err
		}
	}
	same := func(v float64) float64 { return v }
	b.out.title("B11: the binary")
	r, m := spreadOf(ready, same), spreadOf(idle, same)
	b.out.table([][]string{
		{"what", "figure", "to reach"},
		{"size, stripped", fmt.Sprintf("%.1f MB", float64(info.Size())/1e6), "≤ 25 MB"},
		{"start to the first answer of /healthz", fmt.Sprintf("%.0f (%.0f..%.0f) ms", r.mid, r.least, r.most), "≤ 500 ms"},
		{"memory at rest, just after that", fmt.Sprintf("%.0f (%.0f..%.0f) MB", m.mid, m.least, m.most), "≤ 60 MB"},
	})
	return nil
}

func (b *bench) oneStart(ctx context.Context, ready, idle *[]float64) (err error) {
	s, err := b.newSide(ctx, sqlite)
	if err != nil {
		return err
	}
	sv, err := b.startServer(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sv.stop()) }()
	if err := sv.get(ctx, "/api/v1/sessions", nil); err != nil {
		return err
	}
	rss, err := sv.memory("VmRSS")
	*ready, *idle = append(*ready, ms(sv.ready)), append(*idle, rss)
	return err
}
