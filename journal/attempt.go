package journal

// AttemptState is the state of one request to a model provider (ATT-1).
type AttemptState string

// The states of an attempt.
const (
	AttemptIsPrepared   AttemptState = "prepared"
	AttemptIsDispatched AttemptState = "dispatched"
	AttemptIsReceiving  AttemptState = "receiving"
	AttemptIsSettled    AttemptState = "settled"
	AttemptHasFailed    AttemptState = "failed"
	AttemptIsUnknown    AttemptState = "unknown"

	// AttemptIsAdopted is only what a step.recovered says of an attempt: its agent's
	// process has outlived the execution, or has left something that nobody has read, and is
	// followed again.
	AttemptIsAdopted AttemptState = "adopted"
)

// AttemptVerdict is a person's word on an unknown attempt (ATT-6).
type AttemptVerdict string

// The verdicts on an attempt.
const (
	AttemptRetry   AttemptVerdict = "retry"
	AttemptAbandon AttemptVerdict = "abandon"
)

// Words say what was chosen, as of who chose it: to do that.
func (v AttemptVerdict) Words() string {
	switch v {
	case AttemptRetry:
		return "to send it again"
	case AttemptAbandon:
		return "not to send it again"
	}
	return Quote(string(v), 40)
}

// Attempt is one request to a provider.
type Attempt struct {
	ID         string
	SessionID  string
	TurnID     string
	Model      string
	State      AttemptState
	Resolution AttemptVerdict
	Seq        int64
}

var attemptMoves = map[Kind]struct {
	from []AttemptState
	to   AttemptState
}{
	KindAttemptDispatched: {[]AttemptState{AttemptIsPrepared}, AttemptIsDispatched},
	KindAttemptReceiving:  {[]AttemptState{AttemptIsDispatched}, AttemptIsReceiving},
	KindAttemptSettled:    {[]AttemptState{AttemptIsDispatched, AttemptIsReceiving}, AttemptIsSettled},
	KindAttemptFailed:     {[]AttemptState{AttemptIsPrepared, AttemptIsDispatched, AttemptIsReceiving}, AttemptHasFailed},
	KindAttemptUnknown:    {[]AttemptState{AttemptIsDispatched, AttemptIsReceiving}, AttemptIsUnknown},
}

// Apply moves an attempt by one event, or answers conflict if it isn't in a
// state that the event leaves (CAL-8).
func (a *Attempt) Apply(ev *Event, body Body) error {
	if r, ok := body.(*AttemptResolved); ok {
		if a.Resolution != "" {
			return Errorf(Conflict, "What becomes of this message was chosen already: %s. Your answer was not recorded.", a.Resolution.Words()).Typed("already-resolved").With("state", a.State)
		}
		if a.State != AttemptIsUnknown {
			return Errorf(Conflict, "This attempt is not waiting for a verdict: it is %s.", a.State).With("state", a.State)
		}
		a.Resolution = r.Outcome
		return nil
	}
	m, ok := attemptMoves[ev.Kind]
	if !ok {
		return nil
	}
	for _, s := range m.from {
		if a.State == s {
			a.State = m.to
			return nil
		}
	}
	return Errorf(Conflict, "The attempt is %s; it can't become %s.", a.State, m.to).With("state", a.State)
}
