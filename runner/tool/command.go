package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var (
	errUsed     = errors.New("command was already run or abandoned")
	errUnseen   = errors.New("end of the command was not seen")
	errNotAlive = errors.New("command ended at its gate")
)

// Command is one prepared command. Its process exists from Prepare on; end it
// by exactly one of Run and Abandon.
type Command struct {
	spec    Spec
	cmd     *exec.Cmd
	process Process
	gate    *os.File
	stdout  *os.File
	stderr  *os.File
	used    atomic.Bool
	opened  chan struct{} // the gate is open
	printed atomic.Int64  // masked bytes so far
	mute    chan struct{} // see Mute

	ended   chan struct{} // the child has ended; on Linux it is still a zombie
	killed  bool          // by a signal; read after ended
	release chan struct{} // closed by us: it may be reaped
	gone    chan struct{} // reaped, holder finished
	failure error         // of the holder; read after gone
}

// Prepare forks a launcher that waits at its gate, and returns when it exists.
// Nothing of the script has run. An error means that there is no process:
// the workspace or the interpreter is missing, or the system refuses.
func Prepare(spec Spec) (*Command, error) {
	if err := spec.check(); err != nil {
		return nil, fmt.Errorf("prepare command: %w", err)
	}
	cmd, err := launchCommand(spec)
	if err != nil {
		return nil, fmt.Errorf("prepare command: %w", err)
	}
	c := &Command{
		spec: spec, cmd: cmd, opened: make(chan struct{}), mute: make(chan struct{}),
		ended: make(chan struct{}), release: make(chan struct{}), gone: make(chan struct{}),
	}
	if err := c.launch(); err != nil {
		return nil, fmt.Errorf("prepare command: %w", err)
	}
	return c, nil
}

// launch opens the pipes, starts the child and closes what only it needs.
func (c *Command) launch() (err error) {
	var ours, theirs []*os.File
	defer func() {
		closeAll(theirs)
		if err != nil {
			closeAll(ours)
		}
	}()
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	gate, opener := pipe()
	outR, outW := pipe()
	errR, errW := pipe()
	ours, theirs = []*os.File{opener, outR, errR}, []*os.File{gate, outW, errW}
	if err != nil {
		return err
	}
	script, err := scriptFile(scriptPrefix + c.spec.Script)
	if err != nil {
		return err
	}
	theirs = append(theirs, script)
	c.gate, c.stdout, c.stderr = opener, outR, errR
	c.cmd.Stdout, c.cmd.Stderr = outW, errW
	if c.spec.Stdin != nil { // a nil file in an interface isn't nil
		c.cmd.Stdin = c.spec.Stdin
	}
	c.cmd.ExtraFiles = []*os.File{gate, script} // gateFD, scriptFD

	started := make(chan error, 1)
	go c.hold(started)
	if err = <-started; err != nil {
		<-c.gone
		return err
	}
	if c.process, err = processOf(c.cmd.Process.Pid); err != nil {
		c.endLauncher()
	}
	return err
}

// hold starts the child and reaps it. The kernel sends the parent-death signal
// when the thread that forked ends, not the process; so this goroutine keeps
// its thread from the fork until the child is reaped.
func (c *Command) hold(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(c.gone)
	defer func() {
		if r := recover(); r != nil {
			c.failure = fmt.Errorf("panic while holding the command: %v", r)
			select {
			case started <- c.failure:
			default: // it had started; nobody must wait for its end in vain
				closeOnce(c.ended)
			}
		}
	}()
	forget, err := startManaged(c.cmd)
	started <- err
	if err != nil {
		return
	}
	defer forget()
	if c.killed = awaitEnd(c.cmd); c.killed && c.spec.Vital {
		killGroupOfZombie(c.cmd) // what is near, before it notices; endAll ends the rest
	}
	close(c.ended)
	<-c.release
	var exit *exec.ExitError
	if err := reap(c.cmd); err != nil && !errors.As(err, &exit) {
		c.failure = fmt.Errorf("reap command: %w", err)
	}
}

// Process returns the facts to journal with the dispatch, before Run.
func (c *Command) Process() Process { return c.process }

// Opened returns a channel that Run closes when the gate is open. It stays open
// if Run can't open it.
func (c *Command) Opened() <-chan struct{} { return c.opened }

// OutputBytes returns how many masked bytes the command has printed so far. It
// never waits.
func (c *Command) OutputBytes() int64 { return c.printed.Load() }

// Mute returns a channel that is closed when nothing of the command has its stdout any
// more, and all that came there is delivered, but for what the bound keeps until the end.
func (c *Command) Mute() <-chan struct{} { return c.mute }

// Ended returns a channel that is closed when the interpreter has ended.
func (c *Command) Ended() <-chan struct{} { return c.ended }

// Abandon ends the launcher at its closed gate: nothing of the script has run
// or will. After Run it does nothing, so it may be deferred.
func (c *Command) Abandon() {
	if c.used.Swap(true) {
		return
	}
	c.endLauncher()
	closeAll([]*os.File{c.gate, c.stdout, c.stderr})
}

// endLauncher kills a child whose gate wasn't opened, and reaps it. It waits
// for nothing but its gate, so a KILL interrupts no work.
func (c *Command) endLauncher() {
	_ = c.cmd.Process.Kill() // it may have ended
	<-c.ended
	close(c.release)
	<-c.gone
}

