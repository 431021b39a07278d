package gallery

import (
	"fmt"
	"strings"

	"holdfast/journal"
	"holdfast/views/components"
	"holdfast/views/internal/fixtures"
)

// rows is a list of entries as one example.
func rows(name string, list []components.Entry) Example {
	e := Example{Name: name, Of: "JournalRow", List: true}
	for _, one := range list {
		e = e.also(components.JournalRow, one, fixtures.Now)
	}
	return e
}

func entries() Section {
	kinds := fixtures.EveryKind()
	var bodies []journal.Body
	for _, k := range kinds {
		bodies = append(bodies, k.Body)
	}
	w := fixtures.Window(bodies...)
	for i, k := range kinds {
		w.Events[i].Actor = k.Actor
	}
	written := fixtures.Window(&journal.PromptPromoted{PromptID: "inp_1", Delivery: journal.Queue},
		&journal.MessageCompleted{MessageID: "msg_1", Part: journal.PartText, Text: journal.T(markdown)},
		&journal.MessageCompleted{MessageID: "msg_2", Part: journal.PartReasoning, Text: journal.T("First the build, then the tests.")},
		&journal.PromptPromoted{PromptID: "inp_2", Delivery: journal.Queue})
	written.Texts["inp_2"] = strings.Repeat("A long text. ", 2000)
	return Section{ID: "entries", Title: "Entries", Note: "One row for each entry; a piece of output is a row without anything to read.", Examples: []Example{
		rows("every kind", components.Entries(w)),
		rows("what people and agents wrote", components.Entries(written)),
		rows("a call, from intent to outcome", components.Entries(callWindow(journal.CallFailed))),
		rows("a call that runs", components.Entries(runningWindow())),
		rows("ways in which a call ends", ends()),
		rows("an agent that writes, thinks and edits", components.Entries(agentWindow())),
		rows("a message that was cut off", components.Entries(cutOffWindow())),
		rows("a message that was finished twice", components.Entries(fixtures.Window(
			&journal.MessageCompleted{MessageID: "msg_1", Part: journal.PartText, Text: journal.T("It builds.")},
			&journal.MessageCompleted{MessageID: "msg_1", Part: journal.PartText, Text: journal.T("It builds, and the tests pass.")}))),
		rows("messages that their turn did not send", components.Entries(untoldWindow())),
		rows("a run of pieces that a window leaves out", components.Entries(runWindow())),
		draw("the notes of messages that aren’t complete", components.DraftNotes, []components.DraftNote{components.NewDraftNote("msg_1", journal.PartText, false), components.NewDraftNote("msg_2", journal.PartText, true)}),
		draw("what an agent says more of its call", components.CallWhats, []components.CallWhat{components.NewCallWhat(edit(12))}, fixtures.Now),
		rows("kinds that this build can’t read", components.Entries(fixtures.Strange())),
		draw("the last entries, beside something else", components.LastEntries, "ses_1", components.Entries(callWindow(journal.CallSucceeded)), fixtures.Now),
	}}
}

const markdown = "# A heading\n\nProse with *weight*, **more of it**, `code` and [a link](https://example.org/).\n\n- one\n- two\n\n> a quote\n\n```go\nfunc main() {}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n---\n\nAn ![image](https://example.org/x.png) is its words.\n"

func callWindow(state journal.CallState) components.Window {
	code := map[journal.CallState]int{journal.CallFailed: 2}[state]
	w := fixtures.Window(
		&journal.CallProposed{CallID: "call_1", Tool: "shell", Input: fixtures.Call("make deploy").Input, Effect: journal.EffectEffect},
		&journal.CallDispatched{CallID: "call_1", N: 1, AllowedBy: allowed},
		&journal.CallOutput{CallID: "call_1", Stream: "stdout", Text: journal.T("x")},
		&journal.CallSettled{CallID: "call_1", State: state, ExitCode: &code})
	c := w.Calls["call_1"]
	c.State, c.N, c.DispatchedAt, c.EndedAt, c.AllowedBy = state, 1, fixtures.Now-4_100, fixtures.Now, &allowed
	c.RanMS = new(int64(4_100))
	w.Outputs = map[string]components.Ends{"call_1": whole(lines(30))}
	return w
}

var allowed = journal.AllowedBy{Type: journal.AllowedByRule, Text: "shell make *"}

func runningWindow() components.Window {
	w := callWindow(journal.CallSucceeded)
	w.Events = w.Events[:3]
	w.Calls["call_1"].State, w.Calls["call_1"].EndedAt = journal.CallIsDispatched, 0
	return w
}

