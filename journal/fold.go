package journal

import "slices"

// Promoted is a prompt in the agent's history.
type Promoted struct {
	ID       string
	Delivery Delivery
	TurnID   string
	Seq      int64 // of prompt.promoted
	Text     string
}

// Fold is what a drain knows of its session: the state, and the chain of turns
// that the open one continues. It is a function of the journal; a drain in any
// process, after any restart, folds the same.
type Fold struct {
	Seq     int64 // the last event folded
	State   State
	Chain   []string // the turns of the chain, the open one last
	Prompts []Promoted
	Calls   []*Call
	Told    int64 // the cut-off of the last attempt in the chain: the prompts that the agent was told
	Sent    Sent  // that attempt

	toldSeq  int64            // the seq of that attempt: what else the agent was told came before it
	before   [2]int64         // Told and toldSeq before that attempt
	rejected map[string]int64 // calls that were rejected with a message, and the seq of that
	requests map[string]*Request
	byID     map[string]*Call      // Calls
	byKey    map[string]*Call      // of each key the newest
	asked    map[string][]*Request // by call
	steps    int
	wall     map[string][2]int64 // execution → first and last event of the open turn
	since    int64               // what was adopted has run since then without an execution; 0: nothing does
}

// Sent is an attempt as whoever follows it knows it.
type Sent struct {
	AttemptID string
	TurnID    string
	ProcessID string
	Request   int64 // as which the agent's process answers it
	First     int64 // the first request of the same turn to that process
	Receiving bool
	Unread    bool            // a line came that can't be read, and no work after it: it may have been the answer
	Settled   *AttemptSettled // nil: it isn't
}

// NewFold starts from the session's state as of seq. The chain's events up to
// seq are then given to Chained, later ones to Apply.
func NewFold(st State, seq int64) *Fold {
	f := &Fold{Seq: seq, State: st, wall: map[string][2]int64{}}
	f.forget()
	return f
}

// forget begins a chain.
func (f *Fold) forget() {
	f.Calls, f.byID, f.byKey = nil, map[string]*Call{}, map[string]*Call{}
	f.requests, f.asked, f.rejected = map[string]*Request{}, map[string][]*Request{}, map[string]int64{}
}

// Chained folds an event of the chain that the state already contains.
func (f *Fold) Chained(ev *Event) error {
	body, err := ev.Decode()
	if err != nil {
		return err
	}
	return f.chain(ev, body)
}

// Apply folds the next event into both.
func (f *Fold) Apply(ev *Event) error {
	if ev.Seq <= f.Seq {
		return nil
	}
	body, err := ev.Decode()
	if err != nil {
		return err
	}
	if err := f.State.Apply(ev, body); err != nil {
		return err
	}
	f.Seq = ev.Seq
	return f.chain(ev, body)
}

func (f *Fold) chain(ev *Event, body Body) error {
	f.spend(ev)
	f.outlived(ev, body)
	f.works(ev, body)
	switch b := body.(type) {
	case *TurnStarted:
		if b.Cause == CausePrompt {
			f.Chain, f.Prompts, f.Told, f.toldSeq, f.before = nil, nil, 0, 0, [2]int64{}
			f.forget()
		}
		f.Chain = append(f.Chain, b.TurnID)
		f.steps, f.wall, f.since = 0, map[string][2]int64{}, 0
	case *PromptPromoted:
		f.Prompts = append(f.Prompts, Promoted{ID: b.PromptID, Delivery: b.Delivery, TurnID: b.TurnID, Seq: ev.Seq})
	case *StepStarted:
		f.steps++
	case *AttemptPrepared:
		f.before = [2]int64{f.Told, f.toldSeq}
		next := Sent{AttemptID: b.AttemptID, TurnID: b.TurnID}
		if f.Sent.TurnID == b.TurnID {
			next.ProcessID, next.First = f.Sent.ProcessID, f.Sent.First
		}
		f.Told, f.toldSeq, f.Sent = b.CutoffSeq, ev.Seq, next
	case *AttemptDispatched:
		if f.Sent.ProcessID != b.ProcessID || f.Sent.First == 0 {
			f.Sent.ProcessID, f.Sent.First = b.ProcessID, b.Request
		}
		f.Sent.Request = b.Request
	case *AttemptReceiving:
		f.Sent.Receiving = true
	case *AgentEvent:
		f.Sent.Unread = f.Sent.Unread || b.Unread
	case *AttemptFailed: // nobody was told
		f.Told, f.toldSeq = f.before[0], f.before[1]
	case *AttemptSettled:
		if f.Sent.AttemptID == b.AttemptID {
			f.Sent.Settled = b
		}
	case *AttemptResolved:
		if b.Outcome == AttemptRetry {
			f.Told, f.toldSeq = f.before[0], f.before[1]
		}
	case *CallProposed:
		c := NewCall(ev, b)
		f.Calls, f.byID[c.ID], f.byKey[c.Key] = append(f.Calls, c), c, c
	case *PermissionAsked:
		r := NewRequest(ev, b)
		f.requests[b.ID], f.asked[b.Tool.CallID] = r, append(f.asked[b.Tool.CallID], r)
	}
	return f.moveCall(ev, body)
}

