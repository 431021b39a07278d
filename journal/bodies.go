package journal

import (
	"encoding/json"
	"time"
)

// The kinds that this build knows (docs/events.md lists them with their data).
const (
	KindSessionCreated      Kind = "session.created"
	KindSessionRenamed      Kind = "session.renamed"
	KindSessionArchived     Kind = "session.archived"
	KindSessionBlocked      Kind = "session.blocked"
	KindSessionUnblocked    Kind = "session.unblocked"
	KindPromptAdmitted      Kind = "prompt.admitted"
	KindPromptPromoted      Kind = "prompt.promoted"
	KindPromptWithdrawn     Kind = "prompt.withdrawn"
	KindTurnStarted         Kind = "turn.started"
	KindTurnEnded           Kind = "turn.ended"
	KindContinuation        Kind = "continuation.requested"
	KindStepStarted         Kind = "step.started"
	KindPlanUpdated         Kind = "plan.updated"
	KindMessageDelta        Kind = "message.delta"
	KindMessageCompleted    Kind = "message.completed"
	KindAttemptPrepared     Kind = "attempt.prepared"
	KindAttemptDispatched   Kind = "attempt.dispatched"
	KindAttemptReceiving    Kind = "attempt.receiving"
	KindAttemptSettled      Kind = "attempt.settled"
	KindAttemptFailed       Kind = "attempt.failed"
	KindAttemptUnknown      Kind = "attempt.unknown"
	KindAttemptResolved     Kind = "attempt.resolved"
	KindCallProposed        Kind = "call.proposed"
	KindCallDescribed       Kind = "call.described"
	KindCallContradicted    Kind = "call.contradicted"
	KindCallDispatched      Kind = "call.dispatched"
	KindCallAdopted         Kind = "call.adopted"
	KindCallOutput          Kind = "call.output"
	KindCallSettled         Kind = "call.settled"
	KindCallUnknown         Kind = "call.unknown"
	KindCallEvidence        Kind = "call.evidence"
	KindCallResolved        Kind = "call.resolved"
	KindPermissionAsked     Kind = "permission.asked"
	KindPermissionReplied   Kind = "permission.replied"
	KindPermissionCancelled Kind = "permission.cancelled"
	KindInterruptRequested  Kind = "interrupt.requested"
	KindStepRecovered       Kind = "step.recovered"
	KindLimitReached        Kind = "limit.reached"
	KindAgentStarted        Kind = "agent.started"
	KindAgentOpened         Kind = "agent.opened"
	KindAgentForgotten      Kind = "agent.forgotten"
	KindAgentEnded          Kind = "agent.ended"
	KindAgentLost           Kind = "agent.lost"
	KindAgentEvent          Kind = "agent.event"
	KindAgentOptions        Kind = "agent.options"
	KindAgentSetting        Kind = "agent.setting"
	KindAgentCommands       Kind = "agent.commands"
	KindAgentUsage          Kind = "agent.usage"
	KindSettingsChosen      Kind = "settings.chosen"
)

