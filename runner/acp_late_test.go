package runner_test

import (
	"os"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// answersAll is an agent that answers whatever it is asked, once it has been opened.
const answersAll = hello + `while read -r l; do printf '%s\n' "$l" >> "$HEARD"; n=$(printf '%s' "$l" | sed 's/.*"id":\([0-9]*\).*/\1/'); case $l in *session/prompt*) stop $n;; esac; done`

// wantHeard fails unless the agent was sent these texts as one prompt, and that is the last.
func wantHeard(t *testing.T, heard string, texts ...string) {
	t.Helper()
	all, err := os.ReadFile(heard)
	lines := strings.Split(strings.TrimSpace(string(all)), "\n")
	want := `"prompt":[{"type":"text","text":"` + strings.Join(texts, `"},{"type":"text","text":"`) + `"}]`
	if err != nil || !strings.Contains(lines[len(lines)-1], want) {
		t.Errorf("the agent heard %s (%v), want last %s", all, err, want)
	}
	for _, text := range texts {
		if n := strings.Count(string(all), `"`+text+`"`); n != 1 && !strings.HasPrefix(text, "The next") {
			t.Errorf("it heard %q %d times: %s", text, n, all)
		}
	}
}

const oneIsLate = `The next message is older than what follows it. You were not told of it, since its turn ended before. Where they differ, the newer one holds.\n`

// What a turn was for that ended before its agent was told of it is told with the next
// message, before it, with the server's word about that.
//
// proves PRO-2 COO-4 PRO-5 ATT-1
func TestACP_TellsWhatATurnWasForThatEndedBefore(t *testing.T) {
	t.Parallel()
	twice := strings.NewReplacer("message is", "2 messages are", "follows it", "follows them", "of it,", "of them,", "its turn", "their turns", "newer one holds", "newer ones hold").Replace(oneIsLate)
	for name, c := range map[string]struct {
		script string
		then   func(b *bench, id, gate string)
		want   []string
	}{
		"stopped while it starts, for a message": {
			`[ -e begun ] || { : > begun; echo up > up; read -r x < gate; }` + "\n" + answersAll,
			func(b *bench, id, gate string) {
				b.stopFor(id, "In Python")
				b.untilKind(id, journal.KindTurnEnded, 1)
				open(b.t, gate)
			},
			[]string{oneIsLate, "The mission", "In Python"},
		},
		"stopped while it starts": {
			`[ -e begun ] || { : > begun; echo up > up; read -r x < gate; }` + "\n" + answersAll,
			func(b *bench, id, gate string) {
				if err := b.s.RequestInterrupt(b.t.Context(), b.owner, id, journal.InterruptNow); err != nil {
					b.t.Fatal(err)
				}
				b.untilState(id, journal.StateStopped)
				open(b.t, gate)
				b.submit(id, "In Python", journal.Queue)
			},
			[]string{oneIsLate, "The mission", "In Python"},
		},
		"could not begin, twice": {
			`n=$(cat begun 2>/dev/null | wc -l); echo up >> begun; if [ "$n" = 0 ]; then echo up > up; fi; if [ "$n" -lt 2 ]; then echo 'database is locked' >&2; exit 1; fi` + "\n" + answersAll,
			func(b *bench, id, _ string) {
				b.untilState(id, journal.StateFailed)
				b.submit(id, "Please", journal.Queue)
				b.until(id, "it failed again", func(v store.Session) bool { return v.State.Base == journal.StateFailed && v.State.Turn.Number == 2 })
				b.submit(id, "In Python", journal.Queue)
			},
			[]string{twice, "The mission", "Please", "In Python"},
		},
		"could not begin, and goes on": {
			`n=$(cat begun 2>/dev/null | wc -l); echo up >> begun; if [ "$n" = 0 ]; then echo up > up; fi; if [ "$n" -lt 2 ]; then echo 'database is locked' >&2; exit 1; fi` + "\n" + answersAll,
			func(b *bench, id, _ string) {
				b.untilState(id, journal.StateFailed)
				b.submit(id, "Please", journal.Queue)
				b.until(id, "it failed again", func(v store.Session) bool { return v.State.Base == journal.StateFailed && v.State.Turn.Number == 2 })
				if err := b.s.Continue(b.t.Context(), b.owner, id, nil); err != nil {
					b.t.Fatal(err)
				}
			},
			[]string{oneIsLate, "The mission", "Please"},
		},
		"waits for a sign-in": {
			hello + `echo up > up; while read -r l; do printf '%s\n' "$l" > "$HEARD"; n=$(printf '%s' "$l" | sed 's/.*"id":\([0-9]*\).*/\1/'); case $l in *session/prompt*) if [ -e in ]; then stop $n; else echo '{"jsonrpc":"2.0","id":'$n',"error":{"code":-32000,"message":"Authentication required"}}'; fi;; esac; done`,
			func(b *bench, id, _ string) {
				b.untilState(id, journal.StateBlocked)
				if err := os.WriteFile(b.dir+"/in", nil, 0o600); err != nil {
					b.t.Fatal(err)
				}
				b.stopFor(id, "In Python")
			},
			[]string{oneIsLate, "The mission", "In Python"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				heard, with := scriptedWhole(t, c.script)
				b := setup(t, s, with)
				gate, up := b.fifo("gate"), b.fifo("up")
				b.start()
				id := b.session("The mission", byFake)
				awaitLine(t, up)
				c.then(b, id, gate)
				b.until(id, "ready", func(v store.Session) bool { return v.State.Base == journal.StateReady && v.Claim == nil })
				wantHeard(t, heard, c.want...)
				evs := storetest.Events(t, s, id)
				if storetest.Body[*journal.MessageCompleted](t, evs).Told != journal.ToldLate {
					t.Errorf("no note of it is in the journal: %s", b.dump(id))
				}
				b.submit(id, "More", journal.Queue) // it is told once
				b.until(id, "ready again", func(v store.Session) bool {
					return v.State.Base == journal.StateReady && v.State.Turn.Number > 2 && len(v.State.Admitted) == 0 && v.Claim == nil
				})
				wantHeard(t, heard, "More")
			})
		})
	}
}

