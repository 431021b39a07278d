package store

import (
	"context"
	"fmt"
	"slices"

	"holdfast/journal"
)

// RunningCall is a command that runs under a shim, so that it outlives the server
// that started it.
type RunningCall struct {
	Session Session
	Call    *journal.Call // with what it has written so far
	Folder  string        // the state folder that keeps it: only its workers can follow it
	Worker  *Worker       // of that folder, seen lately; nil: none is there

	followed bool
}

// Followed reports whether a worker of the folder that keeps it holds its session.
func (r *RunningCall) Followed() bool { return r.followed }

// canRun reports whether it can still run: its shim ends it at its limit, whoever
// is there, and one that is followed has its end recorded then.
func (r *RunningCall) canRun(now int64) bool { return r.followed || r.Call.EndsBy() >= now }

// RunningCalls are the commands that run under shims, as one person sees them.
type RunningCalls struct {
	Items  []RunningCall
	More   bool // there are more than MaxRunning
	Others int  // how many run for other people, of which nothing else is told (OWN-1)
	Now    int64
}

// MaxRunning bounds the list of what runs.
const MaxRunning = 100

// dispatchedSpools are the calls that may run under a shim: the execution that
// dispatched or follows them holds their session, or they were adopted. One that
// waits to be run again does not, whoever holds its session by now. A call that was
// dispatched again has one row still, which is of its last dispatch.
const dispatchedSpools = "FROM spool p JOIN call c ON c.id = p.call_id AND c.n = p.n JOIN session o ON o.id = c.session_id WHERE c.state = 'dispatched' AND (p.execution_id = o.execution_id OR c.adopted_by = p.state_folder_id)"

// RunningCalls lists what runs under shims for an owner, the longest first, and
// counts what does for everybody else.
func (s *Store) RunningCalls(ctx context.Context, owner string) (RunningCalls, error) {
	var out RunningCalls
	err := s.read(ctx, func(q querier) (err error) {
		out = RunningCalls{}
		d := q.dialect()
		if err := q.get(ctx, &out.Now, "SELECT "+d.now(), d.nowArg()); err != nil {
			return err
		}
		others, err := out.canRun(ctx, q, "o.owner_id <> ?", owner)
		if err != nil {
			return err
		}
		out.Others = len(others)
		if out.Items, err = out.canRun(ctx, q, "o.owner_id = ?", owner); err != nil {
			return err
		}
		if len(out.Items) > MaxRunning {
			out.Items, out.More = out.Items[:MaxRunning], true
		}
		for i := range out.Items {
			if err := liveOutput(ctx, q, []*journal.Call{out.Items[i].Call}); err != nil {
				return err
			}
		}
		if len(out.Items) == 0 {
			return nil
		}
		return out.beside(ctx, q, owner)
	})
	return out, err
}

// canRun reads all that can still run. They are few: a worker has so many places,
// and what is adopted ends at its limit.
func (r *RunningCalls) canRun(ctx context.Context, q querier, where string, args ...any) ([]RunningCall, error) {
	list, err := runningWhere(ctx, q, where, args...)
	return slices.DeleteFunc(list, func(one RunningCall) bool { return !one.canRun(r.Now) }), err
}

// runningWhere reads calls that may run, the longest first, without what stands beside them.
func runningWhere(ctx context.Context, q querier, where string, args ...any) ([]RunningCall, error) {
	var rows []struct {
		callRow
		Folder   string `db:"folder"`
		Followed bool   `db:"followed"`
	}
	d := q.dialect()
	const claim = "EXISTS (SELECT 1 FROM claim l WHERE l.session_id = c.session_id AND l.state_folder_id = p.state_folder_id AND l.expires_at - %s >= l.lease_ms / 3)" // Claim.Unconfirmed
	err := q.all(ctx, &rows, "SELECT "+callColumns+", folder, followed FROM (SELECT c.*, p.state_folder_id AS folder, "+fmt.Sprintf(claim, d.now())+" AS followed "+dispatchedSpools+" AND "+where+") k ORDER BY dispatched_at, session_id, proposed_seq",
		append([]any{d.nowArg()}, args...)...)
	if err != nil {
		return nil, err
	}
	out := make([]RunningCall, 0, len(rows))
	for i := range rows {
		c, err := rows[i].call()
		if err != nil {
			return nil, err
		}
		if err := wholeInput(ctx, q, c); err != nil {
			return nil, err
		}
		out = append(out, RunningCall{Call: c, Folder: rows[i].Folder, followed: rows[i].Followed})
	}
	return out, nil
}

// beside adds the sessions and the workers.
func (r *RunningCalls) beside(ctx context.Context, q querier, owner string) error {
	workers, err := liveWorkers(ctx, q)
	if err != nil {
		return err
	}
	byFolder := map[string]*Worker{}
	for i := range workers {
		byFolder[workers[i].StateFolderID] = &workers[i]
	}
	sessions := map[string]Session{}
	for i := range r.Items {
		one := &r.Items[i]
		id := one.Call.SessionID
		if _, ok := sessions[id]; !ok {
			if sessions[id], err = loadSession(ctx, q, owner, id); err != nil {
				return err
			}
		}
		one.Session, one.Worker = sessions[id], byFolder[one.Folder]
	}
	return nil
}
