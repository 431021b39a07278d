package acp

import (
	"context"
	"slices"

	"holdfast/journal"
	"holdfast/runner/acp/wire"
)

// Several calls may be open under one id of the agent's: what was let run stays what it was
// let run as, and what is asked under its id that is something else is another call.

// mostUnder bounds how many calls of one id are gone over to find which is meant.
const mostUnder = 20

// find gives the newest call under an id of the agent's; one without an id of ours is new.
func (s *session) find(ctx context.Context, toolCallID string) (*toolCall, error) {
	c := s.tools[toolCallID]
	if c == nil {
		var err error
		if c, err = s.recallAll(ctx, toolCallID); err != nil {
			return nil, err
		}
		s.tools[toolCallID] = c
	}
	s.isOver(c)
	return c, nil
}

// recallAll takes over what the journal has of the calls under an id of the agent's, of
// before a restart: the newest, and those that are open.
func (s *session) recallAll(ctx context.Context, toolCallID string) (*toolCall, error) {
	var newest *toolCall
	for n := 1; ; n++ {
		was := s.t.CallByKey(s.key(toolCallID, n))
		if was == nil {
			break
		}
		c := &toolCall{n: n, id: was.ID, before: newest}
		if newest != nil && s.isOver(newest) {
			c.before = newest.before
		}
		newest = c
	}
	if newest == nil {
		return &toolCall{n: 1}, nil
	}
	for c := newest; c != nil; c = c.before {
		if err := s.recall(ctx, c, s.t.CallByID(c.id)); err != nil {
			return nil, err
		}
	}
	return newest, nil
}

// under gives the newest call of an id, and those before it that are open, the newest first.
func (s *session) under(newest *toolCall) []*toolCall {
	out := []*toolCall{newest}
	for at := newest; at.before != nil && len(out) < mostUnder; {
		if s.isOver(at.before) {
			at.before = at.before.before
			continue
		}
		at = at.before
		out = append(out, at)
	}
	return out
}

// isOver reports whether a call has ended, by its agent's word or as the journal has it:
// refused, say.
func (s *session) isOver(c *toolCall) bool {
	if was := s.t.CallByID(c.id); was != nil && !was.Open() {
		c.ended = true
	}
	return c.ended
}

// meant finds which call of an id an update is about. What says again what one of them is is
// about that one, how it goes about one that runs; all else about the newest that is open.
func (s *session) meant(newest *toolCall, u *wire.ToolCall) *toolCall {
	all := s.under(newest)
	if len(all) == 1 {
		return newest
	}
	open := all
	if newest.ended {
		open = append(all[1:len(all):len(all)], newest)
	}
	if tells(u) {
		for _, runs := range []bool{true, false} {
			for _, c := range open {
				if c.running() == runs && same(c.told, c.told.with(u)) {
					return c
				}
			}
		}
		return open[0]
	}
	for _, c := range open {
		if c.running() && !ends(u) {
			return c
		}
	}
	return open[0]
}

func (c *toolCall) running() bool { return c.runs && !c.ended }

// nextUnder is another call under an id of the agent's, beside those of it that are open.
func (s *session) nextUnder(newest *toolCall, toolCallID string) *toolCall {
	c := &toolCall{n: newest.n + 1, before: newest}
	if newest.ended {
		c.before = newest.before
	}
	if b := c.before; b != nil && b.rests == "" { // what it shows may stand behind what that has shown
		c.shown, c.raw = b.shown, b.raw
	}
	s.tools[toolCallID] = c
	return c
}

// askedFor finds the call that a request under an id is for, and what is asked. What was let
// run and is asked in the same words is asked for once more. Beside it all else is another call: nothing
// takes the place of what may have run (CAL-6).
func (s *session) askedFor(ctx context.Context, newest *toolCall, u *wire.ToolCall) (*toolCall, told, error) {
	all := s.under(newest)
	was := all[0]
	if was.ended && len(all) > 1 {
		was = all[1]
	}
	if was.ended {
		now := told{}.with(u)
		c := s.nextUnder(newest, u.ToolCallID)
		s.shown(c, u, &now, true)
		return c, now, nil
	}
	now := was.told.with(u)
	s.shown(was, u, &now, true)
	for _, c := range all {
		if !s.letRun(c) {
			continue
		}
		ran, known, err := s.letRunAs(ctx, c)
		if err != nil {
			return nil, now, err
		}
		if !known {
			return c, now, nil
		}
		if same(ran, now) { // less is something else: a person allows what the request says
			return c, ran, nil
		}
	}
	if s.letRun(was) {
		return s.nextUnder(newest, u.ToolCallID), now, nil
	}
	now.Input = fuller(was.told.Input, now.Input)
	return was, now, nil
}

// letRun reports whether a call may have run: it was let run, or its agent said so of one that
// has put something out. What its agent only announces, and asks for then, has not begun.
func (s *session) letRun(c *toolCall) bool {
	if c.ended || c.id == "" {
		return false
	}
	if was := s.t.CallByID(c.id); was != nil && was.Began() && !was.LetItself() {
		return true
	}
	return c.runs && (c.bytes > 0 || c.rests != "")
}

// letRunAs is what a call is that may have run: what its agent says of it later is not. It isn't
// known of one whose input can't be read any more.
func (s *session) letRunAs(ctx context.Context, c *toolCall) (t told, known bool, err error) {
	was, err := s.t.WholeCall(ctx, c.id)
	switch {
	case err != nil:
		return told{}, false, err
	case was == nil || !was.Began(): // it is made facts of just now
		return c.told, true, nil
	}
	return t, journal.ReadInput(was.Input, &t), nil
}

// coveredBeside reports whether what is told of a call says nothing that wasn't let run under
// its id: the files and changes of several together.
func (s *session) coveredBeside(ctx context.Context, c *toolCall) (bool, error) {
	all := s.under(c)
	if len(all) == 1 {
		return false, nil
	}
	var ran []told
	var paths []string
	var diffs []diff
	for _, one := range all {
		if !s.letRun(one) {
			continue
		}
		t, known, err := s.letRunAs(ctx, one)
		if err != nil {
			return false, err
		}
		if known {
			ran, paths, diffs = append(ran, t), append(paths, t.Paths...), append(diffs, t.Diffs...)
		}
	}
	return slices.ContainsFunc(ran, func(t told) bool {
		t.Paths, t.Diffs = paths, diffs
		return t.covers(&c.told, s.t.State().Workspace)
	}), nil
}
