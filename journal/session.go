package journal

// Rule is one line of the rules given with a session. What it means is
// decided in journal/policy; here it is only carried.
type Rule struct {
	Permission string `json:"permission"`
	Pattern    string `json:"pattern"`
	Action     string `json:"action"`
}

// Policy is what a session allows beyond its rules.
type Policy struct {
	// RetryUnknownAttempts lets an unknown attempt be sent again, which can bill twice (ATT-3).
	RetryUnknownAttempts bool `json:"retry_unknown_attempts"`
}

// Usage adds up what the attempts of a session used.
type Usage struct {
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	CostUSD      float64 `json:"cost_usd"`
}

// BlockCause says what parks a session without failing it.
type BlockCause string

// The causes that this build knows.
const (
	BlockRecovery  BlockCause = "recovery"  // REC-11: the third recovery without a settled step
	BlockAgent     BlockCause = "agent"     // no worker has the agent
	BlockWorkspace BlockCause = "workspace" // no worker reaches the workspace (WSP-1)
	BlockDisk      BlockCause = "disk"      // there is no room for what an agent is told and says
	BlockSignIn    BlockCause = "sign_in"   // the agent needs a sign-in, which nobody here can see done
	BlockProcess   BlockCause = "process"   // the agent's process was to be ended, and may still run (LEA-12); its end lifts it
	BlockShim      BlockCause = "shim"      // what keeps a command that has outlived its server doesn't answer; an answer lifts it, or the command's end
)

// Lifted reports whether a person's *continue* lifts the block: nobody else can tell, or
// not as soon, that its cause is gone.
func (c BlockCause) Lifted() bool { return c == BlockRecovery || c == BlockSignIn || c == BlockDisk }

// Outcome is how a turn ended.
type Outcome string

// The outcomes (semantics §11).
const (
	Completed    Outcome = "completed"
	Failed       Outcome = "failed"
	Stopped      Outcome = "stopped"     // by a person
	Interrupted  Outcome = "interrupted" // by the server's stop
	LimitReach   Outcome = "limit_reached"
	NoOutcomeYet Outcome = ""
)

// TurnCause is why a turn was started.
type TurnCause string

// The causes of a turn.
const (
	CausePrompt       TurnCause = "prompt"
	CauseContinuation TurnCause = "continuation"
)

// PlanState is the state of one line of a plan.
type PlanState string

// The states of a plan's line.
const (
	PlanPending PlanState = "pending"
	PlanRunning PlanState = "running"
	PlanWaiting PlanState = "waiting"
	PlanDone    PlanState = "done"
	PlanFailed  PlanState = "failed"
	PlanSkipped PlanState = "skipped"
	PlanUnknown PlanState = "unknown"
)

// Part is what a message of the agent is.
type Part string

// The parts.
const (
	PartText      Part = "text"
	PartReasoning Part = "reasoning"
	PartNote      Part = "note"
)

// RoleServer is that of a message of the server's own: what it tells the agent, beside
// the prompts, or a remark to people.
const RoleServer = "server"

// Told is what a text is that the server itself tells an agent; "": it is no such text.
type Told string

// What the server tells an agent, beside the prompts.
const (
	ToldSummary   Told = "summary"   // what was before, to one that starts anew
	ToldRejection Told = "rejection" // what people said about what they rejected (PER-2)
	ToldOutcome   Told = "outcome"   // what a person found out about a call whose outcome was unknown (CAL-6)
	ToldLate      Told = "late"      // that prompts come now whose turns had ended before the agent was told of them
	ToldGoOn      Told = "go_on"     // that the turn goes on without a new prompt
)

// InterruptMode says when an interrupt takes effect.
type InterruptMode string

// The modes of an interrupt (COO-4).
const (
	InterruptNow      InterruptMode = "now"
	InterruptBoundary InterruptMode = "boundary"
)

// ExecutionState is the first of the three readings that people see (semantics §11).
type ExecutionState string

// The execution states, in the order in which the first that holds is taken.
const (
	StateClosed       ExecutionState = "closed"
	StateUncertain    ExecutionState = "uncertain"
	StateStopping     ExecutionState = "stopping"
	StateUnconfirmed  ExecutionState = "unconfirmed"
	StateRunning      ExecutionState = "running"
	StateRetrying     ExecutionState = "retrying"
	StateWaiting      ExecutionState = "waiting"
	StateBlocked      ExecutionState = "blocked"
	StateQueued       ExecutionState = "queued"
	StateStopped      ExecutionState = "stopped"
	StateFailed       ExecutionState = "failed"
	StateLimitReached ExecutionState = "limit_reached"
	StateReady        ExecutionState = "ready"
	StateIdle         ExecutionState = "idle"
)

// States lists them all.
func States() []ExecutionState {
	return []ExecutionState{
		StateClosed, StateUncertain, StateStopping, StateUnconfirmed, StateRunning, StateRetrying, StateWaiting,
		StateBlocked, StateQueued, StateStopped, StateFailed, StateLimitReached, StateReady, StateIdle,
	}
}

// Needs is what the session needs of its owner: the third reading.
type Needs string

// The needs; the first that holds is shown.
const (
	NeedsNone      Needs = "none"
	NeedsReconcile Needs = "reconcile"
	NeedsDecision  Needs = "decision"
	NeedsBlocked   Needs = "blocked"
	NeedsReview    Needs = "review"
)
