package browser

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// snapshot is what a session's page shows, but for what only the time changes.
const snapshot = `(() => {
	const bare = (s) => s.trim().replace(/\s+/g, ' ').replace(/\b(\d+ (s|min|h|d) ?)+ago\b/g, 'ago').replace(/\b\d+ (s|min|h|d)\b/g, 'some time').replace(/Lease ends [0-9:]+/, 'Lease ends');
	const text = (css) => bare(document.querySelector(css)?.innerText ?? 'none');
	const out = {title: document.title, icon: document.querySelector('#favicon').getAttribute('href')};
	for (const li of document.querySelectorAll('[data-testid="journal"] > li[data-seq]'))
		out['entry ' + li.dataset.seq] = li.hidden ? 'hidden' : li.dataset.kind + ': ' + bare(li.innerText);
	for (const card of document.querySelector('#needs-list').children) out['needs ' + card.id] = bare(card.innerText);
	for (const id of ['reading-execution', 'reading-needs', 'register-act', 'queue-box', 'deliveries', 'plan', 'nav-count', 'facts', 'latest', 'entry-count'])
		out[id] = text('#' + id);
	return out;
})()`

// wantSame waits until a page that was watched all the time shows what one shows
// that is opened now.
func (l *live) wantSame(when string) {
	l.t.Helper()
	l.wantLive()
	if l.opened == nil {
		l.opened = l.b.sibling()
		l.opened.base = l.s.base // not through the proxy
		l.opened.allow("net::ERR_")
	}
	fresh := l.opened
	fresh.visit(l.path())
	fresh.until("the view is live", shows("your-view", "live"))
	var differ []string
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for late := time.After(recovery); ; {
		if differ = differences(eval[map[string]string](l.b, snapshot), eval[map[string]string](fresh, snapshot)); len(differ) == 0 {
			return
		}
		select {
		case <-look.C:
			continue
		case <-late:
		}
		break
	}
	for _, d := range differ {
		l.t.Errorf("%s the page that was watched differs from one that is opened: %s", when, d)
	}
}

// differences tells the parts in which a page that was watched differs from one
// that was opened just now. Entries before the newest window are only in the first.
func differences(watched, opened map[string]string) (out []string) {
	names := maps.Clone(opened)
	maps.Copy(names, watched)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, there := opened[name]
		if watched[name] == was || !there && strings.HasPrefix(name, "entry ") {
			continue
		}
		out = append(out, name+":\n\twatched "+watched[name]+"\n\topened  "+was)
	}
	return out
}

// A page that is watched through a whole mission, with a decision, a steer, a
// failure, a loss and its reconciling, shows at each rest what one shows that is
// opened then.
// proves RDR-1 RDR-4
func TestLive_SameAsOpenedNow(t *testing.T) {
	t.Parallel()
	l := watch(t, "# The job\n\n"+steps("echo one", "echo two"), asking)
	l.b.allow("net::ERR_")
	up, gate := l.w.gate("up"), l.w.gate("gate")
	// drive allows whatever asks, until something holds.
	drive := func(what string, ok func() bool) {
		eventually(t, what, func() bool {
			for _, r := range l.a.pending(l.id) {
				l.a.decide(r.ID, "once")
			}
			return ok()
		})
	}
	l.reach("waiting")
	l.wantSame("while it waits")
	l.a.prompt(l.id, steps("echo steered; exit 3"), "steer")
	l.a.prompt(l.id, steps(up.Tell("$$")+"; echo begun; "+gate.Read()), "queue")
	l.a.prompt(l.id, "Never mind.", "queue")
	l.wantSame("with messages")
	l.withdraw("Never mind.", 2)
	drive("a step has failed", func() bool { return l.a.session(l.id).State == "failed" })
	l.a.untilQuiet(l.id, "failed")
	l.reach("failed")
	l.wantSame("when it has failed")
	l.a.send("POST", "/api/v1/sessions/"+l.id+"/continuation", nil, nil)
	drive("the last message is at work", func() bool {
		all := l.a.calls(l.id)
		return len(all) == 4 && all[3].State == "dispatched"
	})
	up.Wait()
	l.reach("running")
	l.wantSame("while it runs")
	l.s.powerCut()
	l.s.start()
	l.reach("uncertain")
	l.wantSame("when an outcome is not known")
	call := l.a.calls(l.id)
	l.a.send("POST", "/api/v1/calls/"+call[len(call)-1].ID+"/resolution", map[string]string{"outcome": "in_part", "evidence": "It says begun.", "then": "continue"}, nil)
	l.reach("ready")
	l.a.untilQuiet(l.id, "ready")
	l.wantSame("at the end")
	l.wantRows()
	l.p.wantContiguous()
}

// What a command writes grows in the row of its start while it runs, and stands in
// the row of its end afterwards.
// proves JRN-6
func TestLive_OutputGrows(t *testing.T) {
	t.Parallel()
	l := watch(t, "")
	gate := l.w.gate("gate")
	l.a.prompt(l.id, steps("echo word one; "+gate.Read()+"; echo word two; "+gate.Read()+"; echo word three; "+gate.Read()), "queue")
	const start = `[data-testid="journal"] > li[data-kind="call.dispatched"]`
	const end = `[data-testid="journal"] > li[data-kind="call.settled"]`
	for _, word := range []string{"word one", "word two", "word three"} {
		l.b.within(recovery, "it shows "+word, says(start+` [data-testid="output"]`, word))
		if word == "word two" {
			l.wantSame("while it runs")
		}
		gate.Open()
	}
	l.a.untilQuiet(l.id, "ready")
	l.b.within(recovery, "the output is at its end", says(end+` [data-testid="output-last"]`, "word one\nword two\nword three"))
	l.b.until("the row of its start has none", "!"+has(start+` [data-testid="output"]`))
	if n := l.b.count(sel("output")); n != 1 {
		t.Errorf("the output stands at %d places", n)
	}
	l.wantSame("at the end")
}
