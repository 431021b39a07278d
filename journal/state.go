package journal

import (
	"cmp"
	"slices"
)

// State is what the journal of a session says about it, folded from its events
// alone: no claim, no clock. The store keeps it beside the session; verify
// rebuilds it and compares (JRN-4).
type State struct {
	Title     string `json:"title"`
	Agent     string `json:"agent"`
	Workspace string `json:"workspace"`
	CreatedAt int64  `json:"created_at"`
	UpdatedAt int64  `json:"-"` // of the last event; the store has a column for it

	Archived bool       `json:"archived,omitempty"`
	Held     bool       `json:"held,omitempty"` // PRO-5
	Blocked  *BlockInfo `json:"blocked,omitempty"`

	Turn      *Turn             `json:"turn,omitempty"`      // the open one, or the last
	ChainSeq  int64             `json:"chain_seq,omitempty"` // where the first turn of the chain of continuations starts
	Interrupt *PendingInterrupt `json:"interrupt,omitempty"`
	Asked     *Limits           `json:"asked_limits,omitempty"` // for the session, at its start
	Limits    *Limits           `json:"limits,omitempty"`       // raised by the last continuation
	Plan      []PlanItem        `json:"plan,omitempty"`

	Admitted        []Waiting     `json:"admitted,omitempty"` // in the order of admission
	Calls           []OpenCall    `json:"calls,omitempty"`    // proposed, waiting or dispatched
	Pending         []string      `json:"pending,omitempty"`  // requests
	UnknownCalls    []string      `json:"unknown_calls,omitempty"`
	Attempts        []string      `json:"attempts,omitempty"` // in flight
	UnknownAttempts []string      `json:"unknown_attempts,omitempty"`
	Process         *AgentProcess `json:"agent_process,omitempty"` // nil: none runs, or none is needed
	Lost            []AgentLost   `json:"lost_agents,omitempty"`   // processes that may still run, the newest last (LEA-12)
	AgentSession    string        `json:"agent_session,omitempty"` // the agent's own id of it (REC-12)
	Forgotten       *Forgotten    `json:"forgotten,omitempty"`
	AnewSeq         int64         `json:"anew_seq,omitempty"` // a new session of the agent's is told first what came before this; 0: it knows
	Retry           *Retry        `json:"retry,omitempty"`
	Recoveries      int           `json:"recoveries,omitempty"` // of the open turn since its last settled step, or of its opening (REC-11)
	LatestAssistant string        `json:"latest_assistant,omitempty"`
	Usage           Usage         `json:"usage"`

	Options     []OptionNow `json:"agent_options,omitempty"` // that the agent offers
	OptionsSeq  int64       `json:"options_seq,omitempty"`   // of the agent.options that has all of them; 0: there is none
	CommandsSeq int64       `json:"commands_seq,omitempty"`  // of the last agent.commands
	Wanted      []Wish      `json:"settings,omitempty"`      // by people, from the next prompt on
	Context     *ContextUse `json:"context,omitempty"`       // nil: the agent hasn't told
	Cost        *AgentCost  `json:"agent_cost,omitempty"`

	Base       ExecutionState `json:"base"`
	BaseSince  int64          `json:"base_since"`
	RunnableAt int64          `json:"runnable_at,omitempty"` // since when there is work, or when it will be; 0: none
}

// BlockInfo says what parks the session.
type BlockInfo struct {
	Cause       BlockCause `json:"cause"`
	Detail      string     `json:"detail"`
	UnblockedBy string     `json:"unblocked_by"`
}

// Forgotten says that the agent can't go on with its own session: until its owner has
// it start anew, or try the same again, nothing is promoted.
type Forgotten struct {
	Reason  string      `json:"reason"`
	How     AgentMemory `json:"how"`
	MayPass bool        `json:"may_pass,omitempty"`
}

