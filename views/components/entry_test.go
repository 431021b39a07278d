package components_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/views/components"
)

// everyKind has one body of each kind that this build knows, with what its row must say.
func everyKind() []struct {
	actor journal.Actor
	body  journal.Body
	says  string
} {
	type row = struct {
		actor journal.Actor
		body  journal.Body
		says  string
	}
	user, agent, server := journal.User(me.ID), journal.Agent(), journal.Server()
	two := 2
	return []row{
		{user, &journal.SessionCreated{Agent: "runbook", Workspace: "/srv/work"}, "You started this session agent runbook in /srv/work"},
		{user, &journal.SessionRenamed{Title: "Other"}, "Renamed to “Other”"},
		{user, &journal.SessionArchived{}, "You archived this session"},
		{server, &journal.SessionBlocked{Cause: journal.BlockWorkspace, Detail: "It is gone."}, "Waiting for a workspace It is gone."},
		{server, &journal.SessionUnblocked{}, "The cause is gone"},
		{user, &journal.PromptAdmitted{PromptID: "inp_1", Delivery: journal.Queue, Text: journal.T("do it")}, "You queued a message “do it”"},
		{server, &journal.PromptPromoted{PromptID: "inp_1", Delivery: journal.Steer}, "You steered the turn the whole text"},
		{user, &journal.PromptWithdrawn{PromptID: "inp_1"}, "You withdrew a message"},
		{server, &journal.TurnStarted{Cause: journal.CausePrompt}, "A turn started"},
		{server, &journal.TurnStarted{Cause: journal.CauseContinuation}, "The turn goes on"},
		{agent, &journal.TurnEnded{Outcome: journal.Completed}, "The turn finished"},
		{agent, &journal.TurnEnded{Outcome: journal.Failed, Reason: "Step 2 failed"}, "The turn failed Step 2 failed"},
		{user, &journal.TurnEnded{Outcome: journal.Stopped, Reason: "rejected"}, "The turn was stopped by you, because a request was rejected"},
		{server, &journal.TurnEnded{Outcome: journal.Interrupted}, "because the server was stopped"},
		{server, &journal.TurnEnded{Outcome: journal.LimitReach, Limit: "wall_s"}, "at its time limit"},
		{user, &journal.ContinuationRequested{Limits: &journal.Limits{Steps: 200}}, "You continued the session step limit now 200 steps"},
		{agent, &journal.StepStarted{Step: journal.Step{Name: "Build", Index: 2, Of: 5}}, "Step 2 of 5: Build"},
		{agent, &journal.PlanUpdated{Plan: []journal.PlanItem{{State: journal.PlanDone}, {}}}, "The plan changed 1 of 2 done"},
		{agent, &journal.MessageDelta{MessageID: "msg_9", Text: journal.T("partial")}, "is writing; this is not complete partial"},
		{agent, &journal.MessageCompleted{MessageID: "msg_8", Part: journal.PartText, Text: journal.T("whole")}, "Agent whole"},
		{agent, &journal.AttemptPrepared{Model: "m-1"}, "prepared m-1"},
		{agent, &journal.AttemptDispatched{}, "The request was sent"},
		{agent, &journal.AttemptReceiving{}, "The answer began"},
		{agent, &journal.AttemptSettled{Usage: journal.Usage{InputTokens: 7, OutputTokens: 9}}, "7 tokens in, 9 out"},
		{agent, &journal.AttemptFailed{Error: "busy"}, "did not take the request busy"},
		{server, &journal.AttemptUnknown{}, "is not known it was not sent again"},
		{user, &journal.AttemptResolved{Outcome: journal.AttemptAbandon, By: me.ID, Then: journal.ThenStay}, "You gave the request up and chose to stay stopped"},
		{agent, &journal.CallProposed{CallID: "call_1", Tool: "shell", Input: json.RawMessage(`{"command":"make deploy"}`), Effect: journal.EffectEffect}, "The agent proposed make deploy it may change something"},
		{agent, &journal.CallDispatched{CallID: "call_1", N: 2, AllowedBy: journal.AllowedBy{Type: journal.AllowedByRule, Text: "shell make *"}}, "Started make deploy for the 2nd time, allowed by the rule shell make *"},
		{agent, &journal.CallDispatched{CallID: "call_1", N: 1, AllowedBy: journal.AllowedBy{Type: journal.AllowedByPerson, ID: me.ID}}, "Started make deploy allowed by you"},
		{agent, &journal.CallOutput{CallID: "call_1", Stream: "stderr", Text: journal.T("oh"), Dropped: 5}, ""},
		{agent, &journal.CallSettled{CallID: "call_1", State: journal.CallFailed, ExitCode: &two, Reason: "timeout"}, "Failed: make deploy exit 2"},
		{server, &journal.CallUnknown{CallID: "call_1", Since: now}, "The outcome of make deploy is not known"},
		{server, &journal.CallEvidence{CallID: "call_1", Evidence: journal.Evidence{Text: "seen"}}, "Late evidence about make deploy seen"},
		{user, &journal.CallResolved{CallID: "call_1", Outcome: journal.InPart, By: me.ID, Evidence: "I looked", Then: journal.ThenContinue}, "You reconciled make deploy: it happened in part and chose to continue I looked"},
		{agent, &journal.PermissionAsked{ID: "per_1", Tool: journal.ToolRef{CallID: "call_1"}, Permission: "shell", Metadata: json.RawMessage(`{"command":"make deploy"}`)}, "Asked for a decision: run this command make deploy Read the request"},
		{user, &journal.PermissionReplied{ID: "per_1", Reply: journal.ReplyReject, By: me.ID, Message: "not now"}, "You denied it Read the request not now"},
		{user, &journal.PermissionReplied{ID: "per_1", Reply: journal.ReplyOnce, By: "usr_other"}, "Another person allowed it once"},
		{server, &journal.PermissionCancelled{ID: "per_1", Reason: "interrupted"}, "ended without an answer interrupted"},
		{user, &journal.InterruptRequested{By: me.ID, Mode: journal.InterruptNow}, "You asked to stop now"},
		{server, &journal.StepRecovered{Phase: journal.PhaseUncertain, Calls: []journal.RecoveredCall{{CallID: "call_1", Became: journal.CallIsUnknown}}}, "was lost recorded by the server 1 operation had no recorded result. Nothing was repeated."},
		{server, &journal.LimitReached{Limit: "steps", Value: 100}, "Reached the step limit 100 steps"},
	}
}

