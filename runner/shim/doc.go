// Package shim keeps one command alive without the server that started it.
//
// # Model
//
//	server                          shim (holdfast shim)              command
//	Prepare: folder, lock, order ─▶ tool.Prepare ───────────────────▶ at its gate
//	         facts of the process ◀──
//	(commit call.dispatched)
//	Go ───────────────────────────▶ opens the gate ─────────────────▶ runs
//	Follow: reads the spool      ◀── spool ◀── masked pieces ◀──────── prints
//	Write, End, Status ───────────▶ socket
//	   … the server may die, and another Attach …
//	Follow returns the record    ◀── exit.json, then the lock is free   ended
//
// A shim is this binary in a process of its own: own session, own group, detached.
// It runs one command by package tool, whose limits it so enforces also while no
// server is there: time, output, and how long it goes on alone (Spec.Orphan). While
// a command runs the server keeps one shim ready for the next: it has no child, and
// ends with the server, or when nobody has wanted it for a while.
//
// # The folder of a child
//
//	lock       locked (flock) from before the shim has it until the shim's end
//	spool      frames of masked output; a byte offset says what was consumed
//	stdin.log  numbered frames, each on the disk before it is forwarded
//	sock       where servers attach
//	opened     exists once the gate was about to open
//	exit.json  the record: complete, and on the disk, or not there
//	tombstone  left by who concluded that the outcome is unknown
//
// # Invariants
//
//   - A child is alive if and only if its lock is taken. The server takes it and
//     hands the descriptor on; the command never sees it. Nobody goes by pids.
//   - Evidence is taken lock first, record second: the record is written, after the
//     spool was synced, before the lock is let go.
//   - Nothing of the script has run before Go; Exit.Started says of an ended one
//     whether it has.
//   - A folder runs one command, once. A tombstone is left under the lock, and a
//     shim looks for it under the lock: so either the command runs or its outcome
//     has been called unknown, never both.
//   - What Follow has given before some offset it never gives after it, whichever
//     process asks. Who commits the offset with what was made of the pieces
//     consumes each exactly once.
//   - Nothing secret is on a command line, in the shim's environment, or in the
//     spool: orders go through a socket without a name, output is masked by package tool before it is
//     spooled.
//
// # Failures
//
//   - The server dies before Go: the line to it ends, the shim ends its launcher and
//     records that nothing has run.
//   - The shim is killed before it holds its command at the gate: nothing has run, and
//     another is asked, a few times.
//   - The server dies later: nothing happens to the command.
//   - The shim is killed: the kernel kills the interpreter (parent-death signal). No
//     lock, no record: ErrLost. What the command had detached is found by its
//     markers: tool.KillCall.
//   - The host goes down: as a killed shim. A record that was there is complete, and
//     so is the output before it.
//   - The disk is full: output waits in its pipe, and the command with it; its time
//     and End go on. A record that can't be written is tried again, under the lock.
//     Any other failure to spool ends the command, its reason is "output_failed".
//   - A service manager sends TERM to all of the service: the shim ends its command
//     in order, its reason is "terminated". HUP, INT and QUIT it bears.
//   - Nobody reads what is printed: up to Spec.MaxUnread it is spooled, then it waits in its
//     pipe, and the command with it. End goes on.
//   - A command closes its stdout and lives on: that is its own affair. Whoever follows an
//     agent, of which nobody hears any more then, asks for it (Child.Mute).
//   - A client that doesn't read, or leaves in the middle, holds up only itself. A
//     command that doesn't read its stdin holds up nothing.
//
// Linux is the platform. Elsewhere a killed shim leaves its command running, and
// who may connect is a matter of the folder's permissions alone.
package shim
