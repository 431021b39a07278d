package components

import (
	"fmt"
	"strings"

	"holdfast/journal"
)

// Tone is the colour of a mark. It never stands alone: icon and words say the same.
type Tone string

// The tones.
const (
	ToneRun Tone = "run"
	ToneAsk Tone = "ask"
	ToneUnk Tone = "unk"
	ToneRev Tone = "rev"
	ToneBad Tone = "bad"
	ToneOff Tone = "off"
)

// Viewer is who looks at a page.
type Viewer struct {
	ID    string
	Email string
}

// Who names a user to the viewer.
func (v Viewer) Who(id string) string {
	switch id {
	case "":
		return "the server"
	case v.ID:
		return "you"
	}
	return "another person"
}

// Session is what the readings and rows are made of: the journal's state with
// the claim, on one snapshot.
type Session struct {
	ID       string
	State    journal.State
	Claim    *journal.Claim
	Now      int64 // the database's clock
	Position int   // in the queue, from 1; 0: not queued
	Host     string
	Kept     int  // commands that run under shims, which outlive their server
	Full     bool // the journal's disk takes no more
	LastSeq  int64
	Preset   string // its title
	Viewer   Viewer

	AgentHref string // where it is said what its agent is and can; "": it needs no saying
	AfterTurn bool   // its agent takes no text while it works, so that its whole answer is one step (PRO-4)
}

// Title is the session's name on one line.
func (s Session) Title() string {
	if t := Line(s.State.Title, 200); t != "" {
		return t
	}
	return "Untitled session"
}

// Path is where the session's page is.
func (s Session) Path() string { return "/sessions/" + s.ID }

// Reading is one of the three facts that people see: words with an icon, and a line below.
type Reading struct {
	Key    string
	Words  string
	Icon   string
	Tone   Tone
	Detail Phrase
	Href   string // where the words lead; "": nowhere
}

type look struct {
	words, icon string
	tone        Tone
}

// looks are the words of ux §4.1; those that depend on more are made in Execution.
var looks = map[journal.ExecutionState]look{
	journal.StateIdle:         {"Nothing asked yet", "idle", ToneOff},
	journal.StateQueued:       {"Queued", "queue", ToneOff},
	journal.StateRunning:      {"Running", "run", ToneRun},
	journal.StateRetrying:     {"Retrying", "queue", ToneOff},
	journal.StateWaiting:      {"Waiting for a decision", "hold", ToneAsk},
	journal.StateBlocked:      {"Waiting for something that is missing", "hold", ToneAsk},
	journal.StateStopping:     {"Stopping", "stop", ToneOff},
	journal.StateUnconfirmed:  {"Not confirmed", "dash", ToneOff},
	journal.StateUncertain:    {"Stopped, outcome unknown", "unk", ToneUnk},
	journal.StateStopped:      {"Stopped", "stop", ToneOff},
	journal.StateLimitReached: {"Reached a limit", "stop", ToneAsk},
	journal.StateFailed:       {"Failed", "fail", ToneBad},
	journal.StateReady:        {"Finished its turn", "done", ToneRun},
	journal.StateClosed:       {"Closed", "done", ToneOff},
}

// Execution is the first reading.
func (s Session) Execution() Reading {
	state, since := s.State.Execution(s.Claim, s.Now)
	l := looks[state]
	r := Reading{Key: string(state), Words: l.words, Icon: l.icon, Tone: l.tone}
	switch state {
	case journal.StateRunning:
		switch {
		case s.Claim != nil && s.Claim.Phase == journal.PhaseReady, s.agentOpens():
			r.Words = "Starting"
		case s.agentWorks():
			r.Words = "Working: " + Line(s.State.Agent, 40)
		}
	case journal.StateRetrying:
		r.Words = "Retrying in " + Ago(s.State.Retry.At-s.Now)
	case journal.StateBlocked:
		r.Words = s.Missing()
	case journal.StateStopped:
		r.Words = s.stoppedWords()
	case journal.StateLimitReached:
		r.Words = "Reached the " + limitNoun(s.State.Turn.Limit) + " limit"
	default: // the words of the table say it all
	}
	r.Detail = s.detail(state, since)
	return r
}

