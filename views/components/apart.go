package components

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"holdfast/journal"
)

// Place says which of its call's requests this is, and which of several calls that
// would do the same, or that read alike and would not; "" if it is the only one.
func (c DecisionCard) Place() string {
	var out []string
	switch {
	case c.Of < 2:
	case c.Again:
		out = append(out, fmt.Sprintf("%d of %d requests for this command: the agent asked for the same more than once.", c.Nr, c.Of))
	default:
		out = append(out, fmt.Sprintf("%d of %d permissions for this command.", c.Nr, c.Of))
	}
	if c.Of > 1 {
		out = append(out, "Each is answered on its own. It runs when all of them are allowed, and does not if one is denied.")
	}
	if c.Twins > 1 {
		out = append(out, fmt.Sprintf("The agent wants to do the same %d times; this is call %d of them. An answer holds for one of them.", c.Twins, c.Twin))
	}
	if c.Alikes > 1 {
		out = append(out, fmt.Sprintf("The agent asks for %d calls that read alike here, and would not do the same; this is number %d. An answer holds for this one.", c.Alikes, c.Alike))
	}
	return strings.Join(out, " ")
}

// Nth is Place in a few words, for a heading.
func (c DecisionCard) Nth() string {
	var out []string
	if c.Of > 1 {
		out = append(out, fmt.Sprintf("%d of %d for this command", c.Nr, c.Of))
	}
	if c.Twins > 1 {
		out = append(out, fmt.Sprintf("call %d of %d that are the same", c.Twin, c.Twins))
	}
	if c.Alikes > 1 {
		out = append(out, fmt.Sprintf("number %d of %d that differ", c.Alike, c.Alikes))
	}
	return strings.Join(out, ", ")
}

// For is what the request is about, in one line: the first thing that the call
// was judged by, and how many more there are. It tells requests of one call apart.
func (c DecisionCard) For() (first, more string) {
	list := c.Request.Resources
	if c.Of < 2 || len(list) == 0 {
		return "", ""
	}
	if len(list) > 1 {
		more = fmt.Sprintf("and %d more", len(list)-1)
	}
	return Line(list[0], 80), more
}

// quotedFor is For, or another text of the agent, in words that are heard, or stand in a title.
func quotedFor(first, more string) string {
	if first == "" {
		return more
	}
	return strings.TrimSpace(QuotedName(first) + " " + more)
}

// Apart is what a control's name has behind its words where another card has a control
// of the same words for the same thing; "" where none has.
func (c DecisionCard) Apart() string {
	if c.Nth() == "" {
		return ""
	}
	first, more := c.For()
	words := slices.DeleteFunc([]string{c.Asks(), quotedFor(first, more), quotedFor(c.Differs, ""), c.Nth()}, func(s string) bool { return s == "" })
	return ": " + strings.Join(words, ", ")
}

// NumberCards tells several requests of one call apart, in the order in which they were
// asked, several calls of a session that would do the same, and those that only read alike.
func NumberCards(cards ...*DecisionCard) {
	sorted := slices.SortedFunc(slices.Values(cards), func(a, b *DecisionCard) int { return int(a.Request.AskedSeq - b.Request.AskedSeq) })
	twins, alike, does := newGroups(), newGroups(), make(map[*DecisionCard]string, len(cards))
	for _, c := range sorted {
		c.number(cards)
		does[c] = c.does()
		twins.add(does[c], c)
		alike.add(c.reads(), c)
	}
	for _, c := range sorted {
		c.Twin, c.Twins = twins.place(does[c], c)
		c.Alike, c.Alikes, c.Differs = 0, 0, ""
		others := slices.DeleteFunc(slices.Clone(alike.cards[c.reads()]), func(o *DecisionCard) bool {
			return does[o] == does[c] || o.Request.Tool.CallID == c.Request.Tool.CallID
		})
		if len(others) > 0 {
			c.Alike, c.Alikes = alike.place(c.reads(), c)
			c.Differs = c.differs(others)
		}
	}
}

// groups are cards by what they share, in the order in which they were asked.
type groups struct {
	cards map[string][]*DecisionCard
	calls map[string][]string // each once
}

func newGroups() groups {
	return groups{map[string][]*DecisionCard{}, map[string][]string{}}
}

func (g groups) add(key string, c *DecisionCard) {
	g.cards[key] = append(g.cards[key], c)
	if call := c.Request.Tool.CallID; !slices.Contains(g.calls[key], call) {
		g.calls[key] = append(g.calls[key], call)
	}
}

// place is which of how many calls of a group a card's is; zero if it is the only one.
func (g groups) place(key string, c *DecisionCard) (nth, of int) {
	calls := g.calls[key]
	if len(calls) < 2 {
		return 0, 0
	}
	return 1 + slices.Index(calls, c.Request.Tool.CallID), len(calls)
}

// number finds the card's place among those of its call.
func (c *DecisionCard) number(cards []*DecisionCard) {
	c.Nr, c.Of, c.Again = 1, 0, false
	for _, other := range cards {
		if other.Request.Tool.CallID != c.Request.Tool.CallID {
			continue
		}
		c.Of++
		c.Again = c.Again || other != c && other.asks() == c.asks()
		if other.Request.AskedSeq < c.Request.AskedSeq {
			c.Nr++
		}
	}
}

// does is all of what the request's call would do, and of what it was judged by: two calls
// of a session do the same only if nothing of it differs, wherever it is shown. What isn't
// known whole is like no other, unless its input is known by its hash.
func (c *DecisionCard) does() string {
	var meta map[string]json.RawMessage
	_ = json.Unmarshal(c.Request.Metadata, &meta) // what isn't there is empty
	_, hashed := meta["input_sha256"]
	if !c.Payload.Known && !hashed {
		return c.Request.Tool.CallID
	}
	p := c.Payload
	if hashed { // what else the card has is drawn from these
		p = Payload{}
	}
	delete(meta, "ask") // its number tells requests apart, and says nothing
	all, err := journal.Encode([]any{c.Request.SessionID, c.asks(), meta, p.Tool, p.Name, p.Runs, p.Text, p.Raw, p.Said, p.Facts})
	if err != nil {
		return c.Request.Tool.CallID
	}
	return journal.Hash(string(all))
}

// reads is what tells a card from others at a glance.
func (c *DecisionCard) reads() string {
	first, more := c.For()
	return strings.Join([]string{c.Request.SessionID, c.Asks(), c.Payload.Title(), c.Payload.Files, first, more}, "\x00")
}

// differs is the first thing that the card says and not all of the others say, in a line;
// "": nothing of it stands here.
func (c *DecisionCard) differs(others []*DecisionCard) string {
	says := func(o *DecisionCard) []Fact {
		all := slices.Concat(o.Payload.Said, o.Payload.Facts)
		return append(all, Fact{o.judgedLabel(), strings.Join(o.Request.Resources, " ")})
	}
	for _, f := range says(c) {
		if f.Value != "" && slices.ContainsFunc(others, func(o *DecisionCard) bool { return !slices.Contains(says(o), f) }) {
			return Line(f.Name+": "+f.Value, 80)
		}
	}
	return ""
}

// asks is what the request asks for, of its call.
func (c *DecisionCard) asks() string {
	return strings.Join(append([]string{c.Request.Permission}, c.Request.Resources...), "\x00")
}
