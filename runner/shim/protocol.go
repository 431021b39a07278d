package shim

import (
	"time"

	"holdfast/runner/tool"
)

// Spec says what to run, and under which supervision.
type Spec struct {
	tool.Spec               // Output and its Stdin are ignored
	Stdin     bool          // the child reads what Write is given; else /dev/null
	Orphan    time.Duration // how long it may run without a server; 0: 24 h

	// MaxUnread is how much of the spool may lie behind what Child.Read was told, in bytes:
	// then output waits in its pipe, and the command with it, unless it is to end. 0: any.
	MaxUnread int64
}

const defaultOrphan = 24 * time.Hour

// At birth, server and shim talk through a socket that the shim inherits, in lines of
// JSON. Before the first, the server sends a byte, and with it the descriptors of the
// lock and the folder.
//
//	server                         shim
//	order{Spec}            ─▶      prepares the child at its gate
//	                       ◀─      answer{Process}, or answer{Error}: nothing runs
//	order{Go}              ─▶      opens the gate
//	                       ◀─      answer{Gone}, or answer{Error}: see Child.Go
//
// The server then keeps its end open: that counts as being attached.
type order struct {
	Spec *wireSpec `json:"spec,omitempty"`
	Go   bool      `json:"go,omitempty"`
}

// answer is what a shim says, at birth and on its socket.
type answer struct {
	Error   string        `json:"error,omitempty"`
	Ended   bool          `json:"ended,omitempty"` // with Error: it is ErrEnded
	Full    bool          `json:"full,omitempty"`  // with Error: it is ErrFull
	Process *tool.Process `json:"process,omitempty"`
	Gone    bool          `json:"gone,omitempty"`
	Status  *Status       `json:"status,omitempty"`
	Shut    int64         `json:"shut,omitempty"` // to opShut: the first frame that the command didn't take whole
	Mute    *int64        `json:"mute,omitempty"` // to opMute and opAttach: of the spool, behind all that the command wrote on its stdout before it closed that
}

// wireSpec is a Spec in which nothing has to be text: a variable of the
// environment may be no UTF-8.
type wireSpec struct {
	CallID    string        `json:"call_id"`
	N         int           `json:"n"`
	Interp    [][]byte      `json:"interp"`
	Script    []byte        `json:"script"`
	Dir       []byte        `json:"dir"`
	Env       [][]byte      `json:"env"`
	Timeout   time.Duration `json:"timeout"`
	Grace     time.Duration `json:"grace"`
	MaxOutput int64         `json:"max_output"`
	Secrets   [][]byte      `json:"secrets"`
	JSON      bool          `json:"json,omitempty"`
	Vital     bool          `json:"vital,omitempty"`
	Stdin     bool          `json:"stdin"`
	Orphan    time.Duration `json:"orphan"`
	MaxUnread int64         `json:"max_unread,omitempty"`
}

func (s Spec) wire() *wireSpec {
	return &wireSpec{
		CallID: s.CallID, N: s.N, Interp: allBytes(s.Interp), Script: []byte(s.Script), Dir: []byte(s.Dir), Env: allBytes(s.Env),
		Timeout: s.Timeout, Grace: s.Grace, MaxOutput: s.MaxOutput, Secrets: allBytes(s.Secrets), JSON: s.JSON, Vital: s.Vital, Stdin: s.Stdin, Orphan: s.Orphan, MaxUnread: s.MaxUnread,
	}
}

func (w *wireSpec) spec() Spec {
	return Spec{Stdin: w.Stdin, Orphan: w.Orphan, MaxUnread: w.MaxUnread, Spec: tool.Spec{
		CallID: w.CallID, N: w.N, Interp: allStrings(w.Interp), Script: string(w.Script), Dir: string(w.Dir), Env: allStrings(w.Env),
		Timeout: w.Timeout, Grace: w.Grace, MaxOutput: w.MaxOutput, Secrets: allStrings(w.Secrets), JSON: w.JSON, Vital: w.Vital,
	}}
}

func allBytes(list []string) [][]byte {
	out := make([][]byte, 0, len(list))
	for _, s := range list {
		out = append(out, []byte(s))
	}
	return out
}

func allStrings(list [][]byte) []string {
	out := make([]string, 0, len(list))
	for _, b := range list {
		out = append(out, string(b))
	}
	return out
}

// What is asked of a shim on its socket: one request a connection. The answer is
// one line, and the shim closes; but opAttach and opFollow stay open until the
// client leaves. A shim may be older than who asks it: what it doesn't know it refuses.
const (
	opAttach = "attach" // answered with the process; then nothing
	opFollow = "follow" // no answer but a line break each time that the spool has grown
	opStatus = "status"
	opEnd    = "end"
	opStdin  = "stdin" // Length bytes follow the line
	opStrays = "strays"
	opRead   = "read" // the spool was, up to N
	opShut   = "shut" // answered when the command is found to have closed its stdin
	opMute   = "mute" // answered when the command lives on without its stdout
)

// request is a client's line.
type request struct {
	Op     string        `json:"op"`
	Reason string        `json:"reason,omitempty"` // of opEnd
	Grace  time.Duration `json:"grace,omitempty"`
	N      int64         `json:"n,omitempty"` // of opStdin; of opStrays: those since that frame; of opRead
	Length int64         `json:"length,omitempty"`
	EOF    bool          `json:"eof,omitempty"`
}

// Status is what a shim tells of a running command.
type Status struct {
	StartedAt   int64 `json:"started_at"` // Unix ms; 0: it waits at its gate
	Deadline    int64 `json:"deadline"`   // when its time is over; 0: never
	OutputBytes int64 `json:"output_bytes"`
	StdinFrames int64 `json:"stdin_frames"` // the last that was logged
	PID         int   `json:"pid"`
}
