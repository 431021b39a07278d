package pages

import (
	"fmt"

	"github.com/a-h/templ"

	"holdfast/views/components"
)

// Agents are what a server has of agents.
type Agents struct {
	Frame
	Offered   []Agent
	Known     []Agent // that it would offer
	Elsewhere []Agent // that other servers of the journal offer
}

// Agent is one of them as it is just now.
type Agent struct {
	Name    string
	Command string // secrets are hidden
	From    string // where it is from
	File    string // that is run
	Reason  string // why it can't be started; "": it can
	Get     string // how to get one that isn't offered
	BuiltIn bool

	Elsewhere bool // another server offers it

	LookedAt int64  // when the viewer's last look at it ended; 0: there was none
	Found    string // what it came to
}

// Path is the page of the agent.
func (a Agent) Path() string { return components.AgentPath(a.Name) }

// State says whether it can be started.
func (a Agent) State() components.Reading {
	switch {
	case a.BuiltIn:
		return components.Reading{Key: "available", Words: "Always there", Icon: "done", Tone: components.ToneRun}
	case a.Reason == "":
		return components.Reading{Key: "available", Words: "Can be started", Icon: "done", Tone: components.ToneRun}
	}
	return components.Reading{Key: "missing", Words: "Can’t be started", Icon: "fail", Tone: components.ToneBad}
}

// Where says how the server came by it.
func (a Agent) Where() string {
	switch a.From {
	case "PATH":
		return "known, found on PATH"
	case "--agent":
		return "named with --agent"
	}
	return a.From
}

// AgentPage is one agent, and what was found at the last look at it.
type AgentPage struct {
	Frame
	Agent Agent
	Key   string
	Look  *AgentLook // nil: there was none since the server was started
}

// follows tells a script where what goes on is read again; nothing if nothing does.
func (p AgentPage) follows() templ.Attributes {
	if p.Look == nil || p.Look.Ended > 0 {
		return nil
	}
	return templ.Attributes{"data-follows": p.Agent.Path()}
}

func (p AgentPage) probePath() string { return p.Agent.Path() + "/probe" }

// AgentLook is one look at an agent.
type AgentLook struct {
	Began    int64
	Ended    int64 // 0: it goes on
	Findings []AgentFinding
	Failed   string // it came to nothing
}

// Says counts what was found, the worst first.
func (l AgentLook) Says() string {
	count := map[string]int{}
	for _, f := range l.Findings {
		count[f.Health]++
	}
	switch wrong, mind := count["wrong"], count["warning"]; {
	case wrong > 0:
		return fmt.Sprintf("%d of %s wrong: this agent can’t work as it is", wrong, components.Plural(len(l.Findings), "finding"))
	case mind > 0:
		return fmt.Sprintf("Nothing is wrong; %d of %s to be minded", mind, components.Plural(len(l.Findings), "finding"))
	}
	return "All is well, in " + components.Plural(len(l.Findings), "finding")
}

// Result is Says in a few words.
func (l AgentLook) Result() string {
	count := map[string]int{}
	for _, f := range l.Findings {
		count[f.Health]++
	}
	switch {
	case l.Failed != "":
		return "it failed"
	case count["wrong"] > 0:
		return fmt.Sprintf("%d wrong", count["wrong"])
	case count["warning"] > 0:
		return fmt.Sprintf("%d ok, %d to be minded", count["ok"], count["warning"])
	}
	return fmt.Sprintf("%d ok", len(l.Findings))
}

// AgentFinding is one thing that a look has found.
type AgentFinding struct{ Subject, Health, Found, Do string }

// State is the health of a finding as a mark.
func (f AgentFinding) State() components.Reading {
	switch f.Health {
	case "ok":
		return components.Reading{Key: "ok", Words: "OK", Icon: "done", Tone: components.ToneRun}
	case "warning":
		return components.Reading{Key: "warning", Words: "Mind this", Icon: "ask", Tone: components.ToneAsk}
	}
	return components.Reading{Key: "wrong", Words: "Wrong", Icon: "fail", Tone: components.ToneBad}
}