// ends are the rows of calls that ended in other ways than by an exit code.
func ends() []components.Entry {
	var out []components.Entry
	for i, b := range []*journal.CallSettled{
		{State: journal.CallSucceeded},
		{State: journal.CallFailed, Signal: "SIGKILL", Reason: "timeout"},
		{State: journal.CallFailed, Reason: "start_failed"},
		{State: journal.CallFailed, Reason: "output_failed"},
		{State: journal.CallIsRefused, Reason: "rejected"},
		{State: journal.CallCancelled, Reason: "interrupted"},
		{State: journal.CallCancelled, Reason: "orphaned"},
		{State: journal.CallCancelled, Reason: journal.ReasonNotStarted},
	} {
		b.CallID = "call_1"
		w := fixtures.Window(b)
		w.Events[0].Seq = int64(i + 1)
		out = append(out, components.Entries(w)...)
	}
	w := fixtures.Window(&journal.CallSettled{CallID: "call_1", State: journal.CallFailed, Reason: "timeout"})
	w.Events[0].Seq, w.Events[0].ExecutionID = int64(len(out)+1), "" // while no execution was there
	return append(out, components.Entries(w)...)
}

// agentWindow is a turn of an agent, up to the message that it is writing.
func agentWindow() components.Window {
	att, call := "att_1", edit(30)
	w := fixtures.Window(
		&journal.AgentOpened{How: journal.AgentNew, Name: "opencode", Version: "1.2.3", Resumes: true},
		&journal.AttemptPrepared{AttemptID: att, Model: "opencode"}, &journal.AttemptDispatched{AttemptID: att}, &journal.AttemptReceiving{AttemptID: att},
		&journal.MessageCompleted{MessageID: "msg_1", Part: journal.PartReasoning, Text: journal.T("First the file, then the **tests**.")},
		&journal.MessageCompleted{MessageID: "msg_2", Part: journal.PartText, Text: journal.T("I round in *one* place now:\n\n- `round.go`\n- its test\n")},
		&journal.CallProposed{CallID: "call_1", Tool: "edit", Input: call.Input, Effect: journal.EffectEffect, AttemptID: &att},
		&journal.CallDispatched{CallID: "call_1", N: 1, AllowedBy: journal.AllowedBy{Type: journal.AllowedByAgent}},
		&journal.CallSettled{CallID: "call_1", State: journal.CallSucceeded},
		&journal.MessageDelta{MessageID: "msg_3", Part: journal.PartReasoning, Text: journal.T("Do the tests pass?")},
		&journal.MessageDelta{MessageID: "msg_4", Part: journal.PartText, Text: journal.T("Now I run the tests, and")})
	w.Calls["call_1"] = call
	w.Writing = map[string]components.Writing{"msg_3/reasoning": {Seq: 10}, "msg_4/text": {Seq: 11, Text: "Now I run the tests, and look at what they say", Through: 40, Before: true}}
	return w
}

// untoldWindow are turns that ended before the agent was told of their messages.
func untoldWindow() components.Window {
	w := fixtures.Window(
		&journal.PromptPromoted{PromptID: "inp_1", Delivery: journal.Queue, TurnID: "trn_1"},
		&journal.TurnEnded{TurnID: "trn_1", Outcome: journal.Stopped},
		&journal.PromptPromoted{PromptID: "inp_2", Delivery: journal.Queue, TurnID: "trn_2"},
		&journal.PromptPromoted{PromptID: "inp_3", Delivery: journal.Steer, TurnID: "trn_2"},
		&journal.TurnEnded{TurnID: "trn_2", Outcome: journal.Failed, Reason: "The agent could not be started."})
	w.Untold = map[string]string{"inp_1": "trn_1", "inp_2": "trn_2", "inp_3": "trn_2"}
	return w
}

func cutOffWindow() components.Window {
	w := fixtures.Window(&journal.MessageDelta{MessageID: "msg_1", Part: journal.PartText, Text: journal.T("Now I")}, &journal.AttemptUnknown{AttemptID: "att_1"})
	w.Writing = map[string]components.Writing{"msg_1/text": {Seq: 1, CutOff: true}}
	return w
}

func runWindow() components.Window {
	w := fixtures.Window(&journal.AttemptReceiving{AttemptID: "att_1"})
	w.Through, w.Ended = 2000, fixtures.Now
	return w
}

// edit is a call that changes a file of n lines.
func edit(n int) *journal.Call {
	old := lines(n)
	return fixtures.AgentCall("edit", fixtures.AgentEdit("internal/fx/round.go", old, strings.Replace(old, "line 2 of", "line two of", 1)+strings.Repeat("one more line\n", n)))
}

