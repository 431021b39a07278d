package wire

import "encoding/json"

// PermissionParams are those of session/request_permission.
type PermissionParams struct {
	SessionID string             `json:"sessionId"`                // "": it names none
	ToolCall  ToolCall           `json:"toolCall" wire:"required"` // news about the call, too
	Options   []PermissionOption `json:"options" wire:"required"`
	Raw       json.RawMessage    `json:"-"`
}

// Kinds of permission options. Ids and order differ from agent to agent: go by these.
const (
	AllowOnce    = "allow_once"
	AllowAlways  = "allow_always"
	RejectOnce   = "reject_once"
	RejectAlways = "reject_always"
)

// PermissionOption is one of the answers that the agent takes.
type PermissionOption struct {
	OptionID string `json:"optionId" wire:"required"`
	Name     string `json:"name"`
	Kind     string `json:"kind"`
}

// PermissionResult answers a permission request.
type PermissionResult struct {
	Outcome PermissionOutcome `json:"outcome" wire:"required"`
}

// PermissionOutcome is a choice, or none.
type PermissionOutcome struct {
	Outcome  string `json:"outcome" wire:"required"` // OutcomeSelected, OutcomeCancelled
	OptionID string `json:"optionId,omitempty"`
}

// Outcomes of a permission request.
const (
	OutcomeSelected  = "selected"
	OutcomeCancelled = "cancelled"
)

// Selected answers with an option of the request.
func Selected(optionID string) PermissionResult {
	return PermissionResult{PermissionOutcome{OutcomeSelected, optionID}}
}

// Cancelled answers a request whose turn was cancelled.
func Cancelled() PermissionResult {
	return PermissionResult{PermissionOutcome{Outcome: OutcomeCancelled}}
}
