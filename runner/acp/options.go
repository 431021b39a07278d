package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp/wire"
)

// Offers are what the agent offers to be set in a new session, in one shape.
func (p Probe) Offers() []journal.AgentOption {
	kept, _ := journal.BoundOptions(offersOf(p.Session))
	return kept
}

// offersOf makes one list of the three ways in which an agent offers settings. What
// is a config option isn't told twice: its mode and model are left out then.
func offersOf(st wire.SessionState) []journal.AgentOption {
	out := configOptions(st.ConfigOptions)
	if m := st.Models; m != nil {
		o := journal.AgentOption{ID: journal.OptionModel, Name: "Model", Category: journal.OptionModel, Source: journal.OptionByModel, Type: journal.OptionSelect, Current: keptOr(m.CurrentModelID)}
		for _, c := range m.AvailableModels {
			o.Choices = append(o.Choices, journal.AgentChoice{Value: keptOr(c.ModelID), Name: c.Name, Description: c.Description})
		}
		out = withTwin(out, o)
	}
	if m := st.Modes; m != nil {
		o := journal.AgentOption{ID: journal.OptionMode, Name: "Mode", Category: journal.OptionMode, Source: journal.OptionByMode, Type: journal.OptionSelect, Current: keptOr(m.CurrentModeID)}
		for _, c := range m.AvailableModes {
			o.Choices = append(o.Choices, journal.AgentChoice{Value: keptOr(c.ID), Name: c.Name, Description: c.Description})
		}
		out = withTwin(out, o)
	}
	return out
}

// keptOr is an id that can be told, or "": what has none is left out, and counted.
func keptOr(id string) string {
	if wire.Unkept(id) {
		return ""
	}
	return id
}

func withTwin(list []journal.AgentOption, o journal.AgentOption) []journal.AgentOption {
	if slices.ContainsFunc(list, func(c journal.AgentOption) bool { return c.Category == o.Category || c.ID == o.ID }) {
		return list
	}
	return append(list, o)
}

// configOptions leaves out what isn't of a type that can be set here.
func configOptions(list []wire.ConfigOption) []journal.AgentOption {
	var out []journal.AgentOption
	for _, c := range list {
		o := journal.AgentOption{ID: keptOr(c.ID), Name: c.Name, Description: c.Description, Category: c.Category, Source: journal.OptionByConfig, Type: journal.OptionType(c.Type)}
		switch o.Type {
		case journal.OptionBoolean:
			if o.Current = string(c.CurrentValue); o.Current != "true" && o.Current != "false" {
				o.Current = ""
			}
		case journal.OptionSelect:
			if json.Unmarshal(c.CurrentValue, &o.Current) != nil {
				o.Current = ""
			}
			o.Current = keptOr(o.Current)
		default:
			continue
		}
		for _, v := range c.Options {
			o.Choices = append(o.Choices, journal.AgentChoice{Value: keptOr(v.Value), Name: v.Name, Description: v.Description, Group: v.Group})
		}
		out = append(out, o)
	}
	return out
}

// offers are what the agent offers, and what it says of itself besides, as far as
// it was heard. It is journalled once a commit, and only what is new.
type offers struct {
	known bool // the journal was read
	was   []journal.AgentOption
	now   []journal.AgentOption
	more  int
	own   bool      // the agent has changed something by itself
	at    time.Time // when what it offers was journalled last

	commands *wire.Commands
	usage    *journal.AgentUsage
	used     *journal.AgentUsage // the last that was journalled here

	compaction string // the last word on one
}

// options gives what the agent offers, to be changed.
func (s *session) options(ctx context.Context) (*offers, error) {
	o := &s.offers
	if o.known {
		return o, nil
	}
	body, err := s.t.BodyAt(ctx, s.t.State().OptionsSeq)
	if err != nil {
		return nil, err
	}
	if b, ok := body.(*journal.AgentOptions); ok {
		o.now, o.more = b.Options, b.More
	}
	for i := range o.now { // a process that has said nothing yet has what nobody knows
		o.now[i].Current = ""
		if is := s.t.State().Option(o.now[i].ID); is != nil {
			o.now[i].Current = is.Current
		}
	}
	o.was, o.known = slices.Clone(o.now), true
	return o, nil
}

