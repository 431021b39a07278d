package runner_test

import (
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// A server stops, and a turn, although an agent has asked very much at once: what nobody
// was asked yet is asked by whoever comes, or never.
//
// proves COO-4 PER-1 REC-10
func TestACP_StopsWhileMuchIsAsked(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const n = 300
		_, with := scripted(t, `hear; i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo '{"jsonrpc":"2.0","id":"a'$i'","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t'$i'","title":"rm","kind":"execute","rawInput":{"command":"rm '$i'"}},"options":[{"optionId":"o","name":"y","kind":"allow_once"},{"optionId":"r","name":"n","kind":"reject_once"}]}}'; done > all; cat all
while read -r l; do case $l in *session/cancel*) echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}';; esac; done`)
		b := setup(t, s, with, brief)
		r := b.start()
		id := b.session("Do it", byFake, asking)
		b.untilKind(id, journal.KindPermissionAsked, 1)
		r.Stop()
		if asked := storetest.CountKind(storetest.Events(t, s, id), journal.KindPermissionAsked); asked == n {
			t.Errorf("all %d were asked before it stopped", asked)
		}
		b.next()
		b.untilKind(id, journal.KindPermissionAsked, n)
		if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow); err != nil {
			t.Fatal(err)
		}
		v := b.untilState(id, journal.StateStopped)
		if asked := storetest.CountKind(storetest.Events(t, s, id), journal.KindPermissionAsked); asked != n || v.State.Unknowns() != 0 || len(b.pending(id)) != 0 {
			t.Errorf("%d of %d were asked, %d are unknown, %d wait", asked, n, v.State.Unknowns(), len(b.pending(id)))
		}
	})
}

// What an agent thinks and says in turns goes on after a restart where it was, however
// often it has changed.
//
// proves JRN-1 REC-12
func TestACP_TextAndThoughtInTurnsOverARestart(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"", "1", "1 2", "1 2 3", "1 2 3 4", "1 2 3 4 5", "1 2 3 4 5 6 7 8 9"} {
		t.Run(before, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, `think() { say '{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"'"$1"'"}}'; }
hear; for i in `+before+`; do text $i; think h; done; text half; echo up > up; read -r x < gate
text ' whole'; think h; text last; stop 3; read -r l`)
				b := setup(t, s, with, brief)
				gate, up := b.fifo("gate"), b.fifo("up")
				r := b.start()
				id := b.session("Say it", byFake)
				awaitLine(t, up)
				b.until(id, "half is said", func(store.Session) bool { return strings.Contains(b.dump(id), `"half"`) })
				r.Stop()
				b.next()
				b.untilKind(id, journal.KindStepRecovered, 1)
				open(t, gate)
				b.untilState(id, journal.StateReady)
				got, seen := "", map[string]bool{}
				for _, ev := range storetest.Events(t, s, id) {
					body, err := ev.Decode()
					m, ok := body.(*journal.MessageCompleted)
					if err != nil || !ok {
						continue
					}
					if m.Part == journal.PartText {
						got += m.Text.S + " "
					}
					if seen[m.MessageID] {
						t.Errorf("%q is said under an id that was said whole before", m.Text.S)
					}
					seen[m.MessageID] = true
				}
				if want := strings.TrimPrefix(before+" half whole last ", " "); got != want {
					t.Errorf("it said %q, want %q", got, want)
				}
			})
		})
	}
}
