package browser

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// agentScript is an agent that speaks ACP, as a script for sh. It writes on as the
// test opens its gates, and asks before it edits.
const agentScript = `say() { echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":'"$1"'}}'; }
text() { say '{"sessionUpdate":"'"$1"'","content":{"type":"text","text":"'"$2"'"}}'; }
read -r l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"fake","version":"0.1"},"agentCapabilities":{"loadSession":true}}}'
read -r l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}'
read -r l
text agent_thought_chunk 'Where is it **rounded**? '
text agent_message_chunk 'It rounds *one*'
read -r x < gate; text agent_message_chunk ' *two*'
read -r x < gate; text agent_message_chunk ' *three*'; echo written > written
read -r x < gate; text agent_message_chunk '\\n\\n- in round.go\\n- in its test\\n'
old='package fx\\n\\nfunc Round(v float64) float64 {\\n\\treturn v\\n}\\n'
new='package fx\\n\\nimport \"math\"\\n\\nfunc Round(v float64) float64 {\\n\\treturn math.Round(v)\\n}\\n'
say '{"sessionUpdate":"tool_call","toolCallId":"t0","title":"Read round.go","kind":"read","status":"completed","locations":[{"path":"round.go"}],"content":[{"type":"content","content":{"type":"text","text":"package fx"}}]}'
say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"edit","kind":"edit","status":"pending"}'
say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","title":"Edit round.go","content":[{"type":"diff","path":"round.go","oldText":"'"$old"'","newText":"'"$new"'"}]}'
echo '{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1"},"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"},{"optionId":"no","kind":"reject_once","name":"No"}]}}'
read -r l
case $l in *'"optionId":"yes"'*) echo edited >> effects; say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}';; esac
text agent_message_chunk 'It is **done**.'
echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":1200,"outputTokens":340}}}'
read -r l
`

