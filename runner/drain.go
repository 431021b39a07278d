package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"holdfast/journal"
	"holdfast/store"
)

// drain claims the session and works until there is no work, or the claim is
// gone. A drain that failed is logged once; one that was only ended isn't (COO-9).
func (r *Runner) drain(run *run) {
	// Reads and commits must not be cut off by the run's end: what it did must be known.
	ctx := context.WithoutCancel(run.ctx)
	claim, agent, err := r.claim(ctx, run)
	if err != nil {
		r.log.Error("drain failed", slog.String("session", run.session), slog.Any("error", err))
		return
	}
	if claim == nil {
		return
	}
	err = r.guard(func() error { return r.loop(ctx, run, claim, agent) })
	held := run.letGo()
	switch {
	case errors.Is(err, errDetached):
		r.log.Info("a command goes on without this server", slog.String("session", run.session), slog.String("execution", claim.ExecutionID))
		return // its claim stays (COO-6)
	case err == nil, errors.Is(err, ErrShutdown):
		r.noteDrain(run.session, false)
	case journal.Is(err, journal.StaleClaim), errors.Is(err, ErrLeaseLost):
		if run.ctx.Err() == nil { // the keeper didn't know yet, so it hasn't said it
			r.log.Warn("session execution claim lost: "+claim.ExecutionID, slog.String("session", run.session)) //nolint:sloglint // the words are the contract's (LEA-3)
		}
		return // fenced: whoever holds it now concludes
	default:
		r.log.Error("drain failed", slog.String("session", run.session), slog.Any("error", err))
		r.noteFailed(claim.ExecutionID, held)
		r.noteDrain(run.session, true)
	}
	if held {
		r.expire(ctx, claim)
	}
}

// noteFailed notes of an execution whether its drain has failed, until it is recovered.
func (r *Runner) noteFailed(executionID string, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if failed {
		r.failed[executionID] = true
	} else {
		delete(r.failed, executionID)
	}
}

func (r *Runner) hasFailed(executionID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed[executionID]
}

// expire lets the claim of a drain that ended without releasing it expire at
// once (LEA-6), and has it recovered.
func (r *Runner) expire(ctx context.Context, claim *journal.Claim) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Lease)
	defer cancel()
	if err := r.store.ExpireClaim(ctx, claim); err != nil {
		r.log.Warn("expire the claim of a failed drain; its lease ends by itself", slog.String("session", claim.SessionID), slog.Any("error", err))
	}
	r.kickSweep()
}

// guard makes a panic of an agent the failure of its drain.
func (r *Runner) guard(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a drain: %v", p)
		}
	}()
	return fn()
}

// claim takes the lease if this worker can run the session (WSP-1). nil: don't run.
func (r *Runner) claim(ctx context.Context, run *run) (*journal.Claim, Agent, error) {
	brief, err := r.store.Brief(ctx, run.session)
	if err != nil {
		return nil, nil, err
	}
	agent := r.agents[brief.Agent]
	if block := r.unable(brief); block != nil && !brief.Follow {
		return nil, nil, r.store.Block(ctx, run.session, r.o.WorkerID, *block)
	}
	if err := r.recoverExpired(ctx, run.session); err != nil {
		return nil, nil, err
	}
	if brief.Follow {
		if paused, err := r.paused(ctx, run.session); paused || err != nil {
			return nil, nil, err
		}
	}
	started := time.Now()
	// A lease that ends just now is for the next sweep, which ends what it left.
	claim, err := r.store.Claim(ctx, store.ClaimRequest{SessionID: run.session, WorkerID: r.o.WorkerID, StateFolderID: r.o.StateFolderID, Lease: r.o.Lease, LeaveExpired: true})
	if err != nil || claim == nil {
		return nil, nil, err
	}
	run.brief = brief
	run.hold(claim, started, r.o.Lease)
	store.Crash("claim.committed")
	return claim, agent, nil
}

// NotThere parks a session whose agent can't be started, until it can.
func NotThere(agent, why string) *journal.SessionBlocked {
	return &journal.SessionBlocked{Cause: journal.BlockAgent, Detail: fmt.Sprintf("The agent %s can't be started: %s. Nothing is sent until it can.", agent, why), UnblockedBy: "its program, where it was"}
}

// unable says why this worker can't run a session, or nil.
func (r *Runner) unable(b store.SessionBrief) *journal.SessionBlocked {
	agent := r.agents[b.Agent]
	if agent == nil {
		return &journal.SessionBlocked{Cause: journal.BlockAgent, Detail: fmt.Sprintf("No server here has the agent %s.", b.Agent), UnblockedBy: "a server that has it"}
	}
	if why := unavailable(agent); why != "" {
		return NotThere(b.Agent, why)
	}
	if err := r.o.Workspaces.Check(b); err != nil {
		detail := err.Error()
		var je *journal.Error
		if errors.As(err, &je) {
			detail = strings.TrimSuffix(je.Message, " Nothing was recorded.")
		}
		return &journal.SessionBlocked{Cause: journal.BlockWorkspace, Detail: detail, UnblockedBy: "the folder, as it was when the session was made"}
	}
	return nil
}

// loop runs turn after turn (COO-8) until the claim is released.
func (r *Runner) loop(ctx context.Context, run *run, claim *journal.Claim, agent Agent) error {
	for {
		t, err := r.newTurn(ctx, run, claim)
		if err != nil {
			return err
		}
		released, err := t.pass(ctx, agent)
		if released || err != nil {
			return err
		}
	}
}

