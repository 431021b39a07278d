package runner_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp"
	"holdfast/store"
	"holdfast/store/storetest"
	"holdfast/vault"
)

// flood is what an agent does that doesn't stop talking: it writes faster than anybody
// can journal it, and more than is read within any time that a test waits.
const flood = `flood() { yes '{"jsonrpc":"2.0","method":"_x/flood","params":{}}' | head -c 300000000 & }
`

// One that rested and doesn't stop talking has another process go on in its place: the
// prompt is sent there, once. What it wrote and nobody has read is said to be left out.
//
// proves COO-7 ATT-1 JRN-5
func TestACP_FloodsAtRest(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		heard, with := scripted(t, flood+`[ -e flooded ] && { hear; stop 3; read -r l; exit; }
hear; stop 3; : > flooded; echo $$ > pid; flood; while read -r l; do :; done; wait`, func(o *acp.Options) {
			o.CalmWithin, o.ExitWithin, o.LastWords = 200*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond
		})
		b := setup(t, s, with)
		b.start()
		id := b.session("One", byFake)
		b.untilState(id, journal.StateReady)
		b.submit(id, "Two", journal.Queue)
		b.until(id, "the second turn has ended", func(v store.Session) bool { return v.State.Turn.Number == 2 && !v.State.TurnOpen() && v.Claim == nil })
		events := storetest.Events(t, s, id)
		end := storetest.Body[*journal.AgentEnded](t, events)
		if !strings.HasPrefix(end.Reason, "it did not stop talking") || !strings.Contains(end.Reason, "left out") || end.Signal == "" && end.ExitCode == nil {
			t.Errorf("its process ended so: %+v", end)
		}
		for kind, want := range map[journal.Kind]int{journal.KindAgentStarted: 2, journal.KindAgentEnded: 1, journal.KindAttemptDispatched: 2, journal.KindAttemptSettled: 2} {
			if n := storetest.CountKind(events, kind); n != want {
				t.Errorf("%d %s, want %d", n, kind, want)
			}
		}
		if got, err := os.ReadFile(heard); err != nil || strings.Count(string(got), `"text":"Two"`) != 1 {
			t.Errorf("the agents heard %q, %v", got, err)
		}
		wantGone(t, b.file("pid"))
	})
}

// A stop takes its time, and not that which it would take to read what a flood has left.
//
// proves COO-4 COO-7 JRN-5
func TestACP_IsStoppedInAFlood(t *testing.T) {
	t.Parallel()
	const runs = `say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"deploy","kind":"execute","status":"in_progress"}'; `
	const again = `[ -e flooded ] && { hear; stop 3; read -r l; exit; }; : > flooded; echo $$ > pid; hear; text on; `
	for name, c := range map[string]struct {
		body string
		ends journal.ExecutionState
	}{
		"it answers, and floods then": {runs + `hear; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}'; flood; while read -r l; do :; done; wait`, journal.StateStopped},
		"it floods and never answers": {runs + `flood; while read -r l; do :; done; wait`, journal.StateUncertain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, flood+again+c.body, func(o *acp.Options) {
					o.CancelWithin, o.ExitWithin, o.LastWords = patience, 200*time.Millisecond, 200*time.Millisecond
					if c.ends == journal.StateUncertain {
						o.CancelWithin = 200 * time.Millisecond
					}
				})
				b := setup(t, s, with)
				b.start()
				id := b.session("One", byFake)
				b.untilKind(id, journal.KindCallDispatched, 1)
				if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow); err != nil {
					t.Fatal(err)
				}
				b.untilState(id, c.ends)
				end := storetest.Body[*journal.AgentEnded](t, storetest.Events(t, s, id))
				if !strings.Contains(end.Reason, "left out") || end.Signal == "" && end.ExitCode == nil {
					t.Errorf("its process ended so: %+v", end)
				}
				wantGone(t, b.file("pid"))
			})
		})
	}
}

// Nor does the stop of the server, with which a resting agent is ended.
//
// proves COO-6
func TestACP_TheServerStopsInAFlood(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, flood+`hear; stop 3; echo $$ > pid; flood; while read -r l; do :; done; wait`)
		b := setup(t, s, with, func(o *runner.Options) { o.AgentIdle = time.Hour })
		r := b.start()
		id := b.session("One", byFake)
		b.untilState(id, journal.StateReady)
		r.Stop()
		wantGone(t, b.file("pid"))
	})
}

