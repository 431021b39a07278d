package components_test

import (
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/views/components"
	"holdfast/views/internal/fixtures"
)

// readings are the fixtures by their name (ux §4): each execution state with what
// it says, what it needs, and that words, icon and details stand together.
func readings(t *testing.T) map[string]fixtures.Reading {
	t.Helper()
	out := map[string]fixtures.Reading{}
	for _, r := range fixtures.Readings() {
		out[r.Name] = r
	}
	return out
}

func TestRegister(t *testing.T) {
	t.Parallel()
	covered := map[journal.ExecutionState]bool{}
	icons := map[journal.ExecutionState]string{}
	for name, tt := range readings(t) {
		covered[tt.State] = true
		t.Run(name, func(t *testing.T) {
			doc := render(t, components.Register(tt.Session))
			cell := doc.Find(`[data-testid="reading-execution"]`)
			if got, _ := cell.Attr("data-state"); got != string(tt.State) {
				t.Errorf("state %q, want %q", got, tt.State)
			}
			if got := text(cell.Find(".cell-v")); got != tt.Words {
				t.Errorf("words %q, want %q", got, tt.Words)
			}
			below := text(cell.Find(".cell-d"))
			if !strings.HasPrefix(below, "As of 13:26:00. ") || !strings.Contains(below, tt.Below) {
				t.Errorf("below %q, want the time and %q", below, tt.Below)
			}
			icon, _ := cell.Find("svg.ico use").Attr("href")
			if icon == "" || icon == "#i-" {
				t.Error("a state without a shape")
			}
			icons[tt.State] = icon
			needs := doc.Find(`[data-testid="reading-needs-you"]`)
			if got, _ := needs.Attr("data-state"); got != string(tt.Needs) {
				t.Errorf("needs %q, want %q", got, tt.Needs)
			}
			if !allowedPair(tt.State, tt.Needs) {
				t.Errorf("%s with %s is a pair that must not be", tt.State, tt.Needs)
			}
			if text(needs.Find(".cell-v")) == "" || needs.Find("svg.ico").Length() != 1 {
				t.Error("the need has no words or no shape")
			}
		})
	}
	for _, s := range journal.States() {
		if !covered[s] {
			t.Errorf("the state %s is in no row", s)
		}
	}
	if icons[journal.StateUncertain] == icons[journal.StateWaiting] || icons[journal.StateReady] == icons[journal.StateFailed] {
		t.Errorf("states that differ share a shape: %v", icons)
	}
}

// allowedPair is ux §4.4.
func allowedPair(s journal.ExecutionState, n journal.Needs) bool {
	switch s {
	case journal.StateWaiting:
		return n == journal.NeedsDecision
	case journal.StateBlocked:
		return n == journal.NeedsBlocked
	case journal.StateUncertain:
		return n == journal.NeedsReconcile
	case journal.StateReady:
		return n == journal.NeedsReview
	case journal.StateFailed, journal.StateLimitReached:
		return n == journal.NeedsReview || n == journal.NeedsBlocked // what is held waits for its owner
	case journal.StateStopped:
		return n == journal.NeedsReview || n == journal.NeedsNone || n == journal.NeedsBlocked
	case journal.StateRunning:
		return n == journal.NeedsNone || n == journal.NeedsDecision || n == journal.NeedsBlocked // beside what outlived its server
	case journal.StateStopping:
		return n == journal.NeedsNone || n == journal.NeedsDecision || n == journal.NeedsBlocked // beside what runs, until that is at a safe point, or is known to have ended
	default:
		return n == journal.NeedsNone
	}
}

func TestSession_Groups(t *testing.T) {
	t.Parallel()
	want := map[string]components.Group{
		"idle": components.GroupEarlier, "queued": components.GroupRunning, "running": components.GroupRunning, "waiting": components.GroupNeeds,
		"running and asking": components.GroupNeeds, "blocked": components.GroupNeeds, "uncertain": components.GroupNeeds, "unconfirmed": components.GroupRunning,
		"stopped": components.GroupNeeds, "rejected": components.GroupEarlier, "forgotten": components.GroupNeeds, "stopping": components.GroupRunning, "stopping, another call runs": components.GroupNeeds, "retrying": components.GroupRunning, "adopted": components.GroupRunning, "adopted, nobody there": components.GroupRunning, "failed": components.GroupReview, "limit": components.GroupReview, "interrupted": components.GroupReview, "ready": components.GroupReview, "closed": components.GroupEarlier,
	}
	rows := readings(t)
	for name, group := range want {
		if got := rows[name].Session.Group(); got != group {
			t.Errorf("%s is under %q, want %q", name, got, group)
		}
	}
}

func TestSession_Actions(t *testing.T) {
	t.Parallel()
	rows := readings(t)
	for name, want := range map[string]struct{ stop, archive, goOn bool }{
		"idle": {false, true, false}, "running": {true, false, false}, "waiting": {true, false, false}, "stopping": {true, false, false},
		"stopping now": {false, false, false}, "uncertain": {true, false, false}, "stopped": {false, false, true}, "limit": {false, true, true},
		"ready": {false, true, false}, "closed": {false, false, false}, "blocked": {true, false, false},
	} {
		s := rows[name].Session
		if s.Stoppable() != want.stop || s.Archivable() != want.archive || s.Continuable() != want.goOn {
			t.Errorf("%s: stop %v archive %v continue %v, want %+v", name, s.Stoppable(), s.Archivable(), s.Continuable(), want)
		}
	}
}