var bodies = map[Kind]func() Body{
	KindSessionCreated:      func() Body { return new(SessionCreated) },
	KindSessionRenamed:      func() Body { return new(SessionRenamed) },
	KindSessionArchived:     func() Body { return new(SessionArchived) },
	KindSessionBlocked:      func() Body { return new(SessionBlocked) },
	KindSessionUnblocked:    func() Body { return new(SessionUnblocked) },
	KindPromptAdmitted:      func() Body { return new(PromptAdmitted) },
	KindPromptPromoted:      func() Body { return new(PromptPromoted) },
	KindPromptWithdrawn:     func() Body { return new(PromptWithdrawn) },
	KindTurnStarted:         func() Body { return new(TurnStarted) },
	KindTurnEnded:           func() Body { return new(TurnEnded) },
	KindContinuation:        func() Body { return new(ContinuationRequested) },
	KindStepStarted:         func() Body { return new(StepStarted) },
	KindPlanUpdated:         func() Body { return new(PlanUpdated) },
	KindMessageDelta:        func() Body { return new(MessageDelta) },
	KindMessageCompleted:    func() Body { return new(MessageCompleted) },
	KindAttemptPrepared:     func() Body { return new(AttemptPrepared) },
	KindAttemptDispatched:   func() Body { return new(AttemptDispatched) },
	KindAttemptReceiving:    func() Body { return new(AttemptReceiving) },
	KindAttemptSettled:      func() Body { return new(AttemptSettled) },
	KindAttemptFailed:       func() Body { return new(AttemptFailed) },
	KindAttemptUnknown:      func() Body { return new(AttemptUnknown) },
	KindAttemptResolved:     func() Body { return new(AttemptResolved) },
	KindCallProposed:        func() Body { return new(CallProposed) },
	KindCallDescribed:       func() Body { return new(CallDescribed) },
	KindCallContradicted:    func() Body { return new(CallContradicted) },
	KindCallDispatched:      func() Body { return new(CallDispatched) },
	KindCallAdopted:         func() Body { return new(CallAdopted) },
	KindCallOutput:          func() Body { return new(CallOutput) },
	KindCallSettled:         func() Body { return new(CallSettled) },
	KindCallUnknown:         func() Body { return new(CallUnknown) },
	KindCallEvidence:        func() Body { return new(CallEvidence) },
	KindCallResolved:        func() Body { return new(CallResolved) },
	KindPermissionAsked:     func() Body { return new(PermissionAsked) },
	KindPermissionReplied:   func() Body { return new(PermissionReplied) },
	KindPermissionCancelled: func() Body { return new(PermissionCancelled) },
	KindInterruptRequested:  func() Body { return new(InterruptRequested) },
	KindStepRecovered:       func() Body { return new(StepRecovered) },
	KindLimitReached:        func() Body { return new(LimitReached) },
	KindAgentStarted:        func() Body { return new(AgentStarted) },
	KindAgentOpened:         func() Body { return new(AgentOpened) },
	KindAgentForgotten:      func() Body { return new(AgentForgotten) },
	KindAgentEnded:          func() Body { return new(AgentEnded) },
	KindAgentLost:           func() Body { return new(AgentLost) },
	KindAgentEvent:          func() Body { return new(AgentEvent) },
	KindAgentOptions:        func() Body { return new(AgentOptions) },
	KindAgentSetting:        func() Body { return new(AgentSetting) },
	KindAgentCommands:       func() Body { return new(AgentCommands) },
	KindAgentUsage:          func() Body { return new(AgentUsage) },
	KindSettingsChosen:      func() Body { return new(SettingsChosen) },
}

