package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/journal"
	"holdfast/runner/shim"
	"holdfast/runner/tool"
	"holdfast/store"
)

// Why a command was ended, if a person did not do it: the reasons that its record has.
const (
	reasonStopped   = "the server was stopped"
	reasonLeaseLost = "its server lost the session"
	reasonStray     = "it belonged to no execution any more"
)

// execution follows one dispatch of a call to its end. It may have been begun
// by a server that is gone: all that it must know is in the journal and with the shim.
type execution struct {
	t      *Turn
	id     shim.ID
	ctx    context.Context
	cancel context.CancelCauseFunc // ends ctx

	at    int64 // of the spool: all before it is in the journal
	fault error // an append that was refused
}

func (t *Turn) newExecution(ctx context.Context, id shim.ID) *execution {
	x := &execution{t: t, id: id}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	return x
}

func (x *execution) spec(in Shell) shim.Spec {
	o := &x.t.r.o
	limit, _ := journal.CallTime(in.TimeoutS)
	interp := []string{"sh", "-eu"}
	if in.Shell == "bash" {
		interp[0] = "bash"
	}
	return shim.Spec{
		Spec: tool.Spec{
			CallID: x.id.CallID, N: x.id.N, Interp: interp, Script: in.Command, Dir: x.t.fold.State.Workspace, Env: o.Env,
			Timeout: limit, MaxOutput: o.MaxOutput, Secrets: x.t.masks(),
		},
		Orphan: o.Orphan,
	}
}

// run opens the gate of a command that was dispatched and brings it to its end.
func (x *execution) run(child *shim.Child) error {
	// Suspended between the commit and here, past the lease? Then it may be
	// somebody else's by now, and what has not begun must not begin. Of a stop it
	// is known, too, that nothing has run: the gate stays closed, and that is settled.
	run := x.t.run
	switch err := run.trust.wait(run.ctx); {
	case errors.Is(err, ErrLeaseLost):
		return err
	case err != nil:
		child.Abandon()
		x.cancel(err)
		return x.settle(shim.Exit{})
	}
	store.Crash("call.before_run")
	if err := child.Go(); err != nil { // whether it has begun, its record tells
		x.t.r.log.Warn("start a command", slog.String("call", x.id.CallID), slog.Any("error", err))
	}
	return x.attend(child, 0)
}

// attend follows the command from an offset of its spool to its end, and records
// what became of it. errDetached: it goes on, and so does its claim.
func (x *execution) attend(child *shim.Child, from int64) error {
	x.at = from
	exit, err := x.follow(child)
	store.Crash("call.before_settle")
	run := x.t.run
	switch cause := context.Cause(run.ctx); {
	case errors.Is(cause, ErrLeaseLost):
		return cause
	case err == nil:
		return x.settle(exit)
	case errors.Is(err, shim.ErrLost):
		return err
	case errors.Is(cause, ErrShutdown): // also of output that couldn't be written any more: it is in the spool
		return errDetached
	case x.fault != nil: // fenced, or the call has moved on: what runs is nobody's (LEA-12)
		x.end(child, reasonLeaseLost)
	}
	return err
}

// follow reads the command's output until it has ended, and watches for
// interrupts, lease loss and shutdown.
func (x *execution) follow(child *shim.Child) (shim.Exit, error) {
	r, run := x.t.r, x.t.run
	run.executing(x.cancel)
	defer run.executing(nil)
	following, detach := context.WithCancelCause(context.WithoutCancel(x.ctx))
	defer detach(nil)
	watching, stop := context.WithCancel(following)
	var wg sync.WaitGroup
	r.spawn(&wg, "watch "+x.id.CallID, func() { r.watch(watching, run) })
	r.spawn(&wg, "heed "+x.id.CallID, func() { x.heed(watching, child, detach) })
	defer wg.Wait()
	defer stop()
	for {
		exit, err := child.Follow(following, x.at, x.output)
		if err == nil || errors.Is(err, shim.ErrLost) || x.fault != nil || following.Err() != nil {
			return exit, err
		}
		// No descriptors left, say. The command is none the worse: it is looked for again.
		r.log.Warn("follow a command", slog.String("call", x.id.CallID), slog.Any("error", err))
		select {
		case <-following.Done():
			return exit, context.Cause(following)
		case <-time.After(retryEvery):
		}
	}
}

