package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"holdfast/journal"
	"holdfast/store"
)

// What follows is for agents that work in a process of their own, which acts by
// itself: they journal what it does, and let rules and people answer what it asks.

// Said makes a fact of what the agent said or did.
func Said(body journal.Body) journal.Draft { return draft(journal.Agent(), body) }

// Seen makes a fact of what the server itself saw or did.
func Seen(body journal.Body) journal.Draft { return draft(journal.Server(), body) }

// NewID gives a new id with a prefix of semantics §0.
func NewID(prefix string) string { return store.NewID(prefix) }

// State is the session as folded so far. It is not to be changed.
func (t *Turn) State() *journal.State { return &t.fold.State }

// Attempt is the one in flight, or "".
func (t *Turn) Attempt() string {
	if a := t.fold.State.Attempts; len(a) > 0 {
		return a[0]
	}
	return ""
}

// Told is the seq up to which the agent has been told the prompts: the cut-off of its
// last attempt in this chain of turns. 0: there was none.
func (t *Turn) Told() int64 { return t.fold.Told }

// Sent is the last attempt in this chain of turns.
func (t *Turn) Sent() journal.Sent { return t.fold.Sent }

// Seq is that of the last event folded.
func (t *Turn) Seq() int64 { return t.fold.Seq }

// CallByID gives a call of this turn and those that it continues, or nil.
func (t *Turn) CallByID(id string) *journal.Call {
	c := t.fold.Call(id)
	if c == nil {
		return nil
	}
	copied := *c
	return &copied
}

// AllCalls gives the calls of this turn and those that it continues, in the order in
// which they were proposed.
func (t *Turn) AllCalls() []journal.Call {
	out := make([]journal.Call, 0, len(t.fold.Calls))
	for _, c := range t.fold.Calls {
		out = append(out, *c)
	}
	return out
}

// Calls gives the calls of an attempt, in the order in which they were proposed.
func (t *Turn) Calls(attempt string) []journal.Call {
	var out []journal.Call
	for _, c := range t.fold.Calls {
		if c.AttemptID == attempt {
			out = append(out, *c)
		}
	}
	return out
}

// Untold reports whether there are prompts in this chain of turns that the agent hasn't
// been told.
func (t *Turn) Untold() bool {
	return slices.ContainsFunc(t.fold.Prompts, func(p journal.Promoted) bool { return p.Seq > t.fold.Told })
}

// CountCalls is how many calls an attempt has.
func (t *Turn) CountCalls(attempt string) int {
	n := 0
	for _, c := range t.fold.Calls {
		if c.AttemptID == attempt {
			n++
		}
	}
	return n
}

// Rejected reports whether a person rejected a call of this chain of turns with a message
// that the agent hasn't been told (PER-2).
func (t *Turn) Rejected() bool { return len(t.fold.Feedback()) > 0 }

// Output gives what the journal has of a call's output, of a long one its beginning,
// and how many bytes there are of it.
func (t *Turn) Output(ctx context.Context, callID string) (text string, total int64, err error) {
	return t.r.store.OutputText(context.WithoutCancel(ctx), t.run.session, callID)
}

// MaxOutput is how many bytes are kept of a call's output (COO-5).
func (t *Turn) MaxOutput() int64 { return t.r.o.MaxOutput }

// Record journals facts that come from no process.
func (t *Turn) Record(ctx context.Context, drafts ...journal.Draft) error {
	return t.append(ctx, store.Append{Drafts: drafts})
}

// RecordIn is Record, after which the claim is in a phase (LEA-7).
func (t *Turn) RecordIn(ctx context.Context, phase journal.Phase, drafts ...journal.Draft) error {
	return t.append(ctx, store.Append{Drafts: drafts, Phase: phase})
}

// Requests gives the ids of a call's requests that wait for an answer.
func (t *Turn) Requests(callID string) []string {
	var out []string
	for _, r := range t.fold.Requests(callID) {
		if r.State == journal.RequestPending {
			out = append(out, r.ID)
		}
	}
	return out
}

// News gives what the agent hasn't been told, beside the prompts of this chain of turns:
// it outlives the turn that it came in, whatever that ended with.
func (t *Turn) News(ctx context.Context) (store.News, error) {
	return t.r.store.News(context.WithoutCancel(ctx), t.run.session)
}

// Summary tells what happened before the session's agent was to start anew.
func (t *Turn) Summary(ctx context.Context) (string, error) {
	return t.r.store.Summary(ctx, t.run.session, t.fold.State.AnewSeq) // long, maybe: a stop ends it
}

// Masked is a text without the secrets that are known, as the journal will have it.
func (t *Turn) Masked(text string) string { return t.Cleaner().Text(text) }

// Unended is Masked for a text that ends here, or may go on elsewhere: what begins a
// secret at its end is masked too.
func (t *Turn) Unended(text string) string { return t.Cleaner().Unended(text) }

// Cleaner is that of the session's owner.
func (t *Turn) Cleaner() *journal.Cleaner { return t.r.store.Cleaner(t.rules.OwnerID) }

// MaskedLine is a line of JSON without the secrets that are known, in whatever escapes
// they stand, but with what is its protocol's; of what isn't JSON nothing is.
func (t *Turn) MaskedLine(line []byte, shape *journal.Shape) []byte {
	return t.Cleaner().Line(line, shape)
}

// Undecided tells from where on the end of a text may be the start of a secret whose
// rest is to come; the text's length if it can't.
func (t *Turn) Undecided(text string) int { return t.Cleaner().Undecided(text) }

// Refresh folds what others have committed: answers, interrupts.
func (t *Turn) Refresh(ctx context.Context) error { return t.refresh(ctx) }