// A process that rests with other credentials than it would get now is ended before the
// next prompt. A stop doesn't wait for it to leave in order.
//
// proves COO-4 OWN-3
func TestACP_IsStoppedWhileItsCredentialsChange(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		keeper, err := vault.Open(t.Context(), s, vault.Source{File: filepath.Join(t.TempDir(), "key")})
		must(t, err)
		_, with := scripted(t, `hear; stop 3; echo $$ > pid; while read -r l; do :; done; echo up > up; exec sleep 1000`, func(o *acp.Options) { o.ExitWithin = patience })
		b := setup(t, s, with, func(o *runner.Options) { o.Credentials = keeper })
		up := b.fifo("up")
		b.start()
		id := b.session("One", byFake)
		b.untilState(id, journal.StateReady)
		_, err = keeper.Put(t.Context(), b.owner, vault.New{Name: "A_KEY", Value: "a-new-value", Key: "form"})
		must(t, err)
		b.submit(id, "Two", journal.Queue)
		awaitLine(t, up)
		if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow); err != nil {
			t.Fatal(err)
		}
		b.untilState(id, journal.StateStopped)
		events := storetest.Events(t, s, id)
		if n := storetest.CountKind(events, journal.KindAgentStarted); n != 1 {
			t.Errorf("%d processes were started", n)
		}
		if end := storetest.Body[*journal.AgentEnded](t, events); end.Reason != "its credentials were changed" || end.Signal == "" {
			t.Errorf("its process ended so: %+v", end)
		}
		wantGone(t, b.file("pid"))
	})
}

// Much that comes at once becomes several commits. None of them ends in the middle of a
// secret that is spelt over their border.
//
// proves OWN-3 JRN-8
func TestACP_SpellsSecretsInAFlood(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const secret, times = "s3cr3t-spelt", 100
		_, with := scripted(t, `spell() { for c in "$@"; do text "$c"; done; }
hear; for i in $(seq `+strconv.Itoa(times)+`); do spell s 3 c r 3 t - s p e l t .; done > all; cat all; stop 3; read -r l`)
		b := setup(t, s, with)
		s.Mask(b.owner, secret)
		b.start()
		id := b.session("Say it", byFake)
		b.untilState(id, journal.StateReady)
		streamed, pieces := "", 0
		for _, ev := range storetest.Events(t, s, id) {
			body, err := ev.Decode()
			if m, ok := body.(*journal.MessageDelta); ok && err == nil {
				streamed += m.Text.S
				pieces++
			}
		}
		if want := strings.Repeat("[hidden].", times); streamed != want || pieces < 2 {
			t.Errorf("in %d pieces it said %q", pieces, streamed)
		}
	})
}

func wantGone(t *testing.T, file string) {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(file))
	if err != nil || syscall.Kill(pid, 0) == nil {
		t.Errorf("process %d lives (%v)", pid, err)
	}
}

// loads is an agent whose second process tells much of its session before that is open.
const loads = `init() { read -r l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}'; read -r l; }
opened() { echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}'; }
x=$(head -c 60000 /dev/zero | tr '\0' x)
told='{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call","toolCallId":"t1","title":"'$x'","kind":"edit","status":"completed"}}}'
stop() { echo '{"jsonrpc":"2.0","id":'"$1"',"result":{"stopReason":"end_turn"}}'; }
[ -e once ] || { : > once; init; opened; read -r l; stop 3; exit; }
[ ! -e twice ] || { init; opened; read -r l; printf '%s\n' "$l" >> "$HEARD"; stop 3; read -r l; exit; }
: > twice
`

