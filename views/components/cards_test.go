package components_test

import (
	"cmp"
	"encoding/json"
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

// Before the buttons stands all that is asked, warnings first; behind them only how it
// would run, as the server says it. What an agent gives its own tool is asked, whatever
// it is called.
// proves PER-2
func TestAskCard_Order(t *testing.T) {
	t.Parallel()
	names := func(c components.DecisionCard, list string) (out []string) {
		render(t, components.AskCard(c)).Find("[data-testid=" + list + "] > dt").Each(func(_ int, dt *goquery.Selection) { out = append(out, text(dt)) })
		return out
	}
	meta := map[string]any{"directory": "/srv/x", "runs_as": "dev", "host": "h1", "effect": "effect", "same_as_unknown": true}
	r := request(t, "make", meta)
	own := &journal.Call{ID: "call_1", Input: json.RawMessage(`{"command":"make","shell":"sh","timeout_s":60}`)}
	agents := &journal.Call{ID: "call_2", AttemptID: "att_1", Input: json.RawMessage(`{"title":"Deploy","kind":"other","input":{"host":"prod.example","shell":"zsh","runs__in":"/sandbox","effect_":"it only reads","Take\u00a0care":"all is well","Permission":"none","":"x"}}`)}
	for _, tt := range []struct {
		name          string
		call          *journal.Call
		asked, beside []string
	}{
		{"not at hand", nil, []string{"Take care", "Runs in"}, []string{"Effect", "Host", "Runs as"}},
		{"of a runbook", own, []string{"Take care", "Runs in"}, []string{"Shell", "Ended after", "Effect", "Host", "Runs as"}},
		{"of an agent", agents, []string{"Take care", "Runs in"}, []string{"Effect", "Host", "Runs as"}},
	} {
		card := components.NewDecisionCard(r, tt.call, now, "k")
		card.Own = true
		if got := names(card, "asked-facts"); !slices.Equal(got, tt.asked) {
			t.Errorf("%s: before the buttons stand %q, want %q", tt.name, got, tt.asked)
		}
		if got := names(card, "ask-details"); !slices.Equal(got[:len(tt.beside)], tt.beside) {
			t.Errorf("%s: behind them stand %q, want %q", tt.name, got, tt.beside)
		}
	}
	card := components.NewDecisionCard(r, agents, now, "k")
	card.Own = true
	doc := render(t, components.AskCard(card))
	var said []string
	doc.Find(`.card-b > [data-testid="agent-says"] dt > code`).Each(func(_ int, dt *goquery.Selection) { said = append(said, dt.Text()) })
	if want := []string{`""`, "Permission", `Take\xa0care`, "effect_", "host", "runs__in", "title"}; !slices.Equal(said, want) {
		t.Errorf("the agent says %q, want %q", said, want)
	}
	if before := text(doc.Find(`[data-testid="agent-says"]`).First()); !strings.HasPrefix(before, "The agent says") || doc.Find(`[data-testid="agent-says"] ~ form`).Length() != 1 {
		t.Errorf("what the agent says isn't before the buttons, or isn't called that: %q", before)
	}
}

// What the server says stands there, whatever a call calls the same.
//
// proves PER-2
func TestAskCard_KeepsWhatTheServerSays(t *testing.T) {
	t.Parallel()
	r := request(t, "make", map[string]any{"host": "h1", "runs_as": "dev"})
	own := &journal.Call{ID: "call_1", Input: json.RawMessage(`{"command":"make","host":"elsewhere","runs_as":"nobody"}`)}
	card := components.NewDecisionCard(r, own, now, "k")
	for _, want := range []components.Fact{{Name: "Host", Value: "h1"}, {Name: "Runs as", Value: "dev"}} {
		if !slices.Contains(card.Payload.Facts, want) {
			t.Errorf("%v is missing in %v", want, card.Payload.Facts)
		}
	}
}

func TestAskCard_SaysWhy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		meta map[string]any
		want string
		row  bool
	}{
		{map[string]any{"always_asks": true}, "It is always asked, whatever the rules say.", false},
		{map[string]any{"always_asks": true, "asks_why": []string{"sudo acts as another person", "it is nested too deeply"}}, "It is always asked, whatever the rules say: sudo acts as another person; it is nested too deeply.", false},
		{map[string]any{"always_asks": false, "asks_why": []string{"it may set the clock"}}, "The permissions of this session do not allow it by themselves: it may set the clock.", true},
		{map[string]any{"asks_why": "x"}, "", true},
	} {
		card := components.NewDecisionCard(fixtures.Request("date", c.meta), fixtures.Call("date"), now, "k")
		before := beforeButtons(t, card)
		if _, got, _ := strings.Cut(before, "Why you are asked"); !strings.HasPrefix(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%v says %q, want %q", c.meta, before, c.want)
		}
		if card.Payload.Row() != c.row {
			t.Errorf("%v can be answered in a row: %v", c.meta, !c.row)
		}
	}
}

