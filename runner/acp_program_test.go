package runner_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp"
	"holdfast/runner/tool"
	"holdfast/store"
	"holdfast/store/storetest"
)

// A program that is being replaced while it is started passes no prompt over: it is
// started again if it is there, and else waited for.
//
// proves PRO-1 REC-9
func TestACP_ItsProgramIsReplaced(t *testing.T) {
	t.Parallel()
	const works = "#!/bin/sh\n" + hello + `hear; text hi; stop 3; read -r l`
	for name, c := range map[string]struct {
		body   string
		blocks bool
	}{
		"it is back":    {"#!/bin/sh\n[ -e once ] || { touch once; exit 127; }\n" + works, false},
		"it is gone":    {"#!/bin/sh\nrm \"$0\"; exit 127\n", true},
		"may not start": {"#!/bin/sh\nchmod 0 \"$0\"; exit 1\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				program := filepath.Join(t.TempDir(), "agent")
				write := func(body string) {
					t.Helper()
					// Renamed into its place: nothing executes it while it is written.
					if err := os.WriteFile(program+".new", []byte(body), 0o700); err != nil {
						t.Fatal(err)
					}
					if err := os.Rename(program+".new", program); err != nil {
						t.Fatal(err)
					}
				}
				write(c.body)
				b := setup(t, s, func(o *runner.Options) {
					o.Sweep = 50 * time.Millisecond
					o.Agents = append(o.Agents, acp.New(acp.Options{Name: "fake", Command: []string{program}, Env: append(tool.BaseEnv(os.Environ()), "HEARD="+program+".heard")}))
				})
				b.start()
				id := b.session("One", byFake)
				if c.blocks {
					v := b.until(id, "it is blocked", func(v store.Session) bool { return v.State.Blocked != nil && v.Claim == nil })
					if v.State.Blocked.Cause != journal.BlockAgent || !v.State.TurnOpen() {
						t.Errorf("%+v", v.State)
					}
					write(works)
				}
				b.untilState(id, journal.StateReady)
				events := storetest.Events(t, s, id)
				for kind, want := range map[journal.Kind]int{journal.KindTurnEnded: 1, journal.KindAttemptDispatched: 1, journal.KindAgentStarted: 2, journal.KindSessionBlocked: boolInt(c.blocks), journal.KindSessionUnblocked: boolInt(c.blocks)} {
					if n := storetest.CountKind(events, kind); n != want {
						t.Errorf("%d %s, want %d", n, kind, want)
					}
				}
			})
		})
	}
}
