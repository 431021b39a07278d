package store_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// mutantEnv names a mutant under which TestStateMachine runs, and must fail.
const mutantEnv = "HOLDFAST_TEST_MUTANT"

// The mutants that the state machine must find.
const (
	noFence        = "no fence"
	checkThenWrite = "check, then write"
	replayCalls    = "replay of a dispatched call"
	openFence      = "recovery that leaves the fence open"
)

// machineLease is long beside what a run of the machine takes, so that only its own clock ends one.
const machineLease = 10 * time.Minute

// Random histories of admission, promotion, claims, renewals, appends, expiry,
// recovery, adoption, resolution, restarts and clocks that jump, held against a small model.
// proves COO-4 LEA-1 LEA-2 LEA-3 LEA-4 LEA-10 REC-2 REC-3 REC-4 REC-5 REC-6 REC-10 REC-11 PRO-1 PRO-2 PRO-5 PRO-6 ADM-3 ADM-4 CAL-4 CAL-5 CAL-6 COO-2 COO-8
func TestStateMachine(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		runs, steps := int64(16), 120
		wanted := []string{"admitted", "replayed", "clash", "claimed", "taken over", "no claim", "promoted", "unknown", "recovered", "fenced", "resolved", "ended", "restarted", "adopted", "exit record", "sent with a stop"}
		if db.Name == "postgres" { // each of its commits costs more
			runs, wanted = 4, []string{"admitted", "claimed", "promoted", "recovered", "fenced"}
		}
		runs = max(1, runs*checks(t)/defaultChecks) // -rapid.checks=6000 makes it a hundred times as long
		var done atomic.Int64
		var failed atomic.Bool
		h := &harness{t: t, db: db, mutant: os.Getenv(mutantEnv), store: db.OpenUnchecked(t), seen: map[string]int{}}
		h.owner = storetest.MustUser(t, h.store).ID
		rapid.Check(t, func(rt *rapid.T) {
			// How often rapid runs this is a flag for the whole binary; a failure is repeated as often as it likes.
			if done.Add(1) > runs && !failed.Load() && h.mutant == "" {
				return
			}
			defer func() {
				if rt.Failed() {
					failed.Store(true)
				}
			}()
			h.run(rt, rapid.IntRange(steps/2, steps).Draw(rt, "steps"))
		})
		if h.mutant != "" {
			return
		}
		storetest.CheckInvariants(t, h.store)
		t.Logf("seen: %v", h.seen)
		for _, what := range wanted {
			if h.seen[what] == 0 {
				t.Errorf("no history had: %s", what)
			}
		}
	})
}

func checks(t *testing.T) int64 {
	t.Helper()
	n, err := strconv.ParseInt(flag.Lookup("rapid.checks").Value.String(), 10, 64)
	must(t, err)
	return n
}

func TestStateMachine_FindsEachMutant(t *testing.T) {
	t.Parallel()
	for _, db := range storetest.Databases() {
		t.Run(db, func(t *testing.T) {
			t.Parallel()
			for mutant, says := range map[string]string{
				noFence:        "a fenced execution wrote",
				checkThenWrite: "a fenced execution wrote",
				replayCalls:    "",
				openFence:      "",
			} {
				t.Run(mutant, func(t *testing.T) {
					t.Parallel()
					cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStateMachine$/^"+db+"$", "-rapid.shrinktime=0s", "-rapid.nofailfile", "-rapid.checks=400")
					cmd.Env = append(os.Environ(), mutantEnv+"="+mutant)
					out, err := cmd.CombinedOutput()
					var exit *exec.ExitError
					if !errors.As(err, &exit) || !strings.Contains(string(out), "[rapid] failed") || !strings.Contains(string(out), says) {
						t.Errorf("the mutant was not found: %v\n%.2000s", err, out)
					}
				})
			}
		})
	}
}

// harness is a database and the store that is open on it.
type harness struct {
	t      *testing.T
	db     *storetest.DB
	store  *store.Store
	owner  string
	mutant string
	seen   map[string]int // what happened in all histories, by name
}

// machine is one history.
type machine struct {
	*harness
	rt      *rapid.T
	ctx     context.Context
	skew    time.Duration
	folder  string
	workers []string
	// The worker of another host, and its folder.
	elsewhere, otherFolder string
	sessions               []*model
	keys                   map[string]usedKey
	paused                 *pausedAppend
	picks                  int
}

type usedKey struct {
	session string
	p       store.PromptInput
	receipt journal.Receipt
}