func window(t *testing.T, bodies ...journal.Body) components.Window {
	t.Helper()
	w := components.Window{
		SessionID: "ses_1", Viewer: me, Now: now, Texts: map[string]string{"inp_1": "the whole text"},
		Calls: map[string]*journal.Call{"call_1": {ID: "call_1", Tool: "shell", Input: json.RawMessage(`{"command":"make deploy"}`)}},
	}
	for i, b := range bodies {
		data, err := journal.Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		w.Events = append(w.Events, journal.Event{Seq: int64(i + 1), Kind: b.Kind(), Version: 1, Time: now, Actor: journal.Agent(), Data: data})
	}
	return w
}

// proves JRN-7
func TestEntries_EveryKind(t *testing.T) {
	t.Parallel()
	seen := map[journal.Kind]bool{}
	for _, tt := range everyKind() {
		seen[tt.body.Kind()] = true
		w := window(t, tt.body)
		w.Events[0].Actor = tt.actor
		doc := render(t, components.JournalRow(components.Entries(w)[0], now))
		row := doc.Find("li#j-1")
		if got := text(row.Find(".body")); !strings.Contains(solid(got), solid(tt.says)) {
			t.Errorf("%s: says %q, want %q", tt.body.Kind(), got, tt.says)
		}
		if _, hidden := row.Attr("hidden"); hidden {
			if tt.body.Kind() != journal.KindCallOutput {
				t.Errorf("%s: nothing is to be seen", tt.body.Kind())
			}
			continue
		}
		if row.Find("svg.ico").Length() == 0 || row.Find(`a[href="#j-1"]`).Length() != 1 || row.Find("time[datetime]").Length() == 0 {
			t.Errorf("%s: the row has no shape, link or time", tt.body.Kind())
		}
	}
	for kind := range journalKinds(t) {
		if !seen[kind] {
			t.Errorf("no row is drawn for %s", kind)
		}
	}
	strange := components.Entries(components.Window{Now: now, Events: []journal.Event{
		{Seq: 7, Kind: "weather.changed", Version: 1, Data: json.RawMessage(`{"to":"<b>rain</b>"}`)},
		{Seq: 8, Kind: journal.KindTurnEnded, Version: 9, Data: json.RawMessage(`{}`)},
		{Seq: 9, Kind: journal.KindTurnEnded, Version: 1, Data: json.RawMessage(`{"outcome":7}`)},
	}})
	for i, want := range []string{"weather.changed", "turn.ended (version 9)", "turn.ended"} {
		doc := render(t, components.JournalRow(strange[i], now))
		if got := text(doc.Find(".who")); !strings.Contains(got, want) || doc.Find("b").Length() != 0 {
			t.Errorf("an unknown entry says %q, want %q as an opaque row", got, want)
		}
	}
}

// solid is a text without blanks: blocks that follow each other have none between them.
func solid(s string) string { return strings.ReplaceAll(s, " ", "") }

