package store

import (
	"context"

	"holdfast/journal"
)

// RunningCall is a command that runs under a shim, so that it outlives the server
// that started it.
type RunningCall struct {
	Session Session
	Call    *journal.Call // with what it has written so far
	Folder  string        // the state folder that keeps it: only its workers can follow it
	Worker  *Worker       // of that folder, seen lately; nil: none is there
}

// Followed reports whether a worker of the folder that keeps it holds its session.
func (r *RunningCall) Followed() bool {
	c := r.Session.Claim
	return c != nil && c.StateFolderID == r.Folder && !c.Unconfirmed(r.Session.Now)
}

// RunningCalls are the commands that run under shims, as one person sees them.
type RunningCalls struct {
	Items  []RunningCall
	More   bool // there are more than MaxRunning
	Others int  // how many run for other people, of which nothing else is told (OWN-1)
	Now    int64
}

// MaxRunning bounds the list of what runs.
const MaxRunning = 100

// dispatchedSpools are the calls that run under a shim: somebody holds their
// session, or they were adopted. One that waits to be run again does not. A call
// that was dispatched again has one row still, which is of its last dispatch.
const dispatchedSpools = "FROM spool p JOIN call c ON c.id = p.call_id AND c.n = p.n JOIN session o ON o.id = c.session_id WHERE c.state = 'dispatched' AND (o.execution_id IS NOT NULL OR c.adopted_by <> '')"

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
		if err := q.get(ctx, &out.Others, "SELECT count(*) "+dispatchedSpools+" AND o.owner_id <> ?", owner); err != nil {
			return err
		}
		out.Items, err = runningWhere(ctx, q, MaxRunning+1, "o.owner_id = ?", owner)
		if len(out.Items) > MaxRunning {
			out.Items, out.More = out.Items[:MaxRunning], true
		}
		if err != nil || len(out.Items) == 0 {
			return err
		}
		return out.beside(ctx, q, owner)
	})
	return out, err
}

// runningWhere reads calls that run, without what stands beside them.
func runningWhere(ctx context.Context, q querier, limit int, where string, args ...any) ([]RunningCall, error) {
	var rows []struct {
		callRow
		Folder string `db:"folder"`
	}
	err := q.all(ctx, &rows, "SELECT "+callColumns+", folder FROM (SELECT c.*, p.state_folder_id AS folder "+dispatchedSpools+" AND "+where+") k ORDER BY dispatched_at, session_id, proposed_seq LIMIT ?", append(args, limit)...)
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
		if err := liveOutput(ctx, q, []*journal.Call{c}); err != nil {
			return nil, err
		}
		out = append(out, RunningCall{Call: c, Folder: rows[i].Folder})
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
