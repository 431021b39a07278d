package acp

import (
	"encoding/json"
	"slices"
	"time"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp/wire"
)

// tookBack is why a call is cancelled whose request its agent has taken back.
const tookBack = "the agent took its request back"

// takenBack gives up a request of the agent's that it waits for no more: nobody is asked
// about it, and what it was about isn't let run. An answer is due all the same.
func (s *session) takenBack(m wire.Message) error {
	p, err := wire.Decode[wire.CancelRequestParams](m.Params)
	if err != nil {
		return nil //nolint:nilerr // it says nothing of any request
	}
	a, ok := s.dropAsk(p.RequestID)
	if !ok {
		return nil // it was answered
	}
	s.settleAsked(a.CallID, journal.CallCancelled, tookBack)
	return s.refuse(p.RequestID, wire.CodeCancelled, "the request was taken back")
}

// dropAsk takes an open request of the agent's out of those that are answered later.
func (s *session) dropAsk(id wire.ID) (a runner.Ask, ok bool) {
	s.readAsks()
	a, ok = s.askedAs[id.Read()]
	if !ok {
		return a, false
	}
	delete(s.askedAs, id.Read())
	if s.conn.p.IsOpen(a.N) {
		if slices.Contains(s.answers, a.N) {
			return a, false
		}
		s.answers = append(s.answers, a.N)
		return a, true
	}
	i := slices.IndexFunc(s.asks, func(b runner.Ask) bool { return b.N == a.N })
	if i < 0 {
		return a, false // it was answered
	}
	s.asks = slices.Delete(slices.Clone(s.asks), i, i+1)
	return a, true
}

// readAsks reads what an earlier run has left without an answer, once: it may be long.
func (s *session) readAsks() {
	if s.askedAs != nil {
		return
	}
	s.askedAs = map[wire.ID]runner.Ask{}
	for _, a := range s.conn.p.Asks() {
		var asked askedOf
		if json.Unmarshal([]byte(a.Request), &asked) == nil {
			s.askedAs[asked.ID.Read()] = runner.Ask{N: a.N, CallID: a.CallID}
		}
	}
}

// settleAsked settles a call that was asked for and is not let run, with what people are
// asked about it. One that was settled before stays as it is. So does one that was let run
// before: its agent says how it ends, or nobody knows.
func (s *session) settleAsked(callID string, state journal.CallState, why string) {
	was := s.t.CallByID(callID)
	if s.endedHere(callID) || was != nil && !was.Open() {
		return
	}
	c := s.ours[callID]
	if c == nil { // of before a restart
		c = &toolCall{id: callID}
		if was != nil {
			c.bytes, c.lost = was.OutputBytes, was.DroppedBytes
		}
		s.ours[callID] = c
	}
	s.giveUpRequests(callID, why)
	switch {
	case s.began(callID):
		return
	case c.begins && !c.reads:
		s.dispatch(c, journal.AllowedBy{Type: journal.AllowedByAgent, Text: unheeded}, time.Time{})
		return
	}
	s.addTail(c)
	c.ended = true
	s.drafts = append(s.drafts, runner.Seen(&journal.CallSettled{CallID: callID, State: state, Reason: why, OutputBytes: c.bytes, DroppedBytes: c.lost}))
}
