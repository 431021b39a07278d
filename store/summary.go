package store

import (
	"context"
	"slices"

	"holdfast/journal"
)

// Bounds of what a summary is made of: what is older is only counted.
const (
	summaryPage    = 500
	summaryPrompts = 40
	summaryCalls   = 200
	summarySaid    = 3
)

// askedKinds are those that journal.AskedFold is for, and those of the index event_asked.
const askedKinds = "'turn.started', 'turn.ended', 'prompt.promoted', 'attempt.prepared', 'attempt.failed', 'attempt.unknown', 'attempt.resolved'"

// Summary tells what the journal of a session has up to before a seq, for an agent
// without a memory of it. Code: not_found.
func (s *Store) Summary(ctx context.Context, sessionID string, before int64) (out string, err error) {
	err = s.read(ctx, func(q querier) error {
		out, err = summary(ctx, q, sessionID, before)
		return err
	})
	return out, err
}

func summary(ctx context.Context, q querier, id string, before int64) (string, error) {
	var h journal.History
	if err := q.get(ctx, &h.Workspace, "SELECT workspace FROM session WHERE id = ?", id); err != nil {
		return "", err
	}
	for _, part := range []func(context.Context, querier, *journal.History, string, int64) error{summaryAsked, summaryDone, summaryWords} {
		if err := part(ctx, q, &h, id, before); err != nil {
			return "", err
		}
	}
	return journal.Summary(&h), nil
}

// summaryAsked reads the first prompt and the newest, and the plan.
func summaryAsked(ctx context.Context, q querier, h *journal.History, id string, before int64) error {
	var fold journal.AskedFold
	for after := int64(0); ; {
		var page []eventRow
		if err := q.all(ctx, &page, "SELECT "+eventColumns+" FROM event"+q.dialect().indexed("event_asked")+" WHERE session_id = ? AND seq > ? AND seq < ? AND kind IN ("+askedKinds+") ORDER BY seq LIMIT ?", id, after, before, summaryPage); err != nil {
			return err
		}
		for i := range page {
			ev := page[i].event()
			after = ev.Seq
			if err := fold.Apply(&ev); err != nil {
				return err
			}
		}
		if len(page) < summaryPage {
			break
		}
	}
	h.Asked, h.LostMessages = fold.Prompts(), fold.Lost
	if left := len(h.Asked) - summaryPrompts; left > 0 {
		h.AskedLeft = left
		h.Asked = slices.Delete(h.Asked, 1, 1+left)
	}
	for i := range h.Asked {
		if err := q.get(ctx, &h.Asked[i].Text, "SELECT text FROM input WHERE id = ? AND session_id = ?", h.Asked[i].PromptID, id); err != nil {
			return err
		}
	}
	return summaryPlan(ctx, q, h, id, fold.ChainSeq, before)
}

// summaryPlan reads the last plan of the chain that goes on.
func summaryPlan(ctx context.Context, q querier, h *journal.History, id string, chain, before int64) error {
	var seq int64
	if err := q.get(ctx, &seq, "SELECT coalesce(max(seq), 0) FROM event"+q.dialect().indexed("event_plan")+" WHERE session_id = ? AND seq > ? AND seq < ? AND kind = 'plan.updated'", id, chain, before); err != nil || seq == 0 {
		return err
	}
	b, err := bodyAt[*journal.PlanUpdated](ctx, q, id, seq)
	if b != nil {
		h.Plan = b.Plan
	}
	return err
}

// summaryDone reads the newest calls that may have changed something.
func summaryDone(ctx context.Context, q querier, h *journal.History, id string, before int64) error {
	newest := func(where string, left *int) ([]*journal.Call, error) {
		var n int
		if err := q.get(ctx, &n, "SELECT count(*) FROM call WHERE session_id = ? AND proposed_seq < ? AND "+where, id, before); err != nil {
			return nil, err
		}
		calls, err := callsWhere(ctx, q, "session_id = ? AND proposed_seq < ? AND "+where+" ORDER BY proposed_seq DESC LIMIT ?", id, before, summaryCalls)
		slices.Reverse(calls)
		*left = n - len(calls)
		if err != nil {
			return nil, err
		}
		return calls, titled(ctx, q, calls)
	}
	var err error
	if h.Unknown, err = newest("state = 'unknown'", &h.UnknownLeft); err != nil {
		return err
	}
	if h.Done, err = newest("state <> 'unknown' AND effect <> 'read'", &h.DoneLeft); err != nil {
		return err
	}
	return q.get(ctx, &h.Reads, "SELECT count(*) FROM call WHERE session_id = ? AND proposed_seq < ? AND state <> 'unknown' AND effect = 'read'", id, before)
}

// titled leaves of each input what the call is called by: many long ones aren't held at once.
func titled(ctx context.Context, q querier, calls []*journal.Call) error {
	for _, c := range calls {
		if err := wholeInput(ctx, q, c); err != nil {
			return err
		}
		input, err := journal.Encode(map[string]string{"title": c.Title()})
		if err != nil {
			return err
		}
		c.Input, c.Later = input, nil
	}
	return nil
}

// summaryWords reads the agent's last messages, also one that was cut off.
func summaryWords(ctx context.Context, q querier, h *journal.History, id string, before int64) error {
	var rows []struct {
		ID       string `db:"id"`
		Seq      int64  `db:"seq"`
		Text     string `db:"text"`
		Complete bool   `db:"complete"`
	}
	if err := q.all(ctx, &rows, "SELECT id, seq, text, complete FROM message"+q.dialect().indexed("message_said")+" WHERE session_id = ? AND seq < ? AND role = 'agent' AND part = 'text' ORDER BY seq DESC LIMIT ?", id, before, summarySaid); err != nil {
		return err
	}
	slices.Reverse(rows)
	for _, r := range rows {
		said := journal.Said{Text: r.Text, Cut: !r.Complete}
		if err := q.get(ctx, &said.At, "SELECT time FROM event WHERE session_id = ? AND seq = ?", id, r.Seq); err != nil {
			return err
		}
		if said.Cut {
			var err error
			if said.Text, err = streamed(ctx, q, id, r.ID, r.Seq); err != nil {
				return err
			}
		}
		h.Said = append(h.Said, said)
	}
	return nil
}
