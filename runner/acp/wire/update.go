package wire

import (
	"encoding/json"
	"reflect"
)

// Update is what an agent reports during a turn, or a load: Chunk, ToolCall, Plan,
// Commands, CurrentMode, ConfigOptions, SessionInfo, UsageUpdate, Notice, Compaction,
// CompactionChunk or UnknownUpdate.
type Update interface{ update() }

// ParseUpdate reads the params of session/update. It doesn't fail: what can't be read
// is an UnknownUpdate, and a session that isn't named is "".
func ParseUpdate(params json.RawMessage) (session string, u Update) {
	session = unquote(member(params, "sessionId"))
	raw := member(params, "update")
	if raw == nil {
		return session, UnknownUpdate{Raw: params}
	}
	u, err := Decode[Update](raw)
	if err != nil {
		return session, UnknownUpdate{Raw: raw}
	}
	return session, u
}

// Kinds of updates, where one type has several.
const (
	UserMessage    = "user_message_chunk" // only when a session is loaded, with most agents
	AgentMessage   = "agent_message_chunk"
	AgentThought   = "agent_thought_chunk"
	NewToolCall    = "tool_call"
	ToolCallChange = "tool_call_update"
)

// Chunk is a piece of a message, to be added to what came before.
type Chunk struct {
	Kind      string `json:"sessionUpdate"` // UserMessage, AgentMessage or AgentThought
	Content   Block  `json:"content" wire:"required"`
	MessageID string `json:"messageId"` // "": the agent gives none
}

// ToolCall is what is new about a tool call, whichever its Kind: agents send a second
// tool_call for one id, or a first tool_call_update. What is nil is unchanged; a list
// replaces the one before it, also by none. The id is unique in a turn at most.
type ToolCall struct {
	Kind       string          `json:"sessionUpdate"`                            // NewToolCall, ToolCallChange; "" in a permission request
	ToolCallID string          `json:"toolCallId" wire:"required" number:"text"` // it is never told back
	Title      *string         `json:"title"`
	Name       *string         `json:"name"`
	ToolKind   *string         `json:"kind"`   // read, edit, delete, move, search, execute, think, fetch, switch_mode, other, …
	Status     *string         `json:"status"` // pending, in_progress, completed, failed, …
	Content    []ToolContent   `json:"content"`
	Locations  []Location      `json:"locations"`
	RawInput   json.RawMessage `json:"rawInput"`
	RawOutput  json.RawMessage `json:"rawOutput"`
	Raw        json.RawMessage `json:"-"`
}

// Misread reports whether a member that is read is of another form than it should be, so
// that it is missing here.
func (t ToolCall) Misread() bool {
	for name, read := range map[string]bool{
		"title": t.Title != nil, "name": t.Name != nil, "kind": t.ToolKind != nil, "status": t.Status != nil, "content": t.Content != nil, "locations": t.Locations != nil,
	} {
		if v := member(t.Raw, name); !read && !isNull(v) {
			return true
		}
	}
	return false
}

// Location is a place in a file that a tool works on.
type Location struct {
	Path string `json:"path" wire:"required"`
	Line *int64 `json:"line"`
}

// Plan is the agent's whole plan, which replaces the one before.
type Plan struct {
	Entries []PlanEntry `json:"entries" wire:"required"`
}

// PlanEntry is one step of a plan.
type PlanEntry struct {
	Content  string `json:"content" wire:"required"`
	Priority string `json:"priority"` // high, medium, low, …
	Status   string `json:"status"`   // pending, in_progress, completed, …
}

// Commands are the slash commands that the agent offers from now on.
type Commands struct {
	Commands []Command `json:"availableCommands" wire:"required"`
}

// Command is one of them.
type Command struct {
	Name        string        `json:"name" wire:"required"`
	Description string        `json:"description"`
	Input       *CommandInput `json:"input"` // nil: it takes none
}

// CommandInput is what may be typed after a command.
type CommandInput struct {
	Hint string `json:"hint"`
}

// CurrentMode tells that the agent is in another mode.
type CurrentMode struct {
	CurrentModeID string `json:"currentModeId" wire:"required"`
}

// ConfigOptions are all options of the session, with their values.
type ConfigOptions struct {
	ConfigOptions []ConfigOption `json:"configOptions" wire:"required"`
}

