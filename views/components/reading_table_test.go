package components_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/views/components"
)

// readingTable is ux §4.1 and §4.3: what each key may say, by which shape and in which tone.
var readingTable = map[string]struct {
	words, icon string
	tone        components.Tone
}{
	"closed": {"Closed", "done", components.ToneOff}, "uncertain": {"Stopped, outcome unknown", "unk", components.ToneUnk}, "stopping": {"Stopping", "stop", components.ToneOff},
	"unconfirmed": {"Not confirmed", "dash", components.ToneOff}, "running": {"Running|Starting", "run", components.ToneRun}, "retrying": {"Retrying in ", "queue", components.ToneOff},
	"waiting": {"Waiting for a decision", "hold", components.ToneAsk}, "blocked": {"Waiting for ", "hold", components.ToneAsk}, "queued": {"Queued", "queue", components.ToneOff},
	"stopped": {"Stopped by ", "stop", components.ToneOff}, "failed": {"Failed", "fail", components.ToneBad}, "limit_reached": {"Reached the ", "stop", components.ToneAsk},
	"ready": {"Finished its turn", "done", components.ToneRun}, "idle": {"Nothing asked yet", "idle", components.ToneOff},

	"needs none": {"Nothing", "none", components.ToneOff}, "needs decision": {"", "ask", components.ToneAsk}, "needs reconcile": {"", "unk", components.ToneUnk},
	"needs blocked": {"Something is missing|1 to continue", "ask", components.ToneAsk}, "needs review": {"Ready for review|To look at", "rev", components.ToneRev},
}

// says reports whether a reading is what the table has for its key.
func says(key string, r components.Reading) error {
	row, ok := readingTable[key]
	starts := func(list, got string) bool {
		return list == "" && got != "" || slices.ContainsFunc(split(list), func(one string) bool { return one != "" && len(got) >= len(one) && got[:len(one)] == one })
	}
	switch {
	case !ok:
		return fmt.Errorf("%s is in no row", key)
	case !starts(row.words, r.Words), !slices.Contains(split(row.icon), r.Icon):
		return fmt.Errorf("%s says %q by the shape %s, want %q by %s", key, r.Words, r.Icon, row.words, row.icon)
	case r.Tone != row.tone && (key != "needs none" || r.Tone != components.ToneRev):
		return fmt.Errorf("%s is in the tone %s, want %s", key, r.Tone, row.tone)
	case len(r.Detail) == 0:
		return fmt.Errorf("%s has no second line", key)
	}
	return nil
}

func split(s string) []string {
	var out []string
	for len(s) > 0 {
		i := slices.Index([]byte(s), '|')
		if i < 0 {
			return append(out, s)
		}
		out, s = append(out, s[:i]), s[i+1:]
	}
	return out
}

// pairs are the needs that may stand beside each execution state (ux §4.4); of a
// claim that is not confirmed nothing is known but what it left behind.
var pairs = map[journal.ExecutionState][]journal.Needs{
	journal.StateWaiting: {journal.NeedsDecision}, journal.StateBlocked: {journal.NeedsBlocked}, journal.StateUncertain: {journal.NeedsReconcile},
	journal.StateReady: {journal.NeedsReview, journal.NeedsNone}, journal.StateStopped: {journal.NeedsReview, journal.NeedsNone, journal.NeedsBlocked},
	journal.StateFailed: {journal.NeedsReview, journal.NeedsBlocked}, journal.StateLimitReached: {journal.NeedsReview, journal.NeedsBlocked},
	journal.StateRunning:  {journal.NeedsNone, journal.NeedsDecision, journal.NeedsBlocked}, // beside what outlived its server
	journal.StateStopping: {journal.NeedsNone, journal.NeedsDecision, journal.NeedsBlocked}, // at the next safe point, beside what runs; or that can't be ended
}

func pairAllowed(s journal.ExecutionState, n journal.Needs) bool {
	if list, ok := pairs[s]; ok {
		return slices.Contains(list, n)
	}
	return n == journal.NeedsNone
}