// Woken tells that somebody may have committed something.
func (t *Turn) Woken() <-chan struct{} { return t.run.poked }

// Streamed gives what was streamed of a message, and whether it was said whole.
func (t *Turn) Streamed(ctx context.Context, messageID string) (text string, whole bool, err error) {
	return t.r.store.Streamed(context.WithoutCancel(ctx), t.run.session, messageID)
}

// Heed gives a context that ends when a person interrupts the turn, the lease is
// lost or the server stops; its cause tells. stop when nothing is executed any more.
func (t *Turn) Heed(ctx context.Context) (heeding context.Context, stop func()) {
	heeding, cancel := context.WithCancelCause(ctx)
	t.run.executing(cancel)
	return heeding, func() {
		t.run.executing(nil)
		cancel(nil)
	}
}

// Await waits until something is closed. heeding is what Heed gave. The error is what the
// run ends with, since it is interrupted or the server stops: nothing of it runs.
func (t *Turn) Await(heeding context.Context, closed <-chan struct{}) error {
	if err := t.refresh(heeding); err != nil { // an interrupt may have come before anybody heeded it
		return err
	}
	if t.fold.State.Interrupt.AtOnce() {
		return ErrInterrupted
	}
	select {
	case <-closed:
		return nil
	case <-t.Stopping():
		return errDraining
	case <-heeding.Done():
		return parting(context.Cause(heeding))
	}
}

// Detached is what an agent returns if its process is to be left to its shim for
// the reason for which the run ends; nil: it isn't.
func (t *Turn) Detached(cause error) error {
	if errors.Is(cause, ErrShutdown) && !t.r.o.StopCommands {
		return errDetached
	}
	return nil
}

// left is what a run ends with whose process can't be reached just now, as the server stops:
// what is in flight may go on, so it is as if the server had been killed (COO-6).
func (t *Turn) left() error {
	if len(t.fold.State.Attempts) > 0 {
		return errDetached
	}
	return errDraining
}

// Stays is what an agent returns whose process can't be ended, and may still run: nothing
// is concluded of it, and whoever claims next tries again (LEA-12).
func (t *Turn) Stays() error { return errDetached }

// Parted is what an agent returns of which nothing runs, for the reason for which its run
// ends: a server that stops cuts nothing off then.
func (t *Turn) Parted(cause error) error { return parting(cause) }

// Stopping tells that the server is about to stop.
func (t *Turn) Stopping() <-chan struct{} { return t.r.fetch.Done() }

// Permission is what rules and people have decided of a call.
type Permission struct {
	Allowed *journal.AllowedBy // it may run
	Waits   bool               // somebody is asked; neither: it was refused, and is settled unless it was let run before
	Rules   int64              // the version of the rules, for its dispatch (CAL-9)
}

// Permit decides whether a call may run; asking again is the same answer, or the
// one that has come since. See permit.
func (t *Turn) Permit(ctx context.Context, callID string, w Wish) (Permission, error) {
	c := t.fold.Call(callID)
	if c == nil {
		return Permission{}, fmt.Errorf("the call %s is in no open turn", callID)
	}
	if c.State != journal.CallIsProposed && c.State != journal.CallIsWaiting && !c.Announced() {
		return Permission{}, nil
	}
	if c.Began() && t.rejected(callID, w.Ask) {
		return Permission{}, nil
	}
	by, err := t.permit(ctx, c, w)
	if errors.Is(err, ErrParked) {
		return Permission{Waits: true}, nil
	}
	return Permission{Allowed: by, Rules: t.rules.Version}, err
}

// rejected reports whether a person has rejected what an agent asked for a call. One that
// was let run before goes on all the same: its state doesn't tell.
func (t *Turn) rejected(callID string, ask int64) bool {
	return slices.ContainsFunc(t.fold.Requests(callID), func(r *journal.Request) bool {
		return (r.State == journal.RequestRejected || r.State == journal.RequestRejectedWithFeedback) && askOf(r) == ask
	})
}

// readRules reads the rules again after store.ErrRulesChanged.
func (t *Turn) readRules(ctx context.Context) error {
	_, rules, err := t.r.store.Fold(context.WithoutCancel(ctx), t.run.session)
	if err == nil {
		t.rules = rules
	}
	return err
}

// RulesChanged reports whether an error says that the rules aren't those that were
// evaluated (CAL-9). They have been read again: the call is to be permitted anew.
func (t *Turn) RulesChanged(ctx context.Context, err error) (bool, error) {
	if !errors.Is(err, store.ErrRulesChanged) {
		return false, err
	}
	return true, t.readRules(ctx)
}

// rejoinAgent lets the agent go on with an attempt that has outlived its execution.
// Of one that this server doesn't offer any more nobody can tell what it says: its
// process is ended before the turn is.
func (t *Turn) rejoinAgent(ctx context.Context, agent Agent) (released bool, err error) {
	if agent == nil {
		if err := t.endUnoffered(ctx); err != nil {
			return false, err
		}
	}
	if agent == nil && t.fold.State.Interrupt != nil {
		return t.conclude(ctx, Result{}, ErrInterrupted)
	}
	if agent == nil {
		return t.conclude(ctx, Result{Failed: fmt.Sprintf("This server doesn't offer the agent %s any more, so its process was ended in the middle.", t.fold.State.Agent)}, nil)
	}
	result, err := agent.Run(t.run.ctx, t)
	return t.conclude(ctx, result, err)
}

// Waits gives the place of a run that waits for a person to who can use it, or
// takes one again (COO-3). What goes on meanwhile isn't held up for want of one.
func (t *Turn) Waits(waiting bool) {
	r := t.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.run.extra = waiting; waiting {
		r.fill()
	}
}
