package journal

import "fmt"

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
	// AgentLost says that the session goes on without a process of its agent's of which
	// nobody knows whether it runs: no server of the state folder that keeps it answers
	// (LEA-12). Its end is an agent.ended, if one of those comes back.
	AgentLost struct {
		ProcessID string   `json:"process_id"`
		Host      string   `json:"host"` // where it ran; "": nobody knows
		PID       int      `json:"pid"`
		Since     int64    `json:"since"`              // when it began
		Attempts  []string `json:"attempts,omitempty"` // that it may still work on
	}
	// AgentEvent is what an agent said and this build doesn't know, or did outside of turns.
	AgentEvent struct {
		ProcessID string `json:"process_id"`
		Raw       Text   `json:"raw"`
		Unread    bool   `json:"unread,omitempty"` // it is no message of the protocol, and so may have been any: an answer, too

		Malformed string `json:"malformed,omitempty"` // it asked whether it may in another form than the protocol's, and was refused: what is wrong

		Ends AgentFault `json:"ends,omitempty"` // why the process is to be ended because of it

		Outside   Outside `json:"outside,omitempty"`    // it belongs to no turn: where it was said
		Refused   bool    `json:"refused,omitempty"`    // with Outside: it asked whether it may, and was refused
		AfterCall string  `json:"after_call,omitempty"` // it is said of this call, which had ended: that stays as it is recorded
		More      bool    `json:"more,omitempty"`       // with Outside, or AfterCall: what else of the kind comes for now isn't kept
	}
)

// Outside says why what an agent says or does belongs to no turn; "": it does.
type Outside string

// The whys.
const (
	OutsideTurn    Outside = "turn"    // it was told nothing that it hadn't answered: it had nothing to do
	OutsideSession Outside = "session" // it was in another session of its own
)

// AgentFault says why an agent's process can't be worked with any more.
type AgentFault string

// The faults.
const (
	FaultHiddenID     AgentFault = "hidden_id"    // it asked what can't be answered, since a secret stands in the request's id
	FaultUnkeptID     AgentFault = "unkept_id"    // the same, since the request's id has characters that can't be kept
	FaultUnrecordable AgentFault = "unrecordable" // what it said doesn't fit the journal
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

// Kind is agent.lost.
func (*AgentLost) Kind() Kind { return KindAgentLost }

// Kind is agent.event.
func (*AgentEvent) Kind() Kind { return KindAgentEvent }

// Evidence is what is known of a call that ran in such a process (LEA-12).
func (b *AgentLost) Evidence() Evidence {
	where := "on another host"
	if b.Host != "" {
		where = fmt.Sprintf("on %s as pid %d since %s", b.Host, b.PID, TimeInWords(b.Since))
	}
	return Evidence{Type: EvidenceProcess, Text: "The agent's process ran " + where + ". It may still be running there."}
}

// Texts has what came.
func (b *AgentEvent) Texts() []*Text { return []*Text{&b.Raw} }