// heardOptions takes settings that the agent tells by itself, or as an answer.
func (s *session) heardOptions(ctx context.Context, change func(now []journal.AgentOption) []journal.AgentOption) error {
	o, err := s.options(ctx)
	if err != nil {
		return err
	}
	now, more := journal.BoundOptions(change(slices.Clone(o.now)))
	o.now, o.more = now, max(more, o.more)
	o.own = o.own || s.setting() == nil
	return nil
}

// config puts the config options in the place of those that there were.
func config(list []wire.ConfigOption) func([]journal.AgentOption) []journal.AgentOption {
	return func(now []journal.AgentOption) []journal.AgentOption {
		out := configOptions(list)
		for _, o := range now {
			if o.Source != journal.OptionByConfig {
				out = withTwin(out, o)
			}
		}
		return out
	}
}

// currently sets the value of one setting.
func currently(is func(o *journal.AgentOption) bool, value string) func([]journal.AgentOption) []journal.AgentOption {
	return func(now []journal.AgentOption) []journal.AgentOption {
		for i := range now {
			if is(&now[i]) && (now[i].Source != journal.OptionByConfig || now[i].Takes(value)) {
				now[i].Current = value
			}
		}
		return now
	}
}

func isMode(o *journal.AgentOption) bool { return o.Category == journal.OptionMode }

// spillOffers makes facts of what is new since the last commit.
func (s *session) spillOffers(ctx context.Context) error {
	o := &s.offers
	if o.known {
		s.optionsFact()
	}
	if o.commands != nil {
		if err := s.commandsFact(ctx, *o.commands); err != nil {
			return err
		}
		o.commands = nil
	}
	if u := o.usage; u != nil && !alike(u, o.used) {
		s.fact(u)
		o.used = u
	}
	o.usage = nil
	return nil
}

func (s *session) optionsFact() {
	o := &s.offers
	body := &journal.AgentOptions{ProcessID: s.conn.p.ID(), Options: o.now, Changed: changed(o.was, o.now), More: o.more}
	if !alike(o.was, o.now) {
		if o.at = time.Now(); o.own {
			s.fact(body)
		} else {
			s.drafts = append(s.drafts, runner.Seen(body))
		}
	}
	o.was, o.own = slices.Clone(o.now), false
}

func (s *session) commandsFact(ctx context.Context, c wire.Commands) error {
	list := make([]journal.AgentCommand, 0, len(c.Commands))
	for _, one := range c.Commands {
		cmd := journal.AgentCommand{Name: one.Name, Description: one.Description}
		if one.Input != nil {
			cmd.Hint = one.Input.Hint
		}
		list = append(list, cmd)
	}
	kept, more := journal.BoundCommands(list)
	was, err := s.t.BodyAt(ctx, s.t.State().CommandsSeq)
	if err != nil {
		return err
	}
	if b, ok := was.(*journal.AgentCommands); ok && alike(b.Commands, kept) && b.More == more {
		return nil
	}
	s.fact(&journal.AgentCommands{ProcessID: s.conn.p.ID(), Commands: kept, More: more})
	return nil
}

