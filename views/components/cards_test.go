package components_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"

	"holdfast/journal"
	"holdfast/views/components"
	"holdfast/views/internal/fixtures"
)

func request(t *testing.T, command string, more map[string]any) *journal.Request {
	t.Helper()
	return fixtures.Request(command, more)
}

func callOf(t *testing.T, command string) *journal.Call {
	t.Helper()
	return fixtures.Call(command)
}

// A number by which requests of an agent are told apart says nothing to a person.
func TestAskCard_LeavesOutNumbers(t *testing.T) {
	t.Parallel()
	for _, call := range []*journal.Call{nil, callOf(t, "make")} {
		doc := render(t, components.AskCard(components.NewDecisionCard(request(t, "make", map[string]any{"ask": 1847104372736}), call, now, "key-1")))
		if got := text(doc.Find(".kv")); strings.Contains(got, "1847104372736") {
			t.Errorf("the card says %q", got)
		}
	}
}

// Nobody can allow what they can't read: the buttons stand only where the whole payload does.
func TestAskCard_Buttons(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name           string
		command        string
		more           map[string]any
		call, own      bool
		buttons, shown bool
	}{
		{name: "short", command: "make deploy", buttons: true, shown: true},
		{name: "sixty lines", command: strings.Repeat("x\n", 57) + "x", buttons: true, shown: true},
		{name: "too many lines", command: strings.Repeat("x\n", 61)},
		{name: "too many bytes", command: strings.Repeat("x", 9000)},
		{name: "bidirectional", command: "echo safe \u202e"},
		{name: "control", command: "echo \x1b[2J"},
		{name: "hidden in a fact", command: "make", more: map[string]any{"directory": "/srv/\u202ework"}},
		{name: "cut in the request", command: "make", more: map[string]any{"command_bytes": 99_999}},
		{name: "cut in the request, whole in the call", command: "make", more: map[string]any{"command_bytes": 99_999}, call: true, buttons: true, shown: true},
		{name: "cut, on its own page without its call", command: "make", more: map[string]any{"command_bytes": 99_999}, own: true, shown: true},
		{name: "long on its own page", command: strings.Repeat("x\n", 500), own: true, buttons: true, shown: true},
		{name: "bidirectional on its own page", command: "echo safe \u202e", own: true, buttons: true, shown: true},
		{name: "nothing is known", command: "", more: map[string]any{}, own: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var call *journal.Call
			if tt.call {
				call = callOf(t, tt.command)
			}
			card := components.NewDecisionCard(request(t, tt.command, tt.more), call, now, "key-1")
			card.Own = tt.own
			doc := render(t, components.AskCard(card))
			if got := doc.Find("button").Length(); (got == 2) != tt.buttons || (got != 0) != tt.buttons {
				t.Errorf("%d buttons, want them: %v", got, tt.buttons)
			}
			if got := doc.Find(`a[href="/permissions/per_1"]`).Length() > 0; !tt.buttons && !got {
				t.Error("no way to where it can be answered")
			}
			if tt.buttons {
				form := doc.Find("form")
				action, _ := form.Attr("action")
				if action != "/permissions/per_1/decision" || form.Find(`input[name=digest][value=d1]`).Length() != 1 || form.Find(`input[name=idempotency_key][value=key-1]`).Length() != 1 {
					t.Error("the form doesn't say what was read, or has no key")
				}
			}
			shown := strings.TrimSuffix(strings.TrimPrefix(doc.Find(`[data-testid=payload]`).Text(), "\n"), "\n")
			want := strings.TrimSuffix(strings.NewReplacer("\u202e", `\u202e`, "\x1b", `\x1b`).Replace(tt.command), "\n")
			if (shown == want && want != "") != tt.shown && !strings.Contains(tt.name, "bidirectional") && !strings.Contains(tt.name, "control") && !strings.Contains(tt.name, "cut") && !strings.Contains(tt.name, "fact") {
				t.Errorf("shows %d bytes of %d", len(shown), len(want))
			}
			if strings.ContainsAny(doc.Text(), "\u202e\x1b") {
				t.Error("a character that acts is in the page")
			}
		})
	}
}

