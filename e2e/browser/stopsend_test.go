package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stoppable is an agent that works until it is told to stop, and then takes its time.
const stoppable = `say() { echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}}}'; }
while read -r l; do
id=$(printf %s "$l" | sed 's/.*"id":\([0-9]*\),.*/\1/')
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
case $l in
*'"method":"initialize"'*) answer "$id" '{"protocolVersion":1,"agentInfo":{"name":"fake","version":"0.1"},"agentCapabilities":{"loadSession":true}}';;
*'"method":"session/new"'*) answer "$id" '{"sessionId":"s1"}';;
*'"method":"session/cancel"'*) read -r x < gate; answer "$asked" '{"stopReason":"cancelled"}';;
*'"method":"session/prompt"'*'Round all'*) asked=$id; say 'It rounds each of the totals';;
*'"method":"session/prompt"'*) say 'It leaves them.'; answer "$id" '{"stopReason":"end_turn"}';;
esac
done
`

// A person sees an agent go astray, and stops it for another message in one step: in the
// page that is open, and without a script on a narrow screen. The page says before what
// will happen, while it stops what comes then, and nobody continues.
//
// proves PRO-4 PRO-5 RDR-4
func TestLive_StopTheTurnAndSend(t *testing.T) {
	t.Parallel()
	stopAndSend(t, false, func(b *tab, stage string) {
		if stage == "stops" { // the agent has 20 s for that, and this look may take longer
			return
		}
		for _, fault := range look(b) {
			t.Errorf("when it %s: %s", stage, fault)
		}
		b.width(1280)
		b.theme("light")
		b.reload()
		b.within(recovery, "the view is live", shows("your-view", "live"))
	})
}

func TestStopTheTurnAndSend_WithoutScript(t *testing.T) {
	t.Parallel()
	stopAndSend(t, true, func(*tab, string) {})
}

// stopAndSend tells a test at each stage.
func stopAndSend(t *testing.T, manual bool, at func(b *tab, stage string)) {
	t.Helper()
	w := newWorld(t, "sqlite")
	path := filepath.Join(w.dir, "agent.sh")
	if err := os.WriteFile(path, []byte(stoppable), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.serve("--agent", "fake=sh "+path)
	gate, a, b := w.gate("gate"), s.api(), w.tab(s.base)
	if manual {
		b.withoutScript()
		b.width(390)
	}
	b.signIn()
	id := a.mission("Round all of them.", func(body map[string]any) { body["agent"] = "fake" }, titled("Round all of them"))
	eventually(t, "it works", func() bool { return a.count(id, "message.delta") > 0 })
	a.prompt(id, "And now the docs.", "queue")
	b.visit("/sessions/" + id)
	hint := "What runs now is ended; what it did until then stays done. Then your message begins the next turn, before the queue."
	if got := b.text("#stop-hint"); !strings.Contains(got, hint) || b.attr("#send-stop", "aria-describedby") != "stop-hint" {
		t.Errorf("before it is sent it is said %q", got)
	}
	at(b, "works")
	b.fill("#text", "Leave the totals alone.")
	b.press("#send-stop")
	b.until("it says what it has recorded", says(sel("notice"), "Recorded as entry #"))
	b.until("it says what comes then", says("#reading-execution", "Then your message is delivered."))
	if got := b.text(sel("queue")); !strings.Contains(got, "Begins the next turn") || strings.Contains(got, "Held") {
		t.Errorf("the queue says %q", got)
	}
	at(b, "stops")
	gate.Open()
	eventually(t, "the queue is done", func() bool { return a.count(id, "turn.ended") == 3 })
	a.untilQuiet(id, "ready")
	if manual {
		b.visit("/sessions/" + id)
	}
	b.within(recovery, "it has finished", says("#reading-execution", "Finished its turn"))
	for kind, n := range map[string]int{"interrupt.requested": 1, "prompt.admitted": 3, "continuation.requested": 0} {
		if got := a.count(id, kind); got != n {
			t.Errorf("%d of %s, want %d", got, kind, n)
		}
	}
	if got := b.text("#journal-list"); strings.Count(got, "It leaves them.") != 2 || !strings.Contains(got, "asked to stop now, and to deliver the message sent with it then") {
		t.Errorf("the journal says %s", got)
	}
	at(b, "is done")
}
