// Package runner runs sessions without a request: it owns every long-lived
// goroutine of the product but the web server's.
//
// # Model
//
// One Runner is one worker. Its coordinator hears of sessions with work (wake-ups,
// and a sweep as safety net), gives each a place, first come first served
// (COO-3), and runs one drain for it (COO-1). A drain claims the session, folds
// its journal, promotes, and lets the agent work until there is no work (COO-8).
// An agent acts through a Turn alone; each of its methods returns after its
// commit. Nothing is kept in memory that the journal doesn't hold: a drain in any
// process, after any restart, goes on from the same fold.
//
//	wake ─▶ place ─▶ Claim ─▶ fold ─▶ promote ─▶ Agent.Run ─▶ EndTurn ─┬▶ release
//	                            ▲                   │ parked ─▶ Release ┤
//	                            └──── more work ────┴──────────────────┘
//
// # Leases
//
// The keeper renews the claims of the drains that run here, in one statement, by
// the database's clock (LEA-3, LEA-5). Besides, each drain trusts its lease only
// until the monotonic start of its last successful renewal + lease − lease/6;
// past that it dispatches nothing. A slow renewal that succeeds restores trust
// from when it was started, not from when it was answered. Every write is fenced
// by the execution id, so a worker that wakes late writes nothing (LEA-4); it ends
// what it runs (LEA-12).
//
// # Failure
//
// kill -9 at any line is safe. Commands run under shims (package shim), which
// outlive the server: a recovery adopts what still runs and settles what has
// ended by its record. What was dispatched and of which neither is there is
// unknown after recovery, and is never run again by itself. A drain that fails
// expires its claim, so that the sweeper recovers it at once; the third time
// without progress blocks the session (REC-11). An append that fails for want of
// space or connection is repeated with the same event ids until it commits or is
// fenced; meanwhile output waits in its spool and nothing is dispatched (COO-10).
package runner
