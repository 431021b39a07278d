package components

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/a-h/templ"

	"holdfast/journal"
)

// settingEntry tells what an agent can be set to, and what became of that. How full
// its context is stands beside the journal.
func settingEntry(ev *journal.Event, body journal.Body) (Entry, bool) {
	switch b := body.(type) {
	case *journal.AgentOptions:
		return optionsEntry(ev, b), true
	case *journal.AgentSetting:
		value, id := Code(Line(b.Value, 80)), Code(Line(b.ID, 60))
		switch b.Outcome {
		case journal.SettingSet: // what is set now the next entry tells
			return Entry{Piece: true}, true
		case journal.SettingRefused:
			return Entry{Icon: "fail", Title: Say("The agent refused ", value, " for ", id), Lines: []Phrase{Say("The agent’s words: ", Quoted(b.Error, 1000))}}, true
		case journal.SettingTold:
		}
		return minor("The agent is told to use ", value, " for ", id), true
	case *journal.AgentCommands:
		e := minor("The agent takes " + Plural(len(b.Commands)+b.More, "command"))
		shown := b.Commands[:min(len(b.Commands), 12)]
		for i, c := range shown {
			if i > 0 {
				e.Note = Say(e.Note, ", ")
			}
			e.Note = Say(e.Note, Code("/"+Line(c.Name, 40)))
		}
		if rest := len(b.Commands) + b.More - len(shown); rest > 0 {
			e.Note = Say(e.Note, fmt.Sprintf(", and %d more", rest))
		}
		return e, true
	case *journal.AgentUsage:
		return Entry{Piece: true}, true
	}
	return Entry{}, false
}

func optionsEntry(ev *journal.Event, b *journal.AgentOptions) Entry {
	own := ev.Actor.Type == journal.ActorAgent
	e := minor("What the agent can be set to")
	switch {
	case own && len(b.Changed) > 0:
		e = Entry{Icon: "agent", Title: Say("The agent changed its settings by itself")}
	case own:
		e.Title = Say("The agent offers other settings now")
	case len(b.Changed) > 0:
		e.Title = Say("Now set:")
	}
	var now []string
	for i := range b.Options {
		o := &b.Options[i]
		if len(b.Changed) == 0 || slices.Contains(b.Changed, o.ID) {
			now = append(now, optionNow(o.Name, o.Label(o.Current)))
		}
	}
	if len(b.Options) == 0 {
		now = append(now, "none")
	}
	if len(b.Changed) == 0 && b.More > 0 {
		now = append(now, fmt.Sprintf("and %d more", b.More))
	}
	e.Note = Say(strings.Join(now, ", "))
	return e
}

func optionNow(name, label string) string {
	if label == "" {
		return journal.Quote(name, 60) + ": not told"
	}
	return journal.Quote(name, 60) + ": " + journal.Quote(label, 80)
}

// settingsPhrase names what people want, by the agent's own ids.
func settingsPhrase(before string, list []journal.Setting) Phrase {
	parts := []any{before}
	for i, w := range list {
		if i > 0 {
			parts = append(parts, ", ")
		}
		parts = append(parts, Code(Line(w.ID, 60)), ": ")
		if w.Value == "" {
			parts = append(parts, "as the agent has it")
		} else {
			parts = append(parts, Code(Line(w.Value, 80)))
		}
	}
	return Say(parts...)
}

// SettingField is the field of one setting.
type SettingField struct {
	ID, Name    string // of the field
	Label, Hint string
	Leave       string // the choice that changes nothing
	Withdraw    string // that takes a wish back; "": there is none
	Choices     []journal.AgentChoice
	Chosen      string // as the form sends it
	Mode        bool   // of the agent, which may let it act without asking
}

// What a field of a setting sends, besides nothing: a value, or a wish taken back.
const (
	chosenPrefix = "="
	asAgentHasIt = "-"
)

// ReadSetting reads what a field of a setting has sent. changes false: it changes
// nothing; ok false: no field sends this.
func ReadSetting(sent string) (value string, changes, ok bool) {
	value, chosen := strings.CutPrefix(sent, chosenPrefix)
	switch {
	case chosen && value != "":
		return value, true, true
	case sent == asAgentHasIt:
		return "", true, true
	}
	return "", false, sent == ""
}

