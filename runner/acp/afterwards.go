package acp

import (
	"strings"

	"holdfast/journal"
	"holdfast/runner/acp/wire"
)

// Bounds of what is kept of what an agent says of a call that has ended.
const (
	mostAfter  = 20       // events of each call
	afterBytes = 16 << 10 // of each
)

// afterwards is what was said of a call since it ended, as far as it was heard here.
type afterwards struct {
	kept int
	last saidOf
}

// saidAfter keeps what an agent says of a call that has ended, or wasn't to run: that it
// runs all the same, how it ended, or what it has put out. It changes nothing of what is
// recorded of the call, and stands beside. That what was refused has failed is what was to
// be expected.
func (s *session) saidAfter(c *toolCall, u *wire.ToolCall, status string) {
	shows := c.shows(u, false)
	if strings.HasPrefix(c.shown, shows) || shows == c.told.Text {
		shows = "" // it was told before
	}
	expected := status == "" || status == "pending" || status == "failed" && !c.runs
	now := saidOf{status, journal.Hash(shows)}
	if shows == "" && expected || now == c.after.last || c.after.kept >= mostAfter {
		return
	}
	c.after.last = now
	c.after.kept++
	s.fact(&journal.AgentEvent{
		ProcessID: s.conn.p.ID(), AfterCall: c.id, More: c.after.kept == mostAfter,
		Raw: journal.T(journal.Cut(s.whole(u.Raw), afterBytes)),
	})
}
