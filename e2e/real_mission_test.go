//go:build agents

package e2e

import (
	"slices"
	"strings"
	"testing"
)

// What a page has of the agent's texts, and of what it asks a person.
const (
	spoken = `[data-kind^="message."]`
	card   = `[data-testid="decision-card"]`
)

// A mission with all that agents do for people: a text that streams, a command that
// is allowed, an edit that is shown and rejected with a reason, and another turn. The
// person sees it happen in the page, and answers there.
// proves PRO-6 PER-2 ATT-1 JRN-5 CAL-1 RDR-4
func TestReal_AMission(t *testing.T) {
	eachReal(t, onAll, func(r *realWorld) {
		s := r.serve()
		b := r.browser(s)
		b.signIn(r.email)
		id := s.mission(lines("SAY(one ä )", "WAIT(text)", "SAY(two)", "RUN(echo ran >> effects; echo out)", "SAY(It ran.)",
			"EDIT("+r.work+"/note.txt, hello there)", "SAY(It was rejected.)"), r.a.by, asking)
		page := b.watch(id)
		r.m.reached("text")
		r.untilStreams(s, id, "one ä ")
		page.until(spoken, "one ä")
		page.notYet(spoken, "two")
		r.m.GoOn("text")

		asked := r.untilAsked(s, id)
		page.until(spoken, "two")
		page.until(card, "echo ran >> effects; echo out", "Allow once", "Deny")
		r.wantEffect("ran", 0)
		for _, one := range asked { // each command of the line
			b.answers(id, one.ID, "once", "")
		}

		s.untilKind(id, "call.proposed", 2)
		asked = r.untilAsked(s, id)
		if len(asked) != 1 {
			r.t.Fatalf("it asks %+v", asked)
		}
		shown := s.events(id).of("permission.asked")
		if body := string(shown[len(shown)-1].Data); !strings.Contains(body, "note.txt") || !strings.Contains(body, "+ hello there") {
			r.t.Errorf("the edit is shown as %s", body)
		}
		page.until(`[data-testid="output"]`, "out")
		page.until(spoken, "It ran.")
		page.until(card+` [data-testid="diff"]`, "note.txt", "hello there")
		b.answers(id, asked[0].ID, "reject", "Not that.\nSAY(As you say.)")
		s.untilQuiet(id, "ready")
		page.until(`[data-kind="permission.replied"]`, "Not that.")
		page.until(spoken, "As you say.")

		want := []string{"one ä two", "It ran.", "It was rejected.", "As you say."}
		if !r.a.rejected {
			want = slices.Delete(want, 2, 3)
		}
		j := s.events(id)
		wantSaid(r.world, j, want...)
		r.wantEffect("ran", 1)
		if got := strings.TrimSpace(j.output(s.calls(id)[0].ID)); got != "out" {
			r.t.Errorf("the command printed %q", got)
		}
		if got := r.file("note.txt"); got != "" {
			r.t.Errorf("it wrote %q", got)
		}
		r.m.want(len(want))
		wantCounts(r.t, j, map[string]int{"turn.ended": 1, "attempt.settled": 2, "attempt.unknown": 0, "call.unknown": 0, "call.settled": 2, "call.contradicted": 0})
		if n := j.letRun(); n != 1 {
			r.t.Errorf("%d calls were let run, want 1", n)
		}

		s.prompt(id, "SAY(The second turn.)", "queue")
		s.untilKind(id, "turn.ended", 2)
		s.untilQuiet(id, "ready")
		page.until(spoken, "The second turn.")
		j = s.events(id)
		wantSaid(r.world, j, append(want, "The second turn.")...)
		r.m.want(len(want) + 1)
		r.wantModelAPI()
		wantCounts(r.t, j, map[string]int{"agent.started": 1, "agent.opened": 1, "agent.ended": 0, "session.blocked": 0})
		r.wantOnPage(b, id, append(want, "The second turn.", "Not that.")...)
	})
}

// wantOnPage fails unless a page that is opened now says these.
func (r *realWorld) wantOnPage(b *browser, id string, words ...string) {
	r.t.Helper()
	if gap := missing(readable(r.t, b.visit("/sessions/"+id), "main"), words); gap != "" {
		r.t.Errorf("the page doesn't say %q", gap)
	}
}