// Run opens the gate, streams the output and returns when the interpreter and
// all of its descendants have ended and all output is delivered. Descendants
// that the script left in the background are ended with it (see the package
// document). When ctx is cancelled or the timeout expires, all get a TERM and,
// after Spec.Grace, a KILL. If ctx has ended already, the gate stays closed.
// No goroutine of the run is left, but for the case of an interpreter that
// can't be killed.
func (c *Command) Run(ctx context.Context) Result {
	if c.used.Swap(true) {
		return Result{Reason: ReasonStartFailed, Err: errUsed}
	}
	if err := ctx.Err(); err != nil {
		c.endLauncher()
		closeAll([]*os.File{c.gate, c.stdout, c.stderr})
		return c.result(interrupted(ctx))
	}
	out := newOutput(c.spec, c.stdout, c.stderr)
	out.printed, out.mute = &c.printed, c.mute
	out.start()
	h := newHunt(c.spec.CallID, c.spec.N, c.process)
	h.held, h.alone = true, c.spec.Alone
	result := c.watch(ctx, out, h)
	c.endAll(ctx, h, &result)
	var err error
	result.OutputBytes, result.DroppedBytes, err = out.finish()
	if err != nil {
		result.Err = errors.Join(result.Err, err)
		if result.Reason == "" { // it failed after the end, at the tail for one
			result.Reason = ReasonOutputFailed
		}
	}
	return c.result(result)
}

// watch opens the gate and waits for the first thing that ends the run. An end
// that was seen comes before whatever asks for one.
func (c *Command) watch(ctx context.Context, out *output, h *hunt) Result {
	_, err := c.gate.WriteString(gateOpen)
	_ = c.gate.Close()
	if err != nil {
		return Result{Reason: ReasonStartFailed, Err: fmt.Errorf("%w: %w", errNotAlive, err)}
	}
	close(c.opened)
	var expired <-chan time.Time
	if c.spec.Timeout > 0 {
		timer := time.NewTimer(c.spec.Timeout)
		defer timer.Stop()
		expired = timer.C
	}
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	var why Result
	for why.Reason == "" {
		select {
		case <-c.ended:
			return Result{}
		case <-ctx.Done():
			why = interrupted(ctx)
		case <-expired:
			why = Result{Reason: ReasonTimeout}
		case <-out.failed:
			why = Result{Reason: ReasonOutputFailed}
		case <-look.C:
			h.look()
			reapOrphans()
		}
	}
	select {
	case <-c.ended:
		return Result{}
	default:
		return why
	}
}

// interrupted is the result of a run that its context ended.
func interrupted(ctx context.Context) Result {
	r := Result{Reason: ReasonInterrupted, Err: context.Cause(ctx)}
	var how *Interruption
	if errors.As(r.Err, &how) {
		r.Reason = how.reason()
	}
	return r
}

// graceOf is how long a run that r ends has from TERM to KILL.
func (c *Command) graceOf(r *Result) time.Duration {
	var how *Interruption
	if errors.As(r.Err, &how) && how.Grace > 0 {
		return how.Grace
	}
	if c.spec.Grace > 0 {
		return c.spec.Grace
	}
	return defaultGrace
}

// endAll ends what is left of the call, as the result's reason wants it, and
// reaps the child. While it works the child is a zombie at most, so that its
// number, which is the group's, can't become somebody else's.
func (c *Command) endAll(ctx context.Context, h *hunt, r *Result) {
	ctx = context.WithoutCancel(ctx) // ctx may be what ended the run
	if quick := r.Reason == "" && h.alone && lastChild(c.process.PID); !quick {
		r.Survivors = c.endEach(ctx, h, r)
	}
	if slices.Contains(r.Survivors, c.process.PID) { // its holder stays with it
		close(c.release)
		reapOrphans()
	} else {
		c.reap()
	}
	if h.alone && len(r.Survivors) == 0 && !childless() {
		h.held = false // the group's number is free
		r.Survivors = c.endEach(ctx, h, r)
		reapOrphans()
	}
	r.Err = errors.Join(r.Err, h.err)
}

// endEach ends what can be found of the call, and returns what is left.
func (c *Command) endEach(ctx context.Context, h *hunt, r *Result) (survivors []int) {
	grace := c.graceOf(r)
	switch r.Reason {
	case "":
		if c.spec.Vital && c.killed {
			return h.end(ctx, 0)
		}
		if h.wait(ctx, settleTime) {
			return nil
		}
		return h.end(ctx, min(grace, stragglerGrace))
	case ReasonOutputFailed, ReasonStartFailed:
		return h.end(ctx, 0)
	default:
		return h.end(ctx, grace)
	}
}

// reap reaps the child, which has ended, and what it has orphaned.
func (c *Command) reap() {
	close(c.release)
	<-c.gone
	reapOrphans()
}

// result adds whether the child began and how it ended.
func (c *Command) result(r Result) Result {
	select {
	case <-c.opened:
		r.Opened = true
	default:
	}
	select {
	case <-c.gone:
	default:
		r.Err = errors.Join(r.Err, errUnseen)
		return r
	}
	r.Err = errors.Join(r.Err, c.failure)
	if c.cmd.ProcessState == nil {
		return r
	}
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case ok && status.Signaled():
		r.Signal = unix.SignalName(status.Signal())
		if r.Signal == "" {
			r.Signal = fmt.Sprintf("signal %d", int(status.Signal()))
		}
	default:
		code := c.cmd.ProcessState.ExitCode()
		r.ExitCode = &code
	}
	return r
}

func closeOnce(ch chan struct{}) {
	select {
	case <-ch:
	default:
		close(ch)
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