func TestAskCard_Warnings(t *testing.T) {
	t.Parallel()
	card := components.NewDecisionCard(request(t, "make", map[string]any{"same_as_unknown": true}), nil, now, "k")
	if got := text(render(t, components.AskCard(card)).Find(".kv")); !strings.Contains(got, "this would be the second time") {
		t.Errorf("no warning that it may have happened: %s", got)
	}
	if card.Payload.Row() {
		t.Error("it can be answered from a row, where the warning isn't")
	}
	plain := components.NewDecisionCard(request(t, "make", nil), nil, now, "k")
	if got := text(render(t, components.AskCard(plain)).Find(".kv")); strings.Contains(got, "second time") || strings.Contains(got, "Judged as") {
		t.Errorf("a plain one warns: %s", got)
	}
	for command, want := range map[string]bool{"make": true, "a\nb": false, strings.Repeat("x", 121): false, strings.Repeat("x", 120): true, "x\u200b": false} {
		if got := components.NewDecisionCard(request(t, command, nil), nil, now, "k").Payload.Row(); got != want {
			t.Errorf("%.20q in a row: %v", command, got)
		}
	}
}

// The end of what a command has printed tells how far it has come.
func TestEnding_ShowsTheEnd(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	all.WriteString("311 bytes of output were captured; it ends:")
	for i := range 40 {
		fmt.Fprintf(&all, "\nline %d", i)
	}
	got := components.Ending(all.String())
	if !strings.HasPrefix(got, "311 bytes of output were captured; it ends:\n… 21 lines before this\nline 21\n") || !strings.HasSuffix(got, "line 39") {
		t.Errorf("got %q", got)
	}
	if got := components.Ending("one\ntwo"); got != "one\ntwo" {
		t.Errorf("got %q", got)
	}
}

func TestUnknownCallCard(t *testing.T) {
	t.Parallel()
	call := callOf(t, "kubectl rollout restart")
	call.Evidence = []journal.Evidence{{Type: "output", Text: "No output was captured."}}
	call.Process = &journal.Process{Host: "build-2", PID: 7}
	doc := render(t, components.UnknownCallCard(components.NewUnknownCard(call, now, "key-1")))
	if doc.Find("input[type=radio][name=outcome]").Length() != 4 || doc.Find("input[checked]").Length() != 0 {
		t.Error("an outcome is missing, or chosen already")
	}
	var then []string
	doc.Find("button[name=then]").Each(func(_ int, b *goquery.Selection) { then = append(then, b.AttrOr("value", "")) })
	if fmt.Sprint(then) != "[continue stay]" {
		t.Errorf("buttons %v", then)
	}
	if got := strings.ToLower(text(doc.Selection)); strings.Contains(got, "retry") || !strings.Contains(got, "may still be running") || !strings.Contains(got, "no output was captured.") || !strings.Contains(got, "host build-2, process 7") {
		t.Errorf("the card says %q", got)
	}
	again := components.NewUnknownCard(call, now, "key-1")
	again.Outcome, again.Evidence, again.Problem, again.Field = "in_part", "\nhalf", "Say how you know", "evidence"
	doc = render(t, components.UnknownCallCard(again))
	if doc.Find("input[checked]").AttrOr("value", "") != "in_part" || doc.Find("textarea").Text() != "\nhalf" || !strings.Contains(text(doc.Find(".problem")), "Error: Say how you know") {
		t.Error("what was typed is lost, or what is wrong isn't said")
	}
	again.Locked = true
	if render(t, components.UnknownCallCard(again)).Find("form").Length() != 0 {
		t.Error("a page that reloads by itself has a form to lose text from")
	}
}

