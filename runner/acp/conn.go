package acp

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp/wire"
)

// errEnded says that the agent's process has ended: what it had written was heard.
var errEnded = errors.New("the agent's process has ended")

// conn makes messages of what a process writes, and knows the place of each in the
// process's spool.
type conn struct {
	p      *runner.Process
	lines  wire.Lines
	skip   int64             // bytes of standard output that are still to be passed over: they are in the journal
	base   int64             // bytes of standard output before what lines was fed
	marks  []place           // where the spool stands in the stream, the last committed first
	read   int64             // bytes of standard output so far
	fault  journal.LastWords // on standard error
	ended  *runner.Heard
	why    string                  // it was ended by us
	cut    bool                    // it had written more by its end than was read
	clean  func() *journal.Cleaner // of what it writes on standard error, for people
	opened bool                    // the agent's session was open in it
}

// place is an offset of the spool, and how much standard output comes before it.
type place struct{ bytes, offset int64 }

func newConn(p *runner.Process, maxLine int, clean func() *journal.Cleaner) *conn {
	offset, skip := p.At()
	return &conn{p: p, clean: clean, fault: journal.LastWords{Most: lastWords}, lines: wire.Lines{Max: maxLine}, skip: skip, base: skip, marks: []place{{0, offset}}}
}

// take adds what was heard, and gives the lines that are whole now. errEnded: there
// will be no more.
func (c *conn) take(h runner.Heard) ([]wire.Line, error) {
	if h.Ended {
		c.ended = &h
		if last, ok := c.lines.Last(); ok { // it has ended without a line feed
			last.Bytes, last.Heard = wire.Kept(last.Bytes), time.Now()
			return []wire.Line{last}, errEnded
		}
		return nil, errEnded
	}
	var lines []wire.Line
	for _, piece := range h.Pieces {
		text := piece.Text
		if piece.Stream != "stdout" {
			c.fault.Add(c.clean(), text)
			continue
		}
		c.read += int64(len(text))
		if n := min(c.skip, int64(len(text))); n > 0 {
			c.skip -= n
			text = text[n:]
		}
		more, err := c.lines.Feed([]byte(text))
		for i := range more {
			more[i].Bytes, more[i].Heard = wire.Kept(more[i].Bytes), time.Now()
		}
		lines = append(lines, more...)
		if err != nil {
			return lines, fmt.Errorf("read what the agent says: %w", err)
		}
	}
	c.marks = append(c.marks, place{c.read, h.Next})
	return lines, nil
}

// at gives the place behind a line, or behind all lines so far if it is nil.
func (c *conn) at(line *wire.Line) (readTo, skip int64) {
	end := c.lines.Consumed()
	if line != nil {
		end = line.End
	}
	end += c.base
	i := 0
	for i+1 < len(c.marks) && c.marks[i+1].bytes <= end {
		i++
	}
	return c.marks[i].offset, end - c.marks[i].bytes
}

// forget drops the places before the one that was committed.
func (c *conn) forget(readTo int64) {
	for len(c.marks) > 1 && c.marks[1].offset <= readTo {
		c.marks = c.marks[1:]
	}
}

// commit journals what was made of the lines up to a place.
func (c *conn) commit(ctx context.Context, line *wire.Line, a runner.Commit) error {
	a.ReadTo, a.Skip = c.at(line)
	if err := c.p.Commit(ctx, a); err != nil {
		return err
	}
	c.forget(a.ReadTo)
	return nil
}

// mostBehind is how much of the spool, in bytes, is read before its room is given back,
// also if nothing is made of it; and mostUnfinished how much more may come of a line that
// has no end yet, and beside it.
const (
	mostBehind     = 8 << 20
	mostUnfinished = 2 * wire.MaxLine
)

// errTooMuch says that more came beside an unfinished line than is kept.
var errTooMuch = errors.New("the agent began a line, did not end it, and wrote too much elsewhere")

// keepUp commits the place behind all whole lines if much was read behind the last, so
// that what nothing is made of, as of a session that is loaded, fills no disk. Nothing of
// those lines may be wanted.
func (c *conn) keepUp(ctx context.Context) error {
	behind := c.marks[len(c.marks)-1].offset
	if readTo, _ := c.p.At(); behind-readTo < mostBehind {
		return nil
	}
	if to, _ := c.at(nil); behind-to < mostBehind {
		return c.commit(ctx, nil, runner.Commit{})
	}
	if readTo, _ := c.p.At(); behind-readTo > mostBehind+mostUnfinished {
		return errTooMuch
	}
	return nil
}

// say commits what the process is told, without having read any further.
func (c *conn) say(ctx context.Context, a runner.Commit) error {
	a.ReadTo, a.Skip = c.p.At()
	return c.p.Commit(ctx, a)
}

// next is the number of the frame that comes next, and so the id of a request in it.
func (c *conn) next() int64 { return c.p.Told() + 1 }

// end is the fact of how the process ended.
func (c *conn) end() *journal.AgentEnded {
	e := c.p.Ended(c.ended)
	if c.why != "" {
		e.Reason = c.why
	}
	switch {
	case c.cut && c.ended.Exit == nil:
		e.Reason += "; what it wrote last is left out, since it could not be read in time"
	case c.cut:
		e.Reason += fmt.Sprintf("; the last %d KB that it wrote are left out, since they could not be read in time", c.p.Unread(c.ended.Exit)>>10+1)
	}
	return e
}

// survivors say what of the process could not be ended; "" if there is nothing, or
// nobody knows.
func (c *conn) survivors() string {
	if c.ended == nil || c.ended.Exit == nil || len(c.ended.Exit.Survivors) == 0 {
		return ""
	}
	return fmt.Sprintf(" It left processes that could not be ended: %v.", c.ended.Exit.Survivors)
}

// words say how the process ended, for people, and what follows from that.
func (c *conn) words(follows string) string {
	e := c.end()
	what := "The agent's process is gone, and nobody saw how it ended."
	switch {
	case e.Reason != "":
		what = "The agent's process was ended: " + e.Reason + "."
	case e.Signal != "":
		what = "The agent's process was ended by " + e.Signal + "."
	case e.ExitCode != nil:
		what = fmt.Sprintf("The agent's process ended with exit code %d.", *e.ExitCode)
	}
	if c.ended != nil && c.ended.Muted {
		what += " What it said last is left out: its credentials were forgotten or spoilt, so nothing masks it."
	}
	what += follows
	if last := c.fault.Text(c.clean(), colourless); last != "" {
		what += " Its last words: " + journal.Quote(last, 2*lastWords) + "."
	}
	return what
}

// colours are what a program that believes itself at a terminal puts around its words, and
// into them; the last may be cut off.
var colours = regexp.MustCompile(`\x1b(?:\[[0-9;?]*(?:[A-Za-z]|$)|$)`)

func colourless(s string) string { return colours.ReplaceAllString(s, "") }

// lastWords is how much of standard error is kept for people.
const lastWords = 600

func tail(s string) string {
	if len(s) <= 2*lastWords {
		return s
	}
	return journal.Tail(s, lastWords)
}
