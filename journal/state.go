package journal

import "slices"

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
	AgentSession    string        `json:"agent_session,omitempty"` // the agent's own id of it (REC-12)
	Retry           *Retry        `json:"retry,omitempty"`
	Recoveries      int           `json:"recoveries,omitempty"` // of the open turn since its last settled step, or of its opening (REC-11)
	LatestAssistant string        `json:"latest_assistant,omitempty"`
	Usage           Usage         `json:"usage"`

	Options     []OptionNow `json:"agent_options,omitempty"` // that the agent offers
	OptionsSeq  int64       `json:"options_seq,omitempty"`   // of the agent.options that has all of them; 0: there is none
	CommandsSeq int64       `json:"commands_seq,omitempty"`  // of the last agent.commands
	Wanted      []Setting   `json:"settings,omitempty"`      // by people, from the next prompt on
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
	Number     int       `json:"number"`
}

// PendingInterrupt is one that hasn't been carried out.
type PendingInterrupt struct {
	By   string        `json:"by"`
	Mode InterruptMode `json:"mode"`
	Seq  int64         `json:"seq"`
	At   int64         `json:"at"`
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
	ID        string `json:"id"`
	Folder    string `json:"folder"`               // the state folder that keeps it
	Opened    bool   `json:"opened,omitempty"`     // the agent's own session is open in it
	Resumes   bool   `json:"resumes,omitempty"`    // it can go on with that session in another process
	AdoptedAt int64  `json:"adopted_at,omitempty"` // its attempt was in flight when the execution was lost, and is followed again since then (REC-10)

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

// InFlight reports whether something is dispatched and not settled.
func (s *State) InFlight() bool {
	return len(s.Attempts) > 0 || slices.ContainsFunc(s.Calls, OpenCall.isDispatched)
}

// acts reports whether something that is in flight does anything just now: an agent
// that waits for a decision doesn't, although its attempt goes on.
func (s *State) acts() bool {
	return (len(s.Attempts) > 0 && len(s.Pending) == 0) || slices.ContainsFunc(s.Calls, OpenCall.isDispatched)
}

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
		return StateUnconfirmed, c.ExpiresAt - c.LeaseMS
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
	case StateReady, StateFailed, StateLimitReached:
		return NeedsReview
	case StateRunning: // something adopted hides what else waits
		switch {
		case len(s.Pending) > 0:
			return NeedsDecision
		case s.Blocked != nil:
			return NeedsBlocked
		}
	case StateStopped:
		if s.Turn.Outcome == Interrupted { // nobody asked for it, so somebody must be told
			return NeedsReview
		}
	default:
	}
	return NeedsNone
}

// Apply folds one event. It answers conflict if the event can't follow what the
// journal holds (a second open turn, the end of a turn that isn't open): the
// caller then writes nothing.
func (s *State) Apply(ev *Event, body Body) error {
	if err := s.applyTurn(ev, body); err != nil {
		return err
	}
	s.applyWork(body)
	s.applyRest(ev, body)
	s.applyOptions(ev, body)
	s.UpdatedAt = ev.Time
	switch at := s.work(ev.Time); {
	case at == 0 || at > ev.Time:
		s.RunnableAt = at
	case s.RunnableAt == 0 || s.RunnableAt > at:
		s.RunnableAt = at
	}
	if b := s.base(); b != s.Base {
		s.Base, s.BaseSince = b, ev.Time
	}
	return nil
}

func errTurn(format string, args ...any) error {
	return Errorf(Conflict, format, args...).Typed("turn-state")
}

