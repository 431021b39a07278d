package pages

import (
	"fmt"

	"holdfast/journal"
	"holdfast/views/components"
)

// Call is one call on its own page.
type Call struct {
	Frame
	S       components.Session
	Call    *journal.Call
	Payload components.Payload
	Card    *components.UnknownCard // nil: nothing is asked of it
	Facts   []components.CallFact
	Output  components.Output
	Binary  bool // its output isn't text
	Entries []components.Entry
}

// Name is the call in one line.
func (p Call) Name() string { return components.NewCallTitle(p.Call.Tool, p.Payload) }

// laterWords says how what the agent said later stands to what was let run.
func (p Call) laterWords() string {
	return "This came after the call was let run. What was let run is what " + p.where() + " says. What the agent really did can’t be told from either."
}

func (p Call) where() string {
	if p.Card != nil {
		return "the card above"
	}
	return "“What it does”"
}

func (p Call) download() string { return components.CallPath(p.Call.ID) + "/output?download=1" }

// CallOutput is one page of a call's output.
type CallOutput struct {
	Frame
	S      components.Session
	Call   *journal.Call
	Text   string
	Binary bool
	Offset int64
	Next   int64 // 0: this is the end
	Total  int64
}

// Name is the call in one line.
func (p CallOutput) Name() string {
	return components.NewCallTitle(p.Call.Tool, components.CallPayload(p.Call))
}

// Range says which bytes the page shows.
func (p CallOutput) Range() string {
	end := p.Next
	if end == 0 {
		end = p.Total
	}
	return fmt.Sprintf("Bytes %d to %d of %d", p.Offset, end, p.Total)
}
