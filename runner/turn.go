package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"holdfast/journal"
	"holdfast/store"
)

// Turn is the open turn as its agent sees it: the folded history, and the only
// way to act. Its methods return after their commit. An error that they give
// ends the agent's run; it returns it as it is. A Turn is for one goroutine, but
// for the output of a call, which the turn itself appends.
type Turn struct {
	r     *Runner
	run   *run
	claim *journal.Claim
	rules store.SessionRules
	fold  *journal.Fold
	plan  []journal.PlanItem // journalled with the next fact, if it differs from the state's
	limit *journal.LimitReached
	whole wholeInputs
}

// newTurn folds the session's journal.
func (r *Runner) newTurn(ctx context.Context, run *run, claim *journal.Claim) (*Turn, error) {
	f, rules, err := r.store.Fold(ctx, run.session)
	if err != nil {
		return nil, err
	}
	t := &Turn{r: r, run: run, claim: claim, rules: rules, fold: f, plan: f.State.Plan}
	return t, t.texts(ctx)
}

// texts fills in the promoted prompts' texts, which the fold has no room for.
func (t *Turn) texts(ctx context.Context) error {
	var ids []string
	for _, p := range t.fold.Prompts {
		if p.Text == "" {
			ids = append(ids, p.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	texts, err := t.r.store.PromptTexts(ctx, t.run.session, ids)
	for id, text := range texts {
		t.fold.SetText(id, text)
	}
	return err
}

// Prompts gives the prompts of this turn and of those that it continues, in the
// order in which they were promoted.
func (t *Turn) Prompts() []journal.Promoted { return slices.Clone(t.fold.Prompts) }

// CallByKey gives the newest call under a key in this turn and those that it
// continues, or nil.
func (t *Turn) CallByKey(key string) *journal.Call {
	c := t.fold.CallByKey(key)
	if c == nil {
		return nil
	}
	copied := *c
	return &copied
}

// ProposedBetween reports whether a call was proposed after one seq and before another.
func (t *Turn) ProposedBetween(after, before int64) bool {
	return slices.ContainsFunc(t.fold.Calls, func(c *journal.Call) bool { return c.ProposedSeq > after && c.ProposedSeq < before })
}

// ID is the open turn's.
func (t *Turn) ID() string { return t.fold.State.Turn.ID }

// SetPlan shows the agent's plan, whole. It is journalled with the next fact.
func (t *Turn) SetPlan(plan []journal.PlanItem) {
	t.plan = boundedPlan(plan)
}

// maxPlan keeps a plan below the bound of an event's body (JRN-6), in bytes.
const maxPlan = 48 << 10

// boundedPlan cuts the titles of a plan that is too large, then its end: the
// plan is for the eye only, and must not keep a turn from being recorded.
func boundedPlan(plan []journal.PlanItem) []journal.PlanItem {
	out := slices.Clone(plan)
	for _, length := range []int{200, 60, 20, 0} {
		if b, err := journal.Encode(out); err == nil && len(b) <= maxPlan {
			return out
		}
		for i := range out {
			out[i].Title = journal.Cut(plan[i].Title, length)
		}
	}
	const most = 300
	more := len(plan) - most
	if more <= 0 {
		return nil // keys alone are too large: this is no plan to look at
	}
	return append(out[:most], journal.PlanItem{Key: "more", Title: fmt.Sprintf("and %d more", more), State: journal.PlanPending})
}

func (t *Turn) pendingPlan() []journal.Draft {
	if slices.Equal(t.plan, t.fold.State.Plan) {
		return nil
	}
	return []journal.Draft{draft(journal.Agent(), &journal.PlanUpdated{Plan: t.plan})}
}

func draft(actor journal.Actor, body journal.Body) journal.Draft {
	return journal.Draft{ID: store.NewID("evt"), Actor: actor, Body: body}
}

// Boundary is the moment between two steps (semantics §0): interrupts, the
// server's stop and the bounds act here, and steers are promoted.
func (t *Turn) Boundary(ctx context.Context) error { return t.boundary(ctx, true) }

func (t *Turn) boundary(ctx context.Context, promote bool) error {
	if err := t.refresh(ctx); err != nil {
		return err
	}
	st := &t.fold.State
	switch {
	case !st.TurnOpen():
		return errMoved
	case st.Interrupt != nil:
		return ErrInterrupted
	case t.run.ctx.Err() != nil:
		return parting(context.Cause(t.run.ctx))
	case t.r.stops():
		return errDraining
	case !promote || !st.Steers():
		return nil
	}
	if err := t.run.trust.wait(t.run.ctx); err != nil {
		return parting(err)
	}
	var events []journal.Event
	err := t.persist(ctx, func() (err error) {
		events, err = t.r.store.PromoteSteers(context.WithoutCancel(ctx), t.claim)
		return err
	})
	if err != nil {
		return err
	}
	if err := t.apply(ctx, events); err != nil {
		return err
	}
	return t.texts(context.WithoutCancel(ctx))
}

// Begin starts a step: a bound that is reached ends the turn here (COO-5).
func (t *Turn) Begin(ctx context.Context, step journal.Step) error {
	if limit, value, over := t.fold.OverLimit(); over {
		t.limit = &journal.LimitReached{Limit: limit, Value: value}
		return errLimit
	}
	return t.append(ctx, store.Append{Drafts: []journal.Draft{draft(journal.Agent(), &journal.StepStarted{TurnID: t.ID(), Step: step})}})
}

// Note records a text of the agent's that is no message of a model, once for
// each subject: an agent that is run again from the top may say it again.
func (t *Turn) Note(ctx context.Context, subject, text string) error {
	id := "msg_" + journal.Hash(subject)[:32]
	said, err := t.r.store.HasMessage(context.WithoutCancel(ctx), t.run.session, id)
	if err != nil || said {
		return err
	}
	return t.append(ctx, store.Append{Drafts: []journal.Draft{draft(journal.Agent(), &journal.MessageCompleted{
		MessageID: id, Role: "agent", Part: journal.PartNote, Text: journal.T(text),
	})}})
}

// append commits facts, with the plan if it has changed, and folds what was
// committed, also what others have added meanwhile.
func (t *Turn) append(ctx context.Context, a store.Append) error {
	// A fact that is known must be written although the run is ending.
	ctx = context.WithoutCancel(ctx)
	a.Drafts = append(t.pendingPlan(), a.Drafts...)
	var events []journal.Event
	err := t.persist(ctx, func() (err error) {
		events, err = t.r.store.Append(ctx, t.claim, a)
		a.Retried = true
		return err
	})
	if moved(err) {
		return errMoved
	}
	if err != nil {
		return err
	}
	return t.apply(ctx, events)
}

// retryEvery bounds the wait between two tries of an append that could not be written.
const retryEvery = 2 * time.Second

// persist repeats a write that failed for want of space or connection, until
// it commits or is fenced (COO-10). It gives up only when the lease is lost.
func (t *Turn) persist(ctx context.Context, write func() error) error {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 50*time.Millisecond, retryEvery
	op := func() (struct{}, error) {
		err := write()
		if err == nil || journal.Is(err, journal.Unavailable) {
			return struct{}{}, err
		}
		return struct{}{}, backoff.Permanent(err)
	}
	// The run's context ends the waiting, not the write itself.
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(t.run.ctx, func() { t.giveUp(stop) })()
	_, err := backoff.Retry(waiting, op, backoff.WithBackOff(b), backoff.WithMaxElapsedTime(0))
	return err
}

// lastTries is how long a stopping server goes on trying to write what it knows.
const lastTries = 3 * time.Second

// giveUp ends the repetition of a write: at once if the lease is lost, and after
// a while if the server stops. What isn't written then is unknown after the restart.
func (t *Turn) giveUp(stop context.CancelCauseFunc) {
	cause := context.Cause(t.run.ctx)
	if errors.Is(cause, ErrLeaseLost) {
		stop(cause)
		return
	}
	time.AfterFunc(lastTries, func() { stop(cause) })
}

// apply folds committed events; what others committed in between is read first.
func (t *Turn) apply(ctx context.Context, events []journal.Event) error {
	for i := range events {
		ev := &events[i]
		for ev.Seq > t.fold.Seq+1 {
			missed, err := t.r.store.Missed(ctx, t.run.session, t.fold.Seq, ev.Seq)
			if err != nil {
				return err
			}
			for j := range missed {
				if err := t.fold.Apply(&missed[j]); err != nil {
					return err
				}
			}
		}
		if err := t.fold.Apply(ev); err != nil {
			return err
		}
	}
	return nil
}

// refresh folds what others have committed.
func (t *Turn) refresh(ctx context.Context) error {
	for {
		events, err := t.r.store.Since(context.WithoutCancel(ctx), t.run.session, t.fold.Seq)
		if err != nil {
			return err
		}
		if err := t.apply(ctx, events); err != nil {
			return err
		}
		if len(events) < store.MaxEvents {
			return nil
		}
	}
}
