package runner_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner/acp"
	"holdfast/store"
	"holdfast/store/storetest"
)

// deaf is how an agent goes on of which nobody hears any more.
const deaf = `exec 1>&-; echo $$ > self; echo up > up; sleep 1000`

// An agent that lives on and has closed its stdout is lost like one that is dead: nobody
// hears any more what it does. It is ended, and what it was at is unknown; so it is if that
// happens while no server is there.
//
// proves ATT-3 CAL-7 COO-7
func TestACP_ClosesItsStdout(t *testing.T) {
	t.Parallel()
	for name, restarts := range map[string]bool{"at work": false, "while no server is there": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, tells+`hear; call t1 'rm a' in_progress; echo up > up; read -r x < gate; text last; `+deaf,
					func(o *acp.Options) { o.ExitWithin, o.Announces = time.Millisecond, time.Millisecond })
				b := setup(t, s, with, brief)
				gate, up := b.fifo("gate"), b.fifo("up")
				r := b.start()
				id := b.session("Do it", byFake)
				awaitLine(t, up)
				b.untilKind(id, journal.KindCallDispatched, 1)
				if restarts {
					r.Stop()
				}
				open(t, gate)
				awaitLine(t, up)
				if restarts {
					b.next()
				}
				v := b.untilState(id, journal.StateUncertain)
				if len(v.State.UnknownAttempts) != 1 || len(v.State.UnknownCalls) != 1 || v.State.Process != nil || b.runs("self") {
					t.Errorf("its attempt and call are unknown, and it is gone: %+v\n%s", v.State, b.dump(id))
				}
				const why = "it has closed its standard output, so that nobody can hear any more what it does"
				ended := storetest.Body[*journal.AgentEnded](t, storetest.Events(t, s, id))
				if ended.Reason != why || !strings.Contains(b.dump(id), "The agent's process was ended: "+why+".") || !strings.Contains(b.dump(id), `"text":"last"`) {
					t.Errorf("it says %q\n%s", ended.Reason, b.dump(id))
				}
			})
		})
	}
}

// An agent that has closed its stdout between two turns is told nothing more: another
// process takes up its conversation.
//
// proves ATT-3 COO-7
func TestACP_ClosesItsStdoutBetweenTurns(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		heard, with := scripted(t, `hear; text a; stop 3; [ -e once ] && read -r l; touch once; `+deaf, func(o *acp.Options) { o.ExitWithin = time.Millisecond })
		b := setup(t, s, with)
		up := b.fifo("up")
		b.start()
		id := b.session("One", byFake)
		awaitLine(t, up)
		b.untilState(id, journal.StateReady)
		ids, err := b.opts.Shims.List()
		if err != nil || len(ids) != 1 {
			t.Fatalf("%v, %v", ids, err)
		}
		child, err := b.opts.Shims.Attach(t.Context(), ids[0])
		must(t, err)
		_, muted, err := child.Mute(t.Context())
		if err != nil || !muted {
			t.Fatalf("its shim says %v, %v", muted, err)
		}
		must(t, child.Close())
		b.submit(id, "Two", journal.Queue)
		v := b.until(id, "it has answered twice", func(v store.Session) bool {
			return v.State.Base != journal.StateRunning && v.State.Turn.Number == 2 && v.Claim == nil
		})
		got, err := os.ReadFile(heard)
		must(t, err)
		if v.State.Base != journal.StateReady || b.runs("self") || strings.Count(string(got), `"session/prompt"`) != 2 {
			t.Errorf("it is %s\n%s", v.State.Base, b.dump(id))
		}
	})
}
