package pages

import (
	"fmt"
	"strings"

	"holdfast/journal"
	"holdfast/views/components"
)

// AgentSettings is the form that changes what a session's agent is set to.
type AgentSettings struct {
	Frame
	S       components.Session
	Key     string
	Options []journal.AgentOption // that it offers
	Chosen  map[string]string     // as chosen before, by the name of the field
	Problem string                // why that was refused
}

// SettingName is the name of the field of a setting.
func SettingName(id string) string { return "set:" + id }

// Fields are those of what it offers, then of what is wanted and not offered: a wish
// that can't be fulfilled can be taken back.
func (p AgentSettings) Fields() []components.SettingField {
	var out []components.SettingField
	add := func(o *journal.AgentOption, hint string) {
		if !components.Sendable(o.ID) {
			return
		}
		f := components.NewSettingField(fmt.Sprintf("set-%d", len(out)), SettingName(o.ID), "Leave it as it is", o)
		if v, wanted := p.S.State.Wants(o.ID); wanted && v != o.Current {
			f.Leave = "Leave it: from the next message on " + journal.Quote(o.Label(v), 80)
			f.Withdraw = "As the agent has it"
			if o.Current != "" {
				f.Withdraw += ": " + journal.Quote(o.Label(o.Current), 80)
			}
		}
		f.Hint = strings.TrimSpace(hint + " " + f.Hint)
		f.Chosen = p.Chosen[f.Name]
		out = append(out, f)
	}
	for i := range p.Options {
		add(&p.Options[i], "")
	}
	for _, w := range p.S.State.Wanted {
		if journal.OptionByID(p.Options, w.ID) == nil {
			add(components.UnnamedSetting(w.ID), "The agent hasn’t offered this setting.")
		}
	}
	return out
}

// When says from when on a choice counts.
func (p AgentSettings) When() string {
	if p.S.State.TurnOpen() {
		return "The turn that is open goes on as it is. What you choose counts from the next message on."
	}
	return "What you choose counts from the next message on."
}
