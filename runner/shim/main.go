package shim

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"holdfast/runner/tool"
)

// Crash is called at the points at which the crash suite kills a shim. main sets
// it in builds that have crash points.
var Crash = func(string) {}

// exitUsage is the exit code of a shim that nobody ordered.
const exitUsage = 2

// Main is the process holdfast shim. It returns the process's exit code when the
// command has ended and its record is written; who calls it leaves with that at
// once, which lets go of the lock.
func Main() int {
	p, err := inherit()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "holdfast: the command shim is internal: the server starts it for each command. Nothing was done.")
		return exitUsage
	}
	nameProcess()
	p.heed()
	if !p.take() {
		return 0
	}
	Crash("shim.started")
	exit := p.live()
	Crash("shim.before_record")
	if err := p.keepRecord(exit); err != nil {
		return 1 // without a record, the outcome is unknown
	}
	Crash("shim.after_record")
	return 0
}

// inherit takes over what the server handed on. The command is to see nothing of it.
func inherit() (*process, error) {
	unix.CloseOnExec(lineFD)
	line, err := lineOf(os.NewFile(lineFD, "line"))
	if err != nil {
		return nil, err
	}
	p := &process{
		line: line, clients: 1, // who holds the line's other end
		followers: map[chan struct{}]bool{}, muted: make(chan struct{}),
	}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p, tool.BecomeSubreaper()
}

// heed sees to it that what is aimed at the server ends no command, and that a
// service manager that ends everything of the service ends the command in order.
// Signals are caught, not ignored: what is ignored is ignored by the command, too.
func (p *process) heed() {
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGXFSZ)
	told := make(chan os.Signal, 1)
	signal.Notify(told, unix.SIGTERM)
	go func() {
		<-told
		p.end(ReasonTerminated, 0)
	}()
}