// What is asked once more says why, in the card and in its row, and isn't answered in a
// row of a table without a look.
//
// proves PER-4
func TestAskCard_AskedAgain(t *testing.T) {
	t.Parallel()
	const why = "It was allowed before, and wasn’t run. Since then what lies in README.md has changed."
	r := fixtures.Request("date", map[string]any{"asked_again": why})
	for _, call := range []*journal.Call{nil, fixtures.Call("date")} {
		card := components.NewDecisionCard(r, call, now, "k")
		if got := text(render(t, components.AskCard(card)).Find(`[data-testid="asked-again"]`)); got != why || !card.Answerable() || card.Payload.Row() {
			t.Errorf("the card says %q, answerable %v, in a row %v", got, card.Answerable(), card.Payload.Row())
		}
		if got := text(render(t, components.AskCard(card)).Find("article")); strings.Contains(got, "nothing has been run") {
			t.Errorf("the card of what may have run says %q", got)
		}
	}
	if plain := components.NewDecisionCard(fixtures.Request("date", nil), nil, now, "k"); render(t, components.AskCard(plain)).Find(`[data-testid="asked-again"]`).Length() != 0 {
		t.Error("what is asked for the first time says that it isn't")
	}
}

// proves PER-2
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
	call.State, call.Evidence = journal.CallIsUnknown, []journal.Evidence{{Type: "output", Text: "No output was captured."}}
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
		"no text mid-turn":  {components.Composer{Session: open}, "when this turn has ended", "takes no text while it works: it is delivered when the agent has done what it is at, before the queue.", 3},
		"no text, and asks": {components.Composer{Session: begun(t).ask().session()}, "when this turn has ended", "It answers no request. This agent takes no text while it works", 3},
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

