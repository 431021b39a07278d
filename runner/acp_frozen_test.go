package runner_test

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp"
	"holdfast/store"
	"holdfast/store/storetest"
)

// runs reports whether the process whose id a file of the workspace holds is there, and no
// zombie.
func (b *bench) runs(file string) bool {
	b.t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", strings.TrimSpace(b.file(file))))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// That an agent's process was ended is said when it runs no more, also if the shim that was
// to end it is frozen: the server ends it itself.
//
// proves LEA-12 COO-4 COO-7 ATT-3
func TestACP_AFrozenShimIsDoneWithout(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, `echo $$ > self; echo $PPID > shim; hear; text hi; echo up > up; while :; do sleep 0.1; done`,
			func(o *acp.Options) { o.CancelWithin, o.ExitWithin = time.Second, time.Second })
		b := setup(t, s, with)
		up := b.fifo("up")
		b.start()
		id := b.session("Do it", byFake)
		awaitLine(t, up)
		shim, err := strconv.Atoi(strings.TrimSpace(b.file("shim")))
		if err == nil {
			err = syscall.Kill(shim, syscall.SIGSTOP)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(shim, syscall.SIGCONT) })
		if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow); err != nil {
			t.Fatal(err)
		}
		b.untilKind(id, journal.KindAgentEnded, 1)
		if b.runs("self") {
			t.Error("it was said to be ended, and runs on")
		}
		if err := syscall.Kill(shim, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		b.untilState(id, journal.StateUncertain)
	})
}

// An agent that isn't offered any more is ended before that is said of it, and what it has
// written since stands in the journal.
//
// proves LEA-12 ATT-3 CAL-1
func TestACP_IsEndedBeforeThatIsSaid(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, tells+`echo $$ > self; hear; text hi; echo up > up; read -r x < gate; call t1 'rm a' in_progress; echo up > up; while :; do sleep 0.1; done`)
		b := setup(t, s, with, brief)
		gate, up := b.fifo("gate"), b.fifo("up")
		r := b.start()
		id := b.session("Do it", byFake)
		awaitLine(t, up)
		r.Stop()
		open(t, gate)
		awaitLine(t, up)
		b.opts.Agents = b.opts.Agents[:1]
		b.next()
		b.untilKind(id, journal.KindAgentEnded, 1)
		if b.runs("self") {
			t.Error("it was said to be ended, and runs on")
		}
		if said := b.dump(id); strings.Count(said, "rm a") == 0 {
			t.Errorf("what it said last isn't in the journal:\n%s", said)
		}
		b.untilState(id, journal.StateUncertain)
	})
}

// firstLine takes what is logged, and tells of the first line that has some words.
type firstLine struct {
	words string
	once  sync.Once
	said  chan struct{}
}

func (f *firstLine) Write(b []byte) (int, error) {
	if strings.Contains(string(b), f.words) {
		f.once.Do(func() { close(f.said) })
	}
	return len(b), nil
}

// A server that comes anew to an agent whose shim is frozen says so, and ends the process
// itself if the turn is to be stopped, or the agent isn't offered any more.
//
// proves LEA-12 COO-4 ATT-3
func TestACP_AFrozenShimIsDoneWithoutAfterARestart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, gone bool }{
		"stopped before": {before: true}, "stopped while it waits": {}, "not offered any more": {gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				logged := &firstLine{words: "doesn't answer", said: make(chan struct{})}
				_, with := scripted(t, `echo $$ > self; echo $PPID > shim; hear; text hi; echo up > up; while :; do sleep 0.1; done`)
				b := setup(t, s, with, brief, func(o *runner.Options) {
					o.AnswerWithin, o.Logger = time.Second, slog.New(slog.NewTextHandler(logged, nil))
				})
				up := b.fifo("up")
				r := b.start()
				id := b.session("Do it", byFake)
				awaitLine(t, up)
				r.Stop()
				shim, err := strconv.Atoi(strings.TrimSpace(b.file("shim")))
				must(t, err)
				must(t, syscall.Kill(shim, syscall.SIGSTOP))
				t.Cleanup(func() { _ = syscall.Kill(shim, syscall.SIGCONT) })
				stop := func() { must(t, s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow)) }
				if c.before {
					stop()
				}
				if c.gone {
					b.opts.Agents = b.opts.Agents[:1]
				}
				b.next()
				select {
				case <-logged.said:
				case <-time.After(patience):
					t.Fatal("nothing was logged while it waits")
				}
				if !c.before && !c.gone {
					stop()
				}
				b.untilKind(id, journal.KindAgentEnded, 1)
				if b.runs("self") {
					t.Error("it was said to be ended, and runs on")
				}
				b.untilState(id, journal.StateUncertain)
				must(t, syscall.Kill(shim, syscall.SIGCONT)) // the end of the test waits for it
			})
		})
	}
}

