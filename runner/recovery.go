package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/journal"
	"holdfast/runner/tool"
	"holdfast/store"
)

const (
	sweepBatch   = 100             // of a page: a sweep takes all of them, one after the other
	recoverGrace = 2 * time.Second // TERM to KILL for what a lost execution left
	atOnce       = 8               // recoveries of one sweep: each may have to wait for what it ends
)

// sweepLoop recovers expired claims and finds sessions with work, at start and
// every sweep (REC-1, REC-9).
func (r *Runner) sweepLoop(ctx context.Context) {
	t := time.NewTicker(r.o.Sweep)
	defer t.Stop()
	for {
		r.Sweep(ctx)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-r.sweepNow:
		}
	}
}

// Sweep does one sweep. One session that fails doesn't stop it for the others;
// it is logged and met again at the next (REC-8).
func (r *Runner) Sweep(ctx context.Context) {
	var failed int64
	err := eachPage(ctx, r.store.ExpiredClaims, func(expired []journal.Claim) {
		store.Crash("sweep.selected")
		failed += r.recoverAll(ctx, expired)
	})
	if err != nil {
		r.log.Warn("look for expired claims", slog.Any("error", err))
	}
	if failed > 0 {
		r.log.Error("recoveries failed; they are tried again at the next sweep", slog.Int64("failed", failed))
	}
	r.sweepShims(ctx)
	r.sweepAgents(ctx)
	r.tidyCredentials(ctx)
	if ctx.Err() != nil { // the server stops
		return
	}
	r.lookForWork(ctx)
}

// tidyCredentials learns what other servers have stored, so that it is masked here,
// too, and drops what nothing needs. What stands in the way is said once.
func (r *Runner) tidyCredentials(ctx context.Context) {
	if r.o.Credentials == nil {
		return
	}
	says := ""
	err := r.o.Credentials.Tidy(ctx)
	if err != nil {
		says = err.Error()
	}
	r.mu.Lock()
	was := r.keyFault
	r.keyFault = says
	r.mu.Unlock()
	if says != "" && says != was && ctx.Err() == nil {
		r.log.Warn("look after the credentials", slog.Any("error", err))
	}
}

// eachPage goes through a list, a page after the other. Whatever stands at its
// head and stays there, such as what fails or what only others can do, must not
// keep the rest from being found.
func eachPage[T any](ctx context.Context, list func(ctx context.Context, after T, limit int) ([]T, error), do func([]T)) error {
	var last T
	for ctx.Err() == nil { // the server doesn't stop
		page, err := list(ctx, last, sweepBatch)
		if err != nil {
			return err
		}
		if len(page) > 0 {
			last = page[len(page)-1]
			do(page)
		}
		if len(page) < sweepBatch {
			break
		}
	}
	return nil
}

// recoverAll recovers what a sweep has found, several at once, and counts what failed.
func (r *Runner) recoverAll(ctx context.Context, expired []journal.Claim) int64 {
	own := r.claimed()
	places := make(chan struct{}, atOnce)
	var failed atomic.Int64
	var wg sync.WaitGroup
	for _, c := range expired {
		if own[c.ExecutionID] != nil { // its drain runs here: renewed or ended, never recovered (REC-1)
			continue
		}
		places <- struct{}{}
		r.spawn(&wg, "recovery of "+c.SessionID, func() {
			defer func() { <-places }()
			if err := r.recoverOne(ctx, c); err != nil && ctx.Err() == nil {
				failed.Add(1)
				r.log.Error("recover an execution", slog.String("session", c.SessionID), slog.String("execution", c.ExecutionID), slog.Any("error", err))
			}
		})
	}
	wg.Wait()
	return failed.Load()
}

// recoverOne asks the shims of the lost execution's commands, and ends what isn't
// adopted of it on this host, before anything is concluded (COO-7, CAL-5), then concludes. One at a time of a session, and only what is
// still so: a sweep and a drain may have seen the same claim, and who comes
// second would end what the first has let go on.
func (r *Runner) recoverOne(ctx context.Context, c journal.Claim) error {
	letGo, err := r.recovering.take(ctx, c.SessionID)
	if err != nil {
		return err
	}
	defer letGo()
	still, err := r.store.ExpiredClaim(ctx, c.SessionID)
	if err != nil || still == nil || still.ExecutionID != c.ExecutionID {
		return err
	}
	c = *still
	calls, err := r.store.Unsettled(ctx, c.SessionID, c.ExecutionID)
	if err != nil {
		return err
	}
	rec := store.Recovery{Claim: c, By: r.o.StateFolderID, Failed: r.hasFailed(c.ExecutionID), Evidence: map[string][]journal.Evidence{}, Found: map[string]store.Found{}}
	for _, call := range calls {
		if err := r.examine(ctx, &rec, call); err != nil {
			return unlessChanged(err)
		}
	}
	if rec.Agent, rec.AgentEnded, err = r.agentLeft(ctx, c); err != nil {
		return err
	}
	recovered, err := r.store.Recover(ctx, rec)
	store.Crash("sweep.committed")
	if recovered {
		r.tookUp(ctx, &rec, calls)
	}
	if err == nil {
		r.noteFailed(c.ExecutionID, false)
	}
	return unlessChanged(err)
}

