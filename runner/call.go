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
	"holdfast/runner/tool"
	"holdfast/store"
)

// Shell is the input of the tool shell.
type Shell struct {
	Command  string `json:"command"`
	Shell    string `json:"shell"` // sh or bash
	TimeoutS int64  `json:"timeout_s,omitempty"`
}

// shellTool is the name of the one tool that this build has.
const shellTool = "shell"

// CallIntent is what an agent wants to do.
type CallIntent struct {
	Key    string // its position: the same intent has the same key after every restart
	Input  Shell
	Effect journal.Effect
}

// Call carries one call from intent to outcome (CAL-1). A key that has an
// outcome in this turn, or in one that it continues, answers it and runs nothing.
// The call that is returned is settled, or unknown with a person's resolution.
// ErrParked: a decision is needed first, or the workspace.
func (t *Turn) Call(ctx context.Context, in CallIntent) (*journal.Call, error) {
	c := t.fold.CallByKey(in.Key)
	if c == nil {
		var err error
		if c, err = t.propose(ctx, in); err != nil {
			return nil, err
		}
	}
	for c.Open() {
		if err := t.present(); err != nil {
			return nil, err
		}
		allowed, err := t.permit(ctx, c, in.Input)
		if err != nil {
			return nil, err
		}
		if allowed != nil {
			err = t.execute(ctx, c, in.Input, *allowed)
		}
		if err != nil && !errors.Is(err, store.ErrRulesChanged) {
			return nil, err
		}
		if c = t.fold.CallByKey(in.Key); c == nil {
			return nil, errMoved
		}
	}
	if c.Unresolved() {
		return nil, ErrParked
	}
	return t.CallByKey(in.Key), nil
}

func (t *Turn) propose(ctx context.Context, in CallIntent) (*journal.Call, error) {
	input, err := journal.Encode(in.Input)
	if err != nil {
		return nil, fmt.Errorf("encode the input of %s: %w", in.Key, err)
	}
	err = t.append(ctx, store.Append{Drafts: []journal.Draft{draft(journal.Agent(), &journal.CallProposed{
		CallID: store.NewID("call"), TurnID: t.ID(), Key: in.Key, Tool: shellTool, Input: input, InputSHA256: journal.Hash(string(input)), Effect: in.Effect,
	})}})
	if err != nil {
		return nil, err
	}
	c := t.fold.CallByKey(in.Key)
	if c == nil {
		return nil, errMoved
	}
	return c, nil
}

// present looks whether the workspace is still the one that was claimed (WSP-1).
// If it is gone nothing has failed: the turn is parked, and the next drain says
// why, or another server's goes on.
func (t *Turn) present() error {
	if err := t.r.o.Workspaces.Check(t.run.brief); err != nil {
		t.r.log.Warn("the workspace of a running session is gone", slog.String("session", t.run.session), slog.Any("error", err))
		return ErrParked
	}
	return nil
}

