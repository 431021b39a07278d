package pages

import (
	"net/url"
	"slices"

	"holdfast/views/components"
)

// Credentials is the page of what agents get in their environment. It knows no value.
type Credentials struct {
	Frame
	Key     string
	Items   []Credential
	Agents  []string // that can be chosen
	Where   string   // the key is, with which they are sealed
	Name    string   // what the form has
	Agent   string
	Refused bool // what was typed as the value is gone
}

// Credential is one of them.
type Credential struct {
	ID, Name, Agent              string
	CreatedAt, UpdatedAt, UsedAt int64
	Version                      int64
	Spoilt                       bool // it doesn't open, and agents don't start for want of it
}

// CredentialDeletion asks before one is deleted.
type CredentialDeletion struct {
	Frame
	Key string
	One Credential
}

// choices are the agents that the form offers, with the one that it has.
func (p Credentials) choices() []string {
	out := slices.Clone(p.Agents)
	if p.Agent != "" && !slices.Contains(out, p.Agent) {
		out = append(out, p.Agent)
	}
	return out
}

// whose names the agents that get one.
func (c Credential) whose() string {
	if c.Agent == "" {
		return "every agent"
	}
	return components.Line(c.Agent, 60)
}

func (c Credential) deletion() string {
	return "/settings/credentials/" + url.PathEscape(c.ID) + "/deletion"
}

func (c Credential) replacement() string {
	return "/settings/credentials?" + url.Values{"name": {c.Name}, "agent": {c.Agent}}.Encode() + "#store"
}
