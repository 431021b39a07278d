package components_test

import (
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/views/components"
)

func live() *journal.Claim {
	return &journal.Claim{ExecutionID: "exe_1", WorkerID: "w1", Phase: journal.PhaseUncertain, ClaimedAt: now - 60_000, ExpiresAt: now + 29_000, LeaseMS: 30_000}
}

// readings is the table of ux §4: each execution state with what it says, what
// it needs, and that words, icon and details stand together.
func readings(t *testing.T) map[string]struct {
	session      components.Session
	state        journal.ExecutionState
	words, below string
	needs        journal.Needs
} {
	t.Helper()
	type row = struct {
		session      components.Session
		state        journal.ExecutionState
		words, below string
		needs        journal.Needs
	}
	with := func(s *story, c *journal.Claim) components.Session {
		one := s.session()
		one.Claim = c
		return one
	}
	starting, silent, gone := live(), live(), live()
	starting.Phase = journal.PhaseReady
	silent.ExpiresAt, gone.ExpiresAt = now+5_000, now-1_000
	queued := with(begun(t), nil)
	queued.Position = 3
	held := begun(t).add(journal.User(me.ID), &journal.PromptAdmitted{PromptID: "inp_2", Delivery: journal.Queue, Text: journal.T("b")}).
		end(journal.TurnEnded{Outcome: journal.Stopped, Reason: "interrupted"}, journal.User(me.ID))
	host := with(begun(t).dispatch(), silent)
	host.Host = "build-2"
	return map[string]row{
		"idle":     {with(newStory(t), nil), journal.StateIdle, "Nothing asked yet", "Write the first message below.", journal.NeedsNone},
		"queued":   {queued, journal.StateQueued, "Queued", "Position 3. Starts when a worker is free.", journal.NeedsNone},
		"running":  {with(begun(t).dispatch(), live()), journal.StateRunning, "Running", "Turn 1, since 13:25. Last entry 1 min ago.", journal.NeedsNone},
		"starting": {with(begun(t), starting), journal.StateRunning, "Starting", "Turn 1, since 13:25.", journal.NeedsNone},
		"retrying": {with(begun(t).add(journal.Agent(), &journal.AttemptPrepared{AttemptID: "att_1"}, &journal.AttemptFailed{AttemptID: "att_1", Retry: &journal.Retry{N: 2, Of: 3, At: now + 12_000}}), nil), journal.StateRetrying, "Retrying in 12 s", "Try 2 of 3 at 13:26:12.", journal.NeedsNone},
		"waiting":  {with(begun(t).ask(), nil), journal.StateWaiting, "Waiting for a decision", "Nothing is running. Since 13:25, 1 min.", journal.NeedsDecision},
		"running and asking": {with(begun(t).ask().add(journal.Agent(),
			&journal.CallProposed{CallID: "call_2", TurnID: "trn_1"}, &journal.CallDispatched{CallID: "call_2", N: 1}), live()), journal.StateRunning, "Running", "Turn 1", journal.NeedsDecision},
		"blocked":      {with(begun(t).add(journal.Server(), &journal.SessionBlocked{Cause: journal.BlockAgent, Detail: "opencode was not found."}), nil), journal.StateBlocked, "Waiting for an agent", "opencode was not found. Nothing is running.", journal.NeedsBlocked},
		"stopping":     {with(begun(t).dispatch().add(journal.User(me.ID), &journal.InterruptRequested{By: me.ID, Mode: journal.InterruptBoundary}), live()), journal.StateStopping, "Stopping", "Asked 13:25. Ends at the next safe point.", journal.NeedsNone},
		"stopping now": {with(begun(t).dispatch().add(journal.User(me.ID), &journal.InterruptRequested{By: me.ID, Mode: journal.InterruptNow}), live()), journal.StateStopping, "Stopping", "What runs is being ended.", journal.NeedsNone},
		"unconfirmed":  {host, journal.StateUnconfirmed, "Not confirmed", "No word from build-2 for 25 s. Its hold ends 13:26:05; nothing else starts before then.", journal.NeedsNone},
		"expired":      {with(begun(t).dispatch(), gone), journal.StateUnconfirmed, "Not confirmed", "Its hold ended 13:25:59;", journal.NeedsNone},
		"uncertain":    {with(begun(t).dispatch().add(journal.Server(), &journal.CallUnknown{CallID: "call_1"}), nil), journal.StateUncertain, "Stopped, outcome unknown", "Nothing was repeated.", journal.NeedsReconcile},
		"stopped":      {with(held, nil), journal.StateStopped, "Stopped by you", "13:25. 1 message is held.", journal.NeedsNone},
		"rejected":     {with(begun(t).end(journal.TurnEnded{Outcome: journal.Stopped, Reason: "rejected"}, journal.User(me.ID)), nil), journal.StateStopped, "Stopped by you", "because a request was rejected", journal.NeedsNone},
		"interrupted":  {with(begun(t).end(journal.TurnEnded{Outcome: journal.Interrupted}, journal.Server()), nil), journal.StateStopped, "Stopped by the server", "because the server was stopped", journal.NeedsReview},
		"limit":        {with(begun(t).end(journal.TurnEnded{Outcome: journal.LimitReach, Limit: "steps"}, journal.Server()), nil), journal.StateLimitReached, "Reached the step limit", "100 steps at 13:25. Work up to entry #0005 is kept.", journal.NeedsReview},
		"failed":       {with(begun(t).end(journal.TurnEnded{Outcome: journal.Failed, Reason: "The step “test” failed."}, journal.Agent()), nil), journal.StateFailed, "Failed", "The step “test” failed. See entry #0005.", journal.NeedsReview},
		"ready":        {with(begun(t).end(journal.TurnEnded{Outcome: journal.Completed}, journal.Agent()), nil), journal.StateReady, "Finished its turn", "Ended 13:25. Nothing is running.", journal.NeedsReview},
		"closed":       {with(begun(t).end(journal.TurnEnded{Outcome: journal.Completed}, journal.Agent()).add(journal.User(me.ID), &journal.SessionArchived{}), nil), journal.StateClosed, "Closed", "Archived 13:25.", journal.NeedsNone},
	}
}

