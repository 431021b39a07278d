// Package store is the journal in SQL, on SQLite and on Postgres. It is the only
// package that knows SQL. Every exported method is one transaction, or one
// consistent read; nothing but SQL happens inside it.
//
// # The four doors
//
// Four ways lead into a journal, and each checks something else:
//
//	who      methods                                        what is checked
//	people   CreateSession, SubmitPrompt, WithdrawPrompt,   owner, key, state, limits
//	         Decide, ResolveCall, ResolveAttempt, Continue,
//	         RequestInterrupt, Archive
//	a run    Append, EndTurn, Release, PromoteNext,         the execution id, in the statement
//	         PromoteSteers                                  that locks the session and gives seqs
//	sweeper  Recover (also inside Claim), RecoverOutput,    the claim is as it was seen, and expired;
//	         Block, Unblock                                 or there is no claim
//	evidence Evidence                                       the call is unknown; it can add one
//	                                                        call.evidence and nothing else
//
// All of them end in one function that writes an event (locked.appendDraft), and
// one that projects it (project). verify runs the same projector over the journal
// and compares.
//
// # Claims
//
// Model. A claim is a row: one worker's lease on one session, with a random
// execution id, a phase and an end by the database's clock. session.execution_id
// repeats the id. The two are one fact: every method that sets or clears one
// does so to the other, in one transaction, the session's row first.
//
//	Claim          takes it, if there is work and nobody holds it; recovers an expired one first
//	RenewClaims    prolongs those whose drains run in this process, in one statement
//	Append         the fence: UPDATE session SET next_seq = next_seq + n
//	               WHERE id = ? AND execution_id = ? RETURNING …
//	EndTurn        ends the turn, and releases unless there is more work
//	Release        releases, if the journal is as the drain has folded it
//	ExpireClaim    of a failed drain, and ExpireFolder of dead workers: recover it now
//	RecoverOutput  appends what a finished command of an expired one had left unread
//	Recover        concludes an expired one
//
// Invariants.
//
//   - At most one claim a session. A claim that is live is never taken by another
//     worker; one's own live claim in phase uncertain is never entered again.
//   - Who doesn't hold the execution id writes nothing. The fence, the row's lock
//     and the seqs are one statement, so that no check can grow old before its write.
//   - Equality of the random id decides, not the order of epochs: after a failover
//     that lost a commit, two claims could have the same epoch, never the same id.
//   - Grants and ends are by one clock: clock_timestamp() of Postgres, the host's
//     on SQLite. A worker's own trust in its lease is the runner's business.
//   - A phase changes in the transaction of the fact itself. So phase uncertain
//     covers every moment in which something dispatched has no recorded end.
//   - What is adopted needs no claim to go on. A claim that follows it begins
//     uncertain, is of the state folder that keeps it, and isn't released before
//     its end is recorded.
//
// Failure handling.
//
//   - The worker dies: its claim expires. The sweeper of any worker recovers it:
//     deleted without a word in phase safe, or if a newer assistant message
//     superseded it; else one step.recovered. What was in the air is adopted if its
//     shim says that it runs, settled if there is its exit record, else unknown.
//   - What a folder adopted, and no worker of it lives: Claim and Block, by a worker
//     of another folder, make an effect unknown and let go what may be run again.
//   - Two sweepers, or a sweeper and a late renewal: the deletion is guarded by id,
//     phase, assistant message and "still expired"; who comes second writes nothing.
//     A session's row that is locked belongs to somebody who writes, so is alive.
//   - A commit whose answer was lost: the same drafts are appended again with
//     Retried; their event ids are unique, so what had committed is found.
//   - The process starts again: the state folder's lock proves that earlier workers
//     of this folder are dead, and their claims expire at once. No others do.
//
// # Locks
//
// Always in the order session row, claim, inputs, events, spool. Statements that lock the
// claims of many sessions do it in the order of session ids, and commit alone on
// Postgres: in a batch with others they would turn that order around.
//
// # Writers
//
// A method is handed to a writer, which owns one connection: one writer on SQLite,
// four on Postgres, chosen by a hash of the session id. A writer takes what is
// queued, at most 256, without waiting; commits once; then answers all. An idle
// store commits at once, a busy one shares its fsync. On Postgres each batch is in
// the order of session ids, else two servers' batches deadlock.
//
// In a batch each method is a savepoint. A refusal (a journal.Error, or a violated
// constraint) is rolled back to it and concerns its method alone. Any other error
// rolls the whole batch back, and its methods are run one by one; so a method may
// run twice, and assigns its results, never adds to them. If no transaction can be
// opened, all that were to be in it are told at once. A batch runs under its
// writer's context, never a caller's: a caller that goes away would interrupt all.
// If COMMIT itself fails, nobody knows: every method of the batch answers
// unavailable, "send it again with the same key". After an fsync that failed the
// process must end, since only opening the file anew tells what is in it.
//
// # Reading
//
// A read is one snapshot (repeatable read on Postgres, a read transaction on
// SQLite), in pages by key. No cursor and no transaction stays open while
// something is written to a network.
//
// # Wake-ups
//
// After a commit the hub tells who waits in this process: readers of that session,
// and runners if there may be work. On Postgres the same goes to other processes,
// gathered for 10 ms, by one NOTIFY outside any write transaction; one connection
// listens. A wake-up carries ids, may be lost or come twice, and decides nothing:
// who hears it reads the journal. Runners poll besides, and the store does for all
// who follow a session.
//
// For sessions that a Follower reads the hub keeps the latest events that this
// process has committed. They are the journal's, without a gap, and only spare
// its readers the read: what isn't there, or may not be all, is read as ever.
package store