// execute dispatches a call that is allowed and brings its outcome into the journal.
func (t *Turn) execute(ctx context.Context, c *journal.Call, in Shell, by journal.AllowedBy) error {
	if err := t.run.trust.wait(t.run.ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x := &execution{t: t, callID: c.ID, ctx: ctx, cancel: cancel}
	cmd, err := tool.Prepare(x.spec(in, c.N+1))
	if err != nil {
		if gone := t.present(); gone != nil {
			return gone
		}
		return t.settleUnstarted(ctx, c, err)
	}
	defer cmd.Abandon() // does nothing once it has run
	if err := t.dispatch(ctx, c, by, journal.Process(cmd.Process())); err != nil {
		return err
	}
	return x.finish(cmd)
}

// finish runs a command that was dispatched and records what became of it.
func (x *execution) finish(cmd *tool.Command) error {
	// Suspended between the commit and here, past the lease? Then it may be
	// somebody else's by now, and what has not begun must not begin. Of a stop it
	// is known, too, that nothing has run: the gate stays closed, and that is settled.
	run := x.t.run
	switch err := run.trust.wait(run.ctx); {
	case errors.Is(err, ErrLeaseLost):
		return err
	case err != nil:
		x.cancel(err)
	}
	store.Crash("call.before_run")
	result := x.drive(cmd)
	store.Crash("call.before_settle")
	if cause := context.Cause(run.ctx); errors.Is(cause, ErrLeaseLost) {
		return cause
	}
	if err := x.fenced(); err != nil {
		return err
	}
	return x.t.settle(x.ctx, x, result)
}

// dispatch commits that the call is about to start, with the facts by which its
// processes are found again, before it does anything (CAL-1, COO-7).
func (t *Turn) dispatch(ctx context.Context, c *journal.Call, by journal.AllowedBy, p journal.Process) error {
	store.Crash("call.dispatched_before_commit")
	a := store.Append{
		RulesVersion: t.rules.Version,
		Drafts: append(t.supersede(c.ID, nil, "it needs no answer any more"),
			draft(journal.Server(), &journal.CallDispatched{CallID: c.ID, N: c.N + 1, AllowedBy: by, Process: &p})),
	}
	if c.Effect != journal.EffectRead {
		a.Phase = journal.PhaseUncertain
	}
	err := t.append(ctx, a)
	if errors.Is(err, store.ErrRulesChanged) {
		_, rules, ferr := t.r.store.Fold(context.WithoutCancel(ctx), t.run.session)
		if ferr != nil {
			return ferr
		}
		t.rules = rules
	}
	store.Crash("call.dispatched_after_commit")
	return err
}

// settleUnstarted records a call that could not be started: nothing ran.
func (t *Turn) settleUnstarted(ctx context.Context, c *journal.Call, err error) error {
	t.r.log.Warn("start a command", slog.String("call", c.ID), slog.Any("error", err))
	return t.append(ctx, store.Append{Drafts: []journal.Draft{draft(journal.Server(), &journal.CallSettled{
		CallID: c.ID, State: journal.CallFailed, Reason: journal.Cut("it could not be started: "+err.Error(), 1000),
	})}})
}

func (t *Turn) settle(ctx context.Context, x *execution, r tool.Result) error {
	body := &journal.CallSettled{
		CallID: x.callID, State: journal.CallFailed, ExitCode: r.ExitCode, Signal: r.Signal, Reason: r.Reason,
		OutputBytes: r.OutputBytes, DroppedBytes: r.DroppedBytes,
	}
	switch {
	case r.Reason == tool.ReasonInterrupted:
		body.State = journal.CallCancelled
		if errors.Is(context.Cause(t.run.ctx), ErrShutdown) {
			body.Reason = "the server was stopped"
		}
	case r.Reason == "" && r.ExitCode != nil && *r.ExitCode == 0:
		body.State = journal.CallSucceeded
	}
	outcome := draft(journal.Server(), body)
	if len(r.Survivors) > 0 {
		left := fmt.Sprintf("processes that could not be ended: %v", r.Survivors)
		if c := t.fold.Call(x.callID); r.Reason != "" && c != nil && c.Effect == journal.EffectEffect {
			// Its end was asked for and not seen: what it does may go on (COO-4, CAL-7).
			outcome = draft(journal.Server(), &journal.CallUnknown{CallID: x.callID, Since: c.DispatchedAt, Evidence: []journal.Evidence{{
				Type: "process", Text: journal.Cut(fmt.Sprintf("It was to be ended (%s), but it left %s. It may still be under way.", body.Reason, left), 1000),
			}}})
		}
		body.Reason = journal.Cut(strings.TrimPrefix(body.Reason+"; "+left, "; "), 1000)
	}
	err := t.append(ctx, store.Append{Phase: journal.PhaseSafe, Drafts: []journal.Draft{outcome}})
	store.Crash("call.after_settle")
	if err != nil {
		return err
	}
	switch cause := context.Cause(ctx); {
	case cause != nil && body.State == journal.CallCancelled:
		return cause
	case r.Reason == tool.ReasonTimeout && x.bounded:
		t.limit = &journal.LimitReached{Limit: "call_s", Value: int64(journal.DefaultCallTime / time.Second)}
		return errLimit
	}
	return nil
}

// execution is one run of a command.
type execution struct {
	t      *Turn
	callID string
	ctx    context.Context
	cancel context.CancelCauseFunc // ends ctx

	bounded bool // its time is the bound of a call (COO-5), not one that the agent set

	mu    sync.Mutex
	fault error // an append that was refused
}

func (x *execution) spec(in Shell, n int) tool.Spec {
	timeout := time.Duration(in.TimeoutS) * time.Second
	if x.bounded = timeout <= 0 || timeout > journal.DefaultCallTime; x.bounded {
		timeout = journal.DefaultCallTime
	}
	interp := []string{"sh", "-eu"}
	if in.Shell == "bash" {
		interp[0] = "bash"
	}
	return tool.Spec{
		CallID: x.callID, N: n, Interp: interp, Script: in.Command, Dir: x.t.fold.State.Workspace, Env: x.t.r.o.Env,
		Timeout: timeout, MaxOutput: journal.DefaultOutput, Secrets: x.t.r.o.Secrets, Output: x.output,
	}
}

// output journals pieces as they come, in one commit (JRN-5). While the journal can't be
// written it blocks, and output waits in its pipe (COO-10).
func (x *execution) output(pieces []tool.Piece) error {
	var a store.Append
	for _, p := range pieces {
		a.Drafts = append(a.Drafts, draft(journal.Agent(), &journal.CallOutput{
			CallID: x.callID, Stream: p.Stream, Offset: p.Offset, Text: journal.Text{S: p.Text, Raw: p.Binary}, Dropped: p.Dropped,
		}))
	}
	err := x.t.append(x.ctx, a)
	store.Crash("call.output")
	if err != nil {
		x.mu.Lock()
		x.fault = err
		x.mu.Unlock()
	}
	return err
}

// fenced gives the refusal of an append that ended the command, if that was it.
func (x *execution) fenced() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.fault
}

// drive runs the command and watches for interrupts, lease loss and shutdown.
func (x *execution) drive(cmd *tool.Command) tool.Result {
	run := x.t.run
	run.executing(x.cancel)
	defer run.executing(nil)
	watching, stop := context.WithCancel(x.ctx)
	var wg sync.WaitGroup
	x.t.r.spawn(&wg, "watch "+x.callID, func() { x.t.r.watch(watching, run) })
	defer wg.Wait()
	defer stop()
	return cmd.Run(x.ctx)
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
