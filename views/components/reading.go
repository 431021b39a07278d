package components

import (
	"fmt"
	"time"

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
		case s.Claim != nil && s.Claim.Phase == journal.PhaseReady:
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
			return Say("The agent waits for your answer. Nothing else is running. Since ", At(since), ", ", Age(since), ".")
		}
		return Say("Nothing is running. Since ", At(since), ", ", Age(since), ".")
	case journal.StateBlocked:
		return Say(Brief(st.Blocked.Detail), " Nothing is running.")
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
	i := s.State.Interrupt
	if i == nil {
		return Say("Ends at the next safe point.")
	}
	unfollowed := s.State.Adopts() && !s.followed()
	switch {
	case unfollowed && i.Mode == journal.InterruptNow:
		return Say("Asked ", At(i.At), ". What runs is ended once a server follows it again.")
	case unfollowed:
		return Say("Asked ", At(i.At), ". Ends at the next safe point, once a server follows it again.")
	case i.Mode == journal.InterruptNow:
		return Say("Asked ", At(i.At), ". What runs is being ended.")
	}
	return Say("Asked ", At(i.At), ". Ends at the next safe point.")
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

// endedDetail says how the last turn ended, and what is held because of it (PRO-5).
func (s Session) endedDetail(state journal.ExecutionState) Phrase {
	t := s.State.Turn
	p := Say("Ended ", At(t.EndedAt))
	switch state {
	case journal.StateLimitReached:
		p = Say(limitValue(t.Limit, s.State.TurnLimits())+" at ", At(t.EndedAt), ". Work up to ", EntryLink(t.EndedSeq), " is kept.")
	case journal.StateFailed:
		p = Say(Brief(orElse(t.Reason, "The turn failed.")), " See ", EntryLink(t.EndedSeq), ".")
	default:
		p = Say(p, stopReason(t), ".")
	}
	if n := len(s.State.Admitted); n > 0 && s.State.Held {
		return Say(p, " ", Plural(n, "message"), areHeld(n))
	}
	return p
}

