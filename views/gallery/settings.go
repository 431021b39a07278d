package gallery

import (
	"fmt"

	"holdfast/journal"
	"holdfast/views/components"
	"holdfast/views/internal/fixtures"
)

// settings are what an agent can be set to, what it has used, and its commands.
func settings() Section {
	s := Section{ID: "settings", Title: "Settings of an agent", Note: "In a form for a new session or for one that there is; in the facts; what it has used."}
	fields := func(name string, change func(f *components.SettingField)) {
		var e Example
		for i, o := range fixtures.AgentOptions() {
			f := components.NewSettingField(fmt.Sprintf("%s-%d", name, i), "set:"+o.ID, "As the agent has it", &o)
			change(&f)
			if i == 0 {
				e = draw(name, components.SettingSelect, f)
				continue
			}
			e = e.also(components.SettingSelect, f)
		}
		s.Examples = append(s.Examples, e)
	}
	fields("new", func(*components.SettingField) {})
	fields("wished", func(f *components.SettingField) { f.Withdraw, f.Chosen = "As the agent has it", "=acme/big" })
	set := fixtures.Prompted().Set()
	facts := func(name string, one components.Session) {
		list := draw(name, components.SettingFacts, one)
		list.Bodies[0] = factsOf(list.Bodies[0])
		s.Examples = append(s.Examples, list, draw(name+", used", components.UsagePanel, one))
	}
	facts("the model is to be another", set.Session())
	limited := set.Session()
	limited.State.Asked = &journal.Limits{CostUSD: 25}
	facts("with a limit", limited)
	opened := fixtures.Prompted().Set().Add(journal.Server(), &journal.AgentOpened{ProcessID: "prc_1"}, &journal.AgentUsage{Used: 300, Size: 200_000}).Session()
	facts("a new process has told nothing yet", opened)
	unasked := fixtures.Prompted().Set().Session()
	unasked.State.Wanted = []journal.Wish{{Setting: journal.Setting{ID: journal.OptionMode, Value: "bypassPermissions"}}}
	s.Examples = append(s.Examples,
		draw("a mode that asks for nothing", components.Unasked, unasked),
		draw("commands", components.AgentCommandList, components.CommandList{Commands: fixtures.AgentCommands()}),
		draw("more than are kept", components.AgentCommandList, components.CommandList{Commands: fixtures.AgentCommands()[:1], More: 30}))
	return s
}
