package browser

import (
	"testing"

	"holdfast/e2e/seed"
)

// gallery is a server on a folder that the package seed has filled: a session in
// each state, and one for each thing that is hard to show.
type gallery struct {
	w        *world
	s        *server
	a        *api
	r        *seed.Result
	newcomer string // the address of a user without sessions
}

// newGallery makes one, with the large sessions.
func newGallery(t *testing.T) *gallery {
	t.Helper()
	w, r := newSeededWorld(t)
	g := &gallery{w: w, r: r, newcomer: "new-" + w.email}
	w.mustRun(w.pass+"\n", "user", "add", g.newcomer, "--password-stdin")
	w.flags = append(w.flags, w.offers()...)
	g.s = w.serve()
	g.a = g.s.api()
	g.a.until(r.ID("running"), "running") // the lost execution was taken up
	return g
}

// session is the path of a session of the gallery.
func (g *gallery) session(t *testing.T, name string) string {
	t.Helper()
	if g.r.ID(name) == "" {
		t.Fatalf("the gallery has no session %q", name)
	}
	return "/sessions/" + g.r.ID(name)
}

// call is the path of a session's first call that is in a state; "": of its n-th one.
func (g *gallery) call(t *testing.T, name, state string, n int) string {
	t.Helper()
	for i, c := range g.a.calls(g.r.ID(name)) {
		if c.State == state || state == "" && i == n {
			return "/calls/" + c.ID
		}
	}
	t.Fatalf("the session %s has no such call: %q %d", name, state, n)
	return ""
}

// request is the path of the n-th request of a session that waits for an answer.
func (g *gallery) request(t *testing.T, name string, n int) string {
	t.Helper()
	open := g.a.pending(g.r.ID(name))
	if len(open) <= n {
		t.Fatalf("the session %s has %d requests that wait", name, len(open))
	}
	return "/permissions/" + open[n].ID
}

// The calls of ready_output, in their order.
const (
	longLine = iota + 1
	cutCharacter
	nul
	brokenColours
	markup
	direction
	bothStreams
	noOutput
)
