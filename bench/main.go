package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// plan is how much is measured.
type plan struct {
	rounds int           // of which the median is taken
	slice  time.Duration // of one side in one round
	long   int64         // events of the long session of B6
	opens  int           // windows that are opened in a round of B6
	starts int           // of the binary

	streams int           // idle ones of B5
	settle  time.Duration // that they are left alone

	commands   int // that outlive a server
	floods     int // missions of B10
	floodBytes int // that each prints
}

var (
	fullPlan  = plan{rounds: 7, slice: 1200 * time.Millisecond, long: 100_000, opens: 100, starts: 5, streams: 10_000, settle: 20 * time.Second, commands: 200, floods: 3, floodBytes: 100_000_000}
	shortPlan = plan{rounds: 3, slice: 150 * time.Millisecond, long: 5_000, opens: 20, starts: 3, streams: 300, settle: 2 * time.Second, commands: 10, floods: 1, floodBytes: 2_000_000}
)

// bench is one run.
type bench struct {
	plan
	out      *report
	dir      string // all that the run writes, gone at its end
	binary   string
	postgres string // a superuser's URL, or ""
	chosen   []string
	callers  []int // of B1 and B2
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	short := flags.Bool("short", false, "take seconds, to see that it works: the figures mean nothing")
	only := flags.String("only", "", "run these alone, such as B1,B3")
	binary := flags.String("binary", "", "measure this binary instead of building one")
	callers := flags.Int("callers", 0, "measure B1 and B2 with so many alone")
	streams := flags.Int("streams", 0, "measure B5 with so many")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	b := &bench{plan: fullPlan, out: &report{w: os.Stdout}, callers: callerCounts, binary: *binary, postgres: os.Getenv("TEST_POSTGRES_URL")}
	if *short {
		b.plan = shortPlan
	}
	if *streams > 0 {
		b.streams = *streams
	}
	if *only != "" {
		b.chosen = strings.Split(*only, ",")
	}
	if *callers > 0 {
		b.callers = []int{*callers}
	}
	if b.dir, err = os.MkdirTemp("", "holdfast-bench-"); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.binary == "" {
		b.binary = filepath.Join(b.dir, "holdfast")
		if err := build(ctx, b.binary); err != nil {
			return err
		}
	}
	return b.all(ctx)
}

func (b *bench) all(ctx context.Context) error {
	if err := b.facts(ctx); err != nil {
		return err
	}
	steps := []struct {
		id string
		fn func(context.Context) error
	}{
		{"B1", func(ctx context.Context) error { return b.admission(ctx, "B1", sqlite) }},
		{"B2", func(ctx context.Context) error { return b.admission(ctx, "B2", postgres) }},
		{"B3", b.appends},
		{"B4", b.wakes},
		{"B5", b.idle},
		{"B6", b.windows},
		{"B8", b.adoption},
		{"B9", b.calls},
		{"B10", b.flood},
		{"B11", b.footprint},
	}
	for _, s := range steps {
		if !b.picks(s.id) {
			continue
		}
		if err := s.fn(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.id, err)
		}
	}
	return b.out.err
}

func (b *bench) picks(id string) bool {
	chosen := len(b.chosen) == 0
	for _, c := range b.chosen {
		chosen = chosen || strings.EqualFold(strings.TrimSpace(c), id)
	}
	if chosen && id == "B2" && b.postgres == "" {
		b.out.line("\nB2 is left out: TEST_POSTGRES_URL names no server (make bench brings one).")
		return false
	}
	return chosen
}
