package wire

import "encoding/json"

// ProtocolVersion is the version of ACP that this package speaks.
const ProtocolVersion = 1

// InitializeParams open a connection.
type InitializeParams struct {
	ProtocolVersion    int                `json:"protocolVersion" wire:"required"`
	ClientCapabilities ClientCapabilities `json:"clientCapabilities"`
	ClientInfo         *Implementation    `json:"clientInfo,omitempty"`
}

// ClientCapabilities are what the agent may ask of the client.
type ClientCapabilities struct {
	FS       FSCapabilities `json:"fs"`
	Terminal bool           `json:"terminal"`
}

// FSCapabilities are those with files.
type FSCapabilities struct {
	ReadTextFile  bool `json:"readTextFile"`
	WriteTextFile bool `json:"writeTextFile"`
}

// Implementation names a program.
type Implementation struct {
	Name    string `json:"name" wire:"required"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// InitializeResult is what the agent is and can.
type InitializeResult struct {
	ProtocolVersion   int               `json:"protocolVersion" wire:"required"`
	AgentCapabilities AgentCapabilities `json:"agentCapabilities"`
	AuthMethods       []AuthMethod      `json:"authMethods"`
	AgentInfo         *Implementation   `json:"agentInfo"`
	Raw               json.RawMessage   `json:"-"`
}

// AgentCapabilities are what the client may ask of the agent.
type AgentCapabilities struct {
	LoadSession         bool                `json:"loadSession"`
	PromptCapabilities  PromptCapabilities  `json:"promptCapabilities"`
	MCPCapabilities     MCPCapabilities     `json:"mcpCapabilities"`
	SessionCapabilities SessionCapabilities `json:"sessionCapabilities"`
}

// PromptCapabilities are the blocks beside text and links that a prompt may have.
type PromptCapabilities struct {
	Image           bool `json:"image"`
	Audio           bool `json:"audio"`
	EmbeddedContext bool `json:"embeddedContext"`
}

// MCPCapabilities are the ways to MCP servers beside stdio.
type MCPCapabilities struct {
	HTTP bool `json:"http"`
	SSE  bool `json:"sse"`
}

// SessionCapabilities are the optional session methods.
type SessionCapabilities struct {
	List                  Offered `json:"list"`
	Resume                Offered `json:"resume"`
	Close                 Offered `json:"close"`
	Delete                Offered `json:"delete"`
	Fork                  Offered `json:"fork"`
	AdditionalDirectories Offered `json:"additionalDirectories"`
}

// Offered is a capability that is told by an object, mostly an empty one.
type Offered bool

// UnmarshalJSON is true of anything but false and null.
func (o *Offered) UnmarshalJSON(raw []byte) error {
	*o = Offered(!isNull(raw) && string(raw) != "false")
	return nil
}

// AuthMethod is a way to sign the agent in.
type AuthMethod struct {
	ID          string          `json:"id" wire:"required"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Type        string          `json:"type"` // "": the agent does it by itself
	Raw         json.RawMessage `json:"-"`
}

// SessionParams are those of session/new, and with a SessionID those of session/load
// and session/resume.
type SessionParams struct {
	SessionID             string     `json:"sessionId,omitempty"`
	Cwd                   string     `json:"cwd" wire:"required"` // absolute
	MCPServers            MCPServers `json:"mcpServers"`
	AdditionalDirectories []string   `json:"additionalDirectories,omitempty"`
}

// MCPServers are as the protocol has them.
type MCPServers []json.RawMessage

// MarshalJSON is a list, always: agents refuse null.
func (s MCPServers) MarshalJSON() ([]byte, error) {
	if s == nil {
		s = MCPServers{}
	}
	return json.Marshal([]json.RawMessage(s))
}

// ListParams ask for the sessions that the agent remembers.
type ListParams struct {
	Cwd string `json:"cwd,omitempty"`
}

// DeleteParams make the agent forget a session.
type DeleteParams struct {
	SessionID string `json:"sessionId" wire:"required"`
}

// NewSessionResult answers session/new.
type NewSessionResult struct {
	SessionID string `json:"sessionId" wire:"required"`
	SessionState
}

// SessionState answers session/load and session/resume; null is one without members.
type SessionState struct {
	Modes         *Modes          `json:"modes"`
	ConfigOptions []ConfigOption  `json:"configOptions"`
	Models        *Models         `json:"models"` // of agents from before config options
	Raw           json.RawMessage `json:"-"`
}

