package tool

import (
	"fmt"
	"os"
	"time"
)

// callVariable marks every process of a call in its environment (COO-7),
// dispatchVariable which dispatch of it: what may be run again is, under the
// same id, and who ends what an earlier dispatch left must not end that.
const (
	callVariable     = "HOLDFAST_CALL"
	dispatchVariable = "HOLDFAST_DISPATCH"
)

// Why a run ended, if it wasn't by itself: the values of Result.Reason.
const (
	ReasonTimeout      = "timeout"
	ReasonInterrupted  = "interrupted"
	ReasonOutputFailed = "output_failed"
	ReasonStartFailed  = "start_failed"
)

const (
	defaultGrace     = 5 * time.Second
	defaultMaxOutput = 10 << 20

	// settleTime is how long descendants may end by themselves once the
	// interpreter has: the tee behind `exec > >(tee log)` needs a moment.
	settleTime = 500 * time.Millisecond
	// stragglerGrace is TERM to KILL, at most, for those that then still run.
	stragglerGrace = 5 * time.Second
	// killPatience bounds the wait for what was sent a KILL; a process stuck
	// in the kernel may never take it.
	killPatience = 5 * time.Second

	// lookInterval is how often a run looks at its processes: to know them
	// when they hide later, and to reap ended orphans.
	lookInterval = 5 * time.Second
)

// Spec says what to run.
type Spec struct {
	CallID string   // the call: visible characters, no blanks
	N      int      // its how many-th dispatch this is
	Interp []string // {"sh", "-eu"} or {"bash", "-eu"}; the first is looked up in Env's PATH
	Script string
	Dir    string // absolute workspace path

	// Env is the complete environment; BaseEnv makes an allow-listed one.
	// Prepare adds HOLDFAST_CALL and HOLDFAST_DISPATCH and leaves out what no shell can hold as a
	// variable.
	Env []string

	Timeout time.Duration // 0: none; on expiry the run is ended like an interruption
	Grace   time.Duration // TERM to KILL; 0: 5 s

	// MaxOutput bounds the kept output in bytes (0: 10 MiB). The first seven
	// eighths are delivered live. What follows is kept in a ring of the last
	// eighth and delivered at the end; what the ring loses is counted.
	MaxOutput int64

	Secrets []string // masked in the output
	JSON    bool     // stdout is lines of JSON, which no mask may make unreadable

	// Alone says that this process has no other command: whatever comes back to it
	// as a child, since it is the subreaper, is this one's, also without a marker.
	Alone bool

	// Vital says that what the command has started is nothing without it: if a signal
	// ends it, that is killed at once, lest it go on by itself with nobody to tell.
	Vital bool

	// Stdin is what the command reads; nil: /dev/null. The caller closes its own
	// descriptor when Prepare has returned.
	Stdin *os.File

	// Output receives the output in order, one call at a time, at most 16
	// pieces at once, none longer than 4 KiB, each at most 100 ms after it was
	// read (JRN-5); what may be the start of a secret or of a character waits
	// for its rest. It
	// may block: output then waits in its pipe. Run returns only after it has,
	// so it must heed its caller's own context. An error stops the reading and
	// kills the command. Nil discards.
	Output func([]Piece) error
}

// Piece is one masked piece of output, never ending inside of a character.
type Piece struct {
	Stream string // "stdout" or "stderr"
	// Offset counts masked bytes over the whole call, both streams together
	// in order of arrival. A piece starts where the one before it ended, plus
	// Dropped.
	Offset  int64
	Text    string // the bytes; valid UTF-8 without NUL unless Binary
	Binary  bool   // it isn't text: to be kept byte for byte (JRN-6)
	Dropped int64  // bytes lost just before this piece
}

// Process are the facts journalled with the dispatch (COO-7). Where the
// platform can't tell, they are empty.
type Process struct {
	Host         string `json:"host"`
	BootID       string `json:"boot_id"`
	PIDs         string `json:"pid_namespace,omitempty"` // in which PID and PGID name it
	PID          int    `json:"pid"`
	PGID         int    `json:"pgid"`
	StartedTicks uint64 `json:"started_ticks"` // clock ticks after boot
}

// Result tells how a run ended.
type Result struct {
	// ExitCode and Signal ("SIGTERM") tell how the interpreter ended: exactly
	// one is set if its end was seen, none otherwise.
	ExitCode *int
	Signal   string

	// Reason is "" for an end by itself, else one of the Reason constants or that
	// of an Interruption. An interrupted command that exits 0 in its grace is still
	// interrupted.
	Reason string
	// Opened says that the gate was opened. If not, nothing of the script has run.
	Opened bool
	// Err is what lies behind Reason, or what kept us from seeing all of the
	// end; for a log.
	Err error

	OutputBytes  int64 // all masked bytes, the dropped ones included
	DroppedBytes int64
	Survivors    []int // pids that could not be killed; normally empty
}

// Interruption is a cause with which to cancel the context of Run, where more is
// to be said than that the command is to end.
type Interruption struct {
	Reason string        // the Result's; "": ReasonInterrupted
	Grace  time.Duration // TERM to KILL; 0: Spec.Grace
}

func (i *Interruption) Error() string {
	return fmt.Sprintf("the command is to end: %s", i.reason())
}

func (i *Interruption) reason() string {
	if i.Reason == "" {
		return ReasonInterrupted
	}
	return i.Reason
}
