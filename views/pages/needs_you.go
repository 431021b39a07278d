package pages

import (
	"fmt"
	"strings"

	"holdfast/views/components"
)

// NeedsYou is the inbox.
type NeedsYou struct {
	Frame
	Open    []InboxItem          // oldest first
	Ready   []components.Session // to look at: complete, or ended before that
	Things  int                  // to answer, shown or not
	Rest    []InboxRest          // the kinds of them of which not all are shown
	Running int
	Latest  int64 // when the last entry of those that run was made

	ReadyRest InboxRest
}

// InboxRest says how much of a kind is shown: those that wait longest.
type InboxRest struct {
	What      string
	Shown, Of int
}

// Says tells that not all are shown, and where the others are; nothing if all are.
func (r InboxRest) Says(label, href string) components.Phrase {
	if r.Of <= r.Shown {
		return nil
	}
	return components.Say(fmt.Sprintf("These are the oldest %d of %s. All of them: ", r.Shown, components.Plural(r.Of, r.What)), components.Link(href, label), ".")
}

// Nothing says that nothing needs the viewer.
func (p NeedsYou) Nothing() string {
	text := "Nothing needs you. "
	if n := max(p.ReadyRest.Of, len(p.Ready)); n > 0 {
		text = "Nothing waits for your answer. To look at, below: " + components.Plural(n, "session") + ". "
	}
	switch p.Running {
	case 0:
		return text + "No session is running."
	case 1:
		text += "1 session is running"
	default:
		text += components.Plural(p.Running, "session") + " are running"
	}
	return text + "; the latest entry was " + components.Ago(p.Now-p.Latest) + " ago."
}

// InboxItem is one thing that waits for the viewer.
type InboxItem struct {
	Kind    components.Reading // its mark
	Session components.Session
	Since   int64
	Card    *components.DecisionCard // a decision; its form stands here only if its payload fits into the row
	Text    string
	Prose   bool // the text is a sentence, not a command or what an agent calls its call
	Href    string
	Action  string
}

// Rest says how much more than the row's text there is.
func (i InboxItem) Rest() string {
	if i.Card == nil || components.Lines(i.Card.Payload.Text) < 2 {
		return ""
	}
	return components.Plural(components.Lines(i.Card.Payload.Text), "line")
}

// Apart is what the names of the row's controls have behind their words, so that
// they differ from those of other rows.
func (i InboxItem) Apart() string {
	text := ": " + components.QuotedName(components.Line(i.Text, 60))
	if i.Prose { // a sentence of the server's
		text = ": " + components.Plain(components.Told(i.Text, 60))
	}
	if i.Card != nil {
		text += strings.Replace(i.Card.Apart(), ": ", ", ", 1)
	}
	return text
}
