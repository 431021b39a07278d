package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"holdfast/journal"
)

// toldSeq is the last attempt of a session that has reached its agent, as far as is
// known: one that failed did not, and one that a person wants sent again counts as none.
// What came before it the agent was told, what came after it, it was not; 0: nothing. Of
// the prompts it was told those up to the attempt's cut-off (see toldPrompts).
const toldSeq = "(SELECT coalesce(max(seq), 0) FROM attempt WHERE session_id = ? AND state <> 'failed' AND resolution <> 'retry')"

// News is what an agent that keeps a conversation hasn't been told. An agent without one,
// as the runbook is, makes no attempts: to it this means nothing.
type News struct {
	Verdicts []*journal.Call    // whose outcome was unknown, as people resolved them (CAL-6)
	Rejected []*journal.Call    // that people rejected with a message (PER-2)
	Older    []journal.Promoted // prompts of turns before the chain that the open one continues, with their texts
}

// News reads what a session's agent hasn't been told, of whatever turn, each list in
// the order of the journal.
func (s *Store) News(ctx context.Context, sessionID string) (News, error) {
	var out News
	err := s.read(ctx, func(q querier) error {
		out = News{}
		var err error
		if out.Verdicts, err = callsWhere(ctx, q, "session_id = ? AND state = 'unknown' AND resolution IS NOT NULL AND attempt_id IN (SELECT id FROM attempt WHERE session_id = ? AND seq >= "+toldSeq+") ORDER BY proposed_seq", sessionID, sessionID, sessionID); err != nil {
			return err
		}
		if out.Rejected, err = rejectedCalls(ctx, q, sessionID); err != nil {
			return err
		}
		if err := wholeInputs(ctx, q, slices.Concat(out.Verdicts, out.Rejected)); err != nil { // it is told what each is called
			return err
		}
		out.Older, err = olderPrompts(ctx, q, sessionID)
		return err
	})
	return out, err
}

// toldPrompts gives the seq up to which an agent was told the prompts: the cut-off of the
// last attempt that has reached it. More may have come before that than fitted it.
func toldPrompts(ctx context.Context, q querier, id string) (int64, error) {
	var rows []eventRow
	err := q.all(ctx, &rows, "SELECT "+eventColumns+" FROM event WHERE session_id = ? AND seq = "+toldSeq, id, id)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	ev := rows[0].event()
	body, err := ev.Decode()
	if b, ok := body.(*journal.AttemptPrepared); ok {
		return b.CutoffSeq, err
	}
	return ev.Seq, err // of a version that isn't known
}

func rejectedCalls(ctx context.Context, q querier, id string) ([]*journal.Call, error) {
	var page []eventRow
	if err := q.all(ctx, &page, "SELECT "+eventColumns+" FROM event"+q.dialect().indexed("event_span")+" WHERE session_id = ? AND seq > "+toldSeq+" AND kind IN ("+spanKinds+") AND kind = 'permission.replied' ORDER BY seq", id, id); err != nil {
		return nil, err
	}
	var out []*journal.Call
	for i := range page {
		ev := page[i].event()
		body, err := ev.Decode()
		if err != nil {
			return nil, err
		}
		b, ok := body.(*journal.PermissionReplied)
		if !ok || b.Reply != journal.ReplyReject || b.Message == "" {
			continue
		}
		r, err := loadRequest(ctx, q, b.ID)
		if err != nil {
			return nil, err
		}
		c, err := loadCall(ctx, q, r.Tool.CallID)
		if err != nil {
			return nil, err
		}
		if c.State == journal.CallIsRefused || c.N > 0 {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *journal.Call) int { return cmp.Compare(a.ProposedSeq, b.ProposedSeq) })
	return out, nil
}

func olderPrompts(ctx context.Context, q querier, id string) ([]journal.Promoted, error) {
	var row sessionRow
	if err := q.get(ctx, &row, "SELECT "+sessionColumns+" FROM session WHERE id = ?", id); err != nil {
		return nil, err
	}
	st, err := row.state()
	if err != nil {
		return nil, err
	}
	out, err := untoldPrompts(ctx, q, id, st.ChainSeq, -1)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if err := q.get(ctx, &out[i].Text, "SELECT text FROM input WHERE id = ? AND session_id = ?", out[i].ID, id); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// untoldPrompts reads the newest prompts before a seq that the agent hasn't been told, in
// order, without their texts; most < 0: all.
func untoldPrompts(ctx context.Context, q querier, id string, before int64, most int) ([]journal.Promoted, error) {
	told, err := toldPrompts(ctx, q, id)
	if err != nil {
		return nil, err
	}
	limit := ""
	if most >= 0 {
		limit = fmt.Sprint(" LIMIT ", most)
	}
	var rows []eventRow
	if err := q.all(ctx, &rows, "SELECT "+eventColumns+" FROM event"+q.dialect().indexed("event_asked")+" WHERE session_id = ? AND seq > ? AND seq < ? AND kind IN ("+askedKinds+") AND kind = 'prompt.promoted' ORDER BY seq DESC"+limit, id, told, before); err != nil {
		return nil, err
	}
	out := make([]journal.Promoted, 0, len(rows))
	for i := range rows {
		ev := rows[i].event()
		body, err := ev.Decode()
		if err != nil {
			return nil, err
		}
		if b, ok := body.(*journal.PromptPromoted); ok {
			out = append(out, journal.Promoted{ID: b.PromptID, Delivery: b.Delivery, TurnID: b.TurnID, Seq: ev.Seq})
		}
	}
	slices.Reverse(out)
	return out, nil
}

// maxUntold bounds those of which a page says so.
const maxUntold = 50

// untold reads which prompts had not been sent when their turns ended.
func (p *SessionPage) untold(ctx context.Context, q querier, id string) error {
	before := p.Session.LastSeq + 1
	if st := &p.Session.State; st.TurnOpen() {
		before = st.Turn.StartedSeq
	}
	var err error
	p.Untold, err = untoldPrompts(ctx, q, id, before, maxUntold)
	return err
}
