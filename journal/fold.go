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
	Told    int64 // the cut-off of the last attempt in the chain: what the agent was told of
	Sent    Sent  // that attempt

	before   int64 // Told before that attempt
	requests map[string]*Request
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
	Settled   *AttemptSettled // nil: it isn't
}

// NewFold starts from the session's state as of seq. The chain's events up to
// seq are then given to Chained, later ones to Apply.
func NewFold(st State, seq int64) *Fold {
	return &Fold{Seq: seq, State: st, requests: map[string]*Request{}, wall: map[string][2]int64{}}
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
	switch b := body.(type) {
	case *TurnStarted:
		if b.Cause == CausePrompt {
			f.Chain, f.Prompts, f.Calls, f.requests, f.Told = nil, nil, nil, map[string]*Request{}, 0
			f.before = 0
		}
		f.Chain = append(f.Chain, b.TurnID)
		f.steps, f.wall, f.since = 0, map[string][2]int64{}, 0
	case *PromptPromoted:
		f.Prompts = append(f.Prompts, Promoted{ID: b.PromptID, Delivery: b.Delivery, TurnID: b.TurnID, Seq: ev.Seq})
	case *StepStarted:
		f.steps++
	case *AttemptPrepared:
		f.before = f.Told
		next := Sent{AttemptID: b.AttemptID, TurnID: b.TurnID}
		if f.Sent.TurnID == b.TurnID {
			next.ProcessID, next.First = f.Sent.ProcessID, f.Sent.First
		}
		f.Told, f.Sent = b.CutoffSeq, next
	case *AttemptDispatched:
		if f.Sent.ProcessID != b.ProcessID || f.Sent.First == 0 {
			f.Sent.ProcessID, f.Sent.First = b.ProcessID, b.Request
		}
		f.Sent.Request = b.Request
	case *AttemptReceiving:
		f.Sent.Receiving = true
	case *AttemptFailed: // nobody was told
		f.Told = f.before
	case *AttemptSettled:
		if f.Sent.AttemptID == b.AttemptID {
			f.Sent.Settled = b
		}
	case *AttemptResolved:
		if b.Outcome == AttemptRetry {
			f.Told = f.before
		}
	case *CallProposed:
		f.Calls = append(f.Calls, NewCall(ev, b))
	case *PermissionAsked:
		f.requests[b.ID] = NewRequest(ev, b)
	}
	return f.moveCall(ev, body)
}

func (f *Fold) moveCall(ev *Event, body Body) error {
	if r := f.requests[requestOf(body)]; r != nil {
		if err := r.Apply(ev, body); err != nil {
			return err
		}
		if c := f.Call(r.Tool.CallID); c != nil {
			return c.Apply(ev, body)
		}
		return nil
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
func (f *Fold) Call(id string) *Call {
	if id == "" {
		return nil
	}
	i := slices.IndexFunc(f.Calls, func(c *Call) bool { return c.ID == id })
	if i < 0 {
		return nil
	}
	return f.Calls[i]
}

// CallByKey gives the call of the chain with that key, or nil.
func (f *Fold) CallByKey(key string) *Call {
	for i := len(f.Calls) - 1; i >= 0; i-- {
		if f.Calls[i].Key == key {
			return f.Calls[i]
		}
	}
	return nil
}

// Requests gives the requests of a call, in no order.
func (f *Fold) Requests(callID string) []*Request {
	var out []*Request
	for _, r := range f.requests {
		if r.Tool.CallID == callID {
			out = append(out, r)
		}
	}
	return out
}

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
