package runner_test

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp"
	"holdfast/store"
	"holdfast/store/storetest"
)

// Ways in which what an agent has started goes on without its shim: its shell alone is
// killed with that.
var outliving = map[string]string{
	"a child that bears all but KILL": `sh -c 'trap "" TERM HUP INT; echo $$ > self; echo up > up; while :; do sleep 0.1; done' & `,
	"a session of its own":            `setsid sh -c 'echo $$ > self; echo up > up; exec sleep 1000' & `,
}

// killShim kills the shim whose pid the agent has left in the file shim.
func (b *bench) killShim() {
	b.t.Helper()
	shim, err := strconv.Atoi(strings.TrimSpace(b.file("shim")))
	must(b.t, err)
	must(b.t, syscall.Kill(shim, syscall.SIGKILL))
	b.untilShimsEnd()
}

// outlives makes the worker's agent one that goes on in a child when its shim is killed.
// It is to be waited for at the pipe up.
func outlives(t *testing.T, s *store.Store, script string, with ...func(*runner.Options)) (b *bench, up string) {
	t.Helper()
	_, agent := scripted(t, tells+`echo $PPID > shim; `+script, func(o *acp.Options) { o.Announces, o.ExitWithin = time.Millisecond, time.Millisecond })
	b = setup(t, s, append(with, agent, brief, func(o *runner.Options) { o.RecoverGrace = 10 * time.Millisecond })...)
	t.Cleanup(func() { // also of a test that fails
		pid, err := os.ReadFile(b.dir + "/self")
		if n, aerr := strconv.Atoi(strings.TrimSpace(string(pid))); err == nil && aerr == nil {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	})
	return b, b.fifo("up")
}

// What an agent's killed shim has left is ended before it is said that the agent has ended,
// and that what it was at is unknown; so it is if the server is started anew before it sees
// that.
//
// proves LEA-12 COO-7 CAL-5 ATT-3
func TestACP_AKilledShimLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	for name, script := range outliving {
		for when, restarts := range map[string]bool{"while the server is there": false, "while it isn't": true} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				storetest.Each(t, func(t *testing.T, s *store.Store) {
					b, up := outlives(t, s, `hear; call t1 'rm a' in_progress; `+script+`while :; do sleep 0.1; done`)
					r := b.start()
					id := b.session("Do it", byFake)
					awaitLine(t, up)
					b.untilKind(id, journal.KindCallDispatched, 1)
					if restarts {
						r.Stop()
					}
					b.killShim()
					if restarts {
						b.next()
					}
					b.untilKind(id, journal.KindCallUnknown, 1)
					if b.runs("self") {
						t.Error("it was said to be ended, and runs on")
					}
					v := b.untilState(id, journal.StateUncertain)
					if len(v.State.UnknownCalls) != 1 || len(v.State.UnknownAttempts) != 1 || storetest.CountKind(storetest.Events(t, s, id), journal.KindAgentEnded) != 1 {
						t.Errorf("%+v\n%s", v.State, b.dump(id))
					}
				})
			})
		}
	}
}

// What an agent that rests has left when its shim was killed is ended before the next
// process takes up its conversation, and by a sweep if none does.
//
// proves LEA-12 COO-7 ATT-3
func TestACP_AShimThatIsKilledAtRestLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	for name, script := range outliving {
		for how, swept := range map[string]bool{"another goes on": false, "nobody needs it": true} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				storetest.Each(t, func(t *testing.T, s *store.Store) {
					b, up := outlives(t, s, `hear; `+script+`text hi; stop 3; while :; do sleep 0.1; done`)
					r := b.start()
					id := b.session("One", byFake)
					awaitLine(t, up)
					b.until(id, "it has answered", func(v store.Session) bool { return v.State.Base == journal.StateReady && v.Claim == nil })
					first := b.file("self")
					b.killShim()
					if swept {
						r.Stop()
						b.opts.AgentIdle = time.Nanosecond
						r = b.next()
						r.Sweep(t.Context())
						if ids, err := b.opts.Shims.List(); err != nil || len(ids) != 0 {
							t.Fatalf("%v, %v: it is not cleared away", ids, err)
						}
					} else {
						b.submit(id, "Again", journal.Queue)
						b.untilKind(id, journal.KindAgentEnded, 1)
					}
					must(t, os.WriteFile(b.dir+"/first", []byte(first), 0o600))
					if b.runs("first") {
						t.Error("it was said to be ended, and runs on")
					}
				})
			})
		}
	}
}

