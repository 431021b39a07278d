package journal

import "slices"

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
		done := s.Turn != nil && s.Turn.Done && s.Turn.ID == deref(b.Continues)
		s.Turn = &Turn{ID: b.TurnID, Open: true, Done: done, Cause: b.Cause, Continues: deref(b.Continues), StartedSeq: ev.Seq, StartedAt: ev.Time, Number: n}
		if b.Cause == CausePrompt {
			s.ChainSeq, s.Limits, s.Plan = ev.Seq, nil, nil
		}
		s.Held, s.Recoveries = false, 0
	case *TurnEnded:
		if !s.TurnOpen() || s.Turn.ID != b.TurnID {
			return errTurn("That turn isn't open.")
		}
		t := *s.Turn
		t.Open, t.EndedSeq, t.EndedAt, t.Outcome, t.Reason, t.Limit, t.Done = false, ev.Seq, ev.Time, b.Outcome, b.Reason, b.Limit, b.Done
		if ev.Actor.Type == ActorUser {
			t.EndedBy = ev.Actor.ID
		} else if s.Interrupt != nil {
			t.EndedBy = s.Interrupt.By
		}
		s.Turn, s.Interrupt, s.Retry, s.Recoveries = &t, nil, nil, 0
		s.Held = b.Outcome != Completed && (s.Forgotten != nil || !s.Sends())
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
		s.stops(ev, b)
	case *ContinuationRequested:
		s.Held, s.Forgotten = false, nil
		if b.Anew {
			s.AgentSession, s.AnewSeq = "", ev.Seq
		}
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

// stops folds a stop that was asked for. The last word counts: one that comes alone
// leaves what was sent with others held; a rejection answers a request, and takes
// nothing back.
func (s *State) stops(ev *Event, b *InterruptRequested) {
	next := PendingInterrupt{By: b.By, Mode: b.Mode, Seq: ev.Seq, At: ev.Time, Reason: b.Reason}
	switch {
	case b.PromptID != "":
		s.send(b.PromptID)
		if s.Interrupt != nil {
			next.Reason = s.Interrupt.Reason
		}
	case b.Reason == "":
		s.sendNothing()
	}
	s.Interrupt = &next
}

// reach notes that a stop at the next safe point has come to one.
func (s *State) reach(stops bool) {
	if stops && s.Interrupt != nil {
		i := *s.Interrupt
		i.Reached = true
		s.Interrupt = &i
	}
}

func (s *State) send(promptID string) {
	t := *s.Turn
	t.Sent = append(slices.Clone(t.Sent), promptID)
	s.Turn = &t
}

func (s *State) sendNothing() {
	if s.Turn == nil || s.Turn.Sent == nil {
		return
	}
	t := *s.Turn
	t.Sent = nil
	s.Turn = &t
}

