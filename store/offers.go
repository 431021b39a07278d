package store

import (
	"context"
	"encoding/json"
	"fmt"

	"holdfast/journal"
)

// AgentOffers are what an agent offered to be set when it last opened a new
// session, or was looked at.
type AgentOffers struct {
	Agent   string
	Version string // as it says itself; "": it doesn't
	Options []journal.AgentOption
	At      int64
}

// SaveAgentOffers keeps what an agent offers an owner, in the place of what it did
// before. They are the owner's own: which models there are may depend on the
// owner's credentials. Options that no event could hold are bounded.
func (s *Store) SaveAgentOffers(ctx context.Context, owner, agent, version string, options []journal.AgentOption) error {
	kept, _ := journal.BoundOptions(options)
	if kept == nil {
		kept = []journal.AgentOption{}
	}
	data, err := journal.Encode(kept)
	if err == nil {
		data, err = s.Cleaner(owner).Typed(kept, data)
	}
	if err != nil {
		return fmt.Errorf("encode what %s offers: %w", agent, err)
	}
	return s.write(ctx, "", func(ctx context.Context, t *tx) error {
		d := t.dialect()
		_, err := t.exec(ctx, "INSERT INTO agent_offers (owner_id, agent, version, options, at) VALUES (?, ?, ?, ?, "+d.now()+") ON CONFLICT (owner_id, agent) DO UPDATE SET version = excluded.version, options = excluded.options, at = excluded.at",
			owner, agent, journal.Cut(s.Cleaner(owner).Text(version), 200), string(data), d.nowArg())
		return err
	})
}

// AgentOffers gives what agents last offered an owner, by the agent's name. One that
// isn't there has never opened a session of the owner's.
func (s *Store) AgentOffers(ctx context.Context, owner string) (map[string]AgentOffers, error) {
	var rows []struct {
		Agent   string `db:"agent"`
		Version string `db:"version"`
		Options string `db:"options"`
		At      int64  `db:"at"`
	}
	if err := s.read(ctx, func(q querier) error {
		rows = nil
		return q.all(ctx, &rows, "SELECT agent, version, options, at FROM agent_offers WHERE owner_id = ?", owner)
	}); err != nil {
		return nil, err
	}
	out := map[string]AgentOffers{}
	for _, r := range rows {
		o := AgentOffers{Agent: r.Agent, Version: r.Version, At: r.At}
		if err := json.Unmarshal([]byte(r.Options), &o.Options); err != nil {
			return nil, fmt.Errorf("read what %s offers: %w", r.Agent, err)
		}
		out[r.Agent] = o
	}
	return out, nil
}