// proves PRO-4
func TestComposer_SaysWhatWillHappen(t *testing.T) {
	t.Parallel()
	open := begun(t).dispatch().session()
	for name, tt := range map[string]struct {
		c            components.Composer
		queue, steer string
		buttons      int
	}{
		"idle":              {components.Composer{Session: newStory(t).session()}, "as soon as a worker is free", "", 1},
		"open":              {components.Composer{Session: open, Steers: true}, "when this turn has ended", "next safe point of this turn", 2},
		"open, others wait": {components.Composer{Session: open, Steers: true, Waiting: 2}, "after 2 messages that already wait", "next safe point", 2},
		"no text mid-turn":  {components.Composer{Session: open}, "when this turn has ended", "takes no text while it works: it is delivered when the agent has done what it is at, before the queue. To have it read sooner, stop the turn and continue.", 2},
		"no text, and asks": {components.Composer{Session: begun(t).ask().session()}, "when this turn has ended", "It answers no request. This agent takes no text while it works", 2},
		"waiting":           {components.Composer{Session: begun(t).ask().session(), Steers: true}, "when this turn has ended", "answers no request", 2},
		"uncertain":         {components.Composer{Session: begun(t).dispatch().add(journal.Server(), &journal.CallUnknown{CallID: "call_1"}).session(), Steers: true}, "once the unknown outcome has been reconciled", "kept until the unknown outcome", 2},
		"held":              {components.Composer{Session: begun(t).end(journal.TurnEnded{Outcome: journal.Failed}, journal.Agent()).session(), Waiting: 1}, "1 held message will be delivered first", "", 1},
	} {
		doc := render(t, components.MessageForm(tt.c))
		if got := text(doc.Find("#queue-hint")); !strings.Contains(got, tt.queue) {
			t.Errorf("%s: queue says %q, want %q", name, got, tt.queue)
		}
		if got := text(doc.Find("#steer-hint")); !strings.Contains(got, tt.steer) || (tt.steer == "" && got != "") {
			t.Errorf("%s: steer says %q, want %q", name, got, tt.steer)
		}
		if got := doc.Find("button[name=delivery]").Length(); got != tt.buttons {
			t.Errorf("%s: %d buttons, want %d", name, got, tt.buttons)
		}
	}
}

func TestHeldNotice_RaisesTheLimit(t *testing.T) {
	t.Parallel()
	for limit, field := range map[string]struct{ name, offer string }{"steps": {"steps", "200"}, "wall_s": {"wall_h", "8"}} {
		s := begun(t).end(journal.TurnEnded{Outcome: journal.LimitReach, Limit: limit}, journal.Server()).session()
		doc := render(t, components.HeldNotice(s, "key-1", false))
		if got := doc.Find("input[name="+field.name+"]").AttrOr("value", ""); got != field.offer {
			t.Errorf("%s: offers %q, want %q", limit, got, field.offer)
		}
		if got := text(doc.Find("button")); got != "Raise the limit and continue" || !strings.Contains(text(doc.Find("h2")), "limit at a safe point") {
			t.Errorf("%s: the button says %q under %q", limit, got, text(doc.Find("h2")))
		}
	}
	s := begun(t).end(journal.TurnEnded{Outcome: journal.Failed}, journal.Agent()).session()
	if render(t, components.HeldNotice(s, "key-1", false)).Find("input[type=text]").Length() != 0 {
		t.Error("a failed turn offers to raise a limit")
	}
}

// Several requests of one call are told apart, and say what they reach.
func TestNumberCards(t *testing.T) {
	t.Parallel()
	card := func(seq int64, call, permission string) *components.DecisionCard {
		r := request(t, "cat /etc/hosts", nil)
		r.ID, r.AskedSeq, r.Tool.CallID, r.Permission, r.Resources = fmt.Sprintf("per_%d", seq), seq, call, permission, []string{"/etc/hosts"}
		c := components.NewDecisionCard(r, nil, now, "k")
		return &c
	}
	cards := []*components.DecisionCard{card(7, "call_1", "shell"), card(9, "call_2", "shell"), card(8, "call_1", "external_directory")}
	components.NumberCards(cards...)
	names := map[string]int{}
	for i, want := range []string{"1 of 2 permissions for this command", "", "2 of 2 permissions for this command"} {
		doc := render(t, components.AskCard(*cards[i]))
		doc.Find("h3, button, summary, label, a").Each(func(_ int, s *goquery.Selection) { names[text(s)]++ })
		if got := text(doc.Find(`[data-testid="place"]`)); !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("card %d says %q, want %q", i, got, want)
		}
	}
	for name, n := range names { // also for who hears them one by one
		if n > 1 {
			t.Errorf("%d things are named %q", n, name)
		}
	}
	if got := text(render(t, components.AskCard(*cards[2])).Find("h3")); !strings.Contains(got, "reach outside its workspace") || !strings.Contains(got, "/etc/hosts") || !strings.Contains(got, "2 of 2 for this command") {
		t.Errorf("the heading says %q", got)
	}
	if got := text(render(t, components.AskCard(*cards[1])).Find("button")); got != "Allow onceDeny" {
		t.Errorf("the buttons of the only request of a call say %q", got)
	}
	if got := text(render(t, components.AskCard(*cards[2])).Find(".kv")); !strings.Contains(got, "Permissionexternal_directory") {
		t.Errorf("the permission is shown as %q", got)
	}
	if got := text(render(t, components.AskCard(*cards[2])).Find(".kv")); !strings.Contains(got, "Reaches/etc/hosts") {
		t.Errorf("a path is shown as %q", got)
	}
	if got := text(render(t, components.AskCard(*cards[0])).Find(".kv")); !strings.Contains(got, "Judged as/etc/hosts") {
		t.Errorf("a command is shown as %q", got)
	}
}

