// Package journal is the domain: what a session is, what may happen in it, and
// what follows. It is the first file to read.
//
// It holds no I/O, no clock and no SQL, and imports the standard library only.
// The store writes what is defined here; runner, handlers and views speak its
// words. What a permission rule means is decided in journal/policy.
//
// # Words
//
// One word for each thing, in code, documents and pages:
//
//	owner      the signed-in person that a session belongs to; every query carries the owner's id
//	session    one conversation with one agent in one workspace; the unit of order and of leases
//	event      one numbered row of a session's journal; never changed, never deleted
//	seq        its number: 1, 2, 3, … without a gap
//	journal    the events of a session and their blobs: the record; all else is derived
//	projection a table that is derived from the journal, in the transaction of each event
//	blob       a text over 32 KiB, kept beside the events by its hash
//	prompt     what a person submits. Admitted when it is committed, promoted when the agent has it
//	steer      a prompt that joins the open turn at its next boundary; the others queue
//	turn       from the promotion of a prompt to turn.ended; at most one is open in a session
//	chain      a turn with all that it continues: what *continue* took up again
//	step       one unit of an agent's work (a runbook's block); it ends at a boundary
//	boundary   the moment between two steps, when nothing dispatched is unsettled
//	call       one use of a tool, from intent to outcome
//	effect     a call's class: read and idempotent may be run again, effect never by itself
//	attempt    one request to a model provider; a runbook makes none
//	request    a question to the owner whether a call may run; the answer is a decision
//	claim      one worker's lease on a session, while it drains it
//	execution  what a worker does under one claim; its random id is what fences
//	epoch      counts the claims and recoveries of a session
//	phase      how much an execution has in the air: ready, uncertain, safe
//	worker     one running server process
//	drain      the loop of a worker that holds the claim: promote, work, until there is no work
//	adopted    still running when its execution was lost, and followed by the next claim
//	unknown    it was dispatched, and nobody recorded how it ended
//	resolution a person's word on an unknown call or attempt
//	held       nothing is promoted until the owner continues or submits a new prompt
//	parked     a turn that waits for a person: no claim, no process, nothing in memory
//	blocked    work waits for something that is missing, and is not retried meanwhile
//
// Ids are a prefix and a sortable random part: ses_ (session), inp_ (prompt),
// trn_ (turn), msg_, evt_, exe_, att_, call_, per_ (request), usr_, tok_, wsp_
// (workspace). Times are Unix milliseconds in UTC. Text is valid UTF-8 without NUL.
//
// # Invariants
//
//   - An event and all that it changes commit together, or not at all.
//   - A state is left by one event only. An event that can't follow what the
//     journal holds is refused with the code conflict, and nothing is written
//     (Call.Apply, Request.Apply, Attempt.Apply, State.Apply).
//   - State is a function of the events alone: no claim and no clock is in it. What
//     people see adds the claim and the database's clock (State.Execution).
//   - A dispatch is committed before the call does anything, and a result before
//     the agent sees it. So what is dispatched without a result is exactly what
//     may or may not have happened.
//   - A call of class effect is dispatched once. Nothing becomes succeeded because
//     it probably did.
//   - A session with an unresolved unknown doesn't run. It still admits prompts.
//   - A kind that this build doesn't know folds to nothing and is shown as it is
//     (Opaque). Kinds are never renamed, and their data only gains members.
//
// # A prompt
//
//	            prompt.admitted            prompt.promoted
//	submitted ──────────────────▶ admitted ───────────────▶ promoted
//	                                 │ prompt.withdrawn
//	                                 ▼
//	                             withdrawn
//
// # A turn
//
//	 prompt.promoted (no turn open)
//	 continuation.requested            turn.ended
//	────────────────────────────▶ open ──────────▶ completed      the next prompt may open a turn
//	   turn.started               │  ▲             failed         ┐
//	                              ▼  │             stopped        │ the session is held until
//	                             parked            interrupted    │ it is continued, or a new
//	                    a request, or an unknown   limit_reached  ┘ prompt comes
//
// The server's own death ends no turn: the turn stays open, and goes on from the
// journal without a second turn.started.
//
// # A call
//
//	          permission.asked        call.dispatched         call.settled
//	proposed ─────────────────▶ waiting ───────────▶ dispatched ─────────▶ succeeded
//	   │  │                      │   │                 │  ▲  │             failed
//	   │  └── call.dispatched ───┼───┼────────────────▶│  └──┘ again, if   cancelled
//	   │      (allowed by rule)  │   │                 │       read or
//	   │ call.settled            │   │ call.settled    │       idempotent
//	   └────────▶ refused ◀──────┘   └▶ cancelled      │ call.unknown
//	                                                   ▼
//	                              call.evidence ┌─▶ unknown ──call.resolved──▶ unknown, with
//	                                            └──────┘                       its resolution:
//	                                                     happened, did_not_happen, in_part, cannot_tell
//
// A dispatched call whose command still runs when its execution is lost stays
// dispatched, and call.adopted names the state folder whose workers follow it. One
// without a folder lets it go again: it may be run again, as any that is read or
// idempotent.
//
// # A request
//
//	                  permission.replied
//	asked ──▶ pending ──────────────────▶ approved_once | rejected | rejected_with_feedback
//	             │
//	             └─ permission.cancelled ─▶ cancelled
//
// The first answer wins. The states approved_always, expired and superseded are
// part of the contract; this build never makes them.
//
// # An attempt
//
//	prepared ──▶ dispatched ──▶ receiving ──▶ settled
//	   │             │              │
//	   ├─────────────┼──────────────┴──▶ failed    the provider surely didn't process it
//	   │             └──────────────┴──▶ unknown ──attempt.resolved──▶ retry | abandon
//	   └ lost before it was sent: failed
//
// # A claim
//
//	       Claim               something is dispatched
//	none ─────────▶ ready ──────────────────────────▶ uncertain
//	  ▲               │                                │     ▲
//	  │ release       │ expired: step.recovered,       │     │ the next is dispatched
//	  │ (ready, safe) │ the turn goes on               ▼     │
//	  ├───────────────┤                all of it settled: safe
//	  │               │                                │
//	  └───────────────┴── expired: deleted ◀───────────┘
//	  ▲
//	  └─ uncertain and expired: step.recovered, and what was in the air is unknown,
//	     settled by its exit record, or adopted: then the next claim begins uncertain
//
// # What a session shows
//
// State.Execution gives the first that holds: closed, uncertain, stopping,
// unconfirmed, running, retrying, waiting, blocked, queued, stopped, failed,
// limit_reached, ready, idle. State.Needs gives what it needs of its owner.
// Whether the page's own view is live is a third reading, and never mixed in.
package journal