// Archiving is offered only where it would be taken: messages that wait are withdrawn first.
func TestSession_ArchiveWaitsForMessages(t *testing.T) {
	t.Parallel()
	s := readings(t)["stopped"].Session
	for n, want := range map[int][2]bool{0: {true, false}, 1: {false, true}} {
		s.State.Admitted = make([]journal.Waiting, n)
		if got := [2]bool{s.Archivable(), s.ArchiveWaits()}; got != want {
			t.Errorf("with %d messages it is offered, or said to wait: %v, want %v", n, got, want)
		}
	}
}

func TestSession_TitlePrefix(t *testing.T) {
	t.Parallel()
	rows := readings(t)
	for name, want := range map[string]string{"uncertain": "(1) To reconcile: ", "waiting": "(1) Decision needed: ", "ready": "Ready for review: ", "failed": "To look at: ", "stopped": "To continue: ", "rejected": "", "forgotten": "To continue: ", "running": "", "blocked": "Something is missing: ", "adopted and blocked": "Something is missing: "} {
		if got := rows[name].Session.TitlePrefix(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// What can be continued is never said to be finished. That it waits for its owner
// says the register of what stands under "Needs you", and of nothing else (ux §4.4).
func TestSession_UnfinishedIsToContinue(t *testing.T) {
	t.Parallel()
	rows := readings(t)
	for name, unfinished := range map[string]bool{"failed": true, "limit": true, "interrupted": true, "stopped": true, "rejected": true, "forgotten": true, "ready": false, "idle": false, "running": false} {
		s := rows[name].Session
		doc := render(t, components.Register(s))
		needs := text(doc.Find(`[data-testid="reading-needs-you"]`))
		if got := strings.Contains(needs, "The turn is not finished."); got != unfinished {
			t.Errorf("%s: the strip says %q", name, needs)
		}
		if got, want := strings.Contains(needs, "1 to continue"), s.Group() == components.GroupNeeds; got != want {
			t.Errorf("%s is under %q, and the strip says %q", name, s.Group(), needs)
		}
		if s.Continuable() && (strings.Contains(needs, "You can leave") || strings.Contains(needs, "Ready for review")) {
			t.Errorf("%s: the strip says %q above a form to continue", name, needs)
		}
		if got := strings.Contains(s.RowDetail().String(), "not finished") || strings.Contains(s.RowDetail().String(), "1 to continue"); got != unfinished {
			t.Errorf("%s: the row says %q", name, s.RowDetail())
		}
	}
	done := rows["stopped when it was done"].Session
	for where, got := range map[string]string{"strip": text(render(t, components.Register(done)).Find(`[data-testid="reading-needs-you"]`)), "row": done.RowDetail().String(), "form": text(render(t, components.HeldNotice(done, "k", false)).Selection)} {
		if !strings.Contains(strings.ToLower(got), "the turn was done when it was stopped") || strings.Contains(got, "not finished") || strings.Contains(got, "unfinished") {
			t.Errorf("of a turn that was done the %s says %q", where, got)
		}
	}
	if got := text(render(t, components.Register(rows["failed"].Session)).Find(`[data-testid="reading-execution"]`)); strings.Contains(got, "..") {
		t.Errorf("two full stops: %q", got)
	}
	if href, _ := render(t, components.Register(rows["idle"].Session)).Find(`[data-testid="reading-your-view"] .cell-d a`).Attr("href"); href != rows["idle"].Session.Path() {
		t.Errorf("what looks like a link to refresh leads to %q", href)
	}
}

// An agent that was lost or stopped couldn't say what became of the item it was at.
func TestPlanPanel_SaysWhatTheSessionKnows(t *testing.T) {
	t.Parallel()
	rows := readings(t)
	for name, want := range map[string]string{"running": "running", "uncertain": "outcome unknown", "stopped": "stopped", "failed": "stopped"} {
		s := rows[name].Session
		s.State.Plan = []journal.PlanItem{{Title: "Build", State: journal.PlanRunning}, {Title: "Test", State: journal.PlanPending}}
		if got := text(render(t, components.PlanPanel(s)).Find("li").First()); solid(got) != solid("Build "+want) {
			t.Errorf("%s: the item is drawn as %q, want %q", name, got, want)
		}
		if s.State.Plan[0].State != journal.PlanRunning {
			t.Errorf("%s: the state itself was changed", name)
		}
	}
}

// While nothing can be recorded a page doesn't send its reader away.
func TestNeedsYou_FullDisk(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{"running": "Nothing new is recorded just now: the disk is full.", "waiting": "no time limit"} {
		s := readings(t)[state].Session
		s.Full = true
		if got := s.NeedsYou().Detail.String(); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
}

// The register has room for what is short: all of a reason stands at its entry.
func TestRegister_IsBrief(t *testing.T) {
	t.Parallel()
	s := readings(t)["failed"].Session
	turn := *s.State.Turn
	turn.Reason = `The agent has no memory of it: Resource not found ({"uri":"7b68"}). Nothing was sent, and the journal has all of it. A new conversation with the agent can take its place here.`
	s.State.Turn = &turn
	got := text(render(t, components.Register(s)).Find(`[data-testid="reading-execution"]`))
	if !strings.Contains(got, "Resource not found… See entry") || strings.ContainsAny(got, "{}") || strings.Contains(got, "new conversation") {
		t.Errorf("the register says %q", got)
	}
}