func (f *Fold) moveCall(ev *Event, body Body) error {
	if r := f.requests[requestOf(body)]; r != nil {
		if err := r.Apply(ev, body); err != nil {
			return err
		}
		c := f.Call(r.Tool.CallID)
		if c == nil {
			return nil
		}
		if r.State == RequestRejectedWithFeedback {
			f.rejected[c.ID] = ev.Seq
		}
		return c.Apply(ev, body)
	}
	if c := f.Call(CallOf(body)); c != nil {
		return c.Apply(ev, body)
	}
	return nil
}

// CallOf gives the id of the call that an event moves, or "".
func CallOf(body Body) string {
	switch b := body.(type) {
	case *CallDescribed:
		return b.CallID
	case *CallContradicted:
		return b.CallID
	case *CallDispatched:
		return b.CallID
	case *CallAdopted:
		return b.CallID
	case *CallOutput:
		return b.CallID
	case *CallSettled:
		return b.CallID
	case *CallUnknown:
		return b.CallID
	case *CallEvidence:
		return b.CallID
	case *CallResolved:
		return b.CallID
	}
	return ""
}

func requestOf(body Body) string {
	switch b := body.(type) {
	case *PermissionAsked:
		return b.ID
	case *PermissionReplied:
		return b.ID
	case *PermissionCancelled:
		return b.ID
	}
	return ""
}

// spend counts the wall time of the open turn while it ran: for each execution,
// from its first event to its last.
func (f *Fold) spend(ev *Event) {
	if ev.ExecutionID == "" {
		return
	}
	w, ok := f.wall[ev.ExecutionID]
	if !ok {
		if w[0] = ev.Time; f.since > 0 {
			w[0], f.since = f.since, 0
		}
	}
	w[1] = ev.Time
	f.wall[ev.ExecutionID] = w
}

// works notes that an agent goes on with its work: its answer has not come yet.
func (f *Fold) works(ev *Event, body Body) {
	if ev.Actor.Type != ActorAgent {
		return
	}
	switch body.(type) {
	case *MessageDelta, *CallProposed, *CallDescribed, *CallContradicted, *CallDispatched, *CallOutput, *CallSettled:
		f.Sent.Unread = false
	}
}

// outlived counts the time in which a command ran on without its execution: up
// to its adoption, and from there to the first word of who follows it.
func (f *Fold) outlived(ev *Event, body Body) {
	b, ok := body.(*StepRecovered)
	if !ok || !slices.ContainsFunc(b.Calls, func(c RecoveredCall) bool { return c.Became == CallIsAdopted }) {
		return
	}
	w, ok := f.wall[b.ExecutionID]
	if !ok {
		if w[0] = ev.Time; f.since > 0 {
			w[0] = f.since
		}
	}
	w[1], f.since = ev.Time, ev.Time
	f.wall[b.ExecutionID] = w
}

// WallMS is the time that the open turn has run so far, in milliseconds.
func (f *Fold) WallMS() int64 {
	var sum int64
	for _, w := range f.wall {
		sum += w[1] - w[0]
	}
	return sum
}

// Steps counts the steps of the open turn.
func (f *Fold) Steps() int { return f.steps }

// Call gives a call of the chain by its id, or nil.
func (f *Fold) Call(id string) *Call { return f.byID[id] }

// CallByKey gives the call of the chain with that key, or nil.
func (f *Fold) CallByKey(key string) *Call { return f.byKey[key] }

// Feedback gives the calls that a person rejected with a message of which the agent
// hasn't been told, in the order in which they were proposed (PER-2).
func (f *Fold) Feedback() []*Call {
	var out []*Call
	for _, c := range f.Calls {
		if (c.State == CallIsRefused || c.N > 0) && c.Feedback != "" && f.rejected[c.ID] > f.toldSeq {
			out = append(out, c)
		}
	}
	return out
}

// Requests gives the requests of a call, in the order in which they were asked.
func (f *Fold) Requests(callID string) []*Request { return f.asked[callID] }

// SetText puts the text of a promoted prompt in.
func (f *Fold) SetText(promptID, text string) {
	for i := range f.Prompts {
		if f.Prompts[i].ID == promptID {
			f.Prompts[i].Text = text
		}
	}
}

// OverLimit names the bound that the open turn has reached, if any (COO-5).
func (f *Fold) OverLimit() (limit string, value int64, over bool) {
	l := f.State.TurnLimits()
	switch {
	case l.Steps > 0 && f.steps >= l.Steps:
		return "steps", int64(l.Steps), true
	case l.WallS > 0 && f.WallMS() >= l.WallS*1000:
		return "wall_s", l.WallS, true
	case l.Tokens > 0 && f.State.Usage.InputTokens+f.State.Usage.OutputTokens >= l.Tokens:
		return "tokens", l.Tokens, true
	case l.CostUSD > 0 && f.State.Usage.CostUSD >= l.CostUSD:
		return "cost_usd", int64(l.CostUSD), true
	}
	return "", 0, false
}