func (s *State) applyTurn(ev *Event, body Body) error {
	switch b := body.(type) {
	case *TurnStarted:
		if s.TurnOpen() {
			return errTurn("A turn is open already.")
		}
		n := 1
		if s.Turn != nil {
			n = s.Turn.Number + 1
		}
		s.Turn = &Turn{ID: b.TurnID, Open: true, Cause: b.Cause, Continues: deref(b.Continues), StartedSeq: ev.Seq, StartedAt: ev.Time, Number: n}
		if b.Cause == CausePrompt {
			s.ChainSeq, s.Limits, s.Plan = ev.Seq, nil, nil
		}
		s.Held, s.Recoveries = false, 0
	case *TurnEnded:
		if !s.TurnOpen() || s.Turn.ID != b.TurnID {
			return errTurn("That turn isn't open.")
		}
		t := *s.Turn
		t.Open, t.EndedSeq, t.EndedAt, t.Outcome, t.Reason, t.Limit = false, ev.Seq, ev.Time, b.Outcome, b.Reason, b.Limit
		if ev.Actor.Type == ActorUser {
			t.EndedBy = ev.Actor.ID
		} else if s.Interrupt != nil {
			t.EndedBy = s.Interrupt.By
		}
		s.Turn, s.Interrupt, s.Retry, s.Recoveries = &t, nil, nil, 0
		s.Held = b.Outcome != Completed
		s.Blocked = nil // nothing is parked any more; who wants to go on finds out what is missing then
	case *StepStarted:
		if !s.TurnOpen() || s.Turn.ID != b.TurnID {
			return errTurn("That turn isn't open.")
		}
	case *CallProposed:
		if !s.TurnOpen() || s.Turn.ID != b.TurnID {
			return errTurn("That turn isn't open.")
		}
		s.Calls = append(slices.Clone(s.Calls), OpenCall{ID: b.CallID, Effect: b.Effect, State: CallIsProposed, Attempt: deref(b.AttemptID)})
	case *InterruptRequested:
		if !s.TurnOpen() {
			return errTurn("No turn is open: there is nothing to stop.")
		}
		s.Interrupt = &PendingInterrupt{By: b.By, Mode: b.Mode, Seq: ev.Seq, At: ev.Time}
	case *ContinuationRequested:
		s.Held = false
		if b.Limits != nil {
			l := s.TurnLimits().Raise(b.Limits)
			s.Limits = &l
		}
		if s.Blocked != nil && s.Blocked.Cause.Lifted() {
			s.Blocked, s.Recoveries = nil, 0
		}
	}
	return nil
}

// TurnLimits are the bounds of the open turn.
func (s *State) TurnLimits() Limits { return DefaultLimits().Raise(s.Asked).Raise(s.Limits) }

// applyWork folds what is admitted, open, pending and unknown.
func (s *State) applyWork(body Body) {
	switch b := body.(type) {
	case *PromptAdmitted:
		s.Admitted = append(slices.Clone(s.Admitted), Waiting{b.PromptID, b.Delivery})
		s.Held = false
	case *PromptPromoted:
		s.Admitted = dropWaiting(s.Admitted, b.PromptID)
	case *PromptWithdrawn:
		s.Admitted = dropWaiting(s.Admitted, b.PromptID)
	case *PermissionAsked:
		s.Pending = append(slices.Clone(s.Pending), b.ID)
		s.setCall(b.Tool.CallID, CallIsWaiting)
	case *PermissionReplied:
		s.Pending = drop(s.Pending, b.ID)
	case *PermissionCancelled:
		s.Pending = drop(s.Pending, b.ID)
	case *CallDescribed:
		s.setEffect(b.CallID, b.Effect)
	case *CallDispatched:
		s.setCall(b.CallID, CallIsDispatched)
	case *CallSettled:
		s.setCall(b.CallID, b.State)
		if b.State == CallSucceeded || b.State == CallFailed {
			s.Recoveries = 0
		}
	case *CallUnknown:
		s.setCall(b.CallID, CallIsUnknown)
		s.UnknownCalls = append(slices.Clone(s.UnknownCalls), b.CallID)
	case *CallResolved:
		s.UnknownCalls = drop(s.UnknownCalls, b.CallID)
		s.stay(b.Then)
	case *AttemptPrepared:
		s.Attempts, s.Retry = append(slices.Clone(s.Attempts), b.AttemptID), nil // this is the next try
	case *AttemptSettled:
		s.Attempts, s.Retry, s.Recoveries = drop(s.Attempts, b.AttemptID), nil, 0
		s.leaveProcess()
	case *AttemptFailed:
		s.Attempts, s.Retry = drop(s.Attempts, b.AttemptID), b.Retry
		s.leaveProcess()
	case *AttemptUnknown:
		s.Attempts = drop(s.Attempts, b.AttemptID)
		s.leaveProcess()
		s.UnknownAttempts = append(slices.Clone(s.UnknownAttempts), b.AttemptID)
	case *AttemptResolved:
		s.UnknownAttempts = drop(s.UnknownAttempts, b.AttemptID)
		s.stay(b.Then)
	}
}

// leaveProcess notes that nothing of an adopted process is in flight any more.
func (s *State) leaveProcess() {
	if s.Process.isAdopted() && len(s.Attempts) == 0 {
		p := *s.Process
		p.AdoptedAt = 0
		s.Process = &p
	}
}

