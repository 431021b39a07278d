package runner_test

import (
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// What an agent says of a call that has ended, or wasn't to run, stands in the journal as
// its word beside: that it runs, what it puts out, how it ended. It changes nothing of the
// call, and is bounded.
//
// proves JRN-5 CAL-7
func TestACP_WhatIsSaidOfACallThatHasEnded(t *testing.T) {
	t.Parallel()
	const refused, taken, done = `perm 7 t1 'rm a' "$both"; hear; `, `perm 7 t1 'rm a' "$both"; echo '{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}'; hear; `,
		`call t1 'rm a' in_progress; out t1 completed one; `
	for name, c := range map[string]struct {
		does, state string
		said        int
	}{
		"runs all the same":        {refused + `news t1 in_progress; `, "refused", 1},
		"puts something out":       {refused + `out t1 in_progress 'removed a'; out t1 in_progress 'removed a, b'; `, "refused", 2},
		"fails with a text":        {refused + `out t1 failed 'no room'; `, "refused", 1},
		"fails, as it should":      {refused + `news t1 failed; `, "refused", 0},
		"succeeds all the same":    {refused + `news t1 completed; `, "refused", 1},
		"runs, and was taken back": {taken + `out t1 in_progress 'removed a'; `, "cancelled", 1},
		"puts more out":            {done + `out t1 completed two; `, "succeeded", 1},
		"fails behind its success": {done + `news t1 failed; `, "succeeded", 1},
		"repeats itself":           {done + `news t1 in_progress; news t1 in_progress; `, "succeeded", 1},
		"says it over and over":    {refused + `i=0; while [ $i -lt 40 ]; do i=$((i+1)); out t1 in_progress "$i"; done; `, "refused", 20},
		"has nothing more to say":  {done, "succeeded", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, tells+`hear; `+c.does+`stop 3; hear; stop 5; read -r l`)
				b := setup(t, s, with, brief)
				b.start()
				how := asking
				if strings.HasPrefix(c.does, done) {
					how = func(*store.NewSession) {}
				}
				id := b.session("Do it", byFake, how)
				if strings.HasPrefix(c.does, refused) {
					b.untilKind(id, journal.KindPermissionAsked, 1)
					b.decide(b.pending(id)[0].ID, store.Decision{Reply: journal.ReplyReject, Message: "no"})
				}
				b.untilState(id, journal.StateReady)
				calls, err := s.Calls(t.Context(), b.owner, id, 0)
				if err != nil || len(calls) != 1 || string(calls[0].State) != c.state {
					t.Errorf("calls %+v, %v", calls, err)
				}
				var said, more int
				for _, ev := range storetest.Events(t, s, id) {
					body, err := ev.Decode()
					if e, ok := body.(*journal.AgentEvent); ok && err == nil && e.AfterCall == calls[0].ID {
						said++
						if e.More {
							more++
						}
					}
				}
				if said != c.said || more != c.said/20 {
					t.Errorf("%d words of it, and %d of more\n%s", said, more, b.dump(id))
				}
			})
		})
	}
}
