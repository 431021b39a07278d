package components_test

import (
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/views/components"
)

// What is said of a call's output follows from what there is of it, in every state:
// a link stands only where something can be read.
func TestCaptured_States(t *testing.T) {
	t.Parallel()
	never := []journal.Evidence{{Type: journal.EvidenceExitRecord, Text: "Nothing of its command ran."}}
	for _, tt := range []struct {
		name  string
		call  journal.Call
		total int64
		want  string
	}{
		{name: "proposed", call: journal.Call{State: journal.CallIsProposed}, want: "It did not run, so it has no output."},
		{name: "waits", call: journal.Call{State: journal.CallIsWaiting}, want: "It did not run, so it has no output."},
		{name: "refused", call: journal.Call{State: journal.CallIsRefused}, want: "It did not run, so it has no output."},
		{name: "not started", call: journal.Call{State: journal.CallCancelled, N: 1, Reason: journal.ReasonNotStarted}, want: "It did not run, so it has no output."},
		{name: "runs", call: journal.Call{State: journal.CallIsDispatched, N: 1}, want: "No output was captured so far."},
		{name: "runs, with output", call: journal.Call{State: journal.CallIsDispatched, N: 1}, total: 12, want: "12 bytes"},
		{name: "succeeded", call: journal.Call{State: journal.CallSucceeded, N: 1}, want: "No output was captured."},
		{name: "failed, with output", call: journal.Call{State: journal.CallFailed, N: 1, OutputBytes: 12}, want: "12 bytes"},
		{name: "its middle was dropped", call: journal.Call{State: journal.CallSucceeded, N: 1, OutputBytes: 4096, DroppedBytes: 1024}, want: "4 KB, 1 KB in its middle were not kept"},
		{name: "unknown", call: journal.Call{State: journal.CallIsUnknown, N: 1}, want: "No output was captured."},
		{name: "unknown, with output", call: journal.Call{State: journal.CallIsUnknown, N: 1, OutputBytes: 12}, want: "12 bytes"},
		{name: "unknown, and nothing of it ran", call: journal.Call{State: journal.CallIsUnknown, N: 1, Evidence: never}, want: "It did not run, so it has no output."},
		{name: "an agent's, runs", call: journal.Call{State: journal.CallIsDispatched, N: 1, AttemptID: "att_1"}, want: "The agent has reported no output of it so far."},
		{name: "an agent's, ended", call: journal.Call{State: journal.CallSucceeded, N: 1, AttemptID: "att_1"}, want: "The agent reported no output of it."},
		{name: "an agent's, unknown", call: journal.Call{State: journal.CallIsUnknown, N: 1, AttemptID: "att_1"}, want: "The agent reported no output of it."},
		{name: "an agent's, unknown, with output", call: journal.Call{State: journal.CallIsUnknown, N: 1, AttemptID: "att_1", OutputBytes: 12}, want: "12 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.call.ID = "call_1"
			got := components.NewCaptured(&tt.call, tt.total)
			if got.Words != tt.want {
				t.Errorf("says %q, want %q", got.Words, tt.want)
			}
			if (got.Href != "") != (got.Bytes > 0) || (got.Bytes > 0) != (max(tt.total, tt.call.OutputBytes) > 0) {
				t.Errorf("leads to %q for %d bytes", got.Href, got.Bytes)
			}
		})
	}
}

// A card says of the output once what there is, whatever stands in its evidence.
func TestUnknownCard_Output(t *testing.T) {
	t.Parallel()
	none := journal.Evidence{Type: "output", Text: "No output was captured."}
	some := journal.Evidence{Type: "output", Text: "5 bytes of output were captured; it ends:\nhello"}
	process := journal.Evidence{Type: "process", Text: "The agent's process was ended."}
	for _, tt := range []struct {
		name     string
		bytes    int64
		attempt  string
		evidence []journal.Evidence
		link     bool
		says     string
	}{
		{"nothing, as evidence says", 0, "", []journal.Evidence{none}, false, "No output was captured."},
		{"nothing, and no evidence says so", 0, "", nil, false, "No output was captured."},
		{"an agent's with nothing", 0, "att_1", []journal.Evidence{none, process}, false, "The agent reported no output of it."},
		{"an agent's with output", 5, "att_1", []journal.Evidence{process}, true, "Read all of it"},
		{"output", 5, "", []journal.Evidence{some}, true, "hello"},
		{"output that nobody counted", 0, "", []journal.Evidence{some}, true, "hello"},
		{"output that evidence denies", 5, "", []journal.Evidence{none}, true, "Read all of it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			call := callOf(t, "make")
			call.State, call.N, call.OutputBytes, call.AttemptID, call.Evidence = journal.CallIsUnknown, 1, tt.bytes, tt.attempt, tt.evidence
			doc := render(t, components.UnknownCallCard(components.NewUnknownCard(call, now, "key-1")))
			if got := doc.Find(`a[href="/calls/call_1/output"]`).Length() == 1; got != tt.link {
				t.Errorf("leads to the output: %v, want %v", got, tt.link)
			}
			got := text(doc.Find(".kv"))
			if !strings.Contains(got, tt.says) {
				t.Errorf("says %q, without %q", got, tt.says)
			}
			if n := strings.Count(got, "o output"); n > 1 || tt.link && n > 0 {
				t.Errorf("says %d times that there is none: %q", n, got)
			}
		})
	}
}

// What a card says of how its call was lost follows from who said so: an agent that
// ended its turn was not lost by the server, and a record that came late is a result.
func TestUnknownCard_Lost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, says, not string
		evidence        journal.Evidence
	}{
		{"the agent said nothing", "ended its turn without saying how", "The server lost", journal.Evidence{Type: journal.EvidenceAgent, Text: "The agent ended its turn without saying how this ended."}},
		{"a late record", "No result was recorded then", "No result was recorded.", journal.Evidence{Type: journal.EvidenceExitRecord, Text: "Its command ended at 2026-11-29 13:25:31 UTC with exit code 0."}},
		{"its agent may still run", "The server lost the agent’s process while this ran", "process ended", (&journal.AgentLost{Host: "build-2", PID: 7, Since: now}).Evidence()},
		{"nothing", "The server lost this call", "recorded then", journal.Evidence{Type: "output", Text: "No output was captured."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			call := callOf(t, "make")
			call.State, call.N, call.Evidence = journal.CallIsUnknown, 1, []journal.Evidence{tt.evidence}
			got := text(render(t, components.UnknownCallCard(components.NewUnknownCard(call, now, "key-1"))).Selection)
			if !strings.Contains(got, tt.says) || strings.Contains(got, tt.not) {
				t.Errorf("says %q, want %q and not %q", got, tt.says, tt.not)
			}
		})
	}
}