// What the card says of whether the call ran and runs is what the evidence of its
// processes and its own record allow, in every combination, and no two sentences
// of it disagree (CAL-5, COO-7).
//
// proves CAL-5
func TestUnknownCallCard_Processes(t *testing.T) {
	t.Parallel()
	const (
		may    = "It may have run, in part, or not at all. A part of it may still be running."
		gone   = "It may have run, in part, or not at all. Nothing of it is running any more."
		ended  = "It may have run, in part, or not at all. What was still running of it was ended."
		record = "Its own record came late and stands below: "
	)
	// As the runner and the store say it.
	processes := []struct{ text, want string }{
		{"", may},
		{"It ran on build-2 as pid 7 since 13:02. It may still be running there.", may},
		{"It ran on build-2 as pid 7 since 13:02. Some of its processes could not be ended: it may still be running.", may},
		{"It was to be ended (timeout), but it left processes that could not be ended: [7 8]. It may still be under way.", may},
		{"It was still running on build-2 when it was last seen there, at 13:02. No server there answers now. It may still be running.", may},
		{"Something that no build before this one said.", may},
		{"It ran on build-2 as pid 7 since 13:02. That host was started anew since, so it runs no more.", gone},
		{"It ran on build-2 as pid 7 since 13:02. None of its processes was running any more when the execution was recovered.", gone},
		{"It ran on build-2 as pid 7 since 13:02. One of its processes was still running when the execution was recovered, and was ended.", ended},
		{"It ran on build-2 as pid 7 since 13:02. 3 of its processes were still running when the execution was recovered, and were ended.", ended},
	}
	records := []struct{ text, want string }{
		{"", ""},
		{"Its command ended at 13:05 with exit code 0.", record + "it has ended."},
		{"Its command ended at 13:05 by SIGKILL, because it was ended (it belonged to no execution any more).", record + "it has ended."},
		{"Its command ended at 13:05 with exit code 1, and left processes that could not be ended: [9].", record + "its command has ended, and left processes that may still be running."},
		{"Nothing of its command ran.", record + "nothing of it ran."},
	}
	for _, p := range processes {
		for _, r := range records {
			call := callOf(t, "make")
			call.Evidence = []journal.Evidence{{Type: "output", Text: "No output was captured."}}
			if p.text != "" {
				call.Evidence = append(call.Evidence, journal.Evidence{Type: "process", Text: p.text})
			}
			if r.text != "" {
				call.Evidence = append(call.Evidence, journal.Evidence{Type: journal.EvidenceExitRecord, Text: r.text})
			}
			card := render(t, components.UnknownCallCard(components.NewUnknownCard(call, now, "k")))
			want := "The server lost this call before a result was recorded. " + cmp.Or(r.want, p.want) + " It was not run again, and will not be unless you say so."
			if got := text(card.Find(".card-b > p").First()); got != want {
				t.Errorf("with %q and %q the card says\n%q, want\n%q", p.text, r.text, got, want)
			}
			names := text(card.Find("dl dt"))
			if before := strings.Contains(names, "Its processes, as seen before"); before != (p.text != "" && r.text != "") {
				t.Errorf("with %q and %q the evidence is called %q", p.text, r.text, names)
			}
			if never := strings.Contains(r.text, "Nothing"); strings.Count(text(card.Selection), ", started ") == 0 != never || strings.Count(text(card.Selection), ", dispatched ") == 2 != never {
				t.Errorf("with %q and %q the card says %q", p.text, r.text, text(card.Selection))
			}
		}
	}
	// Of what an agent ran, the agent's process is what was seen; its last words prove nothing.
	for seen, want := range map[string]string{
		"The agent's process was ended by SIGKILL.":                                                                      ended,
		"The agent's process ended with exit code 1. Its last words: so it runs no more.":                                ended,
		"The agent's process is gone, and nobody saw how it ended. Its last words: 2 of them, and were ended.":           may,
		"The agent's process was ended by SIGKILL. It left processes that could not be ended: [7]. Its last words: bye.": may,
	} {
		call := callOf(t, "make")
		call.Evidence = []journal.Evidence{{Type: "process", Text: seen}}
		card := render(t, components.UnknownCallCard(components.NewUnknownCard(call, now, "k")))
		want = "The agent’s process ended while this ran, before a result was recorded. " + want + " It was not run again, and will not be unless you say so."
		if got := text(card.Find(".card-b > p").First()); got != want || !strings.Contains(text(card.Find("dl dt")), "The agent’s process") {
			t.Errorf("with %q the card says\n%q, want\n%q", seen, got, want)
		}
	}
	never := callOf(t, "make")
	never.State, never.Evidence = journal.CallIsUnknown, []journal.Evidence{{Type: journal.EvidenceExitRecord, Text: records[4].text}}
	if facts := components.CallFacts(never, components.Viewer{}); !slices.ContainsFunc(facts, func(f components.CallFact) bool { return f.Name == "Dispatched" }) {
		t.Errorf("of what never ran the facts are %+v", facts)
	}
	// The words are the runner's: where they change there, they must change here.
	said := ""
	for _, file := range []string{"recovery.go", "shims.go", "execution.go", "acp/conn.go"} {
		source, err := os.ReadFile("../../runner/" + file)
		if err != nil {
			t.Fatal(err)
		}
		said += string(source)
	}
	for _, words := range []string{"was running any more when the execution was recovered.", "so it runs no more.", ", and was ended.", ", and were ended.", "The agent's process was ended by ", " Its last words: ", "processes that could not be ended", "Nothing of its command ran"} {
		if !strings.Contains(said, words) {
			t.Errorf("the runner says %q no more", words)
		}
	}
	// Of two words on its processes the last counts.
	call := callOf(t, "make")
	call.Evidence = []journal.Evidence{{Type: "process", Text: processes[1].text}, {Type: "process", Text: processes[7].text}}
	if got := text(render(t, components.UnknownCallCard(components.NewUnknownCard(call, now, "k"))).Selection); !strings.Contains(got, gone) || !strings.Contains(got, "Its processes, as seen before") {
		t.Errorf("after a second look the card says %q", got)
	}
}

