package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"holdfast/journal"
	"holdfast/runner/shim"
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
		allowed, err := t.permit(ctx, c, t.wish(in.Input))
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
		return parting(err)
	}
	if c.State == journal.CallIsDispatched { // it may be run again, unless its shim knows of it (CAL-5)
		if known, err := t.resume(ctx, c); known || err != nil {
			return err
		}
	}
	id := shim.ID{CallID: c.ID, N: c.N + 1}
	letGo, err := t.r.occupied.take(ctx, id.String())
	if err != nil {
		return parting(err)
	}
	defer letGo()
	x := t.newExecution(ctx, id)
	defer x.cancel(nil)
	child, err := t.r.o.Shims.Prepare(ctx, x.spec(in))
	if err != nil {
		if gone := t.present(); gone != nil {
			return gone
		}
		if cause := context.Cause(ctx); cause != nil {
			return parting(cause)
		}
		return t.settleUnstarted(ctx, c, err)
	}
	defer t.r.closeChild(child)
	defer child.Abandon() // does nothing once it has begun
	if err := t.dispatch(ctx, c, by, child); err != nil {
		return err
	}
	return x.run(child)
}

// dispatch commits that the call is about to start, with the facts by which its
// processes are found again, before it does anything (CAL-1, COO-7). Its birth may have
// taken a while: of what was stopped meanwhile nothing is committed, and ErrInterrupted
// returned (COO-4). What is asked later ends the command once it is followed.
func (t *Turn) dispatch(ctx context.Context, c *journal.Call, by journal.AllowedBy, child *shim.Child) error {
	p := journal.Process(child.Process())
	store.Crash("call.dispatched_before_commit")
	a := store.Append{
		RulesVersion: t.rules.Version,
		Spool:        t.r.spool(child.ID(), 0),
		Drafts: append(t.supersede(c.ID, 0, nil, "it needs no answer any more"),
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
	if errors.Is(err, store.ErrInterrupted) {
		return ErrInterrupted
	}
	return err
}

// settleUnstarted records a call that could not be started: nothing ran.
func (t *Turn) settleUnstarted(ctx context.Context, c *journal.Call, err error) error {
	t.r.log.Warn("start a command", slog.String("call", c.ID), slog.Any("error", err))
	return t.append(ctx, store.Append{Drafts: []journal.Draft{draft(journal.Server(), &journal.CallSettled{
		CallID: c.ID, State: journal.CallFailed, Reason: journal.Cut("it could not be started: "+err.Error(), 1000),
	})}})
}