// withAgent are flags of a server that offers the script as the agent fake.
func (w *world) withAgent() []string {
	w.t.Helper()
	path := filepath.Join(w.dir, "agent.sh")
	if err := os.WriteFile(path, []byte(agentScript), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return []string{"--agent", "fake=sh " + path}
}

// askers are flags of a server that offers agents of these names, which speak ACP, and
// each of which asks before it runs a command.
func (w *world) askers(commands map[string]string) []string {
	w.t.Helper()
	var flags []string
	for name, command := range commands {
		input, err := json.Marshal(map[string]string{"command": command, "description": "Say it"})
		if err != nil {
			w.t.Fatal(err)
		}
		asks := filepath.Join(w.dir, name+".json")
		path := filepath.Join(w.dir, name+".sh")
		script := `read -r l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
read -r l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}'
read -r l; cat ` + asks + `
read -r l; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
read -r l
`
		request := `{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"Say it","kind":"execute","status":"pending","rawInput":` + string(input) + `},"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"},{"optionId":"no","kind":"reject_once","name":"No"}]}}` + "\n"
		if err := errors.Join(os.WriteFile(asks, []byte(request), 0o600), os.WriteFile(path, []byte(script), 0o600)); err != nil {
			w.t.Fatal(err)
		}
		flags = append(flags, "--agent", name+"=sh "+path)
	}
	return flags
}

// triedScript is an agent that says of itself what a page must bear with, and dies of a
// stop.
const triedScript = `read -r l
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"<b>tried</b>\u001b[31m \u202egnol","version":"'$(printf '%0200d' 0)'"},"agentCapabilities":{"promptCapabilities":{"image":true}},"authMethods":[{"id":"a","name":"Log in","description":"Run tried login"}]}}'
read -r l
echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1","configOptions":[{"id":"m","name":"Model","type":"select","currentValue":"one","options":[{"value":"one","name":"One"},{"value":"two","name":"<i>Two</i>"}]}]}}'
read -r l; read -r l
exit 3
`

// offers are flags of a server that offers an agent to look at, and one that is gone.
func (w *world) offers() []string {
	w.t.Helper()
	path := filepath.Join(w.dir, "tried.sh")
	if err := os.WriteFile(path, []byte(triedScript), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return []string{"--agent", "tried=sh " + path + " --api-key not-to-be-shown", "--agent", "gone=/nowhere/gone acp"}
}

// An agent's text grows in the page that is open, stands once after the page was
// loaded anew and after the server was killed in its midst, and becomes one entry
// with its marks; what it asks is allowed by keyboard.
//
// proves RDR-4 REC-10 ATT-4 PER-2 PRO-4
func TestLive_AgentWrites(t *testing.T) {
	t.Parallel()
	agentWrites(t, func(b *tab, stage string) {
		if stage == "writes" || stage == "asks" { // for axe, narrow pages and the walk by keyboard
			for _, fault := range look(b) {
				t.Errorf("when it %s: %s", stage, fault)
			}
			b.width(1280)
			b.theme("light")
			b.reload() // each fold was opened
			b.within(recovery, "the view is live", shows("your-view", "live"))
		}
	})
}

// agentWrites tells a test at each stage.
func agentWrites(t *testing.T, at func(b *tab, stage string)) {
	t.Helper()
	w := newWorld(t, "sqlite")
	s := w.serve(w.withAgent()...)
	gate, written := w.gate("gate"), w.gate("written")
	p, a := s.proxy(), s.api()
	byFake := func(body map[string]any) { body["agent"] = "fake" }
	l := &live{job: &job{b: w.tab(p.base), a: a}, t: t, w: w, s: s, p: p}
	l.id = a.mission("Round in one place.", asking, byFake, titled("Round in one place"))
	b := l.b
	b.allow("net::ERR_", "status of 50")
	b.signIn()
	b.visit(l.path())
	draft := sel("draft") + `[id^="draft-text-"]`
	once := func(when, text string) {
		t.Helper()
		b.within(recovery, "it says "+text+" "+when, "document.querySelector("+quote(draft)+")?.textContent === "+quote(text))
		if n := eval[int](b, "document.querySelector('#journal-list').textContent.split('It rounds').length - 1"); n != 1 {
			t.Errorf("%s the message stands %d times", when, n)
		}
		rows := b.rows(t)
		wantRun(t, rows, 1, rows[len(rows)-1])
	}
	once("at first", "It rounds *one*")
	if got := b.text("#reading-execution"); !strings.Contains(got, "Working: fake") {
		t.Errorf("the first reading is %q", got)
	}
	if got := b.text("#steer-hint"); !strings.Contains(got, "takes no text while it works") {
		t.Errorf("it is said of a steer %q", got)
	}
	// Pieces come without the parts of the page that the server draws, and those are not
	// asked for meanwhile.
	eval[any](b, `(() => { const was = fetch; window.fetch = (to, how) => how?.headers?.['HX-Request'] ? new Promise(() => {}) : was(to, how); return null; })()`)
	gate.Open()
	once("while it is open", "It rounds *one* *two*")
	b.within(recovery, "the age is the last entry's", `(() => {
		const age = document.querySelector('#reading-execution [data-last]'), row = [...document.querySelectorAll('#journal-list li[data-seq]')].at(-1);
		return Number(age.dataset.since) === Date.parse(row.dataset.at);
	})()`)
	l.wantSame("while it writes")
	at(b, "writes")
	b.reload()
	l.wantLive()
	once("after a reload", "It rounds *one* *two*")
	if got := b.text(`li:has(` + draft + `) h3`); !strings.Contains(got, "this is not complete") {
		t.Errorf("beside it stands %q", got)
	}

	s.kill9()
	gate.Open()
	if got := written.Wait(); got != "written" {
		t.Fatalf("the agent says %q", got)
	}
	s.start()
	l.wantLive()
	once("after the server was killed", "It rounds *one* *two* *three*")
	b.within(recovery, "it went on", says("#reading-execution", "the agent was not interrupted"))
	at(b, "outlived")
	b.reload()
	l.wantLive()
	once("after that and a reload", "It rounds *one* *two* *three*")

	gate.Open()
	l.reach("waiting")
	b.within(recovery, "the text is whole", "!"+has(draft)+" && document.querySelectorAll('#journal-list .prose.md em').length === 3")
	if got := b.text("#needs-list .card h3"); !strings.Contains(got, "write to a file") || !strings.Contains(got, "round.go") {
		t.Errorf("the card is headed %q", got)
	}
	if got := b.text("#needs-list " + sel("diff")); !strings.Contains(got, "return math.Round(v)") || b.count("#needs-list tr.a") != 3 {
		t.Errorf("the card shows %q", got)
	}
	l.wantSame("while it asks")
	at(b, "asks")
	w.wantEffects()
	b.press(fmt.Sprintf("#%s button[value=once]", a.pending(l.id)[0].ID))
	l.reach("ready")
	w.wantEffects("edited")
	a.untilQuiet(l.id, "ready")
	l.wantSame("at the end")
	l.wantRows()
	l.p.wantContiguous()
	if n := b.count(`#journal-list .prose.md`); n != 3 {
		t.Errorf("%d texts of the agent stand in the journal, want a thought and two messages", n)
	}
	if fold := sel("fold"); b.count(fold+":not([open]) .prose.md strong") != 1 || b.count(draft) != 0 {
		t.Error("the thought isn't folded away, or a draft is left")
	}
	eval[bool](b, `(document.querySelector('#bookkeeping').click(), true)`)
	if got := b.text("#journal-list"); !strings.Contains(got, "the agent asked nobody, and didn’t say when it began") || !strings.Contains(got, "1200 tokens in, 340 out") || !strings.Contains(got, "The agent is ready: fake 0.1") {
		t.Errorf("the journal says %s", got)
	}
	at(b, "done")
}
