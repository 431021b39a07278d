package journal

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func folded(t *testing.T, events ...any) *State {
	t.Helper()
	st := &State{}
	actor := Server()
	for i, e := range events {
		body, ok := e.(Body)
		if !ok {
			actor = e.(Actor)
			continue
		}
		if err := st.Apply(&Event{Seq: int64(i + 1), Time: 1, Actor: actor}, body); err != nil {
			t.Fatal(err)
		}
	}
	return st
}

func offered(mode, model string) *AgentOptions {
	return &AgentOptions{ProcessID: "p", Options: []AgentOption{
		{ID: "mode", Name: "Mode", Category: OptionMode, Current: mode, Choices: []AgentChoice{{Value: "build", Name: "Build"}, {Value: "plan", Name: "Plan"}}},
		{ID: "model", Name: "Model", Category: OptionModel, Current: model},
	}}
}

func wanted(id, value string) *SettingsChosen {
	return &SettingsChosen{Settings: []Setting{{ID: id, Value: value}}}
}

// A person's wish stands until the agent has taken it and then, at its work, changes it
// by itself; what a new process comes up with, or says while it rests, takes nothing back.
//
// proves JRN-3
func TestState_Settings(t *testing.T) {
	t.Parallel()
	created := &SessionCreated{Settings: []Setting{{ID: "mode", Value: "plan"}}}
	started := &AgentStarted{ProcessID: "p"}
	opened := &AgentOpened{ProcessID: "p"}
	told := &AgentSetting{ProcessID: "p", Request: 3, ID: "mode", Value: "plan", Outcome: SettingTold}
	set := &AgentSetting{ProcessID: "p", Request: 3, ID: "mode", Value: "plan", Outcome: SettingSet}
	works := &AttemptPrepared{AttemptID: "att_1"}
	rests := &AttemptSettled{AttemptID: "att_1"}
	for name, c := range map[string]struct {
		events []any
		want   string // current and wanted, of the mode
	}{
		"at its start":                   {[]any{created}, " plan"},
		"as it comes up":                 {[]any{created, started, opened, offered("build", "a")}, "build plan"},
		"as it was told":                 {[]any{created, started, opened, offered("build", "a"), offered("plan", "a")}, "plan plan"},
		"by the agent at its work":       {[]any{created, started, opened, offered("build", "a"), told, offered("plan", "a"), set, works, Agent(), offered("build", "a")}, "build "},
		"by the agent, never told":       {[]any{created, started, opened, offered("plan", "a"), works, Agent(), offered("build", "a")}, "build plan"},
		"by the agent, before its work":  {[]any{created, started, opened, offered("build", "a"), told, offered("plan", "a"), set, Agent(), offered("build", "a")}, "build plan"},
		"by the agent after its work":    {[]any{created, started, opened, offered("build", "a"), told, offered("plan", "a"), set, works, rests, Agent(), offered("build", "a")}, "build plan"},
		"chosen again while it works":    {[]any{created, started, opened, offered("build", "a"), told, offered("plan", "a"), set, works, User("u"), wanted("mode", "plan"), Agent(), offered("build", "a")}, "build plan"},
		"told before it was chosen":      {[]any{created, started, opened, offered("build", "a"), told, User("u"), wanted("mode", "plan"), offered("plan", "a"), set, works, Agent(), offered("build", "a")}, "build plan"},
		"by the agent, as is wanted":     {[]any{created, started, opened, offered("build", "a"), Agent(), offered("plan", "a")}, "plan plan"},
		"by a person afterwards":         {[]any{created, started, opened, offered("build", "a"), told, offered("plan", "a"), set, works, Agent(), offered("build", "a"), User("u"), wanted("mode", "plan")}, "build plan"},
		"in a new process":               {[]any{created, started, opened, offered("plan", "a"), &AgentEnded{ProcessID: "p"}, started, opened, offered("build", "a")}, "build plan"},
		"in one that says nothing":       {[]any{created, started, opened, offered("plan", "a"), &AgentEnded{ProcessID: "p"}, started, opened}, " plan"},
		"in one that says so by itself":  {[]any{created, started, opened, offered("plan", "a"), started, opened, Agent(), offered("build", "a")}, "build plan"},
		"taken back":                     {[]any{created, User("u"), wanted("mode", "")}, " "},
		"something else by the agent":    {[]any{created, started, opened, offered("plan", "a"), Agent(), offered("plan", "b")}, "plan plan"},
		"another wish, then another one": {[]any{created, User("u"), wanted("mode", "build"), wanted("model", "b")}, " build"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := folded(t, c.events...)
			current := ""
			if o := st.Option("mode"); o != nil {
				current = o.Current
			}
			value, _ := st.Wants("mode")
			if got := current + " " + value; got != c.want {
				t.Errorf("the mode is %q, want %q", got, c.want)
			}
		})
	}
}

