package e2e

import (
	"net/http"
	"testing"
)

// proves PER-1 PER-2 PER-4 PER-5 PER-6 REC-7
func TestE2E_ADecisionOutlivesTheServer(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		id := s.mission(steps(effect("asked")), asking)
		if one := s.untilQuiet(id, "waiting"); one.PendingPermissions == 0 {
			t.Error("it waits, and nothing is pending")
		}
		before := s.pending(id)
		w.wantEffect("asked", 0)
		s.kill9()
		s.restart()
		after := s.pending(id)
		if len(after) == 0 || len(after) != len(before) || after[0].ID != before[0].ID || after[0].Digest != before[0].Digest {
			t.Fatalf("after the restart the requests are %+v, were %+v", after, before)
		}
		// A new message never answers a request.
		s.prompt(id, "yes, do it", "steer")
		s.prompt(id, steps(effect("later")), "queue")
		s.kill9()
		s.restart()
		if n := len(s.pending(id)); n != len(before) {
			t.Errorf("%d requests are pending after a message, want %d", n, len(before))
		}
		w.wantEffect("asked", 0)

		for _, r := range after {
			done := decode[request](t, s.decide(r.ID, "once", "looks right").want(t, http.StatusOK))
			if done.State != "approved_once" || done.Answered == nil || done.Answered.Reply != "once" {
				t.Errorf("the answered request is %+v", done)
			}
		}
		who := s.me()
		doc := s.decide(after[0].ID, "reject", "").problem(t, http.StatusConflict, "already-answered")
		first, ok := doc["answered"].(map[string]any)
		if !ok || first["reply"] != "once" || first["by"] != who || first["at"] == "" || first["message"] != "looks right" {
			t.Errorf("the second answer is told %v; it must say who, when and what (by %s)", doc, who)
		}
		s.untilKind(id, "call.settled", 1)
		w.wantEffect("asked", 1)
		j := s.events(id)
		wantCounts(t, j, map[string]int{"permission.asked": len(before) + j.countAfter("permission.asked", "call.settled"), "permission.replied": len(after), "step.recovered": 0})
		if n := j.count("turn.started"); n > 2 {
			t.Errorf("%d turns: the first goes on after the answer", n)
		}
		s.untilQuiet(id, "waiting", "failed", "ready")
	})
}

// A rejection without a word ends the turn; with one only its call is refused.
// proves PER-3 PRO-5
func TestE2E_ARejectionEndsTheTurnOrTheCall(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		silent := s.mission(steps(effect("a"), effect("b")), asking)
		s.untilQuiet(silent, "waiting")
		s.decide(s.pending(silent)[0].ID, "reject", "").want(t, http.StatusOK)
		s.untilQuiet(silent, "stopped")
		ended := s.events(silent).of("turn.ended")
		if len(ended) != 1 || ended[0].str("outcome") != "stopped" || ended[0].str("reason") != "rejected" {
			t.Errorf("turn.ended %+v, want stopped, rejected", ended)
		}
		if n := len(s.pending(silent)); n != 0 {
			t.Errorf("%d requests of an ended turn can still be answered", n)
		}

		told := s.mission("```sh on-error=continue\n"+effect("c")+"\n```\n"+steps("true"), asking)
		s.untilQuiet(told, "waiting")
		s.decide(s.pending(told)[0].ID, "reject", "use another file").want(t, http.StatusOK)
		s.until(told, "the call is refused", func(j journal) bool {
			return j.at("call.settled", func(e event) bool { return e.str("state") == "refused" }) >= 0
		})
		s.until(told, "the next step asks", func(journal) bool { return len(s.pending(told)) == 1 })
		s.untilQuiet(told, "waiting")
		for _, name := range []string{"a", "b", "c"} {
			w.wantEffect(name, 0)
		}
	})
}

// A rule that denies asks nobody.
// proves PER-1
func TestE2E_ADenyRefusesWithoutAsking(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve()
		id := s.mission(steps(effect("denied")), func(body map[string]any) {
			body["rules"] = append(append([]map[string]string{}, allowAll...), map[string]string{"permission": "shell", "pattern": "echo *", "action": "deny"})
		})
		s.untilQuiet(id, "failed")
		wantCounts(t, s.events(id), map[string]int{"permission.asked": 0, "call.dispatched": 0})
		w.wantEffect("denied", 0)
	})
}

// me gives the id of the user whose token this is, as events name it.
func (c *client) me() string {
	c.w.t.Helper()
	var id string
	if err := c.w.sql().QueryRow(c.w.db.Rebind("SELECT id FROM users WHERE email = ?"), c.w.email).Scan(&id); err != nil {
		c.w.t.Fatal(err)
	}
	return id
}

// countAfter counts the events of a kind after the first of another.
func (j journal) countAfter(kind, other string) int {
	i := j.at(other, nil)
	if i < 0 {
		return 0
	}
	return j[i:].count(kind)
}