// applyWork folds what is admitted, open, pending and unknown.
func (s *State) applyWork(body Body) {
	switch b := body.(type) {
	case *PromptAdmitted:
		s.Admitted = append(slices.Clone(s.Admitted), Waiting{b.PromptID, b.Delivery})
		s.Held = s.Held && s.Forgotten != nil // the turn that it opened would fail, too
		if !s.TurnOpen() && s.Sends() {
			s.send(b.PromptID) // it lifts the hold, too, if the other is withdrawn
		}
	case *PromptPromoted:
		s.Admitted = dropWaiting(s.Admitted, b.PromptID)
	case *PromptWithdrawn:
		sends := s.Sends()
		s.Admitted = dropWaiting(s.Admitted, b.PromptID)
		if sends && !s.Sends() && !s.TurnOpen() {
			s.Held = true // nothing is left that the turn was stopped for
		}
	case *PermissionAsked:
		s.Pending = append(slices.Clone(s.Pending), b.ID)
		s.setCall(b.Tool.CallID, CallIsWaiting)
	case *PermissionReplied:
		s.Pending = drop(s.Pending, b.ID)
	case *PermissionCancelled:
		s.Pending = drop(s.Pending, b.ID)
		s.reach(b.Stops)
	case *CallDescribed:
		s.setEffect(b.CallID, b.Effect)
	case *CallContradicted:
		s.setEffect(b.CallID, b.Effect)
	case *CallDispatched:
		s.setCall(b.CallID, CallIsDispatched)
	case *CallSettled:
		s.setCall(b.CallID, b.State)
		s.lift(BlockShim)
		if b.State == CallSucceeded || b.State == CallFailed {
			s.Recoveries = 0
		}
	case *CallUnknown:
		s.setCall(b.CallID, CallIsUnknown)
		s.lift(BlockShim)
		s.UnknownCalls = append(slices.Clone(s.UnknownCalls), b.CallID)
	case *CallResolved:
		s.UnknownCalls = drop(s.UnknownCalls, b.CallID)
		s.stay(b.Then)
	case *AttemptPrepared:
		s.Attempts, s.Retry = append(slices.Clone(s.Attempts), b.AttemptID), nil // this is the next try
	case *AttemptReceiving:
		s.AnewSeq = 0
	case *AttemptSettled:
		s.Attempts, s.Retry, s.Recoveries, s.AnewSeq = drop(s.Attempts, b.AttemptID), nil, 0, 0
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
		s.sendNothing()
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
		s.Process = &AgentProcess{ID: b.ProcessID, Folder: b.StateFolderID, OpensSince: ev.Time}
		for _, c := range b.Credentials {
			s.Process.Credentials = append(s.Process.Credentials, c.ID)
		}
	case *AgentOpened:
		if b.How == AgentNew || s.AgentSession == "" { // else it is the same, of which something may be hidden since
			s.AgentSession = b.AgentSessionID
		}
		if s.Process != nil && s.Process.ID == b.ProcessID {
			p := *s.Process
			p.Opened, p.OpensSince, p.Resumes = true, 0, b.Resumes
			s.Process = &p
		}
	case *AgentEvent:
		if b.Ends != "" && s.Process != nil && s.Process.ID == b.ProcessID {
			p := *s.Process
			p.Fault = b.Ends
			s.Process = &p
		}
	case *AgentForgotten:
		s.Forgotten = &Forgotten{b.Reason, b.How, b.MayPass}
	case *AgentEnded:
		s.endProcess(b.ProcessID)
	case *AgentLost:
		s.endProcess(b.ProcessID)
		s.Lost = append(s.Lost, *b)
		s.Lost = s.Lost[max(0, len(s.Lost)-mostLost):]
	case *StepRecovered:
		s.recovered(ev.Time, b)
	}
}

// mostLost is how many lost processes are remembered: their hosts may never come back.
const mostLost = 10

// endProcess drops a process that isn't the session's any more.
func (s *State) endProcess(id string) {
	if s.Process != nil && s.Process.ID == id {
		s.Process = nil
		s.lift(BlockProcess)
	}
	s.Lost = slices.DeleteFunc(slices.Clone(s.Lost), func(l AgentLost) bool { return l.ProcessID == id })
}

// blockedBy reports whether that is what blocks the session.
func (s *State) blockedBy(cause BlockCause) bool { return s.Blocked != nil && s.Blocked.Cause == cause }

// lift ends a block by a cause that is gone.
func (s *State) lift(cause BlockCause) {
	if s.blockedBy(cause) {
		s.Blocked = nil
	}
}

// LostWith gives the process that an attempt was lost with; nil: it is known not to run.
func (s *State) LostWith(attempt string) *AgentLost {
	for i := range s.Lost {
		if slices.Contains(s.Lost[i].Attempts, attempt) {
			return &s.Lost[i]
		}
	}
	return nil
}

func (s *State) recovered(at int64, b *StepRecovered) {
	agent := s.Process != nil && slices.ContainsFunc(b.Attempts, func(a RecoveredAttempt) bool { return a.Became == AttemptIsAdopted })
	if agent {
		p := *s.Process
		p.AdoptedAt = at
		s.Process = &p
	}
	if b.Failed || !agent && !slices.ContainsFunc(b.Calls, func(c RecoveredCall) bool { return c.Became == CallIsAdopted }) {
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
	} else {
		s.lift(BlockShim) // nobody asks it any more
	}
}

func drop(list []string, id string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == id })
}

func dropWaiting(list []Waiting, id string) []Waiting {
	return slices.DeleteFunc(slices.Clone(list), func(w Waiting) bool { return w.ID == id })
}