// heed waits for the reason to end the command, or to let go of it.
func (x *execution) heed(ctx context.Context, child *shim.Child, detach context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
		return
	case <-x.ctx.Done():
	}
	switch cause := context.Cause(x.ctx); {
	case errors.Is(cause, ErrLeaseLost):
		x.end(child, reasonLeaseLost)
		detach(cause)
	case !errors.Is(cause, ErrShutdown):
		x.end(child, tool.ReasonInterrupted)
	case x.t.r.o.StopCommands && x.end(child, reasonStopped): // else its shim can't be reached: the stop must not wait for it
	default:
		detach(errDetached)
	}
}

// end reports whether the shim has taken it that the command is to end.
func (x *execution) end(child *shim.Child, reason string) bool {
	err := child.End(reason, 0)
	if err != nil {
		x.t.r.log.Error("end a command", slog.String("call", x.id.CallID), slog.String("reason", reason), slog.Any("error", err))
	}
	return err == nil
}

// output journals pieces as they come, in one commit with the offset behind
// them (JRN-5): what was consumed is never consumed again. While the journal
// can't be written it blocks, and output waits in its spool (COO-10).
func (x *execution) output(pieces []tool.Piece, next int64) error {
	err := x.t.append(x.ctx, store.Append{Drafts: outputDrafts(x.id, pieces), Spool: x.t.r.spool(x.id, next)})
	store.Crash("call.output")
	if err != nil {
		x.fault = err
		return err
	}
	x.at = next
	return nil
}

func outputDrafts(id shim.ID, pieces []tool.Piece) []journal.Draft {
	drafts := make([]journal.Draft, 0, len(pieces))
	for _, p := range pieces {
		drafts = append(drafts, draft(journal.Agent(), &journal.CallOutput{
			CallID: id.CallID, Stream: p.Stream, Offset: p.Offset, Text: journal.Text{S: p.Text, Raw: p.Binary}, Dropped: p.Dropped,
		}))
	}
	return drafts
}

func (r *Runner) spool(id shim.ID, readTo int64) *store.Spool {
	return &store.Spool{CallID: id.CallID, N: id.N, StateFolderID: r.o.StateFolderID, ReadTo: readTo}
}

// settle records how the command ended, and ends the turn if that was asked for
// or a bound was reached.
func (x *execution) settle(e shim.Exit) error {
	t := x.t
	c := t.fold.Call(x.id.CallID)
	if c == nil {
		return errMoved
	}
	if c.AdoptedBy == "" && cutShort(c, e) {
		return nil // it stays dispatched, and is dispatched again
	}
	body, left := outcome(c, e)
	fact := draft(journal.Server(), body)
	if left != nil {
		fact = draft(journal.Server(), &journal.CallUnknown{CallID: c.ID, Since: c.DispatchedAt, Evidence: []journal.Evidence{*left}})
	}
	phase := journal.PhaseSafe
	if adopted := t.fold.State.Adopted(); slices.ContainsFunc(adopted, func(o journal.OpenCall) bool { return o.ID != c.ID }) {
		phase = "" // something else is still in the air
	}
	err := t.append(x.ctx, store.Append{Phase: phase, Drafts: []journal.Draft{fact}})
	store.Crash("call.after_settle")
	if err != nil {
		return err
	}
	if cause := context.Cause(x.ctx); cause != nil && body.State == journal.CallCancelled {
		return cause
	}
	return t.overdue(x.ctx)
}

// outcome is what a record of an end says about its call. left, if not nil, is
// the evidence that its end was asked for and not seen: its outcome is unknown
// (COO-4, CAL-7).
func outcome(c *journal.Call, e shim.Exit) (body *journal.CallSettled, left *journal.Evidence) {
	body = &journal.CallSettled{
		CallID: c.ID, State: journal.CallFailed, ExitCode: e.ExitCode, Signal: e.Signal, Reason: e.Reason,
		OutputBytes: e.OutputBytes, DroppedBytes: e.DroppedBytes,
	}
	if e.Started {
		body.StartedAt, body.EndedAt = e.StartedAt, e.EndedAt
	}
	switch {
	case !e.Started:
		body.State, body.Reason = journal.CallCancelled, journal.ReasonNotStarted
	case e.Reason == "" && e.ExitCode != nil && *e.ExitCode == 0:
		body.State = journal.CallSucceeded
	case slices.Contains([]string{"", tool.ReasonTimeout, tool.ReasonOutputFailed, tool.ReasonStartFailed}, e.Reason):
	default:
		body.State = journal.CallCancelled
	}
	if len(e.Survivors) == 0 {
		return body, nil
	}
	still := fmt.Sprintf("processes that could not be ended: %v", e.Survivors)
	if e.Reason != "" && c.Effect == journal.EffectEffect {
		left = &journal.Evidence{Type: journal.EvidenceProcess, Text: journal.Cut(fmt.Sprintf("It was to be ended (%s), but it left %s. It may still be under way.", e.Reason, still), 1000)}
	}
	body.Reason = journal.Cut(strings.TrimPrefix(body.Reason+"; "+still, "; "), 1000)
	return body, left
}