func diffs() Section {
	s := Section{ID: "diff", Title: "Change", Note: "A sign and words say what colour says. What is long is bounded, with the whole folded below."}
	add := func(name string, c *journal.Call) {
		d := components.CallPayload(c).WholeDiff("change")
		s.Examples = append(s.Examples, draw(name, components.DiffBox, *d))
	}
	add("a short one", edit(3))
	add("a whole file", fixtures.AgentCall("edit", []byte(`{"title":"Write","kind":"edit","diffs":[{"path":"notes.md","old":null,"new":"# Notes\n\none\n"}]}`)))
	add("characters that act", fixtures.AgentCall("edit", fixtures.AgentEdit("a.txt", "safe\n", "safe \u202e\x1b[2J\n")))
	add("two files", fixtures.AgentCall("edit", []byte(`{"title":"Write","kind":"edit","diffs":[{"path":"a.go","old":"a\n","new":"b\n"},{"path":"b.go","old":"a\n","new":""}]}`)))
	s.Examples = append(s.Examples, draw("a command beside", components.RunsBeside, "make deploy", "What would be run"))
	s.Examples = append(s.Examples, draw("what the agent says besides", components.AgentSays, []components.Fact{{Name: "runs_in", Value: "/sandbox"}, {Name: "stdin", Value: strings.Repeat("yes\n", 20)}}, "asked as entry 8"))
	s.Examples = append(s.Examples, draw("what the agent gave its tool", components.RawInput, "raw", components.CallPayload(edit(3))))
	return s
}

func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d of what make deploy wrote\n", i+1)
	}
	return b.String()
}

func whole(s string) components.Ends { return components.Ends{Head: s, Total: int64(len(s))} }

func away() Section {
	now := fixtures.Now
	row := draw("three hours, and a minute", components.AwayRow, now-11_280_000, 41, now).also(components.AwayRow, now-61_000, 1, now)
	row.List = true
	return Section{ID: "away", Title: "Away", Note: "After the last entry that a person had on their screen.", Examples: []Example{row}}
}

func outputs() Section {
	colours := ""
	for _, code := range []string{"1", "2", "3", "4", "9", "31", "32", "33", "34", "35", "36", "90", "1;31"} {
		colours += "\x1b[" + code + "mwritten under " + code + "\x1b[0m\n"
	}
	dropped := components.NewOutput("out", "call_1", "Output of make", components.Ends{Head: lines(40), Tail: lines(300), Total: 90 << 20}, false)
	dropped.Dropped = 80 << 20
	box := func(name string, ends components.Ends, failed bool) Example {
		return draw(name, components.OutputBox, components.NewOutput("out", "call_1", "Output of make", ends, failed))
	}
	running := fixtures.Call("make")
	running.State = journal.CallIsDispatched
	ended := fixtures.Call("make")
	ended.State = journal.CallSucceeded
	return Section{ID: "output", Title: "Output", Note: "The last lines stand open; of one that failed the first and the last.", Examples: []Example{
		box("empty", whole(""), false), box("one line", whole("ok\n"), false), box("six lines", whole(lines(6)), false), box("two hundred", whole(lines(200)), false),
		box("colours", whole(colours), false), box("characters that act", whole("a\u202eb \x1b[2K \x00 \u009b31m\n"), false),
		box("failed, short", whole(lines(5)), true), box("failed, long", whole(lines(100)), true),
		box("one line of a megabyte", whole(strings.Repeat("x", 1<<20)), false), draw("huge, its middle not kept", components.OutputBox, dropped),
		draw("the last lines of a long one, on the page of its call", components.OutputBox, components.NewLongOutput("out", "call_1", "Output of make", lines(500), 40_000, 200)),
		draw("of a call that runs", components.LiveOutputBox, components.NewLiveOutput(running, whole(lines(9))), false),
		draw("of a call that has ended: emptied", components.LiveOutputBox, components.NewLiveOutput(ended, whole(lines(9))), true),
		draw("several at once", components.LiveOutputs, []components.LiveOutput{components.NewLiveOutput(running, whole("ok\n"))}),
	}}
}

func traces() Section {
	s := Section{ID: "trace", Title: "Trace", Note: "The words say all that the line shows. A life of less than a second draws nothing."}
	const minute = 60_000
	span := func(state components.SpanState, from, to int64) components.Span {
		return components.Span{State: state, From: fixtures.Now - from*minute, To: fixtures.Now - to*minute}
	}
	add := func(name string, spans ...components.Span) {
		s.Examples = append(s.Examples, draw(name, components.Trace, components.TraceView{Spans: spans, Now: fixtures.Now}))
	}
	add("all four states", span(components.SpanWorking, 264, 164), span(components.SpanWaiting, 164, 84), span(components.SpanUnknown, 84, 72), span(components.SpanWorking, 72, 24), span(components.SpanStopped, 24, 0))
	add("working", span(components.SpanWorking, 3, 0))
	add("days", span(components.SpanWorking, 9000, 7000), span(components.SpanWaiting, 7000, 1), span(components.SpanWorking, 1, 0))
	var many []components.Span
	for i := int64(600); i > 0; i -= 2 {
		many = append(many, span(components.SpanWorking, i, i-1), span(components.SpanStopped, i-1, i-2))
	}
	add("more pieces than there is room for", many...)
	add("no life yet")
	return s
}