// What a person said with a rejection is told with the next message, whatever the turn
// ended with in which it was said.
//
// proves PER-2
func TestACP_TellsWhyItWasRejectedAfterTheTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer string
		then   func(b *bench, id string)
	}{
		"stopped for a message": {"cancelled", func(b *bench, id string) { b.stopFor(id, "Go on") }},
		"failed": {"max_tokens", func(b *bench, id string) {
			b.untilState(id, journal.StateFailed)
			b.submit(id, "Go on", journal.Queue)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				stops := ""
				if c.answer == "cancelled" {
					stops = "hear\n"
				}
				heard, with := scripted(t, `hear
say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"touch made","kind":"execute","status":"pending","rawInput":{"command":"touch made"}}'
echo '{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1"},"options":[{"optionId":"no","kind":"reject_once","name":"No"},{"optionId":"yes","kind":"allow_once","name":"Yes"}]}}'
hear
say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"failed"}'
echo up > up
`+stops+`echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"`+c.answer+`"}}'
while read -r l; do printf '%s\n' "$l" >> "$HEARD"; n=$(printf '%s' "$l" | sed 's/.*"id":\([0-9]*\).*/\1/'); stop $n; done`)
				b := setup(t, s, with)
				up := b.fifo("up")
				b.start()
				id := b.session("Do it", byFake, asking)
				b.untilKind(id, journal.KindPermissionAsked, 1)
				b.decide(b.pending(id)[0].ID, store.Decision{Reply: journal.ReplyReject, Message: "not that"})
				awaitLine(t, up)
				c.then(b, id)
				b.until(id, "ready", func(v store.Session) bool { return v.State.Base == journal.StateReady && v.Claim == nil })
				wantHeard(t, heard, `I rejected \"touch made\": not that\n`, "Go on")
			})
		})
	}
}