// Of an agent that was to be ended, and of which nobody can tell that it was, the session
// says so, once, for as long as that is so: where it may still run, what still holds, and
// what a person can do. Nothing is concluded before its end is certain.
//
// proves LEA-12 COO-4 ATT-3
func TestACP_AStopThatCantBeConfirmed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, `echo $$ > self; echo $PPID > shim; hear; text hi; echo up > up; while :; do sleep 0.1; done`,
			func(o *acp.Options) { o.CancelWithin, o.ExitWithin = time.Millisecond, time.Millisecond })
		b := setup(t, s, with, brief, func(o *runner.Options) { o.AnswerWithin = time.Second })
		up := b.fifo("up")
		unkillable := func(r *runner.Runner) { r.Unkillable(func() bool { return true }) }
		r := b.start(unkillable)
		id := b.session("Do it", byFake)
		awaitLine(t, up)
		shim, err := strconv.Atoi(strings.TrimSpace(b.file("shim")))
		must(t, err)
		must(t, syscall.Kill(shim, syscall.SIGSTOP))
		t.Cleanup(func() { _ = syscall.Kill(shim, syscall.SIGCONT) })
		must(t, s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow))
		b.untilKind(id, journal.KindSessionBlocked, 1)
		r.Stop()
		r = b.next(unkillable) // it tries again, and says it no second time
		b.until(id, "it was tried again", func(v store.Session) bool { return v.State.Adopts() && v.Claim != nil })
		b.until(id, "it was tried again in vain", func(store.Session) bool { return r.Rests() })
		v, err := s.Session(t.Context(), b.owner, id)
		must(t, err)
		host, err := os.Hostname()
		must(t, err)
		says := storetest.Body[*journal.SessionBlocked](t, storetest.Events(t, s, id)).Detail
		for _, part := range []string{"could not be confirmed", "may still be running on " + host + " as pid " + strings.TrimSpace(b.file("self")), "nothing is sent again", "You can end it on that host"} {
			if !strings.Contains(says, part) {
				t.Errorf("it says %q, and not %q", says, part)
			}
		}
		if n := strings.Count(b.dump(id), string(journal.KindSessionBlocked)); n != 1 || v.State.Base != journal.StateStopping || v.State.Needs() != journal.NeedsBlocked || v.State.Unknowns() != 0 || !b.runs("self") {
			t.Errorf("said %d times, %+v\n%s", n, v.State, b.dump(id))
		}
		r.Stop()
		b.next() // and now it can be killed
		v = b.untilState(id, journal.StateUncertain)
		if v.State.Blocked != nil || b.runs("self") || storetest.CountKind(storetest.Events(t, s, id), journal.KindAgentEnded) != 1 {
			t.Errorf("%+v\n%s", v.State, b.dump(id))
		}
		must(t, syscall.Kill(shim, syscall.SIGCONT)) // the end of the test waits for it
	})
}

// A server that stops while it waits for the shim of an agent, which is frozen, leaves the
// agent as it is, as one that is killed does: it may be at work, and the next server follows
// it. Of one that rests nothing is in the air, and its turn waits for the next server.
//
// proves COO-6 REC-10 ATT-3
func TestACP_AStopWhileItWaitsForAFrozenShim(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ rests, ends bool }{"at work": {}, "at work, and commands end": {ends: true}, "at rest": {rests: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				logged := &firstLine{words: "doesn't answer", said: make(chan struct{})}
				heard, with := scripted(t, `echo $PPID > shim; hear; text hi; echo up > up; read -r x < gate; stop 3; hear; stop 4; read -r l`)
				b := setup(t, s, with, brief, func(o *runner.Options) {
					o.AnswerWithin, o.Logger = 100*time.Millisecond, slog.New(slog.NewTextHandler(logged, nil))
				})
				gate, up := b.fifo("gate"), b.fifo("up")
				r := b.start()
				id := b.session("One", byFake)
				awaitLine(t, up)
				if c.rests {
					open(t, gate)
					b.untilState(id, journal.StateReady)
				} else {
					r.Stop()
				}
				shim, err := strconv.Atoi(strings.TrimSpace(b.file("shim")))
				must(t, err)
				must(t, syscall.Kill(shim, syscall.SIGSTOP))
				t.Cleanup(func() { _ = syscall.Kill(shim, syscall.SIGCONT) })
				if c.rests {
					b.submit(id, "Two", journal.Queue)
				} else {
					b.opts.StopCommands = c.ends
					r = b.next()
				}
				select {
				case <-logged.said:
				case <-time.After(patience):
					t.Fatal("nothing was logged while it waits")
				}
				r.Stop()
				v, err := s.Session(t.Context(), b.owner, id)
				must(t, err)
				if !v.State.TurnOpen() || v.State.Unknowns() != 0 || v.State.Process == nil || (len(v.State.Attempts) == 0) != c.rests || (v.Claim == nil) != c.rests {
					t.Fatalf("after the stop it is %+v under %+v\n%s", v.State, v.Claim, b.dump(id))
				}
				must(t, syscall.Kill(shim, syscall.SIGCONT))
				b.next()
				turns := 2
				if !c.rests {
					turns = 1
					open(t, gate)
				}
				v = b.untilState(id, journal.StateReady)
				got, err := os.ReadFile(heard)
				must(t, err)
				if n := strings.Count(string(got), "session/prompt"); n != turns || v.State.Turn.Number != turns {
					t.Errorf("it was prompted %d times in %d turns\n%s", n, v.State.Turn.Number, b.dump(id))
				}
			})
		})
	}
}