// pass takes one look at the folded session and does what it asks for: carry
// out an interrupt, open a turn, let the agent work, or release.
func (t *Turn) pass(ctx context.Context, agent Agent) (released bool, err error) {
	st := &t.fold.State
	if adopted := st.Adopted(); len(adopted) > 0 { // also when an interrupt waits: that ends the command
		if err := t.rejoin(ctx, adopted[0].ID); err != nil {
			return t.conclude(ctx, Result{}, err)
		}
		return false, nil
	}
	if st.Adopts() || (st.Process != nil && len(st.Attempts) > 0) { // the agent's: its attempt goes on, or is ended, before anything else
		return t.rejoinAgent(ctx, agent)
	}
	switch {
	case st.TurnOpen() && st.Interrupt != nil:
		return t.conclude(ctx, Result{}, ErrInterrupted)
	case t.r.stops(), st.RunnableAt == 0, agent == nil, !t.r.mayBegin(t.run):
		return t.release(ctx)
	case !st.TurnOpen():
		return t.open(ctx)
	}
	// A step that waited for its answer goes on first: a parked turn has no boundary (PRO-1).
	var result Result
	if err = t.overdue(ctx); err == nil {
		err = t.boundary(ctx, len(st.Calls) == 0)
	}
	if err == nil {
		result, err = agent.Run(t.run.ctx, t)
	}
	return t.conclude(ctx, result, err)
}

// open promotes the next prompt; the next pass works on its turn.
func (t *Turn) open(ctx context.Context) (bool, error) {
	if err := t.run.trust.wait(t.run.ctx); err != nil {
		return false, err
	}
	events, err := t.r.store.PromoteNext(ctx, t.claim)
	if err != nil {
		return false, err
	}
	if len(events) == 0 {
		return t.release(ctx)
	}
	return false, nil
}

// release gives the claim back, if the journal is as it was folded (LEA-6).
func (t *Turn) release(ctx context.Context) (bool, error) {
	released, err := t.r.store.Release(ctx, t.claim, t.fold.Seq)
	if released {
		t.run.letGo()
		store.Crash("release")
	}
	return released, err
}

// conclude turns what the agent, or something else, made of the turn into its
// end, a park, or another pass.
func (t *Turn) conclude(ctx context.Context, result Result, err error) (released bool, _ error) {
	end := store.EndTurn{Actor: journal.Server(), Drafts: t.pendingPlan()}
	switch {
	case errors.Is(err, ErrInterrupted):
		end.End = t.fold.State.Stopped()
	case errors.Is(err, ErrShutdown) && len(t.fold.State.Attempts) > 0: // nobody has seen that its agent has ended
		return false, errDetached
	case errors.Is(err, ErrShutdown):
		end.End = journal.TurnEnded{Outcome: journal.Interrupted, Reason: "the server was stopped"}
		end.Release = true
	case errors.Is(err, errLimit):
		end.Limit = t.limit
		end.End = journal.TurnEnded{Outcome: journal.LimitReach, Limit: t.limit.Limit}
	case errors.Is(err, errMoved) && !t.run.spins(time.Now()):
		return false, nil
	case errors.Is(err, errMoved):
		end.End = journal.TurnEnded{Outcome: journal.Failed, Reason: "Something of this turn can't be recorded, however often it is tried. What stands in the journal stands."}
	case errors.Is(err, ErrParked), errors.Is(err, errDraining), err == nil && result.Parked:
		if len(end.Drafts) > 0 {
			if err := t.append(ctx, store.Append{}); err != nil && !errors.Is(err, errMoved) {
				return false, err
			}
		}
		return t.release(ctx)
	case journal.Is(err, journal.TooLarge):
		// The same would be refused again after every recovery.
		end.End = journal.TurnEnded{Outcome: journal.Failed, Reason: "Something of this turn is too large for the journal, so it can't go on."}
	case err != nil:
		return false, err
	case result.Failed != "":
		end.End = journal.TurnEnded{Outcome: journal.Failed, Reason: journal.Cut(result.Failed, 2000)}
	default:
		end.End = journal.TurnEnded{Outcome: journal.Completed}
	}
	return t.endTurn(ctx, end)
}

// endTurn repeats the end until it commits or is fenced (COO-10).
func (t *Turn) endTurn(ctx context.Context, end store.EndTurn) (released bool, err error) {
	err = t.persist(ctx, func() error {
		_, released, err = t.r.store.EndTurn(ctx, t.claim, end)
		return err
	})
	switch {
	case errors.Is(err, store.ErrInterrupted):
		return t.endStopped(ctx, end)
	case errors.Is(err, store.ErrSteers), moved(err):
		return false, nil // the next pass promotes them, or finds it ended
	case released:
		t.run.letGo()
		store.Crash("release")
	}
	return released, err
}

// endStopped ends a turn that would complete, but for a stop that was accepted: it ends
// stopped, and says that nothing of it was left (COO-4).
func (t *Turn) endStopped(ctx context.Context, end store.EndTurn) (released bool, err error) {
	if err := t.refresh(ctx); err != nil {
		return false, err
	}
	end.End = t.fold.State.Stopped()
	end.End.Done = end.End.Reason == journal.ReasonInterrupted // what a rejection leaves undone nobody knows
	return t.endTurn(ctx, end)
}

// moved reports that the turn isn't what was folded any more.
func moved(err error) bool {
	var je *journal.Error
	if !errors.As(err, &je) || je.Code != journal.Conflict {
		return false
	}
	switch je.Slug() {
	case "turn-state", "call-state", "call-not-allowed", "request-state", "attempt-state":
		return true
	}
	return false
}