// overdue ends a turn whose last command ran into the bound of a call (COO-5).
// It is read from the journal: the command may have ended while no server ran.
func (t *Turn) overdue(ctx context.Context) error {
	if len(t.fold.Calls) == 0 {
		return nil
	}
	c := t.fold.Calls[len(t.fold.Calls)-1]
	if c.TurnID != t.ID() || c.State != journal.CallFailed || !strings.HasPrefix(c.Reason, tool.ReasonTimeout) {
		return nil
	}
	c, err := t.WholeCall(ctx, c.ID)
	if err != nil || c == nil || !boundedCall(c) {
		return err
	}
	t.limit = &journal.LimitReached{Limit: "call_s", Value: int64(journal.DefaultCallTime / time.Second)}
	return errLimit
}

// boundedCall reports whether what ended a call that ran out of time is the bound
// of all calls. Of an input of another form how long it took has to do.
func boundedCall(c *journal.Call) bool {
	var in struct {
		Command  *string `json:"command"`
		TimeoutS int64   `json:"timeout_s"`
	}
	if !journal.ReadInput(c.Input, &in) || in.Command == nil {
		return c.RanMS != nil && *c.RanMS >= journal.DefaultCallTime.Milliseconds()
	}
	_, bounded := journal.CallTime(in.TimeoutS)
	return bounded
}

// rejoin follows an adopted call to its end (REC-10).
func (t *Turn) rejoin(ctx context.Context, callID string) error {
	c := t.fold.Call(callID)
	if c == nil {
		return fmt.Errorf("the adopted call %s is in no open turn", callID)
	}
	id := shim.ID{CallID: c.ID, N: c.N}
	from, err := t.r.store.SpoolOffset(ctx, id.CallID, id.N)
	if err != nil {
		return err
	}
	x := t.newExecution(t.run.ctx, id)
	defer x.cancel(nil)
	child, err := t.attach(ctx, c) // also to one that has ended since
	if child != nil {
		defer t.r.closeChild(child)
	}
	if errors.Is(context.Cause(t.run.ctx), ErrShutdown) {
		return errDetached
	}
	if err != nil {
		return err
	}
	return x.attend(child, from)
}

// resume follows the last dispatch of a call that may be run again, if it is kept
// here and still runs or has left its record: a recovery elsewhere could not ask.
// What isn't known can't begin afterwards.
func (t *Turn) resume(ctx context.Context, c *journal.Call) (known bool, err error) {
	id := shim.ID{CallID: c.ID, N: c.N}
	found, err := t.r.o.Shims.Bury(id)
	if err != nil || (!found.Running && found.Exit == nil) || (found.Exit != nil && cutShort(c, *found.Exit)) {
		return false, err
	}
	return true, t.rejoin(ctx, c.ID)
}

// cutShort reports whether a command that may be run again was ended by the
// server alone, for want of an execution to belong to: that is no outcome.
func cutShort(c *journal.Call, e shim.Exit) bool {
	return c.Effect != journal.EffectEffect && (e.Reason == reasonLeaseLost || e.Reason == reasonStray)
}

func (r *Runner) closeChild(child *shim.Child) {
	if err := child.Close(); err != nil {
		r.log.Debug("leave a shim", slog.String("call", child.ID().CallID), slog.Any("error", err))
	}
}

// watch looks for an interrupt when the session was woken while it executes.
// It looks once at the start: the interrupt may have come before anybody watched.
func (r *Runner) watch(ctx context.Context, run *run) {
	for {
		hit, err := r.store.Interrupted(ctx, []string{run.session})
		if err == nil && slices.Contains(hit, run.session) {
			run.interrupt()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-run.poked:
		}
	}
}
