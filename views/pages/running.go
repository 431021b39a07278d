package pages

import (
	"cmp"

	"holdfast/journal"
	"holdfast/views/components"
)

// Running is the list of the commands that run under shims.
type Running struct {
	Frame
	Items  []RunningCommand
	More   bool // there are more than what is shown
	Others int  // how many run for other people

	Agents []components.Session // in which agents work, with commands of their own; at most a page of them
}

// AgentsSay tells of the agents that work: what they run is in their own processes.
func (p Running) AgentsSay() components.Phrase {
	n := len(p.Agents)
	if n == 0 {
		return components.Say("Agents run theirs in processes of their own: none works just now.")
	}
	verb := " work now: "
	if n == 1 {
		verb = " works now: "
	}
	says := components.Say("Agents run theirs in processes of their own, which go on, too: " + components.Plural(n, "agent") + verb)
	for i, s := range p.Agents {
		if i > 0 {
			says = components.Say(says, ", ")
		}
		says = components.Say(says, components.Link(s.Path(), s.Title()))
	}
	return says // a title may end with a mark of its own
}

// RunningCommand is one of them.
type RunningCommand struct {
	S        components.Session
	Call     *journal.Call
	Followed bool   // a worker is at it
	Worker   string // the host of the one that follows it, or can; "": none is there
}

// Name is the command in one line.
func (r RunningCommand) Name() string {
	return components.NewCallTitle(r.Call.Tool, components.CallPayload(r.Call))
}

// Host is where it runs.
func (r RunningCommand) Host() string {
	if p := r.Call.Process; p != nil && p.Host != "" {
		return p.Host
	}
	return cmp.Or(r.Worker, r.S.Host)
}

// State says whether a server follows it just now.
func (r RunningCommand) State() components.Reading {
	switch {
	case r.Followed:
		return components.Reading{Key: "followed", Words: "Followed", Icon: "run", Tone: components.ToneRun}
	case r.S.Claim != nil:
		return components.Reading{Key: "unconfirmed", Words: "Not confirmed", Icon: "dash", Tone: components.ToneOff, Detail: r.alone("No word from its server.")}
	case r.Worker != "":
		return components.Reading{Key: "waits", Words: "Waits for a server", Icon: "queue", Tone: components.ToneOff, Detail: r.alone("One is there, and follows it when it has a place.")}
	}
	return components.Reading{Key: "waits", Words: "Waits for a server", Icon: "queue", Tone: components.ToneOff, Detail: r.alone("None is there.")}
}

// alone says what a command does that no server follows.
func (r RunningCommand) alone(why string) components.Phrase {
	return components.Say(why + " It needs none to go on, and its output is kept.")
}

// Says tells in a sentence what is on the page.
func (p Running) Says() string {
	n := len(p.Items)
	says := "None of your runbooks’ commands runs just now"
	switch {
	case p.More:
		says = "More than " + components.Plural(n, "command") + " run; these are the first of them"
	case n == 1:
		says = "1 command runs"
	case n > 1:
		says = components.Plural(n, "command") + " run"
	}
	switch {
	case p.Others == 0:
		return says + "."
	case n == 0:
		return says + "; of other people, " + count(p.Others) + " do" + es(p.Others) + "."
	}
	return says + ", and " + count(p.Others) + " of other people."
}

func es(n int) string {
	if n == 1 {
		return "es"
	}
	return ""
}