// proves JRN-3
func TestState_SettingIsPending(t *testing.T) {
	t.Parallel()
	told := &AgentSetting{ProcessID: "p", Request: 3, ID: "mode", Value: "plan", Outcome: SettingTold}
	started := &AgentStarted{ProcessID: "p"}
	if p := folded(t, started, told).Process.Setting; p == nil || p.Request != 3 || p.Value != "plan" {
		t.Errorf("what was told is %+v", p)
	}
	for _, o := range []SettingOutcome{SettingSet, SettingRefused} {
		if p := folded(t, started, told, &AgentSetting{ProcessID: "p", Request: 3, Outcome: o}).Process.Setting; p != nil {
			t.Errorf("after %s %+v waits for an answer", o, p)
		}
	}
	if p := folded(t, started, told, &AgentEnded{ProcessID: "p"}, &AgentStarted{ProcessID: "q"}).Process.Setting; p != nil {
		t.Errorf("a new process is to answer %+v", p)
	}
}

// What the agent's session costs is counted once, whether a new process goes on
// counting or begins anew; it never falls.
//
// proves JRN-3
func TestState_Cost(t *testing.T) {
	t.Parallel()
	cost := func(amount string) *AgentUsage {
		return &AgentUsage{Used: 5, Cost: &Cost{Amount: json.Number(amount), Currency: "USD"}}
	}
	next := &AgentStarted{ProcessID: "p"}
	for name, c := range map[string]struct {
		events []any
		want   float64
	}{
		"counts up":                    {[]any{cost("0.1"), cost("0.3")}, 0.3},
		"is corrected":                 {[]any{cost("0.3"), cost("0.1"), cost("0.4")}, 0.4},
		"goes on in a new process":     {[]any{cost("0.3"), next, cost("0.5")}, 0.5},
		"begins anew in a new process": {[]any{cost("0.3"), next, cost("0.1"), cost("0.2")}, 0.5},
		"of another currency":          {[]any{&AgentUsage{Cost: &Cost{Amount: "3", Currency: "EUR"}}}, 0},
		"nonsense":                     {[]any{cost("-1"), cost("1e400"), cost("x"), cost("")}, 0},
		"none":                         {[]any{cost("0.3"), &AgentUsage{Used: 7}}, 0.3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := folded(t, c.events...).Usage.CostUSD; got != c.want {
				t.Errorf("it cost %v, want %v", got, c.want)
			}
		})
	}
}