// settingGroup are choices that stand together.
type settingGroup struct {
	Name    string
	Choices []journal.AgentChoice
}

func (f SettingField) groups() []settingGroup {
	var out []settingGroup
	for _, c := range f.Choices {
		if n := len(out); n == 0 || out[n-1].Name != c.Group {
			out = append(out, settingGroup{Name: c.Group})
		}
		last := &out[len(out)-1]
		last.Choices = append(last.Choices, c)
	}
	return out
}

// choice is what a value is called, with what it means if that is short.
func (f SettingField) choice(c journal.AgentChoice) string {
	name := Line(c.Name, 80)
	if f.Mode && actsUnasked(c.Value, c.Name) {
		name += " (acts without asking)"
	}
	if c.Description != "" && c.Description != c.Name {
		name += ": " + Line(c.Description, 80)
	}
	return name
}

func (f SettingField) described() templ.Attributes {
	if f.Hint == "" {
		return nil
	}
	return templ.Attributes{"aria-describedby": f.ID + "-hint"}
}

// NewSettingField makes the field of a setting. leave is the choice that changes
// nothing, without its value.
func NewSettingField(id, name, leave string, o *journal.AgentOption) SettingField {
	f := SettingField{ID: id, Name: name, Label: Line(o.Name, 80), Leave: leave, Choices: o.Choices}
	if o.Current != "" {
		f.Leave += ": " + journal.Quote(o.Label(o.Current), 80)
	}
	if o.Description != "" {
		f.Hint = journal.Quote(o.Description, 300)
	}
	more := o.More
	f.Choices = slices.DeleteFunc(slices.Clone(f.Choices), unsendable)
	more += len(o.Choices) - len(f.Choices)
	if o.Type == journal.OptionBoolean {
		f.Choices = []journal.AgentChoice{{Value: "true", Name: "on"}, {Value: "false", Name: "off"}}
	}
	if isMode(o.Category, o.Source) {
		f.Mode = true
		f.Hint = strings.TrimSpace(f.Hint + " Some modes let the agent act without asking, whatever the permissions of the session are.")
	}
	if more > 0 {
		f.Hint = strings.TrimSpace(f.Hint + " " + Plural(more, "more value") + " can’t be listed here; a program can name them.")
	}
	return f
}

// unsendable reports whether no form can send a value as it is: a browser writes ends
// of lines in its own way, and knows no NUL.
func unsendable(c journal.AgentChoice) bool { return !Sendable(c.Value) }

// Sendable reports whether a form can send this as it is, as a value or as the name of a field.
func Sendable(s string) bool { return !strings.ContainsAny(s, "\r\n\x00") }

func isMode(category string, source journal.OptionSource) bool {
	return category == journal.OptionMode || source == journal.OptionByMode
}

// unaskedNames are what modes are called in which agents act without asking for it, in
// small letters without anything else.
var unaskedNames = []string{"bypass", "yolo", "fullaccess", "dontask", "neverask", "acceptedit", "auto"}

// actsUnasked reports whether a mode is known by its id or its name to let the agent
// act without asking, so that nobody is asked whatever the permissions say.
func actsUnasked(id, name string) bool {
	letters := func(r rune) rune {
		if r = unicode.ToLower(r); unicode.IsLetter(r) {
			return r
		}
		return -1
	}
	said := strings.Map(letters, id) + " " + strings.Map(letters, name)
	return slices.ContainsFunc(unaskedNames, func(known string) bool { return strings.Contains(said, known) })
}

// ActsUnasked reports whether the agent of the session is in such a mode, or will be
// from the next message on.
func (s Session) ActsUnasked() bool {
	for i := range s.State.Options {
		o := &s.State.Options[i]
		if v, _ := s.State.Wants(o.ID); isMode(o.Category, o.Source) && (actsUnasked(o.Current, o.Label) || actsUnasked(v, "")) {
			return true
		}
	}
	v, _ := s.State.Wants(journal.OptionMode)
	return actsUnasked(v, "")
}

