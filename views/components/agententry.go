package components

import (
	"fmt"
	"strings"

	"holdfast/journal"
)

// agentEntry tells of the agent's process: calm, since nobody has to do anything of it.
func (d *drawer) agentEntry(ev *journal.Event, body journal.Body) (Entry, bool) {
	switch b := body.(type) {
	case *journal.AgentStarted:
		e := minor("The agent’s process was started")
		if p := b.Process; p != nil && p.Host != "" {
			e.Note = Say("on ", Code(p.Host))
		}
		if len(b.Credentials) > 0 {
			if e.Note != nil {
				e.Note = Say(e.Note, ", ")
			}
			e.Note = Say(e.Note, withCredentials(b.Credentials))
		}
		return e, true
	case *journal.AgentOpened:
		e := minor("The agent is ready: ", Code(strings.TrimSpace(Line(b.Name, 80)+" "+Line(b.Version, 40))))
		if b.Name == "" && b.Version == "" {
			e.Title = Say("The agent is ready")
		}
		e.Note = Say(openedText(b))
		return e, true
	case *journal.AgentForgotten:
		return Entry{Icon: "fail", Title: Say("The agent has forgotten this conversation"), Note: Say(forgottenText(b.How)), Lines: []Phrase{Say(Line(b.Reason, 1000))}}, true
	case *journal.AgentEnded:
		e := minor("The agent’s process ended")
		var note []string
		if b.ExitCode != nil {
			note = append(note, fmt.Sprintf("exit %d", *b.ExitCode))
		}
		if b.Signal != "" {
			note = append(note, "ended by "+Line(b.Signal, 20))
		}
		if b.Reason != "" {
			note = append(note, Line(b.Reason, 400))
		}
		e.Note = Say(strings.Join(note, ", "))
		return e, true
	case *journal.AgentEvent:
		e := minor("The agent said something of a kind that is not known here")
		e.Raw = journal.Cut(textOf(b.Raw), opaqueBytes)
		return e, true
	}
	return settingEntry(ev, body)
}

// withCredentials names what of its owner's credentials a process has.
func withCredentials(list []journal.CredentialUse) Phrase {
	out := Say("with ")
	for i, c := range list {
		if i > 0 {
			out = Say(out, ", ")
		}
		out = Say(out, Code(Line(c.Name, 100)))
	}
	return Say(out, " of your credentials")
}

func minor(title ...any) Entry {
	return Entry{Class: "minor", Icon: "agent", Title: Say(title...)}
}

// openedText says how the process came to the agent's own session.
func openedText(b *journal.AgentOpened) string {
	how := "a new conversation"
	switch b.How {
	case journal.AgentResumed:
		how = "it resumed its conversation"
	case journal.AgentLoaded:
		how = "it loaded its conversation again"
	case journal.AgentNew:
		if !b.Resumes {
			how += ", which no other process of it can take up"
		}
	}
	return how
}

// forgottenText says how it was asked to go on.
func forgottenText(how journal.AgentMemory) string {
	switch how {
	case journal.AskedToResume:
		return "it was asked to resume it"
	case journal.AskedToLoad:
		return "it was asked to load it"
	case journal.CannotBeAsked:
	}
	return "it can’t go on in another process"
}

func (d *drawer) attemptEntry(body journal.Body) (Entry, bool) {
	switch b := body.(type) {
	case *journal.AttemptPrepared:
		return minor("A message to the agent was prepared: ", Code(b.Model)), true
	case *journal.AttemptDispatched:
		return minor("It was sent"), true
	case *journal.AttemptReceiving:
		return minor("The agent began to answer"), true
	case *journal.AttemptSettled:
		e := minor("The agent has answered")
		e.Note = Say(settledText(b))
		return e, true
	case *journal.AttemptFailed:
		e := Entry{Icon: "fail", Title: Say("The message did not reach the agent"), Lines: []Phrase{Say(b.Error)}}
		if r := b.Retry; r != nil {
			e.Lines = append(e.Lines, Say("It is sent again by itself at ", AtSecond(r.At), fmt.Sprintf(", as try %d of %d.", r.N, r.Of)))
		}
		return e, true
	case *journal.AttemptUnknown:
		received := "What it said before that stands above."
		if b.ReceivedBytes > 0 {
			received = Bytes(b.ReceivedBytes) + " of its answer were received; they stand above."
		}
		return Entry{
			Icon: "unk", Class: "unk", Title: Say("The agent was lost before it had answered"), Note: Say("it was not asked again"),
			Lines: []Phrase{Say("How far it came is not known. " + received)},
		}, true
	case *journal.AttemptResolved:
		did := " chose to send the message to the agent again"
		if b.Outcome == journal.AttemptAbandon {
			did = " chose not to send the message again"
		}
		return Entry{Icon: "person", Of: b.AttemptID, Title: Say(d.whoDid(b.By) + did), Note: Say(thenText(b.Then))}, true
	}
	return Entry{}, false
}

// settledText says how the answer ended, if not as it should, and what it used, if
// that is known.
func settledText(b *journal.AttemptSettled) string {
	var parts []string
	switch b.Outcome {
	case "", "end_turn", "ok":
	default:
		parts = append(parts, strings.ReplaceAll(Line(b.Outcome, 60), "_", " "))
	}
	if u := b.Usage; u.InputTokens+u.OutputTokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens in, %d out", u.InputTokens, u.OutputTokens))
	}
	return strings.Join(parts, ", ")
}
