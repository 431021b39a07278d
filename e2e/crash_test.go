//go:build crashpoints

package e2e

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/store/storetest"
)

// point is one labelled place in the product at which it is killed with -9
// while a person does the standard scenario (crash_witness_test.go).
type point struct {
	label string // as in store.Crash; with ":n" the nth time that it is reached
	first string // where the server was killed before, so that this label can be reached
	lost  bool   // before that, server and shims are lost while a command waits: its outcome is unknown
	plot  plot

	// What the loss must look like afterwards, "" where a race with another
	// goroutine decides: then the invariants alone say what is right.
	phase   string // of the recovery: ready, uncertain, or none if it left no event; | is or
	unknown string // how many outcomes a person is asked for
	redone  bool   // the person sees that it did not happen, and it is proposed again
}

// midEffect is where a server dies after an effect that nobody recorded.
const midEffect = "call.before_settle"

// points are all that the product has; TestCrash_KnowsAllLabels compares.
var points = []point{
	{label: "admit.begin", phase: "none", unknown: "0"},
	{label: "admit.inserted", phase: "none", unknown: "0"},
	{label: "admit.before_commit", phase: "none", unknown: "0"},
	{label: "admit.after_commit"},
	{label: "admit.before_reply"},
	{label: "claim.locked", phase: "none", unknown: "0"},
	{label: "claim.committed", phase: "ready", unknown: "0"},
	{label: "promote.before_commit", phase: "ready", unknown: "0"},
	{label: "promote.after_commit", phase: "ready", unknown: "0"},
	{label: "call.dispatched_before_commit", phase: "ready", unknown: "0"},
	{label: "call.dispatched_after_commit", phase: "uncertain", unknown: "0"}, // the shim says that it never began
	{label: "call.before_run", phase: "uncertain", unknown: "0"},
	{label: "call.output", phase: "uncertain", unknown: "0"}, // its shim has it, or its record
	{label: midEffect, phase: "uncertain", unknown: "0"},
	{label: "call.after_settle", phase: "none", unknown: "0"},
	{label: "decide.before_commit", phase: "none", unknown: "0"},
	{label: "decide.after_commit"},
	{label: "endturn.before_commit", phase: "none", unknown: "0"},
	{label: "endturn.after_commit", phase: "none", unknown: "0"},
	{label: "release", phase: "none", unknown: "0"},
	{label: "renew.before", plot: longStep, unknown: "0"},
	{label: "renew.after", plot: longStep, unknown: "0"},
	{label: "interrupt.before_commit", plot: stopped, phase: "uncertain", unknown: "0"},
	{label: "interrupt.after_commit", plot: stopped, phase: "uncertain|none", unknown: "0"},
	{label: "sweep.selected", lost: true, plot: longStep, phase: "uncertain", unknown: "1", redone: true},
	{label: "sweep.locked", lost: true, plot: longStep, phase: "uncertain", unknown: "1", redone: true},
	{label: "sweep.updated", lost: true, plot: longStep, phase: "uncertain", unknown: "1", redone: true},
	{label: "sweep.committed", lost: true, plot: longStep, phase: "uncertain", unknown: "1", redone: true},
	{label: "resolve.before_commit", lost: true, plot: longStep, phase: "uncertain", unknown: "1", redone: true},
	{label: "resolve.after_commit", lost: true, plot: longStep, phase: "uncertain|uncertain+ready", redone: true},
	{label: "sse.read:2"},
	{label: "sse.sent:2"},
}

// quickest are flags with which even a claim that nobody ends expires soon.
var quickest = []string{"--lease", "1500ms", "--renew", "500ms", "--sweep", "300ms"}

// The real binary is killed at each labelled point, on each database, and
// started again; then the invariants hold, and each effect happened once.
// proves ADM-1 ADM-3 ADM-7 JRN-3 LEA-7 LEA-10 LEA-11 CAL-1 CAL-4 CAL-6 REC-2 REC-3 REC-4 REC-5 REC-6 REC-7 REC-9 PER-4 PRO-2 RDR-2
func TestCrash(t *testing.T) {
	t.Parallel()
	table := &crashTable{}
	t.Cleanup(func() { t.Log("\n" + table.String()) })
	for _, database := range storetest.Databases() {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			for _, pt := range points {
				t.Run(pt.label, func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, database)
					table.add(crashAt(w, pt))
				})
			}
		})
	}
}

// crashAt kills the server at a point, starts it again, has the person carry on,
// and tells what became of it.
func crashAt(w *world, pt point) (r crashRow) {
	began := time.Now()
	s := w.configure(flags(quickest...))
	p := newWitness(s, pt.plot)
	r = crashRow{label: pt.label, database: w.db.Name}
	defer func() { // also of a test that ends early
		r.took = time.Since(began)
		r.ok = !w.t.Failed()
	}()
	if pt.lost {
		s.loseAll(p)
	}
	for _, label := range []string{pt.first, pt.label} {
		if label != "" {
			s.dieAt(label, p)
		}
	}
	r.reached = true
	s.env = nil
	s.start()
	j := p.carryOn()
	r.phase, r.unknown = recoveredPhase(j), j.count("call.unknown")
	r.effects = p.checkEffects()
	if pt.phase != "" && !slices.Contains(strings.Split(pt.phase, "|"), r.phase) {
		w.t.Errorf("recovered in phase %s, want %s\n%s", r.phase, pt.phase, j.dump())
	}
	if pt.unknown != "" && fmt.Sprint(r.unknown) != pt.unknown {
		w.t.Errorf("%d outcomes were unknown, want %s\n%s", r.unknown, pt.unknown, j.dump())
	}
	if redone := j.at("call.resolved", func(e event) bool { return e.str("outcome") == "did_not_happen" }) >= 0; pt.redone && !redone {
		w.t.Errorf("nothing had run, and yet the person saw an effect\n%s", j.dump())
	}
	if o := w.run("", "verify"); o.code != 0 {
		w.t.Errorf("holdfast verify: exit %d\n%s%s", o.code, o.out, o.err)
	}
	return r
}

