package runner_test

import (
	"os"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// A request that its agent takes back is nobody's to answer any more: the person's card
// goes, the agent has its answer, and what was asked for isn't let run.
//
// proves PER-6 CAL-7 CAL-8
func TestACP_TakesItsRequestBack(t *testing.T) {
	t.Parallel()
	const (
		ask  = `echo '{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"rm a","kind":"execute","rawInput":{"command":"rm a"}},"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"}]}}'; `
		back = `echo '{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}'; `
		twin = `echo '{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":8}}'; `
	)
	for name, c := range map[string]struct {
		does  string
		waits bool // until a person is asked
		stops bool // the server, meanwhile
	}{
		"while a person is asked":    {does: ask + twin + `read -r x < gate; ` + back, waits: true},
		"after a restart":            {does: ask + `read -r x < gate; ` + back, waits: true, stops: true},
		"at once":                    {does: `{ ` + ask + back + `} | cat; `},
		"with the end of its answer": {does: ask + `read -r x < gate; { ` + back + `stop 3; } | cat; `, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				heard, with := scripted(t, `hear; `+c.does+`hear; echo heard > heard; stop 3; read -r l`)
				b := setup(t, s, with, brief)
				gate, told := b.fifo("gate"), b.fifo("heard")
				r := b.start()
				id := b.session("Do it", byFake, asking)
				if c.waits {
					b.untilKind(id, journal.KindPermissionAsked, 1)
				}
				if c.stops {
					r.Stop()
					b.next()
					b.untilKind(id, journal.KindStepRecovered, 1)
				}
				if c.waits {
					open(t, gate)
				}
				awaitLine(t, told)
				b.until(id, "it has ended", func(v store.Session) bool { return v.State.Base == journal.StateReady && v.Claim == nil })
				if got, err := os.ReadFile(heard); err != nil || strings.Count(string(got), `"id":7`) != 1 || !strings.Contains(string(got), "-32800") {
					t.Errorf("the agent heard %q, %v", got, err)
				}
				calls, err := s.Calls(t.Context(), b.owner, id, 0)
				if err != nil || len(calls) != 1 || calls[0].State != journal.CallCancelled || !calls[0].NeverRan() || !strings.Contains(calls[0].Reason, "took its request back") {
					t.Errorf("%+v, %v\n%s", calls[0], err, b.dump(id))
				}
				evs := storetest.Events(t, s, id)
				if asked, gone := storetest.CountKind(evs, journal.KindPermissionAsked), storetest.CountKind(evs, journal.KindPermissionCancelled); asked != gone || (asked == 1) != c.waits {
					t.Errorf("%d asked, %d cancelled", asked, gone)
				}
			})
		})
	}
}
