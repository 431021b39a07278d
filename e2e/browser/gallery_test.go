package browser

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// gallery is a server with a session in each state that can be brought about by
// hand.
type gallery struct {
	w        *world
	s        *server
	newcomer string            // the address of a user without sessions
	ids      map[string]string // of sessions, by state
	request  string            // one that waits
	long     string            // one that waits, too long for a card
	answered string            // one that was answered
	output   string            // a call with long output
	silent   string            // a call without output
	lost     string            // a call whose outcome isn't known
}

// newGallery makes one. Three sessions run for ever, so that a fourth is queued.
func newGallery(t *testing.T) *gallery {
	t.Helper()
	w := newWorld(t, "sqlite")
	g := &gallery{w: w, s: w.serve("--max-running", "3"), newcomer: "new-" + w.email, ids: map[string]string{}}
	w.mustRun(password+"\n", "user", "add", g.newcomer, "--password-stdin")
	a := g.s.api()
	up, gate := w.gate("up"), w.gate("gate")
	block := up.tell("$$") + "; " + gate.read()

	g.ids["uncertain"] = a.mission("# Rotate the certificates\n\n" + steps("echo half of it is done; "+block))
	pid := up.wait()
	g.s.kill9()
	killCommand(t, pid)
	g.s.start()
	a.untilQuiet(g.ids["uncertain"], "uncertain")
	g.lost = a.calls(g.ids["uncertain"])[0].ID

	many := "for i in $(seq 1 400); do echo \"line $i of a long listing of the disk\"; done"
	g.ids["ready"] = a.mission("# Look at the disk\n\nWith a <b>title</b> and more.\n\n" + steps(many, "true", strings.Repeat("echo said >&2\n", 3)))
	a.untilQuiet(g.ids["ready"], "ready")
	g.output, g.silent = a.calls(g.ids["ready"])[0].ID, a.calls(g.ids["ready"])[1].ID
	for i := range 12 { // more entries than one window shows
		a.prompt(g.ids["ready"], fmt.Sprintf("## Part %d\n\n", i)+steps("echo part"), "queue")
	}
	a.untilQuiet(g.ids["ready"], "ready")

	g.ids["closed"] = a.mission(steps("true"))
	a.untilQuiet(g.ids["closed"], "ready")
	a.archive(g.ids["closed"])
	g.ids["failed"] = a.mission("# Count the beans\n\n" + steps("echo beans; exit 3"))
	a.untilQuiet(g.ids["failed"], "failed")
	g.ids["limit"] = a.mission(steps("false", "true", "true"))
	a.untilQuiet(g.ids["limit"], "failed")
	a.send(http.MethodPost, "/api/v1/sessions/"+g.ids["limit"]+"/continuation", map[string]any{"limits": map[string]int{"steps": 1}}, nil)
	a.untilQuiet(g.ids["limit"], "limit_reached")
	g.ids["idle"] = a.mission("", titled("Nothing was asked yet"))

	g.ids["stopped"] = a.mission(steps(block))
	up.wait()
	a.prompt(g.ids["stopped"], "When that is done, tell me.\n\n"+steps("true"), "queue")
	a.prompt(g.ids["stopped"], "And look at the logs too.", "steer")
	a.interrupt(g.ids["stopped"], "now")
	a.untilQuiet(g.ids["stopped"], "stopped")

	g.ids["waiting"] = a.mission("# Merge the tables\n\n"+steps("true", "echo merged"), asking)
	a.until(g.ids["waiting"], "waiting")
	g.answered = a.pending(g.ids["waiting"])[0].ID
	a.decide(g.answered, "once")
	eventually(t, "the second step asks", func() bool {
		open := a.pending(g.ids["waiting"])
		return len(open) > 0 && open[0].ID != g.answered
	})
	g.request = a.pending(g.ids["waiting"])[0].ID
	g.ids["long"] = a.mission("# Write a report\n\n"+steps(strings.Repeat("echo \"one of many lines\"\n", 80)+"echo 'abc\u202edef'"), asking)
	a.until(g.ids["long"], "waiting")
	g.long = a.pending(g.ids["long"])[0].ID

	g.ids["stopping"] = a.mission(steps(block))
	up.wait()
	a.interrupt(g.ids["stopping"], "boundary")
	a.until(g.ids["stopping"], "stopping")
	g.ids["running"] = a.mission("# Validate the webhooks\n\n" + steps("echo begun; "+block))
	up.wait()
	a.prompt(g.ids["running"], "Then the other ones.", "queue")
	a.mission(steps(block))
	up.wait()
	g.ids["queued"] = a.mission(steps("true"))
	a.until(g.ids["queued"], "queued")
	return g
}

// id names a session of the gallery.
func (g *gallery) id(t *testing.T, name string) string {
	t.Helper()
	if g.ids[name] == "" {
		t.Fatalf("the gallery has no session %q", name)
	}
	return g.ids[name]
}
