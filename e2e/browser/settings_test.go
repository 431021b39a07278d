package browser

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// settableScript is an agent that offers a model, a mode and a switch, takes what it
// is told, and tells of itself.
const settableScript = `say() { echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":'"$1"'}}'; }
options='[{"id":"model","name":"Model","category":"model","type":"select","currentValue":"small","options":[
{"name":"Acme","options":[{"value":"small","name":"Small","description":"For quick answers"},{"value":"large","name":"Large"}]}]},
{"id":"mode","name":"Mode","category":"mode","type":"select","currentValue":"build","options":[{"value":"build","name":"Build"},{"value":"plan","name":"Plan"}]},
{"id":"web","name":"Web search","type":"boolean","currentValue":false}]'
options=$(printf %s "$options" | tr -d '\n')
while read -r l; do
id=$(printf %s "$l" | sed 's/.*"id":\([0-9]*\),.*/\1/')
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
case $l in
*'"method":"initialize"'*) answer '{"protocolVersion":1,"agentInfo":{"name":"fake","version":"0.1"},"agentCapabilities":{"loadSession":true}}';;
*'"method":"session/new"'*) answer '{"sessionId":"s1","configOptions":'"$options"'}'
	say '{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"init","description":"Writes a guide to this workspace"},{"name":"review","description":"Reviews changes","input":{"hint":"commit or branch"}}]}';;
*'"method":"session/set_config_option"'*) answer '{}';;
*'"method":"session/prompt"'*)
	say '{"sessionUpdate":"notice","severity":"warning","title":"Half of the credit is used","description":"It ends on Friday."}'
	say '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Done."}}'
	say '{"sessionUpdate":"usage_update","used":34000,"size":200000,"cost":{"amount":0.1249,"currency":"USD"}}'
	answer '{"stopReason":"end_turn","usage":{"inputTokens":1200,"outputTokens":340}}';;
esac
done
`

// A model is chosen for a new session and another one between two turns, on a narrow
// screen and without a script; the pages that this goes through are looked at.
// proves ADM-6 ADM-2
func TestAgentSettings_WithoutScript(t *testing.T) {
	t.Parallel()
	agentSettings(t, func(b *tab, stage string) {
		for _, fault := range look(b) {
			t.Errorf("%s: %s", stage, fault)
		}
	})
}

// agentSettings shows a test each stage in a tab of its own, since what looks at a
// page is a script.
func agentSettings(t *testing.T, look func(b *tab, stage string)) {
	t.Helper()
	w := newWorld(t, "sqlite")
	path := filepath.Join(w.dir, "agent.sh")
	if err := os.WriteFile(path, []byte(settableScript), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.serve("--agent", "fake=sh "+path)
	a := s.api()
	b := w.tab(s.base)
	b.withoutScript()
	b.width(390)
	b.signIn()
	eye := w.tab(s.base)
	eye.signIn()
	at := func(b *tab, stage string) {
		t.Helper()
		eye.visit(strings.TrimPrefix(b.location(), s.base))
		look(eye, stage)
	}

	b.visit("/sessions/new")
	if got := b.text(sel("agent-set")); !strings.Contains(got, "not known yet") {
		t.Errorf("before it has begun it is said %q", got)
	}
	first := a.mission("Begin.", func(body map[string]any) { body["agent"] = "fake" })
	a.untilQuiet(first, "ready")

	b.visit("/sessions/new")
	b.press(sel("agent-set") + " summary")
	at(b, "new")
	b.fill("#prompt", "Try it.")
	b.fill("#workspace", w.work)
	b.choose(`input[name="agent"][value="fake"]`)
	pick(b, `select[name="set:fake:model"]`, "=large")
	pick(b, `select[name="set:fake:web"]`, "=true")
	b.press(sel("new-session-form") + " .btn-primary")
	b.until("the session is there", has(sel("journal")))
	id := strings.TrimPrefix(bare(b.location()), "/sessions/")
	a.untilQuiet(id, "ready")
	b.visit("/sessions/" + id)
	facts := func(words ...string) {
		t.Helper()
		got := b.text("#facts") + " " + b.text(sel("usage"))
		for _, want := range words {
			if !strings.Contains(got, want) {
				t.Errorf("the page doesn't say %q: %s", want, got)
			}
		}
	}
	facts("Large", "Build", "on", "34 of 200 thousand tokens", "$0.12", "1200 in, 340 out")
	if got := b.text("#journal-list"); !strings.Contains(got, "Warning: Half of the credit is used") || !strings.Contains(got, "Now set: “Model”: “Large”") {
		t.Errorf("the journal says %s", got)
	}
	b.press(sel("agent-commands") + " summary")
	if got := b.text(sel("agent-commands")); !strings.Contains(got, "/init") || !strings.Contains(got, "commit or branch") {
		t.Errorf("its commands are %s", got)
	}
	at(b, "session")

	b.press("#agent-settings")
	b.until("the form is there", has(sel("agent-settings-form")))
	at(b, "settings")
	b.allow("status of 422")
	b.press(sel("agent-settings-form") + " .btn-primary") // nothing is chosen
	b.until("it is refused", has(sel("error-summary")))
	eye.post(http.StatusUnprocessableEntity, "/sessions/"+id+"/settings", map[string]string{"set:model": "=huge", "idempotency_key": "refused"})
	look(eye, "refused")
	pick(b, `select[name="set:model"]`, "=small")
	b.press(sel("agent-settings-form") + " .btn-primary")
	b.until("it is recorded", has(".notice.ok"))
	facts("From the next message on: small")
	at(b, "wanted")
	a.prompt(id, "Again.", "queue")
	eventually(t, "there was another turn", func() bool { return a.count(id, "turn.ended") == 2 })
	a.untilQuiet(id, "ready")
	b.visit("/sessions/" + id)
	if got := b.text("#facts"); strings.Contains(got, "From the next message on") || !strings.Contains(got, "Small") {
		t.Errorf("the facts are %s", got)
	}
}

// pick chooses a value of a list by keyboard.
func pick(b *tab, list, value string) {
	b.t.Helper()
	b.tabTo(list)
	for range 20 {
		if eval[string](b, has(list)+".value") == value {
			return
		}
		b.key(keyDown)
	}
	b.t.Fatalf("%s: the arrows never reach %s of %s", b.location(), value, list)
}
