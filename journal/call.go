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

// ReasonNotTold is why an agent's call was cancelled that was let run, which its agent
// surely wasn't told.
const ReasonNotTold = "not told"

// The types of evidence.
const (
	EvidenceOutput     = "output"      // what a call had put out
	EvidenceProcess    = "process"     // what was seen of its processes
	EvidenceExitRecord = "exit_record" // the exit record of its command
	EvidenceAgent      = "agent"       // an agent's silence about a call of its own
	EvidencePerson     = "person"      // what somebody found
)

// Verdict is what a person found out about an unknown call (CAL-3).
type Verdict string

// The verdicts.
const (
	Happened     Verdict = "happened"
	DidNotHappen Verdict = "did_not_happen"
	InPart       Verdict = "in_part"
	CannotTell   Verdict = "cannot_tell"
)

// Words say what was found, to people and to agents alike.
func (v Verdict) Words() string {
	switch v {
	case Happened:
		return "it happened"
	case DidNotHappen:
		return "it did not happen"
	case InPart:
		return "it happened in part"
	case CannotTell:
		return "nobody can tell"
	}
	return Quote(string(v), 40)
}

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
	Later                            json.RawMessage // what its agent said of it after its dispatch that is something else; nil: nothing
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

// Late tells what had become of a call when its agent described it anew; "": it had
// neither been asked about nor been let run.
type Late string

// What an agent may describe anew.
const (
	LateAsked      Late = "asked"      // somebody was asked about it, and may have answered
	LateDispatched Late = "dispatched" // it was dispatched, and was let run by somebody
)

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

// Began reports that a call was let run and hasn't ended as far as is recorded. An agent
// may ask for one of its own once more while it runs, or before: it may have run all the
// same, whatever becomes of that request (but see LetItself).
func (c *Call) Began() bool {
	return c.State == CallIsDispatched || c.State == CallIsWaiting && c.N > 0 && c.AttemptID != ""
}

// LetItself reports that an agent said of a call of its own that it runs, that nobody was
// asked whether it may, and that it has put nothing out. What it asks for all the same has
// not begun before the answer.
func (c *Call) LetItself() bool {
	return c.Began() && c.N == 1 && c.AttemptID != "" && c.Process == nil && c.OutputBytes+c.DroppedBytes == 0 &&
		c.AllowedBy != nil && c.AllowedBy.Type == AllowedByAgent && !c.AllowedBy.Unseen
}

// Unasked reports that a call is an agent's own, for which it has asked nobody and of
// which it hasn't said that it runs. It may run all the same: agents do what their own
// rules allow.
func (c *Call) Unasked() bool { return c.State == CallIsProposed && c.AttemptID != "" }

// Unseen reports that nobody saw whether or when the call began.
func (c *Call) Unseen() bool { return c.AllowedBy != nil && c.AllowedBy.Unseen }

// Unseen is who lets an agent's call run that was Unasked, as is found when it is over
// or lost: nobody.
func Unseen() AllowedBy {
	return AllowedBy{Type: AllowedByAgent, Text: "the agent asked nobody, and didn't say when it began", Unseen: true}
}

// NeverRan reports that nothing of the call ever ran: it wasn't dispatched, or it
// is recorded that its command was not let begin.
func (c *Call) NeverRan() bool {
	return c.N == 0 || (c.State == CallCancelled && (c.Reason == ReasonNotStarted || c.Reason == ReasonNotTold))
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

// Elsewhere gives the blob that the call's input lies in, or what its agent said of it
// later; false: both are whole.
func (c *Call) Elsewhere() (Text, bool) {
	if ref, elsewhere := InputBlob(c.Input, c.InputSHA256); elsewhere {
		return ref, true
	}
	return InputBlob(c.Later, "")
}

// Title says what the call does: as an agent calls it, or its command; of an input
// that isn't whole its tool alone.
func (c *Call) Title() string {
	var in struct{ Title, Command string }
	if !ReadInput(c.Input, &in) {
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
	case *CallContradicted:
		if err := c.Apply(ev, (*CallDescribed)(b)); err != nil {
			return err
		}
		if b.Late == LateDispatched {
			c.Later = b.Input
		}
	case *CallDescribed:
		if !c.Open() {
			return Errorf(Conflict, "The call is %s: nothing can be added to what it is.", c.State).Typed("call-state").With("state", c.State)
		}
		if b.Late != LateDispatched { // else what was let run stays what it was
			c.Input, c.InputSHA256, c.Later = b.Input, b.InputSHA256, nil
		}
		if b.Effect != "" { // a stricter one, or what one is of which nothing was known (CAL-2)
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
		if !c.Began() {
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
		if !c.Began() {
			return c.refuse(CallIsUnknown)
		}
		c.State, c.Since, c.Evidence, c.EndedAt = CallIsUnknown, cmp.Or(b.Since, ev.Time), b.Evidence, ev.Time
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
	allowed, at, anew := b.AllowedBy, ev.Time, c.AttemptID == "" // an agent's goes on with what it has put out
	if b.Since > 0 && b.Since < at {
		at = b.Since
	}
	c.State, c.N, c.AllowedBy, c.Process, c.DispatchedAt = CallIsDispatched, b.N, &allowed, b.Process, at
	c.AdoptedAt, c.AdoptedBy = 0, ""
	if anew {
		c.OutputBytes, c.DroppedBytes = 0, 0
	}
	return nil
}

// settle notes how the call ended. Whether somebody saw it end is what decides
// when that was, and how long it ran: one that no execution settled, or that was
// adopted, may have ended long before, and only its own record tells.
func (c *Call) settle(ev *Event, b *CallSettled) {
	seen := ev.ExecutionID != "" && c.AdoptedAt == 0 && !c.Unseen()
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
		return Errorf(Conflict, "This outcome was already reconciled: %s. Your answer was not recorded.", c.Resolution.Outcome.Words()).
			Typed("already-resolved").With("state", c.State).With("resolution", c.Resolution)
	}
	if c.State != CallIsUnknown {
		return Errorf(Conflict, "This call is %s: there is nothing to reconcile.", c.State).Typed("call-state").With("state", c.State)
	}
	c.Resolution = &Resolution{Outcome: b.Outcome, By: b.By, At: ev.Time, Evidence: b.Evidence}
	return nil
}
