package components

import (
	"fmt"

	"holdfast/journal"
)

// agentWorks reports whether an agent's process is at a message of the session.
func (s Session) agentWorks() bool { return s.State.Process != nil && len(s.State.Attempts) > 0 }

// AnswersWhole reports whether a turn has no safe point before the agent's whole answer.
func (s Session) AnswersWhole() bool { return s.AfterTurn || s.agentWorks() }

// agentAdopted reports whether it goes on although its server was restarted (REC-10).
func (s Session) agentAdopted() bool { return s.agentWorks() && s.State.Process.AdoptedAt > 0 }

// agentOpens reports whether the turn waits for its agent's process to have a
// conversation open, which may take it a while.
func (s Session) agentOpens() bool {
	p := s.State.Process
	return s.State.TurnOpen() && p != nil && !p.Opened && p.OpensSince > 0 && len(s.State.Attempts) == 0
}

// opening says what it is at until then.
func (s Session) opening() Phrase {
	since := s.State.Process.OpensSince
	what := "The agent begins, since "
	if s.State.AgentSession != "" {
		what = "The agent takes up its conversation again, since "
	}
	return Say(what, At(since), ", ", Age(since), ".")
}

// followed reports whether a worker is at the session, as far as is known.
func (s Session) followed() bool { return s.Claim != nil && !s.Claim.Unconfirmed(s.Now) && !s.silent() }

// adopted says of what outlived its server since when it runs, and whether it is followed again (REC-10).
func (s Session) adopted() Phrase {
	var since, found int64
	list := s.State.Adopted()
	for i, c := range list {
		if i == 0 || c.Since < since {
			since = c.Since
		}
		found = max(found, c.AdoptedAt)
	}
	return stillRuns(len(list), since, found, s.followed())
}

func stillRuns(n int, since, found int64, followed bool) Phrase {
	p, follows := Say("Still running since ", At(since)), "No server follows it just now; its output is kept."
	if n > 1 {
		p, follows = Say(Plural(n, "command")+" still run, the first since ", At(since)), "No server follows them just now; their output is kept."
	}
	if !followed { // it may have ended meanwhile: its record waits for a server, too
		return Say(p, ", as far as is known. ", follows)
	}
	return Say(p, ". The server was restarted at ", At(found), "; nothing was interrupted.")
}

// CallDetail says more of a call that runs although its server was restarted.
func (s Session) CallDetail(c *journal.Call) Phrase {
	if c.State != journal.CallIsDispatched || c.AdoptedAt == 0 {
		return nil
	}
	return stillRuns(1, c.DispatchedAt, c.AdoptedAt, s.followed())
}

// alsoRuns is what an unknown outcome must not hide.
func (s Session) alsoRuns() Phrase {
	switch list := s.State.Adopted(); len(list) {
	case 0:
		return nil
	case 1:
		return Say(" Another command still runs, since ", At(list[0].Since), ".")
	default:
		return Say(fmt.Sprintf(" %d other commands still run.", len(list)))
	}
}

func (s Session) runningDetail(since int64) Phrase {
	switch last := Say(" Last entry ", AgeOfLast(s.State.UpdatedAt), " ago."); {
	case s.agentAdopted() && s.followed():
		return Say("The server was restarted at ", At(s.State.Process.AdoptedAt), "; the agent was not interrupted.", last)
	case s.agentAdopted():
		return Say("The agent has gone on without the server since ", At(s.State.Process.AdoptedAt), ", as far as is known. No server follows it just now; what it says is kept.")
	case s.State.Adopts() && s.Claim == nil:
		return s.adopted()
	case s.State.Adopts():
		return Say(s.adopted(), last)
	case s.agentOpens():
		return Say(s.turnWords(), "since ", At(since), ". ", s.opening())
	default:
		return Say(s.turnWords(), "since ", At(since), ".", s.underWay(), last)
	}
}