func areHeld(n int) string {
	if n == 1 {
		return " is held."
	}
	return " are held."
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func (s Session) stoppedWords() string {
	t := s.State.Turn
	if t.Outcome == journal.Interrupted {
		return "Stopped by the server"
	}
	return "Stopped by " + s.Viewer.Who(t.EndedBy)
}

func stopReason(t *journal.Turn) string {
	switch {
	case t.Outcome == journal.Interrupted:
		return ", because the server was stopped"
	case t.Reason == "rejected":
		return ", because a request was rejected"
	case t.Reason == "stay":
		return ", after an outcome was reconciled"
	}
	return ""
}

func blockedWords(b *journal.BlockInfo) string {
	switch b.Cause {
	case journal.BlockAgent:
		return "Waiting for an agent"
	case journal.BlockWorkspace:
		return "Waiting for a workspace"
	case journal.BlockRecovery:
		return "Waiting for your word"
	case journal.BlockSignIn:
		return "Waiting for the agent to be signed in"
	}
	return "Waiting for " + Line(string(b.Cause), 40)
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
	return "See what is missing"
}

func limitNoun(limit string) string {
	switch limit {
	case "steps":
		return "step"
	case "wall_s":
		return "time"
	case "tokens":
		return "token"
	case "cost_usd":
		return "cost"
	}
	return Line(limit, 40)
}

func limitValue(limit string, l journal.Limits) string {
	switch limit {
	case "steps":
		return Plural(l.Steps, "step")
	case "wall_s":
		return Took((time.Duration(l.WallS) * time.Second).Milliseconds())
	case "tokens":
		return fmt.Sprintf("%d tokens", l.Tokens)
	case "cost_usd":
		return fmt.Sprintf("%.2f USD", l.CostUSD)
	}
	return "The limit"
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

// NeedsYou is the third reading.
func (s Session) NeedsYou() Reading {
	needs := s.State.Needs()
	r := Reading{Key: string(needs), Words: "Nothing", Icon: "none", Tone: ToneOff, Detail: Say("You can leave.")}
	switch needs {
	case journal.NeedsReconcile:
		r.Words, r.Icon, r.Tone, r.Href = fmt.Sprintf("%d to reconcile", s.State.Unknowns()), "unk", ToneUnk, "#needs"
		r.Detail = Say("Since ", At(s.State.BaseSince), ", no time limit.")
	case journal.NeedsDecision:
		r.Words, r.Icon, r.Tone, r.Href = Plural(len(s.State.Pending), "decision"), "ask", ToneAsk, "#needs"
		r.Detail = Say("Since ", At(s.State.BaseSince), ", no time limit.")
	case journal.NeedsBlocked:
		r.Words, r.Icon, r.Tone, r.Href = "Something is missing", "ask", ToneAsk, "#needs"
		r.Detail = Say("Since ", At(s.State.BaseSince), ". Nothing is lost.")
	case journal.NeedsReview:
		r.Words, r.Icon, r.Tone, r.Href = "Ready for review", "rev", ToneRev, "#latest"
		r.Detail = Say("Read what was done, then go on or archive it.")
	default:
		if s.Full {
			r.Detail = Say("Nothing new is recorded just now: the disk is full.")
		}
	}
	if s.State.Adopts() && (needs == journal.NeedsDecision || needs == journal.NeedsBlocked) { // its base is since when that runs
		r.Detail = Say("No time limit.")
	}
	switch {
	case !s.unfinished():
	case needs == journal.NeedsBlocked:
		r.Words, r.Icon, r.Tone, r.Href = "1 to continue", "ask", ToneAsk, "#needs"
		r.Detail = Say("The turn is not finished.")
	case needs == journal.NeedsReview:
		r.Words, r.Href, r.Detail = "To look at", "#needs", Say("The turn is not finished.")
	default:
		r.Detail = Say("The turn is not finished.")
	}
	return r
}

// unfinished reports whether the last turn ended before its work was done, so
// that there is nothing to review, but something that can be continued.
func (s Session) unfinished() bool {
	switch s.State.Base {
	case journal.StateStopped, journal.StateFailed, journal.StateLimitReached:
		return s.State.Held && s.Continuable()
	default:
		return false
	}
}

// TitlePrefix puts before a page's title what the session needs (ux §4.5).
func (s Session) TitlePrefix() string {
	switch s.State.Needs() {
	case journal.NeedsReconcile:
		return fmt.Sprintf("(%d) To reconcile: ", s.State.Unknowns())
	case journal.NeedsDecision:
		return fmt.Sprintf("(%d) Decision needed: ", len(s.State.Pending))
	case journal.NeedsBlocked:
		if s.unfinished() {
			return "To continue: "
		}
		return "Something is missing: "
	case journal.NeedsReview:
		if s.unfinished() {
			return "To look at: "
		}
		return "Ready for review: "
	default:
		return ""
	}
}

// Volatile reports whether what is shown depends on the clock and on other
// sessions too, not on entries alone: then it is asked for while nothing comes.
func (s Session) Volatile() bool {
	return s.Claim != nil || s.State.Base == journal.StateQueued || s.State.Base == journal.StateRunning || s.State.Base == journal.StateRetrying
}

// TabIcon is what a browser's tab shows of the session, in the order of the
// title's prefix; "" is the plain one.
func (s Session) TabIcon() string {
	switch s.State.Needs() {
	case journal.NeedsReconcile:
		return "reconcile"
	case journal.NeedsDecision, journal.NeedsBlocked:
		return "decision"
	case journal.NeedsReview:
		return "review"
	default:
		return ""
	}
}

// Group is where a list puts a session (ux §5.2).
type Group string

// The groups of the list, in their order.
const (
	GroupNeeds   Group = "Needs you"
	GroupRunning Group = "Running"
	GroupReview  Group = "To look at" // complete, or ended before that
	GroupEarlier Group = "Earlier"
)

// groupNames are the groups as people read them.
var groupNames = map[journal.Group]Group{
	journal.GroupNeeds: GroupNeeds, journal.GroupRunning: GroupRunning, journal.GroupReview: GroupReview, journal.GroupEarlier: GroupEarlier,
}

// Group is where the list shows it.
func (s Session) Group() Group { return groupNames[s.State.Group(s.Claim, s.Now)] }

// Stoppable reports whether a turn is open that isn't being stopped at once already.
func (s Session) Stoppable() bool {
	return s.State.TurnOpen() && (s.State.Interrupt == nil || s.State.Interrupt.Mode == journal.InterruptBoundary)
}

// Archivable reports whether the session can be closed.
func (s Session) Archivable() bool { return s.archivable() && len(s.State.Admitted) == 0 }

// ArchiveWaits reports whether nothing but messages that would never be delivered
// keeps the session from being closed.
func (s Session) ArchiveWaits() bool { return s.archivable() && len(s.State.Admitted) > 0 }

func (s Session) archivable() bool {
	return !s.State.Archived && !s.State.TurnOpen() && s.Claim == nil && s.State.Unknowns() == 0
}

// Resting reports whether a turn is open and nothing of it is being done: stopping
// it then ends it at once, in whichever way that is asked for (COO-4).
func (s Session) Resting() bool { return s.State.TurnOpen() && s.Claim == nil && !s.State.Adopts() }

// Continuable reports whether *continue* would be taken (PRO-6).
func (s Session) Continuable() bool {
	blocked := s.State.Blocked != nil && s.State.Blocked.Cause.Lifted()
	return !s.State.Archived && s.State.Unknowns() == 0 && (s.State.Held || blocked)
}

// Anewable reports whether the agent has forgotten the session, so that it can be
// started anew.
func (s Session) Anewable() bool { return s.State.Forgotten != nil && s.Continuable() }

// StateWords names an execution state where nothing more is known of it.
func StateWords(s journal.ExecutionState) string {
	if l, ok := looks[s]; ok {
		return l.words
	}
	return Line(string(s), 40)
}

// RowDetail is the line below a session's title in a list.
func (s Session) RowDetail() Phrase {
	p := Say("Agent ", Code(s.State.Agent), ", ", Plural(int(s.LastSeq), "entry"))
	if r := s.NeedsYou(); r.Key != string(journal.NeedsNone) && r.Key != string(journal.NeedsReview) {
		return Say(p, ", ", Word{Text: r.Words, Strong: true})
	}
	switch {
	case s.agentAdopted() && s.Claim == nil:
		p = Say(p, ", no server follows the agent just now")
	case s.State.Adopts() && s.Claim == nil:
		p = Say(p, ", no server follows its command just now")
	}
	if s.unfinished() {
		p = Say(p, ", the turn is not finished")
	}
	if n := len(s.State.Admitted); n > 0 {
		return Say(p, ", "+Plural(n, "message")+" not delivered yet")
	}
	return p
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
