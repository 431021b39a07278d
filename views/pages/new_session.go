package pages

import (
	"fmt"
	"slices"
	"strings"

	"holdfast/journal"
	"holdfast/journal/policy"
	"holdfast/views/components"
)

// NewSession is the form for a new session, with what was typed before.
type NewSession struct {
	Frame
	Key       string
	Text      string
	KeptAt    int64  // when the text was kept and not sent; 0: it wasn't
	Version   int64  // of the kept text that the form was drawn with; 0: there was none
	Replaced  string // another form's text, which the kept one took the place of just now
	Workspace string
	Agent     string
	Preset    string
	Wider     string            // the title of the last session's preset, which isn't chosen again by itself; "": there is nothing to say
	Limits    map[string]string // as typed, by the name of the field
	Agents    []components.Agent
	Recent    []string // workspaces that were used last
	Workers   int
	Offers    map[string]Offer  // by agent, of those that are known
	Settings  map[string]string // as chosen, by the name of the field
}

// Offer is what an agent offered to be set when it last opened a new session.
type Offer struct {
	Options []journal.AgentOption
	Version string // of the agent then, as it says itself; "": it doesn't
	At      int64
}

// by says who offered it.
func (o Offer) by() string {
	if o.Version == "" {
		return "As the agent offered them "
	}
	return "As " + journal.Quote(o.Version, 100) + " offered them "
}

// asksItself reports whether an agent is offered, or shown, that is a program of its
// own: it decides itself what it asks for.
func (p NewSession) asksItself() bool {
	return slices.ContainsFunc(p.Agents, func(a components.Agent) bool { return a.Kind != "builtin" })
}

// presetDescribed names what says what a preset means.
func (p NewSession) presetDescribed(i int) string {
	if p.asksItself() {
		return fmt.Sprintf("preset-%d-hint presets-hold", i)
	}
	return fmt.Sprintf("preset-%d-hint", i)
}

// SettingFieldPrefix is that of the names of an agent's fields; the setting's id follows.
func SettingFieldPrefix(agent string) string { return "set:" + agent + ":" }

// SettingFields are the fields of the settings of the i-th agent.
func (p NewSession) SettingFields(i int) []components.SettingField {
	agent := p.Agents[i].Name
	var out []components.SettingField
	for j := range p.Offers[agent].Options {
		o := &p.Offers[agent].Options[j]
		if !components.Sendable(o.ID) {
			continue
		}
		f := components.NewSettingField(fmt.Sprintf("set-%d-%d", i, j), SettingFieldPrefix(agent)+o.ID, "As the agent has it", o)
		f.Chosen = p.Settings[f.Name]
		out = append(out, f)
	}
	return out
}

// SettingsOpen reports whether the settings of an agent stand open: something is chosen.
func (p NewSession) SettingsOpen(agent string) bool {
	for name, value := range p.Settings {
		if value != "" && strings.HasPrefix(name, SettingFieldPrefix(agent)) {
			return true
		}
	}
	return false
}

// LimitFields are the bounds that mean something for the agents that are offered.
func (p NewSession) LimitFields() []components.LimitField {
	typed := p.Limits["tokens"] != "" || p.Limits["cost_usd"] != "" // such an agent was offered then
	fields := components.LimitFields(p.asksItself() || typed)
	for i := range fields {
		fields[i].Value = p.Limits[fields[i].Name]
	}
	return fields
}

// OfferChoices chooses these in the place of an agent that can't be chosen, or of a
// preset that is none.
func (p *NewSession) OfferChoices(agent, preset string) {
	if !slices.ContainsFunc(p.Agents, func(a components.Agent) bool { return a.Name == p.Agent && a.Available }) {
		p.Agent = agent
	}
	if !offered(p.Preset) {
		p.Preset = preset
	}
}

// KeepChoices lets a form that is refused show what was chosen in it, also if that
// isn't offered, any more or ever: it can't be chosen again, and its field says so.
func (p *NewSession) KeepChoices() {
	i := slices.IndexFunc(p.Agents, func(a components.Agent) bool { return a.Name == p.Agent })
	if i < 0 && p.Agent != "" {
		p.Agents = append(p.Agents, components.Agent{Name: p.Agent, Reason: "no server here offers it."})
		i = len(p.Agents) - 1
	}
	switch {
	case p.Agent == "":
		p.blame("agent-0", "Say which agent works.")
	case !p.Agents[i].Available:
		p.blame("agent-0", "The agent "+components.Line(p.Agent, 60)+" can’t be chosen. Choose another one.")
	}
	if p.Preset != "" && !offered(p.Preset) {
		p.blame("preset-0", "There is no preset "+components.Line(p.Preset, 60)+". Choose another one.")
	}
}

// blame says what is wrong with a field, unless that is said already.
func (p *NewSession) blame(field, text string) {
	if !slices.ContainsFunc(p.Problems, func(one components.Problem) bool { return one.Field == field }) {
		p.Problems = append(p.Problems, components.Problem{Field: field, Text: text})
	}
}

// Presets are the choices of permissions, with what each means, and what was chosen
// that is none. That one is sent again, and refused: a form that sends none means
// the default.
func (p NewSession) Presets() []components.Choice {
	out := offeredPresets()
	if p.Preset != "" && !offered(p.Preset) {
		out = append(out, components.Choice{Value: p.Preset, Label: components.Line(p.Preset, 60), Hint: "Can’t be chosen: there is no such preset."})
	}
	return out
}

func offered(preset string) bool {
	_, known := policy.ParsePreset(preset)
	return known
}

func offeredPresets() []components.Choice {
	return []components.Choice{
		{Value: string(policy.AskAll), Label: policy.AskAll.Title(), Hint: "Every request waits until you have read it and said yes, also one to read a file."},
		{Value: string(policy.AskWrites), Label: policy.AskWrites.Title(), Hint: "Requests to read a file inside the workspace are allowed, but for those that hold secrets. Every other request waits for you: commands, edits, everything outside the workspace."},
		{Value: string(policy.Workspace), Label: policy.Workspace.Title(), Hint: "Requests for edits inside the workspace and for a list of known commands are allowed, such as ls, git status, go test, npm test, make check. Every other request waits for you. Tests and builds run code of the workspace: this keeps an honest agent from surprises, it is no sandbox."},
	}
}