// underWay says what an agent does besides talking.
func (s Session) underWay() string {
	n := 0
	for _, c := range s.State.Calls {
		if c.State == journal.CallIsDispatched && s.State.OfAttempt(c) {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return " A call of the agent’s is under way."
	}
	return fmt.Sprintf(" %d calls of the agent’s are under way.", n)
}

// AgentWorks reports whether an agent is at a message of the session, with calls of its own.
func (s Session) AgentWorks() bool { return s.agentWorks() }

// leftDetail says of a worker that isn't heard of what it left running under
// shims. It is short: in a narrow register all of it must stand.
func (s Session) leftDetail(worker string, since int64) Phrase {
	left, them := "Its command may go on without it", "it"
	if s.agentWorks() {
		left = "Its agent may go on without it"
	}
	if s.Kept > 1 {
		left, them = fmt.Sprintf("Its %d commands may go on without it", s.Kept), "them"
	}
	p := Say("No word from "+worker+" for ", Age(since), ". "+left)
	if s.Claim.ExpiresAt <= s.Now {
		return Say(p, "; what became of "+them+" is being found out.")
	}
	return Say(p, ". Its hold ends ", AtSecond(s.Claim.ExpiresAt), ".")
}

// adoptedEntry is the row of a command that was found still running, or was let go.
// c is what became of it since, nil if that isn't at hand.
func adoptedEntry(b *journal.CallAdopted, c *journal.Call, name Word) Entry {
	if b.StateFolderID == "" {
		return Entry{Icon: "server", Title: Say("No longer followed: ", name), Note: Say("recorded by the server"), Lines: []Phrase{
			Say("No server answers where it ran. It may be run again without harm, so it is when its turn goes on."),
		}}
	}
	since := "The server was restarted meanwhile; up to then nothing of it was interrupted or repeated."
	if c != nil && c.State == journal.CallIsUnknown {
		since = "The server was restarted meanwhile. It was lost later."
	}
	return Entry{Icon: "run", Title: Say("Still running: ", name), Note: Say("recorded by the server"), Lines: []Phrase{
		Say("Since ", AtSecond(b.Since), ". "+since),
	}}
}

// recoveredEntry tells what a server found when it took up what another, or itself, had
// let go of: what goes on, what has ended meanwhile, and what nobody knows. Why that was
// so, a restart that was planned say, isn't in the event.
func recoveredEntry(b *journal.StepRecovered) Entry {
	unknown, runs, ended, agents, gone := 0, 0, 0, 0, 0
	for _, a := range b.Attempts {
		switch a.Became {
		case journal.AttemptIsAdopted:
			if a.Ended {
				gone++
			} else {
				agents++
			}
		case journal.AttemptHasFailed: // it never reached the agent
		default:
			unknown++
		}
	}
	for _, c := range b.Calls {
		switch c.Became {
		case journal.CallIsUnknown:
			unknown++
		case journal.CallIsAdopted:
			runs++
		default:
			ended++
		}
	}
	e := Entry{Icon: "server", Title: Say("A server took this session up again"), Note: Say("recorded by the server")}
	add := func(n int, one, more string) {
		switch {
		case n == 1:
			e.Lines = append(e.Lines, Say(one))
		case n > 1:
			e.Lines = append(e.Lines, Say(fmt.Sprintf(more, n)))
		}
	}
	add(agents, "The agent went on meanwhile, and was not interrupted by that.", "%d messages are with the agent, which went on meanwhile.")
	add(gone, "The agent’s process is gone. What it had said by then is read on.", "%d messages were with an agent whose process is gone. What it had said by then is read on.")
	add(runs, "A command ran on meanwhile, and was not interrupted by that.", "%d commands ran on meanwhile, and were not interrupted by that.")
	add(ended, "A command has ended meanwhile; its own record says how.", "%d commands have ended meanwhile; their own records say how.")
	add(unknown, "1 operation had no recorded result. Nothing was repeated.", "%d operations had no recorded result. Nothing was repeated.")
	if len(e.Lines) == 0 {
		e.Lines = []Phrase{Say("Nothing that changes anything was running. The turn goes on from here.")}
	}
	return e
}

// neverBegan is said of what was cancelled for journal.ReasonNotStarted.
const neverBegan = "It never began: the server stopped, or was lost, between its dispatch and its start. Nothing of it ran."
