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
