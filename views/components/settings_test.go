package components_test

import (
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/views/components"
)

// What no form can send as it is isn't offered in one: a browser writes the ends of
// lines in its own way.
func TestNewSettingField_OffersWhatAFormCanSend(t *testing.T) {
	t.Parallel()
	o := &journal.AgentOption{ID: "model", Name: "Model", Current: "m\n2", More: 1, Choices: []journal.AgentChoice{{Value: "m1", Name: "One"}, {Value: "m\n2", Name: "Two"}, {Value: "m\r3", Name: "Three"}}}
	f := components.NewSettingField("f", "f", "Leave it as it is", o)
	if len(f.Choices) != 1 || f.Choices[0].Value != "m1" || len(o.Choices) != 3 || !strings.Contains(f.Hint, "3 more values can’t be listed here") || f.Leave != "Leave it as it is: “Two”" {
		t.Errorf("it offers %+v of %+v, and says %q, %q", f.Choices, o.Choices, f.Leave, f.Hint)
	}
	if !components.Sendable("a b:é") || components.Sendable("a\nb") || components.Sendable("a\x00") {
		t.Error("it isn't known what a form can send")
	}
}

// A mode in which the agent asks for nothing is named so, whether it is or will be.
func TestSession_ActsUnasked(t *testing.T) {
	t.Parallel()
	for mode, unasked := range map[[2]string]bool{
		{"bypassPermissions", "Bypass Permissions"}: true, {"acceptEdits", "Accept Edits"}: true, {"dontAsk", "Don’t Ask"}: true, {"x", "Don't Ask"}: true,
		{"auto", "Auto"}: true, {"yolo", "YOLO"}: true, {"m", "Full Access"}: true,
		{"default", "Default"}: false, {"plan", "Plan Mode"}: false, {"build", "build"}: false, {"read-only", "Read Only"}: false,
	} {
		is := readings(t)["running"].Session
		is.State.Options = []journal.OptionNow{{ID: "m", Name: "Mode", Category: journal.OptionMode, Current: mode[0], Label: mode[1]}}
		will := readings(t)["running"].Session
		will.State.Options = []journal.OptionNow{{ID: "m", Name: "Mode", Source: journal.OptionByMode, Current: "default", Label: "Default"}}
		will.State.Wanted = []journal.Wish{{Setting: journal.Setting{ID: "m", Value: mode[0]}}}
		fresh := readings(t)["running"].Session
		fresh.State.Wanted = []journal.Wish{{Setting: journal.Setting{ID: "mode", Value: mode[0]}}}
		for i, s := range []components.Session{is, will, fresh} {
			if i > 0 && (mode[0] == "x" || mode[0] == "m") { // only its name says so
				continue
			}
			said := text(render(t, components.Unasked(s)).Selection)
			if s.ActsUnasked() != unasked || strings.Contains(said, "the permissions above don’t hold") != unasked {
				t.Errorf("%v, %d: %v, and it says %q", mode, i, s.ActsUnasked(), said)
			}
		}
		o := &journal.AgentOption{ID: "m", Name: "Mode", Description: "Session mode", Category: journal.OptionMode, Choices: []journal.AgentChoice{{Value: mode[0], Name: mode[1]}}}
		f := components.NewSettingField("f", "f", "As the agent has it", o)
		if got := text(render(t, components.SettingSelect(f)).Find("option").Last()); strings.Contains(got, "acts without asking") != unasked {
			t.Errorf("%v is offered as %q", mode, got)
		}
		if !strings.HasPrefix(f.Hint, "“Session mode” Some modes") {
			t.Errorf("the hint is %q", f.Hint)
		}
	}
	model := readings(t)["running"].Session
	model.State.Options = []journal.OptionNow{{ID: "model", Name: "Model", Category: journal.OptionModel, Current: "auto", Label: "Auto"}}
	if model.ActsUnasked() {
		t.Error("a model was taken for a mode")
	}
}

// Counts that an agent tells are told on whatever they are.
func TestUsage_Bounded(t *testing.T) {
	t.Parallel()
	for use, want := range map[journal.ContextUse]string{
		{Used: 34_000, Size: 200_000}:      "34 of 200 thousand tokens",
		{Used: 300, Size: 200_000}:         "less than 1 thousand of 200 thousand tokens",
		{Used: 0, Size: 200_000}:           "0 of 200 thousand tokens",
		{Used: -5, Size: 200_000}:          "0 of 200 thousand tokens",
		{Used: 40_000, Size: 1_000_000}:    "40 thousand of 1 million tokens",
		{Used: 999_900, Size: 1_048_576}:   "1 of 1 million tokens",
		{Used: 300, Size: 800}:             "300 of 800 tokens",
		{Used: 1, Size: -1}:                "1 token",
		{Used: 120_000}:                    "120 thousand tokens",
		{Used: 1 << 62, Size: 200_000}:     "more than a million million of 200 thousand tokens",
		{Used: 2_500_000, Size: 2_000_000}: "2.5 of 2 million tokens",
	} {
		s := readings(t)["running"].Session
		s.State.Context = &use
		s.State.Usage = journal.Usage{InputTokens: -3, OutputTokens: 2, CostUSD: -1}
		got := text(render(t, components.UsagePanel(s)).Selection)
		if !strings.Contains(got, want) || strings.Contains(got, "-") {
			t.Errorf("%+v: %q, want %q", use, got, want)
		}
	}
}

// Until the agent has begun, what is wanted counts for its first message.
func TestSettingFacts_WhileStarting(t *testing.T) {
	t.Parallel()
	s := readings(t)["starting"].Session
	s.State.Wanted = []journal.Wish{{Setting: journal.Setting{ID: "mode", Value: "plan"}}, {Setting: journal.Setting{ID: "thought_level", Value: "high"}}}
	got := text(render(t, components.SettingFacts(s)).Selection)
	if strings.Contains(got, "From the next message") || !strings.Contains(got, "For this message: plan") || !strings.Contains(got, "Mode") || !strings.Contains(got, "Thought level") {
		t.Errorf("the facts are %q", got)
	}
	s.State.Process = &journal.AgentProcess{Opened: true}
	if got := text(render(t, components.SettingFacts(s)).Selection); !strings.Contains(got, "From the next message on: plan") {
		t.Errorf("the facts are %q", got)
	}
}
