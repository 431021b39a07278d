package journal

import (
	"cmp"
	"encoding/json"
	"slices"
)

// Effect is the class of a call (CAL-2).
type Effect string

// The classes, from the mildest.
const (
	EffectRead       Effect = "read"       // may be run again
	EffectIdempotent Effect = "idempotent" // may be run again with the same key
	EffectEffect     Effect = "effect"     // never again by itself
)

// ParseEffect reads a class; what isn't known is an effect (CAL-2).
func ParseEffect(s string) Effect {
	switch e := Effect(s); e {
	case EffectRead, EffectIdempotent:
		return e
	default:
		return EffectEffect
	}
}

// CallState is the state of a call (CAL-3).
type CallState string

// The states of a call.
const (
	CallIsProposed   CallState = "proposed"
	CallIsWaiting    CallState = "waiting"
	CallIsRefused    CallState = "refused"
	CallIsDispatched CallState = "dispatched"
	CallSucceeded    CallState = "succeeded"
	CallFailed       CallState = "failed"
	CallCancelled    CallState = "cancelled"
	CallIsUnknown    CallState = "unknown"

	// CallIsAdopted is only what a step.recovered says of a call: the call stays dispatched.
	CallIsAdopted CallState = "adopted"
)

// ReasonNotStarted is why a call was cancelled that was dispatched and whose exit
// record says that nothing of it ever ran.
const ReasonNotStarted = "not started"

// EvidenceExitRecord is the type of evidence that the exit record of a call's command is.
const EvidenceExitRecord = "exit_record"

// Verdict is what a person found out about an unknown call (CAL-3).
type Verdict string

// The verdicts.
const (
	Happened     Verdict = "happened"
	DidNotHappen Verdict = "did_not_happen"
	InPart       Verdict = "in_part"
	CannotTell   Verdict = "cannot_tell"
)

// Then says what follows a resolution.
type Then string

// What may follow.
const (
	ThenContinue Then = "continue"
	ThenStay     Then = "stay"
)

// AllowedByType says who allowed a call.
type AllowedByType string

// Who may allow a call.
const (
	AllowedByRule   AllowedByType = "rule"
	AllowedByPreset AllowedByType = "preset"
	AllowedByPerson AllowedByType = "person"
	AllowedByGrant  AllowedByType = "grant"
	AllowedByAgent  AllowedByType = "agent" // nobody was asked: it did it by itself
)

// Resolution is a person's word on an unknown call.
type Resolution struct {
	Outcome  Verdict `json:"outcome"`
	By       string  `json:"by"`
	At       int64   `json:"at"`
	Evidence string  `json:"evidence"`
}

// Call is one tool invocation, from intent to outcome: the projection of its events.
type Call struct {
	ID, SessionID, TurnID, Key, Tool string
	Input                            json.RawMessage
	InputSHA256                      string
	Effect                           Effect
	AttemptID                        string
	State                            CallState
	N                                int // dispatches so far
	ExitCode                         *int
	Signal, Reason                   string
	OutputBytes, DroppedBytes        int64
	Resolution                       *Resolution
	AllowedBy                        *AllowedBy
	Process                          *Process
	ProposedSeq                      int64
	DispatchedAt, EndedAt, Since     int64
	RanMS                            *int64 // how long its command ran; nil: it didn't, or nobody knows
	AdoptedAt                        int64  // of this dispatch; 0: never
	AdoptedBy                        string // the state folder whose workers follow it, or did
	Evidence                         []Evidence
	Feedback                         string // a rejection's message
}

// Open reports whether the call still has something ahead of it.
func (c *Call) Open() bool {
	return c.State == CallIsProposed || c.State == CallIsWaiting || c.State == CallIsDispatched
}

// Announced reports that a call is an agent's own and that its agent says that it
// runs, or was allowed to: no process of ours runs it. It may be asked about all the
// same, or once more; what it asked for then has not begun.
func (c *Call) Announced() bool {
	return c.State == CallIsDispatched && c.Process == nil && c.AttemptID != ""
}

// NeverRan reports that nothing of the call ever ran: it wasn't dispatched, or it
// is recorded that its command was not let begin.
func (c *Call) NeverRan() bool {
	return c.N == 0 || (c.State == CallCancelled && c.Reason == ReasonNotStarted)
}

// Unresolved reports whether a person has to say what became of the call (CAL-6).
func (c *Call) Unresolved() bool { return c.State == CallIsUnknown && c.Resolution == nil }

// NewCall is the call that an intent opens.
func NewCall(ev *Event, b *CallProposed) *Call {
	return &Call{
		ID: b.CallID, SessionID: ev.SessionID, TurnID: b.TurnID, Key: b.Key, Tool: b.Tool, Input: b.Input,
		InputSHA256: b.InputSHA256, Effect: b.Effect, AttemptID: deref(b.AttemptID), State: CallIsProposed, ProposedSeq: ev.Seq,
	}
}

// Title says what the call does: as an agent calls it, or its command; of an input
// that lies in a blob its tool alone.
func (c *Call) Title() string {
	var in struct{ Title, Command string }
	if json.Unmarshal(c.Input, &in) != nil {
		return c.Tool
	}
	return cmp.Or(in.Title, in.Command, c.Tool)
}

