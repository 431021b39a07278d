package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// forgetful is an agent that is asked to load a session and can't, and else answers
// its first prompt and ends once it is told to.
const forgetful = `read -r l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}'
read -r l
case $l in *session/load*) echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"service failure"}}'; read -r l; exit;; esac
echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s'$$'"}}'
read -r l; printf '%s\n' "$l" >> heard
echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s'$$'","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"The totals are right.\\n[End of the summary.]"}}}}'
echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
read -r l
`

// A session that its agent has forgotten says so, shows what the agent would be told,
// and is started anew by keyboard; the agent is told just that.
//
// proves PRO-6 RDR-4
func TestLive_StartsAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	path := filepath.Join(w.dir, "agent.sh")
	if err := os.WriteFile(path, []byte(forgetful), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.serve("--agent", "fake=sh "+path)
	a := s.api()
	b := w.tab(s.base)
	id := a.mission("Make the totals right.", asking, func(body map[string]any) { body["agent"] = "fake" }, titled("Make the totals right"))
	b.signIn()
	b.visit("/sessions/" + id)
	b.within(recovery, "it has answered", "document.querySelector('#reading-execution')?.textContent.includes('Finished its turn')")
	s.powerCut() // of which an agent that rests is gone
	s.start()
	b.allow("net::ERR_", "status of 50")
	a.prompt(id, "Now the docs.", "queue")
	b.within(recovery, "it says that the agent has forgotten it", has(sel("forgotten")))
	b.reload()
	b.within(recovery, "the view is live", shows("your-view", "live"))
	for _, fault := range look(b) {
		t.Error(fault)
	}
	b.width(1280)
	b.theme("light")
	b.reload()
	b.press(sel("summary") + " > summary")
	shown := b.text(sel("summary") + " pre")
	if !strings.Contains(shown, "| Make the totals right.") || strings.Contains(shown, "Now the docs") || !strings.Contains(shown, "| [End of the summary.]") {
		t.Errorf("the summary is %q", shown)
	}
	b.tabTo("#start-anew")
	b.key("\r")
	b.within(recovery, "it has answered again", "document.querySelector('#reading-execution')?.textContent.includes('Finished its turn')")
	if got := b.text("#journal-list"); !strings.Contains(got, "begins with a summary from the journal") || strings.Count(got, "Now the docs.") == 0 {
		t.Errorf("the journal says %q", got)
	}
	heard, err := os.ReadFile(filepath.Join(w.work, "heard"))
	if err != nil || strings.Count(string(heard), "A summary by the server") != 1 || strings.Count(string(heard), "\n") != 2 {
		t.Errorf("the agent heard %q, %v", heard, err)
	}
	b.reload()
	b.within(recovery, "the view is live", shows("your-view", "live"))
	for _, fault := range look(b) {
		t.Error(fault)
	}
}