func TestRegister(t *testing.T) {
	t.Parallel()
	covered := map[journal.ExecutionState]bool{}
	icons := map[journal.ExecutionState]string{}
	for name, tt := range readings(t) {
		covered[tt.state] = true
		t.Run(name, func(t *testing.T) {
			doc := render(t, components.Register(tt.session))
			cell := doc.Find(`[data-testid="reading-execution"]`)
			if got, _ := cell.Attr("data-state"); got != string(tt.state) {
				t.Errorf("state %q, want %q", got, tt.state)
			}
			if got := text(cell.Find(".cell-v")); got != tt.words {
				t.Errorf("words %q, want %q", got, tt.words)
			}
			below := text(cell.Find(".cell-d"))
			if !strings.HasPrefix(below, "As of 13:26:00. ") || !strings.Contains(below, tt.below) {
				t.Errorf("below %q, want the time and %q", below, tt.below)
			}
			icon, _ := cell.Find("svg.ico use").Attr("href")
			if icon == "" || icon == "#i-" {
				t.Error("a state without a shape")
			}
			icons[tt.state] = icon
			needs := doc.Find(`[data-testid="reading-needs-you"]`)
			if got, _ := needs.Attr("data-state"); got != string(tt.needs) {
				t.Errorf("needs %q, want %q", got, tt.needs)
			}
			if !allowedPair(tt.state, tt.needs) {
				t.Errorf("%s with %s is a pair that must not be", tt.state, tt.needs)
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
	case journal.StateReady, journal.StateStopped, journal.StateFailed, journal.StateLimitReached:
		return n == journal.NeedsReview || n == journal.NeedsNone
	case journal.StateRunning:
		return n == journal.NeedsNone || n == journal.NeedsDecision
	default:
		return n == journal.NeedsNone
	}
}

func TestSession_Groups(t *testing.T) {
	t.Parallel()
	want := map[string]components.Group{
		"idle": components.GroupEarlier, "queued": components.GroupRunning, "running": components.GroupRunning, "waiting": components.GroupNeeds,
		"running and asking": components.GroupNeeds, "blocked": components.GroupNeeds, "uncertain": components.GroupNeeds, "unconfirmed": components.GroupRunning,
		"stopped": components.GroupEarlier, "failed": components.GroupReview, "limit": components.GroupReview, "interrupted": components.GroupReview, "ready": components.GroupReview, "closed": components.GroupEarlier,
	}
	rows := readings(t)
	for name, group := range want {
		if got := rows[name].session.Group(); got != group {
			t.Errorf("%s is under %q, want %q", name, got, group)
		}
	}
}

func TestSession_Actions(t *testing.T) {
	t.Parallel()
	rows := readings(t)
	for name, want := range map[string]struct{ stop, archive, goOn bool }{
		"idle": {false, true, false}, "running": {true, false, false}, "waiting": {true, false, false}, "stopping": {true, false, false},
		"stopping now": {false, false, false}, "uncertain": {true, false, false}, "stopped": {false, true, true}, "limit": {false, true, true},
		"ready": {false, true, false}, "closed": {false, false, false}, "blocked": {true, false, false},
	} {
		s := rows[name].session
		if s.Stoppable() != want.stop || s.Archivable() != want.archive || s.Continuable() != want.goOn {
			t.Errorf("%s: stop %v archive %v continue %v, want %+v", name, s.Stoppable(), s.Archivable(), s.Continuable(), want)
		}
	}
}

func TestSession_TitlePrefix(t *testing.T) {
	t.Parallel()
	rows := readings(t)
	for name, want := range map[string]string{"uncertain": "(1) To reconcile: ", "waiting": "(1) Decision needed: ", "ready": "Ready for review: ", "failed": "To continue: ", "stopped": "", "running": ""} {
		if got := rows[name].session.TitlePrefix(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// What can be continued is never said to be finished, nor that nobody is needed (ux §4.4).
func TestSession_UnfinishedIsToContinue(t *testing.T) {
	t.Parallel()
	rows := readings(t)
	for name, unfinished := range map[string]bool{"failed": true, "limit": true, "interrupted": true, "stopped": true, "ready": false, "idle": false, "running": false} {
		s := rows[name].session
		doc := render(t, components.Register(s))
		needs := text(doc.Find(`[data-testid="reading-needs-you"]`))
		if got := strings.Contains(needs, "1 to continue") && strings.Contains(needs, "The turn is not finished."); got != unfinished {
			t.Errorf("%s: the strip says %q", name, needs)
		}
		if s.Continuable() && (strings.Contains(needs, "You can leave") || strings.Contains(needs, "Ready for review")) {
			t.Errorf("%s: the strip says %q above a form to continue", name, needs)
		}
		if got := strings.Contains(s.RowDetail().String(), "the turn is not finished"); got != unfinished {
			t.Errorf("%s: the row says %q", name, s.RowDetail())
		}
	}
	if got := text(render(t, components.Register(rows["failed"].session)).Find(`[data-testid="reading-execution"]`)); strings.Contains(got, "..") {
		t.Errorf("two full stops: %q", got)
	}
	if href, _ := render(t, components.Register(rows["idle"].session)).Find(`[data-testid="reading-your-view"] .cell-d a`).Attr("href"); href != rows["idle"].session.Path() {
		t.Errorf("what looks like a link to refresh leads to %q", href)
	}
}

// An agent that was lost or stopped couldn't say what became of the item it was at.
func TestPlanPanel_SaysWhatTheSessionKnows(t *testing.T) {
	t.Parallel()
	rows := readings(t)
	for name, want := range map[string]string{"running": "running", "uncertain": "outcome unknown", "stopped": "stopped", "failed": "stopped"} {
		s := rows[name].session
		s.State.Plan = []journal.PlanItem{{Title: "Build", State: journal.PlanRunning}, {Title: "Test", State: journal.PlanPending}}
		if got := text(render(t, components.PlanPanel(s)).Find("li").First()); solid(got) != solid("Build "+want) {
			t.Errorf("%s: the item is drawn as %q, want %q", name, got, want)
		}
		if s.State.Plan[0].State != journal.PlanRunning {
			t.Errorf("%s: the state itself was changed", name)
		}
	}
}
