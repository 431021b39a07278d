package components_test

import (
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/views/components"
)

// The page of a call says what the register says of it, and nothing of what has ended.
//
// proves REC-10
func TestSession_CallDetail(t *testing.T) {
	t.Parallel()
	rows := readings(t)
	call := &journal.Call{ID: "call_1", N: 1, State: journal.CallIsDispatched, DispatchedAt: now - 1_440_000, AdoptedAt: now - 60_000}
	for name, want := range map[string]string{
		"adopted":               "Still running since 13:02. The server was restarted at 13:25; nothing was interrupted.",
		"adopted, nobody there": "Still running since 13:02, as far as is known. No server follows it just now; its output is kept.",
		"left, expired":         "Still running since 13:02, as far as is known. No server follows it just now; its output is kept.",
	} {
		s := rows[name].Session
		if got := s.CallDetail(call).String(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	s := rows["adopted"].Session
	for _, c := range []*journal.Call{{State: journal.CallIsDispatched}, {State: journal.CallSucceeded, AdoptedAt: now}} {
		if got := s.CallDetail(c); got != nil {
			t.Errorf("%+v: %q", c, got)
		}
	}
	if got := rows["adopted, nobody there"].Session.RowDetail().String(); !strings.Contains(got, "no server follows its command just now") {
		t.Errorf("the row says %q", got)
	}
	if got := s.RowDetail().String(); strings.Contains(got, "no server") {
		t.Errorf("the row of what is followed says %q", got)
	}
}

func TestCallFacts_OfWhatOutlivedItsServer(t *testing.T) {
	t.Parallel()
	facts := func(c *journal.Call) string {
		var b strings.Builder
		for _, f := range components.CallFacts(c, me) {
			b.WriteString(f.Name + ": " + f.Say.String() + "\n")
		}
		return b.String()
	}
	runs := callOf(t, "make")
	runs.N, runs.State, runs.DispatchedAt, runs.AdoptedAt, runs.EndedAt = 1, journal.CallIsDispatched, now-1_440_000, now-60_000, 0
	for _, want := range []string{"Started: 13:02:00\n", "Found still running: 13:25:00, after the server was restarted\n", "Ended at the latest: 13:32:00\n"} {
		if got := facts(runs); !strings.Contains(got, want) {
			t.Errorf("%q isn't said: %s", want, got)
		}
	}
	if got := components.CallState(runs); got.Words != "Still running, no result yet" {
		t.Errorf("is %q", got.Words)
	}
	never := callOf(t, "make")
	never.N, never.State, never.Reason, never.DispatchedAt, never.EndedAt = 1, journal.CallCancelled, journal.ReasonNotStarted, now-1_440_000, now
	got := facts(never)
	for _, want := range []string{"Dispatched: 13:02:00\n", "Recorded: 13:26:00\n", "Why: It never began: the server stopped, or was lost, between its dispatch and its start. Nothing of it ran.\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q isn't said: %s", want, got)
		}
	}
	if strings.Contains(got, "Started") || strings.Contains(got, "after ") {
		t.Errorf("what never began is said to have run: %s", got)
	}
	if got := components.CallState(never); got.Words != "Never began" {
		t.Errorf("is %q", got.Words)
	}
}

// How long it ran isn't known of what ended while nobody was there.
func TestEntries_SettledByRecord(t *testing.T) {
	t.Parallel()
	ran := int64(1_440_000)
	for execution, want := range map[string]bool{"": true, "exe_1": false} {
		w := window(t, &journal.CallSettled{CallID: "call_1", State: journal.CallSucceeded})
		c := w.Calls["call_1"]
		c.DispatchedAt, c.EndedAt, w.Events[0].ExecutionID = now-1_440_000, now, execution
		if !want {
			c.RanMS = &ran
		}
		got := text(render(t, components.JournalRow(components.Entries(w)[0], now)).Find(".body"))
		if strings.Contains(got, "It ended while no server followed it; its own record says how.") != want || strings.Contains(got, "24 min") == want {
			t.Errorf("by the execution %q: says %q", execution, got)
		}
	}
}

func TestUnknownCallCard_RecordThatCameLate(t *testing.T) {
	t.Parallel()
	call := callOf(t, "make deploy")
	call.Evidence = []journal.Evidence{{Type: "process", Text: "It may still be running."}, {Type: journal.EvidenceExitRecord, Text: "Its command ended with exit code 0."}}
	got := text(render(t, components.UnknownCallCard(components.NewUnknownCard(call, now, "k"))).Selection)
	for _, want := range []string{"Its own record came late and stands below: it has ended.", "Its own record, found later", "Its command ended with exit code 0."} {
		if !strings.Contains(got, want) {
			t.Errorf("%q isn't said: %s", want, got)
		}
	}
}
