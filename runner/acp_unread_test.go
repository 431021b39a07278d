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

func quietFor(d time.Duration) func(*acp.Options) {
	return func(o *acp.Options) { o.SilentWithin, o.ExitWithin = d, time.Millisecond }
}

// An answer that comes as a line that can't be read doesn't have its turn wait for
// ever: the line is shown at once, and when the agent says nothing more what it was told
// is unknown, and is not sent again.
//
// proves ATT-3 CAL-7
func TestACP_AnAnswerThatCantBeRead(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"cut off":               `echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_tu'`,
		"without its end":       `printf %s '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_tu'; while :; do echo beat >&2; sleep 0.05; done`,
		"behind something else": `echo '{"level":"info"}{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'`,
		"quoted":                `echo 'sent {"log":{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'`,
		"another's":             `echo 'log{"jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn"}}'`,
		"an error, glued":       `echo 'log{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"log in"}}'`,
		"of no known reason":    `echo 'log{"jsonrpc":"2.0","id":3,"result":{"stopReason":"mood"}}'`,
		"without an id":         `echo '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'`,
		"as a text":             `echo '{"jsonrpc":"2.0","id":"3","result":{"stopReason":"end_turn"}}'`,
		"while a call runs":     `say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"look","kind":"read","status":"in_progress"}'; sleep 0.1; echo '{"jsonrpc"'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				heard, with := scripted(t, `hear; text before; `+line+`; exec sleep 1000`, quietFor(200*time.Millisecond))
				b := setup(t, s, with)
				b.start()
				id := b.session("Do it", byFake)
				v := b.untilState(id, journal.StateUncertain)
				events := storetest.Events(t, s, id)
				shown := storetest.CountKind(events, journal.KindAgentEvent)
				if shown != 1 {
					t.Errorf("%d lines are shown, want 1", shown)
				}
				if !strings.Contains(b.dump(id), "can't be read, which may have been its answer") || v.State.Process != nil || storetest.CountKind(events, journal.KindAttemptUnknown) != 1 {
					t.Errorf("it doesn't say why, or its process is still there: %+v\n%s", v.State.Process, b.dump(id))
				}
				if got, err := os.ReadFile(heard); err != nil || strings.Count(string(got), "session/prompt") != 1 {
					t.Errorf("the agent heard %q, %v; want one prompt", got, err)
				}
			})
		})
	}
}

// An answer that stands whole behind words without a line feed is one. Rubbish between
// what the agent does is none, and ends nothing; nor does the wait for a person.
//
// proves ATT-1
func TestACP_RubbishEndsNoTurn(t *testing.T) {
	t.Parallel()
	const glued = `printf 'Loading [3/3]... '; `
	for name, c := range map[string]struct {
		body  string
		quiet time.Duration
		asks  bool
		shown int
	}{
		"glued to its answer": {body: `hear; text one; ` + glued + `stop 3; read -r l`, quiet: time.Hour, shown: 1},
		"before its work":     {body: together + `hear; together rubbish "$(up '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"one"}}')"; echo up > up; read -r x < gate; stop 3; read -r l`, quiet: 100 * time.Millisecond, shown: 1},
		"before it asks":      {body: strings.Replace(askRun, `echo '{"jsonrpc":"2.0","id":0`, `printf 'rubbish\n%s\n' '{"jsonrpc":"2.0","id":0`, 1) + "read -r l", quiet: 100 * time.Millisecond, asks: true, shown: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, c.body, quietFor(c.quiet))
				b := setup(t, s, with)
				gate, up := b.fifo("gate"), b.fifo("up")
				b.start()
				id := b.session("Do it", byFake, asking)
				switch { // and waits longer than the agent may be silent after rubbish alone: if that counts, the turn ends
				case strings.Contains(c.body, "gate"):
					awaitLine(t, up)
					b.untilKind(id, journal.KindMessageDelta, 1)
					<-time.After(3 * c.quiet)
					open(t, gate)
				case c.asks:
					b.untilKind(id, journal.KindPermissionAsked, 1)
					<-time.After(10 * c.quiet)
					b.decide(b.pending(id)[0].ID, store.Decision{Reply: journal.ReplyOnce})
				}
				b.untilState(id, journal.StateReady)
				events := storetest.Events(t, s, id)
				if n := storetest.CountKind(events, journal.KindAgentEvent); n != c.shown || storetest.CountKind(events, journal.KindAttemptSettled) != 1 {
					t.Errorf("%d lines are shown, want %d:\n%s", n, c.shown, b.dump(id))
				}
			})
		})
	}
}

// A stop ends such a turn by its deadline: the agent, which has answered, doesn't
// answer again. That also holds after a restart, which doesn't forget the line.
//
// proves COO-4 ATT-3
func TestACP_AStopAfterALineThatCantBeRead(t *testing.T) {
	t.Parallel()
	for name, stops := range map[string]bool{"a person stops it": true, "the server restarts": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, `hear; echo '{"jsonrpc":"2.0","id":3,"res'; while read -r l; do :; done; exec sleep 1000`, func(o *acp.Options) {
					o.SilentWithin, o.CancelWithin, o.ExitWithin = time.Hour, time.Millisecond, time.Millisecond
				})
				b := setup(t, s, with, brief)
				r := b.start()
				id := b.session("Do it", byFake)
				b.untilKind(id, journal.KindAgentEvent, 1)
				if stops {
					if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow); err != nil {
						t.Fatal(err)
					}
				} else {
					r.Stop()
					_, with := scripted(t, "", quietFor(200*time.Millisecond))
					b.opts.Agents = nil
					with(&b.opts)
					b.next()
				}
				if v := b.untilState(id, journal.StateUncertain); v.State.Process != nil {
					t.Errorf("its process is %+v", v.State.Process)
				}
			})
		})
	}
}
