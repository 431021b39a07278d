package journal

// Bodies of an agent's process and of its own session.
type (
	// AgentStarted says that a process of the session's agent is about to begin, with
	// the facts by which it is found again (COO-7). It is committed before it does.
	AgentStarted struct {
		ProcessID     string          `json:"process_id"`
		StateFolderID string          `json:"state_folder_id"` // that keeps it
		Process       *Process        `json:"process"`
		Credentials   []CredentialUse `json:"credentials,omitempty"` // that it has in its environment
	}
	// CredentialUse names a credential, and by its id which of its values: another value
	// has another id. The value itself is never in the journal (OWN-3).
	CredentialUse struct {
		Name string `json:"name"`
		ID   string `json:"id"`
	}
	// AgentOpened is what an agent's process has said of itself, and the agent's own
	// session, as soon as it is learnt (REC-12).
	AgentOpened struct {
		ProcessID      string       `json:"process_id"`
		AgentSessionID string       `json:"agent_session_id"`
		How            AgentOpening `json:"how"`
		Name           string       `json:"name"`
		Version        string       `json:"version"`
		Resumes        bool         `json:"resumes"` // it can go on with that session in another process
	}
	// AgentForgotten says that the agent can't go on with its own session. Nothing was
	// sent, and its turn fails; a person may have it start anew.
	AgentForgotten struct {
		ProcessID string      `json:"process_id"`
		Reason    string      `json:"reason"`
		How       AgentMemory `json:"how"`
		MayPass   bool        `json:"may_pass,omitempty"` // it didn't say that this is for good: the same can be tried again
	}
	// AgentEnded says how an agent's process ended.
	AgentEnded struct {
		ProcessID string `json:"process_id"`
		ExitCode  *int   `json:"exit_code"`
		Signal    string `json:"signal"`
		Reason    string `json:"reason"`
	}
	// AgentEvent is what an agent said and this build doesn't know.
	AgentEvent struct {
		ProcessID string `json:"process_id"`
		Raw       Text   `json:"raw"`
	}
)

// AgentOpening says how a process came to the agent's own session.
type AgentOpening string

// The ways.
const (
	AgentNew     AgentOpening = "new"
	AgentResumed AgentOpening = "resumed" // the agent goes on with it
	AgentLoaded  AgentOpening = "loaded"  // the same; it told its history again, which is no part of this journal
)

// AgentMemory says how an agent was asked to go on with its own session.
type AgentMemory string

// The ways.
const (
	AskedToResume AgentMemory = "resume"
	AskedToLoad   AgentMemory = "load"
	CannotBeAsked AgentMemory = "none" // it goes on in the process that began it only
)

// Kind is agent.started.
func (*AgentStarted) Kind() Kind { return KindAgentStarted }

// Kind is agent.opened.
func (*AgentOpened) Kind() Kind { return KindAgentOpened }

// Kind is agent.forgotten.
func (*AgentForgotten) Kind() Kind { return KindAgentForgotten }

// Kind is agent.ended.
func (*AgentEnded) Kind() Kind { return KindAgentEnded }

// Kind is agent.event.
func (*AgentEvent) Kind() Kind { return KindAgentEvent }

// Texts has what came.
func (b *AgentEvent) Texts() []*Text { return []*Text{&b.Raw} }
