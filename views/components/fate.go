package components

import (
	"slices"
	"strings"

	"holdfast/journal"
)

// fate is what is known of the processes of a call whose outcome isn't.
type fate int

// Only evidence rules out that something of a call runs.
const (
	mayRun    fate = iota
	isGone         // nothing of it runs
	wasEnded       // what ran of it was ended when it was lost
	hasEnded       // its own record says so, which came late
	leftSome       // likewise, and that processes of it could not be ended
	neverBorn      // its own record says that nothing of it ran
)

// fateWords is how the card goes on after saying that the call was lost. Each says
// all that is known of whether it ran and runs, so that no two sentences disagree.
var fateWords = map[fate]string{
	mayRun:    "It may have run, in part, or not at all. A part of it may still be running.",
	isGone:    "It may have run, in part, or not at all. Nothing of it is running any more.",
	wasEnded:  "It may have run, in part, or not at all. What was still running of it was ended.",
	hasEnded:  "Its own record came late and stands below: it has ended.",
	leftSome:  "Its own record came late and stands below: its command has ended, and left processes that may still be running.",
	neverBorn: "Its own record came late and stands below: nothing of it ran.",
}

// fate reads the evidence: what was seen last counts.
func (c UnknownCard) fate() fate {
	f := mayRun
	for _, e := range c.Call.Evidence {
		switch e.Type {
		case journal.EvidenceProcess:
			f = processFate(e.Text)
		case journal.EvidenceExitRecord:
			f = recordFate(e.Text)
		}
	}
	return f
}

// ofAgent reports whether the call was lost with its agent's process, of which seen
// tells. What the process wrote last stands behind that, and proves nothing.
func (c UnknownCard) ofAgent() bool {
	return slices.ContainsFunc(c.Call.Evidence, func(e journal.Evidence) bool {
		return e.Type == journal.EvidenceProcess && strings.HasPrefix(e.Text, agentsProcess)
	})
}

// has reports whether evidence of a type is there.
func (c UnknownCard) has(kind string) bool {
	return slices.ContainsFunc(c.Call.Evidence, func(e journal.Evidence) bool { return e.Type == kind })
}

// noResult is said of the result. A record that came late is one, though no answer
// to what the call did.
func (c UnknownCard) noResult() string {
	if c.has(journal.EvidenceExitRecord) {
		return "No result was recorded then."
	}
	return "No result was recorded."
}

// agentAstray reports whether it was lost with the server of its agent's process, of
// which nobody knew whether it had ended (LEA-12).
func (c UnknownCard) agentAstray() bool {
	return slices.ContainsFunc(c.Call.Evidence, func(e journal.Evidence) bool {
		return e.Type == "process" && strings.HasPrefix(e.Text, agentsProcess+"ran ")
	})
}

const agentsProcess = "The agent's process "

// lostWords begin the card.
func (c UnknownCard) lostWords() string {
	switch {
	case c.agentAstray():
		return "The server lost the agent’s process while this ran, before a result was recorded."
	case c.ofAgent():
		return "The agent’s process ended while this ran, before a result was recorded."
	case c.has(journal.EvidenceAgent):
		return "The agent ended its turn without saying how this ended."
	}
	return "The server lost this call before a result was recorded."
}

// agentFate: the shim of an agent's process ends what that leaves, and its record
// says what it couldn't.
func agentFate(seen string) fate {
	seen, _, _ = strings.Cut(seen, " Its last words: ")
	switch {
	case strings.Contains(seen, "processes that could not be ended"), !strings.HasPrefix(seen, agentsProcess+"was ended") && !strings.HasPrefix(seen, agentsProcess+"ended"):
		return mayRun
	}
	return wasEnded
}

// The journal has what was seen of a call as a sentence of the runner's. What isn't
// one of these rules out nothing.
func processFate(seen string) fate {
	switch {
	case strings.HasPrefix(seen, agentsProcess):
		return agentFate(seen)
	case strings.HasSuffix(seen, "was running any more when the execution was recovered."), strings.HasSuffix(seen, "so it runs no more."):
		return isGone
	case strings.HasSuffix(seen, ", and was ended."), strings.HasSuffix(seen, ", and were ended."):
		return wasEnded
	}
	return mayRun
}

func recordFate(record string) fate {
	switch {
	case strings.Contains(record, "processes that could not be ended"):
		return leftSome
	case strings.HasPrefix(record, "Nothing of its command ran"):
		return neverBorn
	}
	return hasEnded
}

// began says what is certain of the call's beginning.
func (c UnknownCard) began() Phrase {
	switch {
	case c.Call.Unseen():
		return Say("whether it began is not known")
	case c.fate() == neverBorn:
		return Say("dispatched ", AtSecond(c.Call.DispatchedAt))
	}
	return Say("started ", AtSecond(c.Call.DispatchedAt))
}

// evidenceName names what was seen of a call; of its processes only the last word
// is how it stands.
func (c UnknownCard) evidenceName(i int) string {
	switch c.Call.Evidence[i].Type {
	case journal.EvidenceOutput:
		return "Captured output"
	case journal.EvidenceProcess:
		if strings.HasPrefix(c.Call.Evidence[i].Text, agentsProcess) {
			return "The agent’s process"
		}
		for _, later := range c.Call.Evidence[i+1:] {
			if later.Type == journal.EvidenceProcess || later.Type == journal.EvidenceExitRecord {
				return "Its processes, as seen before"
			}
		}
		return "Its processes"
	case journal.EvidenceExitRecord:
		return "Its own record, found later"
	case journal.EvidenceAgent:
		return "From its agent"
	case journal.EvidencePerson:
		return "A person’s word"
	}
	return "Seen of it"
}
