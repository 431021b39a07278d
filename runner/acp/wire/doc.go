// Package wire reads and writes the lines of the Agent Client Protocol, version 1:
// JSON-RPC 2.0, one object a line, over the stdin and stdout of an agent's process.
//
// It does no I/O. The agent runs under a shim, whose spool somebody else reads:
// bytes come in by Lines.Feed, and lines to write go out as byte slices.
//
//	spool ──bytes──▶ Lines ──Line──▶ Parse ──Message──▶ Decode, ParseUpdate
//	stdin ◀──line── Request, Notify, Result, ErrorAnswer
//
// # Invariants
//
//   - A Line says at which byte of the stream it ends: who commits that with what
//     was made of the line has consumed exactly the lines up to it.
//   - Memory is bounded by one line of at most MaxLine bytes and what is made of it;
//     the time to read a line grows with its length and not faster.
//   - Nothing is lost in translation: a Message keeps its line, what a tool was given
//     and gave stays JSON, and an id is echoed and compared byte for byte.
//   - Nothing that an agent sends panics.
//
// # What isn't as the protocol has it
//
// Agents differ, and the protocol grows. What a reader can do without never costs
// the rest: an unknown member is passed over, an unknown word of an enumeration is
// kept as text, an optional member of a wrong type, or null, counts as absent. An
// update, content block or piece of tool content whose kind is unknown, or which
// lacks what its kind requires, becomes Unknown… with its JSON. Member names are
// matched exactly; of two with one name the last counts.
//
// A line that is no message at all is ErrNotACP, and its reader decides: an agent
// may print a warning where only ACP belongs.
package wire
