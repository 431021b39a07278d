package runner_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/tool"
	"holdfast/store"
	"holdfast/store/storetest"
)

// lost makes a session whose execution is dead: it had dispatched a command,
// which runs on until stop is called, or somebody ends it. Its lease has ended,
// or ends in an hour.
func (b *bench) lost(script string, lease time.Duration) (session string, c *journal.Claim, ended <-chan struct{}) {
	b.t.Helper()
	session = b.session(steps("echo done >> log"))
	c, err := b.s.Claim(b.t.Context(), store.ClaimRequest{SessionID: session, WorkerID: "wrk_dead", StateFolderID: "fld_elsewhere", Lease: lease})
	if err != nil || c == nil {
		b.t.Fatalf("claim: %v %v", c, err)
	}
	turn := storetest.MustPromote(b.t, b.s, c)
	call := store.NewID("call")
	left, err := tool.Prepare(tool.Spec{
		CallID: call, Interp: []string{"sh"}, Script: script, Dir: b.dir, Env: b.opts.Env,
		Timeout: time.Hour, MaxOutput: 1 << 10, Output: func([]tool.Piece) error { return nil },
	})
	if err != nil {
		b.t.Fatal(err)
	}
	p := journal.Process(left.Process())
	storetest.MustAppend(b.t, b.s, c, journal.PhaseUncertain,
		&journal.CallProposed{CallID: call, TurnID: turn, Key: "k", Tool: "shell", Input: []byte(`{}`), InputSHA256: journal.Hash("{}"), Effect: journal.EffectEffect},
		&journal.CallDispatched{CallID: call, N: 1, AllowedBy: journal.AllowedBy{Type: journal.AllowedByRule}, Process: &p})
	ctx, stop := context.WithCancel(context.WithoutCancel(b.t.Context()))
	over := make(chan struct{})
	go func() { defer close(over); left.Run(ctx) }()
	b.t.Cleanup(func() { stop(); <-over })
	return session, c, over
}

// awaitLine waits until a command writes to a pipe.
func awaitLine(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err == nil {
		err = f.SetReadDeadline(time.Now().Add(patience))
	}
	if err == nil {
		_, err = f.Read(make([]byte, 64))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatalf("waited in vain at %s: %v", path, err)
	}
}

// A wake that comes before the sweep, such as a retried prompt's, concludes
// nothing about a lost execution while what it left still runs.
//
// proves COO-7 LEA-1 ADM-5
func TestRunner_EndsLeftoversAlsoWhenWoken(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		id, claim, ended := b.lost("exec sleep 1000", time.Hour)
		r := b.start() // its first sweep finds a live lease of another folder
		if err := s.ExpireClaim(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		r.Wake(id)
		b.untilState(id, journal.StateUncertain)
		evidence := storetest.Body[*journal.CallUnknown](t, storetest.Events(t, s, id)).Evidence
		if len(evidence) == 0 || !strings.Contains(evidence[len(evidence)-1].Text, "ended") {
			t.Errorf("it was concluded with the evidence %+v, want that its process was ended", evidence)
		}
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("what the lost execution left still runs")
		}
	})
}

// stubborn makes lost sessions, each of whose commands, told to end, says so at
// the pipe told<i> and goes on until the pipe gate<i> lets it end.
func (b *bench) stubborn(n int) (sessions []string) {
	b.t.Helper()
	for i := range n {
		up := b.fifo(fmt.Sprintf("up%d", i))
		b.fifo(fmt.Sprintf("told%d", i))
		b.fifo(fmt.Sprintf("gate%d", i))
		script := strings.ReplaceAll("trap 'echo told > toldN; read x < gateN; exit' TERM; echo up > upN; while :; do sleep 1000 & wait; done", "N", strconv.Itoa(i))
		id, _, _ := b.lost(script, time.Millisecond)
		sessions = append(sessions, id)
		awaitLine(b.t, up) // its trap is set
	}
	return sessions
}

func (b *bench) path(format string, i int) string {
	return filepath.Join(b.dir, fmt.Sprintf(format, i))
}

// A sweep that is slow with some sessions doesn't end what another one has begun
// since it looked: a wake had recovered that one meanwhile.
//
// proves REC-1 REC-5 COO-7
func TestRunner_SlowSweepEndsNothingNew(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s, func(o *runner.Options) { o.RecoverGrace = 2 * patience })
		slow := b.stubborn(runner.AtOnce) // they take all of a sweep's time
		begun, gate := b.fifo("begun"), b.fifo("gate")
		woken := b.session(steps("echo begun > begun; read x < gate; echo done >> log"))
		if c, err := s.Claim(t.Context(), store.ClaimRequest{SessionID: woken, WorkerID: "wrk_dead", StateFolderID: "fld_elsewhere", Lease: time.Millisecond}); err != nil || c == nil {
			t.Fatalf("claim: %v %v", c, err)
		}
		forgotten := b.session(steps("true")) // its wake is lost: the end of a sweep finds it
		r := b.start()
		for i := range slow {
			awaitLine(t, b.path("told%d", i))
		}
		r.Wake(woken)
		awaitLine(t, begun)
		for i, id := range slow {
			open(t, b.path("gate%d", i))
			b.untilState(id, journal.StateUncertain)
		}
		b.untilState(forgotten, journal.StateReady)
		open(t, gate)
		b.untilState(woken, journal.StateReady)
	})
}