// The version of a card says whether it shows something else, and nothing of its key.
func TestCards_Version(t *testing.T) {
	t.Parallel()
	version := func(c templ.Component) string {
		v := render(t, c).Find("[data-version]").AttrOr("data-version", "")
		if len(v) != 12 {
			t.Errorf("the version is %q", v)
		}
		return v
	}
	decision := func(change func(*components.DecisionCard)) string {
		c := components.NewDecisionCard(request(t, "make deploy", nil), nil, now, "k")
		change(&c)
		return version(components.AskCard(c))
	}
	unknown := func(change func(*components.UnknownCard)) string {
		c := components.NewUnknownCard(callOf(t, "make deploy"), now, "k")
		change(&c)
		return version(components.UnknownCallCard(c))
	}
	attempt := func(change func(*components.AttemptCard)) string {
		c := components.AttemptCard{ID: "att_1", Key: "k"}
		change(&c)
		return version(components.UnknownAttemptCard(c))
	}
	limit := begun(t).end(journal.TurnEnded{Outcome: journal.LimitReach, Limit: "steps"}, journal.Server()).session()
	failed := begun(t).end(journal.TurnEnded{Outcome: journal.Failed}, journal.Agent()).session()
	for name, tt := range map[string]struct {
		a, b string
		same bool
	}{
		"a decision, other key":      {decision(func(*components.DecisionCard) {}), decision(func(c *components.DecisionCard) { c.Key = "other" }), true},
		"a decision, later":          {decision(func(*components.DecisionCard) {}), decision(func(c *components.DecisionCard) { c.Now += 60_000 }), true},
		"a decision, other digest":   {decision(func(*components.DecisionCard) {}), decision(func(c *components.DecisionCard) { c.Request.Digest = "d2" }), false},
		"a decision, other payload":  {decision(func(*components.DecisionCard) {}), decision(func(c *components.DecisionCard) { c.Payload.Text = "make deploy " }), false},
		"a decision, another of two": {decision(func(*components.DecisionCard) {}), decision(func(c *components.DecisionCard) { c.Nr, c.Of = 1, 2 }), false},
		"an unknown, other key":      {unknown(func(*components.UnknownCard) {}), unknown(func(c *components.UnknownCard) { c.Key = "other" }), true},
		"an unknown, new evidence":   {unknown(func(*components.UnknownCard) {}), unknown(func(c *components.UnknownCard) { c.Call.Evidence = []journal.Evidence{{Type: "process", Text: "gone"}} }), false},
		"an attempt, other key":      {attempt(func(*components.AttemptCard) {}), attempt(func(c *components.AttemptCard) { c.Key = "other" }), true},
		"an attempt, refused":        {attempt(func(*components.AttemptCard) {}), attempt(func(c *components.AttemptCard) { c.Problem, c.Field = "Choose", "outcome" }), false},
		"held, other key":            {version(components.HeldNotice(limit, "k", false)), version(components.HeldNotice(limit, "other", false)), true},
		"held, for another cause":    {version(components.HeldNotice(limit, "k", false)), version(components.HeldNotice(failed, "k", false)), false},
	} {
		if (tt.a == tt.b) != tt.same {
			t.Errorf("%s: %s and %s, want the same: %v", name, tt.a, tt.b, tt.same)
		}
	}
}

