package browser

import (
	"os"
	"path/filepath"
	"testing"
)

// A look at an agent that goes on shows what was found by itself: nothing but its part
// of the page is replaced, the focus stays, and it is said aloud.
func TestLive_ALookIsFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	up, gate := w.gate("up"), w.gate("gate")
	path := filepath.Join(w.dir, "slow.sh")
	script := "cd " + w.work + "\nread -r l\n" + up.Tell("$$") + "\n" + gate.Read() + "\nexit 3\n"
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.serve("--agent", "slow=sh "+path)
	b := w.tab(s.base)
	b.signIn()
	b.visit("/settings/agents/slow")
	eval[bool](b, "(fetch(document.querySelector("+quote(sel("look-form"))+").action, { method: 'POST', body: new URLSearchParams(new FormData(document.querySelector("+quote(sel("look-form"))+"))) }), true)")
	up.Wait()
	b.visit("/settings/agents/slow")
	if n := b.count(sel("look-running") + " .manual-only:not([hidden])"); b.count(sel("look-running")) != 1 || n != 0 {
		t.Fatalf("a look goes on: %d; to be reloaded by hand: %d", b.count(sel("look-running")), n)
	}
	eval[bool](b, "(document.same = true, document.querySelector('nav a').focus(), true)")
	gate.Open()
	b.within(recovery, "what was found shows", has(sel("look-form"))+" && ("+has(sel("look"))+" || "+has(sel("look-failed"))+") && !"+has(sel("look-running")))
	b.until("it is said", "document.querySelector('#say').textContent !== ''")
	if !eval[bool](b, "document.same === true && "+focusIn("nav")) {
		t.Error("the page was left, or the focus taken")
	}
}