// One lost session whose command is slow to end doesn't keep the others waiting.
//
// proves REC-8 COO-7
func TestRunner_SlowRecoveryDelaysNoOther(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s, func(o *runner.Options) { o.RecoverGrace = 2 * patience })
		ids := b.stubborn(3)
		b.start()
		for i := range ids { // all are told to end before any has
			awaitLine(t, b.path("told%d", i))
		}
		for i, id := range ids {
			open(t, b.path("gate%d", i))
			b.untilState(id, journal.StateUncertain)
		}
	})
}

// Of a command of another boot it is certain that it runs no more if the lost
// worker's state folder is ours: another host may have the same name.
//
// proves COO-7 LEA-11 CAL-7
func TestRunner_SaysOfAnotherBootWhatItKnows(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		want := map[string]string{}
		for name, tt := range map[string]struct{ host, folder, want string }{
			"this folder":         {host, b.opts.StateFolderID, "runs no more"},
			"another of our name": {host, "fld_elsewhere", "may still be running there"},
			"another name":        {"elsewhere", b.opts.StateFolderID, "may still be running there"},
		} {
			id := b.session(steps("true"))
			c, err := s.Claim(t.Context(), store.ClaimRequest{SessionID: id, WorkerID: "wrk_dead", StateFolderID: tt.folder, Lease: time.Hour})
			if err != nil || c == nil {
				t.Fatalf("%s: claim: %v %v", name, c, err)
			}
			turn, call := storetest.MustPromote(t, s, c), store.NewID("call")
			storetest.MustAppend(t, s, c, journal.PhaseUncertain,
				&journal.CallProposed{CallID: call, TurnID: turn, Key: "k", Tool: "shell", Input: []byte(`{}`), InputSHA256: journal.Hash(name), Effect: journal.EffectEffect},
				&journal.CallDispatched{CallID: call, N: 1, AllowedBy: journal.AllowedBy{Type: journal.AllowedByRule}, Process: &journal.Process{Host: tt.host, BootID: "another", PID: 7, PGID: 7, StartedTicks: 1}})
			if err := s.ExpireClaim(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			want[id] = tt.want
		}
		b.start()
		for id, want := range want {
			b.untilState(id, journal.StateUncertain)
			evidence := storetest.Body[*journal.CallUnknown](t, storetest.Events(t, s, id)).Evidence
			if len(evidence) == 0 || !strings.Contains(evidence[len(evidence)-1].Text, want) {
				t.Errorf("the evidence is %+v, want that it %s", evidence, want)
			}
		}
	})
}

// A server that stops while it waits for the end of what a lost execution left
// concludes nothing about it.
//
// proves COO-7 COO-6
func TestRunner_StopConcludesNoRecovery(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		var logged lines
		b := setup(t, s, func(o *runner.Options) {
			o.RecoverGrace, o.Logger = 2*patience, slog.New(slog.NewTextHandler(&logged, nil))
		})
		id := b.stubborn(1)[0]
		r := b.start()
		awaitLine(t, b.path("told%d", 0))
		r.Stop()
		if v, err := s.Session(t.Context(), b.owner, id); err != nil || v.Claim == nil || v.State.Unknowns() != 0 {
			t.Errorf("after the stop: claim %v, %d unknown, %v; want the claim as it was", v.Claim, v.State.Unknowns(), err)
		}
		if n := logged.count("level=ERROR") + logged.count("level=WARN"); n != 0 {
			t.Errorf("a stop is logged as a fault:\n%s", logged.buf.String())
		}
	})
}

// A host whose name holds a secret is masked in the journal, and still known by it.
//
// proves COO-7 OWN-3
func TestRunner_EndsWhatWasLeftOnAHostNamedLikeASecret(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	must(t, err)
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t, func(o *store.Options) { o.Secrets = []string{host} })
		b := setup(t, s, func(o *runner.Options) { o.Secrets = []string{host} })
		id, c, over := b.lost("exec sleep 1000", time.Hour)
		calls, err := s.Calls(t.Context(), b.owner, id, 0)
		must(t, err)
		if calls[0].Process.Host != journal.Hidden {
			t.Fatalf("the journal says host %q", calls[0].Process.Host)
		}
		must(t, s.ExpireClaim(t.Context(), c))
		b.start()
		b.untilState(id, journal.StateUncertain)
		unknown := storetest.Body[*journal.CallUnknown](t, storetest.Events(t, s, id))
		if text := unknown.Evidence[len(unknown.Evidence)-1].Text; !strings.Contains(text, "was ended") {
			t.Fatalf("the evidence says %q", text)
		}
		<-over
	})
}
