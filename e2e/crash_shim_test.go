//go:build crashpoints

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shimPoint is a labelled place in the shim at which it is killed with -9, and
// what that leaves of its call.
type shimPoint struct {
	label  string
	server bool   // the server is killed, too, once the shim is dead
	state  string // of the call
	acted  bool   // the command has had its effect
}

var shimPoints = []shimPoint{
	{label: "shim.started", state: "failed"}, // it could not be started: nothing was dispatched
	{label: "shim.before_gate", state: "unknown"},
	{label: "shim.after_gate", state: "unknown"},
	{label: "shim.before_record", state: "unknown", acted: true},
	{label: "shim.after_record", state: "succeeded", acted: true},
	{label: "shim.before_gate", server: true, state: "unknown"},
	{label: "shim.before_record", server: true, state: "unknown", acted: true},
	{label: "shim.after_record", server: true, state: "succeeded", acted: true},
}

// stdinPoints are reached by agents alone, which have a stdin; what is left of one
// that dies there.
var stdinPoints = map[string]string{
	"shim.stdin_logged:1": "failed", "shim.stdin_forwarded:2": "failed",
	"shim.stdin_logged:3": "uncertain", "shim.stdin_forwarded:3": "uncertain",
}

// The shim of a command is killed at each labelled point, with or without its
// server. Whatever nobody recorded is asked, and nothing acts twice.
// proves CAL-4 CAL-5 CAL-7 REC-4
func TestCrash_Shims(t *testing.T) {
	t.Parallel()
	for _, pt := range shimPoints {
		name := pt.label
		if pt.server {
			name += " with its server"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(_ *testing.T, w *world) { killShimAt(w, pt) })
		})
	}
}

func killShimAt(w *world, pt shimPoint) {
	t := w.t
	reached := filepath.Join(w.dir, "reached")
	s := w.serve(flags(quickest...), env("HOLDFAST_CRASH="+pt.label, "HOLDFAST_CRASH_REACHED="+reached))
	gate := w.gate("gate")
	id := s.mission(steps(effect("one") + "; " + gate.Tell("done")))
	if pt.acted {
		gate.Wait()
	}
	eventually(t, "the shim has died there", func() bool {
		b, err := os.ReadFile(reached)
		return err == nil && strings.Contains(string(b), pt.label) && len(s.shims()) == 0
	})
	if pt.server {
		s.kill9()
	} else {
		s.untilQuiet(id, "uncertain", "failed", "ready")
		s.sigterm()
	}
	s.env = nil
	s.restart()
	s.untilQuiet(id, "uncertain", "failed", "ready")
	one := s.calls(id)[0]
	if one.State != pt.state {
		t.Errorf("the call is %s, want %s\n%s", one.State, pt.state, s.events(id).dump())
	}
	if !pt.acted && pt.label != "shim.after_gate" { // past its gate it may have
		w.wantEffect("one", 0)
	}
	finishAfterShim(s, id, one)
	if o := w.run("", "verify"); o.code != 0 {
		t.Errorf("holdfast verify: exit %d\n%s%s", o.code, o.out, o.err)
	}
}

// finishAfterShim has the person do what is left to do: in the end it has
// happened once.
func finishAfterShim(s *server, id string, one call) {
	t, w := s.w.t, s.w
	switch one.State {
	case "failed":
		s.resume(id).want(t, http.StatusAccepted)
	case "unknown":
		outcome := "did_not_happen"
		if w.effects()["one"] > 0 {
			outcome = "happened"
		}
		s.resolve(one.ID, outcome, "continue").want(t, http.StatusOK)
		if outcome == "did_not_happen" {
			s.untilState(id, "waiting")
			for _, r := range s.pending(id) {
				s.decide(r.ID, "once", "").want(t, http.StatusOK)
			}
		}
	}
	s.untilQuiet(id, "ready")
	w.wantEffect("one", 1)
}