// Turn is one turn as far as the journal tells.
type Turn struct {
	ID         string    `json:"id"`
	Open       bool      `json:"open"`
	Cause      TurnCause `json:"cause"`
	Continues  string    `json:"continues,omitempty"`
	StartedSeq int64     `json:"started_seq"`
	StartedAt  int64     `json:"started_at"`
	EndedSeq   int64     `json:"ended_seq,omitempty"`
	EndedAt    int64     `json:"ended_at,omitempty"`
	EndedBy    string    `json:"ended_by,omitempty"`
	Outcome    Outcome   `json:"outcome,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	Limit      string    `json:"limit,omitempty"`
	Done       bool      `json:"done,omitempty"` // it was stopped when nothing of it was left, or, while it is open, what it continues was
	Number     int       `json:"number"`
	Sent       []string  `json:"sent,omitempty"` // prompts that were submitted to be delivered once it is stopped
}

// PendingInterrupt is one that hasn't been carried out.
type PendingInterrupt struct {
	By     string        `json:"by"`
	Mode   InterruptMode `json:"mode"`
	Seq    int64         `json:"seq"`
	At     int64         `json:"at"`
	Reason string        `json:"reason,omitempty"` // of the turn's end; "": ReasonInterrupted

	Reached bool `json:"reached,omitempty"` // it was to wait for a safe point, and that has come
}

// AtOnce reports whether the turn is stopped at once: so it was asked for, or the safe
// point that the stop was to wait for has come.
func (i *PendingInterrupt) AtOnce() bool {
	return i != nil && (i.Mode == InterruptNow || i.Reached)
}

// Why a turn ended stopped.
const (
	ReasonInterrupted = "interrupted"
	ReasonRejected    = "rejected" // a person rejected a request, without a message (PER-3)
)

// Stopped is the end of a turn that a person stops.
func (s *State) Stopped() TurnEnded {
	end := TurnEnded{Outcome: Stopped, Reason: ReasonInterrupted}
	if s.Interrupt != nil && s.Interrupt.Reason != "" {
		end.Reason = s.Interrupt.Reason
	}
	return end
}

// Waiting is an admitted prompt.
type Waiting struct {
	ID       string   `json:"id"`
	Delivery Delivery `json:"delivery"`
}

// Steers reports whether the prompt joins the open turn.
func (w Waiting) Steers() bool { return w.Delivery == Steer }

// OpenCall is a call with something ahead of it.
type OpenCall struct {
	ID      string    `json:"id"`
	Effect  Effect    `json:"effect"`
	State   CallState `json:"state"`
	Attempt string    `json:"attempt,omitempty"` // that asked for it
	Adopted string    `json:"adopted,omitempty"` // the state folder whose workers follow it (REC-10)

	// Of an adopted call, for people: when it was dispatched, and when it was found still running.
	Since     int64 `json:"since,omitempty"`
	AdoptedAt int64 `json:"adopted_at,omitempty"`
}

func (c OpenCall) isDispatched() bool { return c.State == CallIsDispatched }

func (c OpenCall) isAdopted() bool { return c.Adopted != "" }

// AgentProcess is a process of the session's agent that hasn't ended as far as is known.
type AgentProcess struct {
	ID          string   `json:"id"`
	Folder      string   `json:"folder"`                // the state folder that keeps it
	Opened      bool     `json:"opened,omitempty"`      // the agent's own session is open in it
	OpensSince  int64    `json:"opens_since,omitempty"` // when it was started, until that is; 0: it is, or was by an older build
	Resumes     bool     `json:"resumes,omitempty"`     // it can go on with that session in another process
	Credentials []string `json:"credentials,omitempty"` // ids of those that it was started with, in the order of their names
	AdoptedAt   int64    `json:"adopted_at,omitempty"`  // its attempt was in flight when the execution was lost, and is followed again since then (REC-10)

	Fault   AgentFault      `json:"fault,omitempty"`   // why it is to be ended
	Setting *PendingSetting `json:"setting,omitempty"` // nil: no answer to a setting is waited for
}

func (p *AgentProcess) isAdopted() bool { return p != nil && p.AdoptedAt > 0 }

// TurnOpen reports whether a turn is open.
func (s *State) TurnOpen() bool { return s.Turn != nil && s.Turn.Open }

// Unknowns counts what a person must reconcile (CAL-6).
func (s *State) Unknowns() int { return len(s.UnknownCalls) + len(s.UnknownAttempts) }

// Steers reports whether an admitted steer waits.
func (s *State) Steers() bool {
	return slices.ContainsFunc(s.Admitted, Waiting.Steers)
}

// Sends reports whether a prompt waits that the turn was, or is to be, stopped for:
// its end holds nothing, and the next turn begins with the steers (PRO-5).
func (s *State) Sends() bool {
	return s.Turn != nil && slices.ContainsFunc(s.Admitted, func(w Waiting) bool { return slices.Contains(s.Turn.Sent, w.ID) })
}

// InFlight reports whether something is dispatched and not settled.
func (s *State) InFlight() bool {
	return len(s.Attempts) > 0 || slices.ContainsFunc(s.Calls, OpenCall.isDispatched)
}

// acts reports whether something that is in flight does anything just now: an agent
// that waits for a decision doesn't, although its attempt goes on.
func (s *State) acts() bool {
	return (len(s.Attempts) > 0 && len(s.Pending) == 0) || slices.ContainsFunc(s.Calls, OpenCall.isDispatched)
}

// OnlyWaits reports whether nothing of the open turn runs, and a person is asked: that is
// a safe point (COO-4).
func (s *State) OnlyWaits() bool { return s.TurnOpen() && len(s.Pending) > 0 && !s.acts() }

// Adopted are the calls that still run although the execution which dispatched
// them is lost, and that aren't settled.
func (s *State) Adopted() []OpenCall {
	return slices.DeleteFunc(slices.Clone(s.Calls), func(c OpenCall) bool { return !c.isAdopted() })
}

// Adopts reports whether there are any, or an attempt is adopted with its agent's process.
func (s *State) Adopts() bool {
	return s.Process.isAdopted() || slices.ContainsFunc(s.Calls, OpenCall.isAdopted)
}

// OfAttempt reports whether a call is one of the agent's own, which ends with the attempt in flight.
func (s *State) OfAttempt(c OpenCall) bool {
	return c.Attempt != "" && slices.Contains(s.Attempts, c.Attempt)
}

// TurnLimits are the bounds of the open turn.
func (s *State) TurnLimits() Limits { return DefaultLimits().Raise(s.Asked).Raise(s.Limits) }

// work says whether the session has work (COO-2) and since when, or from when on.
// It knows nothing of claims. at is 0 exactly if there is none.
func (s *State) work(now int64) (at int64) {
	switch {
	case s.TurnOpen() && s.Interrupt != nil, s.Adopts():
		return now // (c), (d)
	case s.Archived, s.Held, s.Blocked != nil, s.Unknowns() > 0:
		return 0
	case s.TurnOpen() && len(s.Pending) > 0:
		return 0
	case s.TurnOpen() && s.Retry != nil:
		return s.Retry.At
	case s.TurnOpen(), len(s.Admitted) > 0:
		return now // (a), (b)
	}
	return 0
}

// HasWork reports whether there is work at the time now. Only a retry waits for
// its time: a clock that was set back must not make other work wait for it.
func (s *State) HasWork(now int64) bool {
	return s.RunnableAt > 0 && (s.Retry == nil || s.RunnableAt <= now || s.Adopts())
}

func (s *State) base() ExecutionState {
	switch {
	case s.Archived:
		return StateClosed
	case s.Unknowns() > 0:
		return StateUncertain
	case s.TurnOpen() && s.Interrupt != nil:
		return StateStopping
	case s.Adopts() && s.acts(): // its command runs, whether a worker is there or not
		return StateRunning
	case s.TurnOpen() && s.Retry != nil:
		return StateRetrying
	case len(s.Pending) > 0:
		return StateWaiting
	case s.Blocked != nil:
		return StateBlocked
	case s.RunnableAt > 0:
		return StateQueued
	case s.Turn != nil:
		return outcomeState(s.Turn.Outcome)
	}
	return StateIdle
}

func outcomeState(o Outcome) ExecutionState {
	switch o {
	case Completed:
		return StateReady
	case Failed:
		return StateFailed
	case LimitReach:
		return StateLimitReached
	default:
		return StateStopped
	}
}

// Execution is the reading that people see: the first state of semantics §11
// that holds, from the journal's state and the claim (nil: none).
func (s *State) Execution(c *Claim, now int64) (state ExecutionState, since int64) {
	switch s.Base {
	case StateClosed, StateUncertain, StateStopping:
		return s.Base, s.BaseSince
	default: // the claim, if there is one, tells more
	}
	switch {
	case c == nil:
		return s.Base, s.BaseSince
	case c.Unconfirmed(now):
		return StateUnconfirmed, cmp.Or(c.AliveAt, c.ExpiresAt-c.LeaseMS) // a start ends the lease of who came before
	case s.Base == StateWaiting && !s.acts():
		return s.Base, s.BaseSince
	}
	return StateRunning, c.ClaimedAt
}

// Needs is what the session needs of its owner.
func (s *State) Needs() Needs {
	switch s.Base {
	case StateUncertain:
		return NeedsReconcile
	case StateWaiting:
		return NeedsDecision
	case StateBlocked:
		return NeedsBlocked
	case StateFailed, StateLimitReached, StateStopped:
		return s.needsAtRest()
	case StateReady:
		return NeedsReview
	case StateStopping: // at the next safe point: until then what is asked can be answered
		switch {
		case len(s.Pending) > 0 && !s.Interrupt.AtOnce():
			return NeedsDecision
		case s.blockedBy(BlockProcess), s.blockedBy(BlockShim):
			return NeedsBlocked
		}
	case StateRunning: // something adopted hides what else waits
		switch {
		case len(s.Pending) > 0:
			return NeedsDecision
		case s.Blocked != nil:
			return NeedsBlocked
		}
	default:
	}
	return NeedsNone
}

// needsAtRest is Needs where the last turn ended before its work was done. What was
// asked and waits behind it goes nowhere without its owner.
func (s *State) needsAtRest() Needs {
	switch {
	case s.HoldsMessages():
		return NeedsBlocked
	case s.Base == StateStopped && s.Turn.Outcome != Interrupted: // its owner stopped it, and knows
		return NeedsNone
	}
	return NeedsReview
}

// HoldsMessages reports whether something that was asked is kept back until the owner
// continues (PRO-5): messages, or what an agent that has forgotten was not told.
func (s *State) HoldsMessages() bool {
	return s.Held && (len(s.Admitted) > 0 || s.Forgotten != nil)
}