// Two buttons of equal weight; a note is an extra, and what was typed stands open.
func TestAskCard_Answers(t *testing.T) {
	t.Parallel()
	card := components.NewDecisionCard(request(t, "make deploy", nil), nil, now, "k")
	doc := render(t, components.AskCard(card))
	var buttons []string
	doc.Find("form button").Each(func(_ int, b *goquery.Selection) {
		buttons = append(buttons, text(b)+" "+b.AttrOr("name", "")+"="+b.AttrOr("value", "")+" "+b.AttrOr("class", ""))
	})
	if got := strings.Join(buttons, "; "); got != "Allow once reply=once btn-strong; Deny reply=reject btn-strong" {
		t.Errorf("the buttons are %s", got)
	}
	if got := text(doc.Find(".card-b > *").First()); !strings.HasPrefix(got, "The agent wants to run this command, once.") {
		t.Errorf("the card begins with %q", got)
	}
	if doc.Find(`details:not([open]) textarea[name=message]`).Length() != 1 || doc.Find(`a[data-testid="own-page"]`).AttrOr("href", "") != "/permissions/per_1" {
		t.Error("the note isn't folded, or there is no way to the card's own page")
	}
	card.Message, card.Own = "not on a Sunday", true
	doc = render(t, components.AskCard(card))
	if text(doc.Find(`details[open] textarea[name=message]`)) != "not on a Sunday" || doc.Find(`[data-testid="own-page"]`).Length() != 0 {
		t.Error("what was typed is folded away, or the page links to itself")
	}
}

func TestUnknownAttemptCard(t *testing.T) {
	t.Parallel()
	c := components.AttemptCard{ID: "att_1", Key: "k"}
	doc := render(t, components.UnknownAttemptCard(c))
	if doc.Find("input[type=radio]").Length() != 2 || doc.Find("input[checked]").Length() != 0 || doc.Find(".problem").Length() != 0 {
		t.Error("a choice is missing, or made already")
	}
	c.Outcome, c.Evidence, c.Problem, c.Field = "abandon", "</textarea><img src=x onerror=y>", "Choose", "outcome"
	doc = render(t, components.UnknownAttemptCard(c))
	if doc.Find("input[checked]").AttrOr("value", "") != "abandon" || doc.Find("textarea").Text() != c.Evidence || doc.Find("img").Length() != 0 || !strings.Contains(text(doc.Find("fieldset .problem")), "Error: Choose") {
		t.Error("what was typed is lost or read as markup, or what is wrong isn't said")
	}
	c.Locked = true
	if render(t, components.UnknownAttemptCard(c)).Find("form").Length() != 0 {
		t.Error("a page that reloads by itself has a form to lose text from")
	}
}
