package runner

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"holdfast/journal"
	"holdfast/store"
)

// saysItStays journals that the process was to be ended, and that nobody can tell whether it
// was: the session waits for that, however long (LEA-12). It is said once.
func (p *Process) saysItStays(ctx context.Context) {
	t := p.t
	if b := t.fold.State.Blocked; ctx.Err() != nil || b != nil && b.Cause == journal.BlockProcess { // a stop of the server tells nothing
		return
	}
	where, err := t.r.store.LostAgent(ctx, t.run.session, p.id.CallID)
	if err == nil {
		err = t.append(ctx, store.Append{Drafts: []journal.Draft{draft(journal.Server(), staying(where, time.Now()))}})
	}
	if err != nil {
		t.r.log.Warn("say that an agent's process may still run", slog.String("session", t.run.session), slog.String("process", p.id.CallID), slog.Any("error", err))
	}
}

func staying(p journal.AgentLost, now time.Time) *journal.SessionBlocked {
	where := "on the host of its server"
	if p.Host != "" {
		where = fmt.Sprintf("on %s as pid %d, where it was started at %s", p.Host, p.PID, journal.TimeInWords(p.Since))
	}
	return &journal.SessionBlocked{
		Cause:       journal.BlockProcess,
		Detail:      fmt.Sprintf("The agent's process was to be ended, and since %s that could not be confirmed: it may still be running %s. What it is at isn't concluded, nothing is sent again, and no other process is begun here. The server goes on trying to end it. You can end it on that host, or start that host anew.", journal.TimeInWords(now.UnixMilli()), where),
		UnblockedBy: "the end of that process",
	}
}
