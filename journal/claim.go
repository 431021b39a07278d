package journal

// Phase says how much an execution has in the air (LEA-7).
type Phase string

// The phases.
const (
	PhaseReady     Phase = "ready"     // claimed, nothing dispatched
	PhaseUncertain Phase = "uncertain" // something is dispatched and not settled
	PhaseSafe      Phase = "safe"      // everything dispatched has settled
)

// Claim is one worker's lease on a session. The execution id is random and new
// at each claim; its equality is what fences (LEA-1, LEA-4).
type Claim struct {
	SessionID          string
	ExecutionID        string
	WorkerID           string
	StateFolderID      string
	Phase              Phase
	AssistantMessageID string
	ClaimedAt          int64
	ExpiresAt          int64
	LeaseMS            int64
	AliveAt            int64 // when its worker last said that it lives; 0: it isn't at hand
	Epoch              int64
}

// Unconfirmed reports whether the claim was not renewed in time: two renewals
// of the three that a lease holds have failed to come, or it has expired.
func (c Claim) Unconfirmed(now int64) bool { return c.ExpiresAt-now < c.LeaseMS/3 }