// What an agent says before its session is open, as of one that it loads, is read on and
// fills no disk. Of what it tells of that again nothing becomes a fact; and if its server
// was lost meanwhile another process is asked.
//
// proves JRN-5 ATT-1 COO-6
func TestACP_FloodsBeforeItIsOpen(t *testing.T) {
	t.Parallel()
	const long, most = 40_000_000, 20 << 20
	flood := func(what string) string { return `yes "$told" | head -c ` + strconv.Itoa(long) + what + `; ` }
	const goesOn = `opened; read -r l; printf '%s\n' "$l" >> "$HEARD"; stop 3; read -r l`
	for name, c := range map[string]struct {
		does     string
		restarts bool
	}{
		"a session that it loads":              {`init; ` + flood("") + `echo; echo up > up; read -r x < gate; ` + goesOn, false},
		"a session that it loads, and is left": {`init; ` + flood("") + `echo; echo up > up; read -r x < gate; ` + goesOn, true},
		"before its first answer":              {flood("") + `echo; echo up > up; read -r x < gate; init; ` + goesOn, false},
		"on standard error":                    {`init; ` + flood(" >&2") + `echo up > up; read -r x < gate; ` + goesOn, false},
		"on standard error, at its work":       {`init; ` + strings.Replace(goesOn, "stop 3", flood(" >&2")+`echo up > up; read -r x < gate; stop 3`, 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				state := t.TempDir()
				heard, with := scriptedWhole(t, loads+c.does)
				b := setup(t, s, with, brief, func(o *runner.Options) { o.Shims = shims(t, state) })
				gate, up := b.fifo("gate"), b.fifo("up")
				r := b.start()
				id := b.session("One", byFake)
				b.untilState(id, journal.StateReady)
				b.untilExit(storetest.Body[*journal.AgentStarted](t, storetest.Events(t, s, id)).ProcessID)
				b.submit(id, "Two", journal.Queue)
				awaitLine(t, up)
				untilRoom(t, state, most)
				processes := 2
				if c.restarts {
					r.Stop()
					b.next()
					processes++
				} else {
					open(t, gate)
				}
				b.until(id, "the second turn has ended", func(v store.Session) bool { return v.State.Turn.Number == 2 && !v.State.TurnOpen() && v.Claim == nil })
				events := storetest.Events(t, s, id)
				for kind, want := range map[journal.Kind]int{journal.KindAgentStarted: processes, journal.KindAgentOpened: 2, journal.KindAttemptDispatched: 2, journal.KindAttemptSettled: 2, journal.KindCallProposed: 0, journal.KindAgentEvent: 0} {
					if n := storetest.CountKind(events, kind); n != want {
						t.Errorf("%d %s, want %d", n, kind, want)
					}
				}
				if got, err := os.ReadFile(heard); err != nil || strings.Count(string(got), `"text":"Two"`) != 1 {
					t.Errorf("the agents heard %q, %v", got, err)
				}
			})
		})
	}
}

// One that never comes to its end is ended, and of what it told again nothing is a fact,
// either.
//
// proves JRN-5 ATT-1
func TestACP_NeverEndsToLoad(t *testing.T) {
	t.Parallel()
	for name, does := range map[string]string{
		"a flood":            `init; yes "$told" & while read -r l; do :; done; wait`,
		"an unfinished line": `init; printf x; yes "$told" >&2 & while read -r l; do :; done; wait`,
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scriptedWhole(t, loads+does, func(o *acp.Options) {
					o.ExitWithin, o.LastWords, o.OpenWithin = 200*time.Millisecond, 200*time.Millisecond, time.Second
					if name != "a flood" {
						o.OpenWithin = patience
					}
				})
				b := setup(t, s, with)
				b.start()
				id := b.session("One", byFake)
				b.untilState(id, journal.StateReady)
				b.untilExit(storetest.Body[*journal.AgentStarted](t, storetest.Events(t, s, id)).ProcessID)
				b.submit(id, "Two", journal.Queue)
				b.untilKind(id, journal.KindTurnEnded, 2)
				events := storetest.Events(t, s, id)
				for _, kind := range []journal.Kind{journal.KindCallProposed, journal.KindAgentEvent} {
					if n := storetest.CountKind(events, kind); n != 0 {
						t.Errorf("%d %s of what it told again", n, kind)
					}
				}
			})
		})
	}
}

// untilRoom waits until a folder takes no more of the disk than that.
func untilRoom(t *testing.T, dir string, most int64) {
	t.Helper()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for by := time.Now().Add(patience); ; <-poll.C {
		var takes int64
		_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			var st syscall.Stat_t
			if err == nil && syscall.Stat(path, &st) == nil {
				takes += st.Blocks * 512
			}
			return nil // what is gone meanwhile takes none
		})
		if takes <= most {
			return
		}
		if time.Now().After(by) {
			t.Fatalf("it takes %d MB of the disk, want %d at most", takes>>20, most>>20)
		}
	}
}
