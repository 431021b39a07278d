package journal

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// AgentOption is one setting that an agent offers for its session. It is one shape
// for the three ways in which ACP has them.
type AgentOption struct {
	ID          string        `json:"id"`
	Name        string        `json:"name"`
	Description string        `json:"description,omitempty"`
	Category    string        `json:"category"` // OptionMode, OptionModel, OptionThought, or what else the agent says
	Source      OptionSource  `json:"source"`
	Type        OptionType    `json:"type"`
	Current     string        `json:"current"` // of a boolean "true" or "false"; "": not told
	Choices     []AgentChoice `json:"choices"`
	More        int           `json:"more,omitempty"` // choices that were left out
}

// AgentChoice is one value of a setting.
type AgentChoice struct {
	Value       string `json:"value"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Group       string `json:"group,omitempty"`
}

// Categories of settings that every agent means the same by.
const (
	OptionMode    = "mode"
	OptionModel   = "model"
	OptionThought = "thought_level"
)

// OptionSource is the way of ACP in which a setting is offered, and set.
type OptionSource string

// The ways.
const (
	OptionByConfig OptionSource = "config"
	OptionByMode   OptionSource = "mode"  // session/set_mode
	OptionByModel  OptionSource = "model" // session/set_model, of agents from before config options
)

// OptionType is what a setting takes.
type OptionType string

// The types.
const (
	OptionSelect  OptionType = "select"
	OptionBoolean OptionType = "boolean"
)

// AgentCommand is a command that an agent takes in a message.
type AgentCommand struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Hint        string `json:"hint,omitempty"` // what may follow the name
}

// Setting is a value that a person wants a setting of the agent to have.
type Setting struct {
	ID    string `json:"id"`
	Value string `json:"value"` // "": as the agent has it
}

// Bounds of what is kept of an agent's offers (JRN-6). What is needed to choose is
// never cut, but left out whole, and counted.
const (
	MaxOptions     = 40
	MaxChoices     = 500 // of one setting
	MaxCommands    = 200
	maxOptionID    = 200 // bytes, of a value too
	maxOptionName  = 200
	maxOptionText  = 400
	maxOffersBytes = 48 << 10
)

// ChoiceOf gives the choice with a value, or nil.
func (o *AgentOption) ChoiceOf(value string) *AgentChoice {
	i := slices.IndexFunc(o.Choices, func(c AgentChoice) bool { return c.Value == value })
	if i < 0 {
		return nil
	}
	return &o.Choices[i]
}

// Takes reports whether the setting can have a value, as far as is known.
func (o *AgentOption) Takes(value string) bool {
	if o.Type == OptionBoolean {
		return value == "true" || value == "false"
	}
	return o.More > 0 || len(o.Choices) == 0 || o.ChoiceOf(value) != nil
}

// Label is what a value of the setting is called.
func (o *AgentOption) Label(value string) string {
	switch c := o.ChoiceOf(value); {
	case c != nil && c.Name != "":
		return c.Name
	case o.Type == OptionBoolean && value == "true":
		return "on"
	case o.Type == OptionBoolean && value == "false":
		return "off"
	}
	return value
}

// OptionByID gives the setting with an id, or nil.
func OptionByID(list []AgentOption, id string) *AgentOption {
	i := slices.IndexFunc(list, func(o AgentOption) bool { return o.ID == id })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// BoundOptions is as much of an agent's offers as one event holds, and how many
// settings were left out.
func BoundOptions(list []AgentOption) (kept []AgentOption, more int) {
	for _, o := range list {
		if o.ID == "" || len(o.ID) > maxOptionID || len(o.Current) > maxOptionID || len(kept) == MaxOptions || OptionByID(kept, o.ID) != nil {
			more++
			continue
		}
		o.Name, o.Description, o.Category = named(o.Name, o.ID), Cut(o.Description, maxOptionText), Cut(o.Category, maxOptionName)
		o.keepChoices(MaxChoices)
		kept = append(kept, o)
	}
	for _, most := range []int{MaxChoices, 200, 50, 10, 1} {
		if fitsOffers(kept) {
			return kept, more
		}
		for i := range kept {
			kept[i].Description = ""
			for j := range kept[i].Choices {
				kept[i].Choices[j].Description = ""
			}
			kept[i].keepChoices(most)
		}
	}
	for len(kept) > 0 && !fitsOffers(kept) {
		kept, more = kept[:len(kept)-1], more+1
	}
	return kept, more
}

func fitsOffers(v any) bool {
	b, err := Encode(v)
	return err == nil && len(b) <= maxOffersBytes
}

// keepChoices bounds the choices. The current one is always among them.
func (o *AgentOption) keepChoices(most int) {
	kept := make([]AgentChoice, 0, min(len(o.Choices), most))
	current := o.ChoiceOf(o.Current) != nil
	for _, c := range o.Choices {
		room := most - len(kept)
		if current && c.Value != o.Current {
			room--
		}
		isTwin := slices.ContainsFunc(kept, func(k AgentChoice) bool { return k.Value == c.Value }) // nobody could tell which is meant
		if c.Value == "" || len(c.Value) > maxOptionID || isTwin || room < 1 {
			o.More++
			continue
		}
		current = current && c.Value != o.Current
		c.Name, c.Description, c.Group = named(c.Name, c.Value), Cut(c.Description, maxOptionText), Cut(c.Group, maxOptionName)
		kept = append(kept, c)
	}
	o.Choices = kept
}

func named(name, id string) string {
	if strings.TrimSpace(name) == "" {
		name = id
	}
	return Cut(name, maxOptionName)
}

// BoundCommands is as many of an agent's commands as one event holds, and how many
// were left out.
func BoundCommands(list []AgentCommand) (kept []AgentCommand, more int) {
	kept = []AgentCommand{}
	for _, c := range list {
		if c.Name == "" || len(c.Name) > maxOptionID || len(kept) == MaxCommands {
			more++
			continue
		}
		c.Description, c.Hint = Cut(c.Description, maxOptionText), Cut(c.Hint, maxOptionName)
		kept = append(kept, c)
	}
	for len(kept) > 0 && !fitsOffers(kept) {
		kept, more = kept[:len(kept)-1], more+1
	}
	return kept, more
}

// CheckSettings refuses settings that can't be wanted: malformed, or of an agent
// whose offers are known and don't have them. known nil: nothing is known of it.
// A wish can be taken back whatever is offered by now: wanted are those that there are.
// Code: unprocessable.
func CheckSettings(known []AgentOption, list []Setting, wanted []Wish) error {
	if len(list) > MaxOptions {
		return badSetting("At most %d settings are taken.", MaxOptions)
	}
	seen := map[string]bool{}
	for _, s := range list {
		switch {
		case s.ID == "", len(s.ID) > maxOptionID, len(s.Value) > maxOptionID, !isWord(s.ID), !isWord(s.Value):
			return badSetting("A setting has an id and a value of at most %d bytes each, on one line.", maxOptionID)
		case seen[s.ID]:
			return badSetting("The setting %q is named twice.", s.ID)
		}
		seen[s.ID] = true
		isWanted := slices.ContainsFunc(wanted, func(w Wish) bool { return w.ID == s.ID })
		if known == nil || (s.Value == "" && isWanted) {
			continue
		}
		o := OptionByID(known, s.ID)
		if o == nil {
			return badSetting("This agent offers no setting %q.", s.ID).With("setting", s.ID)
		}
		if s.Value != "" && !o.Takes(s.Value) {
			return badSetting("The setting %s has no value %q.", Cut(o.Name, 60), s.Value).With("setting", s.ID)
		}
	}
	return nil
}

func badSetting(format string, args ...any) *Error {
	return Errorf(Unprocessable, format+" Nothing was recorded.", args...).Typed("bad-setting")
}

func isWord(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
