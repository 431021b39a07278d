package runner_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/runner/acp"
	"holdfast/store"
	"holdfast/store/storetest"
)

// promptsHeard are the prompts that an agent was sent, each with its texts behind each other.
func promptsHeard(t *testing.T, path string) (out []string) {
	t.Helper()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(all)) {
		var m struct {
			Method string
			Params struct{ Prompt []struct{ Text string } }
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("the agent was told %q: %v", line, err)
		}
		if m.Method != "session/prompt" {
			continue
		}
		var texts []string
		for _, p := range m.Params.Prompt {
			text, _, _ := strings.Cut(p.Text, " older than")
			texts = append(texts, text)
		}
		out = append(out, strings.Join(texts, ", "))
	}
	return out
}

// What has no room in one prompt is told with the next of the same turn, in order and
// once; what a stop leaves over is told with the next message.
//
// proves ADM-1 PRO-1 PRO-2 PRO-3 COO-4
func TestACP_MoreThanOnePromptHasRoomFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stops bool
		want  string
	}{
		"goes on":    {false, "Begin|s1, s2|s3, s4|s5|More"},
		"is stopped": {true, "Begin|s1, s2|The next 2 messages are, s3, s4|The next message is, s5|More"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				heard, with := scripted(t, `n=2; while read -r l; do n=$((n+1)); printf '%s\n' "$l" >> "$HEARD"; case $l in
*'"Begin"'*) echo up > up; read -r x < gate; stop $n;;
*'"s2"'*) if [ -e halt ]; then echo up > up; read -r l; n=$((n+1)); echo '{"jsonrpc":"2.0","id":'$((n-1))',"result":{"stopReason":"cancelled"}}'; else stop $n; fi;;
*) stop $n;; esac; done`, func(o *acp.Options) { o.MaxPrompt = len(`"s1"`) * 2 })
				b := setup(t, s, with)
				gate, up := b.fifo("gate"), b.fifo("up")
				b.start()
				id := b.session("Begin", byFake)
				awaitLine(t, up)
				for _, text := range []string{"s1", "s2", "s3", "s4", "s5"} {
					b.submit(id, text, journal.Steer)
				}
				if c.stops {
					if err := os.WriteFile(filepath.Join(b.dir, "halt"), nil, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				open(t, gate)
				if c.stops {
					awaitLine(t, up)
					if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow); err != nil {
						t.Fatal(err)
					}
					b.untilState(id, journal.StateStopped)
				} else {
					b.untilState(id, journal.StateReady)
				}
				b.submit(id, "More", journal.Queue)
				b.until(id, "ready again", func(v store.Session) bool {
					return v.State.Base == journal.StateReady && v.State.Turn.Number == 2 && v.Claim == nil
				})
				if got := strings.Join(promptsHeard(t, heard), "|"); got != c.want {
					t.Errorf("the agent heard %s, want %s", got, c.want)
				}
				storetest.CheckInvariants(t, s)
			})
		})
	}
}

// What an agent's process doesn't take isn't committed as sent: its turn fails and says
// so, and nothing is unknown.
//
// proves ATT-1 CAL-7
func TestACP_NothingIsSentThatIsTooLong(t *testing.T) {
	t.Parallel()
	s := storetest.New(t, "sqlite").Open(t)
	_, with := scripted(t, `hear; echo up > up; read -r x < gate; stop 3; hear; read -r l`, func(o *acp.Options) { o.MaxPrompt = 1 << 40 })
	b := setup(t, s, with)
	gate, up := b.fifo("gate"), b.fifo("up")
	b.start()
	id := b.session("Begin", byFake)
	awaitLine(t, up)
	long := strings.Repeat(`"`, 256<<10)
	for range 130 { // 65 MiB, as they would be sent
		b.submit(id, long, journal.Steer)
	}
	open(t, gate)
	v := b.untilState(id, journal.StateFailed)
	evs := storetest.Events(t, s, id)
	if n := storetest.CountKind(evs, journal.KindAttemptDispatched); n != 1 || len(v.State.Attempts) != 0 || v.State.Process == nil {
		t.Errorf("%d attempts were dispatched, want 1; %v are open, the process is %v", n, v.State.Attempts, v.State.Process)
	}
	if end := storetest.Body[*journal.TurnEnded](t, evs); !strings.Contains(end.Reason, "longer than 64 MB") || !strings.Contains(end.Reason, "Nothing was sent") {
		t.Errorf("it ended with %q", end.Reason)
	}
}
