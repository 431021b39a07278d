package handlers

import (
	"context"
	"strings"

	"holdfast/journal"
	"holdfast/views/components"
)

// said is a text of a person or of the agent.
type said struct {
	seq, at int64
	actor   journal.Actor
	what    string // ours
	text    journal.Text
	parts   strings.Builder // of a message that isn't complete
	state   string          // ours
	done    bool
}

func (d *document) messages(ctx context.Context) error {
	d.say("## Messages\n\n")
	n := 0
	err := folded(ctx, d.walk, folding[*said]{
		kinds: []journal.Kind{
			journal.KindPromptAdmitted, journal.KindPromptPromoted, journal.KindPromptWithdrawn, journal.KindMessageDelta, journal.KindMessageCompleted,
		},
		about: aboutMessage, open: newSaid, apply: (*said).apply, done: func(s *said) bool { return s.done },
	}, func(s *said) error {
		n++
		text, err := d.text(ctx, s.text)
		if err != nil {
			return err
		}
		if s.parts.Len() > 0 {
			text = s.parts.String()
		}
		d.say("### Message %d\n\nEntry %s, %s, by %s: %s. %s\n\n", n, components.Number(s.seq), timeJSON(s.at), d.actor(ctx, s.actor), s.what, s.state)
		d.fence(0, text)
		d.say("\n")
		return d.err
	})
	if n == 0 {
		d.say("None.\n\n")
	}
	return err
}

func aboutMessage(body journal.Body) (id string, opens bool) {
	switch b := body.(type) {
	case *journal.PromptAdmitted:
		return b.PromptID, true
	case *journal.PromptPromoted:
		return b.PromptID, false
	case *journal.PromptWithdrawn:
		return b.PromptID, false
	case *journal.MessageDelta:
		return b.MessageID + "/" + string(b.Part), true
	case *journal.MessageCompleted:
		return b.MessageID + "/" + string(b.Part), true
	}
	return "", false
}

func newSaid(ev *journal.Event, body journal.Body) *said {
	s := &said{seq: ev.Seq, at: ev.Time, actor: ev.Actor, what: "a message", state: "It is not complete."}
	if b, ok := body.(*journal.PromptAdmitted); ok {
		s.text, s.state = b.Text, "It waits."
		s.what = "a message for the queue"
		if b.Delivery == journal.Steer {
			s.what = "a message into the turn"
		}
		return s
	}
	_ = s.apply(ev, body) // it refuses nothing
	return s
}

func (s *said) apply(ev *journal.Event, body journal.Body) error {
	switch b := body.(type) {
	case *journal.PromptPromoted:
		s.state, s.done = "Delivered at entry "+components.Number(ev.Seq)+".", true
	case *journal.PromptWithdrawn:
		s.state, s.done = "Withdrawn at entry "+components.Number(ev.Seq)+".", true
	case *journal.MessageDelta:
		if s.done && s.parts.Len() == 0 { // the agent goes on with a message that was whole
			s.parts.WriteString(s.text.S)
		}
		s.parts.WriteString(b.Text.S)
	case *journal.MessageCompleted:
		s.parts.Reset()
		s.what, s.text, s.state, s.done = messageWords(b), b.Text, "", true
	}
	return nil
}

func messageWords(b *journal.MessageCompleted) string {
	switch {
	case b.Told == journal.ToldSummary:
		return "the summary with which the agent’s new conversation begins"
	case b.Told != "":
		return "told to the agent"
	case b.Outside != "":
		return "said while it had nothing to do"
	case b.Part == journal.PartNote:
		return "a note"
	case b.Part == journal.PartReasoning:
		return "reasoning"
	default:
		return "a message"
	}
}