// journalKinds reads the kinds from their declaration, so that a new one can't be forgotten here.
func journalKinds(t *testing.T) map[journal.Kind]bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../../journal/bodies.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[journal.Kind]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Kind") {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
			out[journal.Kind(strings.Trim(lit.Value, `"`))] = true
		}
		return true
	})
	if len(out) < 30 {
		t.Fatalf("found %d kinds only", len(out))
	}
	return out
}

// Pieces of one output stand together once, at the row where the call ended; each has a row all the same.
func TestEntries_OutputStandsOnce(t *testing.T) {
	t.Parallel()
	var bodies []journal.Body
	var all strings.Builder
	for i := range 100 {
		line := fmt.Sprintf("line %d\n", i)
		bodies = append(bodies, &journal.CallOutput{CallID: "call_1", Offset: int64(all.Len()), Text: journal.T(line)})
		all.WriteString(line)
	}
	zero := 0
	w := window(t, append(bodies, &journal.CallSettled{CallID: "call_1", State: journal.CallSucceeded, ExitCode: &zero, OutputBytes: int64(all.Len())})...)
	w.Outputs = map[string]components.Ends{"call_1": allOf(all.String())}
	list := components.Entries(w)
	if len(list) != 101 {
		t.Fatalf("got %d rows, want one for each event", len(list))
	}
	for i, e := range list {
		if last := i == len(list)-1; (e.Output != nil) != last || e.Piece == last {
			t.Errorf("row %d of %d: output %v, a piece %v", i, len(list), e.Output != nil, e.Piece)
		}
	}
	out := render(t, components.JournalRow(list[100], now)).Find(`[data-testid="output"]`)
	if got := text(out.Find(`[data-testid="output-last"]`)); !strings.HasPrefix(got, "line 94 ") || !strings.HasSuffix(got, "line 99") {
		t.Errorf("what stands open is %q, want the last 6 lines", got)
	}
	folded := out.Find("details:not([open])")
	if got := text(folded); strings.Count(folded.Find("pre").Text(), "line ") != 94 || !strings.HasPrefix(got, "Show 94 lines before these") {
		t.Errorf("folded is %q, want the first 94 lines", got)
	}
	if !strings.Contains(text(out), "Last 6 of 100 lines, 790 bytes") || out.Find(`a[href="/calls/call_1/output"]`).Length() != 1 || out.Find(`a[href="/calls/call_1/output?download=1"]`).Length() != 1 {
		t.Errorf("it isn't said how much there is and where all of it is: %s", text(out))
	}
	if out.Find("pre[tabindex='0'][aria-label]").Length() != 2 {
		t.Error("the output can't be reached by keyboard")
	}
}

// proves JRN-6
func TestEntries_LongTextIsBounded(t *testing.T) {
	t.Parallel()
	w := window(t, &journal.PromptPromoted{PromptID: "inp_1", Delivery: journal.Queue})
	w.Texts["inp_1"] = strings.Repeat("ä", 128<<10)
	doc := render(t, components.JournalRow(components.Entries(w)[0], now))
	prose := doc.Find(".prose").Text()
	if len(prose) > 17<<10 || strings.Contains(prose, "\ufffd") {
		t.Errorf("%d bytes are shown", len(prose))
	}
	if got := text(doc.Find(".body")); !strings.Contains(got, "240 KB more stand in the export") {
		t.Errorf("it isn't said that text is left out")
	}
}

// A message that is being written stands at its newest piece; once it is complete, there alone.
func TestEntries_MessageStandsOnce(t *testing.T) {
	t.Parallel()
	delta := func(s string) journal.Body {
		return &journal.MessageDelta{MessageID: "msg_1", Part: journal.PartText, Text: journal.T(s)}
	}
	writing := components.Entries(window(t, delta("one "), delta("two")))
	if writing[0].Prose != "" || writing[1].Prose != "one two" {
		t.Errorf("got %q and %q", writing[0].Prose, writing[1].Prose)
	}
	whole := components.Entries(window(t, delta("one "), delta("two"), &journal.MessageCompleted{MessageID: "msg_1", Part: journal.PartText, Text: journal.T("one two")}))
	if whole[0].Prose != "" || whole[1].Prose != "" || whole[2].Prose != "one two" {
		t.Errorf("got %q, %q and %q", whole[0].Prose, whole[1].Prose, whole[2].Prose)
	}
}

// A call that never began wasn't ended.
func TestEntries_CancelledBeforeItStarted(t *testing.T) {
	t.Parallel()
	for started, want := range map[int64]string{0: "It was not started.", now: "It was ended, because a stop was asked for."} {
		w := window(t, &journal.CallSettled{CallID: "call_1", State: journal.CallCancelled, Reason: "interrupted"})
		w.Calls["call_1"].DispatchedAt = started
		if got := text(render(t, components.JournalRow(components.Entries(w)[0], now)).Find(".body")); !strings.Contains(got, want) {
			t.Errorf("started at %d: says %q, want %q", started, got, want)
		}
	}
}
