package components

import (
	"strings"

	"holdfast/journal"
)

// Writing is a message of the agent of which there are pieces only.
type Writing struct {
	Seq     int64 // where it began
	CutOff  bool  // nothing of it comes any more
	Text    string
	Through int64 // the seq up to which Text is; 0: Text isn't at hand
	Before  bool  // something of it stands before Text
}

// Draft is a message that isn't complete, in the row where it began. A script adds
// the pieces that follow.
type Draft struct {
	ID      string // of the place of its text
	Text    string
	Through int64 // what later rows bring is added
	Before  bool  // something of it stands before Text, which is its end
	CutOff  bool
}

func messageKey(id string, part journal.Part) string { return id + "/" + string(part) }

// draftID is the id of a draft's place in the page.
func draftID(id string, part journal.Part) string { return "draft-" + string(part) + "-" + id }

// DraftNote says beside a message that isn't complete why.
type DraftNote struct {
	ID     string
	CutOff bool
}

// NewDraftNote is the note of a message as it stands now.
func NewDraftNote(message string, part journal.Part, cutOff bool) DraftNote {
	return DraftNote{draftID(message, part), cutOff}
}

func (d *Draft) note() DraftNote { return DraftNote{d.ID, d.CutOff} }

// Words are the note.
func (n DraftNote) Words() string {
	if n.CutOff {
		return "incomplete: it was cut off here"
	}
	return "is writing; this is not complete"
}

func (d *drawer) messageEntry(ev *journal.Event, body journal.Body) (Entry, bool) {
	switch b := body.(type) {
	case *journal.MessageDelta:
		return d.messagePiece(ev, b), true
	case *journal.MessageCompleted:
		return d.message(ev, b), true
	}
	return Entry{}, false
}

// messagePiece is the row of a piece: the draft if the message begins with it and
// isn't complete, else a row that brings its text to the draft.
func (d *drawer) messagePiece(ev *journal.Event, b *journal.MessageDelta) Entry {
	key, id := messageKey(b.MessageID, b.Part), draftID(b.MessageID, b.Part)
	w, open := d.Writing[key]
	switch {
	case !open || d.whole[key] > ev.Seq:
		return Entry{Piece: true}
	case w.Seq != ev.Seq:
		return Entry{Piece: true, Adds: textOf(b.Text), AddsTo: id}
	}
	e := Entry{Class: "live", Icon: "agent", Title: Say("Agent"), Draft: &Draft{ID: id, Text: textOf(b.Text), Through: ev.Seq, CutOff: w.CutOff}}
	if w.Through > 0 {
		e.Draft.Text, e.Draft.Through, e.Draft.Before = w.Text, w.Through, w.Before
	}
	if b.Outside != "" {
		e.Note = Say(saidAtRest)
	}
	if len(e.Draft.Text) > proseBytes {
		e.Draft.Text, e.Draft.Before = journal.Tail(e.Draft.Text, proseBytes), true
	}
	if b.Part == journal.PartReasoning {
		e.Title, e.Fold = Say("The agent is thinking"), "Show its thinking so far"
	}
	return e
}

// message is the row of a message that is whole. An agent may take up one that it
// had finished: then the text stands where it is whole the last time.
func (d *drawer) message(ev *journal.Event, b *journal.MessageCompleted) Entry {
	key := messageKey(b.MessageID, b.Part)
	if last := d.whole[key]; last > ev.Seq {
		return Entry{Class: "minor", Icon: "agent", Title: Say("The agent went on with this message: it stands whole at ", EntryLink(last))}
	}
	e := Entry{Icon: "agent", Title: Say("Agent"), Rich: true, Finishes: draftID(b.MessageID, b.Part)}
	text, whole := d.Texts[key]
	if !whole {
		text = textOf(b.Text)
	}
	e.prose(text)
	switch b.Part {
	case journal.PartReasoning:
		e.Class, e.Title, e.Fold = "minor", Say("The agent thought"), "Show its thinking, "+Plural(len(strings.Fields(text)), "word")
	case journal.PartNote:
		e.Note = Say("note")
		if b.Role == journal.RoleServer {
			e.byServer(b.Told, text)
		}
	case journal.PartText:
	}
	if b.Outside != "" {
		e.Note = Say(saidAtRest)
	}
	return e
}

// saidAtRest stands beside a text that could be taken for the answer to the message
// above it.
const saidAtRest = "said while it had nothing to do; it answers no message"

// byServer is the row of a text of the server's own, which quotes whoever there was.
func (e *Entry) byServer(told journal.Told, text string) {
	e.Icon, e.Note, e.Rich = "server", nil, false
	switch told {
	case "":
		e.Title, e.Note = Say("The server"), Say("note")
	case journal.ToldSummary:
		e.Icon, e.Title = "rev", Say("The agent’s new conversation begins with a summary from the journal")
		e.Fold = "Show the summary, " + Plural(len(strings.Fields(text)), "word")
	default: // also of what a later version tells
		e.Title = Say("The server told the agent")
	}
}
