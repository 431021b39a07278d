//go:build agents

package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Claude Code without a key answers the first message with an error, and says more
// after it. The session waits for its person, who stores the key; then the message is
// sent again, and the model is asked once. (opencode has its key in its settings.)
// proves OWN-3 ATT-1 REC-11
func TestReal_NeedsASignIn(t *testing.T) {
	t.Parallel()
	claude := reals[0]
	t.Run(claude.Name+"/sqlite", func(t *testing.T) {
		r := newRealWorld(t, claude, "sqlite")
		const key = "ANTHROPIC_API_KEY"
		r.env = slices.DeleteFunc(r.env, func(e string) bool { return strings.HasPrefix(e, key+"=") })
		s := r.serve()
		id := s.mission("SAY(signed in)", r.a.by)
		s.untilQuiet(id, "blocked")
		j := s.events(id)
		if e := j.of("session.blocked"); len(e) != 1 || e[0].str("cause") != "sign_in" {
			t.Errorf("it isn't blocked by a sign-in:\n%s", j.dump())
		}
		wantCounts(t, j, map[string]int{"attempt.unknown": 0, "step.recovered": 0, "turn.ended": 0})
		r.m.want(0)
		r.signedIn(s).store(key, "claude", "no-key-that-is-one")
		s.resume(id).want(t, http.StatusAccepted)
		s.untilQuiet(id, "ready")
		wantSaid(r.world, s.events(id), "signed in")
		r.m.want(1)
	})
}
