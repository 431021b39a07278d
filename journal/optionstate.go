package journal

import "slices"

// OptionNow is a setting of the agent's session as it stands.
type OptionNow struct {
	ID       string       `json:"id"`
	Name     string       `json:"name"`
	Category string       `json:"category,omitempty"`
	Source   OptionSource `json:"source"`
	Type     OptionType   `json:"type"`
	Current  string       `json:"current,omitempty"` // "": the agent hasn't told
	Label    string       `json:"label,omitempty"`   // what the current value is called
}

// ContextUse is how full the agent's context is, in tokens.
type ContextUse struct {
	Used int64 `json:"used"`
	Size int64 `json:"size,omitempty"` // 0: not told
}

// AgentCost is what the agent's session has cost so far by the agent's own count.
type AgentCost struct {
	Seen float64 `json:"seen"`           // the most that it has told since it began to count
	Anew bool    `json:"anew,omitempty"` // a process was started since, which may begin anew
}

// PendingSetting is one that the agent was told and has not answered.
type PendingSetting struct {
	Request int64  `json:"request"`
	ID      string `json:"id"`
	Value   string `json:"value"`
}

// Wish is what a person wants a setting to be, and what the agent has heard of it
// since it was chosen.
type Wish struct {
	Setting
	Told int64 `json:"told,omitempty"` // the request as which the agent was told; 0: it wasn't
	Took bool  `json:"took,omitempty"` // and it has taken it
}

// Option gives a setting as it stands, or nil.
func (s *State) Option(id string) *OptionNow {
	i := slices.IndexFunc(s.Options, func(o OptionNow) bool { return o.ID == id })
	if i < 0 {
		return nil
	}
	return &s.Options[i]
}

// Wants gives what is wanted of a setting from the next prompt on; false: nothing is.
func (s *State) Wants(id string) (value string, wanted bool) {
	i := slices.IndexFunc(s.Wanted, func(w Wish) bool { return w.ID == id })
	if i < 0 {
		return "", false
	}
	return s.Wanted[i].Value, true
}

// applyOptions folds what the agent offers, what is wanted of it, and what it uses.
func (s *State) applyOptions(ev *Event, body Body) {
	switch b := body.(type) {
	case *SessionCreated:
		s.want(b.Settings)
	case *SettingsChosen:
		s.want(b.Settings)
	case *AgentStarted:
		if s.Cost != nil {
			s.Cost = &AgentCost{Seen: s.Cost.Seen, Anew: true}
		}
	case *AgentOpened: // what it has, the agent says after this, or doesn't
		s.Options = slices.Clone(s.Options)
		for i := range s.Options {
			s.Options[i].Current, s.Options[i].Label = "", ""
		}
	case *AgentOptions:
		s.offered(ev, b)
	case *AgentSetting:
		s.setting(b)
	case *AgentCommands:
		s.CommandsSeq = ev.Seq
	case *AgentUsage:
		s.Context = &ContextUse{Used: b.Used, Size: b.Size}
		s.cost(b.Cost)
	}
}

// want folds what a person wants: the last word on each setting counts.
func (s *State) want(list []Setting) {
	for _, w := range list {
		s.Wanted = slices.DeleteFunc(slices.Clone(s.Wanted), func(was Wish) bool { return was.ID == w.ID })
		if w.Value != "" {
			s.Wanted = append(s.Wanted, Wish{Setting: w})
		}
	}
}

// offered folds what the agent offers now. What it has changed by itself at its work
// is no longer wanted otherwise, if it had taken that wish before: a person who chooses
// later is heard again. What it changes while it rests takes nothing back: nobody knows
// when that was, since nobody reads it before the next turn.
func (s *State) offered(ev *Event, b *AgentOptions) {
	now := make([]OptionNow, 0, len(b.Options))
	for i := range b.Options {
		o := &b.Options[i]
		was := s.Option(o.ID)
		if ev.Actor.Type == ActorAgent && len(s.Attempts) > 0 && was != nil && was.Current != "" && was.Current != o.Current && s.took(o.ID, o.Current) {
			s.want([]Setting{{ID: o.ID}})
		}
		now = append(now, OptionNow{o.ID, o.Name, o.Category, o.Source, o.Type, o.Current, o.Label(o.Current)})
	}
	s.Options, s.OptionsSeq = now, ev.Seq
}

// took reports whether the agent has taken a wish for a setting, of another value.
func (s *State) took(id, now string) bool {
	return slices.ContainsFunc(s.Wanted, func(w Wish) bool { return w.ID == id && w.Took && w.Value != now })
}

func (s *State) setting(b *AgentSetting) {
	if s.Process == nil || s.Process.ID != b.ProcessID {
		return
	}
	s.Wanted = slices.Clone(s.Wanted)
	for i := range s.Wanted {
		switch w := &s.Wanted[i]; {
		case w.ID != b.ID || w.Value != b.Value:
		case b.Outcome == SettingTold:
			w.Told = b.Request
		case b.Outcome == SettingSet && w.Told == b.Request: // not one that was told before the choice
			w.Took = true
		}
	}
	p := *s.Process
	p.Setting = nil
	if b.Outcome == SettingTold {
		p.Setting = &PendingSetting{b.Request, b.ID, b.Value}
	}
	s.Process = &p
}

// cost adds what the agent's session has cost since the last word on it. Agents
// count up; after a restart some go on and some begin anew, which shows by a
// smaller sum. What was counted never falls.
func (s *State) cost(c *Cost) {
	amount, usd := c.usd()
	if !usd {
		return
	}
	was := AgentCost{}
	if s.Cost != nil {
		was = *s.Cost
	}
	switch {
	case amount >= was.Seen:
		s.Usage.CostUSD = cents(s.Usage.CostUSD + amount - was.Seen)
	case was.Anew:
		s.Usage.CostUSD = cents(s.Usage.CostUSD + amount)
	default:
		return // a correction
	}
	s.Cost = &AgentCost{Seen: amount}
}