// loseAll starts the server, lets the person work until a command waits at the
// gate, and cuts the power.
func (s *server) loseAll(p *witness) {
	s.w.t.Helper()
	s.start()
	lost := make(chan struct{})
	go func() { defer close(lost); p.work(true) }()
	db := s.w.sql()
	eventually(s.w.t, "a command waits", func() bool {
		// Before its shim has opened the gate nothing has run, and the shim knows that.
		opened, _ := filepath.Glob(filepath.Join(s.state, "shims", "call_*", "opened"))
		return slices.ContainsFunc(opened, func(file string) bool {
			call, _, _ := strings.Cut(filepath.Base(filepath.Dir(file)), ".")
			return s.w.db.Count(s.w.t, db, "SELECT count(*) FROM call WHERE id = ? AND state = 'dispatched' AND input LIKE '%gate%'", call) > 0
		})
	})
	s.powerCut()
	<-lost
}

// dieAt starts the server with a label armed and lets the person work until it
// is dead. It fails unless the server has died there.
func (s *server) dieAt(label string, p *witness) {
	t := s.w.t
	t.Helper()
	reached := filepath.Join(s.w.dir, "reached")
	if err := os.RemoveAll(reached); err != nil {
		t.Fatal(err)
	}
	s.env = []string{"HOLDFAST_CRASH=" + label, "HOLDFAST_CRASH_REACHED=" + reached}
	s.launch()
	// It may die before it listens, where its start gets there.
	finished := false
	if s.out.Await(s.exited, "listening on ") != "" {
		finished = p.work(true)
	}
	s.exit() // waits for its death; fails if it lives on
	status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the server armed with %s ended by itself (%s; all done: %v):\n%s", label, s.cmd.ProcessState, finished, tail(s.err.String(), 4000))
	}
	name, _, _ := strings.Cut(label, ":")
	if b, err := os.ReadFile(reached); err != nil || strings.TrimSpace(string(b)) != name {
		t.Fatalf("%s was never reached: the file says %q, %v", label, b, err)
	}
}

// recoveredPhase is that of the one recovery that a journal tells of.
func recoveredPhase(j journal) string {
	var phases []string
	for _, e := range j.of("step.recovered") {
		phases = append(phases, e.str("phase"))
	}
	if phases == nil {
		return "none"
	}
	return strings.Join(phases, "+")
}

// crashRow is a line of the table.
type crashRow struct {
	label, database string
	reached         bool
	phase           string
	unknown         int
	effects         string
	ok              bool
	took            time.Duration
}

type crashTable struct {
	mu   sync.Mutex
	rows []crashRow
}

func (c *crashTable) add(r crashRow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = append(c.rows, r)
}

func (c *crashTable) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := map[string]int{}
	for i, pt := range points {
		at[pt.label] = i
	}
	slices.SortFunc(c.rows, func(a, b crashRow) int {
		if n := at[a.label] - at[b.label]; n != 0 {
			return n
		}
		return strings.Compare(b.database, a.database) // sqlite first
	})
	var b strings.Builder
	format := "%-30s %-9s %-8v %-10s %8v  %-36s %-10v %6v\n"
	fmt.Fprintf(&b, format, "killed at", "database", "reached", "recovered", "unknown", "effects", "invariants", "ms")
	for _, r := range c.rows {
		phase := r.phase
		if phase == "" {
			phase = "-"
		}
		invariants := "hold"
		if !r.ok {
			invariants = "BROKEN"
		}
		fmt.Fprintf(&b, format, r.label, r.database, yes(r.reached), phase, r.unknown, r.effects, invariants, r.took.Milliseconds())
	}
	return b.String()
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "NO"
}

var crashCall = regexp.MustCompile(`\bCrash\("([a-z_.]+)"\)`)

// A label that somebody adds to the product is killed at, or this fails; one
// that is gone has no row.
func TestCrash_KnowsAllLabels(t *testing.T) {
	t.Parallel()
	var known, placed []string
	for _, pt := range points {
		known = append(known, pt.label)
	}
	known = slices.Concat(known, slices.Collect(maps.Keys(stdinPoints)), agentPoints)
	for _, pt := range shimPoints {
		known = append(known, pt.label)
	}
	for _, dir := range []string{"store", "runner", "handlers"} {
		err := fs.WalkDir(os.DirFS(".."), dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			src, err := os.ReadFile(filepath.Join("..", path))
			for _, m := range crashCall.FindAllStringSubmatch(string(src), -1) {
				placed = append(placed, m[1])
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range known {
		known[i], _, _ = strings.Cut(known[i], ":")
	}
	slices.Sort(known)
	slices.Sort(placed)
	known = slices.Compact(known)
	if placed = slices.Compact(placed); !slices.Equal(known, placed) {
		t.Errorf("the product has the labels\n%v\nand the table\n%v", placed, known)
	}
}
