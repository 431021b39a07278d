package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// sample is what one side did in one round.
type sample struct {
	rate     float64 // a second
	p50, p99 time.Duration
	n        int
}

// errSpent ends a caller early: what it was to work on is used up.
var errSpent = errors.New("nothing is left to work on")

// slice lets callers repeat what they do for a while, and tells how long each
// time took. The first error of a caller ends all.
func slice(ctx context.Context, callers int, d time.Duration, do func(ctx context.Context, caller int) error) (sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	took := make([][]time.Duration, callers)
	begin := make(chan struct{})
	var start time.Time
	for i := range callers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			<-begin
			for time.Since(start) < d && ctx.Err() == nil {
				t := time.Now()
				if err := do(ctx, i); err != nil {
					if !errors.Is(err, errSpent) {
						cancel(err)
					}
					return
				}
				took[i] = append(took[i], time.Since(t))
			}
		}()
	}
	start = time.Now()
	close(begin)
	wg.Wait()
	elapsed := time.Since(start)
	if err := context.Cause(ctx); err != nil {
		return sample{}, err
	}
	return newSample(slices.Concat(took...), elapsed)
}

func newSample(took []time.Duration, elapsed time.Duration) (sample, error) {
	if len(took) == 0 {
		return sample{}, errors.New("nothing was done in a round")
	}
	slices.Sort(took)
	at := func(q float64) time.Duration { return took[int(q*float64(len(took)-1))] }
	return sample{rate: float64(len(took)) / elapsed.Seconds(), p50: at(0.5), p99: at(0.99), n: len(took)}, nil
}

// each does something n times, 64 at once, until one fails.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(n, 64) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		}()
	}
	wg.Wait()
	return context.Cause(ctx)
}

// spread is a median with the least and the greatest.
type spread struct{ mid, least, most float64 }

func spreadOf[T any](of []T, value func(T) float64) spread {
	v := make([]float64, len(of))
	for i := range of {
		v[i] = value(of[i])
	}
	slices.Sort(v)
	mid := v[len(v)/2]
	if len(v)%2 == 0 {
		mid = (mid + v[len(v)/2-1]) / 2
	}
	return spread{mid, v[0], v[len(v)-1]}
}

// pair is one round: both sides, one after the other.
type pair struct{ product, bare sample }

func rate(s sample) float64 { return s.rate }
func p50(s sample) float64  { return ms(s.p50) }
func p99(s sample) float64  { return ms(s.p99) }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (s spread) ratio() string { return fmt.Sprintf("%.2f (%.2f..%.2f)", s.mid, s.least, s.most) }
func (s spread) count() string { return fmt.Sprintf("%.0f (%.0f..%.0f)", s.mid, s.least, s.most) }
func (s spread) short() string { return fmt.Sprintf("%.2f", s.mid) }

// rounds lets both sides take turns, a different one first each time, so that
// neither always has the cold or the throttled half.
func (b *bench) rounds(ctx context.Context, product, bare func(context.Context) (sample, error)) ([]pair, error) {
	out := make([]pair, 0, b.plan.rounds)
	for i := range b.plan.rounds + 1 {
		var p pair
		var err, err2 error
		if i%2 == 0 {
			p.product, err = product(ctx)
			p.bare, err2 = bare(ctx)
		} else {
			p.bare, err2 = bare(ctx)
			p.product, err = product(ctx)
		}
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		if i > 0 { // the first warms both up
			out = append(out, p)
		}
	}
	return out, nil
}

// versus is one line of a table: product against bare loop.
func versus(what string, pairs []pair, target string) []string {
	product := func(p pair) sample { return p.product }
	bare := func(p pair) sample { return p.bare }
	of := func(side func(pair) sample, value func(sample) float64) spread {
		return spreadOf(pairs, func(p pair) float64 { return value(side(p)) })
	}
	return []string{
		what,
		of(product, rate).count(), of(product, p50).short(), of(product, p99).short(),
		of(bare, rate).count(), of(bare, p50).short(), of(bare, p99).short(),
		spreadOf(pairs, func(p pair) float64 { return p.product.rate / p.bare.rate }).ratio(), target,
	}
}

func versusHead(what, unit string) []string {
	return []string{what, unit, "p50 ms", "p99 ms", "bare " + unit, "p50 ms", "p99 ms", "ratio", "to reach"}
}