func alike(a, b any) bool {
	x, err1 := journal.Encode(a)
	y, err2 := journal.Encode(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// changed names the settings that have another value than before.
func changed(was, now []journal.AgentOption) []string {
	var out []string
	for i := range now {
		if before := journal.OptionByID(was, now[i].ID); before != nil && before.Current != now[i].Current {
			out = append(out, now[i].ID)
		}
	}
	return out
}

// heardUsage keeps the latest of what the agent says of its context.
func (s *session) heardUsage(u wire.UsageUpdate) {
	b := &journal.AgentUsage{AttemptID: s.t.Sent().AttemptID, Used: max(u.Used, 0), Size: max(u.Size, 0)}
	if c := u.Cost; c != nil && len(c.Amount) <= 40 && len(c.Currency) <= 10 {
		b.Cost = &journal.Cost{Amount: c.Amount, Currency: c.Currency}
	}
	s.offers.usage = b
}

// noteBytes bounds what an agent remarks.
const noteBytes = 4 << 10

// remark records a word of the agent's to people, which is no part of what it answers.
func (s *session) remark(what, text, more string) {
	line := strings.TrimSpace(what + " " + text)
	if more = strings.TrimSpace(more); more != "" {
		line += "\n\n" + s.t.Unended(more)
	}
	s.fact(&journal.MessageCompleted{MessageID: runner.NewID("msg"), Role: "agent", Part: journal.PartNote, Text: journal.T(journal.Cut(line, noteBytes))})
}

func (s *session) notice(n wire.Notice) {
	what := "Notice:"
	switch strings.ToLower(n.Severity) {
	case "warning", "warn":
		what = "Warning:"
	case "error", "critical", "fatal":
		what = "Error:"
	}
	s.remark(what, n.Title, n.Description)
}

func (s *session) compaction(c wire.Compaction) {
	word := c.CompactionID + " " + c.Status
	if s.offers.compaction == word {
		return
	}
	s.offers.compaction = word
	switch c.Status {
	case "completed":
		s.remark("The agent has shortened what it remembers of this conversation.", "", blocksText(c.Summary))
	case "failed", "cancelled":
		s.remark("The agent could not shorten what it remembers of this conversation.", c.Error, "")
	default:
		s.remark("The agent shortens what it remembers of this conversation.", "", "")
	}
}

func blocksText(list []wire.Block) string {
	var out strings.Builder
	for _, b := range list {
		if t, ok := b.(wire.TextBlock); ok {
			out.WriteString(t.Text)
		}
	}
	return out.String()
}

// setting is what the agent was told to set and has not answered; nil: nothing.
func (s *session) setting() *journal.PendingSetting {
	if p := s.t.State().Process; p != nil {
		return p.Setting
	}
	return nil
}

// unsetError says why the agent isn't as a person wants it. The agent is none the
// worse, and was told nothing of the turn.
type unsetError struct{ words string }

func (e *unsetError) Error() string { return e.words }

// errUnanswered says that the agent did not take a setting in time.
var errUnanswered = errors.New("the agent did not answer a setting in time")

// configure has the agent take what people want of it, before it is prompted. Each
// setting is told by a numbered frame, and its answer is waited for; after a restart
// it is waited for on, and not told again.
func (s *session) configure(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.a.o.OpenWithin, errUnanswered)
	defer cancel()
	told := map[string]bool{}
	for {
		for s.setting() != nil {
			lines, err := s.hear(ctx)
			if rerr := s.rest(ctx, lines); rerr != nil {
				return rerr
			}
			if err != nil {
				return err
			}
		}
		if s.unset != nil {
			return s.unset
		}
		o, err := s.options(ctx)
		if err != nil {
			return err
		}
		w, ok := s.next(o.now, told)
		if !ok {
			return s.unfulfilled(o.now)
		}
		told[w.ID] = true
		if err := s.set(ctx, journal.OptionByID(o.now, w.ID), w.Value); err != nil {
			return err
		}
	}
}

// next is what is to be set next: the model first, since what else there is may
// depend on it.
func (s *session) next(now []journal.AgentOption, told map[string]bool) (journal.Setting, bool) {
	var found *journal.Wish
	for _, w := range s.t.State().Wanted {
		o := journal.OptionByID(now, w.ID)
		if o == nil || o.Current == w.Value || told[w.ID] || !o.Takes(w.Value) {
			continue
		}
		if found == nil || o.Category == journal.OptionModel {
			found = &w
		}
	}
	if found == nil {
		return journal.Setting{}, false
	}
	return found.Setting, true
}

// unfulfilled says what is wanted and isn't so, now that all was told.
func (s *session) unfulfilled(now []journal.AgentOption) error {
	for _, w := range s.t.State().Wanted {
		switch o := journal.OptionByID(now, w.ID); {
		case o == nil:
			return unset("The agent doesn't offer the setting %s (any more), which was to be %s.", quoteName(w.ID), quoteName(w.Value))
		case o.Current == w.Value:
		case !o.Takes(w.Value):
			return unset("The agent doesn't offer %s for %s (any more).", quoteName(w.Value), quoteName(o.Name))
		default:
			return unset("The agent took %s for %s, and has %s all the same.", quoteName(w.Value), quoteName(o.Name), quoteName(o.Label(o.Current)))
		}
	}
	return nil
}

// quoteName is a name, an id or a value of an agent's setting in a sentence.
func quoteName(name string) string { return journal.Quote(name, mostName) }

func unset(format string, args ...any) *unsetError {
	return &unsetError{fmt.Sprintf(format, args...) + nothingSent + " Choose other settings and continue, or continue to try it again."}
}

// set tells the agent one value, as it takes it.
func (s *session) set(ctx context.Context, o *journal.AgentOption, value string) error {
	if hidden(o.ID) || hidden(value) {
		return unset("%s can't be told to the agent for %s: it contains the value of a credential, which is hidden.", quoteName(value), quoteName(o.Name))
	}
	session := s.t.State().AgentSession
	method, params := wire.MethodSetConfigOption, any(wire.SetConfigParams{SessionID: session, ConfigID: o.ID, Value: value})
	switch {
	case o.Source == journal.OptionByMode:
		method, params = wire.MethodSetMode, wire.SetModeParams{SessionID: session, ModeID: value}
	case o.Source == journal.OptionByModel:
		method, params = wire.MethodSetModel, wire.SetModelParams{SessionID: session, ModelID: value}
	case o.Type == journal.OptionBoolean:
		params = wire.SetConfigParams{SessionID: session, ConfigID: o.ID, Type: string(journal.OptionBoolean), Value: value == "true"}
	}
	id := s.conn.next()
	frame, err := wire.Request(id, method, params)
	if err != nil {
		return err
	}
	return s.conn.say(ctx, runner.Commit{Frames: [][]byte{frame}, Drafts: []journal.Draft{
		runner.Seen(&journal.AgentSetting{ProcessID: s.conn.p.ID(), Request: id, ID: o.ID, Value: value, Outcome: journal.SettingTold}),
	}})
}

// nameOf is what a setting is called.
func (s *session) nameOf(id string) string {
	if o := s.t.State().Option(id); o != nil {
		return o.Name
	}
	return id
}

// setAnswered takes the answer to a setting; false: it is the answer to something else.
func (s *session) setAnswered(ctx context.Context, m wire.Message) (bool, error) {
	p := s.setting()
	if p == nil || m.ID != wire.NumberID(p.Request) {
		return false, nil
	}
	if s.settled == p.Request { // in the lines that are read just now: the first answer counts
		return true, nil
	}
	s.settled = p.Request
	body := &journal.AgentSetting{ProcessID: s.conn.p.ID(), Request: p.Request, ID: p.ID, Value: p.Value, Outcome: journal.SettingSet}
	if m.Err != nil {
		body.Outcome, body.Error = journal.SettingRefused, words(m.Err)
		if v, _ := s.t.State().Wants(p.ID); v == p.Value { // else a person has chosen something else since
			s.unset = unset("The agent did not take %s for %s: %s.", quoteName(p.Value), quoteName(s.nameOf(p.ID)), quoteError(m.Err))
		}
		s.drafts = append(s.drafts, runner.Seen(body))
		return true, nil
	}
	change := currently(func(o *journal.AgentOption) bool { return o.ID == p.ID }, p.Value)
	if r, err := wire.Decode[wire.SetConfigResult](m.Result); err == nil && r.ConfigOptions != nil {
		change = config(r.ConfigOptions)
	}
	err := s.heardOptions(ctx, change)
	s.drafts = append(s.drafts, runner.Seen(body))
	return true, err
}

// flipMost is how many lines are held that only change what the agent offers.
const flipMost = 200

// flips reports whether the lines that are held only change what the agent offers, and
// that was journalled a moment ago. They aren't committed: after a restart they are
// read again, and the last of them counts.
func (s *session) flips() bool {
	return time.Since(s.offers.at) < s.a.o.FlipPause && s.onlyOptions()
}

func (s *session) onlyOptions() bool {
	if len(s.held) >= flipMost || s.worn() {
		return false
	}
	for _, l := range s.held {
		m, err := wire.Parse(l.Bytes)
		if err != nil || m.Method != wire.MethodSessionUpdate {
			return false
		}
		switch _, u := wire.ParseUpdate(m.Params); u.(type) {
		case wire.ConfigOptions, wire.CurrentMode:
		default:
			return false
		}
	}
	return true
}

// pending reports whether something isn't committed yet.
func (o *offers) pending() bool {
	return o.commands != nil || o.usage != nil || (o.known && !alike(o.was, o.now))
}
