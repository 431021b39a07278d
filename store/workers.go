package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"holdfast/journal"
)

// workerFresh is how long a worker that was seen counts as alive for the eye.
// Leases don't ask it.
const workerFresh = 40 * time.Second

// Agent is an agent that a worker offers.
type Agent struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Available bool   `json:"available"`
	Reason    string `json:"reason,omitempty"`
	Steer     string `json:"steer"` // boundary or after_turn (PRO-4)
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
}

// SeeWorker writes down a worker at its start and at each renewal, by the database's clock.
func (s *Store) SeeWorker(ctx context.Context, w Worker) error {
	agents, err := journal.Encode(w.Agents)
	if err != nil {
		return fmt.Errorf("encode the agents: %w", err)
	}
	return s.write(ctx, "", func(ctx context.Context, t *tx) error {
		d := t.dialect()
		_, err := t.exec(ctx, "INSERT INTO worker (id, state_folder_id, host, pid, version, started_at, seen_at, places, running, draining, agents) VALUES (?, ?, ?, ?, ?, "+d.now()+", "+d.now()+", ?, ?, ?, ?) "+
			"ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, running = excluded.running, draining = excluded.draining, agents = excluded.agents",
			w.ID, w.StateFolderID, w.Host, w.PID, w.Version, d.nowArg(), d.nowArg(), w.Places, w.Running, boolInt(w.Draining), string(agents))
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
	err := s.read(ctx, func(q querier) error {
		out = nil
		d := q.dialect()
		return q.all(ctx, &out, "SELECT id, state_folder_id, host, pid, version, started_at, seen_at, places, running, draining = 1 AS draining, agents FROM worker WHERE seen_at > "+d.now()+" - ? ORDER BY started_at", d.nowArg(), workerFresh.Milliseconds())
	})
	var errs []error
	for i := range out {
		errs = append(errs, json.Unmarshal([]byte(out[i].AgentsJSON), &out[i].Agents))
	}
	return out, errors.Join(err, errors.Join(errs...))
}