type (
	// SessionCreated opens a journal. It is always event 1.
	SessionCreated struct {
		Title       string `json:"title"`
		Agent       string `json:"agent"`
		Workspace   string `json:"workspace"`
		WorkspaceID string `json:"workspace_id,omitempty"` // the mark in the folder (WSP-1)
		Preset      string `json:"preset"`
		Rules       []Rule `json:"rules"`
		Policy      Policy `json:"policy"`
		OwnerID     string `json:"owner_id"`
		// Limits are those that were asked for; null: the default ones.
		Limits *Limits `json:"limits"`
		// Settings are what is wanted of the agent from the first prompt on.
		Settings []Setting `json:"settings,omitempty"`
	}
	// SessionRenamed gives a session another title.
	SessionRenamed struct {
		Title string `json:"title"`
	}
	// SessionArchived closes a session.
	SessionArchived struct{}
	// SessionBlocked parks a session until its cause is gone (semantics §11).
	SessionBlocked struct {
		Cause       BlockCause `json:"cause"`
		Detail      string     `json:"detail"`
		UnblockedBy string     `json:"unblocked_by"`
	}
	// SessionUnblocked says that the cause is gone.
	SessionUnblocked struct {
		Cause BlockCause `json:"cause"`
	}

	// PromptAdmitted is the acceptance of a prompt (ADM-1).
	PromptAdmitted struct {
		PromptID string   `json:"prompt_id"`
		Delivery Delivery `json:"delivery"`
		Text     Text     `json:"text"`
	}
	// PromptPromoted puts a prompt into the agent's history. It is the user's message.
	PromptPromoted struct {
		PromptID  string   `json:"prompt_id"`
		Delivery  Delivery `json:"delivery"`
		MessageID string   `json:"message_id"`
		TurnID    string   `json:"turn_id"`
		Begins    bool     `json:"begins,omitempty"` // a steer that opened its turn, since none was open
	}
	// PromptWithdrawn takes an admitted prompt back (ADM-8).
	PromptWithdrawn struct {
		PromptID string `json:"prompt_id"`
	}

	// TurnStarted opens a turn. At most one is open in a session.
	TurnStarted struct {
		TurnID    string    `json:"turn_id"`
		Cause     TurnCause `json:"cause"`
		Continues *string   `json:"continues"`
	}
	// TurnEnded closes it.
	TurnEnded struct {
		TurnID  string  `json:"turn_id"`
		Outcome Outcome `json:"outcome"`
		Reason  string  `json:"reason,omitempty"`
		Limit   string  `json:"limit,omitempty"`
		Done    bool    `json:"done,omitempty"` // of one that was stopped: nothing of it was left when the stop took effect
	}
	// ContinuationRequested is a person's *continue* (PRO-6).
	ContinuationRequested struct {
		Limits *Limits `json:"limits"`
		Anew   bool    `json:"anew,omitempty"` // in a new conversation of the agent, which is told a summary first
	}
	// Step names one step of a turn.
	Step struct {
		Key   string `json:"key"`
		Name  string `json:"name"`
		Index int    `json:"index"`
		Of    int    `json:"of"`
	}
	// StepStarted begins a step.
	StepStarted struct {
		TurnID    string  `json:"turn_id"`
		MessageID *string `json:"message_id"`
		Step      Step    `json:"step"`
	}
	// PlanItem is one line of the agent's plan; for the eye only.
	PlanItem struct {
		Key   string    `json:"key"`
		Title string    `json:"title"`
		State PlanState `json:"state"`
		Found Verdict   `json:"found,omitempty"` // what a person found of an unknown one
	}
	// PlanUpdated carries the whole plan each time.
	PlanUpdated struct {
		Plan []PlanItem `json:"plan"`
	}
	// MessageDelta is a new piece of a message of the agent.
	MessageDelta struct {
		MessageID string `json:"message_id"`
		Role      string `json:"role"`
		Part      Part   `json:"part"`
		Text      Text   `json:"text"`

		Outside Outside `json:"outside,omitempty"` // of an agent that had nothing to do: it is no answer
	}
	// MessageCompleted is the whole message. What the server tells an agent is in the
	// commit of the attempt that it goes out with, before it, word for word as it is sent.
	MessageCompleted struct {
		MessageID string `json:"message_id"`
		Role      string `json:"role"`
		Part      Part   `json:"part"`
		Text      Text   `json:"text"`
		Told      Told   `json:"told,omitempty"`

		Outside Outside `json:"outside,omitempty"` // of an agent that had nothing to do: it is no answer
	}

	// AttemptPrepared to AttemptResolved are the facts of one provider request (ATT-1).
	AttemptPrepared struct {
		AttemptID     string `json:"attempt_id"`
		TurnID        string `json:"turn_id"`
		Model         string `json:"model"`
		RequestSHA256 string `json:"request_sha256"`
		CutoffSeq     int64  `json:"cutoff_seq"`
	}
	// AttemptDispatched is committed before the first byte leaves.
	AttemptDispatched struct {
		AttemptID string `json:"attempt_id"`
		ProcessID string `json:"process_id,omitempty"` // of the agent that it is sent to
		Request   int64  `json:"request,omitempty"`    // as which the process answers it
	}
	// AttemptReceiving is the first byte back.
	AttemptReceiving struct {
		AttemptID   string `json:"attempt_id"`
		ProviderRef string `json:"provider_ref"`
	}
	// AttemptSettled has the outcome and what it used.
	AttemptSettled struct {
		AttemptID string `json:"attempt_id"`
		Outcome   string `json:"outcome"`
		Error     string `json:"error,omitempty"` // what the agent answered instead, in its words, or UnreadAnswer
		Usage     Usage  `json:"usage"`
	}
	// Retry says when a failed attempt is tried again.
	Retry struct {
		N  int   `json:"n"`
		Of int   `json:"of"`
		At int64 `json:"at"`
	}
	// AttemptFailed means that the provider surely didn't process it.
	AttemptFailed struct {
		AttemptID string `json:"attempt_id"`
		Error     string `json:"error"`
		Retry     *Retry `json:"retry"`
	}
	// AttemptUnknown means that nobody recorded how it ended.
	AttemptUnknown struct {
		AttemptID     string `json:"attempt_id"`
		ReceivedBytes int64  `json:"received_bytes,omitempty"` // 0: nobody counted
	}
	// AttemptResolved is a person's word on an unknown attempt (ATT-6).
	AttemptResolved struct {
		AttemptID string         `json:"attempt_id"`
		Outcome   AttemptVerdict `json:"outcome"`
		By        string         `json:"by"`
		Evidence  string         `json:"evidence,omitempty"` // what they knew of it, if they said
		Then      Then           `json:"then"`
	}

	// CallProposed is the intent, before permission and dispatch (CAL-1).
	CallProposed struct {
		CallID      string          `json:"call_id"`
		TurnID      string          `json:"turn_id"`
		Key         string          `json:"key"`
		Tool        string          `json:"tool"`
		Input       json.RawMessage `json:"input"`
		InputSHA256 string          `json:"input_sha256"`
		Effect      Effect          `json:"effect"`
		AttemptID   *string         `json:"attempt_id"`
	}
	// AllowedBy says which rule or person allowed a call.
	AllowedBy struct {
		Type AllowedByType `json:"type"`
		ID   string        `json:"id"`
		Text string        `json:"text"`
		// Unseen: an agent's own call that it asked nobody for, and of which nobody saw
		// whether or when it began. It may have at any time since it was proposed.
		Unseen bool `json:"unseen,omitempty"`
	}
	// Process are the facts by which a call's processes are found again (COO-7).
	Process struct {
		Host         string `json:"host"`
		BootID       string `json:"boot_id"`
		PIDs         string `json:"pid_namespace,omitempty"`
		PID          int    `json:"pid"`
		PGID         int    `json:"pgid"`
		StartedTicks uint64 `json:"started_ticks"`
	}
	// CallDispatched is committed before the call does anything.
	CallDispatched struct {
		CallID    string    `json:"call_id"`
		N         int       `json:"n"`
		AllowedBy AllowedBy `json:"allowed_by"`
		Process   *Process  `json:"process,omitempty"`
		Since     int64     `json:"since,omitempty"` // when the agent was heard to say that it runs, if that is well before this event
		Heard     time.Time `json:"-"`               // the same by the clock of whoever heard it, of which the store makes Since; zero: just now
	}
	// CallAdopted says that a dispatched call was found still running when its
	// execution was lost: nothing of it is unknown, and the next claim follows it
	// to its end (REC-10). Only workers of the state folder named may take that
	// claim, since what the call runs under belongs to its host. No folder: it is
	// let go, for nobody follows it any more, and it may be run again (CAL-4).
	CallAdopted struct {
		CallID        string `json:"call_id"`
		Since         int64  `json:"since"` // when it was dispatched
		StateFolderID string `json:"state_folder_id"`
	}
	// CallDescribed is what an agent says of a call of its own once it knows more. It takes
	// the place of the input, unless the call was dispatched before, and let run by somebody:
	// that stays what it was.
	CallDescribed struct {
		CallID      string          `json:"call_id"`
		Input       json.RawMessage `json:"input"`
		InputSHA256 string          `json:"input_sha256"`
		Effect      Effect          `json:"effect,omitempty"` // if it is stricter than it was, or read where nothing was known of the call before it ran
		Late        Late            `json:"late,omitempty"`
	}
	// CallContradicted is a late description that says something else than what was asked
	// or let run.
	CallContradicted CallDescribed
	// CallOutput is a piece of a call's output. Offset counts over both streams.
	CallOutput struct {
		CallID  string `json:"call_id"`
		Stream  string `json:"stream"`
		Offset  int64  `json:"offset"`
		Text    Text   `json:"text"`
		Dropped int64  `json:"dropped,omitempty"` // bytes lost just before this piece
	}
	// CallSettled is the recorded outcome of a call.
	CallSettled struct {
		CallID       string    `json:"call_id"`
		State        CallState `json:"state"`
		ExitCode     *int      `json:"exit_code"`
		Signal       string    `json:"signal,omitempty"`
		Reason       string    `json:"reason,omitempty"`
		OutputBytes  int64     `json:"output_bytes"`
		DroppedBytes int64     `json:"dropped_bytes"`

		// When its command began and ended, by its own record and the clock of its host; 0: no record says it.
		StartedAt int64 `json:"started_at,omitempty"`
		EndedAt   int64 `json:"ended_at,omitempty"`
	}
	// Evidence is something that was seen of a call; it proves nothing by itself.
	Evidence struct {
		Type string `json:"type"` // output, process, exit_record, person
		Text string `json:"text"`
	}
	// CallUnknown says that a call was dispatched and that its outcome isn't recorded.
	CallUnknown struct {
		CallID   string     `json:"call_id"`
		Since    int64      `json:"since"`
		Evidence []Evidence `json:"evidence"`
	}
	// CallEvidence is late evidence beside an unknown call.
	CallEvidence struct {
		CallID   string   `json:"call_id"`
		Evidence Evidence `json:"evidence"`
	}
	// CallResolved is a person's word on an unknown call (CAL-6).
	CallResolved struct {
		CallID   string  `json:"call_id"`
		Outcome  Verdict `json:"outcome"`
		By       string  `json:"by"`
		Evidence string  `json:"evidence"`
		Then     Then    `json:"then"`
	}

	// ToolRef names the call that a request belongs to.
	ToolRef struct {
		MessageID *string `json:"message_id"`
		CallID    string  `json:"call_id"`
	}
	// PermissionAsked is a request (PER-1).
	PermissionAsked struct {
		ID         string          `json:"id"`
		Tool       ToolRef         `json:"tool"`
		Permission string          `json:"permission"`
		Resources  []string        `json:"resources"`
		Always     []string        `json:"always"`
		Digest     string          `json:"digest"`
		Metadata   json.RawMessage `json:"metadata"`
	}
	// PermissionReplied is a person's decision (PER-2).
	PermissionReplied struct {
		ID       string   `json:"id"`
		Reply    Reply    `json:"reply"`
		Message  string   `json:"message"`
		By       string   `json:"by"`
		Scope    *string  `json:"scope"`
		Patterns []string `json:"patterns"`
		Others   int      `json:"others,omitempty"` // requests of the same call that waited still: it runs when all are allowed
	}
	// PermissionCancelled says that a request can't be answered any more (PER-6).
	PermissionCancelled struct {
		ID     string `json:"id"`
		Reason string `json:"reason"`
		Stops  bool   `json:"stops,omitempty"` // a stop at the next safe point has reached one: the turn is stopped at once
	}

	// InterruptRequested asks for the end of the open turn (COO-4).
	InterruptRequested struct {
		By       string        `json:"by"`
		Mode     InterruptMode `json:"mode"`
		Reason   string        `json:"reason,omitempty"`    // of the turn's end, if that isn't that somebody stops it: ReasonRejected
		PromptID string        `json:"prompt_id,omitempty"` // that was admitted with it, to be delivered once the turn has ended (PRO-5)
	}
	// RecoveredCall is what recovery made of a call.
	RecoveredCall struct {
		CallID string    `json:"call_id"`
		Became CallState `json:"became"`
	}
	// RecoveredAttempt is what recovery made of an attempt.
	RecoveredAttempt struct {
		AttemptID string       `json:"attempt_id"`
		Became    AttemptState `json:"became"`
		Ended     bool         `json:"ended,omitempty"` // with adopted: its agent's process is gone, and what that has left is read on
	}
	// StepRecovered is the one event of a recovered execution (REC-4).
	StepRecovered struct {
		ExecutionID           string             `json:"execution_id"`
		Phase                 Phase              `json:"phase"`
		AssistantMessageID    *string            `json:"assistant_message_id"`
		RecoveryMessageID     string             `json:"recovery_message_id"`
		ContinuationMessageID string             `json:"continuation_message_id"`
		Calls                 []RecoveredCall    `json:"calls"`
		Attempts              []RecoveredAttempt `json:"attempts"`
		Failed                bool               `json:"failed,omitempty"`   // its server was there, and could not go on with it
		AliveAt               int64              `json:"alive_at,omitempty"` // when its worker last said that it lived; 0: nobody noted it
	}
	// LimitReached names the bound that ended a turn (COO-5).
	LimitReached struct {
		Limit string `json:"limit"`
		Value int64  `json:"value"`
	}
)

