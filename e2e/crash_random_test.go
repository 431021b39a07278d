//go:build crashpoints

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// kills is a server that is killed again and again, at moments that a seed
// decides, while several people work with it.
type kills struct {
	s      *server
	rng    *rand.Rand
	now    []*witness // who works at the moment, one a lane
	people []*witness // all that there were
}

// lanes is how many sessions are worked on at once.
const lanes = 3

// next lets another person begin in a lane.
func (k *kills) next(lane int) {
	p := newWitness(k.s, standard)
	p.tag = fmt.Sprintf("p%d_%d_", lane, len(k.people))
	k.now[lane] = p
	k.people = append(k.people, p)
}

// once starts the server, lets people work, and kills it after a while: one
// time in four while it starts.
func (k *kills) once() {
	t := k.s.w.t
	t.Helper()
	k.s.launch()
	starting := k.rng.IntN(4) == 0
	within := 700 * time.Millisecond
	if starting {
		within = 60 * time.Millisecond
	} else {
		k.s.ready()
	}
	after := time.NewTimer(time.Duration(k.rng.Int64N(int64(within)))) // the moment is the test's input
	defer after.Stop()
	finished := make([]bool, lanes)
	var wg sync.WaitGroup
	for i, p := range k.now {
		if !starting {
			wg.Go(func() { finished[i] = p.work(true) })
		}
	}
	select {
	case <-after.C:
	case <-k.s.exited:
		t.Fatalf("the server ended by itself: %s\n%s", k.s.cmd.ProcessState, tail(k.s.err.String(), 4000))
	}
	k.s.kill9()
	wg.Wait()
	for i, done := range finished {
		if done {
			k.next(i)
		}
	}
}

// randomKills kills a world's server n times, then lets all people come to
// their end and holds what happened against what they were told.
func randomKills(w *world, n int, seed uint64) {
	w.t.Helper()
	began := time.Now()
	w.t.Logf("%d kills on %s, seed %d (HOLDFAST_SEED=%d repeats the moments)", n, w.db.Name, seed, seed)
	k := &kills{s: w.configure(flags(quickest...)), rng: rand.New(rand.NewPCG(seed, 0)), now: make([]*witness, lanes)}
	for i := range lanes {
		k.next(i)
	}
	for range n {
		k.once()
		if w.t.Failed() {
			return
		}
	}
	k.s.start()
	recoveries, unknown := 0, 0
	for _, p := range k.people {
		j := p.carryOn()
		p.checkEffects()
		recoveries += j.count("step.recovered")
		unknown += j.count("call.unknown")
	}
	if o := w.run("", "verify"); o.code != 0 {
		w.t.Errorf("holdfast verify: exit %d\n%s%s", o.code, o.out, o.err)
	}
	w.t.Logf("%s: %d kills, %d sessions, %d recoveries with an event, %d unknown outcomes, in %s", w.db.Name, n, len(k.people), recoveries, unknown, time.Since(began).Round(time.Second))
}

// seed is the environment's, to repeat a run, or a new one.
func seed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("HOLDFAST_SEED")
	if text == "" {
		return uint64(time.Now().UnixNano())
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("HOLDFAST_SEED: %v", err)
	}
	return n
}

// proves ADM-1 ADM-3 CAL-4 CAL-6 REC-4 REC-5 REC-9 REC-11 LEA-11 RDR-2
func TestCrash_AtRandomMoments(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) { randomKills(w, 15, seed(t)) })
}