// What has cleared its environment and left its session is found below a shim that is
// frozen, and ended with the agent.
//
// proves LEA-12 COO-4 COO-7
func TestACP_WhatHidesBelowAFrozenShimIsEnded(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b, up := outlives(t, s, `hear; text hi; (env -i setsid sh -c 'echo $$ > self; echo up > up; exec sleep 1000' &); while :; do sleep 0.1; done`,
			func(o *runner.Options) { o.AnswerWithin = time.Second })
		r := b.start()
		id := b.session("Do it", byFake)
		awaitLine(t, up)
		r.Stop()
		shim, err := strconv.Atoi(strings.TrimSpace(b.file("shim")))
		must(t, err)
		must(t, syscall.Kill(shim, syscall.SIGSTOP))
		t.Cleanup(func() { _ = syscall.Kill(shim, syscall.SIGCONT) })
		must(t, s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow))
		b.next()
		b.untilKind(id, journal.KindAgentEnded, 1)
		if b.runs("self") {
			t.Error("it was said to be ended, and runs on")
		}
		b.untilState(id, journal.StateUncertain)
		must(t, syscall.Kill(shim, syscall.SIGCONT)) // the end of the test waits for it
	})
}

// Of what a killed shim has left and what can't be ended nothing is said to have ended, also
// after a restart, until that is certain.
//
// proves LEA-12 CAL-5 ATT-3
func TestACP_AKilledShimOfWhichSomethingStays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b, up := outlives(t, s, `hear; call t1 'rm a' in_progress; `+outliving["a session of its own"]+`while :; do sleep 0.1; done`)
		var tries, stays atomic.Int64
		stays.Store(1)
		tried := make(chan struct{}, 100)
		unkillable := func(r *runner.Runner) {
			r.Unkillable(func() bool { tries.Add(1); tried <- struct{}{}; return stays.Load() == 1 })
		}
		r := b.start(unkillable)
		id := b.session("Do it", byFake)
		awaitLine(t, up)
		b.untilKind(id, journal.KindCallDispatched, 1)
		b.killShim()
		twice := func() {
			for range 2 {
				select {
				case <-tried:
				case <-time.After(patience):
					t.Fatal("nobody tries to end it")
				}
			}
		}
		twice()
		nothing := func() {
			t.Helper()
			evs := storetest.Events(t, s, id)
			if n := storetest.CountKind(evs, journal.KindAgentEnded) + storetest.CountKind(evs, journal.KindCallUnknown) + storetest.CountKind(evs, journal.KindAttemptUnknown); n != 0 || !b.runs("self") {
				t.Errorf("it was said to be ended %d times while it may run\n%s", n, b.dump(id))
			}
		}
		nothing()
		r.Stop()
		nothing()
		r = b.next(unkillable)
		twice()
		nothing()
		r.Stop()
		stays.Store(0)
		b.next(unkillable)
		b.untilState(id, journal.StateUncertain)
		if b.runs("self") || storetest.CountKind(storetest.Events(t, s, id), journal.KindAgentEnded) != 1 {
			t.Errorf("it runs on, or isn't said to have ended\n%s", b.dump(id))
		}
	})
}

// What a recovery says of an agent is so: that it went on, or that its process is gone and
// left something to be read.
//
// proves REC-4 REC-10
func TestACP_ARecoverySaysWhetherTheAgentGoesOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		does string
		gone bool
	}{"it goes on": {`read -r x < more; stop 3`, false}, "it has ended": {`exit 1`, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, `hear; text one; read -r x < gate; text two; `+c.does)
				b := setup(t, s, with, brief)
				gate, more := b.fifo("gate"), b.fifo("more")
				r := b.start()
				id := b.session("Do it", byFake)
				b.untilKind(id, journal.KindMessageDelta, 1)
				r.Stop()
				open(t, gate)
				if c.gone {
					b.untilShimsEnd()
				}
				b.next()
				for _, e := range b.untilKind(id, journal.KindStepRecovered, 1) {
					found := string(e.Data)
					if e.Kind == journal.KindStepRecovered && (!strings.Contains(found, `"became":"adopted"`) || strings.Contains(found, `"ended":true`) != c.gone) {
						t.Errorf("it says %s", found)
					}
				}
				if !c.gone {
					open(t, more)
				}
				b.until(id, "it is over", func(v store.Session) bool {
					return v.Claim == nil && (v.State.Unknowns() > 0 || v.State.Base == journal.StateReady)
				})
				if got := b.dump(id); !strings.Contains(got, `"one`) || !strings.Contains(got, `two"`) {
					t.Errorf("something is missing: %s", got)
				}
			})
		})
	}
}