// SessionInfo is what the agent says about the session. What is nil is unchanged.
type SessionInfo struct {
	Title     *string `json:"title"`
	UpdatedAt *string `json:"updatedAt"`
}

// UsageUpdate tells how full the context is, in tokens.
type UsageUpdate struct {
	Used int64 `json:"used" wire:"required"`
	Size int64 `json:"size"` // 0: not told
	Cost *Cost `json:"cost"`
}

// Cost is what the session has cost so far.
type Cost struct {
	Amount   json.Number `json:"amount" wire:"required"`
	Currency string      `json:"currency"`
}

// Notice is for the person, and no part of the history.
type Notice struct {
	Severity    string `json:"severity"`
	Title       string `json:"title" wire:"required"`
	Description string `json:"description"`
}

// Compaction tells that the agent shortens its context.
type Compaction struct {
	CompactionID string  `json:"compactionId" wire:"required"`
	Status       string  `json:"status"`
	Summary      []Block `json:"summary"`
	Error        string  `json:"error"`
}

// CompactionChunk is a piece of what a compaction kept.
type CompactionChunk struct {
	CompactionID string `json:"compactionId" wire:"required"`
	Content      Block  `json:"content" wire:"required"`
}

// UnknownUpdate is an update of a kind that this package doesn't know, or that lacks
// what its kind requires.
type UnknownUpdate struct {
	Kind string
	Raw  json.RawMessage
}

func (Chunk) update()           {}
func (ToolCall) update()        {}
func (Plan) update()            {}
func (Commands) update()        {}
func (CurrentMode) update()     {}
func (ConfigOptions) update()   {}
func (SessionInfo) update()     {}
func (UsageUpdate) update()     {}
func (Notice) update()          {}
func (Compaction) update()      {}
func (CompactionChunk) update() {}
func (UnknownUpdate) update()   {}

var updates = union{
	tag: "sessionUpdate",
	kinds: map[string]reflect.Type{
		UserMessage:                 reflect.TypeFor[Chunk](),
		AgentMessage:                reflect.TypeFor[Chunk](),
		AgentThought:                reflect.TypeFor[Chunk](),
		NewToolCall:                 reflect.TypeFor[ToolCall](),
		ToolCallChange:              reflect.TypeFor[ToolCall](),
		"plan":                      reflect.TypeFor[Plan](),
		"available_commands_update": reflect.TypeFor[Commands](),
		"current_mode_update":       reflect.TypeFor[CurrentMode](),
		"config_option_update":      reflect.TypeFor[ConfigOptions](),
		"session_info_update":       reflect.TypeFor[SessionInfo](),
		"usage_update":              reflect.TypeFor[UsageUpdate](),
		"notice":                    reflect.TypeFor[Notice](),
		"compaction_update":         reflect.TypeFor[Compaction](),
		"compaction_summary_chunk":  reflect.TypeFor[CompactionChunk](),
	},
	unknown: func(kind string, raw json.RawMessage) any { return UnknownUpdate{kind, raw} },
}

// ToolContent is a piece of what a tool call shows: ToolBlock, Diff, Terminal or
// UnknownToolContent.
type ToolContent interface{ toolContent() }

// ToolBlock is content like that of a message.
type ToolBlock struct {
	Content Block `json:"content" wire:"required"`
}

// Diff is a change of a file: the whole texts, or only what was replaced.
type Diff struct {
	Path    string  `json:"path" wire:"required"`
	OldText *string `json:"oldText"` // nil: the file is new
	NewText string  `json:"newText" wire:"required"`
}

// Terminal names a terminal of the client, which we offer none of.
type Terminal struct {
	TerminalID string `json:"terminalId" wire:"required"`
}

// UnknownToolContent is of a type that this package doesn't know, or lacks what its
// type requires.
type UnknownToolContent struct {
	Type string
	Raw  json.RawMessage
}

func (ToolBlock) toolContent()          {}
func (Diff) toolContent()               {}
func (Terminal) toolContent()           {}
func (UnknownToolContent) toolContent() {}

var toolContents = union{
	tag: "type",
	kinds: map[string]reflect.Type{
		"content":  reflect.TypeFor[ToolBlock](),
		"diff":     reflect.TypeFor[Diff](),
		"terminal": reflect.TypeFor[Terminal](),
	},
	unknown: func(kind string, raw json.RawMessage) any { return UnknownToolContent{kind, raw} },
}
