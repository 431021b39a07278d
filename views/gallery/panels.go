package gallery

import (
	"slices"

	"holdfast/journal"
	"holdfast/views/components"
	"holdfast/views/internal/fixtures"
)

func plans() Section {
	items := []journal.PlanItem{
		{Title: "Find the call sites", State: journal.PlanDone},
		{Title: "Read the old rules", State: journal.PlanSkipped},
		{Title: "Merge the tables", State: journal.PlanWaiting},
		{Title: "Build", State: journal.PlanRunning},
		{Title: "Test", State: journal.PlanFailed},
		{Title: "Deploy", State: journal.PlanUnknown},
		{Title: "Announce", State: journal.PlanUnknown, Found: journal.InPart},
		{Title: "Tell everybody"},
	}
	of := func(name, state string) Example {
		s := life(state)
		s.State.Plan = items
		return draw(name, components.PlanPanel, s)
	}
	return Section{ID: "plan", Title: "Plan", Note: "An item at which an agent was when it was lost or stopped says what is known of it.", Examples: []Example{
		of("while it works", "running"), of("after it was lost", "uncertain"), of("after it was stopped", "stopped"),
	}}
}

func facts() Section {
	call := fixtures.Call("make deploy")
	code := 2
	call.SessionID, call.State, call.N, call.ExitCode, call.AllowedBy = "ses_1", journal.CallFailed, 2, &code, &allowed
	call.Process = &journal.Process{Host: "build-2", PID: 7}
	call.EndedAt, call.Reason, call.Signal = fixtures.Now+4_100, "timeout", "SIGKILL"
	call.RanMS = new(int64(4_100))
	lost := fixtures.Call("make deploy")
	lost.State, lost.Feedback = journal.CallIsUnknown, "not on a Sunday"
	lost.Resolution = &journal.Resolution{Outcome: journal.InPart, By: fixtures.Me.ID, At: fixtures.Now}
	return Section{ID: "facts", Title: "Facts", Note: "Names with what is recorded. Those of a session stand under “Parts of a session’s page”.", Examples: []Example{
		plain("a call that failed", factList(components.CallFacts(call, fixtures.Me))),
		plain("a call that was reconciled", factList(components.CallFacts(lost, fixtures.Me))),
	}}
}

func queues() Section {
	list := []components.QueuedPrompt{
		{ID: "inp_2", Seq: 12, At: fixtures.Now - 60_000, Delivery: journal.Queue, Text: "When that is done, tell me.", Key: "key"},
		{ID: "inp_3", Seq: 13, At: fixtures.Now - 30_000, Delivery: journal.Steer, Joins: true, Text: "And look at the logs too.\n\n" + lines(20), Key: "key"},
		{ID: "inp_4", Seq: 14, At: fixtures.Now - 20_000, Delivery: journal.Steer, Text: "To an agent that takes no text while it works.", Key: "key"},
	}
	return Section{ID: "queue", Title: "Queue", Examples: []Example{
		draw("not delivered yet", components.Queue, list, fixtures.Now, false, false),
		draw("held", components.Queue, list[:1], fixtures.Now, true, false),
		draw("locked", components.Queue, list[:1], fixtures.Now, false, true),
		draw("nothing in it: no box", components.Queue, list[:0], fixtures.Now, false, false),
	}}
}

