package runner

import (
	"context"
	"log/slog"

	"holdfast/journal"
)

// BodyAt gives what an event of the session says; nil if its seq is 0.
func (t *Turn) BodyAt(ctx context.Context, seq int64) (journal.Body, error) {
	if seq == 0 {
		return nil, nil //nolint:nilnil // nothing was said
	}
	events, err := t.r.store.Missed(context.WithoutCancel(ctx), t.run.session, seq-1, seq+1)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	return events[0].Decode()
}

// KeepOffers keeps what the agent offers in a new session, for people who make the
// next. It is no part of the journal: what fails is only logged.
func (t *Turn) KeepOffers(ctx context.Context, version string, options []journal.AgentOption) {
	ctx = context.WithoutCancel(ctx)
	owner, err := t.r.store.OwnerOf(ctx, t.run.session)
	if err == nil {
		err = t.r.store.SaveAgentOffers(ctx, owner, t.fold.State.Agent, version, options)
	}
	if err != nil {
		t.r.log.Warn("keep what an agent offers", slog.String("agent", t.fold.State.Agent), slog.Any("error", err))
	}
}
