package components

import (
	"slices"
	"strings"

	"holdfast/journal"
)

// Captured is what pages say of a call's output: what it is or why there is none,
// and where it can be read. Every page takes its words from here, so that no two
// of them disagree, and none leads to what isn't there.
type Captured struct {
	Words string
	Bytes int64
	Href  string // where all of it stands; "": there is nothing to read
}

// Phrase is the words with the way to all of it.
func (c Captured) Phrase() Phrase {
	if c.Href == "" {
		return Say(c.Words)
	}
	return Say(c.Words, ". ", Link(c.Href, "Read all of it"))
}

// NewCaptured says what there is of a call's output. total is what the journal
// holds of it, where that is at hand.
func NewCaptured(c *journal.Call, total int64) Captured {
	if n := max(c.OutputBytes, total); n > 0 {
		out := Captured{Words: Bytes(n), Bytes: n, Href: CallPath(c.ID) + "/output"}
		if c.DroppedBytes > 0 {
			out.Words += ", " + Bytes(c.DroppedBytes) + " in its middle were not kept"
		}
		return out
	}
	if slices.ContainsFunc(c.Evidence, func(e journal.Evidence) bool { return e.Type == journal.EvidenceOutput && !saysNone(e) }) {
		return Captured{Words: "Some of it was captured", Href: CallPath(c.ID) + "/output"} // nobody counted it
	}
	return Captured{Words: noOutput(c)}
}

// saysNone reports whether evidence is the remark that there was no output.
func saysNone(e journal.Evidence) bool {
	return e.Type == journal.EvidenceOutput && strings.HasPrefix(e.Text, "No output was captured")
}

func noOutput(c *journal.Call) string {
	agents, neverRan := c.AttemptID != "", c.NeverRan()
	if c.State == journal.CallIsUnknown {
		neverRan = UnknownCard{Call: c}.fate() == neverBorn
	}
	switch {
	case neverRan:
		return "It did not run, so it has no output."
	case c.State == journal.CallIsDispatched && agents:
		return "The agent has reported no output of it so far."
	case c.State == journal.CallIsDispatched:
		return "No output was captured so far."
	case agents:
		return "The agent reported no output of it."
	}
	return "No output was captured."
}

// seen is what the journal holds as evidence of an unknown call, but for the
// remark that there was no output: Captured says that.
func (c UnknownCard) seen() []Seen {
	var out []Seen
	for i, e := range c.Call.Evidence {
		if !saysNone(e) {
			out = append(out, Seen{c.evidenceName(i), Ending(e.Text)})
		}
	}
	return out
}

// Seen is a piece of evidence with its name.
type Seen struct{ Name, Text string }

// captured is the output of the card's call.
func (c UnknownCard) captured() Captured { return NewCaptured(c.Call, 0) }