// steps are the events that a life is made of.
func steps() []journal.Body {
	return []journal.Body{
		&journal.PromptAdmitted{PromptID: "inp_1", Delivery: journal.Queue}, &journal.PromptWithdrawn{PromptID: "inp_1"},
		&journal.TurnStarted{TurnID: "trn_1", Cause: journal.CausePrompt}, &journal.TurnStarted{TurnID: "trn_1", Cause: journal.CauseContinuation},
		&journal.TurnEnded{TurnID: "trn_1", Outcome: journal.Completed}, &journal.TurnEnded{TurnID: "trn_1", Outcome: journal.Failed}, &journal.TurnEnded{TurnID: "trn_1", Outcome: journal.Stopped},
		&journal.TurnEnded{TurnID: "trn_1", Outcome: journal.Interrupted}, &journal.TurnEnded{TurnID: "trn_1", Outcome: journal.LimitReach, Limit: "steps"},
		&journal.CallProposed{CallID: "call_1", TurnID: "trn_1", Effect: journal.EffectEffect}, &journal.CallDispatched{CallID: "call_1", N: 1}, &journal.CallAdopted{CallID: "call_1", Since: now - 90_000, StateFolderID: "fld_1"}, &journal.CallSettled{CallID: "call_1", State: journal.CallSucceeded},
		&journal.CallUnknown{CallID: "call_1"}, &journal.CallResolved{CallID: "call_1", Outcome: journal.Happened},
		&journal.PermissionAsked{ID: "per_1", Tool: journal.ToolRef{CallID: "call_1"}}, &journal.PermissionReplied{ID: "per_1", Reply: journal.ReplyOnce}, &journal.PermissionCancelled{ID: "per_1"},
		&journal.AttemptPrepared{AttemptID: "att_1"}, &journal.AttemptFailed{AttemptID: "att_1", Retry: &journal.Retry{N: 2, Of: 3, At: now + 9000}}, &journal.AttemptUnknown{AttemptID: "att_1"},
		&journal.InterruptRequested{By: me.ID, Mode: journal.InterruptNow}, &journal.InterruptRequested{By: me.ID, Mode: journal.InterruptBoundary}, &journal.ContinuationRequested{}, &journal.SessionBlocked{Cause: journal.BlockAgent, Detail: "x"}, &journal.SessionUnblocked{Cause: journal.BlockAgent},
		&journal.SessionArchived{},
	}
}

// whole reports whether a state is one that a store writes: what it appends
// together stands together.
func whole(s *journal.State, c *journal.Claim) bool {
	switch {
	case !s.TurnOpen() && (len(s.Calls) > 0 || len(s.Pending) > 0 || len(s.Attempts) > 0): // COO-4, LEA-6: a turn ends with all that it had open
		return false
	case s.Archived && (s.TurnOpen() || s.Unknowns() > 0 || c != nil):
		return false
	case c != nil && !s.Adopts() && (s.Blocked != nil || s.Unknowns() > 0): // such a session isn't claimed (COO-2)
		return false
	case c != nil && !s.TurnOpen() && (s.Held || len(s.Admitted) == 0): // COO-2
		return false
	case s.TurnOpen() && s.Interrupt != nil && len(s.Pending) > 0 && (s.Interrupt.AtOnce() || s.OnlyWaits()): // the interrupt cancels them (COO-4)
		return false
	case s.Blocked != nil && len(s.Pending) > 0: // a session that waits for a person isn't run, so nothing of it is missed
		return false
	case s.Retry != nil && len(s.Pending) > 0:
		return false
	}
	return true
}

// lives are all the states that a session can come to by a number of events, each once.
func lives(t *testing.T, depth int) []journal.State {
	t.Helper()
	var start journal.State
	if err := start.Apply(&journal.Event{Seq: 1, Time: now - 60_000}, &journal.SessionCreated{Title: "x", Agent: "runbook"}); err != nil {
		t.Fatal(err)
	}
	out, last := []journal.State{start}, []journal.State{start}
	known := map[string]bool{}
	for range depth {
		var fresh []journal.State
		for i := range last {
			for _, body := range steps() {
				next := last[i]
				ev := &journal.Event{Seq: 2, Kind: body.Kind(), Time: now - 30_000, Actor: journal.User(me.ID), Data: json.RawMessage("{}")}
				if next.Apply(ev, body) != nil { // it can't follow
					continue
				}
				if next.Turn != nil {
					turn := *next.Turn
					turn.Number = 1
					next.Turn = &turn
				}
				key, err := journal.Encode(next)
				if err != nil {
					t.Fatal(err)
				}
				if !known[string(key)] {
					known[string(key)] = true
					fresh = append(fresh, next)
				}
			}
		}
		out, last = append(out, fresh...), fresh
	}
	return out
}

