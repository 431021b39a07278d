package runner_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/tool"
	"holdfast/store"
	"holdfast/store/storetest"
)

// limitFiles bounds how long a file a process may write, as a disk does that is full.
func limitFiles(t *testing.T, pid int, bytes uint64) {
	t.Helper()
	var now unix.Rlimit
	must(t, unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &now))
	now.Cur = min(bytes, now.Max)
	must(t, unix.Prlimit(pid, unix.RLIMIT_FSIZE, &now, nil))
}

// A session whose agent can be told nothing, since the disk is full, is parked, and goes on
// by itself when there is room.
//
// proves COO-10
func TestACP_AFullDiskParksASession(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const opens = `"sessionId":"s1"}}'`
		const offers = `"configOptions":[{"id":"model","name":"Model","type":"select","currentValue":"a","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]}]`
		_, with := scriptedWhole(t, strings.Replace(hello, opens, `"sessionId":"s1",`+offers+`}}'`, 1)+`read -r l; stop 3
next() { read -r l; n=${l##*'"id":'}; n=${n%%[!0-9]*}; }
next; echo '{"jsonrpc":"2.0","id":'$n',"result":{`+strings.Replace(offers, `"currentValue":"a"`, `"currentValue":"b"`, 1)+`}}'
next; stop $n; read -r l`)
		b := setup(t, s, with, func(o *runner.Options) { o.Sweep = 50 * time.Millisecond })
		var room atomic.Bool
		b.start(func(r *runner.Runner) { r.Room(func(int64) bool { return room.Load() }) })
		id := b.session("Do it", byFake)
		b.untilState(id, journal.StateReady)
		agent := storetest.Body[*journal.AgentStarted](t, storetest.Events(t, s, id)).Process
		keeper := tool.Process(*agent).Parent()
		limitFiles(t, keeper, 1)
		_, _, err := s.ChooseSettings(t.Context(), b.owner, id, store.NewID("key"), []journal.Setting{{ID: "model", Value: "b"}})
		must(t, err)
		b.submit(id, "Go on", journal.Queue)
		v := b.untilState(id, journal.StateBlocked)
		if v.State.Blocked.Cause != journal.BlockDisk || !v.State.TurnOpen() || v.State.Unknowns() > 0 {
			t.Errorf("%+v\n%s", v.State, b.dump(id))
		}
		limitFiles(t, keeper, unix.RLIM_INFINITY)
		room.Store(true)
		b.untilState(id, journal.StateReady)
	})
}

// The room of what an agent has said is given back in small parts on a disk that is nearly
// full.
//
// proves COO-10 JRN-5
func TestACP_ASmallDiskIsReadEmpty(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, `hear; i=0; big=$(head -c 20000 /dev/zero | tr '\0' x); while [ $i -lt 100 ]; do i=$((i+1)); text "$big"; done; stop 3; read -r l`)
		state := t.TempDir()
		b := setup(t, s, with)
		b.opts.Shims = shims(t, state)
		b.start(func(r *runner.Runner) { r.Room(func(int64) bool { return false }) })
		id := b.session("Do it", byFake)
		b.untilState(id, journal.StateReady)
		untilRoom(t, state, 512<<10)
	})
}
