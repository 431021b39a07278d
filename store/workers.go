package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/journal"
)

// workerFresh is how long a worker that was seen counts as alive: for the eye,
// and where a session waits for one that can run it. Leases don't ask it.
const workerFresh = 40 * time.Second

// Agent is an agent that a worker offers.
type Agent struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Available bool   `json:"available"`
	Reason    string `json:"reason,omitempty"`
	Steer     string `json:"steer"` // boundary or after_turn (PRO-4)
}

// Place is a workspace as a session means it: the folder and its mark (WSP-1).
type Place struct {
	Path string `json:"path"`
	ID   string `json:"id"`
}

// Worker is one running server process: what handlers know of runners.
type Worker struct {
	ID            string  `db:"id"`
	StateFolderID string  `db:"state_folder_id"`
	Host          string  `db:"host"`
	PID           int     `db:"pid"`
	Version       string  `db:"version"`
	StartedAt     int64   `db:"started_at"`
	SeenAt        int64   `db:"seen_at"`
	Places        int     `db:"places"`
	Running       int     `db:"running"`
	Draining      bool    `db:"draining"`
	Agents        []Agent `db:"-"`
	AgentsJSON    string  `db:"agents"`
	Missing       []Place `db:"-"` // workspaces of sessions that wait, which it looked for in vain
	MissingJSON   string  `db:"missing"`
}

// MayRun reports whether a worker may be able to run a session: it offers the
// agent, and hasn't said that it lacks the workspace.
func (w *Worker) MayRun(b SessionBrief) bool {
	return !w.Draining && !slices.Contains(w.Missing, Place{b.Workspace, b.WorkspaceID}) &&
		slices.ContainsFunc(w.Agents, func(a Agent) bool { return a.Name == b.Agent && a.Available })
}

// SeeWorker writes down a worker at its start and at each renewal, by the database's clock.
func (s *Store) SeeWorker(ctx context.Context, w Worker) error {
	if w.Missing == nil {
		w.Missing = []Place{}
	}
	agents, err1 := journal.Encode(w.Agents)
	missing, err2 := journal.Encode(w.Missing)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("encode what the worker has: %w", err)
	}
	return s.write(ctx, "", func(ctx context.Context, t *tx) error {
		d := t.dialect()
		_, err := t.exec(ctx, "INSERT INTO worker (id, state_folder_id, host, pid, version, started_at, seen_at, places, running, draining, agents, missing) VALUES (?, ?, ?, ?, ?, "+d.now()+", "+d.now()+", ?, ?, ?, ?, ?) "+
			"ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, running = excluded.running, draining = excluded.draining, agents = excluded.agents, missing = excluded.missing",
			w.ID, w.StateFolderID, w.Host, w.PID, w.Version, d.nowArg(), d.nowArg(), w.Places, w.Running, boolInt(w.Draining), string(agents), string(missing))
		return err
	})
}

// ForgetWorkers removes the rows of earlier workers of a state folder, whose lock the caller holds.
func (s *Store) ForgetWorkers(ctx context.Context, folderID, workerID string) error {
	return s.write(ctx, "", func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, "DELETE FROM worker WHERE state_folder_id = ? AND id <> ?", folderID, workerID)
		return err
	})
}

// Workers lists the workers that were seen lately.
func (s *Store) Workers(ctx context.Context) ([]Worker, error) {
	var out []Worker
	err := s.read(ctx, func(q querier) (err error) {
		out, err = liveWorkers(ctx, q)
		return err
	})
	return out, err
}

func liveWorkers(ctx context.Context, q querier) ([]Worker, error) {
	var out []Worker
	d := q.dialect()
	err := q.all(ctx, &out, "SELECT id, state_folder_id, host, pid, version, started_at, seen_at, places, running, draining = 1 AS draining, agents, missing FROM worker WHERE seen_at > "+d.now()+" - ? ORDER BY started_at", d.nowArg(), workerFresh.Milliseconds())
	if err != nil {
		return nil, err
	}
	for i := range out {
		w := &out[i]
		if err := errors.Join(json.Unmarshal([]byte(w.AgentsJSON), &w.Agents), json.Unmarshal([]byte(w.MissingJSON), &w.Missing)); err != nil {
			return nil, fmt.Errorf("read what the worker %s has: %w", w.ID, err)
		}
	}
	return out, nil
}