// However much an agent offers, one event holds it; what can't be held is counted,
// what is set stays, and what chooses is never cut.
//
// proves JRN-6
func TestBoundOptions(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 5000)
	var many []AgentOption
	for i := range 100 {
		o := AgentOption{ID: fmt.Sprint("o", i), Name: long, Description: long, Current: "v1999"}
		for j := range 2000 {
			o.Choices = append(o.Choices, AgentChoice{Value: fmt.Sprint("v", j), Name: long, Description: long, Group: long})
		}
		many = append(many, o)
	}
	many = append(many, AgentOption{ID: long}, AgentOption{ID: "o1"}, AgentOption{})
	kept, more := BoundOptions(many)
	raw, err := Encode(&AgentOptions{Options: kept, More: more})
	if err != nil || len(raw) > MaxEventBody || len(kept) == 0 || len(kept)+more != len(many) {
		t.Fatalf("%d kept, %d left out, %d bytes, %v", len(kept), more, len(raw), err)
	}
	for _, o := range kept {
		if o.ChoiceOf("v1999") == nil || len(o.Choices)+o.More != 2000 || len(o.Name) > maxOptionName+len("…") {
			t.Fatalf("%s has %d choices, %d left out, without the one that is set", o.ID, len(o.Choices), o.More)
		}
	}
	few := []AgentOption{{ID: "a", Choices: []AgentChoice{{Value: "x"}, {Value: long}, {Value: ""}, {Value: "x", Name: "twice"}}}}
	kept, more = BoundOptions(few)
	if more != 0 || kept[0].Name != "a" || len(kept[0].Choices) != 1 || kept[0].More != 3 || len(few[0].Choices) != 4 {
		t.Errorf("kept %+v, and made %+v of what was given", kept, few)
	}
	commands := make([]AgentCommand, 1000)
	for i := range commands {
		commands[i] = AgentCommand{Name: fmt.Sprint("c", i), Description: long, Hint: long}
	}
	list, left := BoundCommands(commands)
	if raw, err := Encode(&AgentCommands{Commands: list, More: left}); err != nil || len(raw) > MaxEventBody || len(list)+left != 1000 || len(list) == 0 {
		t.Errorf("%d commands kept, %d left out, %d bytes, %v", len(list), left, len(raw), err)
	}
}

// proves ADM-10
func TestCheckSettings(t *testing.T) {
	t.Parallel()
	known := offered("plan", "a").Options
	known[1].More = 1
	for name, c := range map[string]struct {
		known []AgentOption
		list  []Setting
		ok    bool

		wanted []Wish
	}{
		"none":              {known: known, list: nil, ok: true},
		"offered":           {known: known, list: []Setting{{"mode", "plan"}}, ok: true},
		"not offered":       {known: known, list: []Setting{{"mode", "fly"}}, ok: false},
		"no such setting":   {known: known, list: []Setting{{"colour", "red"}}, ok: false},
		"taken back":        {known: known, list: []Setting{{"colour", ""}}, ok: true, wanted: []Wish{{Setting: Setting{"colour", "red"}}}},
		"never wanted":      {known: known, list: []Setting{{"colour", ""}}, ok: false},
		"as it has it":      {known: known, list: []Setting{{"mode", ""}}, ok: true},
		"perhaps left out":  {known: known, list: []Setting{{"model", "b"}}, ok: true},
		"nothing is known":  {known: nil, list: []Setting{{"mode", "fly"}}, ok: true},
		"nothing is to set": {known: []AgentOption{}, list: []Setting{{"mode", "plan"}}, ok: false},
		"twice":             {known: nil, list: []Setting{{"mode", "plan"}, {"mode", "build"}}, ok: false},
		"no id":             {known: nil, list: []Setting{{"", "plan"}}, ok: false},
		"too long":          {known: nil, list: []Setting{{"mode", strings.Repeat("x", 201)}}, ok: false},
		"two lines":         {known: nil, list: []Setting{{"mode", "a\nb"}}, ok: false},
		"too many":          {known: nil, list: make([]Setting, MaxOptions+1), ok: false},
		"a switch":          {known: []AgentOption{{ID: "web", Type: OptionBoolean}}, list: []Setting{{"web", "true"}}, ok: true},
		"a switch, half on": {known: []AgentOption{{ID: "web", Type: OptionBoolean}}, list: []Setting{{"web", "half"}}, ok: false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := CheckSettings(c.known, c.list, c.wanted); (err == nil) != c.ok || (err != nil && !Is(err, Unprocessable)) {
				t.Errorf("answered %v", err)
			}
		})
	}
}
