package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// longScript is an agent that speaks ACP and, as the test opens its gate, says one word
// of a megabyte, and then thinks a long one.
const longScript = `say() { echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"'"$1"'","content":{"type":"text","text":"'"$2"'"}}}}'; }
word() { head -c "$1" /dev/zero | tr '\0' W; }
read -r l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
read -r l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}'
read -r l
say agent_message_chunk 'It begins. '
read -r x < gate; say agent_message_chunk "$(word 1000000)"; say agent_message_chunk ' and on'
read -r x < gate; say agent_thought_chunk "$(word 200000)"; say agent_thought_chunk ' it thought'
echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
read -r l
`

// A page that is open while an agent writes a megabyte shows the end of it at each
// moment, as one does that is opened then, and stays quick.
//
// proves JRN-6
func TestLive_LongMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	path := filepath.Join(w.dir, "long.sh")
	if err := os.WriteFile(path, []byte(longScript), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.serve("--agent", "long=sh "+path)
	gate := w.gate("gate")
	p, a := s.proxy(), s.api()
	l := &live{job: &job{b: w.tab(p.base), a: a}, t: t, w: w, s: s, p: p}
	l.id = a.mission("Write.", func(body map[string]any) { body["agent"] = "long" })
	b := l.b
	b.signIn()
	b.visit(l.path())
	l.wantLive()
	draft := has(sel("draft"))
	b.within(recovery, "it writes", draft+"?.textContent === 'It begins. '")
	eval[bool](b, `(() => {
		window.most = {length: 0, nodes: 0};
		new MutationObserver(() => {
			for (const el of document.querySelectorAll('[data-testid=draft]')) {
				most.length = Math.max(most.length, el.textContent.length);
				most.nodes = Math.max(most.nodes, el.childNodes.length);
			}
		}).observe(document.querySelector('#journal-list'), {childList: true, characterData: true, subtree: true});
		return true;
	})()`)
	gate.Open()
	b.within(recovery, "it has written", draft+"?.textContent.endsWith('W and on')")
	if got := eval[map[string]int](b, "most"); got["length"] != 16<<10 || got["nodes"] > 3 {
		t.Errorf("the draft had up to %v", got)
	}
	if !strings.Contains(b.text("#journal-list"), "What stands before this") {
		t.Error("it isn't said that the draft is the end only")
	}
	if got := eval[string](b, "getComputedStyle("+draft+").fontKerning"); got != "none" {
		t.Errorf("a long word is laid out with kerning %s, which takes seconds", got)
	}
	l.wantSame("while it writes")
	gate.Open()
	a.untilQuiet(l.id, "ready")
	l.wantSame("at the end")
	l.wantRows()
	if got := eval[map[string]int](b, "most"); got["length"] != 16<<10 {
		t.Errorf("the draft had up to %v", got)
	}
}
