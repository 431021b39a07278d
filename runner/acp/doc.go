// Package acp runs agents that speak the Agent Client Protocol: opencode, Claude
// Code, Codex, Gemini and others, each as a process under a shim of its own.
//
// # Model
//
//	spool ─▶ conn (lines, with their places) ─▶ turn (facts) ─▶ Process.Commit ─▶ journal
//	                                              ▲                  │
//	              rules, people ── Permit ────────┘                  └─ frames ─▶ stdin
//
// The process outlives turns and servers. What it writes is read in one ordered
// loop; each commit holds the facts made of some lines, the place behind them, and
// what the process is told because of them. So after any death whoever comes reads
// on at that place, and tells what was not told, once.
//
// Nothing is kept in memory that the loop could not do without: which request of
// the agent is open stands in the store, what a call is and how much of its output
// is known in the journal. What the memory has besides, such as the last text of a
// tool's output, only saves repeating it.
//
// # A turn
//
// A prompt is an attempt: prepared and dispatched in the commit of its frame,
// receiving at its first update, settled by its answer. The id of a request is the
// number of its frame. ACP has no receipt for a prompt, so one whose process died
// is unknown, and is never sent again by itself (ATT-3).
//
// A tool call of the agent is a call: proposed when it is first heard of, dispatched
// when the agent says that it runs or when it is allowed to, settled by the agent's
// word. What the agent asks permission for is judged by the session's rules, then by
// people. What it doesn't ask for it does: that it was not asked stands in the
// journal.
package acp