// Kind of each body.
func (*SessionCreated) Kind() Kind        { return KindSessionCreated }
func (*SessionRenamed) Kind() Kind        { return KindSessionRenamed }
func (*SessionArchived) Kind() Kind       { return KindSessionArchived }
func (*SessionBlocked) Kind() Kind        { return KindSessionBlocked }
func (*SessionUnblocked) Kind() Kind      { return KindSessionUnblocked }
func (*PromptAdmitted) Kind() Kind        { return KindPromptAdmitted }
func (*PromptPromoted) Kind() Kind        { return KindPromptPromoted }
func (*PromptWithdrawn) Kind() Kind       { return KindPromptWithdrawn }
func (*TurnStarted) Kind() Kind           { return KindTurnStarted }
func (*TurnEnded) Kind() Kind             { return KindTurnEnded }
func (*ContinuationRequested) Kind() Kind { return KindContinuation }
func (*StepStarted) Kind() Kind           { return KindStepStarted }
func (*PlanUpdated) Kind() Kind           { return KindPlanUpdated }
func (*MessageDelta) Kind() Kind          { return KindMessageDelta }
func (*MessageCompleted) Kind() Kind      { return KindMessageCompleted }
func (*AttemptPrepared) Kind() Kind       { return KindAttemptPrepared }
func (*AttemptDispatched) Kind() Kind     { return KindAttemptDispatched }
func (*AttemptReceiving) Kind() Kind      { return KindAttemptReceiving }
func (*AttemptSettled) Kind() Kind        { return KindAttemptSettled }
func (*AttemptFailed) Kind() Kind         { return KindAttemptFailed }
func (*AttemptUnknown) Kind() Kind        { return KindAttemptUnknown }
func (*AttemptResolved) Kind() Kind       { return KindAttemptResolved }
func (*CallProposed) Kind() Kind          { return KindCallProposed }
func (*CallDescribed) Kind() Kind         { return KindCallDescribed }
func (*CallContradicted) Kind() Kind      { return KindCallContradicted }
func (*CallDispatched) Kind() Kind        { return KindCallDispatched }
func (*CallAdopted) Kind() Kind           { return KindCallAdopted }
func (*CallOutput) Kind() Kind            { return KindCallOutput }
func (*CallSettled) Kind() Kind           { return KindCallSettled }
func (*CallUnknown) Kind() Kind           { return KindCallUnknown }
func (*CallEvidence) Kind() Kind          { return KindCallEvidence }
func (*CallResolved) Kind() Kind          { return KindCallResolved }
func (*PermissionAsked) Kind() Kind       { return KindPermissionAsked }
func (*PermissionReplied) Kind() Kind     { return KindPermissionReplied }
func (*PermissionCancelled) Kind() Kind   { return KindPermissionCancelled }
func (*InterruptRequested) Kind() Kind    { return KindInterruptRequested }
func (*StepRecovered) Kind() Kind         { return KindStepRecovered }
func (*LimitReached) Kind() Kind          { return KindLimitReached }

// Texts that may become blobs.
func (b *PromptAdmitted) Texts() []*Text   { return []*Text{&b.Text} }
func (b *MessageDelta) Texts() []*Text     { return []*Text{&b.Text} }
func (b *MessageCompleted) Texts() []*Text { return []*Text{&b.Text} }
func (b *CallOutput) Texts() []*Text       { return []*Text{&b.Text} }
