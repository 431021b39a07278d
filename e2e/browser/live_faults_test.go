package browser

import (
	"testing"
	"time"

	"holdfast/e2e/rig"

	"github.com/chromedp/cdproto/page"
)

// While nobody answers, the page says since when, and of the session only what it
// last knew.
// proves RDR-5 RDR-4
func TestLive_AServerThatAnswers503(t *testing.T) {
	t.Parallel()
	l, gate := atGate(t)
	l.p.answer503()
	lasting(6 * time.Second)
	l.b.within(patience, "the view is not live", "!"+shows("your-view", "live"))
	gate.Open() // the work goes on unseen
	l.a.untilQuiet(l.id, "ready")
	l.wantNeverStopped()
	l.p.pass()
	l.wantLive()
	l.wantRows()
	l.p.wantContiguous()
}

// Connections that are refused: the same, and one can try at once.
// proves RDR-5 RDR-4
func TestLive_AServerThatIsGone(t *testing.T) {
	t.Parallel()
	l, gate := atGate(t)
	l.p.drop()
	l.b.within(2*patience, "the view is disconnected", shows("your-view", "disconnected"))
	l.b.until("what ran is last known to run", says(execution, "Running")+" && "+says(execution, "last known"))
	l.b.until("it says since when", says(view, "Since"))
	l.b.until("it says that it asks, while it does", says(view, "Asking the server."))
	l.b.until("it says when it tries again, while it waits", says(view, "Trying again in"))
	l.b.until("one hears of it", says("#say", "Connection lost"))
	gate.Open()
	l.a.untilQuiet(l.id, "ready")
	l.wantNeverStopped()
	l.b.tabTo(sel("try-now"))
	l.p.pass()
	l.b.key(keyEnter)
	l.wantLive()
	l.wantRows()
	l.b.until("one hears of it", says("#say", "Connected"))
	l.p.wantContiguous()
}

// A connection that is dead without a word: no packet comes, no socket closes.
// proves RDR-5 RDR-4
func TestLive_AHalfOpenConnection(t *testing.T) {
	t.Parallel()
	l, gate := atGate(t)
	l.p.freeze()
	l.b.within(patience, "the silence is noticed", "!"+shows("your-view", "live"))
	gate.Open()
	l.a.untilQuiet(l.id, "ready")
	l.wantNeverStopped()
	l.p.pass()
	l.wantLive()
	l.wantRows()
	l.p.wantContiguous()
}

// A hidden page gives its stream up, and has everything when it is shown.
// proves RDR-4
func TestLive_AHiddenTab(t *testing.T) {
	t.Parallel()
	l, gate := atGate(t)
	show := l.b.hide()
	l.p.until("a hidden page holds no stream", func(all []*stream) bool {
		for _, s := range all {
			if !s.ended {
				return false
			}
		}
		return len(all) > 0
	})
	gate.Open()
	l.a.untilQuiet(l.id, "ready")
	show()
	l.wantLive()
	l.wantRows()
	l.p.wantContiguous()
}

// A page that slept while its session finished.
// proves RDR-4 RDR-5
func TestLive_Sleep(t *testing.T) {
	t.Parallel()
	l, gate := atGate(t)
	l.b.lifecycle(page.SetWebLifecycleStateStateFrozen)
	l.p.freeze() // the network sleeps too, and what was open is dead afterwards
	gate.Open()
	l.a.untilQuiet(l.id, "ready")
	l.p.pass()
	l.b.lifecycle(page.SetWebLifecycleStateStateActive)
	l.wantLive()
	l.wantRows()
	l.b.until("it is ready", shows("execution", "ready"))
	l.p.wantContiguous()
}

// atGate watches a session that runs until the gate opens, and then makes some
// more entries.
func atGate(t *testing.T) (*live, *rig.Gate) {
	t.Helper()
	l := watch(t, "")
	l.b.allow("net::ERR_", "status of 503")
	up, gate := l.w.gate("up"), l.w.gate("gate")
	l.a.prompt(l.id, steps(up.Tell("on")+"; "+gate.Read())+many(10), "queue")
	up.Wait()
	l.b.within(recovery, "the page says that it runs", shows("execution", "running")+" && "+says(execution, "Running")) // before, it is starting
	l.b.record("execution", execution)
	return l, gate
}