// Modes are what the agent can be set to.
type Modes struct {
	CurrentModeID  string `json:"currentModeId" wire:"required"`
	AvailableModes []Mode `json:"availableModes"`
}

// Mode is one of them.
type Mode struct {
	ID          string `json:"id" wire:"required"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Models are what the agent can use.
type Models struct {
	CurrentModelID  string  `json:"currentModelId" wire:"required"`
	AvailableModels []Model `json:"availableModels"`
}

// Model is one of them.
type Model struct {
	ModelID     string `json:"modelId" wire:"required"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// ConfigOption is one setting of a session.
type ConfigOption struct {
	ID           string          `json:"id" wire:"required"`
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	Category     string          `json:"category"`     // mode, model, model_config, thought_level, …
	Type         string          `json:"type"`         // select, boolean, …
	CurrentValue json.RawMessage `json:"currentValue"` // a text of a select, true or false of a boolean
	Options      ConfigChoices   `json:"options"`
	Raw          json.RawMessage `json:"-"`
}

// ConfigChoices are the values of a select, in order, those of groups too.
type ConfigChoices []ConfigChoice

// ConfigChoice is one of them.
type ConfigChoice struct {
	Value       string `json:"value" wire:"required"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Group       string `json:"-"` // the name of its group, if it is in one
}

// UnmarshalJSON takes a list of choices or of groups of them.
func (c *ConfigChoices) UnmarshalJSON(raw []byte) error {
	entries, err := Decode[[]struct {
		Name    string         `json:"name"`
		Choices []ConfigChoice `json:"options"`
		Raw     json.RawMessage
	}](raw)
	if err != nil {
		return err
	}
	*c = nil
	for _, e := range entries {
		if e.Choices == nil {
			choice, err := Decode[ConfigChoice](e.Raw)
			if err != nil {
				return err
			}
			e.Choices = []ConfigChoice{choice}
			e.Name = ""
		}
		for _, choice := range e.Choices {
			choice.Group = e.Name
			*c = append(*c, choice)
		}
	}
	return nil
}

// SetConfigParams set an option; the answer has all options anew.
type SetConfigParams struct {
	SessionID string `json:"sessionId" wire:"required"`
	ConfigID  string `json:"configId" wire:"required"`
	Type      string `json:"type,omitempty"` // "boolean" with true or false
	Value     any    `json:"value"`
}

// SetModeParams set a mode.
type SetModeParams struct {
	SessionID string `json:"sessionId" wire:"required"`
	ModeID    string `json:"modeId" wire:"required"`
}

// SetConfigResult answers it.
type SetConfigResult struct {
	ConfigOptions []ConfigOption `json:"configOptions"` // nil: it doesn't say
}

// SetModelParams set a model, with agents from before config options.
type SetModelParams struct {
	SessionID string `json:"sessionId" wire:"required"`
	ModelID   string `json:"modelId" wire:"required"`
}

// PromptParams ask for a turn.
type PromptParams struct {
	SessionID string  `json:"sessionId" wire:"required"`
	Prompt    []Block `json:"prompt" wire:"required"`
}

// PromptResult ends a turn.
type PromptResult struct {
	StopReason string          `json:"stopReason" wire:"required"`
	Usage      *Usage          `json:"usage"`
	Raw        json.RawMessage `json:"-"`
}

// Reasons for which a turn ends.
const (
	StopEndTurn         = "end_turn"
	StopMaxTokens       = "max_tokens"
	StopMaxTurnRequests = "max_turn_requests"
	StopRefusal         = "refusal"
	StopCancelled       = "cancelled"
)

// Usage counts the tokens of a turn. What is nil wasn't told.
type Usage struct {
	InputTokens       *int64 `json:"inputTokens"`
	OutputTokens      *int64 `json:"outputTokens"`
	TotalTokens       *int64 `json:"totalTokens"`
	ThoughtTokens     *int64 `json:"thoughtTokens"`
	CachedReadTokens  *int64 `json:"cachedReadTokens"`
	CachedWriteTokens *int64 `json:"cachedWriteTokens"`
}

// CancelParams end a turn: its prompt is still answered, StopCancelled.
type CancelParams struct {
	SessionID string `json:"sessionId" wire:"required"`
}

// CancelRequestParams tell that an answer is no longer wanted; one is due all the same.
type CancelRequestParams struct {
	RequestID ID `json:"requestId" wire:"required"`
}