func (s *State) stay(then Then) {
	if then == ThenStay && s.Unknowns() == 0 {
		s.Held = true
	}
}

func (s *State) applyRest(ev *Event, body Body) {
	switch b := body.(type) {
	case *SessionCreated:
		s.Title, s.Agent, s.Workspace, s.CreatedAt = b.Title, b.Agent, b.Workspace, ev.Time
		s.Asked = b.Limits
	case *SessionRenamed:
		s.Title = b.Title
	case *SessionArchived:
		s.Archived = true
	case *SessionBlocked:
		s.Blocked = &BlockInfo{b.Cause, b.Detail, b.UnblockedBy}
	case *SessionUnblocked:
		s.Blocked = nil
	case *PlanUpdated:
		s.Plan = b.Plan
	case *StepStarted:
		if b.MessageID != nil {
			s.LatestAssistant = *b.MessageID
		}
	case *MessageDelta:
		s.LatestAssistant = newest(s.LatestAssistant, b.MessageID, b.Part)
	case *MessageCompleted:
		s.LatestAssistant = newest(s.LatestAssistant, b.MessageID, b.Part)
	case *CallAdopted:
		s.adopt(ev.Time, b)
	case *AttemptSettled:
		s.Usage.InputTokens += b.Usage.InputTokens
		s.Usage.OutputTokens += b.Usage.OutputTokens
		s.Usage.CostUSD += b.Usage.CostUSD
	case *AgentStarted:
		s.Process = &AgentProcess{ID: b.ProcessID, Folder: b.StateFolderID}
	case *AgentOpened:
		s.AgentSession = b.AgentSessionID
		if s.Process != nil && s.Process.ID == b.ProcessID {
			p := *s.Process
			p.Opened, p.Resumes = true, b.Resumes
			s.Process = &p
		}
	case *AgentEnded:
		if s.Process != nil && s.Process.ID == b.ProcessID {
			s.Process = nil
		}
	case *StepRecovered:
		s.recovered(ev.Time, b)
	}
}

func (s *State) recovered(at int64, b *StepRecovered) {
	agent := s.Process != nil && slices.ContainsFunc(b.Attempts, func(a RecoveredAttempt) bool { return a.Became == AttemptIsAdopted })
	if agent {
		p := *s.Process
		p.AdoptedAt = at
		s.Process = &p
	}
	if !agent && !slices.ContainsFunc(b.Calls, func(c RecoveredCall) bool { return c.Became == CallIsAdopted }) {
		s.Recoveries++ // before a turn is open, too: it may be the opening that fails
	}
}

// newest gives the newest assistant message. A note is the server's voice, not
// the agent's: it supersedes nothing (REC-2).
func newest(was, id string, part Part) string {
	if part == PartNote {
		return was
	}
	return id
}

func (s *State) setEffect(id string, to Effect) {
	i := slices.IndexFunc(s.Calls, func(c OpenCall) bool { return c.ID == id })
	if i < 0 || to == "" {
		return
	}
	s.Calls = slices.Clone(s.Calls)
	s.Calls[i].Effect = to
}

func (s *State) setCall(id string, to CallState) {
	calls := slices.Clone(s.Calls)
	i := slices.IndexFunc(calls, func(c OpenCall) bool { return c.ID == id })
	switch {
	case i < 0:
		return
	case to == CallIsWaiting, to == CallIsDispatched:
		calls[i] = OpenCall{ID: id, Effect: calls[i].Effect, State: to, Attempt: calls[i].Attempt}
	default:
		calls = slices.Delete(calls, i, i+1)
	}
	s.Calls = calls
}

// adopt notes who follows a dispatched call, or that nobody does any more.
// Call.Apply refuses any other.
func (s *State) adopt(at int64, b *CallAdopted) {
	i := slices.IndexFunc(s.Calls, func(c OpenCall) bool { return c.ID == b.CallID && c.State == CallIsDispatched })
	if i < 0 {
		return
	}
	s.Calls = slices.Clone(s.Calls)
	c := &s.Calls[i]
	if *c = (OpenCall{ID: c.ID, Effect: c.Effect, State: c.State, Attempt: c.Attempt}); b.StateFolderID != "" {
		c.Adopted, c.Since, c.AdoptedAt = b.StateFolderID, b.Since, at
	}
}

func drop(list []string, id string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == id })
}

func dropWaiting(list []Waiting, id string) []Waiting {
	return slices.DeleteFunc(slices.Clone(list), func(w Waiting) bool { return w.ID == id })
}