// pausedAppend is a worker that stopped just before it wrote.
type pausedAppend struct {
	m       *model
	claim   *journal.Claim
	checked bool // what a check before the write had said
}

func (h *harness) run(rt *rapid.T, steps int) {
	m := &machine{harness: h, rt: rt, ctx: h.t.Context(), folder: store.NewID("fld"), elsewhere: store.NewID("wrk"), otherFolder: store.NewID("fld"), keys: map[string]usedKey{}}
	m.setSkew(0)
	m.newWorkers()
	for range 2 {
		m.sessions = append(m.sessions, newModel(storetest.MustSession(h.t, h.store, h.owner).ID))
	}
	for range steps {
		s := m.sessions[m.pick("session", len(m.sessions))]
		m.next(s).do(s)
		m.check()
	}
	m.leave()
}

func (m *machine) check() {
	m.rt.Helper()
	for _, s := range m.sessions {
		view, err := m.store.Session(m.ctx, m.owner, s.id)
		m.ok(err)
		if d := s.differs(&view.State, view.Claim); d != "" {
			m.rt.Fatalf("%s: %s", s.id, d)
		}
		for id, c := range s.calls {
			if c.effect == journal.EffectEffect && c.happened > 1 {
				m.rt.Fatalf("the effect of %s happened %d times", id, c.happened)
			}
		}
	}
}

// leave verifies the history and takes its sessions out of the way of the next one.
func (m *machine) leave() {
	for _, s := range m.sessions {
		r, err := m.store.Verify(m.ctx, store.VerifyOptions{Session: s.id})
		m.ok(err)
		if !r.OK() && m.mutant == "" {
			m.rt.Fatalf("verify: %+v", r)
		}
	}
}

func (m *machine) ok(err error) {
	m.rt.Helper()
	if err != nil {
		m.rt.Fatalf("%v", err)
	}
}

func (m *machine) code(err error, want journal.Code) {
	m.rt.Helper()
	if got := journal.CodeOf(err); got != want {
		m.rt.Fatalf("got %q (%v), want %q", got, err, want)
	}
}

func (m *machine) now() int64 {
	m.rt.Helper()
	now, err := m.store.Now(m.ctx)
	m.ok(err)
	return now
}

func (m *machine) setSkew(d time.Duration) {
	m.skew = d
	m.store.Skew(d)
}

func (m *machine) newWorkers() {
	m.workers = []string{store.NewID("wrk"), store.NewID("wrk")}
}

// fenced fails unless err says that the execution is over.
func (m *machine) fenced(err error) {
	m.rt.Helper()
	if err == nil {
		m.rt.Fatalf("a fenced execution wrote")
	}
	m.seen["fenced"]++
	m.code(err, journal.StaleClaim)
}

// append writes as a run does, or as the mutant does; checked is what a check before had said.
func (m *machine) append(c *journal.Claim, checked bool, a store.Append) error {
	switch m.mutant {
	case noFence:
		return m.store.AppendUnfenced(m.ctx, c, a)
	case checkThenWrite:
		if !checked {
			return journal.Errorf(journal.StaleClaim, "the check says so")
		}
		return m.store.AppendUnfenced(m.ctx, c, a)
	}
	_, err := m.store.Append(m.ctx, c, a)
	return err
}

func (m *machine) holds(c *journal.Claim) bool {
	m.rt.Helper()
	if m.mutant != checkThenWrite {
		return true // nobody asks: the fence is in the statement
	}
	ok, err := m.store.HoldsNow(m.ctx, c)
	m.ok(err)
	return ok
}

func (m *machine) recover(c journal.Claim, found map[string]store.Found) error {
	if m.mutant == replayCalls {
		return m.store.RecoverForReplay(m.ctx, c)
	}
	_, err := m.store.Recover(m.ctx, store.Recovery{Claim: c, Found: found})
	if err == nil && m.mutant == openFence {
		err = m.store.LeaveFenceOpen(m.ctx, c)
	}
	return err
}

// pick draws an index. Rapid prefers small ones, which would let the first few
// actions happen over and over; which are first therefore changes with each pick.
func (m *machine) pick(label string, n int) int {
	m.picks++
	return (rapid.IntRange(0, n-1).Draw(m.rt, label) + m.picks*31) % n
}

func (m *machine) draw(label string, from ...string) string {
	return from[m.pick(label, len(from))]
}

func (m *machine) flip(label string) bool { return m.pick(label, 2) == 1 }

func callID() string { return store.NewID("call") }

func prompt(text string, d journal.Delivery) store.PromptInput {
	return store.PromptInput{Text: text, Delivery: d}
}