// tookUp says what a recovery found, and has what goes on followed.
func (r *Runner) tookUp(ctx context.Context, rec *store.Recovery, calls []*journal.Call) {
	var goesOn, ended int
	for _, call := range calls {
		switch found := rec.Found[call.ID]; {
		case found.Adopted:
			goesOn++
		case found.Settled != nil:
			ended++
		}
	}
	unknown, err := r.store.Unknowns(ctx, rec.Claim.SessionID)
	if err != nil {
		r.log.Warn("count what is unknown", slog.String("session", rec.Claim.SessionID), slog.Any("error", err))
	}
	r.log.Info("session taken up again", slog.String("session", rec.Claim.SessionID), slog.String("execution", rec.Claim.ExecutionID),
		slog.Int("commands_that_go_on", goesOn), slog.Bool("agent_goes_on", rec.Agent && !rec.AgentEnded), slog.Int("ended", ended), slog.Int("unknown", unknown))
	if goesOn > 0 || rec.Agent {
		r.follow(rec.Claim.SessionID)
	}
	if rec.Agent && rec.Failed { // it may have been given up (REC-11): a sweep ends its process
		r.kickSweep()
	}
}

// unlessChanged forgives that there is nothing to recover any more: the claim's
// owner is alive after all, or somebody else was faster.
func unlessChanged(err error) error {
	var je *journal.Error
	if errors.As(err, &je) && je.Slug() == "claim-changed" {
		return nil
	}
	return err
}

// recoverExpired recovers a session's expired claim as a sweep does. A wake may
// come before the sweep; claiming alone would conclude, too, but end nothing.
func (r *Runner) recoverExpired(ctx context.Context, session string) error {
	c, err := r.store.ExpiredClaim(ctx, session)
	if err != nil || c == nil {
		return err
	}
	return r.recoverOne(ctx, *c)
}

// maskedHost is this host's name as a session's journal has it.
func (r *Runner) maskedHost(ctx context.Context, session string) string {
	owner, err := r.store.OwnerOf(ctx, session)
	if err != nil {
		r.log.Error("look for whose a session is", slog.String("session", session), slog.Any("error", err))
	}
	return r.store.Cleaner(owner).Text(r.host)
}

// unmasked is a host as it was, that the journal of a session has: this one may have the
// value of a secret in its name.
func (r *Runner) unmasked(ctx context.Context, session, host string) string {
	if host != r.host && host == r.maskedHost(ctx, session) {
		return r.host
	}
	return host
}

// endLeftover ends the processes of a call that its execution left on this host,
// and says what is known of them.
func (r *Runner) endLeftover(ctx context.Context, c journal.Claim, call *journal.Call) journal.Evidence {
	p := *call.Process
	p.Host = r.unmasked(ctx, c.SessionID, p.Host)
	since := journal.TimeInWords(call.DispatchedAt)
	says := func(format string, args ...any) journal.Evidence {
		return journal.Evidence{Type: journal.EvidenceProcess, Text: fmt.Sprintf("It ran on %s as pid %d since %s. ", p.Host, p.PID, since) + fmt.Sprintf(format, args...)}
	}
	killed, err := tool.KillCall(ctx, call.ID, call.N, tool.Process(p), r.o.RecoverGrace)
	switch {
	case errors.Is(err, tool.ErrOtherBoot) && p.Host == r.host && c.StateFolderID == r.o.StateFolderID:
		// A name and a boot id alone could be another host's of the same name. The
		// folder's lock proves that this is where the lost worker was (LEA-11).
		return says("That host was started anew since, so it runs no more.")
	case errors.Is(err, tool.ErrOtherHost), errors.Is(err, tool.ErrOtherBoot):
		return says("It may still be running there.")
	case err != nil:
		if ctx.Err() == nil { // else the server stops, and concludes nothing
			r.log.Error("end what a lost execution left", slog.String("call", call.ID), slog.Any("error", err))
		}
		return says("Some of its processes could not be ended: it may still be running.")
	case killed == 1:
		return says("One of its processes was still running when the execution was recovered, and was ended.")
	case killed > 1:
		return says("%d of its processes were still running when the execution was recovered, and were ended.", killed)
	}
	return says("None of its processes was running any more when the execution was recovered.")
}