// What becomes of the turn, and of a message that it is stopped for, stands beside the
// button in each state; so does what a stop alone does to other messages.
//
// proves PRO-4 PRO-5
func TestComposer_StopAndSend(t *testing.T) {
	t.Parallel()
	you := journal.User("usr_1")
	sends := func(s *story) *story {
		return s.add(you, &journal.PromptAdmitted{PromptID: "inp_9", Delivery: journal.Steer}, &journal.InterruptRequested{By: "usr_1", Mode: journal.InterruptNow, PromptID: "inp_9"})
	}
	stop := &journal.InterruptRequested{By: "usr_1", Mode: journal.InterruptNow}
	for name, tt := range map[string]struct {
		s                  components.Session
		stop, steer, queue string
	}{
		"at work":          {begun(t).dispatch().session(), "What runs now is ended; what it did until then stays done. Then your message begins the next turn, before the queue.", "when the agent has done what it is at", "when this turn has ended"},
		"asks":             {begun(t).ask().session(), "An open decision is cancelled, and nothing is run because of it. Then your message begins the next turn", "answers no request", "when this turn has ended"},
		"asks twice":       {begun(t).ask().ask().session(), "2 open decisions are cancelled, and nothing is run because of them. Then your message begins the next turn", "answers no request", "when this turn has ended"},
		"uncertain":        {begun(t).dispatch().add(journal.Server(), &journal.CallUnknown{CallID: "call_1"}).session(), "The turn is ended. Your message is kept until the unknown outcome has been reconciled", "kept until", "kept"},
		"blocked":          {begun(t).add(journal.Server(), &journal.SessionBlocked{Cause: journal.BlockAgent}).session(), "The turn is ended. Your message is kept, and delivered once the session can go on.", "", "kept"},
		"stopping":         {begun(t).dispatch().add(you, stop).session(), "The turn is being stopped already. Then your message begins the next turn", "it is held then, until you continue", "it is held then, until you continue"},
		"stopping for one": {sends(begun(t).dispatch()).session(), "The turn is being stopped already.", "is being stopped for a message: it is delivered after that", "when this turn has ended"},
		"no turn is open":  {newStory(t).session(), "", "", "as soon as a worker is free"},
	} {
		doc := render(t, components.MessageForm(components.Composer{Session: tt.s}))
		for id, want := range map[string]string{"#stop-hint": tt.stop, "#steer-hint": tt.steer, "#queue-hint": tt.queue} {
			if got := text(doc.Find(id)); !strings.Contains(got, want) {
				t.Errorf("%s: %s says %q, want %q", name, id, got, want)
			}
		}
		if got := text(doc.Find("#send-stop")); tt.stop != "" && (got == "End the turn and send") != (name == "uncertain") {
			t.Errorf("%s: the button says %q", name, got)
		}
		if got := doc.Find("#send-stop").AttrOr("value", ""); (got == "interrupt") != (tt.stop != "") {
			t.Errorf("%s: the button sends %q", name, got)
		}
	}
	for sends, want := range map[bool]string{true: "the message that you stopped the turn for is delivered", false: "it is asked to go on from there"} {
		if got := text(render(t, components.UnknownAttemptCard(components.AttemptCard{ID: "att_1", Sends: sends})).Find("form")); !strings.Contains(got, want) {
			t.Errorf("the card of the attempt says %q, want %q", got, want)
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
	for i, want := range []string{"1 of 2 permissions for this command. Each is answered on its own. It runs when all of them are allowed, and does not if one is denied. The agent wants to do the same 2 times; this is call 1", "The agent wants to do the same 2 times; this is call 2", "2 of 2 permissions for this command"} {
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
	alone, again := []*components.DecisionCard{card(7, "call_1", "shell")}, []*components.DecisionCard{card(7, "call_1", "shell"), card(8, "call_1", "shell")}
	components.NumberCards(alone...)
	components.NumberCards(again...)
	if got := text(render(t, components.AskCard(*alone[0])).Find("button")); got != "Allow onceDeny" || alone[0].Place() != "" {
		t.Errorf("the only request of a call says %q, %q", got, alone[0].Place())
	}
	if got := again[1].Place(); !strings.HasPrefix(got, "2 of 2 requests for this command: the agent asked for the same more than once.") {
		t.Errorf("the same once more says %q", got)
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
	c.Lost, c.Now = &journal.AgentLost{ProcessID: "prc_1", Host: "build-2", PID: 7, Since: now - 60_000}, now
	doc = render(t, components.UnknownAttemptCard(c))
	if got := text(doc.Find(`[data-testid="attempt-lost"]`)); !strings.Contains(got, "Its process ran on build-2, as pid 7, since 13:25:00. It may still be running there, and at work on this") {
		t.Errorf("LEA-12: the card says %q", got)
	}
	if got := text(doc.Find("fieldset")); strings.Count(got, "while the first is still at work") != 2 {
		t.Errorf("LEA-12: the choice says %q", got)
	}
	c.Locked = true
	if render(t, components.UnknownAttemptCard(c)).Find("form").Length() != 0 {
		t.Error("a page that reloads by itself has a form to lose text from")
	}
}

// What the agent calls the answer that a button gives is said before it is pressed, in
// quotes that nothing in it can end, also where the request would fit into a row.
//
// proves PER-2
func TestAskCard_SaysWhatTheAgentCallsTheAnswers(t *testing.T) {
	t.Parallel()
	for said, want := range map[[2]string]string{
		{"", ""}: "",
		{"Yes, and trust \u201dmake\u201d\u202e", ""}: `Allow once reaches the agent as its answer “Yes, and trust "make"\u202e”.`,
		{"", "No, stop"}:       "Deny reaches the agent as its answer “No, stop”.",
		{"Run it", "No, stop"}: "Allow once reaches the agent as its answer “Run it”, Deny as “No, stop”.",
	} {
		meta := map[string]any{"once_is": said[0], "reject_is": said[1], "ask": 7, "whole": true}
		card := components.NewDecisionCard(request(t, "make deploy", meta), nil, now, "k")
		doc := render(t, components.AskCard(card))
		if got := text(doc.Find(`[data-testid="answers-as"]`)); got != want {
			t.Errorf("%q: says %q, want %q", said, got, want)
		}
		if strings.Contains(text(doc.Find("dl")), "reject") {
			t.Errorf("%q: it stands among the facts, too", said)
		}
		if row := card.Payload.Row(); row != (want == "") {
			t.Errorf("%q: it is a row: %t", said, row)
		}
	}
}

// What a denial does is said as it is for the agent whose call it is (PER-3).
func TestAskCard_SaysWhatADenialDoes(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string][2]string{
		"":         {"Denied without a note, the turn ends. Denied with one, only this call is refused.", "If you deny with it, the agent is told why."},
		"runbook":  {"this step counts as failed: the turn ends, unless the mission says", "A runbook doesn’t read it."},
		"opencode": {"only this call is refused, and the agent is told why.", "If you deny with it, the agent is told why."},
	} {
		card := components.NewDecisionCard(request(t, "make deploy", nil), nil, now, "k")
		card.Agent = agent
		doc := render(t, components.AskCard(card))
		if got := text(doc.Find(`[data-testid="denied-words"]`)); !strings.Contains(got, want[0]) {
			t.Errorf("%q: a denial is said to do: %s", agent, got)
		}
		if got := text(doc.Find(`[data-testid="decision-note"] .hint`)); !strings.HasSuffix(got, want[1]) {
			t.Errorf("%q: of a note it is said: %s", agent, got)
		}
	}
}

// Two calls are the same only if all that they would do is, wherever it is said. Those that
// only read alike say so, and what differs; no two controls have one name.
//
// proves PER-2
func TestNumberCards_TheSame(t *testing.T) {
	t.Parallel()
	cards := func(hashed, own bool, inputs ...string) (out []*components.DecisionCard) {
		for i, input := range inputs {
			call := &journal.Call{ID: fmt.Sprintf("call_%d", i), AttemptID: "att_1", Input: json.RawMessage(input), InputSHA256: journal.Hash(input)}
			meta := map[string]any{"ask": i + 1, "command": "x", "command_bytes": 1}
			if hashed {
				meta["input_sha256"] = call.InputSHA256
			}
			r := request(t, "x", meta)
			r.ID, r.AskedSeq, r.Tool.CallID, r.Permission, r.Resources = fmt.Sprintf("per_%d", i), int64(i+1), call.ID, "mcp", []string{"x"}
			if !own {
				call = nil
			}
			c := components.NewDecisionCard(r, call, now, "k")
			out = append(out, &c)
		}
		components.NumberCards(out...)
		return out
	}
	in := func(title, kind, more string) string {
		return `{"title":"` + title + `","kind":"` + kind + `",` + more + `}`
	}
	for name, c := range map[string]struct{ one, other, says string }{
		"what a tool is given": {in("mcp__db__query", "other", `"input":{"id":1,"query":"SELECT 1"}`), in("mcp__db__query", "other", `"input":{"id":1,"query":"DROP TABLE users"}`), "query: DROP TABLE users"},
		"another folder":       {in("rm", "execute", `"input":{"command":"rm -rf *","cwd":"/a"}`), in("rm", "execute", `"input":{"command":"rm -rf *","cwd":"/home"}`), "cwd: /home"},
		"another environment":  {in("make", "execute", `"input":{"command":"make","env":{"A":"1"}}`), in("make", "execute", `"input":{"command":"make","env":{"A":"2"}}`), `env: {"A":"2"}`},
		"another file":         {in("Write", "edit", `"input":{"path":"a.txt","content":"x"}`), in("Write", "edit", `"input":{"path":"b.txt","content":"x"}`), "path: b.txt"},
		"another place":        {in("Look", "read", `"paths":["a.txt"]`), in("Look", "read", `"paths":["b.txt"]`), "locations: b.txt"},
		"other content":        {in("Edit", "edit", `"diffs":[{"path":"a.txt","old":"a","new":"b"}]`), in("Edit", "edit", `"diffs":[{"path":"a.txt","old":"a","new":"c"}]`), ""},
		"the same":             {in("make", "execute", `"input":{"command":"make"}`), in("make", "execute", `"input":{"command":"make"}`), "same"},
	} {
		for _, hashed := range []bool{true, false} {
			both := cards(hashed, true, c.one, c.other)
			names := map[string]int{}
			for _, one := range both {
				render(t, components.AskCard(*one)).Find("h3, button, a").Each(func(_ int, s *goquery.Selection) { names[text(s)]++ })
			}
			for what, n := range names {
				if n > 1 {
					t.Errorf("%s: %d are named %q", name, n, what)
				}
			}
			said := both[1].Place()
			same := c.says == "same"
			if strings.Contains(said, "do the same 2 times") != same || strings.Contains(said, "read alike here, and would not do the same; this is number 2") == same || !same && both[1].Differs != c.says {
				t.Errorf("%s, hashed %t: %q, differs by %q", name, hashed, said, both[1].Differs)
			}
		}
		if far := cards(true, false, c.one, c.other); strings.Contains(far[1].Place(), "do the same 2 times") != (c.says == "same") {
			t.Errorf("%s, not at hand: %q", name, far[1].Place())
		}
	}
}

// How much of a call isn't shown counts all that its agent gave it, not its name alone.
//
// proves PER-2
func TestAskCard_SaysHowMuch(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789\\n", 900)
	call := &journal.Call{ID: "call_1", AttemptID: "att_1", Input: json.RawMessage(`{"title":"Write","kind":"edit","input":{"path":"a.txt","content":"` + content + `"}}`)}
	got := text(render(t, components.AskCard(components.NewDecisionCard(request(t, "x", nil), call, now, "k"))).Selection)
	if want := "All of it, 902 lines, 10 KB, stands on its own page"; !strings.Contains(got, want) {
		t.Errorf("the card says %q", got)
	}
	call.Input = json.RawMessage(`{"title":"Write","kind":"edit","input":{"path":"a.txt","content":"x"}}`)
	for state, want := range map[string]string{"exists": "a.txt exists, 4 KB", "new": "a.txt does not exist yet", "unknown": "a.txt: not known whether it exists"} {
		r := request(t, "x", map[string]any{"seen": []any{map[string]any{"path": "a.txt", "state": state, "bytes": 4096}}})
		for _, call := range []*journal.Call{call, nil} {
			card := components.NewDecisionCard(r, call, now, "k")
			card.Own = true
			facts := render(t, components.AskCard(card)).Find(`[data-testid="asked-facts"]`)
			if got := text(facts.Find("dd")); !strings.HasSuffix(text(facts.Find("dt")), "The file now") || !strings.HasSuffix(got, want) {
				t.Errorf("%s: the card says %q", state, got)
			}
		}
	}
}