func (s Session) detail(state journal.ExecutionState, since int64) Phrase {
	st := &s.State
	switch state {
	case journal.StateIdle:
		return Say("Write the first message below.")
	case journal.StateQueued:
		return s.queuedDetail()
	case journal.StateRunning:
		return s.runningDetail(since)
	case journal.StateRetrying:
		return Say(fmt.Sprintf("The message did not reach the agent. Try %d of %d at ", st.Retry.N, st.Retry.Of), AtSecond(st.Retry.At), ".")
	case journal.StateWaiting:
		if s.agentWorks() {
			return Say("The agent waits, nothing else runs. Since ", At(since), ", ", Age(since), ".")
		}
		return Say("Nothing is running. Since ", At(since), ", ", Age(since), ".")
	case journal.StateBlocked:
		brief := Brief(st.Blocked.Detail)
		if brief == strings.TrimSpace(st.Blocked.Detail) {
			return Say(brief, " Nothing is running.")
		}
		return Say(brief, " Nothing is running. ", Link(s.Path()+"#needs", "All of it"), ".")
	case journal.StateStopping:
		return s.stoppingDetail()
	case journal.StateUnconfirmed:
		return s.unconfirmedDetail(since)
	case journal.StateUncertain:
		return Say("Since ", At(since), ". Nothing was repeated.", s.alsoRuns())
	case journal.StateStopped, journal.StateLimitReached, journal.StateFailed:
		return s.endedDetail(state)
	case journal.StateReady:
		return Say("Ended ", At(st.Turn.EndedAt), ". Nothing is running.")
	case journal.StateClosed:
		return Say("Archived ", At(since), ".")
	}
	return nil
}

func (s Session) turnWords() string {
	if s.State.TurnOpen() {
		return fmt.Sprintf("Turn %d, ", s.State.Turn.Number)
	}
	return "Running "
}

func (s Session) queuedDetail() Phrase {
	if s.Position == 0 {
		return Say("Starts when a worker is free.")
	}
	return Say(fmt.Sprintf("Position %d. Starts when a worker is free.", s.Position))
}

func (s Session) stoppingDetail() Phrase {
	p := s.howItStops()
	if s.State.Sends() {
		p = Say(p, " Then your message is delivered.")
	}
	return p
}

func (s Session) howItStops() Phrase {
	i, ends := s.State.Interrupt, "Ends at the next safe point"
	if i != nil && s.staysUp() {
		return Say("Asked ", At(i.At), ". The agent’s process may still be running. ", Link(s.Path()+"#needs", "What is known of it"), ".")
	}
	if s.AnswersWhole() {
		ends = "Ends when the agent has answered or asks you"
	}
	if len(s.State.Pending) > 0 {
		ends = "Ends when what runs has ended; what is asked is cancelled then"
	}
	if i == nil {
		return Say(ends + ".")
	}
	unfollowed := s.State.Adopts() && !s.followed()
	switch {
	case unfollowed && i.AtOnce():
		return Say("Asked ", At(i.At), ". What runs is ended once a server follows it again.")
	case unfollowed:
		return Say("Asked ", At(i.At), ". "+ends+", once a server follows it again.")
	case i.AtOnce():
		return Say("Asked ", At(i.At), ". What runs is being ended.")
	}
	return Say("Asked ", At(i.At), ". "+ends+".")
}

func (s Session) unconfirmedDetail(since int64) Phrase {
	worker := "its worker"
	if s.Host != "" {
		worker = s.Host
	}
	if s.Kept > 0 || s.agentWorks() {
		return s.leftDetail(worker, since)
	}
	if s.Claim.ExpiresAt <= s.Now {
		return Say("No word from "+worker+" for ", Age(since), ". Its hold ended ", AtSecond(s.Claim.ExpiresAt), "; what was in progress is being found out.")
	}
	return Say("No word from "+worker+" for ", Age(since), ". Its hold ends ", AtSecond(s.Claim.ExpiresAt), "; nothing else starts before then.")
}