// lookForWork goes through the sessions that wait. It says first which of their
// workspaces this worker lacks: what it lets go on must not be parked by another
// worker that reads an older word.
func (r *Runner) lookForWork(ctx context.Context) {
	look := look{r: r, known: map[store.SessionBrief]*journal.SessionBlocked{}}
	var freed, mine, others []store.SessionBrief
	err := errors.Join(
		eachPage(ctx, r.store.Blocked, func(blocked []store.SessionBrief) {
			able, _ := look.sort(blocked)
			freed = append(freed, able...)
		}),
		eachPage(ctx, r.store.Runnable, func(waiting []store.SessionBrief) {
			able, unable := look.sort(waiting)
			mine, others = append(mine, able...), append(others, unable...)
		}))
	if err != nil {
		r.log.Warn("look for work", slog.Any("error", err))
	}
	r.lacks(ctx, look.missing())
	for _, b := range freed {
		r.unblock(ctx, b.ID)
	}
	for _, b := range mine {
		if b.Follow {
			r.follow(b.ID)
		} else {
			r.Wake(b.ID)
		}
	}
	r.park(ctx, look, others)
}

// look is what one sweep has seen: many sessions share a workspace.
type look struct {
	r     *Runner
	known map[store.SessionBrief]*journal.SessionBlocked
}

func (l look) unable(b store.SessionBrief) *journal.SessionBlocked {
	b.ID, b.RunnableAt, b.Follow = "", 0, false
	block, ok := l.known[b]
	if !ok {
		block = l.r.unable(b)
		l.known[b] = block
	}
	return block
}

func (l look) sort(list []store.SessionBrief) (able, unable []store.SessionBrief) {
	for _, b := range list {
		if l.unable(b) == nil || b.Follow {
			able = append(able, b)
		} else {
			unable = append(unable, b)
		}
	}
	return able, unable
}

// missing are the workspaces that this worker lacks, in one order.
func (l look) missing() []store.Place {
	var out []store.Place
	for b, block := range l.known {
		if block != nil && block.Cause == journal.BlockWorkspace {
			out = append(out, store.Place{Path: b.Workspace, ID: b.WorkspaceID})
		}
	}
	slices.SortFunc(out, func(a, b store.Place) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.ID, b.ID)) })
	return slices.Compact(out) // of several agents
}

// lacks notes which workspaces this worker was asked for in vain, and tells the others at once.
func (r *Runner) lacks(ctx context.Context, missing []store.Place) {
	r.mu.Lock()
	same := slices.Equal(missing, r.missing)
	r.missing = missing
	r.mu.Unlock()
	if !same {
		r.see(ctx)
	}
}

// roomToGoOn is how many bytes must be free for a session to go on by itself that was
// parked for want of room.
const roomToGoOn = 4 << 20

// unblock lets a session go on whose cause for parking is gone here.
func (r *Runner) unblock(ctx context.Context, session string) {
	causes := []journal.BlockCause{journal.BlockAgent, journal.BlockWorkspace}
	if r.room(roomToGoOn) {
		causes = append(causes, journal.BlockDisk)
	}
	for _, cause := range causes {
		if err := r.store.Unblock(ctx, session, cause); err != nil {
			r.log.Warn("unblock a session", slog.String("session", session), slog.Any("error", err))
		}
	}
}

// park blocks the sessions that nobody can run. Those that another worker may
// run are left to it, without a write.
func (r *Runner) park(ctx context.Context, look look, list []store.SessionBrief) {
	if len(list) == 0 {
		return
	}
	workers, err := r.store.Workers(ctx)
	if err != nil {
		r.log.Warn("look for other workers", slog.Any("error", err))
		return
	}
	workers = slices.DeleteFunc(workers, func(w store.Worker) bool { return w.ID == r.o.WorkerID })
	for _, b := range list {
		if slices.ContainsFunc(workers, func(w store.Worker) bool { return w.MayRun(b) }) {
			continue
		}
		if err := r.store.Block(ctx, b.ID, r.o.WorkerID, *look.unable(b)); err != nil {
			r.log.Warn("park a session", slog.String("session", b.ID), slog.Any("error", err))
		}
	}
}
