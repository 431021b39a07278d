package pages

import (
	"net/url"

	"holdfast/journal"
	"holdfast/views/components"
)

// Sessions is the list.
type Sessions struct {
	Frame
	Items    []components.Session
	State    string // the filter
	Query    string
	More     string // link to the next page, or ""
	Filtered bool
	Later    bool // not the first page
	Group    string
	Counts   []Count
}

// Here is where this list is, from its first page on.
func (p Sessions) Here() string {
	q := url.Values{}
	for name, value := range map[string]string{"state": p.State, "q": p.Query, "group": p.Group} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if len(q) == 0 {
		return "/"
	}
	return "/?" + q.Encode()
}

// Count is a group of sessions with how many there are, and the list of them.
type Count struct {
	Name, Href string
	N          int
	Current    bool
}

// Nothing says that a filter finds nothing, and where to look instead.
func (p Sessions) Nothing() (says components.Phrase, href, label string) {
	switch {
	case p.Query != "" && p.State != "":
		return components.Say("Nothing matches “" + p.Query + "” in " + p.StateLabel() + "."), "/?" + url.Values{"q": {p.Query}}.Encode(), "Search all states"
	case p.Query != "":
		return components.Say("Nothing matches “" + p.Query + "” in any state."), "/", "Show all sessions"
	case p.State != "":
		return components.Say("No session is in the state “" + p.StateLabel() + "”."), "/", "Show all sessions"
	}
	return components.Say("Nothing is here now."), "/", "Show all sessions"
}

// Group is a run of sessions under one heading.
type Group struct {
	Name  components.Group
	Items []components.Session
}

// Groups puts the list under its headings, in the order in which it came.
func (p Sessions) Groups() []Group {
	var out []Group
	for _, s := range p.Items {
		g := s.Group()
		if len(out) == 0 || out[len(out)-1].Name != g {
			out = append(out, Group{Name: g})
		}
		last := &out[len(out)-1]
		last.Items = append(last.Items, s)
	}
	return out
}

// States are the choices of the filter.
func (Sessions) States() []components.Choice {
	out := []components.Choice{{Value: "", Label: "Any"}}
	for _, s := range journal.States() {
		out = append(out, components.Choice{Value: string(s), Label: components.StateWords(s)})
	}
	return out
}

// StateLabel is the filter in words.
func (p Sessions) StateLabel() string {
	if p.State == "" {
		return "any state"
	}
	return components.StateWords(journal.ExecutionState(p.State))
}
