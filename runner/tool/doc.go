// Package tool runs one shell command of a call as a child of this server,
// and ends all of it.
//
// It is the process seam: what starts, feeds, watches and kills a command
// lies behind Prepare, Run, Abandon and KillCall, so that a detached shim can
// take their place without its callers knowing.
//
// # Model
//
//	Prepare ──▶ waiting at its gate ──Run──▶ running ──▶ ended ──▶ all gone
//	                   │                        │ ctx, timeout, Output failed
//	                Abandon                     ▼
//	                   ▼                     TERM, grace, KILL of everything
//	               gone, nothing ran
//
// A call's dispatch is journalled together with the facts of its process
// (host, boot id, group, pid, start time) before the command does anything
// (COO-7). So the start has two phases. Prepare forks a launcher, /bin/sh,
// which reads one line from a pipe, the gate, and has done nothing else. Run
// writes that line, and the launcher becomes the interpreter by exec: same
// pid, same group, same start time. A gate that closes unopened, because
// Abandon closed it or because the server died, ends the launcher.
//
// The script isn't on a command line, where others could read it and where
// 128 KiB is the end. It lies in a sealed anonymous file that the interpreter
// opens by name as a descriptor; its first line begins by closing that
// descriptor, so a command sees 0, 1, 2 and nothing else, and line numbers
// stay. Its stdin is /dev/null, or what Spec.Stdin is. It leads a session of its own: no terminal to
// ask anybody at, and one more mark by which its descendants are known.
//
// # Invariants
//
//   - Nothing of the script has run before Run.
//   - When Run returns, no goroutine of it is left, and no process of the
//     call that can be killed: a call's processes end with their call. A
//     background child outlives its shell by moments only (settleTime, then
//     TERM, stragglerGrace, KILL); with Spec.Vital not even that if a signal
//     ended it.
//   - A signal is sent only to a process whose start time was checked, or to
//     a group whose leader this package still holds unreaped; a reused pid is
//     never hit.
//   - Output is masked before anything else sees it (JRN-8); a piece that isn't
//     text is marked and kept byte for byte (JRN-6).
//     Memory is bounded by MaxOutput, whatever the command prints.
//   - No foreign child is reaped: see BecomeSubreaper.
//
// # Whose process is it
//
// Descendants are found by session and process group, by the chain of
// parents, and by the markers HOLDFAST_CALL and HOLDFAST_DISPATCH in their environment. That finds
// setsid, nohup and double forks. What hides from all three at once, by
// emptying its environment, leaving the session and losing its parent between
// two looks, is not found.
//
// # Failures
//
//   - The server is killed: the kernel kills the interpreter (parent-death
//     signal, which is sent when the thread that forked ends; so that thread
//     is held by a locked goroutine until the child is reaped). Its
//     descendants get no such signal: they live until recovery calls KillCall,
//     before it concludes anything.
//   - Output fails: reading stops, the command is killed at once, Reason is
//     "output_failed". Output blocks: the command waits on its full pipe,
//     while interruption and timeout work as ever.
//   - A process can't be killed (another user's, or stuck in the kernel): it
//     is named in Survivors. If that is the interpreter itself, its end wasn't
//     seen: neither ExitCode nor Signal is set, and one goroutine stays behind
//     to reap it.
//   - Something outside the call holds its output pipes: what they hold when
//     the call's processes have ended is read, and no more.
//
// Linux is the platform; Degraded tells what others lack.
package tool