func composers() Section {
	of := func(name string, c components.Composer) Example {
		c.Key = "key"
		return draw(name, components.MessageForm, c)
	}
	open, asks := life("running"), life("waiting")
	return Section{ID: "composer", Title: "Composer", Note: "It is never disabled by a state: its hints say what will happen.", Examples: []Example{
		of("idle", components.Composer{Session: life("idle")}),
		of("others wait", components.Composer{Session: life("queued"), Waiting: 2, Steers: true}),
		of("a turn is open", components.Composer{Session: open, Steers: true}),
		of("a turn is open, and others wait", components.Composer{Session: open, Steers: true, Waiting: 2}),
		of("an agent that takes no text in mid-turn", components.Composer{Session: open}),
		of("such an agent waits for a decision", components.Composer{Session: asks}),
		of("such an agent is being stopped for a message", components.Composer{Session: life("stopping, for a message"), Waiting: 1}),
		of("the turn is being stopped", components.Composer{Session: life("stopping"), Steers: true}),
		of("a decision waits", components.Composer{Session: asks, Steers: true}),
		of("an outcome is unknown", components.Composer{Session: life("uncertain"), Steers: true}),
		of("blocked", components.Composer{Session: life("blocked"), Steers: true}),
		of("held", components.Composer{Session: life("stopped"), Waiting: 1}),
		of("held, nothing waits", components.Composer{Session: life("failed")}),
		of("a text that was kept", components.Composer{Session: life("ready"), Text: "half a thought", KeptAt: fixtures.Now - 600_000}),
		of("refused", components.Composer{Session: life("ready"), Problem: "Write a message"}),
		draw("kept ten minutes ago; not kept", components.UnsentState, fixtures.Now-600_000, fixtures.Now).also(components.UnsentState, int64(0), fixtures.Now),
		draw("a kept text that replaced another", components.ReplacedUnsent, "half another thought\n"+lines(20)),
		draw("a text that was kept in a session that has ended, and one that it replaced; none", components.KeptOfClosed, components.Composer{Session: life("closed"), Key: "key", Text: "half a thought\n" + lines(20), KeptAt: fixtures.Now - 600_000, Replaced: "half another thought"}).also(components.KeptOfClosed, components.Composer{}),
		draw("the button that keeps it, where no script does", components.KeepButton, "/sessions/ses_1/unsent"),
		draw("the version that it was drawn with, which can’t be seen", components.KeptVersion, fixtures.Now-600_000),
		draw("the turn that it may stop, which can’t be seen", components.ForTurn, open),
		draw("its key, as a script is sent it", components.MessageKey, "key", true),
		draw("its buttons, as a script is sent them", components.Deliveries, components.Composer{Session: open, Steers: true}, true),
	}}
}

func formParts() Section {
	return Section{ID: "forms", Title: "Parts of forms", Examples: []Example{
		draw("error summary", components.ErrorSummary, []components.Problem{{Field: "workspace", Text: "This folder isn’t there"}, {Text: "Nothing was recorded"}}),
		draw("no errors: nothing", components.ErrorSummary, []components.Problem{}),
		draw("a field that is wrong", components.FieldProblem, "workspace-err", "This folder isn’t there"),
		draw("key, which can’t be seen", components.Key, "key"),
		plain("fields", fields()),
	}}
}

func texts() Section {
	const odd = "a\u202eb <script> \x1b[31m\u200b"
	now := fixtures.Now
	return Section{ID: "text", Title: "Text and times", Note: "Characters that act or that can’t be seen stand as escapes.", Examples: []Example{
		draw("text", components.Text, "plain, and "+odd),
		draw("of what is acted on", components.Exact, "rm -rf /tmp/\u00a0x \u0627\u0644\u0639 rm \u0627 123"),
		plain("in a block", preformatted(components.Pre("first\n  second, "+odd))),
		draw("pre", components.Pre, "first\n  second"),
		draw("typed", components.Typed, "as it was typed"),
		draw("sentence", components.Sentence, components.Say("At ", components.AtSecond(now), ", ", components.Age(now-90_000), " ago, ", components.Code("make deploy"), " and ", components.Link("/help", "a link"), "."), now),
		draw("time: today, this year, another year", components.Time, now, now).also(components.Time, now-40*86_400_000, now).also(components.Time, now-400*86_400_000, now),
	}}
}

func notices() Section {
	return Section{ID: "notices", Title: "Notices", Note: "Classes; a page says which.", Examples: []Example{
		plain("off, bad, ok", noticeBoxes()), draw("a form was sent without a sign-in", components.SignedOutNotice, "/login", "You are signed out, so this was not sent. Your text is kept here."), plain("nothing is here", emptyLine()), plain("a card that changed while it was read", outdated()),
	}}
}

func tables() Section {
	return Section{ID: "tables", Title: "Tables and lists", Note: "A table becomes cards where there is little room.", Examples: []Example{plain("table", table()), plain("chips and counts", chips())}}
}

func buttons() Section {
	return Section{ID: "buttons", Title: "Buttons", Examples: []Example{plain("weights", weights()), plain("states", buttonStates())}}
}

// IconNames are the shapes of the sprite.
var IconNames = []string{
	"run", "hold", "queue", "stop", "done", "idle", "dash", "none", "fail", "ask", "other", "unk", "rev", "eye", "eyeoff", "eyeheld", "lock",
	"person", "agent", "term", "edit", "file", "db", "server", "todo",
}

func icons() Section {
	s := Section{ID: "icons", Title: "Icons", Note: "Circle: execution. Diamond: a question. Eye: the view. Dashed square: not known. Page: review. Octagon: failed."}
	for _, name := range slices.Sorted(slices.Values(IconNames)) {
		s.Examples = append(s.Examples, draw(name, components.Icon, name))
	}
	return s
}