func (c *Call) refuse(to CallState) error {
	return Errorf(Conflict, "The call is %s; it can't become %s.", c.State, to).Typed("call-state").With("state", c.State)
}

// Apply moves the call by one event. It answers conflict if the call isn't in a
// state that the event leaves; the caller then writes nothing (CAL-8).
func (c *Call) Apply(ev *Event, body Body) error {
	switch b := body.(type) {
	case *PermissionAsked:
		if c.State != CallIsProposed && c.State != CallIsWaiting && !c.Announced() {
			return c.refuse(CallIsWaiting)
		}
		c.State = CallIsWaiting
	case *CallDescribed:
		if !c.Open() {
			return Errorf(Conflict, "The call is %s: nothing can be added to what it is.", c.State).Typed("call-state").With("state", c.State)
		}
		c.Input, c.InputSHA256 = b.Input, b.InputSHA256
		if b.Effect != "" { // only ever a stricter one (CAL-2)
			c.Effect = b.Effect
		}
	case *PermissionReplied:
		if b.Reply == ReplyReject {
			c.Feedback = b.Message
		}
	case *CallDispatched:
		return c.dispatch(ev, b)
	case *CallAdopted:
		if c.State != CallIsDispatched {
			return Errorf(Conflict, "The call is %s: it can't be adopted.", c.State).Typed("call-state").With("state", c.State)
		}
		c.AdoptedAt, c.AdoptedBy = ev.Time, b.StateFolderID
		if b.StateFolderID == "" {
			c.AdoptedAt = 0
		}
	case *CallOutput:
		if c.State != CallIsDispatched {
			return Errorf(Conflict, "The call is %s: it has no output to add.", c.State).Typed("call-state").With("state", c.State)
		}
		c.OutputBytes = max(c.OutputBytes, b.Offset+int64(len(b.Text.S))+b.Text.Bytes)
		c.DroppedBytes += b.Dropped
	case *CallSettled:
		if !c.Open() {
			return c.refuse(b.State)
		}
		c.settle(ev, b)
	case *CallUnknown:
		if c.State != CallIsDispatched {
			return c.refuse(CallIsUnknown)
		}
		c.State, c.Since, c.Evidence, c.EndedAt = CallIsUnknown, b.Since, b.Evidence, ev.Time
	case *CallEvidence:
		if c.State != CallIsUnknown {
			return c.refuse(CallIsUnknown)
		}
		c.Evidence = append(slices.Clone(c.Evidence), b.Evidence)
	case *CallResolved:
		return c.resolve(ev, b)
	}
	return nil
}

func (c *Call) dispatch(ev *Event, b *CallDispatched) error {
	again := c.State == CallIsDispatched && (c.Effect != EffectEffect || c.Announced()) // CAL-4
	if c.State != CallIsProposed && c.State != CallIsWaiting && !again {
		return c.refuse(CallIsDispatched)
	}
	if b.N != c.N+1 {
		return Errorf(Conflict, "The call has been dispatched %d times; %d can't be next.", c.N, b.N).Typed("call-state")
	}
	allowed := b.AllowedBy
	c.State, c.N, c.AllowedBy, c.Process, c.DispatchedAt = CallIsDispatched, b.N, &allowed, b.Process, ev.Time
	c.OutputBytes, c.DroppedBytes, c.AdoptedAt, c.AdoptedBy = 0, 0, 0, "" // of this dispatch
	return nil
}

// settle notes how the call ended. Whether somebody saw it end is what decides
// when that was, and how long it ran: one that no execution settled, or that was
// adopted, may have ended long before, and only its own record tells.
func (c *Call) settle(ev *Event, b *CallSettled) {
	seen := ev.ExecutionID != "" && c.AdoptedAt == 0
	recorded := b.StartedAt > 0 && b.EndedAt >= b.StartedAt
	c.EndedAt, c.RanMS = ev.Time, nil
	switch ran := ev.Time - c.DispatchedAt; {
	case recorded:
		ran = b.EndedAt - b.StartedAt
		c.RanMS = &ran
		if !seen {
			c.EndedAt = b.EndedAt
		}
	case seen && (b.State == CallSucceeded || b.State == CallFailed): // one that is cancelled may be of an earlier execution, which was lost
		c.RanMS = &ran
	}
	c.State, c.ExitCode, c.Signal, c.Reason = b.State, b.ExitCode, b.Signal, b.Reason
	c.OutputBytes, c.DroppedBytes = b.OutputBytes, b.DroppedBytes
}

func (c *Call) resolve(ev *Event, b *CallResolved) error {
	if c.Resolution != nil {
		return Errorf(Conflict, "This outcome was already reconciled as %s. Your answer was not recorded.", c.Resolution.Outcome).
			Typed("already-resolved").With("state", c.State).With("resolution", c.Resolution)
	}
	if c.State != CallIsUnknown {
		return Errorf(Conflict, "This call is %s: there is nothing to reconcile.", c.State).Typed("call-state").With("state", c.State)
	}
	c.Resolution = &Resolution{Outcome: b.Outcome, By: b.By, At: ev.Time, Evidence: b.Evidence}
	return nil
}