// settingName is what a setting is called that the agent hasn't named.
func settingName(id string) string {
	return UpperFirst(Line(strings.ReplaceAll(id, "_", " "), 60))
}

// UnnamedSetting is a setting that is wanted, and that the agent hasn't offered so far.
func UnnamedSetting(id string) *journal.AgentOption {
	o := &journal.AgentOption{ID: id, Name: settingName(id)}
	if id == journal.OptionMode {
		o.Category = journal.OptionMode
	}
	return o
}

type settingFact struct{ name, now, next string }

// settingFacts are what the agent is set to, then what is wanted that it doesn't offer.
func settingFacts(s Session) []settingFact {
	var out []settingFact
	for i := range s.State.Options {
		o := &s.State.Options[i]
		f := settingFact{name: Line(o.Name, 60), now: Line(o.Label, 80)}
		if v, wanted := s.State.Wants(o.ID); wanted && v != o.Current {
			f.next = Line(v, 80)
		}
		out = append(out, f)
	}
	for _, w := range s.State.Wanted {
		if s.State.Option(w.ID) == nil {
			out = append(out, settingFact{name: settingName(w.ID), next: Line(w.Value, 80)})
		}
	}
	return out
}

// WantedFrom says from when on what is wanted counts.
func (s Session) WantedFrom() string {
	st := &s.State
	starts := st.Process == nil || !st.Process.Opened
	if st.TurnOpen() && starts && len(st.UnknownAttempts) == 0 { // its message hasn't been sent
		return "For this message: "
	}
	return "From the next message on: "
}

// HasSettings reports whether the session's agent can be set, as far as is known.
func (s Session) HasSettings() bool { return len(s.State.Options)+len(s.State.Wanted) > 0 }

// HasUsage reports whether anything is known of what the agent has used.
func (s Session) HasUsage() bool { return len(usageFacts(s)) > 0 }

func usageFacts(s Session) []settingFact {
	var out []settingFact
	u, l := s.State.Usage, s.State.TurnLimits()
	if u.InputTokens > 0 || u.OutputTokens > 0 {
		out = append(out, settingFact{name: "Tokens", now: fmt.Sprintf("%d in, %d out", max(u.InputTokens, 0), max(u.OutputTokens, 0))})
	}
	if c := s.State.Context; c != nil {
		out = append(out, settingFact{name: "Context", now: contextWords(c)})
	}
	if u.CostUSD > 0 || s.State.Cost != nil {
		cost := "$" + dollars(max(u.CostUSD, 0))
		if l.CostUSD > 0 {
			cost += " of $" + dollars(l.CostUSD) + " limit"
		}
		out = append(out, settingFact{name: "Cost", now: cost})
	}
	return out
}

// dollars has as many digits as a small sum needs to be seen.
func dollars(usd float64) string {
	if usd > 0 && usd < 0.1 {
		return fmt.Sprintf("%.4f", usd)
	}
	return fmt.Sprintf("%.2f", usd)
}

// contextWords say how full the agent's context is, as the agent tells.
func contextWords(c *journal.ContextUse) string {
	used, size := max(c.Used, 0), max(c.Size, 0)
	if size == 0 {
		n, unit := tokenCount(used)
		if unit == "" {
			return Plural(int(used), "token")
		}
		return n + unit + " tokens"
	}
	n, unit := tokenCount(used)
	of, ofUnit := tokenCount(size)
	switch {
	case unit == ofUnit, used == 0:
		unit = ""
	case unit == "":
		n, unit = "less than 1", " thousand"
	}
	return n + unit + " of " + of + ofUnit + " tokens"
}

// tokenCount is a count as people read it, and its unit.
func tokenCount(n int64) (count, unit string) {
	const thousand, million = 1000, 1000 * 1000
	switch {
	case n < thousand:
		return fmt.Sprint(n), ""
	case n < million-thousand/2:
		return fmt.Sprint((n + thousand/2) / thousand), " thousand"
	case n < million*million:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/million), ".0"), " million"
	}
	return "more than a million", " million"
}

// CommandList are the commands that an agent takes.
type CommandList struct {
	Commands []journal.AgentCommand
	More     int // that were left out
}
