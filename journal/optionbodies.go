package journal

import (
	"encoding/json"
	"math"
	"strings"
)

// Bodies of what an agent offers, and of what is wanted of it.
type (
	// AgentOptions is all that an agent offers to be set now, with what is set. Its
	// actor is the agent if it has changed something by itself, else the server.
	AgentOptions struct {
		ProcessID string        `json:"process_id"`
		Options   []AgentOption `json:"options"`
		Changed   []string      `json:"changed,omitempty"` // ids of those that have another value than before
		More      int           `json:"more,omitempty"`    // settings that were left out
	}
	// AgentSetting is what the agent is told to set, before it is, and what it answered.
	AgentSetting struct {
		ProcessID string         `json:"process_id"`
		Request   int64          `json:"request"` // as which the process answers it
		ID        string         `json:"id"`
		Value     string         `json:"value"`
		Outcome   SettingOutcome `json:"outcome"`
		Error     string         `json:"error,omitempty"`
	}
	// AgentCommands are the commands that an agent takes now.
	AgentCommands struct {
		ProcessID string         `json:"process_id"`
		Commands  []AgentCommand `json:"commands"`
		More      int            `json:"more,omitempty"` // that were left out
	}
	// AgentUsage is what an agent says of its context and its cost.
	AgentUsage struct {
		AttemptID string `json:"attempt_id"` // in flight just then, or the last
		Used      int64  `json:"used"`       // tokens
		Size      int64  `json:"size"`       // 0: not told
		Cost      *Cost  `json:"cost,omitempty"`
	}
	// Cost is what the agent's session has cost so far.
	Cost struct {
		Amount   json.Number `json:"amount"`
		Currency string      `json:"currency"`
	}
	// SettingsChosen is what a person wants of the agent from the next prompt on.
	SettingsChosen struct {
		By       string    `json:"by"`
		Settings []Setting `json:"settings"`
	}
)

// SettingOutcome is what became of a setting that the agent is told.
type SettingOutcome string

// The outcomes.
const (
	SettingTold    SettingOutcome = "told" // it hasn't answered
	SettingSet     SettingOutcome = "set"
	SettingRefused SettingOutcome = "refused"
)

// usd is an amount of dollars, if it is one.
func (c *Cost) usd() (float64, bool) {
	if c == nil || !strings.EqualFold(c.Currency, "USD") {
		return 0, false
	}
	amount, err := c.Amount.Float64()
	return amount, err == nil && amount >= 0 && amount <= maxCostUSD
}

// cents keeps a sum of amounts from the noise of binary fractions.
func cents(usd float64) float64 { return math.Round(usd*1e9) / 1e9 }

// Kind is agent.options.
func (*AgentOptions) Kind() Kind { return KindAgentOptions }

// Kind is agent.setting.
func (*AgentSetting) Kind() Kind { return KindAgentSetting }

// Kind is agent.commands.
func (*AgentCommands) Kind() Kind { return KindAgentCommands }

// Kind is agent.usage.
func (*AgentUsage) Kind() Kind { return KindAgentUsage }

// Kind is settings.chosen.
func (*SettingsChosen) Kind() Kind { return KindSettingsChosen }
