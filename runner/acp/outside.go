package acp

import (
	"encoding/json"
	"strings"

	"holdfast/journal"
	"holdfast/runner/acp/wire"
)

// What an agent does while it has nothing to do, or in another session of its own, is no
// call of a turn: no rule was asked for it, and nothing follows from it. It stands in the
// journal all the same, as it came.

// Bounds of what is kept so, each time that an agent is followed.
const (
	mostOutside  = 500      // events
	outsideBytes = 64 << 10 // of each
)

// outside is what was kept of that.
type outside struct {
	kept int
	last map[string]saidOf // of a call, or of a session
}

// saidOf is what was said last of a call: its state, and the digest of what it is.
type saidOf struct{ status, sum string }

// outside keeps an update that belongs to no turn. Of a call it keeps what says
// something new, but for output that grows; of what else is said in another session the
// first alone, since there may be very much of it.
func (s *session) outside(where journal.Outside, sessionID string, u wire.Update, raw json.RawMessage) {
	key, says := sessionID, saidOf{}
	switch u := u.(type) {
	case wire.ToolCall:
		key += "\x00" + u.ToolCallID
		if u.Status != nil {
			says.status = *u.Status
		}
		says.sum = s.besides.last[key].sum
		if now := (told{}).with(&u); !now.nothing() {
			if encoded, err := journal.Encode(now); err == nil {
				says.sum = journal.Hash(string(encoded))
			}
		}
	case wire.Commands, wire.CurrentMode, wire.ConfigOptions, wire.SessionInfo, wire.UsageUpdate:
		return // nothing was done
	}
	if was, known := s.besides.last[key]; known && was == says {
		return
	}
	if s.keepOutside(&journal.AgentEvent{Outside: where, Raw: journal.T(string(raw))}) {
		s.besides.last[key] = says
	}
}

// refusedOutside keeps a request that belongs to no turn, and is refused.
func (s *session) refusedOutside(sessionID string, raw []byte) {
	where := journal.OutsideTurn
	if sessionID != "" && !s.own(sessionID) {
		where = journal.OutsideSession
	}
	s.keepOutside(&journal.AgentEvent{Outside: where, Refused: true, Raw: journal.T(string(raw))})
}

// resting reports whether the agent has nothing to do: it has answered all that it was told.
func (s *session) resting() bool { return s.t.Attempt() == "" || s.result != nil }

// malformed keeps a request for permission that can't be read, and is refused: an agent of
// another dialect may be refused whatever it asks.
func (s *session) malformed(raw []byte, err error) {
	b := &journal.AgentEvent{ProcessID: s.conn.p.ID(), Raw: journal.T(s.whole(raw)), Malformed: whyUnread(err)}
	if s.resting() {
		b.Outside, b.Refused = journal.OutsideTurn, true
		s.keepOutside(b)
		return
	}
	s.fact(b)
}

// mostWhy bounds what is said of what can't be read.
const mostWhy = 500

// whyUnread says what is wrong with a message, for people and the agent.
func whyUnread(err error) string {
	return journal.Cut(strings.TrimPrefix(err.Error(), wire.ErrNotACP.Error()+": "), mostWhy)
}

// keepOutside keeps an event, or says with the last that there is room for that there
// may be more.
func (s *session) keepOutside(b *journal.AgentEvent) bool {
	if s.besides.kept >= mostOutside {
		return false
	}
	s.besides.kept++
	b.ProcessID, b.More = s.conn.p.ID(), s.besides.kept == mostOutside
	b.Raw.S = journal.Cut(b.Raw.S, outsideBytes)
	s.fact(b)
	return true
}

// saidOutside is where a text is said: none of what an agent says while no prompt is
// open is an answer to one.
func (s *session) saidOutside() journal.Outside {
	if s.t.Attempt() == "" {
		return journal.OutsideTurn
	}
	return ""
}