// Whatever a session lives through, its readings are rows of the table, and stand
// in pairs that may be (ux §4.4).
func TestReadings_Table(t *testing.T) {
	t.Parallel()
	seen, adopted := map[journal.ExecutionState]int{}, map[journal.ExecutionState]int{}
	claims := map[string]*journal.Claim{"none": nil, "live": live(), "silent": {Phase: journal.PhaseSafe, ExpiresAt: now + 5_000, LeaseMS: 30_000}, "gone": {Phase: journal.PhaseReady, ExpiresAt: now - 5_000, LeaseMS: 30_000}}
	for _, s := range lives(t, 6) {
		for name, claim := range claims {
			if !whole(&s, claim) {
				continue
			}
			one := components.Session{ID: "ses_1", State: s, Claim: claim, Now: now, LastSeq: 9, Viewer: me}
			execution, _ := s.Execution(claim, now)
			seen[execution]++
			needs := s.Needs()
			if err := says(string(execution), one.Execution()); err != nil {
				t.Errorf("%s claim: %v", name, err)
			}
			if err := says("needs "+string(needs), one.NeedsYou()); err != nil {
				t.Errorf("%s claim: %v", name, err)
			}
			if adopts := s.Adopts(); adopts {
				adopted[execution]++
				if says := one.Execution().Detail.String(); execution == journal.StateRunning && !strings.HasPrefix(says, "Still running since 13:24") || strings.Contains(says, "Nothing is running") {
					t.Errorf("%s claim: something runs, and it says %q", name, says)
				}
			}
			if execution != journal.StateUnconfirmed && !pairAllowed(execution, needs) {
				t.Errorf("%s claim: %s beside %s must not be: %+v", name, execution, needs, s)
			}
			if v := one.View(); v.Key != "manual" || v.Icon != "eye" || v.Words != "As of 13:26:00" {
				t.Errorf("the view says %+v", v)
			}
		}
	}
	for _, state := range journal.States() {
		if seen[state] == 0 {
			t.Errorf("no life came to %s", state)
		}
	}
	for _, state := range []journal.ExecutionState{journal.StateRunning, journal.StateStopping, journal.StateUncertain, journal.StateUnconfirmed} {
		if adopted[state] == 0 {
			t.Errorf("no life with something adopted came to %s", state)
		}
	}
	t.Logf("readings by state: %v; with something adopted: %v", seen, adopted)
}

// Every pair that the table doesn't have is one that a test would find.
func TestReadings_ForbiddenPairs(t *testing.T) {
	t.Parallel()
	needs := []journal.Needs{journal.NeedsNone, journal.NeedsReconcile, journal.NeedsDecision, journal.NeedsBlocked, journal.NeedsReview}
	allowed := 0
	for _, s := range journal.States() {
		for _, n := range needs {
			if pairAllowed(s, n) {
				allowed++
			}
		}
	}
	if allowed != 23 {
		t.Errorf("%d pairs of %d are allowed, want 23", allowed, len(journal.States())*len(needs))
	}
	// No two keys look the same: shape and words together tell them apart.
	looks := map[string]string{}
	for key, row := range readingTable {
		look := row.words + "/" + row.icon
		if was := looks[look]; was != "" {
			t.Errorf("%s looks like %s", key, was)
		}
		looks[look] = key
	}
}

// Whatever a session lives through, *continue* is offered exactly where it is taken,
// and what it writes then can follow (PRO-6).
func TestContinue_OfferedWhereTaken(t *testing.T) {
	t.Parallel()
	offered, refused := map[journal.ExecutionState]int{}, map[string]int{}
	for _, s := range lives(t, 6) {
		if !whole(&s, nil) {
			continue
		}
		one := components.Session{ID: "ses_1", State: s, Now: now, Viewer: me}
		again, anew := s.MayContinue(false), s.MayContinue(true)
		if says := strings.Contains(one.ArchiveWaitsFor(), "continue"); says != one.Continuable() {
			t.Errorf("what waits is said to go by *continue*: %v; it does: %v", says, one.Continuable())
		}
		if one.Continuable() != (again == nil || anew == nil) {
			t.Errorf("offered: %v; continue: %v; anew: %v", one.Continuable(), again, anew)
		}
		if again != nil {
			refused[again.Error()]++
			continue
		}
		offered[s.Base]++
		for _, body := range []journal.Body{&journal.ContinuationRequested{}, &journal.TurnStarted{TurnID: "trn_2", Cause: journal.CauseContinuation}} {
			if body.Kind() == journal.KindTurnStarted && (s.TurnOpen() || s.Turn == nil || s.Turn.Outcome == journal.Completed) {
				continue
			}
			if err := s.Apply(&journal.Event{Seq: 3, Kind: body.Kind(), Time: now, Actor: journal.User(me.ID)}, body); err != nil {
				t.Errorf("it is offered, and %s can't follow: %v", body.Kind(), err)
			}
		}
		if s.Held || s.MayContinue(false) == nil {
			t.Errorf("it was continued, and can be once more: %+v", s)
		}
	}
	if len(offered) < 3 || len(refused) < 2 {
		t.Errorf("few lives were looked at: %v, %v", offered, refused)
	}
}
