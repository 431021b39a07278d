package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"holdfast/journal"
	"holdfast/runner/shim"
	"holdfast/runner/tool"
	"holdfast/store"
)

// agentPrefix is that of the ids of agents' processes.
const agentPrefix = "prc_"

// reasonIdle is why a process of an agent was ended that nobody needed for a while.
const reasonIdle = "it was not needed for a while"

func isAgent(id shim.ID) bool { return strings.HasPrefix(id.CallID, agentPrefix) }

// agentLeft reports whether the process of a lost execution's agent runs here, or
// has left something that nobody has read, or can't be ended: then whoever claims next reads on, and
// concludes from what is there. What isn't known can't begin afterwards. ended: it doesn't run.
func (r *Runner) agentLeft(ctx context.Context, c journal.Claim) (left, ended bool, err error) {
	if c.StateFolderID != r.o.StateFolderID {
		return false, false, nil
	}
	p, err := r.store.CurrentAgent(ctx, c.SessionID)
	if err != nil || p == nil || p.StateFolderID != r.o.StateFolderID {
		return false, false, err
	}
	id := processName(p.ID)
	found, err := r.o.Shims.Bury(id)
	if err != nil || found.Running || found.Exit != nil {
		return err == nil, !found.Running, err
	}
	if err := r.endLost(ctx, c.SessionID, p.ID); err != nil { // who follows it says so, and goes on trying
		r.log.Error("end an agent whose shim is gone", slog.String("session", c.SessionID), slog.String("process", p.ID), slog.Any("error", err))
		return ctx.Err() == nil, false, ctx.Err()
	}
	err = r.o.Shims.Read(ctx, id, p.ReadTo, func([]tool.Piece, int64) error { left = true; return nil })
	return left, true, err
}

// sweepAgents ends the processes of agents that nobody needs, and clears away what
// has ended: those of sessions that another host runs now, those that another
// process has followed, and those that were idle for too long.
func (r *Runner) sweepAgents(ctx context.Context) { r.tidyAgents(ctx, r.o.AgentIdle) }

// endIdleAgents ends those that nothing needs now: nobody is there to need them
// until the next start, which makes new ones. The work itself may have been cut off.
func (r *Runner) endIdleAgents() {
	r.tidyAgents(context.WithoutCancel(r.work), 0)
	r.loops.Wait() // for their ends, of which each has its own bound
}

func (r *Runner) tidyAgents(ctx context.Context, idle time.Duration) {
	here, err := r.o.Shims.List()
	if err != nil {
		r.log.Warn("look for agents that nobody needs", slog.Any("error", err))
		return
	}
	kept, unknown := map[shim.ID]bool{}, map[shim.ID]bool{}
	for _, id := range here {
		if isAgent(id) {
			kept[id], unknown[id] = true, true
		}
	}
	after := ""
	for ctx.Err() == nil {
		page, now, err := r.store.AgentProcesses(ctx, r.o.StateFolderID, after, sweepBatch)
		if err != nil {
			r.log.Warn("look for agents that nobody needs", slog.Any("error", err))
			return
		}
		for _, row := range page {
			delete(unknown, processName(row.ID))
			r.tidyAgent(ctx, row, now, idle, kept[processName(row.ID)])
			after = row.ID
		}
		if len(page) < sweepBatch {
			break
		}
	}
	for id := range unknown { // its start was never committed
		r.clearAgent(ctx, id, nil)
	}
}

// endOf says how a process ended of which the session may know nothing (LEA-12).
func endOf(id string, exit *shim.Exit) store.AgentEnd {
	end := endedBy(id, exit)
	says := "The agent's process ended, and nobody saw how."
	switch {
	case end.Signal != "" && end.Reason != "":
		says = "The agent's process was ended: " + end.Reason + "."
	case end.Signal != "":
		says = "The agent's process was ended by " + end.Signal + "."
	case end.ExitCode != nil:
		says = fmt.Sprintf("The agent's process ended with exit code %d.", *end.ExitCode)
	}
	if exit != nil && len(exit.Survivors) > 0 {
		says += fmt.Sprintf(" It left processes that could not be ended: %v.", exit.Survivors)
	}
	return store.AgentEnd{Ended: *end, Evidence: journal.Evidence{Type: "process", Text: says}}
}

