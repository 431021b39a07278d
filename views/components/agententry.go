package components

import (
	"encoding/json"
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
		title := "The agent has forgotten this conversation"
		if b.MayPass { // it gave another reason, or none
			title = "The agent could not take up this conversation"
		}
		return Entry{Icon: "fail", Title: Say(title), Note: Say(forgottenText(b.How)), Lines: []Phrase{Say(Told(b.Reason, 2000))}}, true
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
			note = append(note, Told(b.Reason, 400))
		}
		e.Note = Say(strings.Join(note, ", "))
		return e, true
	case *journal.AgentLost:
		e := Entry{Icon: "unk", Title: Say("The agent’s process may still be running"), Note: whereLost(b)}
		e.Lines = []Phrase{Say("No server there answers, so nobody knows. The session goes on without it; a server there ends it as soon as it is back.")}
		return e, true
	case *journal.AgentEvent:
		e := minor("The agent said something of a kind that is not known here")
		if saysAsPerson(b.Raw.S) {
			e = minor("The agent repeated a message as a person’s")
			e.Note = Say("it is none of this session’s, and was not taken for one")
		}
		if b.Outside != "" {
			e = outsideEntry(b)
		}
		if b.AfterCall != "" {
			e = afterEntry(b)
		}
		if b.Unread {
			e = Entry{Icon: "unk", Title: Say("The agent sent a line that can’t be read"), Note: Say("it may be rubbish, or the agent’s answer; if the agent says nothing more for a while, its process is ended and the outcome is unknown")}
		}
		if b.Malformed != "" {
			e = Entry{Icon: "fail", Title: Say("The agent asked whether it may do something, in a form that isn’t ACP’s"), Note: Say("so it was refused, and nobody was asked"), Lines: []Phrase{Say("What is wrong: ", Line(b.Malformed, 300))}}
		}
		e.Raw = journal.Cut(textOf(b.Raw), opaqueBytes)
		return e, true
	}
	return settingEntry(ev, body)
}

// saysAsPerson reports whether what an agent said is a piece of a message that it takes
// for a person's: some tell them again when they take up a conversation.
func saysAsPerson(raw string) bool {
	var update struct {
		Kind string `json:"sessionUpdate"`
	}
	return json.Unmarshal([]byte(raw), &update) == nil && update.Kind == "user_message_chunk"
}

// whereLost says where a lost process ran, and since when.
func whereLost(b *journal.AgentLost) Phrase {
	if b.Host == "" {
		return Say("on another host")
	}
	return Say("on ", Code(b.Host), fmt.Sprintf(", as pid %d, since ", b.PID), AtSecond(b.Since))
}

// outsideEntry tells of what the agent did outside of turns.
func outsideEntry(b *journal.AgentEvent) Entry {
	where := "while it had nothing to do"
	if b.Outside == journal.OutsideSession {
		where = "in another conversation of its own"
	}
	did, note := "The agent did this ", "it belongs to no turn, and nobody was asked"
	if b.Refused {
		did, note = "The agent asked for this ", "it belongs to no turn, so it was refused"
	}
	if b.More {
		note += "; what else it does so is not kept for now"
	}
	return Entry{Icon: "agent", Title: Say(did + where), Note: Say(note)}
}

// afterEntry tells of what the agent said of a call that had ended.
func afterEntry(b *journal.AgentEvent) Entry {
	note := "what is recorded of the call stays as it is; it may have run on, or run all the same"
	if b.More {
		note += "; what else it says of that call is not kept for now"
	}
	return Entry{Icon: "agent", Title: Say("After a call had ended, the agent said this of it"), Note: Say(note)}
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
		switch {
		case b.Error == journal.UnreadAnswer:
			e.Lines = []Phrase{Say("Its answer can’t be read.")}
		case b.Error != "":
			e.Lines = []Phrase{Say("The agent’s words: ", Quoted(b.Error, 300))}
		}
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
		e := Entry{Icon: "person", Of: b.AttemptID, Title: Say(d.whoDid(b.By) + " " + ChoseText(b.Outcome)), Note: Say(thenText(b.Then))}
		e.prose(b.Evidence)
		return e, true
	}
	return Entry{}, false
}

// ChoseText says what somebody has chosen of a message that may have reached the agent.
func ChoseText(v journal.AttemptVerdict) string {
	switch v {
	case journal.AttemptRetry:
		return "chose to send the message to the agent again"
	case journal.AttemptAbandon:
		return "chose not to send the message again"
	}
	return "chose " + v.Words()
}

func settledAsItShould(b *journal.AttemptSettled) bool {
	return b.Outcome == "" || b.Outcome == "end_turn" || b.Outcome == "ok"
}

// stopReasons are those that ACP knows, in the server's words; "error" is the server's.
var stopReasons = map[string]string{
	"max_tokens":        "its model reached the most that it may say",
	"max_turn_requests": "it reached the most requests of a turn",
	"refusal":           "it refuses to go on",
	"cancelled":         "it says that it was cancelled",
	"error":             "with an error",
}

// settledText says how the answer ended, if not as it should, and what it used, if
// that is known.
func settledText(b *journal.AttemptSettled) string {
	var parts []string
	if !settledAsItShould(b) {
		if why, known := stopReasons[b.Outcome]; known {
			parts = append(parts, why)
		} else {
			parts = append(parts, "the reason is not known here, in the agent’s words: "+journal.Quote(b.Outcome, 60))
		}
	}
	if u := b.Usage; u.InputTokens+u.OutputTokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens in, %d out", u.InputTokens, u.OutputTokens))
	}
	return strings.Join(parts, ", ")
}