// Missing says what a session waits for that needs its owner so; also beside what still runs.
func (s Session) Missing() string {
	if s.State.Blocked == nil {
		return "Waiting for you to continue"
	}
	return blockedWords(s.State.Blocked)
}

// MissingDetail says more of it.
func (s Session) MissingDetail() string {
	switch {
	case s.State.Blocked != nil:
		return s.State.Blocked.Detail
	case s.Anewable() && s.State.Forgotten.MayPass:
		return "The agent could not take up the conversation; what was asked is kept."
	case s.Anewable():
		return "The agent has forgotten the conversation; what was asked is kept."
	}
	n := len(s.State.Admitted)
	return Plural(n, "message") + areHeld(n)
}

// MissingAction names what leads to where it is answered.
func (s Session) MissingAction() string {
	if s.State.Blocked == nil {
		return "See how it goes on"
	}
	if s.staysUp() || s.silent() {
		return "See what is known"
	}
	return "See what is missing"
}

// View is the second reading. Without a script a page is what it was when it
// was drawn, and says so.
func (s Session) View() Reading {
	d := Say(Link(s.Path(), "Refresh to check again"), ".")
	if s.LastSeq > 0 {
		d = Say("Entry "+Number(s.LastSeq)+", ", Age(s.State.UpdatedAt), " ago. ", d)
	}
	return Reading{Key: "manual", Words: "As of " + Stamp(s.Now, s.Now, true), Icon: "eye", Tone: ToneOff, Detail: d}
}

// Volatile reports whether what is shown depends on the clock and on other
// sessions too, not on entries alone: then it is asked for while nothing comes.
func (s Session) Volatile() bool {
	return s.Claim != nil || s.State.Base == journal.StateQueued || s.State.Base == journal.StateRunning || s.State.Base == journal.StateRetrying
}

// StateWords names an execution state where nothing more is known of it.
func StateWords(s journal.ExecutionState) string {
	if l, ok := looks[s]; ok {
		return l.words
	}
	return Line(string(s), 40)
}

// AllReadings explains every execution state, for the page of words.
func AllReadings() []Reading {
	explained := map[journal.ExecutionState]string{
		journal.StateIdle:         "Nothing was asked, or all of it was withdrawn.",
		journal.StateQueued:       "There is work, and it waits for a free worker.",
		journal.StateRunning:      "A worker holds the session and works, or a command or the agent goes on although the server was restarted.",
		journal.StateRetrying:     "A message did not reach the agent; it is sent again at the time shown.",
		journal.StateWaiting:      "The agent asked for something. Nothing runs until you answer.",
		journal.StateBlocked:      "An agent, a workspace or your word is missing. Nothing is lost, and nothing runs.",
		journal.StateStopping:     "You asked to stop, and that is being done.",
		journal.StateUnconfirmed:  "The worker has not been heard of. Nothing else starts before its hold ends.",
		journal.StateUncertain:    "Something was started and its outcome is not recorded. Nothing runs until you reconcile it.",
		journal.StateStopped:      "The last turn was stopped. The queue is held until you continue.",
		journal.StateLimitReached: "The turn reached a bound. Continue may raise it.",
		journal.StateFailed:       "The last turn failed. Continue takes it up after the step that failed.",
		journal.StateReady:        "The last turn is complete. Its work is ready for review.",
		journal.StateClosed:       "The session is archived. It stays readable.",
	}
	out := make([]Reading, 0, len(explained))
	for _, s := range journal.States() {
		l := looks[s]
		out = append(out, Reading{Key: string(s), Words: l.words, Icon: l.icon, Tone: l.tone, Detail: Say(explained[s])})
	}
	return out
}