// tidyAgent ends a process that nobody needs, or clears it away. Of one that isn't kept,
// since what its shim had is gone, nothing is said before it is certain that it runs no
// more.
func (r *Runner) tidyAgent(ctx context.Context, row store.AgentProcessRow, now int64, most time.Duration, kept bool) {
	idle := time.Duration(now-row.UsedAt) * time.Millisecond
	if row.Busy || (row.Claimed && row.Current) || (row.Current && idle < most) {
		return
	}
	if !kept && !r.surelyGone(ctx, row) {
		return
	}
	r.clearAgent(ctx, processName(row.ID), &row)
}

// surelyGone reports whether a process that no shim tells of runs no more: it was here,
// and what is found of it is ended, or this host was started anew since. Of one of another
// host nobody can tell here.
func (r *Runner) surelyGone(ctx context.Context, row store.AgentProcessRow) bool {
	gone, err := r.killAgent(ctx, row.SessionID, row.ID)
	if err != nil && ctx.Err() == nil {
		r.log.Warn("end an agent of which its shim has left nothing", slog.String("process", row.ID), slog.Any("error", err))
	}
	return gone
}

// endLost ends what is left of a process whose shim is gone and has recorded no end. An
// error: it may still run here, and nothing is to be concluded of it (LEA-12). Of one of
// another host, or on a platform that doesn't tell, nothing can be found here.
func (r *Runner) endLost(ctx context.Context, sessionID, processID string) error {
	_, err := r.killAgent(ctx, sessionID, processID)
	return err
}

// killAgent ends what is left of a process itself, as its shim doesn't: it is gone, or
// somebody has stopped it. gone: it is certain that it runs no more. Neither that nor an
// error: nobody can tell here.
func (r *Runner) killAgent(ctx context.Context, sessionID, processID string) (gone bool, err error) {
	p, err := r.store.AgentStart(ctx, sessionID, processID)
	if err != nil || p == nil {
		return false, err
	}
	p.Host = r.unmasked(ctx, sessionID, p.Host)
	_, err = r.kill(ctx, processID, processName(processID).N, tool.Process(*p), r.o.RecoverGrace)
	switch {
	case errors.Is(err, tool.ErrOtherBoot): // the lock of the state folder proves that it was here (LEA-11)
		return p.Host == r.host, nil
	case errors.Is(err, tool.ErrOtherHost), errors.Is(err, errors.ErrUnsupported):
		return false, nil
	}
	if err == nil {
		err = r.killBelow(ctx, processName(processID))
	}
	return err == nil, err
}

// killBelow ends what bears no mark of its process, and descends from its shim all the same:
// that is there still, if somebody has stopped it.
func (r *Runner) killBelow(ctx context.Context, id shim.ID) error {
	within, cancel := context.WithTimeout(ctx, r.o.AnswerWithin)
	defer cancel()
	if keeper := r.o.Shims.Keeper(within, id); keeper > 0 {
		return tool.KillBelow(ctx, keeper, r.o.RecoverGrace)
	}
	return nil
}

// clearAgent ends a process, or clears away what is left of one. Its name is taken
// meanwhile, as whoever starts one takes it.
func (r *Runner) clearAgent(ctx context.Context, id shim.ID, row *store.AgentProcessRow) {
	letGo, ok := r.occupied.try(id.String())
	if !ok {
		return
	}
	found, err := r.o.Shims.Find(id)
	if err == nil && found.Running {
		reason := reasonStray
		if row != nil && row.Current {
			reason = reasonIdle
		}
		r.spawn(&r.loops, "end of "+id.String(), func() { defer r.kickSweep(); defer letGo(); r.endStray(ctx, id, reason) })
		return
	}
	defer letGo()
	if err == nil && row != nil && found.Exit == nil { // its shim was killed
		err = r.endLost(ctx, row.SessionID, row.ID)
	}
	if err == nil && row != nil {
		err = r.store.ForgetAgentProcess(ctx, *row, endOf(row.ID, found.Exit))
	}
	if err == nil {
		err = r.o.Shims.Remove(id)
	}
	if err != nil && ctx.Err() == nil {
		r.log.Warn("clear away an agent's process", slog.String("process", id.CallID), slog.Any("error", err))
	}
}
