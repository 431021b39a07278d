package runner_test

import (
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/store"
	"holdfast/store/storetest"
)

// Output of an agent's call is bounded as a command's is: past the bound it loses its
// middle, counted and said, whatever becomes of the call.
//
// proves COO-5 JRN-6
func TestACP_BoundsTheOutputOfACall(t *testing.T) {
	t.Parallel()
	const begins = `hear; say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"x","kind":"execute","status":"in_progress","rawInput":{"command":"x"}}'
for c in A B C D E F G H I J K L M N O P Q R S T; do say "$(out in_progress $(printf '%0100d' 0 | tr 0 $c))"; done
`
	for name, c := range map[string]struct {
		script string
		ends   journal.ExecutionState
	}{
		"it ends":                       {`say "$(out completed '')"; stop 3; read -r l`, journal.StateReady},
		"the turn ends without it":      {`stop 3; read -r l`, journal.StateUncertain},
		"the agent is gone":             {`exit 1`, journal.StateUncertain},
		"the turn is stopped before it": {`hear; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}'; read -r l`, journal.StateStopped},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, inOther+begins+c.script)
				b := setup(t, s, with, func(o *runner.Options) { o.MaxOutput = 800 })
				b.start()
				id := b.session("Begin", byFake)
				if c.ends == journal.StateStopped {
					b.untilKind(id, journal.KindCallOutput, 7)
					if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow); err != nil {
						t.Fatal(err)
					}
				}
				b.untilState(id, c.ends)
				evs := storetest.Events(t, s, id)
				text, dropped, at := "", int64(0), int64(0)
				for i := range evs {
					body, err := evs[i].Decode()
					if o, ok := body.(*journal.CallOutput); ok && err == nil {
						if o.Offset != at+o.Dropped {
							t.Errorf("a piece stands at %d, want %d and %d that were dropped", o.Offset, at, o.Dropped)
						}
						text, dropped, at = text+o.Text.S, dropped+o.Dropped, o.Offset+int64(len(o.Text.S))
					}
				}
				calls, err := s.Calls(t.Context(), b.owner, id, 0)
				if err != nil || len(calls) != 1 {
					t.Fatal(calls, err)
				}
				if c := calls[0]; c.OutputBytes != at || c.DroppedBytes != dropped || at != 20*101-1 || int64(len(text)) != at-dropped {
					t.Errorf("%d bytes of %d and %d dropped; the call says %d and %d", len(text), at, dropped, c.OutputBytes, c.DroppedBytes)
				}
				if len(text) != 800 || !strings.HasPrefix(text, "AAA") || !strings.HasSuffix(text, "S\n"+strings.Repeat("T", 99)) && !strings.HasSuffix(text, strings.Repeat("T", 100)) {
					t.Errorf("%d bytes are kept: %s", len(text), text)
				}
				storetest.CheckInvariants(t, s)
			})
		})
	}
}

// Of an output of which an agent shows the last part alone, what is new stands in the
// journal.
//
// proves JRN-5
func TestACP_OutputThatSlides(t *testing.T) {
	t.Parallel()
	s := storetest.New(t, "sqlite").Open(t)
	all := ""
	for i := range 60 {
		all += strings.Repeat(string(rune('a'+i%26)), i%7+1) + "-"
	}
	script := `hear; say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"x","kind":"execute","status":"in_progress","rawInput":{"command":"x"}}'` + "\n"
	for end := 100; end < len(all); end += 30 {
		script += `say "$(out in_progress ` + all[end-100:end] + `)"` + "\n"
	}
	script += `say "$(out completed ` + all[len(all)-100:] + `)"; stop 3; read -r l`
	_, with := scripted(t, inOther+script)
	b := setup(t, s, with)
	b.start()
	id := b.session("Begin", byFake)
	b.untilState(id, journal.StateReady)
	if got := b.output(id, 0); got != all {
		t.Errorf("the output is %q, want %q", got, all)
	}
}
