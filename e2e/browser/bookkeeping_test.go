package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// briskScript is an agent that does one thing and says one, with all the words around
// it that real agents have.
const briskScript = `say() { echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":'"$1"'}}'; }
read -r l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"brisk","version":"0.1"},"agentCapabilities":{"loadSession":true}}}'
read -r l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1","configOptions":[{"id":"model","name":"Model","category":"model","type":"select","currentValue":"one","options":[{"value":"one","name":"One"},{"value":"two","name":"Two"}]}]}}'
say '{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"init","description":"Make a file"}]}'
read -r l
say '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"It is rounded in one place."}}'
say '{"sessionUpdate":"tool_call","toolCallId":"t0","title":"Read round.go","kind":"read","status":"completed","locations":[{"path":"round.go"}],"content":[{"type":"content","content":{"type":"text","text":"package fx"}}]}'
say '{"sessionUpdate":"usage_update","used":100,"size":1000}'
echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
read -r l
`

// rendered counts the rows of the journal that can be seen, or can't.
const rendered = `[...document.querySelectorAll('#journal-list > li[data-seq]:not([hidden])')].filter((li) => li.checkVisibility())`

// Of a run of bookkeeping the first row stands; all of it stands where that is asked
// for, on paper, and where a link leads to it. A page that was watched folds like one
// that is opened.
//
// proves RDR-4
func TestLive_BookkeepingFolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	path := filepath.Join(w.dir, "brisk.sh")
	if err := os.WriteFile(path, []byte(briskScript), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.serve("--agent", "brisk=sh "+path)
	p, a := s.proxy(), s.api()
	l := &live{job: &job{b: w.tab(p.base), a: a}, t: t, w: w, s: s, p: p}
	l.id = a.mission("Round in one place.", func(body map[string]any) { body["agent"] = "brisk" }, titled("Round in one place"))
	b := l.b
	b.signIn()
	b.visit(l.path())
	l.reach("ready")
	l.a.untilQuiet(l.id, "ready")
	l.wantSame("at the end")

	all := eval[int](b, `document.querySelectorAll('#journal-list > li[data-seq]:not([hidden])').length`)
	folded := eval[int](b, rendered+".length")
	short := eval[int](b, "document.querySelector('#journal-list').offsetHeight")
	const inRun = `li.bookkeeping + li.bookkeeping`
	if hidden := b.count("#journal-list > " + inRun); hidden < 4 || all-folded != hidden {
		t.Errorf("%d of %d rows stand, and %d are of a run", folded, all, hidden)
	}
	if n := eval[int](b, rendered+".filter((li) => !li.matches('.bookkeeping')).length"); n != b.count("#journal-list > li[data-seq]:not([hidden]):not(.bookkeeping)") {
		t.Errorf("only %d rows stand that are no bookkeeping", n)
	}
	eval[bool](b, `(document.querySelector('#bookkeeping').focus(), true)`)
	b.key(" ")
	b.until("all rows stand", rendered+".length === "+fmt.Sprint(all))
	long := eval[int](b, "document.querySelector('#journal-list').offsetHeight")
	t.Logf("%d of %d rows stand; the journal is %d px high, and %d with all of them", folded, all, short, long)
	b.key(" ")
	b.until("they are folded again", rendered+".length === "+fmt.Sprint(folded))

	last := eval[string](b, `[...document.querySelectorAll('#journal-list > `+inRun+`')].at(-1).id`)
	b.visit(l.path() + "#" + last)
	b.until("a link leads to one of them", `document.getElementById('`+last+`').checkVisibility()`)
	b.call("look at paper", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
		return err
	})
	b.until("all are on paper", rendered+".length === "+fmt.Sprint(all))
}
