package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/runner/acp"
	"holdfast/store"
	"holdfast/store/storetest"
)

// firstTime is how an agent begins that makes what its processes share when it is
// started for the first time, and fails if another one makes it just then.
const firstTime = `if ! [ -e "$HOME/made" ]; then
  if ! mkdir "$HOME/making"; then echo 'database is locked' >&2; exit 1; fi
  echo making > "$HOME/up"; read -r x < "$HOME/gate"; rmdir "$HOME/making"; : > "$HOME/made"
fi
`

// The first process of an agent is alone until it has begun. The others wait for it, can
// be stopped meanwhile, and then all begin.
//
// proves COO-3 COO-4
func TestACP_TheFirstStartIsAlone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		home := t.TempDir()
		_, with := scriptedWhole(t, firstTime+hello+`hear; stop 3; read -r l`, func(o *acp.Options) { o.Env = append(o.Env, "HOME="+home) })
		b := setup(t, s, with, brief)
		gate, up := filepath.Join(home, "gate"), filepath.Join(home, "up")
		mustMkfifo(t, gate)
		mustMkfifo(t, up)
		r := b.start()
		first := b.session("Do it", byFake)
		awaitLine(t, up)
		var others []string
		for range 3 {
			id := b.session("Do it", byFake)
			others = append(others, id)
			r.Wake(id)
			b.until(id, "it waits", func(v store.Session) bool { return v.Claim != nil && v.State.TurnOpen() })
		}
		stopped := others[2]
		if err := s.RequestInterrupt(t.Context(), b.owner, stopped, journal.InterruptNow); err != nil {
			t.Fatal(err)
		}
		b.untilState(stopped, journal.StateStopped)
		if n := storetest.CountKind(storetest.Events(t, s, stopped), journal.KindAgentStarted); n != 0 {
			t.Errorf("%d processes were started of what was stopped", n)
		}
		open(t, gate)
		for _, id := range append(others[:2], first) {
			b.untilState(id, journal.StateReady)
		}
	})
}

// A stop of the server doesn't wait for it either: what waited goes on after the restart.
// A first start that fails has nobody wait for the next.
//
// proves COO-6
func TestACP_WhatWaitsForTheFirstStart(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		home := t.TempDir()
		_, with := scriptedWhole(t, strings.Replace(firstTime, `read -r x < "$HOME/gate"`, `read -r x < "$HOME/gate"; case $x in fail*) exit 1;; esac`, 1)+hello+`hear; stop 3; read -r l`, func(o *acp.Options) { o.Env = append(o.Env, "HOME="+home) })
		b := setup(t, s, with, brief)
		gate, up := filepath.Join(home, "gate"), filepath.Join(home, "up")
		mustMkfifo(t, gate)
		mustMkfifo(t, up)
		r := b.start()
		first := b.session("Do it", byFake)
		awaitLine(t, up)
		second := b.session("Do it", byFake)
		r.Wake(second)
		b.until(second, "it waits", func(v store.Session) bool { return v.Claim != nil && v.State.TurnOpen() })
		r.Stop()
		if v := b.until(second, "it is let go", func(v store.Session) bool { return v.Claim == nil }); !v.State.TurnOpen() {
			t.Errorf("its turn has ended: %s", b.dump(second))
		}
		b.next()
		f, err := os.OpenFile(gate, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("fail\n"); err != nil {
			t.Fatal(err)
		}
		b.untilState(first, journal.StateFailed)
		_ = f.Close()
		b.untilState(second, journal.StateFailed) // its folder is left: it fails by itself
	})
}

// Who starts nothing waits for no start: a process that rests, and is open, is told its
// prompt while the first one that this server starts is on its way.
//
// proves COO-3 PRO-1
func TestACP_WhatRestsWaitsForNoStart(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scriptedWhole(t, `if [ -e rests ]; then echo up > up; read -r x < gate; else : > rests; fi
`+hello+`hear; [ -e adopted ] || { echo up > up; read -r x < gate; : > adopted; }; stop 3; hear; stop 4; read -r l`)
		b := setup(t, s, with, brief)
		gate, up := b.fifo("gate"), b.fifo("up")
		r := b.start()
		rests := b.session("One", byFake)
		awaitLine(t, up)
		r.Stop()
		b.opts.Agents = nil
		with(&b.opts) // as of another server, which has started none
		b.next()
		open(t, gate)
		b.untilState(rests, journal.StateReady)
		starts := b.session("Do it", byFake)
		awaitLine(t, up)
		b.submit(rests, "Two", journal.Queue)
		b.until(rests, "it has answered again", func(v store.Session) bool {
			return v.State.Base == journal.StateReady && v.State.Turn.Number == 2 && v.Claim == nil
		})
		if v := b.until(starts, "it is there", func(store.Session) bool { return true }); !v.State.TurnOpen() {
			t.Errorf("the other has begun: %s", b.dump(starts))
		}
		open(t, gate)
		b.untilState(starts, journal.StateReady)
	})
}
